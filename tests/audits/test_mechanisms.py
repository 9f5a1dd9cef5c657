"""Every mechanism attacked on its worst pair; half the noise must be detected.

Bounds hold with confidence ``1 - P_FAIL``. An audit bounds epsilon from below only: it
refutes false claims and proves none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from tests.audits.quiet import Served
from tests.audits.verdict import assert_refutes_the_control, event_bound
from tests.cases import Cases
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit.bounds import clopper_pearson_bound, gaussian_bound
from tacit.mechanisms import (
    NO_ANSWER,
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    L2Laplace,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    StableRelease,
)
from tacit.mechanisms import threshold as threshold_module
from tacit.mechanisms.additive import SymmetricGaussian
from tacit.mechanisms.continual import TreeSum
from tacit.privacy import Neighbors

SHARED_CASES = Cases(
    audits="AboveThreshold DiscreteGaussian DiscreteLaplace Exponential Gaussian "
    "L2Laplace Laplace NoisyMax PermuteAndFlip StableRelease SymmetricGaussian TreeSum"
)

DELTA = 1e-5
SLACK = 1e-20  # more than the distance of the L2-Laplace sampler from its distribution


def attack(bound, scores, delta, n_runs, seed):
    """Lower bound on epsilon; ``scores(side, n, rng)`` runs the mechanism n times."""
    rng = as_generator(seed)
    first, second = (scores(side, n_runs, rng) for side in (0, 1))
    return bound(first, second, delta)


def by_tail(first, second, delta):
    """For any mechanism; half of the runs choose the tail and half judge it."""
    return clopper_pearson_bound(first, second, delta=delta, confidence=1 - P_FAIL)


def by_gaussian(first, second, delta):
    """For mechanisms with a Gaussian trade-off."""
    return gaussian_bound(first, second, delta=delta, confidence=1 - P_FAIL)


def by_event(first, second, delta):
    """For scores that are 1 on one event, fixed beforehand: all runs judge it."""
    return event_bound(first.sum(), second.sum(), len(first), delta)


def in_parts(draw, n, most=50_000):
    """Calls of at most that many numbers: rounding makes longer ones noisier."""
    parts = [most] * (n // most) + ([n % most] if n % most else [])
    return np.concatenate([draw(part) for part in parts])


def numbers(mechanism, side, n, rng):
    """One call protects many numbers, each with its own noise, each moved in full."""
    return in_parts(lambda k: mechanism(np.full(k, float(side)), rng), n)


def wholes(mechanism, side, n, rng):
    """Sums of integers, each moved by all units that the honest claim allows."""
    moved = side * DiscreteGaussian(1.0, 1.0).units
    return mechanism(np.full(n, moved), rng).astype(np.float64)


def matrices(mechanism, side, n, rng):
    """Entries off the diagonal: a pair of them moves by one in Frobenius norm."""
    size = int(sqrt(2 * n)) + 2
    value = np.full((size, size), side / sqrt(2))
    return mechanism(value, rng)[np.triu_indices(size, 1)][:n]


def vectors(mechanism, side, n, rng):
    """The log-likelihood ratio of one vector a call."""
    ends = np.zeros((2, mechanism.size))
    ends[1, 0] = 1.0
    draws = np.array([mechanism(ends[side], rng) for _ in range(n)])
    away = [np.linalg.norm(draws - end, axis=1) for end in ends]
    return away[0] - away[1]


def choices(mechanism, side, n, rng, candidates):
    """Whether the first candidate is chosen: it and all others move, against it."""
    scores = np.ones(candidates) if side else np.zeros(candidates)
    scores[0] = 1.0 - side
    return np.array([float(mechanism(scores, rng) == 0) for _ in range(n)])


def streams(mechanism, side, n, rng):
    """The sum of the outputs that are single nodes: the first element is in each."""
    state, score = mechanism.init((n,)), np.zeros(n)
    for t in range(1, mechanism.horizon + 1):
        value = np.full(n, float(side and t == 1))
        state, total = mechanism.step(state, value, rng)
        if t.bit_count() == 1:
            score += total
    return score


def sparse_vectors(mechanism, side, n, rng, negatives):
    """Whether the answers are that many negatives and a positive."""
    low, high = (0.5, -0.5) if side else (-0.5, 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold_module.draws, "discrete_laplace", Served())

        def hit():
            state = mechanism.init(rng)
            for _ in range(negatives):
                state, above = mechanism.step(state, low, rng)
                if above:
                    return 0.0
            return float(mechanism.step(state, high, rng)[1])

        return np.array([hit() for _ in range(n)])


def releases(mechanism, side, n, rng, distances):
    """Whether the value is released, at one of two neighboring distances."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold_module.draws, "discrete_laplace", Served())
        found = [mechanism(1, distances[side], rng) != NO_ANSWER for _ in range(n)]
    return np.array(found, dtype=float)


@dataclass(frozen=True)
class Case:
    """A claim, how to attack it, and how much of it the attack must show."""

    name: str
    make: Callable[[float], Any]  # from the factor by which there is too little noise
    scores: Callable[..., Any]
    n_runs: int
    n_quick: int = 0  # none: slow only
    bound: Any = by_event
    delta: float = 0.0
    least: float = 0.0

    def __str__(self):
        return self.name

    def claim(self):
        return self.make(1.0).curve(Neighbors.REPLACE_ONE).epsilon(self.delta)

    def lower(self, factor, n_runs, seed):
        scores = partial(self.scores, self.make(factor))
        return attack(self.bound, scores, self.delta, n_runs, seed)


