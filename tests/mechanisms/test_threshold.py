"""Sparse vector and stable release, against their distributions by quadrature."""

from dataclasses import replace
from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy import stats
from tests.stat import (
    assert_counts_detect,
    assert_counts_follow,
    assert_probability,
)

from tacit._random import as_generator
from tacit.audit import replay
from tacit.mechanisms import NO_ANSWER, AboveThreshold, StableRelease
from tacit.mechanisms import threshold as module
from tacit.mechanisms.noise import GRID
from tacit.privacy import ApproxDP, Neighbors, PureDP, Repeated

kinds = pytest.mark.parametrize("noise", ["grid", "float"])

# midpoints of equal shares of a standard Laplace distribution
SHARES = stats.laplace.ppf((np.arange(4000) + 0.5) / 4000)


def probability(answers, queries, threshold, threshold_scale, query_scale):
    """Probability of a sequence of answers with one draw of the threshold."""
    level = threshold + threshold_scale * SHARES
    joint = np.ones(len(level))
    for answer, query in zip(answers, queries, strict=True):
        if query_scale > 0:
            above = stats.laplace.sf((level - query) / query_scale)
        else:
            above = (query >= level).astype(float)
        joint = joint * (above if answer else 1 - above)
    return joint.mean()


def stretches(length):
    """Answers that one draw of the threshold can give: negatives, then a positive."""
    yield from ([False] * k + [True] for k in range(length))
    yield [False] * length


def worst_loss(scales, sequences, threshold, sensitivity=1.0):
    """Largest log ratio over neighbors that move every query, in every sign."""
    worst = 0.0
    for answers in sequences:
        n = len(answers)
        bases = [np.zeros(n), np.where(answers, -0.5, 0.5), np.linspace(-1, 2, n)]
        for base, signs in product(bases, product((-1.0, 1.0), repeat=n)):
            queries = base * sensitivity
            other = queries + sensitivity * np.array(signs)
            pair = [
                probability(answers, q, threshold, *scales) for q in (queries, other)
            ]
            if max(pair) > 0:  # what neither can give tells nothing
                worst = max(worst, log(max(pair)) - log(max(min(pair), 1e-300)))
    return worst


@pytest.mark.parametrize("threshold", [0.0, 2.0])
def test_answers_of_one_stretch_are_private(threshold):
    epsilon = 1.0
    worst = worst_loss((2 / epsilon, 4 / epsilon), stretches(5), threshold)
    assert worst <= epsilon + 1e-3
    assert worst > 0.7 * epsilon  # the pairs are hard ones


@pytest.mark.parametrize(
    "scales",
    [
        pytest.param((2.0, 0.0), id="no noise on the queries"),
        pytest.param((2.0, 2.0), id="query noise not twice the threshold noise"),
        pytest.param((1.0, 2.0), id="half the noise"),
    ],
)
def test_known_bad_noise_is_caught(scales):
    assert worst_loss(scales, [[False] * 4 + [True]], 0.0) > 1.0


def test_one_threshold_for_several_positives_at_one_charge_is_caught():
    answers = [False, False, True, True, True]
    assert worst_loss((2.0, 4.0), [answers], 0.0) > 1.0


def test_noise_that_ignores_the_sensitivity_is_caught():
    answers = [False, False, True]
    assert worst_loss((2.0, 4.0), [answers], 0.0, sensitivity=3.0) > 1.0
    assert worst_loss((6.0, 12.0), [answers], 0.0, sensitivity=3.0) <= 1.0


TAILS = {1: 0.34304, 3: 0.14046, 6: 0.03278, 10: 0.004484}


@pytest.mark.parametrize("level", TAILS)
def test_the_tail_of_the_two_noises_is_known(level):
    closed = (4 * exp(-level / 2) - exp(-level)) / 6
    assert closed == pytest.approx(TAILS[level], rel=2e-4)
    found = probability([True], [0.0], float(level), 1.0, 2.0)
    assert found == pytest.approx(closed, rel=5e-3)


@kinds
@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.statistical
def test_a_query_is_above_with_that_probability(noise, level, seed):
    # epsilon 2 makes the scales 1 and 2
    mechanism, n = AboveThreshold(2.0, float(level), noise=noise), 2500
    rng = as_generator(seed)
    hits = sum(mechanism.step(mechanism.init(rng), 0.0, rng)[1] for _ in range(n))
    assert_probability(hits, n, TAILS[level])
    wrong = probability([True], [0.0], float(level), 0.5, 1.0)
    with pytest.raises(AssertionError):
        assert_probability(hits, n, wrong)


