"""The optimal rule of a stable release, against rational arithmetic."""

import pickle
from copy import deepcopy
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stat import assert_probability

from tacit._random import as_generator
from tacit.audit import replay
from tacit.mechanisms import NO_ANSWER, NoAnswer, StableRelease
from tacit.mechanisms.noise import bernoulli, uniform_below
from tacit.mechanisms.threshold import BestRelease

RULES = ("optimal", "laplace")


def test_no_answer_is_a_value():
    assert not NO_ANSWER
    assert repr(NO_ANSWER) == "NoAnswer()"
    assert NoAnswer() == NO_ANSWER
    assert NO_ANSWER is not None
    for copy in (pickle.loads(pickle.dumps(NO_ANSWER)), deepcopy(NO_ANSWER)):
        assert copy == NO_ANSWER
    assert len({NoAnswer(), NoAnswer()}) == 1


# delta 1e-6: least distances released half the time, and 99 times in a hundred
NEEDED = {0.1: (108, 147), 0.5: (25, 33), 1.0: (13, 17), 2.0: (7, 9)}


@pytest.mark.parametrize("epsilon", NEEDED)
def test_distances_needed_are_the_known_ones(epsilon):
    mechanism = StableRelease(epsilon, 1e-6)
    for distance, share in zip(NEEDED[epsilon], (0.5, 0.99), strict=True):
        assert mechanism.release_probability(distance) >= share
        assert mechanism.release_probability(distance - 1) < share


@lru_cache
def least_exp(epsilon):
    """A rational number just below the exponential."""
    with localcontext(prec=700):
        near = Decimal(epsilon).exp()  # within half a unit of the last digit
        return Fraction(near - Decimal(1).scaleb(near.adjusted() - 690))


def violations(cells, whole, epsilon, delta):
    """Distances at which neighbors are released apart by more than the claim."""
    p = [Fraction(c, whole) for c in cells]
    growth, delta = least_exp(epsilon), Fraction(delta)
    found = [] if p[0] <= delta else [0]
    for d, (a, b) in enumerate(pairwise(p)):
        sides = [(a, b), (b, a), (1 - a, 1 - b), (1 - b, 1 - a)]
        if any(x > growth * y + delta for x, y in sides):
            found.append(d)
    return found


budgets = st.tuples(
    st.one_of(st.floats(1e-12, 1e-3), st.floats(1e-3, 5.0), st.floats(5.0, 600.0)),
    st.one_of(st.floats(1e-300, 1e-12), st.floats(1e-12, 0.999)),
)


@settings(max_examples=25, deadline=None)
@given(budget=budgets, start=st.integers(0, 5000))
def test_neighboring_distances_are_within_the_claim_exactly(budget, start):
    distribution = BestRelease(*budget)
    whole = 1 << (64 * distribution.n_words)
    cells = [distribution.cells(0), *(distribution.cells(start + d) for d in range(8))]
    assert violations([cells[0]], whole, *budget) == []
    assert violations([distribution.cells(d) for d in range(4)], whole, *budget) == []
    tail = cells[1:]
    assert tail == sorted(tail)
    # the first of a later stretch is not at distance zero
    assert [d for d in violations(tail, whole, *budget) if d or start == 0] == []


@pytest.mark.parametrize(("wrong", "right"), [((1.1, 1e-3), (1.0, 1e-3))])
def test_a_law_for_more_than_the_claim_is_caught(wrong, right):
    distribution = BestRelease(*wrong)
    whole = 1 << (64 * distribution.n_words)
    assert violations([distribution.cells(d) for d in range(20)], whole, *right)
    distribution = BestRelease(1.0, 1.001e-3)
    assert violations([distribution.cells(d) for d in range(20)], whole, *right)


def recursion(epsilon, delta, n):
    """The definition, step by step, in decimals of many digits."""
    with localcontext(prec=120):
        growth, delta = Decimal(epsilon).exp(), Decimal(delta)
        p = [delta]
        for _ in range(n):
            rising = growth * p[-1] + delta
            falling = 1 - (1 - p[-1] - delta) / growth
            p.append(min(rising, falling, Decimal(1)))
        return p


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-6, 0.2, 0.7])
def test_the_closed_form_is_the_recursion_but_for_what_is_kept_back(epsilon, delta):
    distribution = BestRelease(epsilon, delta)
    for d, p in enumerate(recursion(epsilon, delta, 400)):
        found = Fraction(distribution.cells(d), 1 << (64 * distribution.n_words))
        assert found <= Fraction(p)
        assert found >= Fraction(p) * (1 - Fraction(1, 10**9))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_no_distance_is_released_less_often_than_with_noise(epsilon, delta):
    best, noisy = (StableRelease(epsilon, delta, rule) for rule in RULES)
    for d in range(200):
        least = noisy.release_probability(float(d)) * (1 - 1e-8)
        assert best.release_probability(float(d)) >= least


