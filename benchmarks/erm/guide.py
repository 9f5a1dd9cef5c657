"""Put the measured table and plots into the docs.

``python -m benchmarks.erm.guide`` rewrites what stands between the two marks of
``docs/use/choosing_a_solver.md``, the picture beside it and the one on the front page,
which ``--front`` draws without the others.
"""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from statistics import mean

from benchmarks.erm import report, results
from benchmarks.erm.columns import COLUMNS
from benchmarks.erm.data import SETS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, PICTURE = DOCS / "use/choosing_a_solver.md", DOCS / "figures/accuracy.png"
OPEN, CLOSE = "<!-- measured -->\n", "<!-- /measured -->\n"

SHOWN = (
    "non_private",
    "default",
    "amp",
    "hf_amp",
    "noisy_gd",
    "noisy_sgd",
    "psgd",
    "scpsgd",
    "frank_wolfe_1",
    "diffprivlib",
)
# sets and epsilons of the table: those published, and the text at one
LEVELS = {"covertype": (0.1, 1.0), "mnist": (1.0,), "newsgroups20": (1.0,)}
FRONT_PICTURE = DOCS / "figures/front.png"
# what a reader of the front page compares: ours, published algorithms, another library
FRONT = {
    "default": "tacit, default",
    "hf_amp": "AMP as published",
    "noisy_sgd": "DP-SGD",
    "diffprivlib": "diffprivlib",
}
PANELS = ("adult", "covertype", "mnist", "synthetic_h")


def table(lines) -> str:
    """Return the accuracy of logistic regression, a row a set and epsilon."""
    accuracies, why = report.grouped(lines), report.reasons(lines)
    rows = []
    for name in SETS:
        for epsilon in LEVELS.get(name, (0.1, 1.0)):
            cells = []
            for column in SHOWN:
                level = epsilon if COLUMNS[column].private else inf
                key = name, "logistic", column, level
                missing = "refused" if key in why else "not run"
                cells.append(
                    report.cell(accuracies[key]) if key in accuracies else missing
                )
            rows.append([name.replace("_", " "), epsilon, *cells])
    head = ["set", "ε", *(COLUMNS[column].title for column in SHOWN)]
    return report.table(head, rows)


def plot(lines) -> None:
    """Draw accuracy against epsilon, a panel a set."""
    import matplotlib  # noqa: PLC0415 - only for plots

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    accuracies = report.grouped(lines)
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(13, 3.4))
    for axis, name in zip(axes, PANELS, strict=True):
        for position, column in enumerate(SHOWN):
            found = sorted(
                (key[3], 100 * mean(values))
                for key, values in accuracies.items()
                if key[:3] == (name, "logistic", column)
            )
            if not found:
                continue
            label = COLUMNS[column].title.replace("*", "")
            if not COLUMNS[column].private:
                axis.axhline(found[0][1], color="gray", ls=":", label=label)
                continue
            width = 2.6 if column == "default" else 1.1
            axis.plot(
                *zip(*found, strict=True), color=f"C{position}", lw=width, label=label
            )
        axis.set(xscale="log", xlabel="ε", title=name.replace("_", " "))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("test accuracy, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="lower center", ncols=len(SHOWN) // 2, fontsize=8
    )
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    figure.savefig(PICTURE, dpi=110)


def front(lines) -> None:
    """Draw the accuracy on one set large enough for a phone."""
    import matplotlib  # noqa: PLC0415 - only for plots

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    accuracies = report.grouped(lines)

    def points(column: str) -> list[tuple[float, float]]:
        return sorted(
            (epsilon, 100 * mean(values))
            for (name, loss, fitted, epsilon), values in accuracies.items()
            if (name, loss, fitted) == ("adult", "logistic", column)
        )

    figure, axis = pyplot.subplots(figsize=(6.4, 4))
    for column, label in FRONT.items():
        width = 3.2 if column == "default" else 1.6
        axis.plot(*zip(*points(column), strict=True), lw=width, label=label)
    axis.axhline(points("non_private")[0][1], color="gray", ls=":", label="not private")
    axis.set(xscale="log", ylim=(60, 86))
    axis.set_xlabel("epsilon (smaller is more private)", fontsize=13)
    axis.set_ylabel("test accuracy, %", fontsize=13)
    axis.tick_params(labelsize=12)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=12, loc="lower right")
    figure.tight_layout()
    figure.savefig(FRONT_PICTURE, dpi=150)


def main() -> int:
    lines = results.read()
    front(lines)
    if "--front" in sys.argv[1:]:
        return 0
    text = PAGE.read_text()
    before, rest = text.split(OPEN)
    _, after = rest.split(CLOSE)
    picture = f"![Accuracy against epsilon](../figures/{PICTURE.name})"
    block = f"\n{table(lines)}\n\n{picture}\n\n"
    PAGE.write_text(before + OPEN + block + CLOSE + after)
    plot(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
