"""Tables in Markdown and plots of votes of teachers, from the files of results.

``python -m benchmarks.ensemble.report`` prints the tables; ``--docs`` also rewrites the
page of figures in the guide and its pictures.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from benchmarks.ensemble import factor
from benchmarks.ensemble.common import measured
from benchmarks.tables import GUIDE, Section, markdown, rewrite, spread

PAGE, PICTURE = GUIDE / "ensemble_figures.md", GUIDE / "ensemble_figures.png"
SUMMARY = GUIDE / "any_learner.md"
SHOWN = (
    f"![Accuracy of students by epsilon]({PICTURE.name})",
    "",
    f"![Questions that a budget answers]({factor.PICTURE.name})",
    "",
)
Row = dict[str, Any]

SECTIONS = (
    Section(
        "reference",
        "Constants of stable votes",
        "Reference values of the published mechanism and of its correction beside "
        "those of the library; what an answer takes with 99 percent certainty, in "
        "distance and in teachers of whom 95 or 80 percent agree; and the distance "
        "with an even split of the budget, a new threshold after each refusal, beside "
        "that of the split and the grouping that a plan chooses. Delta is 1e-6.",
    ),
    Section(
        "factor",
        "Questions that a budget answers",
        "Teachers agree to 95 percent on all questions but a share alpha, on which "
        "they are divided evenly; epsilon 1 at delta 1e-6. Stable votes pay for "
        "refusals alone. `composed` pays for each answer of its own stable release by "
        "composition, `gnmax` has noisy votes that are right on 99 percent of the easy "
        "questions.",
    ),
    Section(
        "accuracy",
        "Students on public sets",
        "Accuracy on test rows, by epsilon; delta is one over the squared number of "
        "private rows. Three kinds of teachers vote on a public pool. The student is a "
        "ridge regression whose strength is chosen on released answers, fitted to "
        "labels or to noisy shares of votes. Rows per teacher are chosen by the "
        "accuracy on rows that no teacher saw, **which is not paid for**: with the "
        "number set beforehand, expect less. Lines are means of three draws of the "
        "noise. `private linear` is `LogisticRegression` with its defaults on all "
        "private rows, `none` is without privacy.",
    ),
    Section(
        "speed",
        "Time and memory of teachers",
        "Training and voting on one core and on two, in memory and from a folder.",
    ),
    Section(
        "kills",
        "Killed processes",
        "`tacit label`, killed with signal 9 at random moments and started again. Its "
        "labels and its student are held against those of a run that nothing "
        "disturbed, byte for byte.",
    ),
)

COLORS = {
    "gnmax": "C0",
    "confident_gnmax": "C1",
    "stable": "C2",
    "published": "C3",
    "linear": "0.4",
}


def page(*, whole: bool) -> list[str]:
    """Return everything that was measured, in Markdown."""
    lines = []
    for section in SECTIONS:
        rows = measured(section.name, whole=whole)
        if section.name == "accuracy":
            rows = list(students([typed(row) for row in rows]))
        lines += section.lines(rows)
    return lines


def typed(row: dict[str, str]) -> Row:
    """Return a row with numbers where they are, and None where there is nothing."""
    return {name: _typed(value) for name, value in row.items()}


def _typed(value: str) -> Any:
    try:
        return float(value)
    except ValueError:
        return value or None


def students(rows: list[Row]) -> Iterator[Row]:
    """Yield the tables of accuracy, one for each set, and those of parts of the runs.

    Of the lines with other numbers of teachers that were tried, the chosen are shown.
    """
    rows = [row for row in rows if row["way"] != "replayed" or row["chosen"] == "yes"]
    most = {row["dataset"]: 0.0 for row in rows}
    for row in rows:
        most[row["dataset"]] = max(most[row["dataset"]], row["n_rows"])
    full = [row for row in rows if row["n_rows"] == most[row["dataset"]]]
    for name, n_rows in most.items():
        own = [row for row in full if row["dataset"] == name]
        own = [row for row in own if row["way"] != "end to end"]
        yield from by_epsilon(own, f"{name}, {n_rows:,.0f} private rows")
    fewer = [row for row in rows if row["n_rows"] < most[row["dataset"]]]
    sizes = [(name, n) for name in most for n in sorted({r["n_rows"] for r in fewer})]
    for name, n_rows in sizes:
        own = [r for r in fewer if (r["dataset"], r["n_rows"]) == (name, n_rows)]
        yield from by_epsilon(own, f"{name}, {n_rows:,.0f} private rows")
    yield from answers(full)
    for row in full:
        if row["way"] == "end to end":
            names = ("dataset", "epsilon", "learner", "mechanism", "targets")
            found = {name: row[name] for name in names}
            scores = {name: row[name] for name in ("label_accuracy", "accuracy")}
            yield {
                "part": "from end to end, beside replayed votes",
                **found,
                "replayed": mean_score(full, found),
                **scores,
            }


def mean_score(rows: Sequence[Row], like: Row) -> float:
    """Return the mean accuracy of replayed lines."""
    return mean(
        row["accuracy"]
        for row in rows
        if row["way"] == "replayed" and like.items() <= row.items()
    )


def by_epsilon(rows: list[Row], part: str) -> Iterator[Row]:
    """Yield a line for each learner, mechanism and kind of targets."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        epsilon = "none" if row["epsilon"] is None else f"{row['epsilon']:g}"
        key = row["learner"], row["mechanism"], row["targets"] or "", epsilon
        groups.setdefault(key, []).append(row["accuracy"])
    names = ("learner", "mechanism", "targets", "epsilon")
    lines = [
        {**dict(zip(names, key, strict=True)), "accuracy": repr(mean(own))}
        for key, own in groups.items()
    ]
    if lines:
        for line in spread(lines, "epsilon", "accuracy"):
            yield {"part": part, **line}


