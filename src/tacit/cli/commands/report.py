"""``tacit report``: rewrite the report and the card of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from tacit.cli._console import REFUTED, json_option, out
from tacit.cli._options import Account, ledger_options


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--fairness",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output of 'tacit fairness --epsilon ... --json' about this model.",
)
@click.option(
    "--audit",
    "audits",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output of 'tacit audit --json' about this estimator; may be repeated.",
)
@ledger_options
@json_option
def command(
    folder: Path,
    fairness: Path | None,
    audits: tuple[Path, ...],
    account: Account,
    as_json: bool,
) -> None:
    """Rewrite the report and the card of a model.

    These are report.html, card.md and card.html in FOLDER.

    With --ledger the report shows the current state of the ledger, after verifying it
    and that this model was charged to it. No row is read and nothing is charged.

    With --fairness the report and the card have a section on groups, and include its
    charge. With --audit the report has a section on the results of attacks. Both are
    stored in attachments.json in FOLDER, and shown whenever the pages are rewritten.
    The exit code is 5 if one of the audits refutes the guarantee.
    """
    from tacit.cli._attachments import read_attachments
    from tacit.cli._reporting import (
        account_of_model,
        audit_of,
        certificate_of,
        check_ledger,
        write_reports,
    )
    from tacit.persistence import digest, read

    saved = read(folder)
    dataset = account.dataset or account_of_model(saved).get("dataset")
    ledger = replace(account, dataset=dataset).opened()
    if ledger is not None:
        check_ledger(saved, ledger)
    attacks = [audit_of(path, saved) for path in audits]
    certificates = []
    if fairness is not None:
        certificates.append(certificate_of(fairness, digest(folder)))
    pages = write_reports(folder, saved, ledger, certificates, attacks)

    def human(console: Console) -> None:
        for page in pages.values():
            console.print(page)

    out(as_json, pages, human)
    attached = read_attachments(folder, digest(folder))
    if any(audit["refuted"] for audit in attached.audits):
        click.echo("tacit: an audit refutes the guarantee of this model", err=True)
        click.get_current_context().exit(REFUTED)
