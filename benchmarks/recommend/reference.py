"""Reference values of private matrix completion, beside those of the library.

``python -m benchmarks.recommend.reference`` prints the noise of the published
algorithms (Thakkar 2019, Chapter 6) with their constants, the same calibrated exactly
for rows of norm one at delta 1e-6, what the published step leaves of a matrix of rank
one, and how far two users can move a matrix of second moments. Nothing private is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from benchmarks.recommend.common import RESULTS
from benchmarks.recommend.plateau import constant_step, shrinkage
from benchmarks.tables import arguments, markdown
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from tacit._random import as_generator
from tacit.privacy import Budget, GaussianNoise, Neighbors, calibrate
from tacit.recommend import FrankWolfeCompletion
from tacit.recommend.ratings.table import RatingFacts
from tacit.recommend.solvers.frank_wolfe_sums import NoisyProducts
from tacit.recommend.solvers.moments import NoisyMoments

DELTA = 1e-6
# Steps of algorithm 13 and products of algorithm 14
STEPS, PRODUCTS = 10, 30
# of as many items; scales of noise do not depend on it
N_ITEMS = 20


@dataclass(frozen=True)
class Row:
    """Noise at one epsilon: published constants, and exact ones for both relations."""

    epsilon: float
    mu: float
    walk: tuple[float, float, float]
    svd: tuple[float, float, float]
    products: tuple[float, float]


REFERENCE = (
    Row(0.1, 0.02754, (940.3, 649.4, 459.2), (297.4, 51.34, 36.31), (3338, 202.1)),
    Row(0.5, 0.12411, (188.1, 144.1, 101.9), (59.47, 11.40, 8.058), (667.6, 44.86)),
    Row(1, 0.23670, (94.03, 75.57, 53.44), (29.74, 5.975, 4.225), (333.8, 23.52)),
    Row(2, 0.44833, (47.02, 39.90, 28.21), (14.87, 3.154, 2.230), (166.9, 12.42)),
    Row(5, 1.02036, (18.81, 17.53, 12.40), (5.947, 1.386, 0.980), (66.76, 5.46)),
)
# Steps, and what is left of a matrix of rank one without and with a wasted step
SHRINKAGE = {
    5: (0.67232, 0.59040),
    10: (0.65132, 0.61258),
    20: (0.64151, 0.62265),
    50: (0.63583, 0.62840),
    100: (0.63397, 0.63027),
}
# Largest distance of outer products in so many random pairs of unit vectors
PAIRS, DISTANCE = 20_000, 1.41421356
# Epsilon that the published noise has if a user is added, and if one is replaced
SPENT = {0.1: (0.046, 0.067), 1: (0.545, 0.790), 5: (3.128, 4.617)}


def exact_mu(epsilon: float, delta: float) -> float:
    """Return the Gaussian privacy of a budget, by a root (Balle and Wang 2018)."""

    def excess(mu: float) -> float:
        tail = np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
        return float(ndtr(mu / 2 - epsilon / mu) - tail - delta)

    return float(brentq(excess, 1e-5, 100.0, xtol=1e-14))


def published_walk_scale(epsilon: float, steps: int, delta: float = DELTA) -> float:
    """Return the noise of algorithm 13, and of 15 with one step, for row norm one."""
    return sqrt(64 * steps * log(1 / delta)) / epsilon


def published_product_scale(epsilon: float, delta: float = DELTA) -> float:
    """Return the noise of algorithm 14 for row norm one."""
    return sqrt(256 * PRODUCTS * log(2 / delta)) / epsilon


def walk_scale(epsilon: float, neighbors: Neighbors) -> float:
    """Return the library's noise on a matrix, where ratings have row norm one."""
    solver = FrankWolfeCompletion(
        n_iter=STEPS, row_norm=1.0, clip="row", step="standard", nuclear_norm=1.0
    )
    plan = solver.plan(_facts(), Budget(epsilon, DELTA, neighbors))
    return plan.bound**2 * plan.directions[0].scale


