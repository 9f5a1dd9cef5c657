"""Scores of coordinates: one row moves them little, and they rank what is best."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit._random import as_generator
from tacit.solvers._coordinates.greedy_plan import MARGIN, REACH, RULES, TOP, Scores

UNITS = 2**30
PENALTIES = {
    "free": (0.0, 0.0, np.inf),
    "l1": (3.0, 0.0, np.inf),
    "ridge": (0.0, 2.0, np.inf),
    "elastic net": (3.0, 2.0, np.inf),
    "box": (0.0, 0.0, 1.0),
    "all": (3.0, 2.0, 1.0),
}

each_rule = pytest.mark.parametrize("rule", list(RULES))
each_penalty = pytest.mark.parametrize("penalty", list(PENALTIES))


def scores_of(rule, penalty, n, *, units=UNITS, clip=1.0, smooth=5.0):
    l1, l2, end = PENALTIES[penalty]
    full = [np.full(n, x) for x in (clip / units, smooth, l1, l2, -end, end)]
    return Scores(rule, units, *full)


def drawn(penalty, n, seed):
    """Return sums of up to about thirty rows, and weights that the box allows."""
    rng = as_generator(seed)
    sums = rng.integers(-30 * UNITS, 30 * UNITS, size=n)
    w = rng.normal(size=n) * (rng.random(n) < 0.7) * rng.choice([0.1, 1.0, 10.0], n)
    end = PENALTIES[penalty][2]
    return sums, np.clip(w, -end, end), rng


def scaled(rule, penalty, sums, w):
    """Return scores in units of the gradient over the root of the smoothness."""
    scores = scores_of(rule, penalty, len(w))
    return scores(sums, w, np.arange(len(w))) / UNITS / np.sqrt(5.0)


@each_rule
@each_penalty
def test_a_score_moves_by_no_more_than_its_sum(rule, penalty, seed):
    n = 10_000
    sums, w, rng = drawn(penalty, n, seed)
    moves = rng.integers(-2 * UNITS, 2 * UNITS, size=n) // rng.choice([1, 10**6], n)
    scores = scores_of(rule, penalty, n)
    at = np.arange(n)
    apart = np.abs(scores(sums + moves, w, at) - scores(sums, w, at))
    assert np.all(apart <= np.abs(moves) + MARGIN * UNITS)
    # and there are coordinates where it moves by all of it, or what a ridge leaves
    ratio = 0.0 if rule == "gs-s" else PENALTIES[penalty][1] / 5.0
    assert apart.max() > 1.9 / (1 + ratio) * UNITS


def test_the_decrease_itself_would_move_further(seed):
    sums, w, _ = drawn("l1", 1000, seed)
    scores = scores_of("gs-q", "l1", 1000)
    at = np.arange(1000)

    def decrease(sums):
        return scores(sums, w, at) ** 2 / 2 / UNITS

    apart = np.abs(decrease(sums + 2 * UNITS) - decrease(sums))
    assert apart.max() > 20 * UNITS


whole = st.integers(-(2**26) * 2**36, 2**26 * 2**36)
sizes = st.floats(1e-60, 1e60)


@each_rule
@settings(max_examples=60)
@given(data=st.data())
def test_no_number_leads_to_a_score_that_is_none(rule, data):
    units = 2 ** data.draw(st.integers(8, 36))
    first = data.draw(whole) * units // 2**36
    move = data.draw(st.integers(-2 * units, 2 * units))
    limit = 2**26 * units
    second = min(max(first + move, -limit), limit)
    end = data.draw(st.just(np.inf) | sizes)
    w = np.array([data.draw(st.just(0.0) | sizes | sizes.map(lambda x: -x))])
    penalties = [data.draw(st.just(0.0) | sizes) for _ in range(2)]
    numbers = [data.draw(sizes) / units, data.draw(sizes), *penalties, -end, end]
    scores = Scores(rule, units, *(np.array([x]) for x in numbers))
    found = [
        scores(np.array([s]), np.clip(w, -end, end), np.array([0]))[0]
        for s in (first, second)
    ]
    assert np.isfinite(found).all()
    assert max(map(abs, found)) <= TOP * units
    assert abs(found[0] - found[1]) <= abs(second - first) + MARGIN * units


def exact(rule, scores, S, w, k):
    """Return a score in exact arithmetic, from the same integers."""
    back, l1, l2, rounded, scale, ratio, low, high = scores.table[k].tolist()
    v, S, w = round(w[k] * scale), int(S[k]), float(w[k])
    pull, l1 = round((l2 * w + l1 * np.sign(w)) / back), int(rounded)
    ratio = Fraction(ratio)
    if rule == "gs-s":
        derivative = S + pull
        toward = (
            derivative
            if v >= np.rint(high)
            else -derivative
            if v <= np.rint(low)
            else None
        )
        toward = abs(derivative) if toward is None else toward
        return Fraction(toward - (l1 if v == 0 else 0))
    step = v - S
    shrunk = max(abs(step) - l1, 0) * (1 if step > 0 else -1)
    u = shrunk / (1 + ratio)
    if np.isfinite(high):
        low, high = Fraction(low), Fraction(high)
        u = min(max(u, min(low, v)), max(high, v))
    if rule == "gs-r":
        return abs(u - v)
    a = u - v
    bend = l1 * (abs(u) - abs(v)) + ratio * (u**2 - v**2) / 2
    decrease = -(S * a + a**2 / 2 + bend)
    with localcontext() as context:
        context.prec = 80
        twice = 2 * decrease
        root = (Decimal(twice.numerator) / Decimal(twice.denominator)).sqrt()
        return Fraction(root)


@each_rule
@each_penalty
@pytest.mark.parametrize("large", [1, 2**20])
def test_round_off_is_within_the_margin(rule, penalty, large, seed):
    n = 100
    sums, w, _ = drawn(penalty, n, seed)
    scores = scores_of(rule, penalty, n)
    sums = sums * large
    found = scores(sums, w, np.arange(n)).tolist()
    off = [abs(Fraction(found[k]) - exact(rule, scores, sums, w, k)) for k in range(n)]
    # sums of 2^26 rows, of which these have half, are off by twice as much
    assert float(max(off)) <= MARGIN / 4 * UNITS


@each_penalty
def test_length_decrease_and_slope_are_ordered(penalty, seed):
    sums, w, _ = drawn(penalty, 5_000, seed)
    r, q, s = (scaled(rule, penalty, sums, w) for rule in ("gs-r", "gs-q", "gs-s"))
    assert np.all(r <= q + 1e-6)
    # below zero where a weight rests
    assert np.all(q <= np.maximum(s, 0.0) + 1e-6)


@pytest.mark.parametrize("penalty", ["free", "l1"])
def test_all_rules_agree_at_zero_weights(penalty, seed):
    sums, w, _ = drawn(penalty, 500, seed)
    best = {int(np.argmax(scaled(rule, penalty, sums, 0 * w))) for rule in RULES}
    assert len(best) == 1


def test_the_best_of_coordinates_that_all_rest_is_told_from_the_others():
    sums = np.array([UNITS, -2 * UNITS, UNITS // 2])  # all below the threshold of 3
    s, r = (scaled(rule, "l1", sums, np.zeros(3)) for rule in ("gs-s", "gs-r"))
    assert np.argmax(s) == 1
    assert np.all(s < 0)
    assert np.all(r == 0)


@each_penalty
def test_the_promised_decrease_is_that_of_a_separable_quadratic(penalty, seed):
    sums, w, _ = drawn(penalty, 200, seed)
    l1, l2, end = PENALTIES[penalty]
    g, smooth = sums / UNITS, 5.0

    def change(a):
        penalties = l1 * (np.abs(w + a) - np.abs(w)) + l2 / 2 * ((w + a) ** 2 - w**2)
        return g * a + smooth / 2 * a**2 + penalties

    u = w - g / smooth
    u = np.sign(u) * np.maximum(np.abs(u) - l1 / smooth, 0.0) / (1 + l2 / smooth)
    a = np.clip(u, -end, end) - w
    decrease = scaled("gs-q", penalty, sums, w) ** 2 / 2 * 5.0 / smooth
    np.testing.assert_allclose(decrease, -change(a), rtol=1e-6, atol=1e-6)
    for other in (0.9 * a, 1.1 * a, a / 2):
        inside = np.clip(w + other, -end, end) - w
        assert np.all(change(inside) >= change(a) - 1e-9)
    assert np.argmax(decrease) == np.argmax(-change(a))


def test_at_an_end_only_the_way_back_counts():
    sums, w = np.array([UNITS, -UNITS, UNITS, -UNITS]), np.array([1.0, 1.0, -1.0, -1.0])
    s = scaled("gs-s", "box", sums, w) * np.sqrt(5.0)
    np.testing.assert_allclose(s, [1, -1, -1, 1])
    for rule in ("gs-r", "gs-q"):
        found = scaled(rule, "box", sums, w)
        assert np.all((found > 0) == [True, False, False, True])


def test_offsets_are_cut_before_they_leave_64_bits():
    scores = scores_of("gs-s", "l1", 1, units=2**36, clip=1e-90)
    found = scores(np.array([2**62]), np.array([1e60]), np.array([0]))
    assert found[0] == 2.0**62 + REACH * 2.0**36
    deepest = scores_of("gs-q", "l1", 1, units=2**36, clip=1e-90)
    assert deepest(np.array([2**62]), np.ones(1), np.array([0]))[0] > 0


@each_rule
def test_those_out_of_the_choice_have_the_lowest_score(rule, seed):
    sums, w, _ = drawn("l1", 50, seed)
    scores, at, out_of = scores_of(rule, "l1", 50), np.arange(50), np.arange(50) < 20
    found = scores(sums, w, at, out_of)
    assert np.all(found[:20] == -TOP * UNITS)
    np.testing.assert_array_equal(found[20:], scores(sums, w, at)[20:])
