"""How far noise moves weights: exact quantiles, tables, and descents."""

from math import log, sqrt

import numpy as np
import pytest
from benchmarks.fairness.printed import printed_distance
from scipy import stats
from tests.fairness.people import models, people
from tests.stat import P_FAIL, assert_probability, assert_probability_at_most

from tacit._random import as_generator
from tacit.fairness import noisy_gradient_distance
from tacit.fairness._distances import (
    expected_flips,
    minibatch_distance,
    output_perturbation_distance,
)
from tacit.fairness._margins import linear_margins
from tacit.privacy import Budget, GaussianNoise, calibrate


@pytest.mark.parametrize(
    ("p", "printed", "exact", "ratio"),
    [
        (9, 190.7, 21.67, 2.97),
        (38, 805.3, 61.16, 3.63),
        (100, 2119.3, 135.81, 3.95),
        (1000, 21193.3, 1106.97, 4.38),
    ],
)
def test_squared_distances_are_those_of_the_table(p, printed, exact, ratio):
    ours, theirs = output_perturbation_distance(1.0, p), printed_distance(1.0, p)
    assert theirs**2 == pytest.approx(printed, abs=0.1)
    assert ours**2 == pytest.approx(exact, abs=0.01)
    assert theirs / ours == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(
    ("n", "derivative", "p", "printed", "classical", "analytic", "distance"),
    [
        (182_339, 6, 38, 0.0130602, 4.60214e-4, 3.98446e-4, 0.00311609),
        (1_498_050, 3, 9, 4.18810e-4, 3.03247e-5, 2.67247e-5, 1.24395e-4),
    ],
    ids=["celebA", "folktables"],
)
def test_noise_and_distances_of_the_published_settings(
    n, derivative, p, printed, classical, analytic, distance
):
    sensitivity, delta = 2 * derivative / n, 1 / n**2
    usual = sensitivity * sqrt(2 * log(1.25 / delta))
    ours = sensitivity * calibrate(GaussianNoise, Budget(1.0, delta))
    assert usual == pytest.approx(classical, rel=1e-5)
    assert printed_distance(usual, p) == pytest.approx(printed, rel=1e-5)
    assert ours == pytest.approx(analytic, rel=2e-4)  # calibrated from above
    found = output_perturbation_distance(ours, p)
    assert found == pytest.approx(distance, rel=2e-4)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [1, 9, 38])
def test_noise_passes_its_distance_as_often_as_stated(p, seed):
    """Fails wrongly with probability 2e-6; noise a tenth larger is detected."""
    norms = np.linalg.norm(as_generator(seed).normal(size=(100_000, p)), axis=1)
    distance = output_perturbation_distance(1.0, p)
    assert_probability(int((norms > distance).sum()), 100_000, 0.01)
    with pytest.raises(AssertionError):
        assert_probability(int((1.1 * norms > distance).sum()), 100_000, 0.01)
    assert np.quantile(norms, 0.99) == pytest.approx(distance, rel=0.01)
    assert np.quantile(norms, 0.99) < printed_distance(1.0, p)


def test_the_gap_of_the_solver_is_added():
    plain = output_perturbation_distance(0.1, 10)
    assert output_perturbation_distance(0.1, 10, gap=0.5) == pytest.approx(plain + 0.5)


@pytest.mark.statistical
def test_expected_flips_are_those_of_simulated_releases(seed):
    """Within 4 standard errors, which fails wrongly with probability 1e-4.

    Control: noise a tenth larger or smaller gives another share.
    """
    X, y, _ = people(4000)
    first, _ = models(5, intercept=False)
    found = linear_margins(first, X, y)
    noise = 0.05 * as_generator(seed).normal(size=(200, 5))
    turned = (X @ (first.coef_ + noise).T > 0) != (X @ first.coef_.T > 0)
    shares = turned.mean(axis=0)
    error = shares.std() / sqrt(200)
    expected = expected_flips(found.margins, found.lipschitz, 0.05)
    assert abs(shares.mean() - expected) < 4 * error
    for wrong in (0.9, 1.1):
        other = expected_flips(found.margins, found.lipschitz, wrong * 0.05)
        assert abs(other - expected) > 2 * error


