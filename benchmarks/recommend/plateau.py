"""The published step of Frank-Wolfe, which stops short, and steps that do not.

``python -m benchmarks.recommend.plateau`` walks to ratings of rank one without noise:
all of them rated, and 80 of 400 rated by each user. Steps of one over their number
leave a third of every rating out, however many there are, and one more with the step
that the published algorithm wastes. Beside them are the steps that shrink, and the
library's own walk with as little noise as whole numbers have. The curves go to
``results/plateau.png``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from benchmarks.recommend.common import RESULTS
from benchmarks.tables import arguments, markdown
from numpy.typing import NDArray

from tacit._random import as_generator
from tacit.privacy import Budget
from tacit.recommend import FrankWolfeCompletion
from tacit.recommend.ratings.table import RatingFacts, Ratings

PICTURE = RESULTS.folder / "plateau.png"
STEPS = ("constant", "published", "standard")
WORDS = {
    "constant": "1 / T",
    "published": "1 / T, one wasted",
    "standard": "2 / (t + 2)",
    "library": "library, standard",
    "search": "library, searched",
}
# As good as none: more of it changes no noise
EPSILON = 1e6

Array = NDArray[np.float64]


def constant_step(steps: int) -> float:
    """Return what constant steps, all of them taken, leave of a matrix of rank one."""
    return shrinkage("constant", steps)


def shrinkage(step: str, steps: int) -> float:
    """Return what steps leave of a matrix of rank one of which all is rated."""
    truth, rated = rank_one(20, 10, 10)
    return float((walk(truth, rated, step, steps) * truth).mean())


def rank_one(n_users: int, n_items: int, each: int, seed: int = 0) -> tuple[Array, Any]:
    """Return signs of users times signs of items, and which of them are rated.

    Items are rated in pairs of opposite signs, so that nobody's mean is off.
    """
    rng = as_generator(seed)
    truth = np.outer(
        rng.choice([-1.0, 1.0], n_users), np.where(np.arange(n_items) % 2, 1.0, -1.0)
    )
    chosen = np.argsort(rng.random((n_users, n_items // 2)), axis=1) < each // 2
    return truth, np.repeat(chosen, 2, axis=1)


def walk(truth: Array, rated: Any, step: str, steps: int) -> Array:
    """Walk without noise, by eigenvectors of the exact second moments."""
    k, rows = sqrt(truth.size), np.zeros_like(truth)
    for t in range(steps - (step == "published")):
        residual = np.where(rated, rows - truth, 0.0)
        values, vectors = np.linalg.eigh(residual.T @ residual)
        value = sqrt(max(values[-1], 0.0))
        if value <= 1e-9 * k:  # there is nothing left
            break
        corner = np.outer(residual @ vectors[:, -1], vectors[:, -1]) * (-k / value)
        share = 2 / (t + 2) if step == "standard" else 1 / steps
        rows += share * (corner - rows)
    return rows


def library_walk(truth: Array, rated: Any, step: str, steps: int) -> Array:
    """Return what the library completes, with as good as no noise."""
    n_users, n_items = truth.shape
    ratings = Ratings(
        np.append(0, np.cumsum(rated.sum(axis=1))).astype(np.int64),
        np.nonzero(rated)[1].astype(np.int32),
        truth[rated].astype(np.float32),
        n_items,
    )
    each = int(rated.sum(axis=1).max())
    norm = "auto" if step == "search" else sqrt(truth.size)
    solver = FrankWolfeCompletion(
        nuclear_norm=norm, n_iter=steps, row_norm=sqrt(each), step=step
    )
    facts = RatingFacts(n_items, -1.0, 1.0, n_users, each)
    plan = solver.plan(facts, Budget(EPSILON, 1e-6))
    side = solver.run(plan, ratings, as_generator(0))
    return side.complete(ratings)


def measure(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the error of each kind of step, over numbers of steps."""
    cases = {
        "all rated": rank_one(400, 40, 40),
        "80 of 400 rated": rank_one(*((400, 400) if quick else (4000, 400)), 80),
    }
    for case, (truth, rated) in cases.items():
        left_out = np.ones_like(truth, dtype=bool) if rated.all() else ~rated
        for steps in (5, 20) if quick else (5, 10, 20, 50, 100):
            found = {step: walk(truth, rated, step, steps) for step in STEPS}
            found["library"] = library_walk(truth, rated, "standard", steps)
            found["search"] = library_walk(truth, rated, "search", steps)
            for step, rows in found.items():
                yield {
                    "ratings": case,
                    "steps": steps,
                    "step": WORDS[step],
                    "left_of_truth": float((rows * truth)[left_out].mean()),
                    "error": float(np.sqrt(((rows - truth)[left_out] ** 2).mean())),
                }


def draw(rows: Sequence[dict[str, Any]]) -> None:
    """Draw errors over numbers of steps, a panel for each set of ratings."""
    import matplotlib  # noqa: PLC0415 - only where a picture is asked for

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    cases = list(dict.fromkeys(row["ratings"] for row in rows))
    figure, panels = pyplot.subplots(1, len(cases), figsize=(8, 3.2), sharey=True)
    for axes, case in zip(panels, cases, strict=True):
        for words in WORDS.values():
            own = [r for r in rows if (r["ratings"], r["step"]) == (case, words)]
            steps, errors = [r["steps"] for r in own], [r["error"] for r in own]
            axes.plot(steps, errors, "o-", ms=3, lw=1, label=words)
        axes.set(xscale="log", xlabel="steps", title=case)
    panels[0].set_ylabel("root mean squared error")
    panels[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)
    pyplot.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Walk, print, save and draw."""
    quick = arguments(argv, __doc__).quick
    rows = list(measure(quick=quick))
    RESULTS.save("plateau", rows, quick=quick)
    draw(rows)
    print(markdown(rows))


if __name__ == "__main__":
    main()
