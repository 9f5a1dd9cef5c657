"""``tacit ledger``: create, read, verify and manage the ledger of a data set."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.cli._console import (
    UNSOUND,
    Rejected,
    clean,
    json_option,
    out,
    spent_up,
    warn_of_budget,
)
from tacit.cli._options import Account, all_of, dataset_option, neighbors_option

if TYPE_CHECKING:
    from tacit.privacy._store import Record, StoredLedger, Verification

# of a table in a pipe, which has no width
WIDE = 1000
# of a model in a note; the first digits are enough for people
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")


_ledger_options = all_of(
    json_option,
    click.option(
        "--ledger",
        "url",
        envvar="TACIT_LEDGER",
        metavar="URL",
        help="sqlite:///budget.db or postgresql://user@host/db; by default the "
        "variable TACIT_LEDGER.",
    ),
    dataset_option,
)


def _opened(url: str | None, dataset: str | None) -> StoredLedger:
    if url is None:
        raise Rejected("No ledger is given: name one with --ledger or TACIT_LEDGER.")
    ledger: StoredLedger = Account(url, dataset).opened()
    return ledger


@click.group()
def command() -> None:
    """Create, read, verify and manage the ledger of a data set."""


@command.command()
@click.option(
    "--epsilon", type=float, required=True, help="Total epsilon of the data set."
)
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Total delta, well below 1 / rows; with 0, most fits never fit the budget.",
)
@neighbors_option
@_ledger_options
def init(
    url: str | None,
    dataset: str | None,
    epsilon: float,
    delta: float,
    neighbors: str,
    as_json: bool,
) -> None:
    """Create the ledger of a data set. Its budget cannot be changed later."""
    from tacit.privacy import Budget, Ledger, Neighbors

    if url is None or dataset is None:
        raise Rejected("--ledger and --dataset must be given.")
    budget = Budget(epsilon, delta, Neighbors.of(neighbors))
    warn_of_budget(budget)
    ledger = Ledger.open(url, dataset=dataset, budget=budget)
    _print_account(ledger, as_json)


@command.command()
@_ledger_options
def show(url: str | None, dataset: str | None, as_json: bool) -> None:
    """Print budget, spend, allowances and open reservations."""
    _print_account(_opened(url, dataset), as_json)


def _print_account(ledger: StoredLedger, as_json: bool) -> None:
    # long: one entry and one printed line for each fact of an account
    budget, spent, head = ledger.budget, ledger.spent(), ledger.head
    allowed, reserved = ledger.allowances(), ledger.reservations()
    spent_by = ledger.spent_by_analyst()
    report = ledger.report()
    data = {
        "dataset": ledger.dataset,
        "ledger": ledger.url,
        "owner": ledger.owner,
        "budget": budget.to_dict(),
        "spent": spent,
        "charges": len(report.entries) - len(reserved),
        "reservations": [record.to_dict() for record in reserved],
        "allowances": {
            name: None if own is None else own.to_dict()
            for name, own in allowed.items()
        },
        "spent_by_analyst": spent_by,
        "assumptions": list(report.assumptions),
        "head": list(head),
    }

    def human(console: Console) -> None:
        lines = [
            f"dataset      {ledger.dataset}, owner {ledger.owner}",
            f"budget       {_budget_line(budget.to_dict())}, neighbors "
            f"{budget.neighbors.value}",
            f"spent        epsilon {spent_up(spent)} in {data['charges']} charge(s)",
            *(f"reserved     {r.seq}: {r.label} by {r.who}" for r in reserved),
            *(
                f"allowed      {name}: "
                f"{'nothing' if own is None else _budget_line(own.to_dict())}"
                for name, own in allowed.items()
            ),
            *(
                f"spent by     {name}: epsilon {spent_up(by)}"
                for name, by in spent_by.items()
            ),
            *(f"assumes      {assumption}" for assumption in report.assumptions),
            _head_line(head),
        ]
        for line in lines:
            console.print(clean(line))

    out(as_json, data, human)


@command.command()
@click.option("--last", type=click.IntRange(1), help="Print only the last records.")
@_ledger_options
def history(
    url: str | None, dataset: str | None, last: int | None, as_json: bool
) -> None:
    """Print all records, and the spend after each. --json prints complete records."""
    ledger = _opened(url, dataset)
    records = ledger.spending()[-last if last else 0 :]

    def human(console: Console) -> None:
        table = Table(box=None, pad_edge=False)
        for name in ("seq", "when", "kind", "who", "epsilon", "spent"):
            table.add_column(name, no_wrap=True)
        table.add_column("description", overflow="fold")
        for record in records:
            table.add_row(*map(_cell, _line(record)))
        if not console.is_terminal:
            console.width = WIDE
        console.print(table)

    out(as_json, {"dataset": ledger.dataset, "records": records}, human)


def _line(record: dict[str, Any]) -> tuple[object, ...]:
    about, analyst = record["refers_to"], record["analyst"]
    user = record["who"].rpartition("@")[0]
    parts = [record["label"], record["reason"]]
    if record["kind"] in ("void", "cancel", "note") and about is not None:
        parts.append(f"(of {about})")
    if record["kind"] in ("open", "allow"):
        own = record["promise"]
        parts.append(f"{analyst}:" if record["kind"] == "allow" else "")
        parts.append("nothing" if own is None else _budget_line(own))
    if record["seeded"]:
        parts.append("FIXED SEED")
    return (
        record["seq"],
        record["when"][:16].replace("T", " "),
        record["kind"],
        user
        if analyst == user or record["kind"] == "allow"
        else f"{user} for {analyst}",
        "" if record["epsilon"] is None else f"{record['epsilon']:.4g}",
        spent_up(record["spent_after"]),
        DIGEST.sub(r"\1", " ".join(filter(None, parts))),
    )


@command.command()
@click.option(
    "--export",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Verify a file written by 'tacit ledger export' instead of a database.",
)
@click.option(
    "--head",
    "witness",
    metavar="SEQ:HASH",
    help="A head that was stored elsewhere; it must still be in the chain.",
)
@click.option(
    "--model",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A model charged to this ledger: its head must be in the chain, and its "
    "digest in a note. May be repeated.",
)
@_ledger_options
@click.pass_context
def verify(
    ctx: click.Context,
    url: str | None,
    dataset: str | None,
    path: Path | None,
    witness: str | None,
    folders: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Check all records. The exit code is 4 if the ledger is not sound."""
    from tacit.cli._checking import check_model, head_of
    from tacit.privacy._store import Export, read_export

    head = None if witness is None else head_of(witness)
    source = _opened(url, dataset) if path is None else read_export(path)
    result = source.verify(head=head)
    if folders:
        export = source if isinstance(source, Export) else source.export()
        found = [check_model(folder, export, result.dataset) for folder in folders]
        findings = dict.fromkeys((*result.findings, *chain(*found)))
        result = replace(result, findings=tuple(findings))

    out(as_json, result.to_dict(), lambda console: _print_result(console, result))
    if not result.ok:
        ctx.exit(UNSOUND)


