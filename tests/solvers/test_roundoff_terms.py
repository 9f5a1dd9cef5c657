"""Sensitivities include what floating-point sums, clips and minimizers can add.

Each bound here is derived anew from the number of additions, in place of calling the
function under test: a term that is left out or halved leaves too little.
"""

import numpy as np
import pytest
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.convex import L1Ball, Logistic, Softmax, Squared
from tacit.convex.objective import MOST_ADDITIONS, UNIT
from tacit.data import RowBounds
from tacit.privacy import Budget
from tacit.solvers import (
    AMP,
    AdaptiveMoments,
    AdaSSP,
    FrankWolfe,
    NoisyGD,
    OutputPerturbation,
    PreconditionedGD,
    Problem,
)
from tacit.solvers._base import MOST_ROWS
from tacit.solvers._gradients.descent import norm_clipped
from tacit.solvers._gradients.row_clip import RowClippedGradient

N_ROWS, P, X_NORM = 1000, 3, 2.0
# Every row's term is rounded in each of its additions, and so are the terms of the
# neighboring data set
BOTH_SUMS = 2 * MOST_ROWS * MOST_ADDITIONS * UNIT


def problem(loss, **facts):
    return Problem(loss, RowBounds(X_NORM, "l2", (-1.0, 1.0)), N_ROWS, P, **facts)


def budget(neighbors):
    return Budget(1.0, 1e-6, neighbors)


@each_relation
@pytest.mark.parametrize("solver", [NoisyGD(clip=0.3), PreconditionedGD(clip=0.3)])
def test_sums_of_clipped_slopes_have_room_for_both_roundings(solver, neighbors):
    plan = solver.plan(problem(Logistic()), budget(neighbors))
    exact = neighbors.rows_changed * 0.3 * X_NORM
    # derivatives of one may be rounded before they are clipped to 0.3
    assert plan.sensitivity >= exact + BOTH_SUMS * X_NORM
    assert plan.sensitivity <= 1.001 * exact


@each_relation
def test_sums_of_clipped_gradients_have_room_for_both_roundings(neighbors):
    plan = NoisyGD(clip_norm=0.7).plan(problem(Squared()), budget(neighbors))
    exact = neighbors.rows_changed * 0.7
    assert plan.sensitivity >= exact + BOTH_SUMS * 0.7
    assert plan.sensitivity <= 1.001 * exact


@each_relation
def test_sums_of_moments_have_room_for_both_roundings(neighbors):
    moments = PreconditionedGD().plan(problem(Logistic()), budget(neighbors))
    exact = np.sqrt(neighbors.rows_changed) * X_NORM**2
    assert moments.moment_sensitivity >= exact + BOTH_SUMS * X_NORM**2
    joint = AdaSSP().plan(problem(Squared()), budget(neighbors))
    exact = {1: np.sqrt(2), 2: 3 / np.sqrt(2)}[neighbors.rows_changed]
    # in units of the bounds; a row's second and first moments have norm one each
    assert joint.sensitivity >= exact + BOTH_SUMS * np.sqrt(2)
    assert joint.eigenvalue_sensitivity >= 1 + BOTH_SUMS * np.sqrt(2)
    adaptive = AdaptiveMoments().plan(problem(Squared()), budget(neighbors))
    assert adaptive.target_sensitivity >= 1 + BOTH_SUMS
    exact = np.sqrt(neighbors.rows_changed)
    assert adaptive.spread_sensitivity >= (exact + BOTH_SUMS) * np.sqrt(1.25)
    squared = adaptive.descent.problem.bounds.x_norm**2
    assert adaptive.descent.moment_sensitivity >= (exact + BOTH_SUMS) * squared


@each_relation
@pytest.mark.parametrize("n_outputs", [1, 4])
def test_terms_of_sparse_rows_have_room_for_whole_numbers_of_quanta(
    n_outputs, neighbors
):
    loss = Logistic() if n_outputs == 1 else Softmax(n_outputs)
    sparse = Problem(
        loss, RowBounds(X_NORM, "linf"), N_ROWS, P, regularizer=L1Ball(3.0)
    )
    plan = FrankWolfe().plan(sparse, budget(neighbors))
    exact = neighbors.rows_changed * X_NORM
    rounded = 2 * MOST_ROWS * plan.quantum / 2  # a half each, in both sums
    assert plan.sensitivity >= 3.0 * (exact + rounded + BOTH_SUMS * X_NORM)


@each_relation
def test_both_computed_minima_may_be_off_by_their_tolerance(neighbors):
    plan = OutputPerturbation(ridge=0.5).plan(problem(Logistic()), budget(neighbors))
    exact = neighbors.rows_changed * X_NORM
    off = 2 * plan.gradient_tolerance
    assert plan.sensitivity * 0.5 >= (exact + off) * (1 - 4 * UNIT)
    assert off > 1e-7 * exact  # far above the rounding of this comparison


def test_final_noise_covers_both_minima_and_the_rounding_of_the_tilt():
    plan = AMP(ridge=0.5).plan(problem(Logistic()), Budget(9.0, 1e-6))
    off = plan.output_sensitivity * 0.5 - 2 * plan.gradient_tolerance
    rounded = 2 * np.sqrt(P) * plan.tilted.scale() / 2**32
    assert off == pytest.approx(rounded, rel=1e-6)


def longest(vectors):
    """Return the largest norm, computed with eleven more bits."""
    assert np.finfo(np.longdouble).nmant > 52
    return np.sqrt((vectors.astype(np.longdouble) ** 2).sum(axis=1)).max()


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("clip", [0.1, 1.0, 0.3])
def test_no_clipped_slope_is_longer_than_the_clip(clip, n_outputs, seed):
    derivatives = 50 * as_generator(seed).normal(size=(4000, n_outputs))
    clipped = longest(norm_clipped(derivatives, clip))
    assert clip * (1 - 1e-12) <= clipped <= np.longdouble(clip)


@pytest.mark.parametrize("n_features", [1, 4])
@pytest.mark.parametrize("clip_norm", [0.1, 1.0, 0.3])
def test_no_clipped_gradient_is_longer_than_the_clip(clip_norm, n_features, seed):
    rng = as_generator(seed)
    X = rng.normal(size=(1000, n_features))
    gradient = RowClippedGradient(Squared(), np.zeros((n_features, 1)), clip_norm)
    derivatives = 50 * rng.normal(size=(1000, 1))
    gradient._clip_norm(derivatives, np.linalg.norm(X, axis=1))
    products = X.astype(np.longdouble) * derivatives.astype(np.longdouble)
    assert clip_norm * (1 - 1e-12) <= longest(products) <= np.longdouble(clip_norm)