def test_large_distances_take_no_longer():
    mechanism = StableRelease(1e-9, 1e-9)
    assert mechanism.release_probability(10**6) == pytest.approx(1.0005e-3, rel=1e-3)
    assert mechanism.release_probability(1e18) == 1.0
    assert StableRelease(1e4, 1e-300).release_probability(1.0) == 1.0


def test_parts_of_a_row_count_for_nothing():
    mechanism = StableRelease(1.0, 1e-3)
    assert mechanism.release_probability(3.999) == mechanism.release_probability(3.0)
    assert mechanism.release_probability(4.0) > mechanism.release_probability(3.0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("distance", [nan, -inf, -3.0])
def test_what_is_no_distance_counts_as_zero(rule, distance):
    mechanism = StableRelease(1.0, 1e-3, rule)
    assert mechanism.release_probability(distance) == mechanism.release_probability(0.0)
    assert mechanism("value", distance, as_generator(0)) == NO_ANSWER


@pytest.mark.parametrize("rule", RULES)
def test_an_endless_distance_is_released(rule):
    assert StableRelease(1.0, 1e-9, rule)("value", inf, as_generator(0)) == "value"


@pytest.mark.statistical
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("noise", ["grid", "float"])
def test_values_are_released_as_often_as_is_stated(rule, noise, seed):
    mechanism, rng, n = (
        StableRelease(0.5, 0.1, rule, noise),
        as_generator(seed),
        1500,
    )
    for distance in (0.0, 4.0):
        stated = mechanism.release_probability(distance)
        hits = sum(mechanism(1, distance, rng) != NO_ANSWER for _ in range(n))
        assert_probability(hits, n, stated)
        with pytest.raises(AssertionError):
            assert_probability(hits, n, 0.5 * stated)


@pytest.mark.statistical
def test_whole_numbers_of_many_words_are_even(seed):
    rng, n = as_generator(seed), 3000
    end = 3 * 2**190
    below = sum(uniform_below(end, rng) < 2**190 for _ in range(n))
    assert_probability(below, n, 1 / 3)
    coins = sum(bernoulli(2**126 + 2**125, 2, rng) for _ in range(n))
    assert_probability(coins, n, 0.375)
    with pytest.raises(AssertionError):
        assert_probability(coins, n, 0.3)
    assert {uniform_below(3, rng) for _ in range(100)} == {0, 1, 2}
    assert uniform_below(1, rng) == 0


def output_distribution(mechanism, count, limit):
    """Distribution of the release of whether a count is at its limit."""
    value = count >= limit
    # rows to add or remove before another neighbor differs
    distance = count - limit if value else limit - 1 - count
    p = mechanism.release_probability(distance)
    return {value: p, not value: 0.0, "none": 1 - p}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 0.05])
def test_a_count_at_its_limit_is_told_within_the_claim(rule, epsilon, delta):
    mechanism = StableRelease(epsilon, delta, rule)
    worst = 0.0
    for count in range(40):
        pair = [output_distribution(mechanism, c, 20) for c in (count, count + 1)]
        for first, second in (pair, pair[::-1]):
            gaps = (first[o] - exp(epsilon) * second[o] for o in first)
            excess = sum(max(0.0, gap) for gap in gaps)
            worst = max(worst, excess)
    assert worst <= delta * (1 + 1e-6)
    assert worst >= 0.9 * min(delta, 0.5)


def test_a_distance_of_one_beside_another_value_is_caught():
    mechanism = StableRelease(1.0, 1e-3)
    # an error by one row in the distance releases where a neighbor differs
    first, second = mechanism.release_probability(1.0), 0.0
    assert first - exp(1.0) * second > 1e-3


@pytest.mark.parametrize("rule", RULES)
def test_only_the_distance_enters(rule):
    mechanism = StableRelease(1.0, 0.1, rule)

    def train(distance):
        return mechanism("value", distance, as_generator(0))

    assert replay(train, (3.0,), (4.0,)).ok
    assert not replay(train, (3.0,), (5.0,)).ok


@pytest.mark.parametrize("bad", ["best", None, 1])
def test_an_unknown_rule_is_refused(bad):
    with pytest.raises(ValueError, match=r"^rule must be .*\.$"):
        StableRelease(1.0, 0.1, bad)


def test_as_many_words_are_drawn_whether_or_not_there_is_an_answer():
    mechanism = StableRelease(1.0, 1e-6)
    after = []
    for distance in (0.0, 1e9):
        rng = as_generator(3)
        mechanism(1, distance, rng)
        after.append(rng.integers(0, 2**62))
    assert after[0] == after[1]
    assert np.isclose(mechanism.release_probability(0.0), 1e-6)
