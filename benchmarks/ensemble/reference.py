"""Reference values of labels by stable votes, beside those of the library.

``python -m benchmarks.ensemble.reference`` prints noise, thresholds and numbers of
teachers as published (Thakkar 2019, Chapter 5), the same with tight composition, and
how much less lead the library needs with the splits it chooses. Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any

from benchmarks.ensemble.common import RESULTS
from benchmarks.tables import arguments, markdown

from tacit.mechanisms._votes._base import distance_of_lead, published_distance
from tacit.mechanisms._votes._plans import stable_votes
from tacit.mechanisms._votes._probabilities import difference_tail
from tacit.mechanisms._votes._published import PublishedVotes
from tacit.mechanisms._votes._stable import StableVotes
from tacit.privacy import Budget

AGREEMENTS = (0.95, 0.8)
# A little below the budget, so that sums of rounded numbers stay within it
KEPT_BACK = 1e-12


@dataclass(frozen=True)
class Published:
    """One setting, with the values that were computed from the paper's formulas."""

    epsilon: float
    delta: float
    n_queries: int
    refusals: int
    scale: float
    threshold: float
    teachers_9: int
    teachers_10: int
    run_epsilon: float
    tight_scale: float
    tight_threshold: float

    def words(self) -> str:
        return (
            f"epsilon {self.epsilon:g}, delta {self.delta:g}, {self.n_queries} "
            f"queries, {self.refusals} refusals"
        )


@dataclass(frozen=True)
class Practical:
    """One setting with tight composition, and what it takes to be answered."""

    epsilon: float
    refusals: int
    scale: float
    threshold: float
    distance: int
    teachers: tuple[int, int]


PUBLISHED = (
    Published(1, 1e-6, 1000, 20, 96.4, 4127, 58_161, 116_322, 0.0476, 42.0, 1440),
    Published(1, 1e-6, 1000, 1, 21.5, 923, 11_453, 22_907, 0.5, 4.0, 118),
    Published(1, 1e-5, 100, 5, 44.2, 1486, 20_308, 40_615, 0.1667, 12.0, 326),
    Published(10, 1e-6, 1000, 20, 9.6, 413, 5816, 11_632, 0.4762, 4.2, 144),
)
PRACTICAL = (
    Practical(1, 0, 2.0, 56, 73, (165, 247)),
    Practical(1, 5, 12.0, 381, 482, (1074, 1611)),
    Practical(1, 20, 42.0, 1440, 1793, (3987, 5981)),
    Practical(3, 5, 4.0, 127, 161, (359, 539)),
    Practical(3, 20, 14.0, 480, 598, (1331, 1996)),
    Practical(8, 5, 1.5, 48, 60, (136, 204)),
)
TAILS = {1: 0.34304, 3: 0.14046, 6: 0.03278, 10: 0.004484}
# counts before and after one vote, with the published and the corrected distances
COUNTS = {((6, 4), (5, 5)): ((1, 0), (0, 0)), ((9, 1), (8, 2)): ((7, 5), (3, 2))}


def compared(case: str, what: str, expected: float, found: float) -> dict[str, Any]:
    """Return one line of a comparison."""
    return {
        "part": "reference values",
        "case": case,
        "quantity": what,
        "reference": expected,
        "tacit": found,
        "relative_difference": abs(found - expected) / expected if expected else found,
    }


def reference_rows() -> Iterator[dict[str, Any]]:
    """Yield the published constants and those with tight composition."""
    for one in PUBLISHED:
        words = one.words()
        votes = PublishedVotes(
            one.epsilon, one.delta, 2, one.n_queries, one.refusals, "float"
        )
        budget = Budget(one.epsilon, one.delta)
        tight = redrawn_votes(budget, one.refusals, "float")
        settings = (one.epsilon, one.delta, one.n_queries, one.refusals)
        for what, expected, found in (
            ("published scale", one.scale, votes.threshold_scale),
            ("published threshold", one.threshold, votes.threshold),
            ("teachers, algorithm 9", one.teachers_9, published_teachers(*settings)),
            (
                "teachers, algorithm 10",
                one.teachers_10,
                published_teachers(*settings, algorithm=10),
            ),
            ("tight epsilon of a run", one.run_epsilon, run_epsilon(tight)),
            ("tight scale", one.tight_scale, tight.threshold_scale),
            ("tight threshold", one.tight_threshold, tight.threshold),
        ):
            yield compared(words, what, expected, found)
    for level, expected in TAILS.items():
        found = difference_tail(level, 2.0, 1.0)
        yield compared(f"scales 2 and 1, level {level}", "tail", expected, found)
    for pair, distances in COUNTS.items():
        for counts, printed, right in zip(pair, *distances, strict=True):
            lead = counts[0] - counts[1]
            case = f"counts {counts[0]} and {counts[1]}"
            found = published_distance(lead)
            yield compared(case, "published distance", printed, found)
            yield compared(case, "distance", right, distance_of_lead(lead))