def answers(rows: list[Row]) -> Iterator[Row]:
    """Yield what was answered, with the learner whose student did best."""
    cases: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["way"] == "replayed":
            key = row["dataset"], row["mechanism"], row["epsilon"]
            cases.setdefault(key, []).append(row)
    for own in cases.values():
        best = max(own, key=lambda row: row["validation"])
        yield {
            "part": "answers, with the learner whose student was chosen",
            **{n: best[n] for n in ("dataset", "mechanism", "epsilon", "learner")},
            **{n: best[n] for n in ("n_teachers", "rows_per_teacher", "n_queries")},
            "answered": best["n_answered"],
            "labels_right": best["label_accuracy"],
        }


def summary(rows: list[Row]) -> Iterator[Row]:
    """Yield for each set the best students, linear models and what is not private."""
    for name in dict.fromkeys(row["dataset"] for row in rows):
        own = largest(rows, name)
        plain = max(row["accuracy"] for row in own if row["mechanism"] == "none")
        for mechanism in ("gnmax", "linear"):
            scores = best_by_epsilon(own, mechanism)
            yield {
                "data set": f"{name}, {own[0]['n_rows']:,.0f} rows",
                "model": "private linear" if mechanism == "linear" else "student",
                **{f"epsilon {e:g}": f"{score:.3f}" for e, score in scores.items()},
                "not private": f"{plain:.3f}",
            }


def largest(rows: list[Row], name: str) -> list[Row]:
    """Return the rows of a set with all private rows."""
    own = [row for row in rows if row["dataset"] == name]
    most = max(row["n_rows"] for row in own)
    return [row for row in own if row["n_rows"] == most]


def draw(rows: list[Row]) -> None:
    """Draw the accuracy of the best students, beside a private linear model."""
    import matplotlib  # noqa: PLC0415 - only where a picture is asked for

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    size = 3.2 * len(sets), 3.4
    figure, (panels,) = pyplot.subplots(1, len(sets), figsize=size, squeeze=False)
    for axes, name in zip(panels, sets, strict=True):
        own = largest(rows, name)
        for mechanism, color in COLORS.items():
            curve = best_by_epsilon(own, mechanism)
            style = "s--" if mechanism == "linear" else "o-"
            words = "private linear model" if mechanism == "linear" else mechanism
            scores = list(curve.values())
            axes.plot(list(curve), scores, style, ms=4, lw=1, c=color, label=words)
        plain = max(row["accuracy"] for row in own if row["mechanism"] == "none")
        axes.axhline(plain, ls=":", c="k", lw=1, label="best without privacy")
        axes.set(xscale="log", xlabel="epsilon", title=name)
    panels[0].set_ylabel("accuracy on test rows")
    panels[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def best_by_epsilon(rows: list[Row], mechanism: str) -> dict[float, float]:
    """Return epsilons with the mean accuracy of the line with the best one.

    Students are compared by the accuracy on validation rows, and linear models, which
    have none, by that on test rows.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        chosen = row["chosen"] == "yes" or mechanism == "linear"
        if row["mechanism"] == mechanism and row["way"] != "end to end" and chosen:
            key = row["epsilon"], row["learner"], row["targets"]
            groups.setdefault(key, []).append(row)
    best: dict[float, tuple[float, float]] = {}
    for (epsilon, *_), own in groups.items():
        judged = mean(row["validation"] or row["accuracy"] for row in own)
        score = judged, mean(row["accuracy"] for row in own)
        best[epsilon] = max(best.get(epsilon, (0.0, 0.0)), score)
    return {epsilon: best[epsilon][1] for epsilon in sorted(best)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args(argv)
    lines = page(whole=given.docs)
    print("\n".join(lines))
    if given.docs:
        rows = [typed(row) for row in measured("accuracy", whole=True)]
        draw(rows)
        factor.draw([typed(row) for row in measured("factor", whole=True)])
        rewrite(PAGE, [*SHOWN, *lines])
        rewrite(SUMMARY, [markdown(summary(rows)), ""])


if __name__ == "__main__":
    main()
