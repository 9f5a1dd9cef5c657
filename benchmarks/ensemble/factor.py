"""How many questions a budget answers: stable votes against composition.

Teachers agree on all questions but a share ``alpha``, on which they are divided evenly.
Stable votes pay for refusals alone, so that they should answer some ``1 / alpha`` times
as many questions as a mechanism that pays for each. ``python -m
benchmarks.ensemble.factor`` prints both, by theory and with the mechanism itself, and
how rare hard questions must be for stable votes to answer more. The report draws it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from benchmarks.ensemble.common import RESULTS
from benchmarks.tables import DOCS, arguments, markdown
from numpy.random import Generator

from tacit.exceptions import PlanError
from tacit.mechanisms import NoAnswer, StableRelease, as_generator
from tacit.mechanisms._votes._base import FAILURE
from tacit.mechanisms._votes._plans import VoteTerms, stable_votes, vote_mechanism
from tacit.mechanisms._votes._probabilities import VoteDistribution
from tacit.mechanisms._votes._stable import StableVotes
from tacit.privacy import ApproxDP, Budget, Repeated

PICTURE = DOCS / "figures/ensemble_factor.png"
BUDGET = Budget(1.0, 1e-6)
ALPHAS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
TEACHERS = (500, 2000, 8000)
# Of the teachers, on a question that is not hard
AGREEMENT = 0.95
# Refusals among which the best number is sought
REFUSALS = sorted({round(1.25**k) for k in range(31)} | {0})
SIMULATED = 2000


def laws_of(
    n_teachers: int, alpha: float
) -> tuple[tuple[float, VoteDistribution], ...]:
    """Return shares of easy and hard questions."""
    easy, hard = (
        VoteDistribution(n_teachers, AGREEMENT, 2),
        VoteDistribution(n_teachers, 0.5, 2),
    )
    return (1 - alpha, easy), (alpha, hard)


@cache
def stable_with(refusals: int) -> StableVotes:
    """Return the mechanism of the library for the budget."""
    return stable_votes(BUDGET, 2, refusals)


def answers_expected(mechanism: StableVotes, n_teachers: int, alpha: float) -> float:
    """Return the mean number of answers before the last refusal.

    Given the noise of a threshold, the answers up to a refusal are geometric.
    """
    rejected = mechanism.refusals_by_level(laws_of(n_teachers, alpha))
    return float(np.mean((1 - rejected) / rejected)) * (mechanism.max_refusals + 1)


@cache
def best_stable(n_teachers: int, alpha: float) -> tuple[StableVotes, float]:
    """Return the mechanism that should answer most questions, and how many."""
    found = [
        (votes, answers_expected(votes, n_teachers, alpha))
        for votes in map(stable_with, REFUSALS)
    ]
    return max(found, key=lambda pair: pair[1])


def answers_drawn(
    mechanism: StableVotes, n_teachers: int, alpha: float, rng: Generator
) -> int:
    """Return how many questions one stream of the mechanism itself answers."""
    state = mechanism.init(rng)
    answered = 0
    while not mechanism.remaining(state).ended:
        agreement = 0.5 if rng.uniform() < alpha else AGREEMENT
        votes = np.zeros(n_teachers, dtype=np.int16)
        votes[: rng.binomial(n_teachers, 1 - agreement)] = 1
        state, answer = mechanism.step(state, votes, rng)
        answered += not isinstance(answer.value, NoAnswer)
    return answered


def largest(fits: Any) -> int:
    """Return the largest number for which this holds, zero if it never does."""
    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@cache
def composed_questions(n_teachers: int) -> int:
    """Return how many questions composition pays for, each by its own stable release.

    Easy questions are told but for one in a hundred, at their mean distance; half of
    delta is for the releases and half for composition.
    """
    distance = stable_with(0).distance(round((2 * AGREEMENT - 1) * n_teachers))

    def fits(questions: int) -> bool:
        delta = BUDGET.delta / 2 / questions
        epsilon = least_epsilon(distance, delta)
        event = Repeated(ApproxDP(epsilon, delta), questions)
        added = questions * epsilon <= BUDGET.epsilon
        return added or event.curve(BUDGET.neighbors).fits(BUDGET)

    return largest(fits)


def least_epsilon(distance: int, delta: float) -> float:
    """Return the least epsilon with which a value at this distance is told."""
    low, high = 1e-6, 50.0
    for _ in range(40):
        middle = (low * high) ** 0.5
        told = StableRelease(middle, delta).release_probability(distance)
        low, high = (low, middle) if told >= 1 - FAILURE else (middle, high)
    return high


@cache
def noisy_questions(n_teachers: int) -> int:
    """Return how many questions noisy votes answer, easy ones almost all rightly."""
    easy = ((1.0, VoteDistribution(n_teachers, AGREEMENT, 2)),)

    def fits(questions: int) -> bool:
        try:
            terms = VoteTerms(n_teachers, questions, 2)
            votes = vote_mechanism("gnmax", BUDGET, terms)
        except PlanError:
            return False
        return votes.outcome(easy).right >= 1 - FAILURE

    return largest(fits)


def measure(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one line for each number of teachers and share of hard questions."""
    for n_teachers in TEACHERS[:2] if quick else TEACHERS:
        composed, noisy = composed_questions(n_teachers), noisy_questions(n_teachers)
        for alpha in ALPHAS[:4] if quick else ALPHAS:
            stable, expected = best_stable(n_teachers, alpha)
            rng = as_generator(n_teachers)
            # enough streams for some thousand refusals where they come often
            asked = SIMULATED * (1 if quick else 20)
            repeats = int(np.clip(asked / max(expected, 1), 3, 100))
            drawn = [
                answers_drawn(stable, n_teachers, alpha, rng) for _ in range(repeats)
            ]
            told = composed * (1 - alpha)
            yield {
                "teachers": n_teachers,
                "alpha": alpha,
                "refusals": stable.max_refusals,
                "answers_expected": expected,
                "answers_drawn": float(np.mean(drawn)),
                "streams": repeats,
                "composed_answers": told,
                "factor": float(np.mean(drawn)) / told if told else None,
                "one_over_alpha": 1 / alpha,
                "factor_times_alpha": float(np.mean(drawn)) / told * alpha
                if told
                else None,
                "gnmax_answers": noisy,
                "factor_over_gnmax": float(np.mean(drawn)) / noisy,
            }


