"""Tables in Markdown and plots, from the file of results alone.

``python -m benchmarks.cd.report`` prints the tables and writes them, with one plot a
problem, under ``benchmarks/outputs/cd``. With ``--docs`` it also rewrites the page of
figures in the guide and its picture.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import mean

import numpy as np
from benchmarks.cd.algorithms import ALGORITHMS, OWN_PASSES, replace_one, spent
from benchmarks.cd.optimum import OUTPUTS, optimum
from benchmarks.cd.problems import ALL_PASSES, CASES, TABLE_D1, TABLE_D4, case
from benchmarks.cd.run import Line, jobs, read
from benchmarks.erm.report import table

from tacit.privacy import Composed, LaplaceNoise, PureDP, Repeated
from tacit.solvers._published import greedy_epsilon

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, PICTURE = (
    DOCS / "figures/coordinate_descent.md",
    DOCS / "figures/coordinate_descent.png",
)
PANELS = ("california_raw", "electricity_raw", "square", "log2")
GRADIENT = tuple(name for name in ALGORITHMS if name.startswith(("dp_gd", "dp_sgd_")))
RULES = ("dp_gcd_published_r", "dp_gcd_published_s", "dp_gcd_published_q")
# of the families, which the tables compare, the algorithms
FAMILIES = {
    "DP-CD": ("dp_cd",),
    "DP-CD, private smoothness": ("dp_cd_private",),
    "DP-SGD, best batch": GRADIENT,
    "DP-SGD, single rows": ("dp_sgd_1",),
    "DP-GCD published": RULES,
    "DP-GCD ours": ("dp_gcd_gumbel", "dp_gcd"),
    "choices without noise (not private)": ("dp_gcd_free",),
}
SPARSE = ("square", "california", "dorothea", "madelon_l1")


def best_of(lines: list[Line], problem: str, family: str) -> Line | None:
    """Return the line that tuning would choose: by its runs, not by the fresh ones."""
    names = FAMILIES[family]
    found = [x for x in lines if x.problem == problem and x.algorithm in names]
    return min(found, key=lambda line: line.tuned, default=None)


def number(value: float) -> str:
    return f"{value:.3g}"


def cell(line: Line) -> str:
    low, high = min(line.errors), max(line.errors)
    return f"{number(line.mean)} ({number(low)} to {number(high)})"


def problems(lines: list[Line]) -> str:
    rows = []
    for name in shown(lines):
        found, best = case(name), optimum(case(name))
        at_zero = found.objective(np.zeros(found.n_features)) / best.value - 1
        penalty = f"L1 {found.l1:g}" if found.l1 else f"L2 {found.l2:.3g}"
        loss = "logistic" if found.logistic else "squares"
        facts = [name, found.n_rows, found.n_features, found.epsilon, loss, penalty]
        rows.append([*facts, found.why, number(at_zero), int(best.support.sum())])
    head = ["problem", "n", "p", "ε", "loss", "penalty", "penalty from"]
    return table([*head, "error at zero", "weights at optimum"], rows)


def shown(lines: list[Line]) -> list[str]:
    present = {line.problem for line in lines}
    return [name for name in CASES if name in present]


def comparison(lines: list[Line]) -> str:
    """Return the best of each family on each problem, and the ratios of the bars."""
    rows = []
    for name in shown(lines):
        found = {family: best_of(lines, name, family) for family in FAMILIES}
        default = [x for x in lines if (x.problem, x.algorithm) == (name, "default")]
        cells = [number(line.mean) if line else "-" for line in found.values()]
        cells.append(number(default[0].mean) if default else "-")
        rows.append([name, *cells, *ratios(found)])
    head = ["problem", *FAMILIES, "our estimator, untuned"]
    head += ["DP-CD / DP-SGD", "DP-GCD ours / published"]
    return table(head, rows)


def ratios(found: dict) -> list[str]:
    pairs = (
        ("DP-CD", "DP-SGD, best batch"),
        ("DP-GCD ours", "DP-GCD published"),
    )
    texts = []
    for over, under in pairs:
        both = found[over] and found[under]
        texts.append(number(found[over].mean / found[under].mean) if both else "-")
    return texts


def by_passes(lines: list[Line], name: str) -> str:
    """Return one problem: a row an algorithm, a column a number of passes."""
    mine = [line for line in lines if line.problem == name]
    parts = []
    for greedy in (False, True):
        rows = []
        some = [
            line
            for line in mine
            if ALGORITHMS[line.algorithm].greedy == greedy and line.passes != OWN_PASSES
        ]
        passes = sorted({line.passes for line in some})
        for algorithm in ALGORITHMS.values():
            found = {x.passes: x for x in some if x.algorithm == algorithm.name}
            if found:
                cells = [cell(found[n]) if n in found else "" for n in passes]
                rows.append([algorithm.title, *cells])
        if not greedy and name in TABLE_D1 and tuple(passes) == ALL_PASSES:
            for title, printed in TABLE_D1[name].items():
                rows.append([f"{title}, as printed", *printed])
        if rows:
            unit = "steps" if greedy else "passes"
            parts.append(table(["", *(f"{n:g} {unit}" for n in passes)], rows))
    return "\n\n".join(parts)


def supports(lines: list[Line]) -> str:
    """Return weights of the optimum found and others found, beside Table D.4."""
    rows = []
    for name in SPARSE:
        for family in (
            "DP-CD",
            "DP-SGD, best batch",
            "DP-GCD published",
            "DP-GCD ours",
        ):
            line = best_of(lines, name, family)
            if line is None:
                continue
            printed = TABLE_D4[name].get(family.split(",")[0].split(" ")[0])
            text = ""
            if printed and family != "DP-GCD ours":
                text = f"{printed[0]} / {printed[1]} ({printed[2]:g})"
            ours = f"{mean(line.hits):.1f} / {mean(line.misses):.1f}"
            title = f"{ALGORITHMS[line.algorithm].title}, {line.passes:g}"
            rows.append([name, title, f"{ours} ({number(line.mean)})", text])
    return table(
        ["problem", "algorithm, passes", "found / wrong (error)", "printed"], rows
    )


def settings(lines: list[Line]) -> str:
    """Return what tuning chose."""
    rows = []
    for name in shown(lines):
        for family in FAMILIES:
            line = best_of(lines, name, family)
            if line is not None:
                title = ALGORITHMS[line.algorithm].title
                chosen = [f"{line.passes:g}", number(line.clip), number(line.step)]
                rows.append([name, title, *chosen, f"{line.epsilon:.4f}"])
    return table(["problem", "algorithm", "passes", "clip", "step", "ε spent"], rows)


def claims(lines: list[Line]) -> str:
    """Return what the published calibration of DP-GCD spends where it claims epsilon.

    A choice by Laplace noise costs twice an update; the best bound that follows from
    that, where all coordinates have the same scaled sensitivity and noise is outside
    of the scores.
    """
    rows = []
    for name in shown(lines):
        line = best_of(lines, name, "DP-GCD published")
        if line is None:
            continue
        found, n_steps = case(name), int(line.passes)
        part = greedy_epsilon(replace_one(found), 2 * n_steps)
        choices = Repeated(PureDP(2 * part), n_steps)
        moves = Repeated(LaplaceNoise(1 / part), n_steps)
        true = spent(found, Composed((choices, moves)))
        claim = f"{found.epsilon:g}"
        rows.append([name, n_steps, claim, number(true), f"{line.epsilon:.4f}"])
    head = ["problem", "steps", "ε claimed by the published noise", "ε proved for it"]
    return table([*head, "ε of the noise in our runs"], rows)


def markdown(lines: list[Line]) -> str:
    parts = [
        "# Private coordinate descent",
        "Relative error `(F(w) - F*) / F*` of the last weights, mean (least to most) "
        "of 10 fresh runs; δ = 1/n². Clip and step are tuned on the objective by other "
        "runs, which nobody pays for, as in the papers; so are the passes where only "
        "one number is shown. DP-CD gets the true smoothness constants for free, as in "
        "the paper, unless it says private; DP-SGD gets its own for free as well. "
        "DP-CD and DP-GCD hide the replacement of a row, DP-SGD only that one is added "
        "or removed, which asks for half the noise.",
        "## Problems",
        problems(lines),
        "## The best of each",
        comparison(lines),
        "## Weights found",
        supports(lines),
        "## Settings chosen",
        settings(lines),
        "## The published noise of DP-GCD",
        claims(lines),
    ]
    for name in shown(lines):
        parts += [f"## {name}", by_passes(lines, name)]
    return "\n\n".join(parts) + "\n"


def panel(axis, lines: list[Line], name: str) -> None:
    """Draw error against passes, one pass being one greedy step."""
    mine = [line for line in lines if line.problem == name]
    if not any(line.passes != OWN_PASSES for line in mine):
        return
    for position, algorithm in enumerate(ALGORITHMS.values()):
        found = sorted(
            (line.passes, line.mean, min(line.errors), max(line.errors))
            for line in mine
            if line.algorithm == algorithm.name
        )
        if not found:
            continue
        passes, means, lows, highs = zip(*found, strict=True)
        color = f"C{position % 10}"
        style = "--" if algorithm.name in GRADIENT else "-"
        if not algorithm.tuned:
            axis.axhline(means[0], color="black", ls=":", label=algorithm.title)
            continue
        axis.plot(passes, means, style, color=color, marker="o", ms=3, lw=1.3,
                  label=algorithm.title)  # fmt: skip
        axis.fill_between(passes, lows, highs, color=color, alpha=0.12)
    axis.set(xscale="log", yscale="log", xlabel="passes", title=name.replace("_", " "))
    if min(line.passes for line in mine if line.passes != OWN_PASSES) >= 1:
        axis.set_xticks(ALL_PASSES, [str(n) for n in ALL_PASSES])
        axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3)


def plots(lines: list[Line]) -> list[Path]:
    """Write one plot a problem; return the files."""
    pyplot = _pyplot()
    files = []
    for name in shown(lines):
        figure, axis = pyplot.subplots(figsize=(7.5, 4.2))
        panel(axis, lines, name)
        axis.set_ylabel("relative error")
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
        figure.tight_layout()
        files.append(OUTPUTS / f"{name}.png")
        figure.savefig(files[-1], dpi=130)
        pyplot.close(figure)
    return files


def _pyplot():
    import matplotlib  # noqa: PLC0415 - only for plots

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    return pyplot


def missing(lines: list[Line]) -> str:
    """Say how much of the whole grid these results lack, if anything."""
    done = {line.key for line in lines}
    whole = argparse.Namespace(quick=False, problems=None, algorithms=None)
    wanted = [(name, a.name, float(n)) for name, a, n, _ in jobs(whole)]
    left = sum(key not in done for key in wanted)
    if not left:
        return "All that `make bench SUITE=cd` runs has been measured."
    return (
        f"**Not finished**: {left} of {len(wanted)} lines of the results are missing."
    )


def page(lines: list[Line]) -> str:
    """Return the page of the guide."""
    parts = [
        "# Coordinate descent in figures",
        "Private coordinate descent on the problems that it was published with "
        "(Mangold, Bellet, Salmon and Tommasi, ICML 2022 and AISTATS 2023), compared "
        "with proximal DP-SGD with the best batch size: 1, 16, 64, 256, 1,024, 4,096 "
        "or all rows on the problems of the first paper, 64, 256 or all rows on the "
        "others. `make bench SUITE=cd` measures these tables.",
        missing(lines),
        "The figure is the relative error `(F(w) - F*) / F*` of the objective, mean of "
        "ten runs, at ε = 1 (10 for `sparse_lasso`) and δ = 1/n². Clip, step and "
        "passes are tuned on the objective without a charge, as in the papers: the "
        "table compares algorithms, and such errors cannot be expected in practice. "
        "The last column of errors is our estimator with its defaults: nothing is "
        "tuned, and everything that it uses of the data is charged. Columns of `_raw` "
        "sets have unequal scales; the other real sets are standardized without a "
        "charge. `DP-CD` is given the smoothness constants, as in the paper. DP-SGD "
        "is private for adding or removing a row, which needs half the noise; the "
        "others are private for replacing a row. Choices without noise leave all of "
        "the budget to updates: the column has the error with the same updates after "
        "up to 20 such choices. Not all penalties were printed: the second table has "
        "the source of each.",
        "## Errors",
        comparison(lines),
        "![Error against passes](coordinate_descent.png)",
        "## Problems",
        problems(lines),
        "## Weights found",
        "Weights of the optimum that were found, other weights that were found, and "
        "the error; the printed ones are from Table D.4 of P. Mangold's thesis (Lille "
        "2023).",
        supports(lines),
    ]
    return "\n\n".join(parts) + "\n"


def docs(lines: list[Line]) -> None:
    PAGE.write_text(page(lines))
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(14, 3.6))
    for axis, name in zip(axes, PANELS, strict=True):
        panel(axis, lines, name)
    axes[0].set_ylabel("relative error")
    labels = {}
    for axis in axes:
        handles, titles = axis.get_legend_handles_labels()
        labels |= dict(zip(titles, handles, strict=True))
    figure.legend(
        labels.values(), labels.keys(), loc="lower center", ncols=5, fontsize=7
    )
    figure.tight_layout(rect=(0, 0.2, 1, 1))
    figure.savefig(PICTURE, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="results of --quick")
    parser.add_argument("--docs", action="store_true", help="rewrite the guide's page")
    given = parser.parse_args()
    lines = read(given.quick)
    text = markdown(lines)
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / ("quick.md" if given.quick else "results.md")).write_text(text)
    print(text)
    for file in plots(lines):
        print(f"plot: {file}")
    if given.docs:
        docs(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
