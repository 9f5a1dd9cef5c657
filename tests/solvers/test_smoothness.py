"""Private mean squares of columns: their noise, their floor and their price."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy import sparse, stats
from tests.solvers.running import assert_reported, coefficients
from tests.stat import assert_detects, assert_follows
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import assert_replays, replay
from tacit.convex import Logistic, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import DiscreteGaussian
from tacit.privacy import Budget, GaussianNoise, Neighbors
from tacit.solvers import CoordinateDescent, Problem
from tacit.solvers._coordinates.columns import Columns
from tacit.solvers._coordinates.rules import (
    ADDED,
    LEAST,
    MeanSquares,
    check_smoothness,
    mean_squares,
)

BUDGET = Budget(1.0, 1e-6)


def problem_of(n_rows=1000, n_features=6, constant=None, x_norm=1.0):
    bounds = RowBounds(x_norm, norm="linf")
    return Problem(Squared(), bounds, n_rows, n_features, constant=constant)


def columns_of(X, layout=np.asarray):
    return Columns(layout(X), np.zeros(len(X)), Squared())


def private(n_rows, n_features, multiplier=5.0, x_norm=1.0, noise="grid"):
    return MeanSquares(n_rows, x_norm, n_features, (), multiplier, noise)


@each_relation
@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.5])
def test_squares_cost_their_share_and_all_is_spent(neighbors, fraction):
    budget = Budget(1.0, 1e-6, neighbors)
    solver = CoordinateDescent(7, smoothness="private", smoothness_share=fraction)
    plan = solver.plan(problem_of(), budget)
    (squares,) = plan.squares.events
    parts = squares.multiplier**-2, plan.n_updates * plan.multiplier**-2
    assert parts[0] / sum(parts) == pytest.approx(fraction)
    whole = GaussianNoise(sum(parts) ** -0.5).curve(neighbors)
    assert whole.epsilon(1e-6) == pytest.approx(1.0, rel=2e-4)
    assert plan.event.curve(neighbors).epsilon(1e-6) == pytest.approx(1.0, rel=2e-4)
    # public squares cost nothing: all the noise that is saved goes to the updates
    unconstrained = CoordinateDescent(7, smoothness="public").plan(problem_of(), budget)
    ratio = plan.multiplier / unconstrained.multiplier
    assert ratio == pytest.approx(1 / sqrt(1 - fraction), rel=2e-4)


@pytest.mark.statistical
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("noise", ["grid", "float"])
def test_noise_of_a_mean_square_is_as_stated(layout, noise, seed):
    rng = as_generator(seed)
    n, p, x_norm = 50, 2000, 3.0
    X = rng.uniform(-x_norm, x_norm, size=(n, p))
    squares = private(n, p, multiplier=0.5, x_norm=x_norm, noise=noise)
    expected = 0.5 * sqrt(p) * x_norm**2 / n
    assert squares.std == pytest.approx(expected, rel=1e-6)
    with recording() as tape:
        squares(columns_of(X, layout), rng)
    (release,) = tape.releases
    assert release.sensitivity == pytest.approx(sqrt(p) * squares.mechanism.units)
    assert release.norm == "l2"
    noisy = release.output / squares.mechanism.units * x_norm**2 / n
    errors = noisy - (X**2).mean(axis=0)
    assert_follows(errors / expected, stats.norm.cdf)
    assert_detects(errors / expected / 1.5, stats.norm.cdf)


def test_squares_are_safe_to_divide_by_and_no_larger_than_can_be(seed):
    squares = private(100, 400, multiplier=3.0)
    off = squares.std
    noisy = as_generator(seed).normal(0.2, off, size=4000)
    safe = squares.safe(noisy)
    assert (safe >= LEAST * off).all()
    assert (safe >= np.minimum(noisy + ADDED * off, 1.0)).all()
    extremes = squares.safe(np.array([-np.inf, -1e300, 0.0, 1e300]))
    np.testing.assert_allclose(
        extremes, off * np.array([LEAST] * 3 + [LEAST + 1 / off])
    )


def test_a_column_is_hardly_ever_taken_for_half_as_steep():
    squares = private(1000, 100, multiplier=0.3)
    off = squares.std
    stds = np.linspace(-8.0, 8.0, 16_001)
    chances = [
        stats.norm.cdf(stds[squares.safe(true + off * stds) < true / 2])
        for true in off * np.geomspace(0.01, 300, 400)
    ]
    worst = max(float(np.max(found, initial=0.0)) for found in chances)
    assert 0 < worst <= stats.norm.sf(LEAST + ADDED) * 1.01 < 1e-8


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_little_noise_gives_the_mean_squares(layout, seed):
    rng = as_generator(seed)
    X = rng.uniform(-2, 2, size=(4000, 5)) * [1.0, 0.5, 0.1, 1.0, 0.0]
    found = private(4000, 5, multiplier=1e-3, x_norm=2.0)(columns_of(X, layout), rng)
    np.testing.assert_allclose(found, (X**2).mean(axis=0), rtol=0, atol=1e-3)
    assert (found > 0).all()


def test_the_constant_column_is_public(seed):
    rng = as_generator(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(500, 3)), np.full(500, 0.25)])
    chosen = mean_squares("private", 0.1, problem_of(500, 4, 0.25), BUDGET)
    assert chosen.n_private == 3
    squares = chosen.with_noise(4.0)
    assert squares.mechanism.sensitivity == sqrt(3)
    with recording() as tape:
        found = squares(columns_of(X), rng)
    assert found[3] == 0.0625
    assert tape.releases[0].shape == (3,)


def test_a_private_number_of_rows_is_told_by_the_squares_of_the_constant(seed):
    budget = Budget(1.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE)
    # planned for a fifth of the rows that there are
    chosen = mean_squares("private", 0.1, problem_of(200, 4, 1.0), budget)
    squares, sums = chosen.with_noise(4.0), []
    assert chosen.n_private == 4
    assert squares.mechanism.sensitivity == sqrt(4)
    for n in (1000, 1001):
        with recording() as tape:
            found = squares(columns_of(np.ones((n, 4))), as_generator(seed))
        sums.append(tape.releases[0].value)
        np.testing.assert_allclose(found, n / 200, rtol=0.3)
    # a row of entries at the bound moves all sums, and just as far as is declared
    moved = np.linalg.norm(sums[1] - sums[0])
    assert moved == pytest.approx(tape.releases[0].sensitivity, rel=1e-12)


def test_public_squares_release_nothing(seed):
    X = as_generator(seed).uniform(-1, 1, size=(50, 3))
    cases = {
        "public": [4.0, 4.0, 0.25],
        (0.5, 0.1): [0.25, 0.01, 0.25],
        (0.5, 0.1, 9.0): [0.25, 0.01, 0.25],  # the constant is what it is
    }
    problem = problem_of(50, 3, 0.5, x_norm=2.0)
    for choice, expected in cases.items():
        squares = mean_squares(choice, 0.1, problem, BUDGET)
        assert squares.events == ()
        assert not squares.private
        assert squares.with_noise(3.0) == squares
        with recording() as tape:
            found = squares(columns_of(X), as_generator(seed))
        assert tape.releases == []
        np.testing.assert_allclose(found, expected)
        with pytest.raises(PlanError, match="public"):
            _ = squares.mechanism


@pytest.mark.parametrize("count", [1, 4, 0])
def test_another_number_of_roots_is_refused(count):
    with pytest.raises(PlanError, match="one root mean square a column"):
        mean_squares((1.0,) * count, 0.1, problem_of(50, 3, 0.5), BUDGET)


def test_automatic_choice_depends_on_public_facts_only():
    for n_rows, is_private in ((50, False), (100_000, True)):
        squares = mean_squares("auto", 0.1, problem_of(n_rows), BUDGET)
        assert squares.private == is_private
    kept = check_smoothness(np.array([1, 2], dtype=np.int32), 0.1)
    assert kept == (1.0, 2.0)
    assert all(type(root) is float for root in kept)


def squares_of(X, squares, seed=0):
    return squares(columns_of(X), as_generator(seed))


def extreme_pairs(neighbors):
    base = np.array([[0.5, -0.2], [0.0, 0.9], [1.0, 1.0]])
    for one in ([1.0, -1.0], [1e9, 1e-9], [0.0, 1.0]):
        first = np.vstack([one, base])
        if neighbors is Neighbors.REPLACE_ONE:
            yield first, np.vstack([np.zeros(2), base])
        else:
            yield first, base


@each_relation
@pytest.mark.parametrize("multiplier", [1e-3, 1.0, 50.0])
def test_neighbors_move_squares_by_the_root_of_the_columns(neighbors, multiplier):
    squares = private(4, 2, multiplier)
    moved = []
    for first, second in extreme_pairs(neighbors):
        report = assert_replays(squares_of, (first, squares), (second, squares))
        moved.append(report.entries[0].moved / report.entries[0].sensitivity)
    assert max(moved) == pytest.approx(1.0)


class HalfDeclared(MeanSquares):
    """A planted bug: the sensitivity of one column for that of all."""

    @property
    def mechanism(self):
        return DiscreteGaussian(self.multiplier, 1.0, self.noise)


@each_relation
def test_too_small_a_sensitivity_is_reported(neighbors):
    squares = private(4, 2)
    broken = HalfDeclared(4, 1.0, 2, (), 5.0)
    first, second = next(extreme_pairs(neighbors))
    assert replay(squares_of, (first, squares), (second, squares)).ok
    assert_reported(replay(squares_of, (first, broken), (second, broken)))


def test_columns_that_fill_a_hundredth_of_their_range_are_learned(seed):
    rng = as_generator(seed)
    n = 20_000
    X = rng.uniform(-0.01, 0.01, size=(n, 4))
    y = np.where(X @ [400.0, -400.0, 200.0, 0.0] + rng.logistic(size=n) > 0, 1.0, -1.0)
    problem = replace(problem_of(n, 4), loss=Logistic())
    rows = bounded_rows(X, y, problem.bounds)
    risk = {}
    for smoothness in ("private", "public"):
        solver = CoordinateDescent(20, step=1.0, smoothness=smoothness)
        plan = solver.plan(problem, Budget(8.0, 1e-6))
        W = coefficients(solver, plan, rows, seed)
        risk[smoothness] = Logistic().value(y, X @ W).mean()
    # zero weights have a risk of log 2
    assert risk["public"] > 0.68
    assert risk["private"] < 0.5
