"""``tacit ledger``: open, read, check and govern the account of a data set."""

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
    warn_of_budget,
)
from tacit.cli._options import opened_ledger

if TYPE_CHECKING:
    from tacit.privacy import Budget
    from tacit.privacy.store import Record, StoredLedger, Verification

# of a table in a pipe, where there is no screen to fit
WIDE = 1000
# of a model, named in a note; people compare the first digits
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")


def _which(function: Any) -> Any:
    """Add the options that say which account is meant."""
    for option in (
        click.option(
            "--dataset",
            envvar="TACIT_DATASET",
            help="Account in the ledger; may be left out when there is one only.",
        ),
        click.option(
            "--ledger",
            "url",
            envvar="TACIT_LEDGER",
            metavar="URL",
            help="sqlite:///budget.db or postgresql://user@host/db; or TACIT_LEDGER.",
        ),
        json_option,
    ):
        function = option(function)
    return function


def _opened(url: str | None, dataset: str | None) -> StoredLedger:
    if url is None:
        raise Rejected("--ledger must name the ledger, or TACIT_LEDGER.")
    ledger: StoredLedger = opened_ledger(url, dataset, None)
    return ledger


@click.group()
def command() -> None:
    """Open, read, check and govern the account of a data set."""


@command.command()
@click.option("--epsilon", type=float, required=True, help="All that may be spent.")
@click.option(
    "--delta",
    type=float,
    required=True,
    help="Below 1 / rows; with 0 most fits can never be paid for.",
)
@click.option(
    "--neighbors",
    type=click.Choice(["replace_one", "add_or_remove_one"]),
    default="replace_one",
    show_default=True,
    help="What a neighboring table is; with replace_one the row count is public.",
)
@_which
def init(
    url: str | None,
    dataset: str | None,
    epsilon: float,
    delta: float,
    neighbors: str,
    as_json: bool,
) -> None:
    """Open the account of a data set. Its budget cannot be changed later."""
    from tacit.privacy import Budget, Ledger, Neighbors

    if url is None or dataset is None:
        raise Rejected("--ledger and --dataset must be given.")
    budget = Budget(epsilon, delta, Neighbors.of(neighbors))
    warn_of_budget(budget)
    ledger = Ledger.open(url, dataset=dataset, budget=budget)
    _print_account(ledger, as_json)


@command.command()
@_which
def show(url: str | None, dataset: str | None, as_json: bool) -> None:
    """Budget, spend, allowances and reservations that stand."""
    _print_account(_opened(url, dataset), as_json)


def _print_account(ledger: StoredLedger, as_json: bool) -> None:
    budget, spent, head = ledger.budget, ledger.spent(), ledger.head
    allowed, held = ledger.allowances(), ledger.reservations()
    spent_by = ledger.spent_by_analyst()
    report = ledger.report()
    data = {
        "dataset": ledger.dataset,
        "ledger": ledger.url,
        "owner": ledger.owner,
        "budget": budget.to_dict(),
        "spent": spent,
        "charges": len(report.entries) - len(held),
        "reservations": [record.to_dict() for record in held],
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
            f"budget       {_words(budget)}, neighbors {budget.neighbors.value}",
            f"spent        epsilon {spent:.4g} by {data['charges']} charge(s)",
            *(f"reserved     {r.seq}: {r.label} by {r.who}" for r in held),
            *(
                f"allowed      {name}: {'nothing' if own is None else _words(own)}"
                for name, own in allowed.items()
            ),
            *(
                f"spent by     {name}: epsilon {by:.4g}"
                for name, by in spent_by.items()
            ),
            *(f"assumes      {assumption}" for assumption in report.assumptions),
            _head_line(head),
        ]
        for line in lines:
            console.print(clean(line), markup=False)

    out(as_json, data, human)


@command.command()
@click.option("--last", type=click.IntRange(1), help="Only so many records.")
@_which
def history(
    url: str | None, dataset: str | None, last: int | None, as_json: bool
) -> None:
    """All records, and what was spent after each. With --json nothing is shortened."""
    ledger = _opened(url, dataset)
    records = ledger.spending()[-last if last else 0 :]

    def human(console: Console) -> None:
        table = Table(box=None, pad_edge=False)
        for name in ("seq", "when", "kind", "who", "epsilon", "spent"):
            table.add_column(name, no_wrap=True)
        table.add_column("what", overflow="fold")
        for record in records:
            table.add_row(*map(_cell, _line(record)))
        if not console.is_terminal:
            console.width = WIDE
        console.print(table)

    out(as_json, {"dataset": ledger.dataset, "records": records}, human)


def _line(record: dict[str, Any]) -> tuple[object, ...]:
    about, analyst = record["refers_to"], record["analyst"]
    user = record["who"].rpartition("@")[0]
    words = [record["label"], record["reason"]]
    if record["kind"] in ("void", "cancel", "note") and about is not None:
        words.append(f"(of {about})")
    if record["kind"] in ("open", "allow"):
        own = record["promise"]
        words.append(f"{analyst}:" if record["kind"] == "allow" else "")
        words.append("nothing" if own is None else _words_of(own))
    if record["seeded"]:
        words.append("FIXED SEED")
    return (
        record["seq"],
        record["when"][:16].replace("T", " "),
        record["kind"],
        user
        if analyst == user or record["kind"] == "allow"
        else f"{user} for {analyst}",
        "" if record["epsilon"] is None else f"{record['epsilon']:.4g}",
        f"{record['spent_after']:.4g}",
        DIGEST.sub(r"\1", " ".join(filter(None, words))),
    )


