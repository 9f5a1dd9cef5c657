"""Tables in Markdown and plots of votes of teachers, from the files of results.

``python -m benchmarks.ensemble.report`` prints the tables; ``--docs`` also rewrites the
page of figures in the guide and its pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from benchmarks.ensemble import factor
from benchmarks.ensemble.common import RESULTS
from benchmarks.ensemble.replays import GROUPS
from benchmarks.tables import DOCS, Section, markdown, print_report, rewrite, spread

PAGE, PICTURE = DOCS / "figures/ensemble.md", DOCS / "figures/ensemble.png"
SUMMARY = DOCS / "use/any_learner.md"
SHOWN = (
    f"![Accuracy of students by epsilon]({PICTURE.name})",
    "",
    f"![Queries that a budget answers]({factor.PICTURE.name})",
    "",
)
Row = dict[str, Any]

SECTIONS = (
    Section(
        "reference",
        "Constants of stable votes",
        "The first table compares constants of the published mechanism, and of its "
        "correction, with those of the library. The second has the distance at which "
        "a query is answered with probability 0.99, and how many teachers have this "
        "distance if 95 or 80 percent of them agree. The third compares an even split "
        "of the budget, with a new threshold after each refusal, with the split and "
        "grouping that a plan chooses. Refusals are queries that are not answered, at "
        "most `max_refusals` of them. Delta is 1e-6.",
    ),
    Section(
        "factor",
        "Queries that a budget answers",
        "95 percent of the teachers agree on all queries except for a fraction alpha, "
        "on which they are divided evenly; epsilon 1 at delta 1e-6. Stable votes pay "
        "only for refusals. `composed` pays for a stable release of each answer, by "
        "composition, and `gnmax` has noisy votes that are right on 99 percent of the "
        "easy queries.",
    ),
    Section(
        "accuracy",
        "Students on public sets",
        "Accuracy on test rows, by epsilon; delta is one over the squared number of "
        "private rows. Teachers vote on a public pool. Students are `PrivateStudent`: "
        "the `default` one, which smooths votes over plain columns, and a `ridge` "
        "regression on the public map, which is a `NeighborMap` of the pool. They "
        "learn from noisy vote fractions where these are released, and from labels "
        "elsewhere. Rows per teacher are chosen by the accuracy on private rows that "
        "no teacher saw, **which is not paid for**: with a number fixed beforehand, "
        "expect less. Maps, teachers and students were chosen on another split of the "
        "same sets, whose rows overlap with these, including test rows. Noise is the "
        "exact noise of the library, on votes that were cast once; each line is the "
        "mean of two draws of it. `private linear` is `LogisticRegression` with its "
        "defaults on all private rows, in plain columns or on the same public map; "
        "`none` is a learner on all private rows without privacy.",
    ),
    Section(
        "speed",
        "Time and memory of teachers",
        "Training and voting on one core and on two, with teachers in memory and in a "
        "folder.",
    ),
    Section(
        "kills",
        "Killed processes",
        "`tacit label`, killed with signal 9 at random moments and started again. Its "
        "labels and its student are compared with those of an undisturbed run, byte "
        "for byte.",
    ),
)

COLUMNS = {"plain": "plain columns", "public map": "public map"}
STUDENTS = {"default": "default student", "ridge": "ridge student"}
MARKS = {"default": "o-", "ridge": "^:"}
COLORS = {
    "linear": "C0",
    "neighbors": "C1",
    "trees": "C2",
    "plain": "k",
    "public map": "0.5",
}


def page(*, whole: bool) -> list[str]:
    """Return everything that was measured, in Markdown."""
    lines = []
    for section in SECTIONS:
        rows = RESULTS.measured(section.name, whole=whole)
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
    sizes = dict.fromkeys((row["dataset"], row["n_rows"]) for row in rows)
    names = dict.fromkeys(name for name, _ in sizes)
    full = [row for name in names for row in largest(rows, name)]
    ordered = sorted(sizes, key=lambda size: largest_size(rows, size[0]) != size[1])
    for name, n_rows in ordered:
        own = [r for r in rows if (r["dataset"], r["n_rows"]) == (name, n_rows)]
        own = [row for row in own if row["way"] != "end to end"]
        yield from by_epsilon(own, f"{name}, {n_rows:,.0f} private rows")
    yield from answers(full)
    yield from end_to_end(full)


def end_to_end(rows: list[Row]) -> Iterator[Row]:
    """Yield lines that were run from end to end, beside those of replayed votes."""
    scores = grouped(rows)
    for key, own in scores.items():
        group = dict(zip(GROUPS, key, strict=True))
        if group["way"] == "end to end":
            beside = scores[tuple({**group, "way": "replayed"}.values())]
            names = ("dataset", "epsilon", "learner", "mechanism", "student", "targets")
            yield {
                "part": "from end to end, beside replayed votes",
                **{name: group[name] for name in names},
                "replayed": mean(row["accuracy"] for row in beside),
                "label_accuracy": own[0]["label_accuracy"],
                "accuracy": mean(row["accuracy"] for row in own),
            }


def grouped(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Return the lines that differ in the seed alone, together."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in GROUPS), []).append(row)
    return groups


def by_epsilon(rows: list[Row], part: str) -> Iterator[Row]:
    """Yield a line for each learner, mechanism and student."""
    names = ("learner", "columns", "mechanism", "student", "targets")
    lines = []
    for own in grouped(rows).values():
        first = own[0]
        epsilon = "none" if first["epsilon"] is None else f"{first['epsilon']:g}"
        found = {name: first[name] or "" for name in names}
        score = repr(mean(row["accuracy"] for row in own))
        lines.append({**found, "epsilon": epsilon, "accuracy": score})
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
    """Yield for each set students of noisy votes and linear models, each by its name.

    Beside each is what it is without privacy: the learner of the teachers in plain
    columns, or the linear model in the columns of the private one.
    """
    epsilons = sorted({row["epsilon"] for row in rows} - {None})
    for name in dict.fromkeys(row["dataset"] for row in rows):
        own = largest(rows, name)
        bare = {
            (row["learner"], row["columns"]): row["accuracy"]
            for row in own
            if row["mechanism"] == "none"
        }
        for (learner, columns, student), curve in curves(own).items():
            linear = student is None
            plain = bare.get(("linear", columns) if linear else (learner, "plain"))
            scores = {f"epsilon {e:g}": curve.get(e) for e in epsilons}
            yield {
                "data set": f"{name}, {own[0]['n_rows']:,.0f} rows",
                "model": named(learner, columns, student),
                **{name: digits(score) for name, score in scores.items()},
                "not private": digits(plain),
            }


def digits(score: float | None) -> str | None:
    """Return three digits of an accuracy, where there is one."""
    return None if score is None else f"{score:.3f}"


def curves(rows: list[Row]) -> dict[tuple[Any, ...], dict[float, float]]:
    """Return accuracy by epsilon, of students of noisy votes and of linear models."""
    found: dict[tuple[Any, ...], dict[float, float]] = {}
    for own in grouped(
        [
            row
            for row in rows
            if row["mechanism"] == "linear"
            or (
                (row["mechanism"], row["way"]) == ("gnmax", "replayed")
                and row["chosen"] == "yes"
            )
        ]
    ).values():
        first = own[0]
        key = first["learner"], first["columns"], first["student"]
        score = mean(row["accuracy"] for row in own)
        found.setdefault(key, {})[first["epsilon"]] = score
    return {key: dict(sorted(curve.items())) for key, curve in found.items()}


def named(learner: str, columns: str, student: str | None) -> str:
    """Return what a curve is called."""
    if student is None:
        return f"{learner}, {COLUMNS[columns]}"
    return f"{STUDENTS[student]}, {learner} teachers"


def largest_size(rows: list[Row], name: str) -> float:
    """Return how many private rows a set has."""
    return max(row["n_rows"] for row in rows if row["dataset"] == name)


def largest(rows: list[Row], name: str) -> list[Row]:
    """Return the rows of a set with all private rows."""
    most = largest_size(rows, name)
    return [row for row in rows if (row["dataset"], row["n_rows"]) == (name, most)]


def draw(rows: list[Row]) -> None:
    """Draw students of noisy votes, beside private linear models."""
    import matplotlib  # noqa: PLC0415 - only where a picture is asked for

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    size = 3.2 * len(sets), 4.2
    figure, (panels,) = pyplot.subplots(1, len(sets), figsize=size, squeeze=False)
    words: dict[str, Any] = {}
    for axes, name in zip(panels, sets, strict=True):
        for key, curve in curves(largest(rows, name)).items():
            learner, columns, student = key
            style = "s--" if student is None else MARKS[student]
            color = COLORS[columns if student is None else learner]
            scores = list(curve.values())
            (drawn,) = axes.plot(list(curve), scores, style, ms=4, lw=1, c=color)
            words.setdefault(named(*key), drawn)
        axes.set(xscale="log", xlabel="epsilon", title=name)
        epsilons = sorted(
            {row["epsilon"] for row in largest(rows, name) if row["epsilon"]}
        )
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
    panels[0].set_ylabel("accuracy on test rows")
    figure.tight_layout(rect=(0, 0.22, 1, 1))
    figure.legend(words.values(), words, loc="lower center", ncols=2, fontsize=7)
    figure.savefig(PICTURE, dpi=110)


def write(lines: Sequence[str]) -> None:
    """Rewrite the page in the documentation."""
    rows = [typed(row) for row in RESULTS.measured("accuracy", whole=True)]
    draw(rows)
    factor.draw([typed(row) for row in RESULTS.measured("factor", whole=True)])
    rewrite(PAGE, [*SHOWN, *lines])
    rewrite(SUMMARY, [markdown(summary(rows)), ""])


def main(argv: Sequence[str] | None = None) -> None:
    print_report(argv, __doc__, page, write)


if __name__ == "__main__":
    main()
