"""The data-dependent ridge: its lemmas, its exact density, and its erratum."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import special
from tests.solvers.densities import excess
from tests.solvers.running import coefficients
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording
from tacit.convex import L2Ball, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AdaptiveRidge, Problem, QuadraticPerturbation
from tacit.solvers._least_squares.quadratic import (
    gradient_sensitivity,
    least_squares_sums,
)
from tacit.solvers.adaptive_ridge import EIGEN_UNITS, determinant_offset

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE


def problem_of(n=40, p=2, radius=1.0, **more):
    return Problem(Squared(), RowBounds(), n, p, regularizer=L2Ball(radius), **more)


def lifted(M, floor):
    values, axes = np.linalg.eigh(M)
    return (axes * np.maximum(values, floor)) @ axes.T


def unrotated(M, floor):
    """Return what the printed algorithm has: the lift on the wrong axes."""
    return M + np.diag(np.maximum(floor - np.linalg.eigvalsh(M), 0.0))


def random_moments(rng, p, floor):
    """Return sums of squares with eigenvalues around the floor."""
    axes = np.linalg.qr(rng.normal(size=(p, p)))[0]
    values = floor * np.exp(rng.normal(size=p) * rng.choice([0.05, 0.5, 2.0]))
    return (axes * values) @ axes.T


def unit_rows(rng, p, M):
    """Return two rows of norm one, at random or along eigenvectors."""
    axes = np.linalg.eigh(M)[1]
    choices = [rng.normal(size=p), axes[:, 0] + 0.1 * rng.normal(size=p), axes[:, -1]]
    rows = [choices[rng.integers(3)] for _ in range(2)]
    return [x / np.linalg.norm(x) for x in rows]


def neighbors_of(rng, p, floor, neighbors):
    common = random_moments(rng, p, floor)
    x, z = unit_rows(rng, p, common)
    first = common + np.outer(x, x)
    if neighbors is ADD:
        return first, common, np.outer(x, x)
    return first, common + np.outer(z, z), np.outer(x, x) - np.outer(z, z)


def worst_log_ratio(rng, neighbors, lift, cases=1500):
    """Return the largest change of a log-determinant in units of its bound."""
    worst = 0.0
    for _ in range(cases):
        p = int(rng.integers(2, 7))
        fraction = rng.choice([0.02, 0.2, 0.6, 0.95])
        pair = neighbors_of(rng, p, 1 / fraction, neighbors)[:2]
        u = rng.normal(size=p)
        u /= np.linalg.norm(u)
        c1, c2 = np.exp(rng.normal(size=2) * 4) * rng.choice([0.0, 1.0], size=2)
        radial = c1 * np.eye(p) + c2 * np.outer(u, u)
        one, two = (np.linalg.slogdet(lift(M, 1 / fraction) + radial)[1] for M in pair)
        worst = max(worst, abs(one - two) / determinant_offset(neighbors, fraction))
    return worst


@each_relation
def test_the_determinant_moves_no_further_than_stated(neighbors, seed):
    worst = worst_log_ratio(as_generator(seed), neighbors, lifted)
    assert 0.3 < worst <= 1 + 1e-9


def test_the_printed_lift_moves_the_determinant_too_far(seed):
    # the erratum: the lift must be rotated to the eigenvectors
    assert worst_log_ratio(as_generator(seed), ADD, unrotated) > 2


def test_without_a_penalty_one_row_multiplies_the_determinant_as_stated(seed):
    rng = as_generator(seed)
    ratios = []
    for _ in range(1500):
        floor = 1 / rng.choice([0.05, 0.5, 0.95])
        more, fewer, _ = neighbors_of(rng, int(rng.integers(1, 7)), floor, ADD)
        logs = [np.linalg.slogdet(lifted(M, floor))[1] for M in (more, fewer)]
        ratios.append((logs[0] - logs[1]) / np.log1p(1 / floor))
    assert min(ratios) >= -1e-9
    assert 0.9 < max(ratios) <= 1 + 1e-9


@each_relation
def test_lifting_moves_no_matrices_apart(neighbors, seed):
    rng = as_generator(seed)
    largest, indefinite = 0.0, False
    for _ in range(1500):
        one, two, moved = neighbors_of(rng, int(rng.integers(2, 7)), 2.0, neighbors)
        K = lifted(one, 2.0) - lifted(two, 2.0)
        far = np.linalg.norm(moved)
        assert np.linalg.norm(K) <= far + 1e-9
        largest = max(largest, np.linalg.norm(K) / max(far, 0.1))
        indefinite |= neighbors is ADD and np.linalg.eigvalsh(K)[0] < -1e-3
        assert far <= np.sqrt(neighbors.rows_changed) * (1 + 1e-9)
    assert largest > 0.9
    # a row more does not only add: hence no bound from the order of matrices
    assert indefinite == (neighbors is ADD)


@each_relation
def test_no_neighbors_move_the_gradient_further_than_stated(neighbors, seed):
    rng = as_generator(seed)
    for radius in (0.3, 1.0, 5.0):
        turn = np.sqrt(neighbors.rows_changed)
        bound = gradient_sensitivity(problem_of(radius=radius), neighbors, turn)
        largest = 0.0
        for _ in range(800):
            M = random_moments(rng, 3, 2.0)
            x, z = unit_rows(rng, 3, M)
            one, pull = M + np.outer(x, x), x
            two = M
            if neighbors is REPLACE:
                two, pull = M + np.outer(z, z), x + z
            K = lifted(one, 2.0) - lifted(two, 2.0)
            moved = radius * np.linalg.norm(K, 2) + np.linalg.norm(pull)
            largest = max(largest, moved)
        assert 0.6 * bound < largest <= bound * (1 + 1e-9)


def line_masses(plan, X, y, n_cells=1500):
    """Return the mass of one weight in cells of its interval, with both ends."""
    tilted = plan.tilted
    radius = tilted.problem.regularizer.radius
    w = np.linspace(-radius, radius, n_cells + 1)
    curved = max(float(np.sum(X**2)), tilted.ridge)
    z = (curved * w - X[:, 0] @ y) / (tilted.multiplier * tilted.sensitivity)
    z = np.r_[-np.inf, z, np.inf]
    low, high = np.diff(special.ndtr(z)), -np.diff(special.ndtr(-z))
    return np.where(z[1:] <= 0, low, high)


def line_pairs(neighbors):
    for others in (0, 3, 12):
        X, y = np.ones((others, 1)), np.resize([1.0, -1.0], others)
        more = np.vstack([X, [[1.0]]]), np.r_[y, 1.0]
        if neighbors is ADD:
            yield more, (X, y)
        else:
            yield more, (more[0], np.r_[y, -1.0])
            yield more, (np.vstack([X, [[0.4]]]), np.r_[y, -1.0])


def plane_masses(plan, M, v, n_rings=90, n_angles=240):
    """Return the mass of two weights in cells of the disc and on arcs of its rim.

    On the rim the tilt is ``v - (H + k) B u`` with a multiplier k that is not negative;
    the density of the angle is the integral over k of the normal density times
    ``B^2 (t H t + k)``, t the tangent.
    """
    tilted = plan.tilted
    radius = tilted.problem.regularizer.radius
    scale = tilted.multiplier * tilted.sensitivity
    H = lifted(M, tilted.ridge)

    def density(b):
        return np.exp(-np.sum(b * b, -1) / (2 * scale**2)) / (2 * np.pi * scale**2)

    angles = 2 * np.pi * np.arange(n_angles) / n_angles
    u = np.stack([np.cos(angles), np.sin(angles)], -1)
    t = np.stack([-u[:, 1], u[:, 0]], -1)
    rings = radius * (np.arange(n_rings) + 0.5) / n_rings
    w = (rings[:, None, None] * u).reshape(-1, 2)
    cells = np.repeat(rings * radius / n_rings * 2 * np.pi / n_angles, n_angles)
    inside = density(v - w @ H) * np.linalg.det(H) * cells
    pull = 12 * scale + np.linalg.norm(v)
    k, gap = np.linspace(0, pull / radius, 400, retstep=True)
    b = v - radius * (u @ H)[:, None] - radius * k[:, None] * u[:, None]
    across = np.einsum("ni,ij,nj->n", t, H, t)[:, None] + k
    rim = np.sum(density(b) * radius**2 * across, axis=1) - (
        density(b[:, 0]) * radius**2 * across[:, 0] / 2
    )
    return np.r_[inside, rim * gap * 2 * np.pi / n_angles]


def worst_ratio(pairs, claimed, epsilons):
    return max(
        excess(p, q, epsilon) / claimed.delta(epsilon)
        for sides in pairs
        for p, q in permutations(sides)
        for epsilon in epsilons
    )


@each_relation
def test_exact_densities_on_a_line_keep_the_claim(neighbors):
    budget = Budget(2.0, 1e-2, neighbors)
    plan = AdaptiveRidge(ridge=8.0).plan(problem_of(6, 1), budget)
    claimed = plan.tilted.event.curve(neighbors)

    def measured(plan):
        pairs = [
            [line_masses(plan, *data) for data in pair]
            for pair in line_pairs(neighbors)
        ]
        assert all(abs(side.sum() - 1) < 1e-9 for pair in pairs for side in pair)
        return worst_ratio(pairs, claimed, (0.5, 1.0, 2.0))

    assert measured(plan) <= 1
    tilted = replace(plan.tilted, multiplier=plan.tilted.multiplier / 3)
    assert measured(replace(plan, tilted=tilted)) > 1


@each_relation
def test_exact_densities_in_a_plane_keep_the_claim(neighbors, seed):
    budget = Budget(2.0, 1e-2, neighbors)
    plan = AdaptiveRidge(ridge=8.0).plan(problem_of(6, 2), budget)
    claimed = plan.tilted.event.curve(neighbors)
    rng = as_generator(seed)
    data = []
    for _ in range(5):
        axes = np.linalg.qr(rng.normal(size=(2, 2)))[0]
        M = (axes * (8.0 + rng.normal(size=2) * 2)) @ axes.T
        x, z = unit_rows(rng, 2, M)
        v = rng.normal(size=2) * 3
        other = (M, v) if neighbors is ADD else (M + np.outer(z, z), v - z)
        data.append(((M + np.outer(x, x), v + x), other))

    def measured(plan):
        pairs = [[plane_masses(plan, *side) for side in pair] for pair in data]
        assert all(abs(side.sum() - 1) < 0.01 for pair in pairs for side in pair)
        return worst_ratio(pairs, claimed, (0.5, 1.0, 2.0))

    assert measured(plan) <= 1
    tilted = replace(plan.tilted, multiplier=plan.tilted.multiplier / 6)
    assert measured(replace(plan, tilted=tilted)) > 1


@each_relation
def test_a_pure_budget_bounds_the_loss_itself(neighbors):
    plan = AdaptiveRidge(ridge=8.0, law="laplace").plan(
        problem_of(6, 1), Budget(1.0, 0.0, neighbors)
    )
    curve = plan.event.curve(neighbors)
    assert curve.slack == 0
    assert 0.98 < curve.pure <= 1
    offset = determinant_offset(neighbors, 1 / 8)
    pure = plan.tilted.event.curve(neighbors).pure
    assert pure == pytest.approx(offset + 1 / plan.tilted.multiplier)


def sample(seed, n=400, p=3):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p)) / np.sqrt(p)
    return X, np.clip(X @ rng.normal(size=p) + 0.1 * rng.normal(size=n), -1, 1)


def test_directions_with_rows_enough_get_no_ridge(seed):
    X, y = sample(seed)
    problem = problem_of(400, 3, radius=9.0)
    rows = bounded_rows(X, y, problem.bounds)
    second, first = least_squares_sums(problem, rows)
    best = np.linalg.solve(second, first)
    floor = 0.9 * np.linalg.eigvalsh(second)[0]
    solver = AdaptiveRidge(ridge=floor)
    W = coefficients(solver, solver.plan(problem, Budget(1e7, 1e-5)), rows, seed)
    np.testing.assert_allclose(W[:, 0], best, rtol=0, atol=1e-4)
    # the plain ridge of the same size is off by what it shrinks
    plain = QuadraticPerturbation(ridge=floor)
    plan = plain.plan(problem, Budget(1e7, 1e-5))
    away = coefficients(plain, plan, rows, seed)[:, 0] - best
    assert np.abs(away).max() > 0.01
    # and so is the lift once it is above the least eigenvalue
    high = AdaptiveRidge(ridge=2 * floor)
    plan = high.plan(problem, Budget(1e7, 1e-5))
    away = coefficients(high, plan, rows, seed)[:, 0] - best
    assert np.abs(away).max() > 0.01


def test_tends_to_least_squares_in_the_ball(seed):
    X, y = sample(seed)
    problem = problem_of(400, 3, radius=0.5)
    rows = bounded_rows(X, y, problem.bounds)
    second, first = least_squares_sums(problem, rows)
    w = np.zeros(3)
    for _ in range(4000):
        w = w - (second @ w - first) / np.linalg.norm(second, 2)
        w = w / max(1.0, np.linalg.norm(w) / 0.5)
    solver = AdaptiveRidge(ridge=20.0)
    W = coefficients(solver, solver.plan(problem, Budget(1e7, 1e-5)), rows, seed)
    assert np.linalg.norm(W) <= 0.5 * (1 + 1e-12)
    np.testing.assert_allclose(W[:, 0], w, rtol=0, atol=1e-4)


def test_the_minimum_satisfies_its_conditions(seed):
    problem = problem_of(300, 8, radius=0.4, ridge=3.0)
    solver = AdaptiveRidge(ridge=60.0, noise="float")
    plan = solver.plan(problem, Budget(2.0, 1e-5))
    rng = as_generator(seed)
    rows = bounded_rows(*sample(seed, 300, 8), problem.bounds)
    second, first = least_squares_sums(problem, rows)
    H = lifted(second + 3.0 * np.eye(8), 60.0)
    for _ in range(30):
        with recording() as tape:
            solver.run(plan, rows, rng)
        tilt, w = tape.releases[0].output[:, 0], tape.releases[1].output[:, 0]
        G = H @ w - first + tilt
        if np.linalg.norm(w) > 0.4 * (1 - 1e-12):
            G = G - (G @ w) / (w @ w) * w
        assert np.linalg.norm(G) < 1e-10 * np.linalg.norm(tilt)


@pytest.mark.parametrize("p", [1, 5, 40])
def test_eigenvectors_are_off_by_far_less_than_is_provided_for(p, seed):
    rng = as_generator(seed)
    for spread in (0.0, 6.0):
        scale = 10.0 ** (-spread * np.arange(p) / p)
        X = rng.normal(size=(300, p)) * scale
        M = X.T @ X
        values, axes = np.linalg.eigh(M)
        exact, wide = M.astype(np.longdouble), axes.astype(np.longdouble)
        off = np.linalg.norm(((wide * values) @ wide.T - exact).astype(float))
        skew = np.linalg.norm((wide.T @ wide - np.eye(p)).astype(float)) * values[-1]
        unit = 2.0**-53 * values[-1] * p**1.5
        assert off + 4.2 * skew < EIGEN_UNITS / 2 * unit


@pytest.mark.parametrize(
    ("choices", "epsilon", "message"),
    [
        ({"ridge": 1.0}, 1.0, "above 1, the squared row norm"),
        ({"ridge": 2.0}, 1.0, "leaves nothing of epsilon"),
    ],
)
def test_a_floor_that_is_too_low_is_refused(choices, epsilon, message):
    with pytest.raises(PlanError, match=message):
        AdaptiveRidge(**choices).plan(problem_of(), Budget(epsilon, 1e-5))