def run(mechanism, queries, rng):
    """All answers, until the stream ends."""
    state, answers = mechanism.init(rng), []
    for query in queries:
        if state.n_positives == mechanism.n_positives:
            break
        state, above = mechanism.step(state, query, rng)
        answers.append(above)
    return tuple(answers)


@kinds
@pytest.mark.statistical
def test_sequences_of_answers_follow_the_law(noise, seed):
    mechanism = AboveThreshold(3.0, 5.5, sensitivity=2.0, noise=noise)
    queries, rng = [4.0, 6.0, 5.0], as_generator(seed)
    outcomes = [tuple(a) for a in stretches(3)]
    found = [run(mechanism, queries, rng) for _ in range(3000)]
    counts = [found.count(outcome) for outcome in outcomes]
    assert sum(counts) == 3000

    def distribution(factor):
        scales = factor * 4 / 3, factor * 8 / 3
        return [probability(a, queries[: len(a)], 5.5, *scales) for a in outcomes]

    assert_counts_follow(counts, distribution(1.0))
    assert_counts_detect(counts, distribution(0.5))


@kinds
@pytest.mark.statistical
def test_the_threshold_is_drawn_anew_after_a_positive(noise, seed):
    mechanism = AboveThreshold(2.0, 0.0, n_positives=4, noise=noise)
    rng, query = as_generator(seed), 1.0
    outcomes = list(product((False, True), repeat=3))
    found = [run(mechanism, [query] * 3, rng) for _ in range(4000)]
    counts = [found.count(outcome) for outcome in outcomes]

    def one(n, positive):
        answers = [False] * n + [True] * positive
        return probability(answers, [query] * len(answers), 0.0, 1.0, 2.0)

    def fresh(outcome):
        distribution, negatives = 1.0, 0
        for above in outcome:
            distribution *= one(negatives, True) if above else 1.0
            negatives = 0 if above else negatives + 1
        return distribution * one(negatives, False)

    assert_counts_follow(counts, [fresh(o) for o in outcomes])
    kept = [probability(o, [query] * 3, 0.0, 1.0, 2.0) for o in outcomes]
    assert_counts_detect(counts, kept)


@kinds
def test_a_stream_ends_after_its_positives(noise):
    mechanism, rng = (
        AboveThreshold(5.0, 0.0, n_positives=2, noise=noise),
        as_generator(0),
    )
    state = mechanism.init(rng)
    for used in range(2):
        assert state.n_positives == used
        before = state._private_threshold
        state, above = mechanism.step(state, 1e6, rng)
        assert above
        assert state._private_threshold != before
    with pytest.raises(ValueError, match="given all the 2 positive answers"):
        mechanism.step(state, 0.0, rng)


@kinds
def test_negative_answers_leave_the_state_alone(noise):
    mechanism, rng = AboveThreshold(5.0, 0.0, noise=noise), as_generator(0)
    state = mechanism.init(rng)
    for value in (-1e6, -1e18, -1e300):
        after, above = mechanism.step(state, value, rng)
        assert not above
        assert after is state


@kinds
def test_queries_go_over_the_tape(noise):
    mechanism = AboveThreshold(1.0, 0.0, sensitivity=2.0, n_positives=3, noise=noise)

    def train(queries):
        return run(mechanism, queries, as_generator(0))

    queries = np.array([-5.0, 5.0, 0.0, 1.0])
    report = replay(train, (queries,), (queries + np.array([2.0, -2.0, 2.0, -2.0]),))
    assert report.ok, str(report)
    assert not replay(train, (queries,), (queries + np.array([0.0, 4.0, 0.0, 0.0]),)).ok


def test_events_charge_every_positive_at_the_start():
    assert AboveThreshold(0.5, 1.0, n_positives=4).event == Repeated(PureDP(0.5), 4)
    curve = AboveThreshold(0.5, 1.0, n_positives=4).curve(Neighbors.REPLACE_ONE)
    assert curve.epsilon(0.0) == pytest.approx(2.0)
    assert StableRelease(0.5, 1e-3).event == ApproxDP(0.5, 1e-3)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("epsilon", 0.0),
        ("epsilon", np.nan),
        ("sensitivity", -1.0),
        ("n_positives", 0),
        ("n_positives", 1.5),
        ("noise", "exact"),
    ],
)
def test_bad_parameters_are_rejected(name, bad):
    with pytest.raises(ValueError, match=rf"^{name} must .*\.$"):
        replace(AboveThreshold(1.0, 0.0), **{name: bad})


