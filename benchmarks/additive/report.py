"""Tables in Markdown of additive models, from the file of results alone.

``python -m benchmarks.additive.report`` prints the tables; ``--docs`` also rewrites the
page of figures, and ``--quick`` reads the file of a quick run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from benchmarks.additive import results
from benchmarks.additive.accuracy import EPSILONS, PUBLISHED, USUAL
from benchmarks.additive.data import SETS
from benchmarks.additive.methods import METHODS, Method
from benchmarks.additive.results import Line
from benchmarks.tables import DOCS, rewrite

PAGE = DOCS / "figures/additive.md"
OURS = ("additive", "additive_pairs")
# what an additive model is compared with, cell by cell
RIVALS = ("dp_ebm", "dp_ebm_rate", "linear")
# a score below this shows no more than that the mean of the targets is better
LEAST = -1.0
# Accuracy in percent, or R2, to reach by table and epsilon
BARS: dict[str, dict[float, float]] = {
    "adult": {0.1: 82.4, 1.0: 85.3},
    "acs_income": {0.1: 75.2, 1.0: 78.5},
    "electricity": {0.1: 75.0, 1.0: 79.5},
    "california": {0.1: 0.56, 1.0: 0.66},
}
# Of the way from linear to boosted models without privacy, at this epsilon
HALF, HALF_EPSILON = 0.5, 1.0
# Scores of S-GBDT as published, by table and epsilon
S_GBDT: dict[str, dict[float, float]] = {
    "abalone": {0.15: 0.39, 0.54: 0.47},
    "adult": {0.07: 81.3, 0.54: 82.9},
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """Scores of the splits in the unit of the tables, and CPU seconds."""

    scores: dict[int, float]
    cpu_s: float

    @property
    def mean(self) -> float:
        return mean(self.scores.values())

    @property
    def std(self) -> float:
        """Standard deviation over splits; 0 for one split."""
        values = list(self.scores.values())
        return stdev(values) if len(values) > 1 else 0.0


class Found:
    """The cells of all tables, and why others are empty."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._scores: dict[tuple, dict[int, float]] = {}
        self._cpu: dict[tuple, list[float]] = {}
        self.reasons: dict[tuple, str] = {}
        self.codes: set[str] = set()
        for line in lines:
            key = line.key[:-1]
            if line.score is None:
                self.reasons[key] = line.note
                continue
            unit = 1.0 if SETS[line.name].n_classes is None else 100.0
            self._scores.setdefault(key, {})[line.run] = unit * line.score
            self._cpu.setdefault(key, []).append(line.cpu_s)
            if line.is_ours:
                self.codes.add(line.code)

    def cell(
        self, name: str, method: str, epsilon: float | None, protocol: str = USUAL.name
    ) -> Cell | None:
        """Return the cell of a method; None where nothing was measured."""
        key = protocol, name, method, epsilon
        if key not in self._scores:
            return None
        return Cell(self._scores[key], mean(self._cpu[key]))

    def has(self, method: str) -> bool:
        """Return whether a method was measured anywhere."""
        return any(key[2] == method for key in self._scores)

    def names(self, protocol: str = USUAL.name) -> list[str]:
        """Return the tables that have a cell, in their order."""
        measured = {key[1] for key in self._scores if key[0] == protocol}
        return [name for name in SETS if name in measured]


def number(name: str, value: float | None) -> str:
    """Return a score in the digits of its table."""
    if value is None:
        return ""
    if SETS[name].n_classes is not None:
        return f"{value:.2f}"
    return f"below {LEAST:g}" if value < LEAST else f"{value:.3f}"