def test_expected_flips_do_not_depend_on_the_number_of_weights():
    assert expected_flips([1.0, 2.0], [1.0, 1.0], 0.0) == 0.0
    assert expected_flips([0.0], [0.0], 1.0) == 0.5
    assert expected_flips([1.0], [2.0], 0.5) == pytest.approx(stats.norm.cdf(-1))


DESCENT = {"n_steps": 60, "smoothness": 4.0, "strong_convexity": 0.2, "start": 3.0}


def descents(curvature, scale, n_runs, seed):
    """Squared distances of noisy descents on a quadratic from its minimum."""
    rng = as_generator(seed)
    w = np.zeros((n_runs, len(curvature)))
    w[:, 0] = DESCENT["start"]
    for _ in range(DESCENT["n_steps"]):
        noise = scale * rng.normal(size=w.shape)
        w = w - (curvature * w + noise) / DESCENT["smoothness"]
    return (w**2).sum(axis=1)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [2, 50])
def test_descents_pass_their_distance_as_often_as_stated(p, seed):
    """At the flattest quadratic exactly; fails wrongly with probability 1e-6."""
    far = noisy_gradient_distance(0.3, p, failure=0.05, **DESCENT) ** 2
    flat = descents(np.full(p, 0.2), 0.3, 20_000, seed)
    assert_probability(int((flat > far).sum()), 20_000, 0.05)
    louder = descents(np.full(p, 0.2), 0.33, 20_000, seed)
    with pytest.raises(AssertionError):
        assert_probability_at_most(int((louder > far).sum()), 20_000, 0.05)
    steep = descents(np.linspace(0.2, 4.0, p), 0.3, 20_000, seed)
    assert_probability_at_most(int((steep > far).sum()), 20_000, 0.05, p_fail=P_FAIL)


def test_the_mean_is_below_the_recursion_and_above_the_one_without_a_dimension(seed):
    p, scale = 200, 0.3
    mean = descents(np.full(p, 0.2), scale, 500, seed).mean()
    left = (1 - 0.2 / 4.0) ** 60 * 9.0
    corrected = left + p * scale**2 / (4.0 * 0.2)
    uncorrected = left + scale**2 / (4.0 * 0.2)
    assert uncorrected < mean < corrected
    # a quantile far above the mean is far below what Markov's inequality gives
    assert noisy_gradient_distance(scale, p, **DESCENT) < 0.3 * sqrt(corrected / 0.01)


def test_steps_without_noise_contract():
    found = noisy_gradient_distance(0.0, 5, **DESCENT)
    assert found == pytest.approx(0.95**60 * 3.0)


@pytest.mark.statistical
def test_stochastic_descents_are_below_their_recursion(seed):
    """Markov is loose: at most a part of ``failure`` passes, never more."""
    rng, p, n = as_generator(seed), 20, 50
    rows = 0.1 * rng.normal(size=(n, p)) / sqrt(p)
    centers = rows - rows.mean(axis=0)  # f_i = |w - c_i|^2 / 2, minimum at zero
    variance = float((centers**2).sum(axis=1).mean())
    given = {"n_steps": 40, "smoothness": 1.0, "strong_convexity": 1.0, "start": 1.0}
    w = np.zeros((5000, p))
    w[:, 0] = 1.0
    for _ in range(40):
        drawn = centers[rng.integers(n, size=5000)]
        w = w - 0.5 * (w - drawn + 0.2 * rng.normal(size=w.shape))
    squared = (w**2).sum(axis=1)
    far = minibatch_distance(0.2, p, gradient_variance=variance, failure=0.1, **given)
    assert squared.mean() < 0.1 * far**2
    # control: the recursion without p does not hold
    assert squared.mean() > 2 * 0.5 * (variance + 0.2**2)
    assert_probability_at_most(int((squared > far**2).sum()), 5000, 0.1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"scale": -1.0}, "scale must be"),
        ({"n_weights": 0}, "n_weights must be"),
        ({"failure": 1.0}, "failure must be"),
        ({"strong_convexity": 5.0}, "smoothness must be at least strong_convexity"),
    ],
)
def test_bad_constants_are_refused_by_name(changed, said):
    given = {"scale": 0.1, "n_weights": 3, **DESCENT} | changed
    with pytest.raises(ValueError, match=said):
        noisy_gradient_distance(given.pop("scale"), given.pop("n_weights"), **given)