def _print_result(console: Console, result: Verification) -> None:
    state = "sound" if result.ok else "NOT SOUND"
    lines = [
        f"{result.dataset}: {state}, {result.records} record(s), spent epsilon "
        f"{spent_up(result.spent)}",
        *(f"error        {finding}" for finding in result.findings),
        *(f"note         {note}" for note in result.notes),
    ]
    if result.head is not None:
        lines.append(_head_line(result.head))
    for line in lines:
        console.print(clean(line))


def _head_line(head: tuple[int, str]) -> str:
    """Return the head in the form that ``--head`` takes."""
    return f"head         {head[0]}:{head[1]}"


@command.command()
@click.option(
    "--out",
    "path",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write: one JSON object if it ends in .json, else one line per "
    "record.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@_ledger_options
def export(
    url: str | None, dataset: str | None, path: Path, force: bool, as_json: bool
) -> None:
    """Write all records to a file, to verify them elsewhere."""
    from tacit.cli._checking import write_export

    ledger = _opened(url, dataset)
    written = ledger.export()
    write_export(written, path, ledger.url, force=force)
    data = {"path": str(path), "records": len(written.rows), "head": list(written.head)}

    def human(console: Console) -> None:
        console.print(f"{len(written.rows)} record(s) in {path}")
        console.print(_head_line(written.head))

    out(as_json, data, human)


@command.command()
@click.argument("analyst")
@click.option(
    "--epsilon",
    type=float,
    help="Total epsilon that ANALYST may spend; or give --nothing.",
)
@click.option("--delta", type=float, help="Total delta; by default that of the ledger.")
@click.option("--nothing", is_flag=True, help="Allow this analyst no charge.")
@_ledger_options
def allow(
    url: str | None,
    dataset: str | None,
    analyst: str,
    epsilon: float | None,
    delta: float | None,
    nothing: bool,
    as_json: bool,
) -> None:
    """Limit the charges of an analyst.

    Only the owner of the ledger may. ANALYST '*' is every analyst not named.
    """
    from tacit.privacy import Budget

    if nothing == (epsilon is not None):
        raise Rejected("Either --epsilon or --nothing must be given.")
    ledger = _opened(url, dataset)
    budget, limit = None, "nothing"
    if epsilon is not None:
        own = ledger.budget.delta if delta is None else delta
        budget = Budget(epsilon, own, ledger.budget.neighbors)
        limit = f"{_budget_line(budget.to_dict())} in total"
    record = ledger.allow(analyst, budget)
    spent = ledger.spent_by_analyst()
    if analyst == "*":
        message = f"Each analyst who is not named may spend {limit}."
    else:
        by = spent.get(analyst, 0.0)
        message = (
            f"{analyst} may spend {limit}, and has spent epsilon {spent_up(by)} so far."
        )
    _print_record(ledger, record, message, as_json, spent_by_analyst=spent)


@command.command()
@click.argument("seq", type=int)
@click.option("--reason", required=True, help="Why the charge released nothing.")
@click.option(
    "--even-if-released",
    is_flag=True,
    help="Also void a charge that a note refers to, such as that of a model.",
)
@_ledger_options
def void(
    url: str | None,
    dataset: str | None,
    seq: int,
    reason: str,
    even_if_released: bool,
    as_json: bool,
) -> None:
    """Void a charge that released nothing, so that it no longer counts.

    Only the owner of the ledger may. SEQ is the number of the charge.
    """
    ledger = _opened(url, dataset)
    record = ledger.void(seq, reason, even_if_released=even_if_released)
    _print_freed(ledger, record, "no longer counts", as_json)


@command.command()
@click.argument("seq", type=int)
@click.option(
    "--reason", default="", show_default=False, help="Reason, for the history."
)
@_ledger_options
def cancel(
    url: str | None, dataset: str | None, seq: int, reason: str, as_json: bool
) -> None:
    """Cancel a reservation whose run released nothing.

    SEQ is the number of the reservation, which then no longer counts.
    """
    ledger = _opened(url, dataset)
    record = ledger.cancel(seq, reason)
    _print_freed(ledger, record, "is cancelled", as_json)


def _print_freed(
    ledger: StoredLedger, record: Record, done: str, as_json: bool
) -> None:
    (about,) = (r for r in ledger.history() if r.seq == record.refers_to)
    message = (
        f"The {about.kind} {about.seq} of epsilon {about.epsilon:.4g} for "
        f"{about.label!r} {done}; epsilon {spent_up(ledger.spent())} of "
        f"{ledger.budget.epsilon:g} is spent."
    )
    _print_record(ledger, record, message, as_json, about=about.to_dict())


def _print_record(
    ledger: StoredLedger, record: Record, message: str, as_json: bool, **amounts: Any
) -> None:
    account = {"budget": ledger.budget.to_dict(), "spent": ledger.spent(), **amounts}

    def human(console: Console) -> None:
        console.print(clean(message))
        console.print(f"record       {record.seq}")

    out(as_json, {**record.to_dict(), **account}, human)


def _cell(value: object) -> Text:
    return Text(clean(str(value)))  # a label may look like markup


def _budget_line(budget: dict[str, Any]) -> str:
    return f"epsilon {budget['epsilon']:g}, delta {budget['delta']:g}"