def markdown(rows: Sequence[Row]) -> str:
    """Return rows as a table; strings keep their digits."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join(
        "| " + " | ".join(_text(value) for value in line) + " |" for line in lines
    )


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def unit(name: str) -> str:
    return "R2" if SETS[name].n_classes is None else "accuracy, %"


def private_methods() -> list[Method]:
    return [method for method in METHODS.values() if method.private]


def plain_methods() -> list[Method]:
    return [method for method in METHODS.values() if not method.private]


def of_set(found: Found, name: str) -> list[str]:
    """Return the tables of one data set."""
    lines = [f"### {SETS[name].title}", ""]
    scores = list(_by_epsilon(found, name, lambda cell: number(name, cell.mean)))
    stds = list(_by_epsilon(found, name, lambda cell: _spread(name, cell)))
    plain = [
        {
            "without privacy": method.title,
            unit(name): number(name, cell.mean),
            "standard deviation": _spread(name, cell),
            "splits": len(cell.scores),
        }
        for method in plain_methods()
        if (cell := found.cell(name, method.name, None)) is not None
    ]
    for title, rows in ((unit(name), scores), ("standard deviation", stds)):
        if rows:
            renamed = [{title: row.pop("method"), **row} for row in rows]
            lines += [markdown(renamed), ""]
    return [*lines, markdown(plain), ""] if plain else lines


def _spread(name: str, cell: Cell) -> str:
    return number(name, cell.std) if len(cell.scores) > 1 else ""


def _by_epsilon(found: Found, name: str, shown: Any) -> Iterator[Row]:
    for method in private_methods():
        cells = {e: found.cell(name, method.name, e) for e in EPSILONS}
        known = [cell for cell in cells.values() if cell is not None]
        if not known:
            continue
        yield {
            "method": method.title,
            **{f"ε = {e:g}": shown(c) if c else "" for e, c in cells.items()},
            "splits": min(len(cell.scores) for cell in known),
        }


def cpu(found: Found, *, ratio: bool) -> list[Row]:
    """Return mean CPU seconds of a fit by table, or their ratio to DP-EBM."""
    rows = []
    for name in found.names():
        row: Row = {"table": SETS[name].title}
        seconds = {m: _seconds(found, name, m) for m in METHODS.values()}
        against = seconds[METHODS["dp_ebm"]]
        for method, took in seconds.items():
            if ratio and (not method.private or method.name == "dp_ebm"):
                continue
            if ratio:
                took = took / against if took is not None and against else None
            row[method.title] = "" if took is None else f"{took:.3g}"
        rows.append(row)
    return rows


def _seconds(found: Found, name: str, method: Method) -> float | None:
    levels = EPSILONS if method.private else (None,)
    cells = [found.cell(name, method.name, level) for level in levels]
    known = [cell.cpu_s for cell in cells if cell is not None]
    return mean(known) if known else None


def below(found: Found) -> list[Row]:
    """Return the cells where an additive model is below a rival by more than its std.

    Scores are compared on the splits that both have.
    """
    rows = []
    for name in found.names():
        for epsilon in EPSILONS:
            for own, rival in ((o, r) for o in OURS for r in RIVALS):
                ours = found.cell(name, own, epsilon)
                other = found.cell(name, rival, epsilon)
                shared = set() if not ours or not other else _shared(ours, other)
                if not shared:
                    continue
                mine = mean(ours.scores[run] for run in shared)
                theirs = mean(other.scores[run] for run in shared)
                if mine < theirs - ours.std:
                    rows.append(
                        {
                            "table": SETS[name].title,
                            "ε": epsilon,
                            "model": METHODS[own].title,
                            "score": number(name, mine),
                            "its standard deviation": number(name, ours.std),
                            "below": METHODS[rival].title,
                            "score of that": number(name, theirs),
                        }
                    )
    return rows


def _shared(first: Cell, second: Cell) -> set[int]:
    return set(first.scores) & set(second.scores)


def bars(found: Found) -> list[Row]:
    """Return the stated bars and whether they are reached."""
    rows = []
    for name, wanted in BARS.items():
        for epsilon, bar in wanted.items():
            rows.append(_against(found, name, epsilon, bar, OURS))
    return rows


def halves(found: Found) -> list[Row]:
    """Return the way from the linear to the boosted model without privacy, halved."""
    rows = []
    for name in found.names():
        start = found.cell(name, "plain_linear", None)
        for own, goal in (("additive", "ebm"), ("additive_pairs", "ebm_pairs")):
            end = found.cell(name, goal, None)
            if start is None or end is None:
                continue
            bar = start.mean + HALF * (end.mean - start.mean)
            rows.append(
                {
                    "table": SETS[name].title,
                    "scikit-learn linear": number(name, start.mean),
                    "goal": METHODS[goal].title,
                    "score of the goal": number(name, end.mean),
                    "half of the way": number(name, bar),
                    **_reached(found, name, HALF_EPSILON, bar, own),
                }
            )
    return rows


def _against(
    found: Found, name: str, epsilon: float, bar: float, methods: Sequence[str]
) -> Row:
    row: Row = {
        "table": SETS[name].title,
        "unit": unit(name),
        "ε": epsilon,
        "bar": number(name, bar),
    }
    for method in methods:
        cell = found.cell(name, method, epsilon)
        title = METHODS[method].title
        row[title] = number(name, cell.mean) if cell else ""
        row[f"{title}: reached"] = _yes(cell, bar)
    return row


def _reached(found: Found, name: str, epsilon: float, bar: float, own: str) -> Row:
    cell = found.cell(name, own, epsilon)
    return {
        "model": METHODS[own].title,
        "score": number(name, cell.mean) if cell else "",
        "reached": _yes(cell, bar),
    }


def _yes(cell: Cell | None, bar: float) -> str:
    if cell is None:
        return "not run"
    return "yes" if cell.mean >= bar else "no"


def published(found: Found) -> list[Row]:
    """Return our figures and DP-EBM's by the protocol of S-GBDT."""
    rows = []
    for name, figures in S_GBDT.items():
        for epsilon, figure in figures.items():
            row: Row = {
                "table": SETS[name].title,
                "unit": unit(name),
                "ε": epsilon,
                "S-GBDT, published": number(name, figure),
            }
            for method in PUBLISHED.methods:
                cell = found.cell(name, method, epsilon, PUBLISHED.name)
                row[METHODS[method].title] = number(name, cell.mean) if cell else ""
            rows.append(row)
    return rows


