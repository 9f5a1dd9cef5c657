"""What is NaN, or out of all proportion, moves no sum further than a row may."""

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.convex import HuberizedHinge, Squared
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.mechanisms import Exponential, Gaussian
from tacit.privacy import Budget, Neighbors
from tacit.solvers import CoordinateDescent, GreedyCoordinateDescent, NoisyGD, Problem
from tacit.solvers._coordinates.kernels import part

BUDGET = Budget(1.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE)


@pytest.mark.parametrize(
    ("derivative", "x"),
    [(np.nan, 1.0), (1.0, np.nan), (np.inf, 0.0), (-np.inf, np.inf)],
)
def test_a_part_is_within_its_units_even_if_it_is_no_number(derivative, x):
    assert abs(part(derivative, x, 1.0, 256.0)) <= 256


@pytest.mark.parametrize("kind", [CoordinateDescent, GreedyCoordinateDescent])
@pytest.mark.parametrize(
    ("loss", "x_norm"), [(HuberizedHinge(1e120), 1e-50), (Squared(), 1e-90)]
)
def test_losses_out_of_all_proportion_are_refused(kind, loss, x_norm):
    problem = Problem(loss, RowBounds(x_norm, "linf"), 100, 3)
    with pytest.raises(PlanError, match="ordinary size"):
        kind().plan(problem, BUDGET)


def test_targets_whose_squares_overflow_are_refused_with_a_bound_on_gradients():
    problem = Problem(Squared(), RowBounds(1.0, y_range=(-1e155, 1e155)), 100, 3)
    with pytest.raises(ValueError, match="clip_norm is for targets"):
        NoisyGD(n_steps=3, clip_norm=1.0).plan(problem, BUDGET)


def test_narrow_numbers_are_made_plain_by_mechanisms(seed):
    rng = as_generator(seed)
    chosen = [
        Exponential(np.float16(1), np.float16(1))(np.array([0.0, 1.0]), rng)
        for _ in range(100)
    ]
    # in half precision the first would never be chosen
    assert set(chosen) == {0, 1}
    noisy = Gaussian(np.float16(1.1), np.float16(1.7))
    assert type(noisy.multiplier) is float
    assert np.isfinite(noisy(np.zeros(3), rng)).all()
