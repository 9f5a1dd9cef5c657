"""Rows in another unit: the same sensitivities, in that unit.

Most tests have rows of norm one, where a norm that is left out goes unnoticed.
"""

import pytest
from tests.strategies import each_relation

from tacit.convex import L1Ball, Logistic, Softmax
from tacit.data import RowBounds
from tacit.privacy import Budget
from tacit.solvers import AMP, NoisyGD, OutputPerturbation, Problem
from tacit.solvers._gradients.descent import gradient_sensitivity
from tacit.solvers._gradients.row_clip import sum_sensitivity
from tacit.solvers.frank_wolfe import score_sensitivity
from tacit.solvers.objective_perturbation import tilt_offset
from tacit.solvers.permuted_sgd import PermutedSGD

UNIT = 3.0
BUDGET = Budget(1.0, 1e-6)

each_loss = pytest.mark.parametrize("loss", [Logistic(), Softmax(4)], ids=repr)


def problems(loss, **facts):
    """The same problem with rows of norm one and in another unit."""
    norm = facts.pop("norm", "l2")
    return (
        Problem(loss, RowBounds(x_norm, norm), 100, 4, **facts)
        for x_norm in (1.0, UNIT)
    )


@each_relation
@each_loss
def test_gradients_move_in_proportion_to_the_rows(loss, neighbors):
    one, other = problems(loss)
    derivative = loss.max_derivative(0.0, (-1.0, 1.0))
    assert one.sensitivity(neighbors) == neighbors.rows_changed * derivative
    assert other.sensitivity(neighbors) == UNIT * one.sensitivity(neighbors)
    small, large = (
        gradient_sensitivity(p, derivative, neighbors) for p in (one, other)
    )
    assert small == pytest.approx(neighbors.rows_changed * derivative, rel=1e-3)
    assert large == pytest.approx(UNIT * small)
    # a bound on the gradient itself has the rows inside
    clipped = sum_sensitivity(other, derivative / UNIT, derivative, neighbors)
    assert clipped == pytest.approx(neighbors.rows_changed * derivative, rel=1e-3)


@each_loss
def test_curvature_grows_with_the_square_of_the_rows(loss):
    one, other = problems(loss)
    assert (
        other.smoothness == UNIT**2 * one.smoothness == UNIT**2 * loss.max_curvature()
    )
    assert tilt_offset(other, UNIT**2) == pytest.approx(tilt_offset(one, 1.0))
    assert tilt_offset(one, 1e6) == pytest.approx(1e-6 * loss.max_trace(), rel=1e-5)


@each_relation
def test_scores_move_in_proportion_to_rows_and_ball(neighbors):
    one, other = problems(Logistic(), norm="linf", regularizer=L1Ball(2.0))
    small, large = (score_sensitivity(p, 10, neighbors) for p in (one, other))
    assert small == pytest.approx(2.0 * neighbors.rows_changed, rel=1e-3)
    assert large == pytest.approx(UNIT * small)


@pytest.mark.parametrize("solver", [OutputPerturbation, AMP, NoisyGD, PermutedSGD])
def test_noise_on_weights_has_the_inverse_unit(solver):
    """Weights times rows are margins, which have no unit."""
    ridge = 1.0 if solver in (OutputPerturbation, AMP) else 0.0

    def noise(problem, unit):
        if solver is NoisyGD:  # noise of a step, which is divided by the curvature
            return solver(n_steps=5).plan(problem, BUDGET).sensitivity / unit**2
        if solver is PermutedSGD:
            planned = solver(n_passes=2, batch=10, step=0.1 / unit**2)
            return planned.plan(problem, BUDGET).sensitivity
        plan = solver(ridge=ridge * unit**2).plan(problem, BUDGET)
        if solver is AMP:
            return plan.tilted.sensitivity / plan.tilted.ridge
        return plan.sensitivity

    one, other = problems(Logistic())
    assert UNIT * noise(other, UNIT) == pytest.approx(noise(one, 1.0), rel=1e-4)
