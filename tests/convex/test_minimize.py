"""The minimizer, its certificate, and the inputs that would break either."""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tests.convex.exact import FACTS, exact_gradient, labels, norm, unit_rows

from tacit.convex import (
    Huber,
    HuberizedHinge,
    Logistic,
    Objective,
    Softmax,
    Squared,
    minimize,
)
from tacit.convex.objective import DENSE_ROWS, gradient_roundoff
from tacit.data.rows import ArrayRows

module = sys.modules["tacit.convex.minimizer"]
TOLERANCE = 1e-7


def assert_certified(objective, X, y, tolerance=TOLERANCE, **options):
    """Minimize, check the certificate by other means, and return the minimum."""
    options = FACTS | options
    found = minimize(objective, ArrayRows(X, y), tolerance=tolerance, **options)
    assert found.gradient_norm <= tolerance
    assert norm(exact_gradient(objective, X, y, found.W)) <= found.gradient_norm
    return found


@pytest.mark.parametrize("ridge", [0.1, 5.0])
def test_binary_agrees_with_scikit_learn(ridge, rng):
    X = unit_rows(600, 8, rng)
    y = labels(X, rng)
    ours = assert_certified(Objective(Logistic(), ridge), X, y)
    theirs = LogisticRegression(
        C=1 / ridge, fit_intercept=False, tol=1e-10, solver="newton-cholesky"
    ).fit(X, y)
    assert np.allclose(ours.W.ravel(), theirs.coef_.ravel(), atol=1e-6)


def test_multinomial_agrees_with_scikit_learn(rng):
    X = unit_rows(600, 6, rng)
    y = labels(X, rng, k=4)
    ours = assert_certified(Objective(Softmax(4), 2.0), X, y)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=5000)
    assert np.allclose(ours.W.T, theirs.fit(X, y).coef_, atol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        Logistic(),
        Softmax(3),
        Squared(),
        Huber(0.1),
        HuberizedHinge(),
        HuberizedHinge(0.05),
    ],
    ids=repr,
)
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("tilted", [0.0, 30.0, 1e4])
def test_every_loss_is_certified(loss, ridge, tilted, rng):
    X = unit_rows(1000, 10, rng)
    y = labels(X, rng, loss.n_outputs)
    tilt = rng.standard_normal((10, loss.n_outputs))
    tilt *= tilted / np.linalg.norm(tilt)
    # weights of size tilt / ridge, times p n units of round-off, bound what is possible
    reach = (tilted + 1000 * (tilted > 0)) / ridge
    tolerance = max(TOLERANCE, 1e-11 * reach * loss.max_curvature())
    assert_certified(Objective(loss, ridge, tilt), X, y, tolerance)


@pytest.mark.parametrize("tilted", [0.0, 30.0])
def test_a_nearly_sharp_hinge_is_certified(tilted, rng):
    X = unit_rows(1000, 10, rng)
    tilt = np.full((10, 1), tilted / np.sqrt(10))
    assert_certified(Objective(HuberizedHinge(1e-3), 1.0, tilt), X, labels(X, rng))


def separable(rng):
    X = unit_rows(1000, 5, rng)
    return X, np.sign(X[:, 0])


def duplicated_columns(rng):
    X = unit_rows(1000, 4, rng)
    return np.hstack([X, X, X]) / 2, labels(X, rng)


def zero_rows(rng):
    return np.zeros((100, 4)), rng.choice([-1.0, 1.0], 100)


def one_row(rng):
    return unit_rows(1, 4, rng), np.ones(1)


def one_class(rng):
    return unit_rows(500, 4, rng), np.ones(500)


def mixed_scales(rng):
    return unit_rows(1000, 6, rng) * np.geomspace(1, 1e-8, 6), rng.choice(
        [-1.0, 1.0], 1000
    )


@pytest.mark.parametrize(
    "make",
    [separable, duplicated_columns, zero_rows, one_row, one_class, mixed_scales],
)
@pytest.mark.parametrize("loss", [Logistic(), HuberizedHinge(0.01)], ids=repr)
@pytest.mark.parametrize("ridge", [1e-3, 3.0])
def test_awkward_rows_are_certified(make, loss, ridge, rng):
    X, y = make(rng)
    assert_certified(Objective(loss, ridge), X, y)


def test_many_classes_are_certified(rng):
    X = unit_rows(300, 2, rng)
    y = rng.integers(0, 150, 300)
    assert_certified(Objective(Softmax(150), 1.0), X, y)


