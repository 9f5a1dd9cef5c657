"""Tables in Markdown and a plot of private regression, from the files of results alone.

``python -m benchmarks.regression.report`` prints the tables; ``--docs`` also rewrites
the page of figures in the guide and its picture.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from benchmarks.regression import accuracy, search, support
from benchmarks.regression.data import SETS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, PICTURE = (
    DOCS / "figures/regression.md",
    DOCS / "figures/regression.png",
)
START, END = "<!-- measured -->", "<!-- /measured -->"
DRAWN = ("auto", "ada_ssp", "noisy_gd", "preconditioned_gd", "diffprivlib_widened")
# below this, a number says no more than that the mean would have been better
LEAST = -10.0
SUPPORT = (
    "Smallest number of rows from which on exactly the columns that matter are found, "
    "in half and in nine tenths of the runs."
)
SEARCH = (
    "Accuracy on other rows of Adult: `search` is the model that a search over 20 "
    "candidates releases at a total epsilon of 1, `private` each candidate by itself "
    "at the budget of one run, `plain` each without noise."
)


def results() -> dict[tuple[str, str, float], list[float]]:
    """Return the scores of all runs of a set, a method and an epsilon."""
    found = defaultdict(list)
    for line in accuracy.read():
        key = line["set"], line["method"], float(line["epsilon"])
        found[key].append(float(line["r2"] or "nan"))
    return found


def _mean(scores: list[float]) -> float:
    """Return the mean of the fits there were, and less than any number for none."""
    kept = [score for score in scores if np.isfinite(score)]
    return float(np.mean(kept)) if kept else -np.inf


def cell(scores: list[float]) -> str:
    kept = [score for score in scores if np.isfinite(score)]
    if not scores:
        return ""
    if not kept:
        return "rejected"
    mean, spread = float(np.mean(kept)), float(np.std(kept))
    if mean < LEAST:
        return f"< {LEAST:g}"
    runs = "" if len(kept) == accuracy.RUNS else f" ({len(kept)})"
    return f"{mean:.2f} ± {spread:.2f}{runs}"


def table(found, name: str) -> list[str]:
    """Return the lines of one set, a method each, the best of private ones in bold."""
    lines = [
        "| method | " + " | ".join(f"ε = {e:g}" for e in accuracy.EPSILONS) + " |",
        "| --- " * (len(accuracy.EPSILONS) + 1) + "|",
    ]
    private = [m for m in accuracy.methods() if m != accuracy.WITHOUT]
    ours = [m for m in private if m != "diffprivlib"]
    best = {}
    for e in accuracy.EPSILONS:
        means = {m: _mean(found[name, m, e]) for m in ours}
        best[e] = max(means, key=means.__getitem__)
    for method in private:
        cells = []
        for e in accuracy.EPSILONS:
            text = cell(found[name, method, e])
            cells.append(f"**{text}**" if method == best[e] else text)
        lines.append(f"| {method.replace('_', ' ')} | " + " | ".join(cells) + " |")
    return lines


def page() -> list[str]:
    """Return everything that was measured, in Markdown."""
    found, lines = results(), []
    for name in SETS:
        without = cell(found[name, accuracy.WITHOUT, np.inf])
        lines += [
            f"## {name.replace('_', ' ')}",
            "",
            f"Without privacy {without}.",
            "",
        ]
        lines += [*table(found, name), ""]
    if support.FILE.is_file():
        lines += ["## Columns found", "", SUPPORT, "", support.markdown(), ""]
    if search.FILE.is_file():
        lines += ["## Settings chosen", "", SEARCH, "", *chosen(), ""]
    return lines


def chosen() -> list[str]:
    """Return the mean accuracy of each kind of search, from its file."""
    with search.FILE.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["quick"] in ("False", "0")]
    found = defaultdict(list)
    for row in rows:
        found[row["what"], float(row["epsilon"])].append(float(row["accuracy"]))
    lines = ["| what | ε | accuracy | fits |", "| --- | --- | --- | --- |"]
    for (what, epsilon), scores in sorted(found.items()):
        mean, spread = np.mean(scores), np.std(scores)
        score = f"{mean:.3f} ± {spread:.3f}"
        lines.append(f"| {what} | {epsilon:g} | {score} | {len(scores)} |")
    return lines


def draw(found) -> None:
    """Draw R2 against epsilon, one panel a set."""
    import matplotlib  # noqa: PLC0415 - only where a picture is asked for

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, panels = pyplot.subplots(1, len(SETS), figsize=(3.2 * len(SETS), 3.2))
    for panel, name in zip(panels, SETS, strict=True):
        for method in DRAWN:
            scores = [found[name, method, e] or [np.nan] for e in accuracy.EPSILONS]
            means = np.array([np.mean(part) for part in scores])
            spread = np.array([np.std(part) for part in scores])
            width = 2.5 if method == "auto" else 1.2
            label = method.replace("_", " ")
            panel.plot(accuracy.EPSILONS, means, label=label, linewidth=width)
            panel.fill_between(
                accuracy.EPSILONS, means - spread, means + spread, alpha=0.15
            )
        without = _mean(found[name, accuracy.WITHOUT, np.inf])
        panel.axhline(without, color="black", linestyle=":", linewidth=1)
        panel.set(xscale="log", ylim=(-0.3, 1.0), title=name.replace("_", " "))
        panel.set_xlabel("epsilon")
    panels[0].set_ylabel("R2 on other rows")
    panels[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    lines = page()
    print("\n".join(lines))
    if given.docs:
        draw(results())
        text = PAGE.read_text()
        before, _, rest = text.partition(START)
        _, _, after = rest.partition(END)
        PAGE.write_text("\n".join([before + START, "", *lines, END]) + after)


if __name__ == "__main__":
    main()
