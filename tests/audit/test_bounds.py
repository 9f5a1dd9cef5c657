"""Lower bounds hold at their confidence and are not vacuous."""

import numpy as np
import pytest
from scipy import integrate, stats
from tests.stat import P_FAIL

from tacit.audit.bounds import (
    clopper_pearson_bound,
    clopper_pearson_lower,
    clopper_pearson_upper,
    gaussian_bound,
    gaussian_delta,
    gaussian_epsilon,
    largest_bound,
)

CONFIDENCE = 1 - P_FAIL
BOUNDS = [clopper_pearson_bound, gaussian_bound]


def generator(seed):
    return np.random.Generator(np.random.PCG64(seed))


def gaussian_scores(mu, n, rng):
    return rng.normal(mu, size=n), rng.normal(size=n)


def laplace_scores(epsilon, n, rng):
    return rng.laplace(epsilon, size=n), rng.laplace(size=n)


def gaussian_mu(epsilon, delta):
    low, high = 0.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        if gaussian_delta(epsilon, middle) > delta:
            high = middle
        else:
            low = middle
    return high


@pytest.mark.parametrize("n", [1, 5, 40])
def test_clopper_pearson_fails_as_seldom_as_it_says(n):
    k, p_fail = np.arange(n + 1), 0.03
    lower = clopper_pearson_lower(k, n, p_fail)
    upper = clopper_pearson_upper(k, n, p_fail)
    assert lower[0] == 0
    assert upper[-1] == 1
    worst = 0.0
    # the misses are worst just beside a bound
    for p in np.concatenate([np.linspace(0, 1, 101), lower - 1e-12, upper + 1e-12]):
        p = min(max(p, 0.0), 1.0)
        mass = stats.binom.pmf(k, n, p)
        assert mass[lower > p].sum() <= p_fail * (1 + 1e-6)
        assert mass[upper < p].sum() <= p_fail * (1 + 1e-6)
        worst = max(worst, mass[lower > p].sum())
    assert worst > 0.9 * p_fail


def test_clopper_pearson_for_no_hits_is_in_closed_form():
    assert clopper_pearson_upper(0, 1000, 1e-9) == pytest.approx(1 - 1e-9 ** (1 / 1000))
    assert clopper_pearson_lower(1000, 1000, 1e-9) == pytest.approx(1e-9 ** (1 / 1000))


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_the_gaussian_profile_is_the_hockey_stick_divergence(mu, epsilon):
    def excess(x):
        gap = stats.norm.pdf(x, mu) - np.exp(epsilon) * stats.norm.pdf(x)
        return max(gap, 0.0)

    kink = epsilon / mu + mu / 2
    expected, _ = integrate.quad(excess, kink, kink + 15, epsabs=0, limit=200)
    assert gaussian_delta(epsilon, mu) == pytest.approx(expected, rel=1e-6, abs=1e-14)


def test_gaussian_epsilon_inverts_the_profile_from_below():
    delta = np.array([1e-12, 1e-5, 0.1])[:, None]
    mu = np.array([0.0, 0.01, 0.3, 1.0, 5.0])
    epsilon = gaussian_epsilon(delta, mu)
    assert epsilon.shape == (3, 5)
    assert (epsilon[:, 0] == 0).all()
    inside = epsilon > 0
    reached = gaussian_delta(epsilon, np.where(mu > 0, mu, 1.0))
    target = np.broadcast_to(delta, reached.shape)
    np.testing.assert_allclose(reached[inside], target[inside], rtol=1e-6)
    # where even epsilon = 0 needs less than delta, zero is the answer
    assert (gaussian_delta(0.0, mu[1:]) <= 0.1)[epsilon[2, 1:] == 0].all()


@pytest.mark.statistical
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (2.0, 1e-5), (6.0, 1e-2)])
def test_no_bound_exceeds_a_gaussian_mechanism(bound, epsilon, delta, seed):
    rng, mu = generator(seed), gaussian_mu(epsilon, delta)
    for _ in range(150):
        scores = gaussian_scores(mu, 300, rng)
        assert bound(*scores, delta=delta, confidence=CONFIDENCE).epsilon_lower <= (
            epsilon
        )


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_no_bound_exceeds_a_laplace_mechanism(epsilon, seed):
    rng = generator(seed)
    for _ in range(150):
        found = clopper_pearson_bound(
            *laplace_scores(epsilon, 300, rng), delta=0.0, confidence=CONFIDENCE
        )
        assert found.epsilon_lower <= epsilon


@pytest.mark.statistical
def test_a_loose_confidence_is_used_and_kept(seed):
    # identical sides: any positive bound is wrong
    rng, n, confidence = generator(seed), 400, 0.7
    wrong = sum(
        clopper_pearson_bound(
            *gaussian_scores(0.0, 60, rng), delta=0.0, confidence=confidence
        ).epsilon_lower
        > 0
        for _ in range(n)
    )
    assert stats.binom.sf(wrong - 1, n, 1 - confidence) > P_FAIL
    # control: choosing and judging on the same runs would be wrong more often
    naive = 0
    for _ in range(n):
        a, b = gaussian_scores(0.0, 60, rng)
        found = clopper_pearson_bound(
            np.concatenate([a, a]),
            np.concatenate([b, b]),
            delta=0.0,
            confidence=confidence,
        )
        naive += found.epsilon_lower > 0
    assert stats.binom.sf(naive - 1, n, 1 - confidence) < P_FAIL