@pytest.mark.parametrize("k", [1, 3])
def test_more_weights_than_a_dense_hessian_takes_are_certified(k, rng):
    p = 2400 // k
    X = sparse.random_array(
        (400, p), density=0.01, rng=rng, format="csr", data_sampler=rng.random
    )
    X.data /= 10
    y = labels(X, rng, k)
    loss = Logistic() if k == 1 else Softmax(3)
    assert_certified(
        Objective(loss, 0.05), X, y, x_norm=float(np.sqrt(X.power(2).sum()))
    )


def test_conjugate_gradients_finish_what_the_first_search_left(rng, monkeypatch):
    monkeypatch.setattr(module, "DENSE_SIZE", 1)
    monkeypatch.setattr(module, "_lbfgs", lambda objective, rows, W, tolerance: W)
    X = unit_rows(500, 20, rng)
    assert_certified(Objective(Logistic(), 0.5), X, labels(X, rng))


def test_warm_start_changes_the_answer_by_no_more_than_the_tolerance(rng, monkeypatch):
    X = unit_rows(5000, 5, rng)
    y, objective = labels(X, rng), Objective(Logistic(), 0.5)
    warm = assert_certified(objective, X, y)
    monkeypatch.setattr(module, "WARM_STRIDE", 1)
    cold = assert_certified(objective, X, y)
    assert np.linalg.norm(warm.W - cold.W) <= 2 * TOLERANCE / objective.ridge
    assert not np.array_equal(warm.W, cold.W)  # the warm start was really taken


def test_warm_start_that_misleads_does_no_harm(rng):
    X = unit_rows(8000, 4, rng)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[::16] *= -1.0  # exactly the rows that the warm start reads
    assert_certified(Objective(Logistic(), 1e-3), X, y)


@pytest.mark.parametrize("convert", [sparse.csr_array, lambda X: X.astype(np.float32)])
def test_other_storage_is_certified(convert, rng):
    X = convert(0.999 * unit_rows(3000, 6, rng))
    y = labels(np.asarray(X.todense()) if sparse.issparse(X) else X, rng)
    assert_certified(Objective(Logistic(), 1.0), X, y)


def test_same_rows_give_the_same_bits(rng):
    X = unit_rows(4000, 5, rng)
    y, objective = labels(X, rng), Objective(Logistic(), 1.0)
    first, second = (assert_certified(objective, X, y).W for _ in range(2))
    assert np.array_equal(first, second)


def test_start_is_used_and_changes_nothing_certified(rng):
    X = unit_rows(200, 5, rng)
    y = labels(X, rng)
    assert_certified(Objective(Logistic(), 1.0), X, y, start=np.full((5, 1), 30.0))


@pytest.mark.parametrize("loss", [Logistic(), Softmax(5)], ids=repr)
def test_roundoff_bounds_the_error_of_gradients_and_is_not_absurd(loss, rng):
    X = unit_rows(3000, 20, rng)
    y = labels(X, rng, loss.n_outputs)
    W = 10 * rng.standard_normal((20, loss.n_outputs))
    G = Objective(loss, 0.5).gradient(ArrayRows(X, y), W)
    tilted = Objective(loss, 0.5, -G)
    # the tilt cancels what was computed; what is left is the error of computing it
    error = float(norm(exact_gradient(tilted, X, y, W)))
    bound = gradient_roundoff(
        n_rows=3000,
        shape=W.shape,
        additions=DENSE_ROWS + 2 + 1,
        x_norm=1.0,
        derivative=loss.max_derivative(np.inf, (-1.0, 1.0)),
        curvature=loss.max_curvature(),
        w_norm=float(np.linalg.norm(W)),
        ridge=0.5,
    )
    assert 0 < error <= bound
    assert bound <= 4e-9  # sums of two thousand rows at a time


@pytest.mark.parametrize(
    ("ridge", "tilt", "tolerance", "error", "words"),
    [
        (1.0, 0.0, 1e-13, ValueError, "tolerance must be above"),
        (1.0, 1e12, 1e-8, RuntimeError, "could not be certified"),
        (0.0, 0.0, 1e-6, ValueError, "ridge must be"),
    ],
)
def test_what_cannot_be_certified_is_not_returned(
    ridge, tilt, tolerance, error, words, rng
):
    rows = ArrayRows(unit_rows(1000, 3, rng), np.ones(1000))
    objective = Objective(Logistic(), ridge, np.full((3, 1), tilt))
    with pytest.raises(error, match=words):
        minimize(objective, rows, tolerance=tolerance, **FACTS)


@pytest.mark.parametrize("bad", [{"tolerance": 0.0}, {"x_norm": -1.0}])
def test_bad_parameters_are_named(bad, rng):
    rows = ArrayRows(unit_rows(10, 2, rng), np.ones(10))
    options = {"tolerance": 1e-6, **FACTS, **bad}
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        minimize(Objective(Logistic(), 1.0), rows, **options)