@dataclass(frozen=True)
class Wrong:
    """A mechanism on sums that move further than its units allow, by a factor."""

    mechanism: Any
    factor: float

    def curve(self, neighbors):
        return self.mechanism.curve(neighbors)

    def __call__(self, total, rng):
        return self.mechanism((self.factor * total).astype(np.int64), rng)


def stable(factor):
    return StableRelease(factor, 0.01, "laplace")


def stable_distances(factor):
    """Two neighbors whose probabilities of release are 1/2 and e^-epsilon / 2."""
    return stable(factor).threshold, stable(factor).threshold - 1.0


gaussian = {"bound": by_gaussian, "delta": DELTA, "least": 0.5}
pure = {"bound": by_tail, "least": 0.5}

CASES = [
    Case(
        "Gaussian",
        lambda f: Gaussian(1.0 / f, 1.0),
        numbers,
        n_runs=1_000_000,
        n_quick=100_000,
        **gaussian,
    ),
    Case(
        "Gaussian, any trade-off",
        lambda f: Gaussian(1.0 / f, 1.0),
        numbers,
        n_runs=4_000_000,
        delta=DELTA,
        **pure,
    ),
    Case(
        "Laplace",
        lambda f: Laplace(1.0 / f, 1.0),
        numbers,
        n_runs=1_000_000,
        n_quick=100_000,
        **pure,
    ),
    Case(
        "DiscreteGaussian",
        lambda f: Wrong(DiscreteGaussian(1.0, 1.0), f),
        wholes,
        n_runs=1_000_000,
        **gaussian,
    ),
    Case(
        "DiscreteLaplace",
        lambda f: Wrong(DiscreteLaplace(1.0, 1.0), f),
        wholes,
        n_runs=1_000_000,
        **pure,
    ),
    Case(
        "L2Laplace, one dimension",
        lambda f: L2Laplace(0.5 / f, 1.0, 1),
        vectors,
        n_runs=30_000,
        n_quick=3000,
        delta=SLACK,
        **pure,
    ),
    Case(
        "L2Laplace, three dimensions",
        lambda f: L2Laplace(0.5 / f, 1.0, 3),
        vectors,
        n_runs=30_000,
        delta=SLACK,
        **pure,
    ),
    Case(
        "SymmetricGaussian",
        lambda f: SymmetricGaussian(1.0 / f, 1.0),
        matrices,
        n_runs=1_000_000,
        **gaussian,
    ),
    Case(
        "TreeSum",
        lambda f: TreeSum(8, 1.0 / f, 1.0),
        streams,
        n_runs=400_000,
        n_quick=30_000,
        **gaussian,
    ),
    Case(
        "Exponential",
        lambda f: Exponential(2.0 * f, 1.0),
        partial(choices, candidates=20),
        n_runs=30_000,
        n_quick=4000,
    ),
    Case(
        "PermuteAndFlip",
        lambda f: PermuteAndFlip(2.0 * f, 1.0),
        partial(choices, candidates=20),
        n_runs=30_000,
    ),
    Case(
        "NoisyMax",
        lambda f: NoisyMax(2.0 * f, 1.0),
        partial(choices, candidates=20),
        n_runs=30_000,
    ),
    Case(
        "AboveThreshold",
        lambda f: AboveThreshold(2.0 * f, 0.0),
        partial(sparse_vectors, negatives=4),
        n_runs=40_000,
        n_quick=10_000,
    ),
    Case(
        "StableRelease",
        stable,
        lambda m, side, n, rng: releases(m, side, n, rng, stable_distances(m.epsilon)),
        n_runs=30_000,
        delta=0.01,
    ),
]
QUICK = [case for case in CASES if case.n_quick]


def check(case, n_runs, seed):
    planned, control = (case.lower(factor, n_runs, seed) for factor in (1.0, 2.0))
    assert_refutes_the_control(
        case.name, case.claim(), planned, control, least=case.least
    )


@pytest.mark.statistical
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_a_quick_audit_stays_below_the_claim_and_catches_half_the_noise(case, seed):
    check(case, case.n_quick, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_audit_stays_below_the_claim_and_catches_half_the_noise(case, seed):
    check(case, case.n_runs, seed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("share", "caught"), [(1.0, False), (0.5, True)])
def test_an_audit_catches_half_the_threshold_of_a_stable_release(share, caught, seed):
    class Release(StableRelease):
        @property
        def threshold(self):
            return share * super().threshold

    # neighbors with different values: what one releases the other never does
    mechanism = Release(1.0, 0.01, "laplace")

    def scores(side, n, rng):
        return (1 - side) * releases(mechanism, 0, n, rng, [0.0])

    lower = attack(by_event, scores, 0.01, 30_000, seed)
    assert (lower.epsilon_lower > 1.0) == caught


def test_the_claims_are_those_of_the_parameters():
    claims = {case.name: case.claim() for case in CASES}
    assert claims["Gaussian"] == pytest.approx(4.377, abs=0.01)
    assert claims["Laplace"] == pytest.approx(1.0)
    assert claims["L2Laplace, three dimensions"] == pytest.approx(2.0)
    assert claims["AboveThreshold"] == pytest.approx(2.0)
    # at delta = failure the test itself is left
    assert claims["StableRelease"] == pytest.approx(1.0)
    assert stable(1.0).threshold == pytest.approx(log(50))