@pytest.mark.statistical
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("negate", [False, True])
def test_the_gaussian_bound_reaches_half_the_claim(flip, negate, seed):
    epsilon, delta = 3.0, 1e-5
    scores = gaussian_scores(gaussian_mu(epsilon, delta), 20_000, generator(seed))
    scores = scores[::-1] if flip else scores
    scores = tuple(-s for s in scores) if negate else scores
    found = gaussian_bound(*scores, delta=delta, confidence=CONFIDENCE)
    assert 0.5 * epsilon <= found.epsilon_lower <= epsilon
    assert found.mu_lower <= gaussian_mu(epsilon, delta)


@pytest.mark.statistical
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_clopper_pearson_reaches_half_the_claim_of_laplace(flip, negate, epsilon, seed):
    scores = laplace_scores(epsilon, 20_000, generator(seed))
    scores = scores[::-1] if flip else scores
    scores = tuple(-s for s in scores) if negate else scores
    found = clopper_pearson_bound(*scores, delta=0.0, confidence=CONFIDENCE)
    assert 0.5 * epsilon <= found.epsilon_lower <= epsilon


@pytest.mark.statistical
def test_clopper_pearson_reaches_half_the_claim_of_a_gaussian(seed):
    epsilon, delta = 2.0, 0.1
    scores = gaussian_scores(gaussian_mu(epsilon, delta), 20_000, generator(seed))
    found = clopper_pearson_bound(*scores, delta=delta, confidence=CONFIDENCE)
    assert 0.5 * epsilon <= found.epsilon_lower <= epsilon


@pytest.mark.statistical
def test_half_the_noise_is_caught(seed):
    rng, epsilon, delta = generator(seed), 1.0, 1e-5
    scores = gaussian_scores(2 * gaussian_mu(epsilon, delta), 20_000, rng)
    found = gaussian_bound(*scores, delta=delta, confidence=CONFIDENCE)
    assert found.epsilon_lower > epsilon
    scores = laplace_scores(2 * epsilon, 20_000, rng)
    found = clopper_pearson_bound(*scores, delta=0.0, confidence=CONFIDENCE)
    assert found.epsilon_lower > epsilon


def test_disjoint_scores_give_a_finite_bound_in_closed_form():
    n, p_fail = 1000, (1 - CONFIDENCE) / 2
    found = clopper_pearson_bound(
        np.ones(2 * n), np.zeros(2 * n), delta=0.0, confidence=CONFIDENCE
    )
    always = p_fail ** (1 / n)
    assert found.epsilon_lower == pytest.approx(np.log(always / (1 - always)), rel=1e-6)
    assert sorted(found.hits) == [0, n]
    assert found.trials == (n, n)


@pytest.mark.parametrize("bound", BOUNDS)
def test_constant_scores_show_nothing(bound):
    found = bound(np.ones(100), np.ones(100), delta=1e-5, confidence=CONFIDENCE)
    assert found.epsilon_lower == 0


def test_delta_lowers_the_bound(seed):
    scores = laplace_scores(1.0, 20_000, generator(seed))
    values = [
        clopper_pearson_bound(*scores, delta=d, confidence=CONFIDENCE).epsilon_lower
        for d in (0.0, 0.05, 0.2)
    ]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


def test_sides_may_differ_in_size(seed):
    rng = generator(seed)
    found = clopper_pearson_bound(
        rng.normal(3.0, size=2000),
        rng.normal(size=801),
        delta=0.0,
        confidence=CONFIDENCE,
    )
    assert found.trials == (1000, 401)
    assert found.epsilon_lower > 0


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": 1.0}, "confidence must be"),
        ({"confidence": "a"}, "confidence must be"),
        ({"delta": -0.1}, "delta must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"first": np.ones((2, 2))}, "first must be"),
        ({"second": np.array([1.0, np.nan])}, "second must not contain NaN"),
    ],
)
def test_bad_parameters_are_named(bound, change, message):
    given = {
        "first": np.ones(4),
        "second": np.ones(4),
        "delta": 0.1,
        "confidence": 0.9,
    }
    with pytest.raises(ValueError, match=message):
        bound(**given | change)


def test_a_gaussian_trade_off_has_no_pure_epsilon():
    with pytest.raises(ValueError, match="0 < delta < 1"):
        gaussian_bound(np.ones(4), np.ones(4), delta=0.0, confidence=0.9)


@pytest.mark.parametrize("method", ["clopper-pearson", "gaussian"])
@pytest.mark.parametrize("n_runs", [20, 101])
def test_the_largest_bound_is_that_of_scores_that_never_mix(method, n_runs):
    options = {"delta": 0.01, "confidence": 0.95}
    bound = clopper_pearson_bound if method == "clopper-pearson" else gaussian_bound
    found = bound(np.ones(n_runs), np.zeros(n_runs), **options).epsilon_lower
    assert largest_bound(n_runs, method=method, **options) == pytest.approx(found)


def test_few_runs_show_nothing():
    options = {"confidence": 1 - 1e-6, "delta": 0.0, "method": "clopper-pearson"}
    assert largest_bound(20, **options) == 0.0