@pytest.mark.parametrize(
    ("name", "bad"),
    [("epsilon", -1.0), ("delta", 0.0), ("delta", 1.0), ("noise", "exact")],
)
def test_bad_parameters_of_a_stable_release_are_refused(name, bad):
    with pytest.raises(ValueError, match=rf"^{name} must .*\.$"):
        replace(StableRelease(1.0, 0.1), **{name: bad})


def laplace(epsilon, delta, noise="grid"):
    return StableRelease(epsilon, delta, "laplace", noise)


def upper_tail(k):
    """Return P(X >= k) of the discrete Laplace distribution on the grid."""
    q = exp(-1 / GRID)
    return q**k / (1 + q) if k >= 1 else 1 - q ** (1 - k) / (1 + q)


def release_probability(mechanism, distance, monkeypatch):
    """Exact probability of release: the least noise that releases, by bisection."""

    def released(noise):
        cells = np.array([noise], dtype=np.int64)
        with monkeypatch.context() as patch:
            patch.setattr(module.draws, "discrete_laplace", lambda n, rng: cells)
            return mechanism("value", distance, None) != NO_ANSWER

    low, high = -(2**45), 2**45
    assert not released(low)
    assert released(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if released(middle) else (middle, high)
    return upper_tail(high)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("failure", [1e-9, 1e-3, 0.3, 0.5, 0.9])
def test_a_value_that_a_neighbor_lacks_is_rarely_released(
    epsilon, failure, monkeypatch
):
    found = release_probability(laplace(epsilon, failure), 0.0, monkeypatch)
    assert found <= failure
    # and no more noise than that takes
    assert found >= min(failure, 0.5) * (1 - 1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("failure", [1e-6, 0.3])
def test_neighboring_distances_are_within_epsilon(epsilon, failure, monkeypatch):
    mechanism, worst = laplace(epsilon, failure), 0.0
    reach = mechanism.threshold
    for start in [
        0.0,
        1.0,
        2.5,
        reach - 0.999,
        max(reach - 0.3, 0.0),
        reach,
        reach + 4,
    ]:
        pair = [max(start, 0.0), max(start, 0.0) + 1.0]
        p = np.array([release_probability(mechanism, d, monkeypatch) for d in pair])
        losses = np.abs([np.diff(np.log(p)), np.diff(np.log1p(-p))])
        worst = max(worst, losses.max())
        assert worst <= epsilon * (1 + 1e-9)
    assert worst > 0.9 * epsilon


def test_a_distance_far_from_zero_releases(monkeypatch):
    mechanism = laplace(1.0, 1e-6)
    assert release_probability(mechanism, 40.0, monkeypatch) > 1 - 1e-9
    for noise in ("grid", "float"):
        mechanism = laplace(1.0, 1e-6, noise)
        assert mechanism([1, 2], 1e9, as_generator(0)) == [1, 2]
        assert mechanism([1, 2], 0.0, as_generator(0)) == NO_ANSWER


def test_half_the_threshold_is_caught(monkeypatch):
    class Half(StableRelease):
        @property
        def threshold(self):
            return super().threshold / 2

    assert release_probability(Half(1.0, 1e-3, "laplace"), 0.0, monkeypatch) > 1e-3


@kinds
@pytest.mark.statistical
def test_releases_happen_with_the_probability_stated(noise, seed):
    mechanism, rng, n = laplace(0.5, 0.1, noise), as_generator(seed), 3000
    for distance in (0.0, 2.0):
        hits = sum(mechanism(1, distance, rng) != NO_ANSWER for _ in range(n))
        assert_probability(hits, n, 0.1 * exp(0.5 * distance))
        with pytest.raises(AssertionError):
            assert_probability(hits, n, 0.16 * exp(0.5 * distance))


@kinds
def test_only_the_distance_enters_the_test(noise):
    mechanism = laplace(1.0, 0.1, noise)

    def train(distance):
        return mechanism("value", distance, as_generator(0))

    assert replay(train, (3.0,), (4.0,)).ok
    assert not replay(train, (3.0,), (5.0,)).ok
    assert mechanism.threshold == pytest.approx(log(5.0))
