"""Tables in Markdown and a plot of learning on streams, from the files of results.

``python -m benchmarks.streams.report`` prints the tables; ``--docs`` also rewrites the
page of figures in the guide and its pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from benchmarks.streams.common import RESULTS
from benchmarks.tables import DOCS, Section, print_report, rewrite

from tacit.mechanisms import as_generator
from tacit.mechanisms.continual import prefix_sums

PAGE, PICTURE = DOCS / "figures/streams.md", DOCS / "figures/streams_error.png"

SECTIONS = (
    Section(
        "prefix",
        "Continual sums",
        "Errors of sums for unit sensitivity and a multiplier of one over the whole "
        "stream, as measured on 100 numbers at once and as planned; time and memory "
        "of streams of 100 numbers per step. `largest` is over all steps, so that the "
        "measured value is a little above the planned one. The comparison is with "
        "expected values, to four digits. BLT mechanisms are designed for the "
        "smallest largest error; those with an expected root mean square are designed "
        "for the root mean square, and have largest errors that are 2 percent higher.",
    ),
    Section(
        "regret",
        "Regret on synthetic streams",
        "Regret after the last step, and the exponent with which it grows with the "
        "number of steps, with the ends of a 95 percent interval, beside the exponent "
        "of the bound. The budget is epsilon 8 at delta 1e-5, and steps have one row.",
    ),
    Section(
        "hedge",
        "Following the best of several experts",
        "Regret at the largest number of steps beside its bound, and the exponent "
        "with which it grows with that number, each with half of its 95 percent "
        "interval. The best expert is the same all the time, or changes in the "
        "middle. There is no exponent where a run beat every expert. One row per "
        "step, epsilon 1 at delta 1e-6.",
        with_column="exponent",
    ),
    Section(
        "real",
        "Public streams",
        "Each row is predicted before it is learned. `past rows` predicts the most "
        "frequent label or the mean so far, `river` uses its linear models behind its "
        "own scaler, both without privacy. Columns are epsilons; `none` is without "
        "noise.",
        spread=("epsilon", "score"),
    ),
    Section(
        "incremental",
        "Incremental regression",
        "The excess is how much larger the sum of squared residuals over all rows so "
        "far is than the minimum over the set, after three quarters of the steps, at "
        "the largest size that was tried; the exponent is that with which it grows "
        "with the size, with the ends of a 95 percent interval. Rows have norm one "
        "and targets are at most one. `published noise` has the constants of the "
        "paper, `refits` is `IncrementalERM`, which keeps all rows. In the table of "
        "noise only, the noise has standard deviation one; the streams have epsilon 4 "
        "at delta 1e-6.",
        with_column="exponent",
    ),
    Section(
        "kills",
        "Killed processes",
        "`tacit stream --follow`, killed with signal 9 at random moments and started "
        "again. Its releases are compared with those of an undisturbed run, bit for "
        "bit.",
    ),
)

KINDS = {
    "tree": "binary tree",
    "honaker": "tree, averaged by Honaker",
    "square_root": "square root",
    "blt": "BLT, four buffers (default)",
}


def page(*, whole: bool) -> list[str]:
    """Return everything that was measured, in Markdown."""
    return [
        line
        for section in SECTIONS
        for line in section.lines(RESULTS.measured(section.name, whole=whole))
    ]


def draw(horizon: int = 128, numbers: int = 500) -> None:
    """Draw the error of continual sums: planned and measured, and beside theory."""
    import matplotlib  # noqa: PLC0415 - only where a picture is asked for

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, (over_time, growth) = pyplot.subplots(1, 2, figsize=(10, 3.8))
    times, horizons = np.arange(1, horizon + 1), 2 ** np.arange(4, 21)
    rng = as_generator(0)
    # each number of an element has noise of its own, so that one stream is many
    stream = rng.uniform(-0.5, 0.5, (horizon, numbers)) / numbers**0.5
    for kind, words in KINDS.items():
        mechanism = prefix_sums(kind, horizon, 1.0, 1.0, largest=1.0)
        _, sums = mechanism.steps(mechanism.init((numbers,)), stream, rng)
        found = np.sqrt(np.mean((sums - stream.cumsum(axis=0)) ** 2, axis=1))
        style = "--" if kind == "blt" else "-"
        (line,) = over_time.plot(
            times, mechanism.std(numbers), style, lw=1, label=words
        )
        color = line.get_color()
        over_time.plot(times[1::4], found[1::4], ".", ms=4, c=color)
        largest = [largest_deviation(kind, int(n)) for n in horizons]
        growth.semilogx(horizons, largest, f"o{style}", ms=3, c=color, label=words)
    over_time.plot(times, np.sqrt(times), ":", c="0.5", label="noise on each element")
    over_time.set(ylim=(0, 12), xlabel="step", ylabel="standard deviation of the sum")
    over_time.set_title(f"horizon {horizon}: planned (lines), measured (dots)")
    levels = np.log2(horizons)
    tree = np.sqrt(levels * (levels + 1))
    root = (np.log(horizons) + np.euler_gamma + np.log(16)) / np.pi
    growth.plot(horizons, tree, "k:", lw=1, label="theory of the tree")
    growth.plot(horizons, root, "k-.", lw=1, label="theory of the square root")
    growth.set(xlabel="horizon", ylabel="largest standard deviation", ylim=(0, 22))
    growth.legend(fontsize=7)
    over_time.legend(fontsize=7, loc="upper left", ncols=2)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def largest_deviation(kind: str, horizon: int) -> float:
    """Return the largest deviation over a stream of unit sensitivity and multiplier."""
    mechanism = prefix_sums(kind, horizon, 1.0, 1.0, noise="float")
    # the sum of a tree has most nodes one step before a power of two
    at = horizon - 1 if kind in ("tree", "honaker") else horizon
    return float(mechanism.std_at(at, 1))


def write(lines: Sequence[str]) -> None:
    """Rewrite the page in the documentation."""
    draw()
    rewrite(PAGE, lines)


def main(argv: Sequence[str] | None = None) -> None:
    print_report(argv, __doc__, page, write)


if __name__ == "__main__":
    main()
