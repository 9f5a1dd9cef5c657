"""Tables in Markdown and a plot of private completion, from the files of results.

``python -m benchmarks.recommend.report`` prints the tables; ``--docs`` also rewrites
the page of figures in the guide and its picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from shutil import copyfile
from statistics import mean

from benchmarks.recommend import accuracy, plateau
from benchmarks.recommend.common import RESULTS
from benchmarks.tables import DOCS, Section, print_report, rewrite

PAGE, PICTURE = DOCS / "figures/recommend.md", DOCS / "figures/recommend.png"
PLATEAU = DOCS / "figures/recommend_plateau.png"
SHOWN = (f"![Error on held-out ratings by epsilon]({PICTURE.name})", "")

SECTIONS = (
    Section(
        "accuracy",
        "Error on held-out ratings",
        "Root mean squared error on a random hundredth of the ratings, which no fit "
        "and no tuning saw: mean and standard error over runs, each with fresh test "
        "ratings and fresh noise; a solver whose fits take long has fewer runs. Delta "
        "is 1e-6, and epsilon is for a whole user. Private solvers have their "
        "defaults. **The 400 films of `movielens_1m_top400` were chosen by their "
        "numbers of ratings, which is not private**: a public catalogue is assumed "
        "for all sets. `user means` need no ratings of other users and cost no "
        "privacy; `user and item means` has item means without privacy; `als without "
        "privacy` has biases, and rank and ridge chosen on ratings that no run holds "
        "out. The last columns give the epsilons at which a private solver is better "
        "than means, by two standard errors on the same test ratings; `nowhere` under "
        "user means shows that it is **not worth its privacy on this set**. "
        "`rank_one` is synthetic: a sign of the user times a sign of the item, 80 "
        "ratings per user.",
    ),
    Section(
        "reference",
        "Reference values",
        "Noise of the published private Frank-Wolfe algorithm and of the library, "
        "and of its other releases, at delta 1e-6 and rows of norm one.",
    ),
    Section(
        "plateau",
        "The published step and the corrected one",
        "Frank-Wolfe without noise on ratings of rank one, with steps of 1/T as they "
        "were published and with 2/(t + 2).\n\n"
        f"![What is left by the number of steps]({PLATEAU.name})",
    ),
    Section(
        "speed",
        "Time and memory",
        "On one thread, in the same run. A step of Frank-Wolfe is compared with "
        "`svds` of SciPy for the first singular triplet of the same matrix; a round "
        "of private alternating least squares with one of the package `implicit` with "
        "as many factors, which has no privacy; and whole fits ran in processes of "
        "their own, with their peak memory in addition to the ratings that they were "
        "given.",
    ),
)


def page(*, whole: bool) -> list[str]:
    """Return everything that was measured, in Markdown."""
    lines = []
    for section in SECTIONS:
        rows = RESULTS.measured(section.name, whole=whole)
        if section.name == "accuracy":
            rows = list(accuracy.table(rows))
        for row in rows:
            row.pop("quick", None)
        lines += section.lines(rows)
    return lines


def draw(rows: list[dict[str, str]]) -> None:
    """Draw errors by epsilon beside those without privacy, a panel for each set."""
    # loaded where a picture is asked for, and without pyplot, which is slow to load
    from matplotlib.figure import Figure  # noqa: PLC0415

    errors = accuracy.grouped(rows)
    sets = list(dict.fromkeys(key[0] for key in errors))
    columns = min(3, len(sets))
    height = -(-len(sets) // columns)
    size = 3.4 * columns, 2.8 * height + 0.9
    figure = Figure(figsize=size)
    panels = figure.subplots(height, columns, squeeze=False)
    words = {}
    for axes in panels.flat[len(sets) :]:
        axes.set_visible(False)
    for axes, name in zip(panels.flat, sets, strict=False):
        own = {key[1:]: e for key, e in errors.items() if key[0] == name}
        curves: dict[str, dict[float, float]] = {}
        for (method, neighbors, epsilon), found in own.items():
            if neighbors == accuracy.REPLACE:
                curve = curves.setdefault(method, {})
                curve[float(epsilon)] = mean(found.values())
        for position, (method, curve) in enumerate(curves.items()):
            points = sorted(curve.items())
            (drawn,) = axes.plot(
                *zip(*points, strict=True), "o-", ms=3, c=f"C{position}"
            )
            words.setdefault(method, drawn)
        for method, style in (
            (accuracy.TRIVIAL[0], ":"),
            (accuracy.TRIVIAL[1], "-."),
            (accuracy.PLAIN, "--"),
        ):
            if (method, "", "") in own:
                level = mean(own[method, "", ""].values())
                drawn = axes.axhline(level, ls=style, lw=1, c="0.4")
                words.setdefault(method, drawn)
        axes.set(xscale="log", title=name)
        axes.set_xlabel("epsilon")
    for axes in panels[:, 0]:
        axes.set_ylabel("error")
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    figure.legend(words.values(), words, loc="lower center", ncols=4, fontsize=7)
    figure.savefig(PICTURE, dpi=110)


def write(lines: Sequence[str]) -> None:
    """Rewrite the page in the documentation."""
    draw(RESULTS.measured("accuracy", whole=True))
    copyfile(plateau.PICTURE, PLATEAU)
    rewrite(PAGE, [*SHOWN, *lines])


def main(argv: Sequence[str] | None = None) -> None:
    print_report(argv, __doc__, page, write)


if __name__ == "__main__":
    main()
