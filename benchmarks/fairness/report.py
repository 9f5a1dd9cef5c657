"""Tables in Markdown and plots of what privacy does to fairness, from the results.

``python -m benchmarks.fairness.report`` prints the tables; ``--docs`` also rewrites the
page of figures in the guide and its pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fairness.bounds import SHOWN
from benchmarks.fairness.common import RESULTS
from benchmarks.fairness.models import RECIPES
from benchmarks.tables import DOCS, Section, print_report, rewrite

PAGE = DOCS / "figures/fairness.md"
# A bound above this tells little about people
USEFUL = 0.1
COLORS = {"printed": "0.6", "corrected": "C0", "library": "C1"}

SECTIONS = (
    Section(
        "table",
        "Bounds at epsilon one",
        "Mean over groups of the largest difference that is possible between a figure "
        "of the private model and of the one without noise, with probability 0.99, "
        "and below it the largest such mean among 100 private models. `For everyone` "
        "bounds the difference between the figures of the private model in the "
        "population and those of the other model on the held-out rows, including the "
        "sampling error. Columns are in the order of the publication, whose code uses "
        "no labels for equalized odds.",
    ),
    Section(
        "ladder",
        "One correction after the other",
        "The bound on accuracy on `celeba_attributes`, first as published. "
        "Predictions that are changed in one direction compensate for those changed "
        "in the other, so accuracy changes less than predictions do.",
    ),
    Section(
        "ridge",
        "Costs and benefits of a ridge",
        "Output perturbation of the library at epsilon one. Where the ridge is so "
        "large that one label is predicted for everyone, nothing can change: a "
        "certificate says how near two models are, and not that either is any good. "
        "`Models outside` counts, out of 100, the models outside their certified "
        "intervals; at most one is expected.",
    ),
    Section(
        "sweeps",
        "Where bounds begin to be useful",
        "The smallest number of rows at epsilon one, and the smallest epsilon with "
        f"all rows, from which on a bound is at most {USEFUL}; `nowhere` if it never "
        "is. Of all private models drawn for the pictures above, the last column "
        "counts those outside their certified intervals, or beyond the printed bound.",
    ),
)


def thresholds(rows: Sequence[dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield from where on each bound is useful, by set, recipe and notion."""
    for name in dict.fromkeys(row["dataset"] for row in rows):
        for recipe in RECIPES:
            for notion in SHOWN:
                own = [
                    row
                    for row in rows
                    if (row["dataset"], row["recipe"], row["notion"])
                    == (name, recipe, notion)
                ]
                yield {
                    "part": name,
                    "recipe": recipe,
                    "notion": notion.replace("_", " "),
                    "rows at epsilon 1": useful_from(own, "n"),
                    "epsilon with all rows": useful_from(own, "epsilon"),
                    "models outside": in_all(own),
                }


def useful_from(rows: Sequence[dict[str, str]], sweep: str) -> Any:
    """Return the least value of a sweep from which on the bound stays useful."""
    points = sorted(
        (float(row[sweep]), float(row["bound"]))
        for row in rows
        if row["sweep"] == sweep
    )
    found: Any = "nowhere"
    for value, bound in reversed(points):
        if bound > USEFUL:
            break
        found = value
    return found


def in_all(rows: Sequence[dict[str, str]]) -> str:
    """Return how many private models were outside, of how many."""
    outside, models = (
        sum(int(row[key]) for row in rows) for key in ("outside", "models")
    )
    return f"{outside} of {models:,}"


def page(*, whole: bool) -> list[str]:
    """Return everything that was measured, in Markdown."""
    lines = []
    for section in SECTIONS:
        rows = RESULTS.measured(section.name, whole=whole)
        if section.name == "sweeps":
            rows = list(thresholds(rows))
        for row in rows:
            row.pop("quick", None)
        lines += section.lines(rows)
    return lines


def picture(name: str) -> Path:
    """Return where the curves of a data set are."""
    return PAGE.with_name(f"fairness_{name}.png")


def draw(name: str, rows: Sequence[dict[str, str]]) -> None:
    """Draw bounds and the range of private models, a column of panels a notion."""
    # loaded where a picture is asked for, and without pyplot, which is slow to load
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(14, 5.4))
    panels = figure.subplots(2, len(SHOWN), sharey=True)
    for axes_row, sweep in zip(panels, ("n", "epsilon"), strict=True):
        for axes, notion in zip(axes_row, SHOWN, strict=True):
            for recipe in RECIPES:
                own = [
                    row
                    for row in rows
                    if (row["dataset"], row["sweep"], row["recipe"], row["notion"])
                    == (name, sweep, recipe, notion)
                ]
                draw_recipe(axes, own, sweep, recipe)
            axes.set(xscale="log", ylim=(0, 2.2))
            axes.set_yscale("symlog", linthresh=1e-4)
            axes.set_xlabel({"n": "rows", "epsilon": "epsilon"}[sweep])
        axes_row[0].set_ylabel("change")
    for axes, notion in zip(panels[0], SHOWN, strict=True):
        axes.set_title(notion.replace("_", " "), fontsize=10)
    figure.subplots_adjust(0.06, 0.17, 0.99, 0.94, wspace=0.08, hspace=0.35)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=8)
    figure.savefig(picture(name), dpi=90)


def draw_recipe(axes: Any, rows: list[dict[str, str]], sweep: str, recipe: str) -> None:
    """Draw the bound of a recipe, and for the corrected one what really happens."""
    rows = sorted(rows, key=lambda row: float(row[sweep]))
    x, color = [float(row[sweep]) for row in rows], COLORS[recipe]

    def column(key: str) -> list[float]:
        return [float(row[key]) for row in rows]

    axes.plot(x, column("bound"), c=color, label=f"bound, {recipe}")
    if recipe == "corrected":
        axes.plot(x, column("empirical"), "--", c=color, label="... known distance")
        axes.plot(x, column("refined"), ":", c=color, label="... known direction")
    if recipe != "printed":
        least, most = column("least"), column("most")
        axes.fill_between(x, least, most, color=color, alpha=0.3,
                          label=f"100 models, {recipe}")  # fmt: skip


def write(lines: Sequence[str]) -> None:
    """Rewrite the page in the documentation."""
    rows, shown = RESULTS.measured("sweeps", whole=True), []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        draw(name, rows)
        words = f"Bounds and changes on {name}, by rows and by epsilon"
        shown += [f"![{words}]({picture(name).name})", ""]
    rewrite(PAGE, [*shown, *lines])


def main(argv: Sequence[str] | None = None) -> None:
    print_report(argv, __doc__, page, write)


if __name__ == "__main__":
    main()