def break_even(n_teachers: int) -> dict[str, Any]:
    """Return how rare hard questions must be for stable votes to answer more.

    By theory: one in so many is hard where both answer as many.
    """
    found: dict[str, Any] = {"teachers": n_teachers}
    for name, paid, told in (
        ("composed", composed_questions(n_teachers), lambda alpha: 1 - alpha),
        ("gnmax", noisy_questions(n_teachers), lambda alpha: 1),
    ):
        low, high = 2.0, 1e5
        for _ in range(12):
            middle = (low * high) ** 0.5
            _, answers = best_stable(n_teachers, 1 / middle)
            more = answers > paid * told(1 / middle)
            low, high = (low, middle) if more else (middle, high)
        found[f"one_hard_in_against_{name}"] = high
    return found


def draw(rows: Sequence[dict[str, Any]]) -> None:
    """Draw answers and factors over the share of hard questions."""
    import matplotlib  # noqa: PLC0415 - only where a picture is asked for

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, (answers, factors) = pyplot.subplots(1, 2, figsize=(10, 3.8))
    for position, n_teachers in enumerate(sorted({row["teachers"] for row in rows})):
        found = [row for row in rows if row["teachers"] == n_teachers]
        color, words = f"C{position}", f"{n_teachers:,} teachers"
        x = [row["one_over_alpha"] for row in found]

        def column(name: str, found: Any = found) -> list[float]:
            return [row[name] for row in found]

        answers.loglog(x, column("answers_expected"), "-", c=color, lw=1, label=words)
        answers.loglog(x, column("answers_drawn"), "o", c=color, ms=4)
        answers.loglog(x, column("composed_answers"), "--", c=color, lw=1)
        answers.loglog(x, column("gnmax_answers"), ":", c=color, lw=1)
        factors.loglog(x, column("factor"), "o-", c=color, ms=4, lw=1, label=words)
        over = column("factor_over_gnmax")
        factors.loglog(x, over, "s:", c=color, ms=3, lw=1)
    factors.loglog(x, x, "k-", lw=0.8, label="1 / alpha")
    factors.axhline(1, c="0.6", lw=0.8)
    answers.set(xlabel="1 / share of hard questions", ylabel="questions answered")
    answers.set_title("stable (lines, dots), composed (dashed), gnmax (dotted)")
    factors.set(xlabel="1 / share of hard questions", ylabel="times as many answers")
    factors.set_title("over composed (dots), over gnmax (squares)")
    for axes in (answers, factors):
        axes.legend(fontsize=7)
        axes.title.set_size(9)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and save."""
    quick = arguments(argv, __doc__).quick
    rows = list(measure(quick=quick))
    RESULTS.save("factor", rows, quick=quick)
    teachers = sorted({row["teachers"] for row in rows})
    print(f"{markdown(rows)}\n\n{markdown([break_even(n) for n in teachers])}")


if __name__ == "__main__":
    main()
