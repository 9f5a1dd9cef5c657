"""The smooth objective against finite differences and other storage."""

import numpy as np
import pytest
from scipy import sparse

from tacit.convex import Huber, HuberizedHinge, Logistic, Objective, Softmax, Squared
from tacit.data.rows import ArrayRows

LOSSES = [Logistic(), Softmax(3), Squared(), Huber(50.0), HuberizedHinge(20.0)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


class Blocks:
    """Rows in blocks of a given size."""

    def __init__(self, X, y, block_rows):
        self.X, self.y, self.block_rows = X, y, block_rows
        self.n_rows, self.n_features = X.shape

    def sum(self, function):
        total = None
        for start in range(0, self.n_rows, self.block_rows):
            chosen = slice(start, start + self.block_rows)
            part = function(self.X[chosen], self.y[chosen])
            if total is None:
                total = part
            else:
                total = tuple(a + b for a, b in zip(total, part, strict=True))
        return total


def problem(loss, rng, n=700, p=5):
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.5)
    k = loss.n_outputs
    y = rng.integers(0, k, n) if k > 1 else rng.choice([-1.0, 1.0], n)
    objective = Objective(loss, 0.7, rng.standard_normal((p, k)))
    return objective, X, y, rng.standard_normal((p, k))


@every_loss
def test_gradient_is_the_derivative_of_the_value(loss, rng):
    objective, X, y, W = problem(loss, rng)
    rows = ArrayRows(X, y)
    V, step = rng.standard_normal(W.shape), 1e-5
    up, _ = objective.value_and_gradient(rows, W + step * V)
    down, _ = objective.value_and_gradient(rows, W - step * V)
    _, G = objective.value_and_gradient(rows, W)
    assert np.vdot(G, V) == pytest.approx((up - down) / (2 * step), rel=1e-5)
    assert np.array_equal(G, objective.gradient(rows, W))


@every_loss
def test_hessian_is_the_derivative_of_the_gradient(loss, rng):
    objective, X, y, W = problem(loss, rng)
    rows, size, step = ArrayRows(X, y), W.size, 1e-5
    H = objective.hessian(rows, W)
    for j in range(size):
        unit = np.eye(size)[j].reshape(W.shape)
        up, down = (objective.gradient(rows, W + s * unit) for s in (step, -step))
        numeric = ((up - down) / (2 * step)).ravel()
        assert np.allclose(H[:, j], numeric, rtol=1e-5, atol=1e-4)
    assert np.allclose(H, H.T, rtol=1e-12, atol=1e-12)


@every_loss
def test_hessian_product_is_the_hessian_times_the_vector(loss, rng):
    objective, X, y, W = problem(loss, rng)
    rows, V = ArrayRows(X, y), rng.standard_normal(W.shape)
    dense = (objective.hessian(rows, W) @ V.ravel()).reshape(W.shape)
    assert np.allclose(objective.hessian_product(rows, W, V), dense, rtol=1e-11)


@every_loss
@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_give_what_dense_rows_give(loss, convert, rng):
    objective, X, y, W = problem(loss, rng)
    dense, thin = ArrayRows(X, y), ArrayRows(convert(X), y)
    for method in (
        lambda rows: objective.value_and_gradient(rows, W)[0],
        lambda rows: objective.gradient(rows, W),
        lambda rows: objective.hessian(rows, W),
        lambda rows: objective.hessian_product(rows, W, W),
    ):
        assert np.allclose(method(dense), method(thin), rtol=1e-11)


@every_loss
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_blocks_do_not_matter(loss, convert, rng):
    objective, X, y, W = problem(loss, rng)
    whole = Blocks(convert(X), y, 10_000)
    for size in (37, 512, 699):
        rows = Blocks(convert(X), y, size)
        assert np.allclose(objective.gradient(rows, W), objective.gradient(whole, W))
        assert np.allclose(objective.hessian(rows, W), objective.hessian(whole, W))


def test_single_precision_rows_are_summed_in_double(rng):
    objective, X, y, W = problem(Logistic(), rng)
    single = X.astype(np.float32)
    for rows in (ArrayRows(single, y), ArrayRows(sparse.csr_array(single), y)):
        G = objective.gradient(rows, W)
        exact = objective.gradient(ArrayRows(single.astype(np.float64), y), W)
        assert G.dtype == np.float64
        assert np.allclose(G, exact, rtol=1e-12)


def test_negative_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge must be"):
        Objective(Logistic(), -1.0)