def markdown_page(lines: Iterable[Line]) -> list[str]:
    """Return everything that was measured, in Markdown."""
    found = Found(lines)
    page = ["## Bars", "", markdown(bars(found)), ""]
    half = halves(found)
    if half:
        page += [
            f"At epsilon {HALF_EPSILON:g}, half of the way from scikit-learn's linear "
            "model to an EBM, both without privacy:",
            "",
            markdown(half),
            "",
        ]
    page += ["## Cells below a rival", ""]
    page += _below(found)
    page += ["## Scores by data set", ""]
    for name in found.names():
        page += of_set(found, name)
    if found.names():
        page += ["## CPU seconds of a fit", "", markdown(cpu(found, ratio=False)), ""]
        page += ["Ratio to DP-EBM:", "", markdown(cpu(found, ratio=True)), ""]
    page += ["## Published boosting", "", markdown(published(found)), ""]
    page += [_origin(found), ""]
    return page


def _below(found: Found) -> list[str]:
    rows = below(found)
    if rows:
        return [markdown(rows), ""]
    if not any(found.has(method) for method in OURS):
        return ["Additive models were not run.", ""]
    return ["None.", ""]


def _origin(found: Found) -> str:
    """Return from how many states of the library the figures are."""
    if not found.codes:
        return "The library itself was not measured."
    if len(found.codes) == 1:
        return f"One state of the library was measured: {', '.join(found.codes)}."
    listed = ", ".join(sorted(found.codes))
    return f"**{len(found.codes)} states of the library were measured**: {listed}."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    lines = results.read(results.QUICK_FILE if given.quick else results.FILE)
    if not lines:
        raise SystemExit(
            "Nothing was measured: run python -m benchmarks.additive.accuracy first."
        )
    page = markdown_page(lines)
    print("\n".join(page))
    if given.docs and not given.quick:
        rewrite(PAGE, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
