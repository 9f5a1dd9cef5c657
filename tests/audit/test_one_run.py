"""Bounds from one run: against linear programs, exact distributions and simulations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from scipy.optimize import linprog
from tests.stat import P_FAIL, assert_probability_at_most

from tacit._random import as_generator
from tacit.audit import one_run_bound, one_run_p_value
from tacit.audit.bounds import gaussian_delta, gaussian_epsilon
from tacit.audit.one_run import chosen_and_judged, guesses_from_scores


def largest_chance(m, r, v, promises):
    """Return the best chance of v right guesses, by a linear program.

    Its variables are the chances of each number of right guesses under a mechanism that
    treats all canaries alike, and what each guarantee leaves to delta.
    """
    n_slack = 2 * r
    size = r + 1 + len(promises) * n_slack
    rows, bounds = [], []
    for i, (epsilon, delta) in enumerate(promises):
        start = r + 1 + i * n_slack
        for k in range(1, r + 1):
            for there, back, slot in ((k, k - 1, k - 1), (k - 1, k, r + k - 1)):
                row = np.zeros(size)
                weights = {k: k, k - 1: r - k + 1}
                row[there] = weights[there]
                row[back] = -np.exp(epsilon) * weights[back]
                row[start + slot] = -1
                rows.append(row)
                bounds.append(0.0)
        row = np.zeros(size)
        row[start : start + n_slack] = 1
        rows.append(row)
        bounds.append(m * delta)
    total = np.zeros((1, size))
    total[0, : r + 1] = 1
    aim = np.zeros(size)
    aim[v : r + 1] = -1
    found = linprog(aim, np.array(rows), bounds, total, [1.0])
    return -found.fun, found.x[: r + 1]


def published_p_value(m, r, v, epsilon, delta):
    """Return Theorem 5.2 of Steinke, Nasr and Jagielski (2023)."""
    law = stats.binom(r, special.expit(epsilon))
    steps = np.arange(1, v + 1)
    alpha = np.max((law.cdf(v - 1) - law.cdf(v - 1 - steps)) * 2 / steps)
    return law.sf(v - 1) + m * delta * alpha


CASES = [
    (1, 1, 1, 1.0, 0.1),
    (2, 2, 2, 1.0, 0.05),
    (5, 5, 4, 0.5, 0.02),
    (10, 6, 5, 1.0, 0.01),
    (40, 20, 18, 1.0, 0.002),
    (20, 20, 11, 0.3, 0.0),
    (30, 30, 27, 0.0, 0.001),
]


@pytest.mark.parametrize(("m", "r", "v", "epsilon", "delta"), CASES)
def test_no_mechanism_beats_the_p_value_and_one_attains_it(m, r, v, epsilon, delta):
    bound = one_run_p_value(v, r, m, epsilon=epsilon, delta=delta)
    best, _ = largest_chance(m, r, v, [(epsilon, delta)])
    assert bound == pytest.approx(best, rel=1e-6)
    if delta > 0:
        # control: without the term for delta it would be too small
        assert one_run_p_value(v, r, m, epsilon=epsilon) < 0.999 * best


def test_the_published_term_for_delta_is_too_small_for_two_canaries():
    m = r = 2
    v, epsilon, delta = 1, 1.0, 1 / 16
    _, chances = largest_chance(m, r, v, [(epsilon, delta)])
    # the mechanism itself, over all coins and all answers
    ways = np.array([1, 2, 1])
    answers = np.array(list(product([-1, 1], repeat=m)))
    right = (answers[:, None, :] == answers).sum(axis=2)
    laws = (chances / ways)[right]
    neighbors = (answers[:, None, :] != answers).sum(axis=2) == 1
    excess = np.maximum(laws[:, None, :] - np.exp(epsilon) * laws, 0).sum(axis=2)
    assert excess[neighbors].max() <= delta * (1 + 1e-9)
    seen = np.mean((laws * (right >= v)).sum(axis=1))
    assert seen == pytest.approx(one_run_p_value(v, r, m, epsilon=epsilon, delta=delta))
    assert seen == pytest.approx(0.9490, abs=1e-4)
    assert published_p_value(m, r, v, epsilon, delta) == pytest.approx(0.9458, abs=1e-4)


@pytest.mark.parametrize("r", [80, 300, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_where_audits_judge_the_p_value_is_below_the_published_one(r, epsilon):
    law = stats.binom(r, special.expit(epsilon))
    v = min(int(law.isf(0.02)) + 1, r)
    assert law.sf(v - 1) < 0.05
    for m in (r, 10 * r):
        delta = 0.1 / m
        ours = float(one_run_p_value(v, r, m, epsilon=epsilon, delta=delta))
        assert ours < published_p_value(m, r, v, epsilon, delta)


@given(
    r=st.integers(1, 2000),
    share=st.floats(0, 1),
    epsilon=st.floats(0, 50),
    delta=st.floats(0, 0.5),
)
def test_p_values_are_chances_and_grow_with_the_promise(r, share, epsilon, delta):
    v = int(share * r)
    grid = epsilon + np.array([0.0, 0.1, 1.0])
    values = one_run_p_value(v, r, r, epsilon=grid, delta=delta)
    assert np.all((values >= 0) & (values <= 1))
    assert np.all(np.diff(values) >= -1e-9)


@pytest.mark.parametrize(
    ("r", "v", "epsilon"),
    [
        (10_000, 9_000, 1.0),  # the tail is no float
        (5_000, 4_600, 0.8),
        (32_768, 32_000, 2.5),
        (32_768, 20_000, 0.0),
        (10_000, 10_000, 0.05),
        (1_000, 950, 0.3),  # it is one, if a small one
        (10_000, 7_500, 1.0),
    ],
)
def test_the_term_for_delta_is_right_where_tails_are_too_small_for_a_float(
    r, v, epsilon
):
    k = np.arange(v, r + 1)
    logs = (
        special.gammaln(r + 1)
        - special.gammaln(k + 1)
        - special.gammaln(r - k + 1)
        + k * special.log_expit(epsilon)
        + (r - k) * special.log_expit(-epsilon)
    )
    tail = special.logsumexp(logs)
    beta, ratio = np.exp(tail), np.exp(tail - logs[0])
    delta = 0.01
    exact = beta + r * delta * (1 - beta) * ratio / v
    found = float(one_run_p_value(v, r, r, epsilon=epsilon, delta=delta))
    # never below, but for round-off, and hardly above
    assert exact * (1 - 1e-8) <= found <= exact * 1.002
    if v < r:
        # control: one point in place of the tail is far below
        assert beta + r * delta * (1 - beta) / v < 0.99 * exact


@pytest.mark.parametrize("confidence", [0.9, 0.999])
@pytest.mark.parametrize(("m", "r", "epsilon", "delta"), [
    (200, 200, 1.0, 0.0),
    (100, 80, 2.0, 0.0),
    (60, 30, 1.0, 1e-5),
])  # fmt: skip
def test_the_bound_is_above_the_truth_no_more_often_than_allowed(
    m, r, epsilon, delta, confidence
):
    # exactly: the distribution of the worst mechanism for each count at which it would
    # be wrong
    truth = np.ones(m, dtype=int)
    lower = []
    for v in range(r + 1):
        guesses = np.repeat([1, -1, 0], [v, r - v, m - r])
        terms = {"delta": delta, "confidence": confidence}
        lower.append(one_run_bound(guesses, truth, **terms).epsilon_lower)
    assert lower == sorted(lower)
    wrong = np.flatnonzero(np.array(lower) > epsilon)
    chance = one_run_p_value(int(wrong[0]), r, m, epsilon=epsilon, delta=delta)
    assert chance <= (1 - confidence) * (1 + 1e-6)
    # control: one count less would be wrong too often, so nothing is given away
    less = one_run_p_value(int(wrong[0]) - 1, r, m, epsilon=epsilon, delta=delta)
    assert less > 1 - confidence


@pytest.mark.parametrize(("m", "r", "v", "mu"), [(30, 30, 22, 0.5), (40, 20, 18, 1.0)])
def test_no_gaussian_mechanism_beats_the_gaussian_bound(m, r, v, mu):
    epsilons = np.linspace(0.01, 4 * mu, 12)
    deltas = gaussian_delta(epsilons, mu)
    promises = list(zip(epsilons, deltas, strict=True))
    best, _ = largest_chance(m, r, v, promises)
    bound = one_run_p_value(v, r, m, epsilon=epsilons, delta=deltas).min()
    assert best <= bound * (1 + 1e-9)
    # and it is not far above what some mechanism of these guarantees does
    assert bound < 1.5 * best
    # at this confidence, mu is not called too small
    truth = np.ones(m, dtype=int)
    guesses = np.repeat([1, -1, 0], [v, r - v, m - r])
    terms = {"delta": 1e-3, "method": "gaussian"}
    at = one_run_bound(guesses, truth, confidence=1 - best, **terms)
    assert at.mu_lower <= mu


def gaussian_scores(m, mu, rng):
    truth = np.where(rng.random(m) < 0.5, 1, -1)
    return truth * mu / 2 + rng.normal(size=m), truth


@pytest.mark.statistical
def test_choosing_an_attack_does_not_make_the_bound_wrong(seed):
    rng = as_generator(seed)
    epsilon, n_audits, confidence = 1.0, 100, 0.9
    wrong = {1.0: 0, 2.0: 0}
    for factor in wrong:
        for _ in range(n_audits):
            truth = np.where(rng.random(200) < 0.5, 1, -1)
            lies = rng.random(200) > special.expit(epsilon * factor)
            told = np.where(lies, -truth, truth).astype(float)
            # attacks that are worse, or nothing, and one that is upside down
            others = rng.normal(size=(5, 200))
            candidates = np.vstack([others, told + 3 * others[0], -told])
            found = chosen_and_judged(
                candidates, truth, delta=0.0, confidence=confidence, method="any"
            )
            wrong[factor] += found.bound.epsilon_lower > epsilon
    assert_probability_at_most(wrong[1.0], n_audits, 1 - confidence)
    # control: answers with half the noise are refuted
    with pytest.raises(AssertionError):
        assert_probability_at_most(wrong[2.0], n_audits, 1 - confidence)


@pytest.mark.statistical
@pytest.mark.parametrize(("method", "times"), [("any", 16.0), ("gaussian", 8.0)])
def test_gaussian_noise_is_not_refuted_and_much_less_is(method, times, seed):
    # fails wrongly with probability at most P_FAIL, as that is allowed to each bound
    rng = as_generator(seed)
    # so small that as many canaries times delta are well below P_FAIL
    mu, delta = 0.5, 1e-12
    guaranteed = float(gaussian_epsilon(delta, mu))
    terms = {"delta": delta, "confidence": 1 - P_FAIL, "method": method}
    for factor, refuted in ((1.0, False), (times, True)):
        scores, truth = gaussian_scores(8000, mu * factor, rng)
        found = chosen_and_judged(scores[None], truth, **terms)
        assert found.bound.refutes(guaranteed) is refuted
        assert found.position == 0
        np.testing.assert_array_equal(found.scores, scores[1::2])
        np.testing.assert_array_equal(found.truth, truth[1::2])
        assert found.bound.n_canaries == 4000
        assert found.bound.epsilon_lower > 0.1  # not for want of power


def test_a_perfect_guesser_shows_what_so_many_canaries_can():
    truth = np.array([1, -1] * 100)
    found = one_run_bound(truth, truth, confidence=0.95)
    # q^200 = 0.05
    q = 0.05 ** (1 / 200)
    assert found.epsilon_lower == pytest.approx(np.log(q / (1 - q)), rel=1e-6)
    assert one_run_bound(-truth, truth).epsilon_lower == 0
    assert one_run_bound(0 * truth, truth).epsilon_lower == 0
    assert found.refutes(4.0)
    assert not found.refutes(5.0)
    assert "200 of 200 guesses right" in str(found)
    assert found.to_dict()["correct"] == 200


def test_guesses_take_the_ends_and_leave_the_middle():
    scores = [3.0, -1.0, 0.0, 9.0, -7.0, 1.0]
    np.testing.assert_array_equal(guesses_from_scores(scores, 2), [0, 0, 0, 1, -1, 0])
    # ranks above the center: 3, then 9; all others are below
    found = guesses_from_scores(scores, 6, 2.0)
    np.testing.assert_array_equal(found, [1, -1, -1, 1, -1, -1])
    found = guesses_from_scores(scores, 2, 2.0)
    np.testing.assert_array_equal(found, [0, -1, 0, 0, -1, 0])
    found = guesses_from_scores(scores, 2, np.inf)
    np.testing.assert_array_equal(found, [0, -1, 0, 0, -1, 0])
    found = guesses_from_scores(scores, 2, -np.inf)
    np.testing.assert_array_equal(found, [1, 0, 0, 1, 0, 0])
    with pytest.raises(ValueError, match="n_guesses"):
        guesses_from_scores(scores, 7)
    with pytest.raises(ValueError, match="without NaN"):
        guesses_from_scores([np.nan], 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"guesses": [2, 1]}, "guesses must be"),
        ({"guesses": [1]}, "one length"),
        ({"truth": [0, 1]}, "1 or -1 for every canary"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": "a"}, "confidence"),
        ({"delta": -0.1}, "0 <= delta < 1"),
        ({"delta": "a"}, "delta"),
        ({"method": "gaussian"}, "0 < delta < 1"),
        ({"guesses": [True, False]}, "not True and False"),
        ({"method": "guess"}, "method must be one of"),
    ],
)
def test_what_is_no_guess_is_refused(change, words):
    given_ = {"guesses": [1, 1], "truth": [1, -1]} | change
    with pytest.raises(ValueError, match=words):
        one_run_bound(**given_)
    with pytest.raises(ValueError, match="in this order"):
        one_run_p_value(3, 2, 5, epsilon=1.0)
