"""Selections: exact probabilities, exact privacy, and what rounding costs."""

from fractions import Fraction
from itertools import permutations
from math import exp

import numpy as np
import pytest
from scipy import stats
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit.audit import replay
from tacit.mechanisms import Exponential, NoisyMax, PermuteAndFlip
from tacit.mechanisms.noise import GRID
from tacit.privacy import BoundedRange, Neighbors, PureDP

EPSILON, SENSITIVITY = 1.5, 0.5
SCORES = np.array([0.0, -0.7, 1.0, 1.0, -2.0])
N_CHOICES = 6000


def exponential_law(logits):
    weights = np.exp(logits - np.max(logits))
    return weights / weights.sum()


def permute_and_flip_law(logits):
    """Average over all orders of the first candidate accepted."""
    accepted = np.exp(np.asarray(logits) - np.max(logits))
    distribution, orders = (
        np.zeros(len(accepted)),
        list(permutations(range(len(accepted)))),
    )
    for order in orders:
        left = 1.0
        for i in order:
            distribution[i] += left * accepted[i]
            left *= 1 - accepted[i]
    return distribution / len(orders)


def noisy_max_law(logits):
    """Probability that each candidate is the largest, by quadrature."""
    logits = np.asarray(logits) - np.max(logits)
    x = np.linspace(-30, 30, 12_001)
    distribution = []
    for i in range(len(logits)):
        density = stats.laplace.pdf(x - logits[i])
        for j in range(len(logits)):
            if j != i:
                density = density * stats.laplace.cdf(x - logits[j])
        distribution.append(np.trapezoid(density, x))
    return np.array(distribution)


DISTRIBUTIONS = {
    Exponential: exponential_law,
    PermuteAndFlip: permute_and_flip_law,
    NoisyMax: noisy_max_law,
}

every = pytest.mark.parametrize("kind", DISTRIBUTIONS, ids=lambda k: k.__name__)
kinds = pytest.mark.parametrize("noise", ["grid", "float"])


def logits(scores, factor=1.0):
    return factor * EPSILON / (2 * SENSITIVITY) * np.asarray(scores)


@every
@kinds
@pytest.mark.statistical
def test_candidates_are_chosen_with_their_exact_odds(kind, noise, seed):
    mechanism, rng = kind(EPSILON, SENSITIVITY, noise), as_generator(seed)
    choices = [mechanism(SCORES, rng) for _ in range(N_CHOICES)]
    counts = np.bincount(choices, minlength=len(SCORES))
    assert_counts_follow(counts, DISTRIBUTIONS[kind](logits(SCORES)))
    for wrong in (0.75, 1.35):
        assert_counts_detect(counts, DISTRIBUTIONS[kind](logits(SCORES, wrong)))


def test_the_laws_are_laws():
    for distribution in DISTRIBUTIONS.values():
        assert distribution(logits(SCORES)).sum() == pytest.approx(1, abs=1e-5)
        assert distribution([0.0, 0.0]) == pytest.approx([0.5, 0.5], abs=1e-5)
    # permute-and-flip and noisy max with exponential noise agree on two candidates
    half = exp(-1.0) / 2
    assert permute_and_flip_law([0.0, -1.0]) == pytest.approx([1 - half, half])


def neighbors_of(scores, sensitivity, rng):
    """Neighbors with every sign of a full move, as far as there are few, and others."""
    n = len(scores)
    signs = rng.choice([-1.0, 1.0], size=(12, n))
    signs[:n] = 2 * np.eye(n) - 1
    moves = [*signs, *-signs, *rng.uniform(-1, 1, (6, n))]
    return [scores + sensitivity * move for move in moves]


def score_pairs(sensitivity, seed):
    rng = as_generator(seed)
    for spread in (0.01, 1.0, 30.0, 1e6):
        for n in (2, 3, 5):
            scores = sensitivity * spread * rng.standard_normal(n)
            for other in neighbors_of(scores, sensitivity, rng):
                # floats may have moved it by more; neighbors are judged as they are
                gaps = [
                    abs(Fraction(b) - Fraction(a))
                    for a, b in zip(scores, other, strict=True)
                ]
                if max(gaps) <= Fraction(sensitivity):
                    yield scores, other


def exponent_range(before, after):
    moves = [int(b) - int(a) for a, b in zip(before, after, strict=True)]
    return max(moves) - min(moves)


@every
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 8.0])
def test_exponents_of_neighbors_differ_within_a_range(kind, epsilon, seed):
    # in exact integers: with it all three are private, whatever is drawn exactly
    mechanism, widest = kind(epsilon, SENSITIVITY), 0
    for scores, other in score_pairs(SENSITIVITY, seed):
        before, after = mechanism._exponents(scores), mechanism._exponents(other)
        assert before.max() == after.max() == 0
        widest = max(widest, exponent_range(before, after))
    assert widest <= Fraction(epsilon) * GRID
    # and not much is wasted
    assert widest >= epsilon * GRID * (1 - 1e-8) - 10


