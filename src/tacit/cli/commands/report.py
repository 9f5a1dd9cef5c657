"""``tacit report``: write the report and the card of a model again."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from tacit.cli._console import REFUTED, json_option, out
from tacit.cli._options import ledger_options, opened_ledger


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--fairness",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What 'tacit fairness --epsilon ... --json' printed about this model.",
)
@click.option(
    "--audit",
    "audits",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What 'tacit audit --json' printed about this estimator; may be repeated.",
)
@ledger_options
@json_option
def command(
    folder: Path,
    fairness: Path | None,
    audits: tuple[Path, ...],
    ledger_url: str | None,
    dataset: str | None,
    analyst: str | None,
    as_json: bool,
) -> None:
    """Write report.html and the card of the model in FOLDER again.

    With --ledger the report shows the account as it is now, after checking it and that
    it is still the one this model was paid from. No row is read and nothing is charged.

    With --fairness report and card have a section on groups, and count what it cost.
    With --audit the report has a section on what attacks could show. Both are kept in
    attachments.json in FOLDER, and shown whenever the pages are written again. The exit
    code is 5 when an audit among them refutes the guarantee.
    """
    from tacit.cli._attachments import read_attachments
    from tacit.cli._reporting import (
        audit_of,
        certificate_of,
        check_sound,
        kept_account,
        write_reports,
    )
    from tacit.persistence import digest, read

    saved = read(folder)
    ledger = None
    if ledger_url is not None:
        dataset = dataset or kept_account(saved).get("dataset")
        ledger = opened_ledger(ledger_url, dataset, analyst)
        check_sound(saved, ledger)
    attacks = [audit_of(path, saved) for path in audits]
    certificates = []
    if fairness is not None:
        certificates.append(certificate_of(fairness, digest(folder)))
    pages = write_reports(folder, saved, ledger, certificates, attacks)

    def human(console: Console) -> None:
        for page in pages.values():
            console.print(page, markup=False)

    out(as_json, pages, human)
    attached = read_attachments(folder, digest(folder))
    if any(audit["refuted"] for audit in attached.audits):
        click.echo("tacit: an audit refutes the guarantee of this model", err=True)
        click.get_current_context().exit(REFUTED)
