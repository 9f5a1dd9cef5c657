"""Weights from noisy moments, without any stream."""

import numpy as np
import pytest

from tacit.convex import Free, GroupBall, L1Ball, L2Ball, Simplex
from tacit.streaming.incremental import _solve
from tacit.streaming.incremental._sets import (
    Stretched,
    WithConstant,
    absolute_width,
    stretched,
)
from tacit.streaming.incremental._solve import (
    NoisyQuadratic,
    accelerated,
    averaged_descent,
    excess_of_clipped,
    excess_of_descent,
    weights_of,
)

SETS = [
    L2Ball(0.6),
    L1Ball(0.6),
    GroupBall(0.6, group_size=2),
    Simplex(),
    Stretched(Simplex(), 0.5),
    WithConstant(L2Ball(0.6), 3.0),
    WithConstant(L1Ball(0.6), 3.0),
]
every_set = pytest.mark.parametrize("domain", SETS, ids=repr)


def problem(rng, n=400, p=6):
    X = rng.standard_normal((n, p))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.clip(X @ rng.standard_normal(p) + 0.2 * rng.standard_normal(n), -1, 1)
    return X.T @ X, X.T @ y


def noisy(second, first, scale, rng):
    """Moments with the noise that a stream of this deviation has."""
    p = len(first)
    G = rng.standard_normal((p, p))
    E = np.triu(G, 1) / np.sqrt(2)
    E = E + E.T + np.diag(np.diag(G))
    return NoisyQuadratic(
        second + scale * E, first + scale * rng.standard_normal(p), scale, scale
    )


def risk(second, first, W):
    return float(W[:, 0] @ second @ W[:, 0] - 2 * first @ W[:, 0])


def gap(second, first, W, domain):
    """How far from the least risk in the set these weights can be."""
    G = 2 * (second @ W - first[:, None])
    return float(np.vdot(G, W - domain.lmo(G)))


@every_set
def test_without_noise_weights_are_the_least_squares_in_the_set(domain, rng):
    for n in (3, 400):  # fewer rows than weights too
        second, first = problem(rng, n)
        W = weights_of(NoisyQuadratic(second, first, 1e-12, 1e-12), domain)
        assert domain.contains(W)
        assert gap(second, first, W, domain) <= 1e-6


@every_set
def test_a_wrong_minimizer_would_be_seen(domain, rng):
    second, first = problem(rng)
    W = weights_of(NoisyQuadratic(second, first, 1e-12, 1e-12), domain)
    other = domain.prox(W + 0.01 * rng.standard_normal((6, 1)), 1.0)
    assert gap(second, first, other, domain) > 1e-6


@every_set
@pytest.mark.parametrize("solver", ["clipped", "raw", "auto"])
@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e9])
def test_negative_second_moments_are_no_error(domain, solver, scale, rng):
    second, first = problem(rng)
    quadratic = noisy(second, first, scale, rng)
    quadratic = NoisyQuadratic(
        quadratic.second - 1.5 * np.eye(6) * scale, quadratic.first, scale, scale
    )
    W = weights_of(quadratic, domain, solver=solver)
    assert np.isfinite(W).all()
    assert domain.contains(W)


@every_set
def test_sums_of_nothing_are_no_error(domain):
    quadratic = NoisyQuadratic(np.zeros((6, 6)), np.zeros(6), 1e-9, 1e-9)
    for solver in ("clipped", "raw"):
        assert domain.contains(weights_of(quadratic, domain, solver=solver))


def test_without_a_set_the_ridge_fades_with_the_noise(rng):
    second, first = problem(rng)
    exact = np.linalg.solve(second, first)
    far, near = (
        np.abs(weights_of(noisy(second, first, s, rng), Free())[:, 0] - exact).max()
        for s in (1e-3, 1e-9)
    )
    assert near < 1e-6 < far < 1e-2
    drowned = weights_of(noisy(0 * second, 0 * first, 1.0, rng), Free())
    assert np.linalg.norm(drowned) < 5.0


def test_a_constant_has_less_ridge_than_features(rng):
    second, first = np.diag([100.0, 100.0]), np.array([50.0, 50.0])
    quadratic = NoisyQuadratic(second, first, 20.0, 20.0)
    W = weights_of(quadratic, Free(), constant=True)[:, 0]
    assert W[0] < W[1] < 0.5


def test_descent_converges_to_the_minimum_without_noise(rng):
    second, first = problem(rng)
    quadratic, domain = NoisyQuadratic(second, first, 1e-12, 1e-12), L1Ball(0.6)
    best = risk(second, first, accelerated(quadratic, domain, np.zeros((6, 1))))
    derivative = 2 * (np.linalg.norm(second, 2) * 0.6 + np.linalg.norm(first))
    off = []
    for n_steps in (100, 10_000):
        step = 1.2 / np.sqrt(n_steps) / derivative
        W = averaged_descent(quadratic, domain, np.zeros((6, 1)), n_steps, step)
        off.append(risk(second, first, W) - best)
        assert off[-1] <= 1.2 * derivative / np.sqrt(n_steps)
        assert domain.contains(W)
    assert off[1] < off[0] / 5