def test_rounding_without_a_reserve_would_be_noticed(seed):
    epsilon, widest = 1e-6, 0
    rate = epsilon / 2 * GRID / SENSITIVITY
    for scores, other in score_pairs(SENSITIVITY, seed):
        pair = [np.rint((s - s.max()) * rate).astype(int) for s in (scores, other)]
        widest = max(widest, exponent_range(*pair))
    assert widest > Fraction(epsilon) * GRID


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_probability_ratios_of_neighbors_are_within_epsilon(kind, epsilon, seed):
    worst = 0.0
    for scores, other in score_pairs(SENSITIVITY, seed):
        mechanism = kind(epsilon, SENSITIVITY)
        first, second = (mechanism._exponents(s) / GRID for s in (scores, other))
        if min(first.min(), second.min()) < -500:
            continue  # below the smallest float
        ratios = np.log(DISTRIBUTIONS[kind](first) / DISTRIBUTIONS[kind](second))
        worst = max(worst, float(np.abs(ratios).max()))
        assert worst <= epsilon * (1 + 1e-9)
        if kind is Exponential:
            assert ratios.max() - ratios.min() <= epsilon * (1 + 1e-9)
    # control: the same pairs refute a claim of half as much
    assert worst > epsilon / 2


def test_noisy_max_is_private_by_its_integrated_law(seed):
    epsilon, rng, worst = 1.0, as_generator(seed), 0.0
    for _ in range(4):
        scores = rng.standard_normal(4)
        for other in neighbors_of(scores, 1.0, rng)[:8]:
            pair = [
                NoisyMax(epsilon, 1.0)._exponents(s) / GRID for s in (scores, other)
            ]
            ratios = np.log(noisy_max_law(pair[0]) / noisy_max_law(pair[1]))
            worst = max(worst, float(np.abs(ratios).max()))
    assert epsilon / 2 < worst <= epsilon + 1e-4


def test_permute_and_flip_lacks_the_bounded_range():
    # why its event is that of a pure mechanism
    scores, other = np.array([0.0, 0.0]), np.array([1.0, -1.0])
    pair = [PermuteAndFlip(1.0, 1.0)._exponents(s) / GRID for s in (scores, other)]
    ratios = np.log(permute_and_flip_law(pair[0]) / permute_and_flip_law(pair[1]))
    assert ratios.max() - ratios.min() > 1.0
    assert PermuteAndFlip(1.0, 1.0).event == PureDP(1.0)
    assert Exponential(1.0, 1.0).event == BoundedRange(1.0)
    assert NoisyMax(1.0, 1.0).event == PureDP(1.0)


@every
@kinds
def test_huge_gaps_choose_the_best_without_a_warning(kind, noise):
    mechanism, rng = kind(EPSILON, SENSITIVITY, noise), as_generator(0)
    for scores in (
        [0.0, 1e300, 0.0],
        [-1e308, 1e308, -1e308],
        [-1e18, 0.0, -np.inf],
        [1e18, 1e18 + 2**12, 1e18],
    ):
        assert {mechanism(np.array(scores), rng) for _ in range(20)} == {1}


@every
@kinds
def test_one_candidate_is_always_chosen(kind, noise):
    mechanism, rng = kind(EPSILON, SENSITIVITY, noise), as_generator(0)
    assert {mechanism(np.array([s]), rng) for s in (0.0, -1e300, 5.0)} == {0}
    assert type(mechanism(np.array([1.0]), rng)) is int


@every
@kinds
def test_no_candidates_are_refused(kind, noise):
    mechanism = kind(EPSILON, SENSITIVITY, noise)
    with pytest.raises(ValueError, match="scores is empty; at least one candidate"):
        mechanism(np.array([]), as_generator(0))


@every
@pytest.mark.parametrize("name", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True], ids=repr)
def test_bad_numbers_are_refused(kind, name, bad):
    with pytest.raises(ValueError, match=rf"^{name} must [^.]*.*\.$"):
        kind(**{"epsilon": 1.0, "sensitivity": 1.0, name: bad})


@every
def test_what_the_grid_cannot_hold_is_refused(kind):
    with pytest.raises(ValueError, match="epsilon must be at least 1e-8"):
        kind(1e-9, 1.0)
    with pytest.raises(ValueError, match="noise must be"):
        kind(1.0, 1.0, "exact")


@every
@kinds
def test_a_seed_fixes_the_choices(kind, noise):
    mechanism, scores = kind(0.1, 1.0, noise), np.zeros(50)

    def choices(seed):
        rng = as_generator(seed)
        return [mechanism(scores, rng) for _ in range(20)]

    assert choices(1) == choices(1) != choices(2)
    assert len(set(choices(1))) > 5


@every
@kinds
def test_scores_go_over_the_tape(kind, noise):
    def train(scores):
        return kind(EPSILON, SENSITIVITY, noise)(scores, as_generator(0))

    move = SENSITIVITY * np.array([1, -1, 1, -1, 1])
    report = replay(train, (SCORES,), (SCORES + move,))
    assert report.ok, str(report)
    assert report.entries[0].norm == "linf"
    assert not replay(train, (SCORES,), (SCORES + 2 * move,)).ok


@every
def test_the_curve_is_pure(kind):
    curve = kind(EPSILON, SENSITIVITY).curve(Neighbors.REPLACE_ONE)
    assert curve.epsilon(0.0) == pytest.approx(EPSILON)


def test_only_the_exponential_mechanism_is_charged_by_its_range():
    kinds = {Exponential: BoundedRange, PermuteAndFlip: PureDP, NoisyMax: PureDP}
    for kind, event in kinds.items():
        assert kind(EPSILON, SENSITIVITY).event == event(EPSILON)