@command.command()
@click.option(
    "--export",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check a file that 'tacit ledger export' wrote instead of a database.",
)
@click.option(
    "--head",
    "witness",
    metavar="SEQ:HASH",
    help="A head kept elsewhere, which must still be in the chain.",
)
@click.option(
    "--model",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A model that was charged here: its head must be in the chain, and its digest "
    "in a note. May be given several times.",
)
@_which
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
    """Read everything again and check it. Ends with code 4 if something is wrong."""
    from tacit.cli._checking import check_model, head_of
    from tacit.privacy.store import Export, read_export

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
        f"{result.spent:.4g}",
        *(f"wrong        {finding}" for finding in result.findings),
        *(f"note         {note}" for note in result.notes),
    ]
    if result.head is not None:
        lines.append(_head_line(result.head))
    for line in lines:
        console.print(clean(line), markup=False)


def _head_line(head: tuple[int, str]) -> str:
    """Return the head in the form that ``--head`` takes."""
    return f"head         {head[0]}:{head[1]}"


@command.command()
@click.option(
    "--out",
    "path",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; with the ending .json as a whole, else one line a record.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@_which
def export(
    url: str | None, dataset: str | None, path: Path, force: bool, as_json: bool
) -> None:
    """Write everything to a file that can be checked without the database."""
    from tacit.cli._checking import write_export

    ledger = _opened(url, dataset)
    written = ledger.export()
    write_export(written, path, ledger.url, force=force)
    data = {"path": str(path), "records": len(written.rows), "head": list(written.head)}

    def human(console: Console) -> None:
        console.print(f"{len(written.rows)} record(s) in {path}", markup=False)
        console.print(_head_line(written.head))

    out(as_json, data, human)


@command.command()
@click.argument("analyst")
@click.option(
    "--epsilon", type=float, help="All that ANALYST may spend; or give --nothing."
)
@click.option("--delta", type=float, help="That of the account unless given.")
@click.option("--nothing", is_flag=True, help="Allow this analyst nothing.")
@_which
def allow(
    url: str | None,
    dataset: str | None,
    analyst: str,
    epsilon: float | None,
    delta: float | None,
    nothing: bool,
    as_json: bool,
) -> None:
    """Limit what ANALYST may charge, as the owner; '*' is each of those not named."""
    from tacit.privacy import Budget

    if nothing == (epsilon is not None):
        raise Rejected("--epsilon must be given, or --nothing, and not both.")
    ledger = _opened(url, dataset)
    budget, limit = None, "nothing"
    if epsilon is not None:
        own = ledger.budget.delta if delta is None else delta
        budget = Budget(epsilon, own, ledger.budget.neighbors)
        limit = f"{_words(budget)} in all"
    record = ledger.allow(analyst, budget)
    spent = ledger.spent_by_analyst()
    if analyst == "*":
        said = f"Each analyst who is not named may spend {limit}."
    else:
        by = spent.get(analyst, 0.0)
        said = f"{analyst} may spend {limit}, and has spent epsilon {by:.4g} so far."
    _print_record(ledger, record, said, as_json, spent_by_analyst=spent)


@command.command()
@click.argument("seq", type=int)
@click.option("--reason", required=True, help="Why the charge released nothing.")
@click.option(
    "--even-if-released",
    is_flag=True,
    help="Also a charge that a note refers to, such as that of a model.",
)
@_which
def void(
    url: str | None,
    dataset: str | None,
    seq: int,
    reason: str,
    even_if_released: bool,
    as_json: bool,
) -> None:
    """State as the owner that charge SEQ released nothing: it stops counting."""
    ledger = _opened(url, dataset)
    record = ledger.void(seq, reason, even_if_released=even_if_released)
    _print_freed(ledger, record, "no longer counts", as_json)


@command.command()
@click.argument("seq", type=int)
@click.option("--reason", default="", help="Why, for the history.")
@_which
def cancel(
    url: str | None, dataset: str | None, seq: int, reason: str, as_json: bool
) -> None:
    """Give back the room of reservation SEQ, whose run released nothing."""
    ledger = _opened(url, dataset)
    record = ledger.cancel(seq, reason)
    _print_freed(ledger, record, "is cancelled", as_json)


def _print_freed(
    ledger: StoredLedger, record: Record, done: str, as_json: bool
) -> None:
    (about,) = (r for r in ledger.history() if r.seq == record.refers_to)
    said = (
        f"The {about.kind} {about.seq} of epsilon {about.epsilon:.4g} for "
        f"{about.label!r} {done}; epsilon {ledger.spent():.4g} of "
        f"{ledger.budget.epsilon:g} is spent."
    )
    _print_record(ledger, record, said, as_json, about=about.to_dict())


def _print_record(
    ledger: StoredLedger, record: Record, said: str, as_json: bool, **amounts: Any
) -> None:
    account = {"budget": ledger.budget.to_dict(), "spent": ledger.spent(), **amounts}

    def human(console: Console) -> None:
        console.print(clean(said), markup=False)
        console.print(f"record       {record.seq}")

    out(as_json, {**record.to_dict(), **account}, human)


def _cell(value: object) -> Text:
    return Text(clean(str(value)))  # not markup, whatever a label looks like


def _words(budget: Budget) -> str:
    return _words_of(budget.to_dict())


def _words_of(budget: dict[str, Any]) -> str:
    return f"epsilon {budget['epsilon']:g}, delta {budget['delta']:g}"