def redrawn_votes(
    budget: Budget, max_refusals: int, noise: str = "grid"
) -> StableVotes:
    """Return stable votes with a new threshold after each refusal, and even splits.

    This is the published mechanism with its distance, its number of runs and its
    threshold put right: half of each run for the threshold, half of delta for
    composition, and runs composed by adding either epsilons or concentrated privacy
    (Bun and Steinke 2016, Propositions 1.3 and 1.4).
    """
    runs = max_refusals + 1
    delta = budget.delta * (1 - KEPT_BACK) / 2
    spread = sqrt(-log(delta))
    root = sqrt(spread**2 + budget.epsilon) - spread
    each = max(budget.epsilon / runs, root * sqrt(2 / runs)) * (1 - KEPT_BACK)
    return StableVotes(each / 2, each / 2, delta, 2, max_refusals, 1, noise)


def published_teachers(
    epsilon: float, delta: float, n_queries: int, refusals: int, *, algorithm: int = 9
) -> int:
    """Return the printed number of teachers for all questions to be answered.

    Three quarters of them must agree, and all but the refusals are answered with
    probability 0.95 (Thakkar 2019, Chapter 5). Algorithm 10 prints twice as many.
    """
    factor = {9: 136, 10: 272}[algorithm]
    many = log(4 * n_queries * refusals / min(delta, 0.05 / 2))
    return ceil(factor * many * sqrt(refusals * log(2 / delta)) / epsilon)


def run_epsilon(votes: StableVotes) -> float:
    """Return the privacy of the questions up to and including a refusal."""
    return votes.threshold_epsilon + votes.query_epsilon


def teachers(distance: int, agreement: float) -> int:
    """Return how many teachers have this distance on average."""
    return ceil(round(2 * (distance + 1) / (2 * agreement - 1), 9))


def practical_rows() -> Iterator[dict[str, Any]]:
    """Yield distances needed: reference, the same here, and the library's split."""
    for one in PRACTICAL:
        setting = {"epsilon": one.epsilon, "refusals": one.refusals}
        budget = Budget(one.epsilon, 1e-6)
        plain = redrawn_votes(budget, one.refusals, "float")
        chosen = stable_votes(budget, 2, one.refusals)
        reference = (one.scale, one.threshold, one.distance, *one.teachers)
        for name, values in (
            ("reference", reference),
            ("even split, new thresholds", needed(plain)),
            ("chosen split", needed(chosen)),
        ):
            yield {
                "part": "distance needed for an answer",
                **setting,
                "by": name,
                "refusals_per_threshold": chosen.per_group
                if name == "chosen split"
                else 1,
                "threshold_scale": values[0],
                "threshold": values[1],
                "distance": values[2],
                "teachers_at_95_percent": values[3],
                "teachers_at_80_percent": values[4],
                "ratio_to_reference": values[2] / one.distance,
            }


def needed(votes: StableVotes) -> tuple[float, float, int, int, int]:
    """Return scale, threshold, distance answered in 99 of 100 cases, and teachers."""
    distance = votes.distance_needed()
    many, few = (teachers(distance, agreement) for agreement in AGREEMENTS)
    return votes.threshold_scale, votes.threshold, distance, many, few


def gain_rows() -> Iterator[dict[str, Any]]:
    """Yield the least distance by groups and splits, over the even split."""
    for epsilon in (0.5, 1.0, 3.0, 8.0):
        for refusals in (0, 1, 5, 20, 100, 500):
            budget = Budget(epsilon, 1e-6)
            plain = redrawn_votes(budget, refusals, "float")
            chosen = stable_votes(budget, 2, refusals)
            before, after = plain.distance_needed(), chosen.distance_needed()
            group = chosen.threshold_epsilon + chosen.per_group * chosen.query_epsilon
            yield {
                "part": "gain of the split",
                "epsilon": epsilon,
                "refusals": refusals,
                "refusals_per_threshold": chosen.per_group,
                "fraction_for_the_threshold": chosen.threshold_epsilon / group,
                "even_split": before,
                "chosen_split": after,
                "ratio": after / before,
            }


def main(argv: Sequence[str] | None = None) -> None:
    """Compare, print and save."""
    quick = arguments(argv, __doc__).quick
    rows: list[dict[str, Any]] = []
    for part in (reference_rows, practical_rows, gain_rows):
        found = list(part())
        shown = [{k: v for k, v in row.items() if k != "part"} for row in found]
        print(f"\n{found[0]['part'].capitalize()}\n\n{markdown(shown)}")
        rows += found
    names = dict.fromkeys(name for row in rows for name in row)
    RESULTS.save(
        "reference",
        ({name: row.get(name) for name in names} for row in rows),
        quick=quick,
    )


if __name__ == "__main__":
    main()