def test_published_bound_of_descent_is_too_low_and_the_corrected_one_holds():
    # a f(w) = 0.99 w on [-1, 1] whose gradient is off by one, from zero
    derivative, error, n_steps = 0.99, 1.0, 20_000
    pull = (error - derivative) / 2  # the gradient is -2 pull = slope - error
    quadratic = NoisyQuadratic(np.zeros((1, 1)), np.array([pull]), 1.0, 1.0)
    corrected = 2.0 / (np.sqrt(n_steps) * (error + derivative))
    W = averaged_descent(quadratic, L2Ball(1.0), np.zeros((1, 1)), n_steps, corrected)
    excess = derivative * (W[0, 0] + 1.0)
    assert excess > (error + derivative) / np.sqrt(n_steps) + error  # with the radius
    assert excess <= 2 * (error + derivative) / np.sqrt(n_steps) + 2 * error  # diameter


def test_mean_excess_is_within_the_bounds_of_the_solvers(rng):
    p, scale, domain = 40, 5.0, L1Ball(1.0)
    second, first = problem(rng, 2000, p)
    exact = NoisyQuadratic(second, first, 1e-12, 1e-12)
    best = risk(second, first, weights_of(exact, domain))
    excess = {"clipped": [], "raw": []}
    for _ in range(10):
        quadratic = noisy(second, first, scale, rng)
        for solver, found in excess.items():
            W = weights_of(quadratic, domain, solver=solver)
            found.append(risk(second, first, W) - best)
    clipped = excess_of_clipped(scale, scale, p, 1.0)
    assert np.mean(excess["clipped"]) <= clipped
    raw = excess_of_descent(scale, scale, 1.0, absolute_width(domain, p))
    derivative = 2 * (np.linalg.norm(second, 2) + np.linalg.norm(first))
    unfinished = (
        2 * (derivative + 20 * scale * np.sqrt(p)) / np.sqrt(_solve.DESCENT_STEPS)
    )
    assert np.mean(excess["raw"]) <= raw + unfinished
    assert raw < clipped


def test_solver_is_raw_only_for_narrow_sets_of_many_weights_in_noise(rng):
    def chosen(p, scale, n, domain=None):
        quadratic = NoisyQuadratic(np.eye(p) * n / p, np.zeros(p), scale, scale)
        return _solve._better(quadratic, domain or L1Ball(1.0))

    assert chosen(1200, 30.0, 1000) == "raw"
    assert chosen(50, 30.0, 1000) == "clipped"
    assert chosen(1200, 1e-6, 1000) == "clipped"
    assert chosen(1200, 30.0, 1000, L2Ball(1.0)) == "clipped"


@every_set
def test_a_set_in_other_units_has_the_members_times_the_factor(domain, rng):
    wide = stretched(domain, 3.0)
    W = rng.standard_normal((6, 1))
    assert np.allclose(wide.prox(3 * W, 1.0), 3 * domain.prox(W, 1.0))
    assert np.allclose(wide.lmo(W), 3 * domain.lmo(W))
    assert wide.radius == pytest.approx(3 * domain.radius)
    assert wide.diameter(6) == pytest.approx(3 * domain.diameter(6))
    assert wide.width(6) == pytest.approx(3 * domain.width(6))
    assert wide.contains(wide.lmo(W))
    assert not wide.contains(4 * wide.lmo(W))
    assert wide.value(wide.lmo(W)) == 0
    assert wide.value(50 + W) == np.inf


@every_set
@pytest.mark.statistical
def test_absolute_width_bounds_the_mean_of_the_largest_product(domain, rng):
    draws = [rng.standard_normal((6, 1)) for _ in range(300)]
    largest = [
        max(-np.vdot(G, domain.lmo(G)), np.vdot(G, domain.lmo(-G))) for G in draws
    ]
    error = 5 * np.std(largest) / np.sqrt(len(draws))
    assert np.mean(largest) - error <= absolute_width(domain, 6)


def test_an_intercept_is_bound_by_no_set(rng):
    second, first = problem(rng)
    first[-1] = 2.0 * second[-1, -1]
    exact = NoisyQuadratic(second, first, 1e-12, 1e-12)
    for inner in (L2Ball(0.3), L1Ball(0.3)):
        W = weights_of(exact, WithConstant(inner, 10.0))
        assert inner.contains(W[:-1])
        assert abs(W[-1, 0]) > 1.0
        # at its best given the other weights
        derivative = second[-1] @ W[:, 0] - first[-1]
        assert abs(derivative) < 1e-6
