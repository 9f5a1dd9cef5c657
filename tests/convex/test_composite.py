"""The minimizer with a penalty or a set, checked by other means than its own."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize
from sklearn.linear_model import ElasticNet as SklearnElasticNet
from sklearn.linear_model import Lasso, LogisticRegression
from tests.convex import exact
from tests.convex.exact import FACTS, exact_gradient, labels, norm, unit_rows

from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    Entropy,
    Free,
    GroupL1,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    NuclearBall,
    Objective,
    Simplex,
    Softmax,
    Squared,
    minimize,
)
from tacit.convex.proximal import InBall
from tacit.data.rows import ArrayRows

module = sys.modules["tacit.convex.minimizer"]
TOLERANCE = 1e-7
LOSSES = [Logistic(), Softmax(3), Squared(), Huber(0.1), HuberizedHinge(0.05)]
REGULARIZERS = [
    *exact.REGULARIZERS,
    InBall(ElasticNet(1.0, 5.0), 0.2),
    InBall(GroupL1(0.5), 0.3),
    InBall(L1(5.0), 100.0),
]
LARGE = pytest.mark.parametrize("dense", [True, False], ids=["dense", "large"])


def least(function, low, high):
    """Least value of a convex function of a number, by thirds."""
    low, high = np.longdouble(low), np.longdouble(high)
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if function(a) <= function(b):
            high = b
        else:
            low = a
    return function((low + high) / 2)


def distance_to_subdifferential(r, W, G):
    """Least norm of ``G + xi`` over subgradients xi of r at W, from the definitions."""
    W = W.astype(np.longdouble)
    size, top = np.abs(W), 10 * np.abs(G).max() + 1
    if isinstance(r, InBall):
        if norm(W) < r.radius * (1 - 1e-13):
            return distance_to_subdifferential(r.penalty, W, G)
        return least(
            lambda a: distance_to_subdifferential(r.penalty, W, G + a * W / r.radius),
            0,
            norm(G) + 1,
        )
    if isinstance(r, L1 | ElasticNet):
        l1, l2 = (r.weight, 0.0) if isinstance(r, L1) else (r.l1, r.l2)
        return norm(_off_corner(G + l2 * W, W, l1))
    if isinstance(r, GroupL1):
        rows = np.sqrt((W * W).sum(axis=1, keepdims=True))
        lengths = np.sqrt((G * G).sum(axis=1, keepdims=True))
        away = np.sqrt(((G + r.weight * W / np.where(rows > 0, rows, 1)) ** 2).sum(1))
        return norm(
            np.where(rows > 0, away[:, None], np.maximum(lengths - r.weight, 0))
        )
    if isinstance(r, Box):
        off = np.where(r.low == W, np.maximum(-G, 0), np.abs(G))
        return norm(np.where(r.high == W, np.maximum(G, 0), off))
    if isinstance(r, L2Ball):
        if norm(W) < r.radius * (1 - 1e-13):
            return norm(G)
        return least(lambda a: norm(G + a * W / r.radius), 0, norm(G) + 1)
    if isinstance(r, L1Ball):
        if size.sum() < r.radius * (1 - 1e-13):
            return norm(G)
        return least(lambda a: norm(_off_corner(G, W, a)), 0, top)
    return least(
        lambda a: norm(np.where(W > 0, G - a, np.minimum(G - a, 0))), -top, top
    )


def _off_corner(G, W, l1):
    return np.where(W != 0, G + l1 * np.sign(W), np.maximum(np.abs(G) - l1, 0))


def assert_certified(objective, r, X, y, tolerance=TOLERANCE, **options):
    """Minimize, check the certificate by other means, and return the minimum."""
    options = FACTS | options
    rows = ArrayRows(X, y)
    found = minimize(objective, rows, tolerance=tolerance, regularizer=r, **options)
    assert found.gradient_norm <= tolerance
    G = exact_gradient(objective, X, y, found.W)
    assert distance_to_subdifferential(r, found.W, G) <= found.gradient_norm
    assert np.isfinite(r.value(found.W))
    if hasattr(r, "contains"):
        assert r.contains(found.W, 1e-12)
    return found


@pytest.mark.parametrize("weight", [0.5, 8.0])
@pytest.mark.parametrize("ridge", [0.1, 2.0])
def test_logistic_agrees_with_scikit_learn(weight, ridge, rng):
    X = unit_rows(400, 8, rng)
    y = labels(X, rng)
    ours = assert_certified(Objective(Logistic(), ridge), L1(weight), X, y)
    theirs = LogisticRegression(
        C=1 / (ridge + weight),
        l1_ratio=weight / (ridge + weight),
        solver="saga",
        fit_intercept=False,
        tol=1e-11,
        max_iter=100_000,
        random_state=0,
    ).fit(X, y)
    assert np.allclose(ours.W.ravel(), theirs.coef_.ravel(), atol=1e-6)


@pytest.mark.parametrize("weight", [1.0, 10.0])
def test_squared_agrees_with_scikit_learn(weight, rng):
    n, ridge = 300, 0.7
    X = unit_rows(n, 12, rng)
    y = np.clip(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n), -1, 1)
    ours = assert_certified(Objective(Squared(), ridge), L1(weight), X, y)
    theirs = SklearnElasticNet(
        alpha=(ridge + weight) / n,
        l1_ratio=weight / (ridge + weight),
        fit_intercept=False,
        tol=1e-14,
        max_iter=100_000,
    ).fit(X, y)
    assert np.allclose(ours.W.ravel(), theirs.coef_, atol=1e-6)


def test_a_tiny_ridge_gives_the_lasso_of_scikit_learn(rng):
    n = 300
    X = unit_rows(n, 12, rng)
    y = np.clip(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n), -1, 1)
    ours = assert_certified(Objective(Squared(), 1e-7), L1(3.0), X, y)
    theirs = Lasso(alpha=3.0 / n, fit_intercept=False, tol=1e-14, max_iter=100_000)
    assert np.allclose(ours.W.ravel(), theirs.fit(X, y).coef_, atol=1e-6)


@pytest.mark.parametrize("radius", [0.3, 100.0])
@pytest.mark.parametrize(
    ("penalty", "loss"),
    [
        (L1(3.0), Logistic()),
        (ElasticNet(3.0, 2.0), Squared()),
        (GroupL1(2.0), Softmax(3)),
    ],
    ids=repr,
)
def test_penalties_in_a_ball_have_the_minimum_in_it(penalty, loss, radius, rng):
    X = unit_rows(200, 5, rng)
    y = rng.integers(3, size=200) if loss.n_outputs > 1 else labels(X, rng)
    y_range = (0, 2) if loss.n_outputs > 1 else (-1.0, 1.0)
    objective, options = Objective(loss, 0.5), {"y_range": y_range}
    inside = InBall(penalty, radius)
    found = assert_certified(objective, inside, X, y, **options).W
    unpenalized = assert_certified(objective, penalty, X, y, **options).W
    if norm(unpenalized) <= radius:
        np.testing.assert_allclose(found, unpenalized, rtol=0, atol=1e-7)
        return
    assert norm(found) == pytest.approx(radius, rel=1e-12)

    # no other member is better
    def value(W):
        return objective.value_and_gradient(ArrayRows(X, y), W)[0] + penalty.value(W)

    for W in found + 0.1 * rng.standard_normal((300, *found.shape)):
        W *= min(1.0, radius / norm(W))
        assert value(W) > value(found) - 1e-9


CONSTRAINTS = {
    L2Ball(0.8): [{"type": "ineq", "fun": lambda w: 0.8**2 - w @ w}],
    L1Ball(1.5): [{"type": "ineq", "fun": lambda w: 1.5 - np.abs(w).sum()}],
    Simplex(): [{"type": "eq", "fun": lambda w: w.sum() - 1}],
    Box(-0.4, 0.2): [],
}


@pytest.mark.parametrize("r", CONSTRAINTS, ids=repr)
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=repr)
def test_constrained_minima_agree_with_scipy(r, loss, rng):
    X = unit_rows(200, 5, rng)
    y = labels(X, rng)
    objective, rows = Objective(loss, 0.5), ArrayRows(X, y)
    bounds = {Simplex(): (0, None), Box(-0.4, 0.2): (-0.4, 0.2)}.get(r)
    # the L1 norm has corners; split in two parts it is smooth
    split = isinstance(r, L1Ball)
    constraints = CONSTRAINTS[r]
    if split:
        constraints = [{"type": "ineq", "fun": lambda v: 1.5 - v.sum()}]
        bounds = (0, None)

    def value_and_gradient(v):
        w = v[:5] - v[5:] if split else v
        value, G = objective.value_and_gradient(rows, w[:, None])
        g = G.ravel()
        return value, np.concatenate([g, -g]) if split else g

    size = 10 if split else 5
    theirs = scipy_minimize(
        value_and_gradient,
        np.full(size, 0.1),
        jac=True,
        method="SLSQP",
        bounds=None if bounds is None else [bounds] * size,
        constraints=constraints,
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    w = theirs.x[:5] - theirs.x[5:] if split else theirs.x
    ours = assert_certified(objective, r, X, y)
    assert np.allclose(ours.W.ravel(), w, atol=1e-5)


@LARGE
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("r", REGULARIZERS, ids=repr)
def test_every_pair_is_certified(loss, r, dense, rng, monkeypatch):
    if not dense:
        monkeypatch.setattr(module, "DENSE_SIZE", 6)
    X = unit_rows(300, 8, rng)
    y = labels(X, rng, loss.n_outputs)
    for ridge, tilted in ((1.0, 0.0), (0.01, 3.0)):
        tilt = tilted * rng.standard_normal((8, loss.n_outputs)) / 3
        objective = Objective(loss, ridge, tilt)
        loose = assert_certified(objective, r, X, y, 1e-4)
        tight = assert_certified(objective, r, X, y, 1e-6)
        apart = loose.gradient_norm + tight.gradient_norm
        assert np.linalg.norm(loose.W - tight.W) <= apart / ridge


@pytest.mark.parametrize("r", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("make", ["separable", "duplicated", "zero", "one", "scales"])
def test_awkward_rows_are_certified(make, r, rng):
    X = unit_rows(200, 4, rng)
    y = labels(X, rng)
    if make == "separable":
        y = np.sign(X[:, 0])
    elif make == "duplicated":
        X = np.hstack([X, X, X]) / 2
    elif make == "zero":
        X = np.zeros_like(X)
    elif make == "one":
        X, y = X[:1], y[:1]
    else:
        X = X * np.geomspace(1, 1e-8, 4)
    for loss in (Logistic(), HuberizedHinge(0.01)):
        assert_certified(Objective(loss, 0.01), r, X, y)


@pytest.mark.parametrize("r", [L1(0.5), GroupL1(3.0), L1Ball(5.0), Box()], ids=repr)
def test_a_nearly_sharp_hinge_is_certified(r, rng):
    X = unit_rows(300, 6, rng)
    assert_certified(Objective(HuberizedHinge(1e-3), 0.1), r, X, labels(X, rng))


def test_flat_stretches_with_long_steps_are_certified(rng):
    # no curvature but the ridge: one over it is a step that enlarges rounding
    X = unit_rows(1000, 5, rng)
    y = np.sign(X[:, 0])
    assert_certified(Objective(HuberizedHinge(1e-3), 1.0), L1Ball(0.5), X, y)


@LARGE
def test_penalties_leave_exact_zeros_where_the_conditions_say_so(
    dense, rng, monkeypatch
):
    if not dense:
        monkeypatch.setattr(module, "DENSE_SIZE", 20)
    X = unit_rows(500, 30, rng)
    objective = Objective(Softmax(3), 0.5)
    y = (X[:, :3] + 0.1 * rng.standard_normal((500, 3))).argmax(axis=1)
    for r in (L1(6.0), GroupL1(8.0)):
        W = assert_certified(objective, r, X, y).W
        G = exact_gradient(objective, X, y, W)
        inside = np.abs(G) if isinstance(r, L1) else np.sqrt((G * G).sum(1))[:, None]
        slack = np.broadcast_to(inside < r.weight - 1e-6, W.shape)
        assert slack.any()
        assert not slack.all()
        assert np.all(W[slack] == 0)
        assert np.all(W[~slack] != 0)


def test_a_penalty_above_the_gradient_at_zero_gives_zero(rng):
    X = unit_rows(100, 5, rng)
    found = assert_certified(Objective(Logistic(), 1.0), L1(51.0), X, labels(X, rng))
    assert np.all(found.W == 0)


@pytest.mark.parametrize("r", REGULARIZERS[::2], ids=repr)
def test_sparse_rows_give_the_dense_answer(r, rng):
    X = unit_rows(300, 10, rng) * (rng.random((300, 10)) < 0.3)
    y, objective = labels(X, rng), Objective(Logistic(), 0.5)
    dense = assert_certified(objective, r, X, y)
    scant = assert_certified(objective, r, sparse.csr_array(X), y)
    apart = dense.gradient_norm + scant.gradient_norm
    assert np.linalg.norm(dense.W - scant.W) <= apart / objective.ridge


@pytest.mark.parametrize("r", [L1(0.5), L1Ball(3.0), L2Ball(1.0), Box(-0.2, 0.1)])
def test_more_weights_than_a_dense_hessian_takes_are_certified(r, rng):
    X = sparse.random_array((2000, 2500), density=0.005, rng=rng, format="csr")
    X.data /= 5
    x_norm = float(np.sqrt(X.power(2).sum(axis=1).max())) * (1 + 1e-14)
    y = labels(X, rng)
    found = assert_certified(Objective(Logistic(), 0.2), r, X, y, x_norm=x_norm)
    assert isinstance(r, Box | L2Ball) == bool(np.count_nonzero(found.W) > 2000)


def test_warm_start_and_start_change_only_what_tolerance_lets(rng):
    X = unit_rows(3000, 5, rng)
    y, objective = labels(X, rng), Objective(Logistic(), 0.5)
    for r in (L1(20.0), ElasticNet(5.0, 1.0), L2Ball(1.0)):
        warm = assert_certified(objective, r, X, y)
        far = assert_certified(objective, r, X, y, start=np.full((5, 1), 30.0))
        assert np.linalg.norm(warm.W - far.W) <= 2 * TOLERANCE / objective.ridge
    assert np.array_equal(warm.W, assert_certified(objective, r, X, y).W)


def test_free_is_the_smooth_path_to_the_bit(rng):
    X = unit_rows(500, 5, rng)
    rows, objective = ArrayRows(X, labels(X, rng)), Objective(Logistic(), 0.5)
    options = {"tolerance": TOLERANCE, "x_norm": 1.0, "y_range": (-1.0, 1.0)}
    plain = minimize(objective, rows, **options)
    unpenalized = minimize(objective, rows, regularizer=Free(), **options)
    assert np.array_equal(plain.W, unpenalized.W)
    assert plain.gradient_norm == unpenalized.gradient_norm


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 40),
    p=st.integers(1, 6),
    loss=st.sampled_from(LOSSES),
    kind=st.sampled_from([L1, GroupL1, L2Ball, L1Ball, Box, Simplex, ElasticNet]),
    weight=st.floats(1e-3, 30.0),
    ridge=st.floats(1e-2, 10.0),
    tilted=st.sampled_from([0.0, 5.0]),
)
def test_random_problems_are_certified(seed, n, p, loss, kind, weight, ridge, tilted):
    rng = np.random.Generator(np.random.PCG64(seed))
    X = unit_rows(n, p, rng)
    y = labels(X, rng, loss.n_outputs)
    tilt = tilted * rng.standard_normal((p, loss.n_outputs))
    parameters = {Box: (-weight / 2, weight), Simplex: (), ElasticNet: (weight, 0.3)}
    r = kind(*parameters.get(kind, (weight,)))
    assert_certified(Objective(loss, ridge, tilt), r, X, y, 1e-7)


@pytest.mark.parametrize("r", [Entropy(), NuclearBall()], ids=repr)
def test_regularizers_without_a_bound_on_rounding_are_refused(r, rng):
    rows = ArrayRows(unit_rows(10, 2, rng), np.ones(10))
    with pytest.raises(ValueError, match=r"regularizer must be one of L1, .* Box, got"):
        minimize(
            Objective(Logistic(), 1.0), rows, tolerance=1e-6, **FACTS, regularizer=r
        )


@LARGE
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"tolerance": 1e-13}, ValueError, "tolerance must be above"),
        ({"tolerance": -1.0}, ValueError, "tolerance must be"),
        ({"start": np.zeros((3, 1))}, ValueError, "start must have shape"),
        ({"tilt": np.full((2, 1), 1e12)}, RuntimeError, "could not be certified"),
    ],
)
def test_what_cannot_be_done_is_refused(dense, bad, error, message, rng, monkeypatch):
    if not dense:
        monkeypatch.setattr(module, "DENSE_SIZE", 1)
    rows = ArrayRows(unit_rows(1000, 2, rng), np.ones(1000))
    options = {"tolerance": 1e-7, **FACTS, **bad}
    objective = Objective(Logistic(), 1.0, options.pop("tilt", None))
    with pytest.raises(error, match=message):
        minimize(objective, rows, regularizer=L1(1.0), **options)
    if "tilt" not in bad:
        with pytest.raises(ValueError, match="ridge must be"):
            minimize(
                Objective(Logistic(), 0.0),
                rows,
                tolerance=1e-7,
                **FACTS,
                regularizer=L1(1.0),
            )
