"""``tacit fairness``: a model on groups of people, and the effect of its noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tacit.cli._console import (
    Rejected,
    clean,
    json_option,
    out,
    show_account,
    warn_of_budget,
)
from tacit.cli._options import (
    Account,
    csv_options,
    given_settings,
    ledger_options,
    no_ledger_option,
)

# As in `tacit.fairness._groups.NOTIONS`, which help does not import
NOTIONS = (
    "equalized_odds",
    "equal_opportunity",
    "accuracy_parity",
    "demographic_parity",
    "accuracy",
)
_part = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--sensitive",
    multiple=True,
    required=True,
    metavar="COLUMN",
    help="Column of groups; may be repeated, for the combinations of values.",
)
@click.option(
    "--groups",
    multiple=True,
    metavar="COLUMN=VALUE,VALUE",
    help="Public values of a sensitive column; all other values form one group.",
)
@click.option(
    "--notion",
    type=click.Choice(NOTIONS),
    default="equalized_odds",
    help="Notion of fairness.",
)
@click.option(
    "--desirable",
    multiple=True,
    help="Desirable label, for equal_opportunity; may be repeated.",
)
@click.option(
    "--distance",
    type=click.FloatRange(0),
    help="Distance of the coefficients from those of the model without noise; by "
    "default from the plan of the model.",
)
@click.option(
    "--failure",
    type=_part,
    default=0.01,
    help="Failure probability of the certificate.",
)
@click.option(
    "--sampling",
    type=_part,
    help="Part of --failure for intervals about the population; only for rows that "
    "the model was not fitted on.",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    help="Charge a certificate from noisy counts, which may be published.",
)
@click.option("--delta", type=float, default=0.0, help="Delta of the certificate.")
@click.option("--label", help="Name of the charge in the ledger.")
@ledger_options
@no_ledger_option
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    help="Write a page with tables and a chart to this file.",
)
@click.option("--force", is_flag=True, help="Replace the page if it is there.")
@csv_options
@json_option
def command(
    folder: Path,
    data: Path,
    sensitive: tuple[str, ...],
    groups: tuple[str, ...],
    notion: str,
    desirable: tuple[str, ...],
    distance: float | None,
    failure: float,
    sampling: float | None,
    epsilon: float | None,
    delta: float,
    label: str | None,
    account: Account,
    page: Path | None,
    force: bool,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Measure how a model treats groups of people.

    FOLDER is the model. DATA has the columns of the model's schema, the target, and the
    sensitive columns, which need not be features. The certificate gives intervals of
    the figures that the same model would have without noise.

    Without --epsilon nothing is charged, and the whole output is PRIVATE DATA, for
    people who may see the rows. With --epsilon the output is computed from noisy
    counts, which are charged to the ledger before they are drawn, and may be published.
    """
    # long: one parameter for each option of the command
    if epsilon is None and (delta or label is not None):
        raise Rejected(
            "--delta and --label need --epsilon; give it, or leave them out."
        )
    if epsilon is not None:
        account.require()
        if sampling is not None:
            raise Rejected(
                "--sampling cannot be combined with --epsilon; leave it out."
            )
    from tacit.cli import _certifying as certifying
    from tacit.cli._output_files import check_label
    from tacit.persistence import read
    from tacit.privacy import Budget

    _check_page(page, force, [folder, data, *account.files])
    listed = _listed(groups, sensitive)
    comparison = certifying.Comparison(
        sensitive, listed, notion, desirable, failure, sampling, distance
    )
    saved = read(folder)
    payment = None
    if epsilon is not None:
        label = "fairness" if label is None else label
        check_label(label)
        ledger = account.opened()
        payment = certifying.Payment(epsilon, delta, ledger, label)
        warn_of_budget(Budget(epsilon, delta))
    found = certifying.outcome(folder, saved, data, comparison, payment, **reading)
    ledger = None if payment is None else payment.ledger
    written = certifying.written(folder, saved, comparison, found, page, ledger)
    out(as_json, written, lambda console: _show(console, found, written))


def _check_page(page: Path | None, force: bool, used: list[Path]) -> None:
    """Reject a page that cannot be written, before anything is charged."""
    from tacit.cli._output_files import check_file, try_writing

    if page is None:
        return
    check_file(page, used, "--html")
    if page.exists() and not force:
        raise Rejected(f"{page} already exists; give another --html, or --force.")
    try_writing(page, "--html")


def _listed(groups: tuple[str, ...], sensitive: tuple[str, ...]) -> dict[str, Any]:
    """Return the public values of ``--groups``, by column."""
    if len(set(sensitive)) < len(sensitive):
        raise Rejected("--sensitive names a column twice.")
    found = {}
    for name, values in given_settings(groups, "--groups").items():
        if name not in sensitive:
            raise Rejected(
                f"--groups has the column {name!r}, which is not among --sensitive."
            )
        listed = values if isinstance(values, list) else str(values).split(",")
        strings = [
            part.strip() if isinstance(part, str) else str(part) for part in listed
        ]
        if not all(strings) or len(set(strings)) < len(strings):
            raise Rejected(f"--groups must list different values for {name!r}.")
        found[name] = strings
    return found


def _show(console: Console, found: Any, written: dict[str, Any]) -> None:
    by = ", ".join(written["sensitive"])
    console.print(clean(f"{written['target']}, groups by {by}"))
    shown = found.figures if found.certificate is None else found.certificate
    # the report of a charge has lines of its own
    for line in str(shown).splitlines():
        console.print(clean(line))
    if found.no_certificate is not None:
        console.print(f"no certificate: {found.no_certificate}")
    for name, reason in written["failed"].items():
        console.print(f"{name:12} FAILED: {reason}")
    if written["page"] is not None:
        console.print(f"page         {written['page']}")
    show_account(console, written["ledger"])
