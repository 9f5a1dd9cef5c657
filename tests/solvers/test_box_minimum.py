"""Minima of ill-conditioned quadratics in a box, each of them certified."""

import numpy as np
import pytest
from tests.solvers.running import coefficients
from tests.solvers.test_quadratic_perturbation import problem_of, rows_of

import tacit.solvers._least_squares.quadratic as quadratics
from tacit._random import as_generator
from tacit.convex import Box, L2Ball
from tacit.convex.objective import UNIT
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers import AdaptiveRidge, QuadraticPerturbation
from tacit.solvers._least_squares.quadratic import Quadratic, minimum_in, minimum_in_box

BOX = Box(-0.4, 0.6)


def steep_quadratic(rng, p, least_ridge=-0.5):
    """Return a quadratic of nearly collinear rows, its matrix and a tolerance."""
    n, ridge = 10 ** rng.uniform(3, 7), 10 ** rng.uniform(least_ridge, 1)
    Z = rng.choice([-1.0, 1.0], size=p)
    Z = Z + 10 ** rng.uniform(-4, 0) * rng.normal(size=(p + 3, p))
    A = Z.T @ Z
    A *= n / np.trace(A)
    w = rng.uniform(BOX.low, BOX.high, size=p) * rng.choice([1, 3, 30, 1000])
    first = A @ w + rng.normal(size=p) * rng.choice([0, 10, 100])
    first *= min(1.0, n / np.linalg.norm(first))
    A += ridge * np.eye(p)
    roundoff = 16 * UNIT * p**1.5 * (n + ridge)
    found = Quadratic(lambda w: A @ w, first, ridge, 1.001 * (n + ridge), roundoff)
    return found, A, max(5e-9, 16 * roundoff)


def certified(quadratic, w, within, tolerance):
    return within.contains(w, 0.0) and quadratic.judge(w, within)[1] <= tolerance


def failures(rng, n, sizes):
    count = 0
    for p in rng.choice(sizes, size=n):
        quadratic, A, tolerance = steep_quadratic(rng, int(p))
        w = minimum_in_box(quadratic, A, BOX, tolerance)
        count += not certified(quadratic, w, BOX, tolerance)
    return count


@pytest.fixture
def without_acceleration(monkeypatch):
    """Leave the minimum to steps on faces alone."""
    monkeypatch.setattr(quadratics, "minimum_in", lambda quadratic, w, *rest: w)


@pytest.mark.usefixtures("without_acceleration")
def test_steps_on_faces_alone_find_every_minimum(seed):
    assert failures(as_generator(seed), 1500, [2, 6, 12]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("without_acceleration")
def test_steps_on_faces_alone_find_twenty_thousand_minima(seed):
    assert failures(as_generator(seed), 20_000, [2, 3, 6, 12, 20]) == 0


def halved_step(quadratic, matrix, box, w):
    """Return a Newton step cut entry by entry, and halved until the function falls."""
    G = quadratic.gradient(w)
    unconstrained = ~(((w <= box.low) & (G > 0)) | ((w >= box.high) & (G < 0)))
    step = np.zeros_like(w)
    step[unconstrained] = -np.linalg.solve(
        matrix[np.ix_(unconstrained, unconstrained)], G[unconstrained]
    )
    for halving in range(40):
        moved = np.clip(w + 0.5**halving * step, box.low, box.high)
        if quadratic.fall(G, moved - w) >= -0.1 * float(G @ (moved - w)):
            return moved
    return w


@pytest.mark.usefixtures("without_acceleration")
def test_steps_that_are_only_halved_do_not(seed, monkeypatch):
    monkeypatch.setattr(quadratics, "_face_minimum", halved_step)
    assert failures(as_generator(seed), 300, [20]) > 0


def test_accelerated_steps_alone_find_the_minimum_in_time(seed):
    rng = as_generator(seed)
    for within in (BOX, L2Ball(0.7)):
        for _ in range(12):
            quadratic, _, tolerance = steep_quadratic(rng, 5, 0.9)
            quadratic = Quadratic(
                quadratic.product,
                quadratic.first,
                max(quadratic.ridge, 1e-6 * quadratic.steepest),
                quadratic.steepest,
                quadratic.roundoff,
            )
            start = within.prox(rng.normal(size=5), 1.0)
            w = minimum_in(quadratic, start, within, tolerance)
            assert quadratic.judge(w, within)[1] <= tolerance
    # a control: plain steps from there do not
    for _ in range(100):
        start, bound = quadratic.judge(start, within)
    assert bound > tolerance


def test_collinear_rows_are_solved_whatever_the_tilt(monkeypatch):
    rng, n, p = as_generator(19), 3000, 20
    signs = rng.choice([-1.0, 1.0], size=p)
    X = signs + 0.01 * rng.normal(size=(n, p)) * 10.0 ** -rng.uniform(0, 3, size=p)
    X *= rng.choice([-1, 1], size=(n, 1)) / np.linalg.norm(X, axis=1)[:, None]
    y = np.clip(X @ rng.uniform(-12, 18, size=p), -1, 1)
    problem = problem_of(n, p, regularizer=BOX)
    solver = QuadraticPerturbation(ridge=0.3)
    plan = solver.plan(problem, Budget(3.0, 1e-6, Neighbors.REPLACE_ONE))
    rows, judged = rows_of(problem, X, y), []
    judge = Quadratic.judge

    def noted(self, w, within):
        judged.append(judge(self, w, within))
        return judged[-1]

    monkeypatch.setattr(Quadratic, "judge", noted)
    for run in range(40):
        solver.run(plan, rows, as_generator(run))
        assert judged[-1][1] <= plan.gradient_tolerance


@pytest.mark.parametrize("kind", [QuadraticPerturbation, AdaptiveRidge])
@pytest.mark.parametrize("size", [1e-25, 1e-12, 1.0, 1e12, 1e25])
def test_sizes_that_are_planned_are_solved(kind, size, seed):
    rng = as_generator(seed)
    X, y = rng.normal(size=(50, 3)), np.sign(rng.normal(size=50))
    X /= np.linalg.norm(X, axis=1)[:, None] * 1.01
    for target in (1 / size, 1.0, size):
        problem = problem_of(50, 3, x_norm=size, y_max=target)
        plan = kind().plan(problem, Budget(1.0, 1e-5))
        rows = rows_of(problem, size * X, target * y)
        with np.errstate(all="raise", under="ignore"):
            assert np.isfinite(coefficients(kind(), plan, rows, seed)).all()


@pytest.mark.parametrize("kind", [QuadraticPerturbation, AdaptiveRidge])
def test_sizes_whose_squares_are_lost_are_refused_by_the_plan(kind):
    for size in (1e-26, 1e26, 1e90):
        for problem in (problem_of(x_norm=size), problem_of(y_max=size)):
            with pytest.raises(PlanError, match="use other units"):
                kind().plan(problem, Budget(1.0, 1e-5))
    for radius in (1e-60, 1e60):
        with pytest.raises(PlanError, match="use other units"):
            kind().plan(
                problem_of(x_norm=1e-5, regularizer=L2Ball(radius)), Budget(1.0, 1e-5)
            )