def svd_scale(epsilon: float, neighbors: Neighbors) -> float:
    """Return the library's noise on the matrix of one release, for row norm one."""
    budget = Budget(epsilon, DELTA, neighbors)
    multiplier = calibrate(GaussianNoise, budget)
    return NoisyMoments(N_ITEMS, multiplier, neighbors).scale


def product_scale(epsilon: float) -> float:
    """Return the library's noise on a product, for row norm one."""
    multiplier = calibrate(GaussianNoise, Budget(epsilon, DELTA))
    return NoisyProducts(N_ITEMS, PRODUCTS, multiplier * sqrt(PRODUCTS + 1)).scale


def spent_epsilon(stated: float, neighbors: Neighbors) -> float:
    """Return what algorithm 13 spends with its noise, by exact accounting."""
    moved = 4.0 * (sqrt(2) if neighbors is Neighbors.REPLACE_ONE else 1.0)
    multiplier = published_walk_scale(stated, 1) / moved
    return GaussianNoise(multiplier).curve(neighbors).epsilon(DELTA)


def farthest_pair(n_pairs: int, seed: int = 0) -> float:
    """Return the largest distance of outer products of random unit vectors."""
    rng = as_generator(seed)
    pairs = rng.standard_normal((n_pairs, 2, 3))
    pairs /= np.linalg.norm(pairs, axis=2, keepdims=True)
    outer = pairs[..., :, None] * pairs[..., None, :]
    return float(np.linalg.norm(outer[:, 0] - outer[:, 1], axis=(1, 2)).max())


def _facts() -> RatingFacts:
    return RatingFacts(N_ITEMS, -1.0, 1.0, 1000, N_ITEMS)


def compared(case: str, what: str, expected: float, found: float) -> dict[str, Any]:
    """Return one line of a comparison."""
    return {
        "part": "reference values",
        "case": case,
        "quantity": what,
        "reference": expected,
        "tacit": found,
        "relative_difference": abs(found - expected) / expected,
    }


def rows(n_pairs: int) -> Iterator[dict[str, Any]]:
    """Yield every reference value beside the library's, or the published formula's."""
    replaced, added = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
    for one in REFERENCE:
        case, eps = f"epsilon {one.epsilon:g}", one.epsilon
        calibrated = 1 / calibrate(GaussianNoise, Budget(eps, DELTA))
        yield compared(case, "mu, by root finding", one.mu, exact_mu(eps, DELTA))
        yield compared(case, "mu, as calibrated", one.mu, calibrated)
        for what, expected, found in (
            ("published, 10 steps", one.walk[0], published_walk_scale(eps, STEPS)),
            ("10 steps, replaced", one.walk[1], walk_scale(eps, replaced)),
            ("10 steps, added", one.walk[2], walk_scale(eps, added)),
            ("published, one release", one.svd[0], published_walk_scale(eps, 1)),
            ("one release, replaced", one.svd[1], svd_scale(eps, replaced)),
            ("one release, added", one.svd[2], svd_scale(eps, added)),
            ("published, 30 products", one.products[0], published_product_scale(eps)),
            ("30 products and a value", one.products[1], product_scale(eps)),
        ):
            yield compared(case, f"noise: {what}", expected, found)
    for eps, expected in SPENT.items():
        for relation, spent in zip((added, replaced), expected, strict=True):
            what = f"spent by published noise, {relation.value}"
            yield compared(
                f"epsilon {eps:g}", what, spent, spent_epsilon(eps, relation)
            )
    for steps, (all_steps, wasted) in SHRINKAGE.items():
        case = f"{steps} steps"
        yield compared(case, "left of rank one", all_steps, constant_step(steps))
        found = shrinkage("published", steps)
        yield compared(case, "left with a wasted step", wasted, found)
    case = f"{PAIRS:,} pairs of unit rows"
    yield compared(case, "farthest outer products", DISTANCE, farthest_pair(n_pairs))


def main(argv: Sequence[str] | None = None) -> None:
    """Compare all values, print them and write them down."""
    options = arguments(argv, __doc__)
    found = list(rows(2000 if options.quick else PAIRS))
    print(markdown(found))
    RESULTS.save("reference", found, quick=options.quick)


if __name__ == "__main__":
    main()
