"""The exact lasso: the same columns as scikit-learn's, and weights that prove it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso

from tacit._random import as_generator
from tacit.feature_selection._exact_lasso import (
    exact_lasso,
    ridged_derivatives,
    solve_integer,
    stationary_point,
)
from tacit.feature_selection._sums import SCALE, ExactSums


def whole(values):
    """Return numbers that rounding to whole parts leaves as they are."""
    return np.rint(np.clip(values, -1, 1) * SCALE) / SCALE


def problem(n, p, s, seed, noise=0.2):
    rng = as_generator(seed)
    X = whole(rng.uniform(-1, 1, (n, p)))
    w = np.zeros(p)
    w[:s] = 0.5 / s * np.where(np.arange(s) % 2, -1, 1)
    return X, whole(X @ w + 0.1 + noise * rng.standard_normal(n))


def solved(X, y, penalty, *, intercept=True, most=None):
    sums = ExactSums(X, y, intercept=intercept)
    return exact_lasso(sums, penalty, most=most or X.shape[1], margin=0.01, bound=2.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [3.0, 20.0, 60.0])
def test_columns_and_weights_are_those_of_scikit_learn(penalty, intercept, seed):
    X, y = problem(600, 40, 4, seed)
    found = solved(X, y, penalty, intercept=intercept)
    reference = Lasso(penalty / len(y), fit_intercept=intercept, tol=1e-12).fit(X, y)
    assert_array_equal(found.support, np.flatnonzero(reference.coef_))
    weights = found.w[: len(found.support)]
    assert_allclose(weights, reference.coef_[list(found.support)], atol=1e-8)
    if intercept:
        assert_allclose(found.w[-1], reference.intercept_, atol=1e-8)


def test_conditions_of_optimality_are_met_to_the_last_digits(seed):
    X, y = problem(2000, 300, 5, seed)
    found = solved(X, y, 30.0)
    Z = np.column_stack([X, np.ones(len(y))])
    derivatives = Z.T @ (y - Z[:, found.positions] @ found.w)
    assert_allclose(derivatives[found.positions], 30.0 * found.signs, atol=1e-9)
    assert (found.w * found.signs)[:-1].min() == found.smallest > 0
    outside = np.delete(np.abs(derivatives), found.positions)
    assert_allclose(outside.max(), found.largest_gradient)
    assert found.largest_gradient < 30.0


def test_sums_are_exact_in_any_order(seed):
    X, y = problem(5000, 3, 1, seed)
    order = as_generator(seed).permutation(len(y))
    sums, other = (
        ExactSums(X[rows], y[rows], intercept=True) for rows in (slice(None), order)
    )
    assert_array_equal(sums.with_columns([0, 3]), other.with_columns([0, 3]))
    assert sums.with_targets()[1] == other.with_targets()[1]
    assert sums.with_columns([3])[3, 0] == 5000


def test_a_dense_lasso_is_given_up_only_when_it_is_sure(seed):
    X, y = problem(400, 30, 12, seed, noise=0.02)
    assert len(solved(X, y, 1.0).support) >= 12
    assert solved(X, y, 1.0, most=3) is None
    assert solved(X, y, 1.0, most=30) is not None


def test_columns_twice_have_no_weights_to_certify(seed):
    X, y = problem(300, 3, 1, seed)
    twice = solved(np.column_stack([X, X[:, 0]]), y, 10.0)
    # one of the two may be left out, and then it is about to enter
    assert twice is None or twice.largest_gradient >= 10.0 - 1e-9


def test_constant_columns_and_columns_of_zeros_are_taken(seed):
    X, y = problem(300, 4, 1, seed)
    X[:, 1], X[:, 2] = 0.0, 0.25
    assert solved(X, y, 10.0).support == (0,)
    assert solved(np.zeros((50, 2)), np.zeros(50), 1.0).support == ()
    assert solved(X[:, :1], y, 10.0).support == (0,)


def test_equations_without_one_solution_are_rejected():
    both = np.array([1.0, 2.0])
    assert stationary_point(np.ones((2, 2)), both, 0.5, np.ones(2)) is None
    assert stationary_point(np.zeros((0, 0)), both[:0], 0.5, both[:0]).size == 0


def test_integers_solve_equations_without_a_remainder(seed):
    rng = as_generator(seed)
    for size in (1, 2, 5, 9):
        Z = rng.integers(-8192, 8192, (size + 2, size))
        matrix, right = ((Z.T @ part).astype(object) for part in (Z, Z[:, 0] ** 2))
        top, bottom = solve_integer(matrix, right)
        assert bottom > 0
        assert (matrix @ top == right * bottom).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_of_the_ridged_lasso_are_those_of_its_minimizer(intercept, seed):
    X, y = problem(60, 12, 3, seed)
    X[:, 5] = X[:, 0]  # the ridge shares the weight of columns that repeat
    sums = ExactSums(X, y, intercept=intercept)
    penalty, ridge = 0.75, 2.0**-8
    Z = np.column_stack([X, np.ones(60)]) if intercept else X
    for positions in ([], [7, 2, 0], list(range(12))):
        start = as_generator(seed).standard_normal(len(positions) + intercept)
        left = ridged_derivatives(
            sums, [*sums.unpenalized(), *positions], start, penalty=penalty, ridge=ridge
        )
        # slopes beyond the penalty are the ridge's, and weights follow from them
        beyond = np.sign(left) * np.maximum(0, np.abs(left) - penalty)
        w = np.append(beyond[:12], left[12:]) / ridge
        assert (w != 0).sum() > 3
        assert w[5] == w[0]
        assert_allclose(Z.T @ (y - Z @ w), left, atol=1e-8)
