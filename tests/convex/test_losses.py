"""Guarantees of every loss in LOSSES."""

import numpy as np
import pytest
from tests.cases import Cases, cases

from tacit.convex import Huber, HuberizedHinge, Logistic, OneVsRest, Softmax, Squared
from tacit.convex.losses import has_residuals

SHARED_CASES = Cases(
    losses=[
        Logistic(),
        Softmax(2),
        Softmax(3),
        Softmax(7),
        Squared(),
        Huber(),
        Huber(threshold=0.3),
        HuberizedHinge(),
        HuberizedHinge(h=0.05),
        OneVsRest(Logistic(), 2),
        OneVsRest(Logistic(cap=0.5), 4),
        OneVsRest(HuberizedHinge(), 3),
    ]
)
LOSSES = cases("losses")
REACH = 6.0
Y_RANGE = (-1.0, 2.0)

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def targets(loss, n, rng):
    if loss.targets == "codes" or loss.n_outputs > 1:
        return rng.integers(0, loss.n_outputs, n)
    if loss.targets == "labels":
        return rng.choice([-1.0, 1.0], n)
    return rng.uniform(*Y_RANGE, n)


def margins(loss, n, rng, reach=REACH):
    return rng.uniform(-reach, reach, (n, loss.n_outputs))


def along(f, Z, V, step):
    return (f(Z + step * V) - f(Z - step * V)) / (2 * step)


def near_a_kink(loss, y, Z, margin=1e-3):
    """Rows where the curvature jumps, so that no finite difference can agree."""
    jump = loss.curvature(y, Z + margin) - loss.curvature(y, Z - margin)
    # a smooth curvature changes by far less over so little
    return np.any(np.abs(jump) > 0.1 * loss.max_curvature(), axis=1)


@every_loss
def test_slope_is_the_derivative_of_the_value(loss, rng):
    y, Z = targets(loss, 500, rng), margins(loss, 500, rng)
    V = margins(loss, 500, rng, reach=1.0)
    numeric = along(lambda M: loss.value(y, M), Z, V, 1e-5)
    exact = (loss.derivative(y, Z) * V).sum(axis=1)
    assert np.allclose(exact, numeric, rtol=1e-6, atol=2e-5)


@every_loss
def test_curvature_product_is_the_derivative_of_the_slope(loss, rng):
    y, Z = targets(loss, 500, rng), margins(loss, 500, rng)
    V = margins(loss, 500, rng, reach=1.0)
    smooth = ~near_a_kink(loss, y, Z)
    numeric = along(lambda M: loss.derivative(y, M), Z, V, 1e-5)
    exact = loss.curvature_product(y, Z, V)
    assert np.allclose(exact[smooth], numeric[smooth], rtol=1e-5, atol=1e-7)
    assert smooth.sum() > 400


@every_loss
def test_curvature_is_the_diagonal_of_the_hessian(loss, rng):
    y, Z = targets(loss, 100, rng), margins(loss, 100, rng)
    for j in range(loss.n_outputs):
        unit = np.zeros_like(Z)
        unit[:, j] = 1.0
        column = loss.curvature_product(y, Z, unit)[:, j]
        assert np.allclose(loss.curvature(y, Z)[:, j], column, atol=1e-15)


@every_loss
def test_value_is_convex_along_segments(loss, rng):
    y = targets(loss, 500, rng)
    A, B = margins(loss, 500, rng), margins(loss, 500, rng)
    middle = loss.value(y, (A + B) / 2)
    assert np.all(middle <= (loss.value(y, A) + loss.value(y, B)) / 2 + 1e-12)


def hessians(loss, y, Z):
    k = loss.n_outputs
    H = np.empty((len(y), k, k))
    for j in range(k):
        unit = np.zeros_like(Z)
        unit[:, j] = 1.0
        H[:, :, j] = loss.curvature_product(y, Z, unit)
    return H


def probing_margins(loss, rng):
    """Random margins, and those where the bounds are known to be reached."""
    k = loss.n_outputs
    y, Z = targets(loss, 2000, rng), margins(loss, 2000, rng)
    Z[:200] = 0.0  # equal margins: largest trace
    Z[200:400] -= 30.0 * (np.arange(k) >= 2)  # two classes left: largest eigenvalue
    Z[200:400, :2] = 0.0
    if loss.targets == "numbers":
        y[400:600] = Y_RANGE[1]
    Z[400:600] = -REACH
    Z[400:600, 0] = REACH if k > 1 else -REACH
    if isinstance(loss, OneVsRest):  # every margin wrong, or right by this much
        signs = np.where(np.arange(k) == y[:, None], 1.0, -1.0)
        for start, right_by in ((400, -REACH), (600, 0.01), (800, 1.0)):
            Z[start : start + 200] = right_by * signs[start : start + 200]
    return y, Z


@every_loss
def test_constants_bound_slope_and_curvature_and_are_reached(loss, rng):
    y, Z = probing_margins(loss, rng)
    H = hessians(loss, y, Z)
    measured = {
        "derivative": np.linalg.norm(loss.derivative(y, Z), axis=1).max(),
        "curvature": np.linalg.eigvalsh(H).max(),
        "trace": np.trace(H, axis1=1, axis2=2).max(),
    }
    claimed = {
        "derivative": loss.max_derivative(REACH, Y_RANGE),
        "curvature": loss.max_curvature(),
        "trace": loss.max_trace(),
    }
    for name, bound in claimed.items():
        assert measured[name] <= bound * (1 + 1e-12), name
        assert measured[name] >= 0.99 * bound, name


@every_loss
def test_slopes_span_exactly_their_rank(loss, rng):
    y, Z = targets(loss, 300, rng), margins(loss, 300, rng)
    assert np.linalg.matrix_rank(loss.derivative(y, Z)) == loss.derivative_rank()


def far_margins(loss, n, rng):
    """Margins of every size, from a thousandth to the largest that are squared."""
    sizes = 10 ** rng.uniform(-3.0, 150.0, (n, 1))
    sizes[::2] = 10 ** rng.uniform(-1.0, 3.0, (len(sizes[::2]), 1))
    return margins(loss, n, rng, reach=1.0) * sizes


@every_loss
def test_the_bound_on_slopes_holds_however_far_margins_are(loss, rng):
    y, Z = targets(loss, 4000, rng), far_margins(loss, 4000, rng)
    slopes = np.linalg.norm(loss.derivative(y, Z), axis=1)
    reach = np.linalg.norm(Z, axis=1)
    bounds = [loss.max_derivative(float(z), Y_RANGE) for z in reach]
    assert np.all(slopes <= np.array(bounds) * (1 + 1e-12))
    assert np.all(slopes <= loss.max_derivative(np.inf, Y_RANGE) * (1 + 1e-12))


@every_loss
def test_the_bound_on_curvature_holds_however_far_margins_are(loss, rng):
    y, Z = targets(loss, 1000, rng), far_margins(loss, 1000, rng)
    assert np.linalg.eigvalsh(hessians(loss, y, Z)).max() <= (
        loss.max_curvature() * (1 + 1e-12)
    )


class SteepBeyond(Huber):
    """A loss whose derivative doubles where residuals are above 20."""

    def derivative(self, y, Z):
        slope = super().derivative(y, Z)
        return np.where(np.abs(Z - y[:, None]) > 20.0, 2 * slope, slope)


def test_a_bound_that_fails_far_out_would_be_seen(rng):
    test_constants_bound_slope_and_curvature_and_are_reached(SteepBeyond(), rng)
    with pytest.raises(AssertionError):
        test_the_bound_on_slopes_holds_however_far_margins_are(SteepBeyond(), rng)


@every_loss
@pytest.mark.parametrize("size", [1e3, 1e150, 1e300])
def test_huge_margins_neither_warn_nor_give_nan(loss, size, rng):
    y, Z = targets(loss, 50, rng), margins(loss, 50, rng, reach=1.0) * size
    for result in (loss.derivative(y, Z), loss.curvature(y, Z)):
        assert np.all(np.isfinite(result))
    value = loss.value(y, Z)
    assert not np.any(np.isnan(value))
    assert np.all(np.isfinite(value)) or isinstance(loss, Squared)


@every_loss
def test_inputs_are_left_alone(loss, rng):
    y, Z = targets(loss, 20, rng), margins(loss, 20, rng)
    V, kept = margins(loss, 20, rng), (y.copy(), Z.copy())
    loss.value(y, Z), loss.derivative(y, Z), loss.curvature(y, Z)
    loss.curvature_product(y, Z, V)
    assert np.array_equal(y, kept[0])
    assert np.array_equal(Z, kept[1])


def test_softmax_of_two_classes_is_logistic_of_the_difference(rng):
    Z, labels = rng.standard_normal((100, 2)), rng.choice([-1.0, 1.0], 100)
    codes = (labels > 0).astype(np.int64)
    difference = Z[:, 1:] - Z[:, :1]
    assert np.allclose(
        Softmax(2).value(codes, Z), Logistic().value(labels, difference), rtol=1e-13
    )


def test_huberized_hinge_has_the_three_published_pieces():
    loss, u = HuberizedHinge(h=0.5), np.array([2.0, 0.5, 0.2, -0.5, -2.0])
    expected = [2.0, 0.5, 0.04 / 2 + 0.1 + 0.125, 0.0, 0.0]
    assert np.allclose(loss.value(np.ones(5), (1 - u)[:, None]), expected)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Huber(threshold=0.0), "threshold"),
        (lambda: HuberizedHinge(h=-1.0), "h "),
        (lambda: Softmax(1), "n_classes"),
    ],
)
def test_bad_parameters_are_named(make, name):
    with pytest.raises(ValueError, match=name):
        make()


def test_residuals_are_those_of_numbers():
    found = {type(loss) for loss in LOSSES if has_residuals(loss)}
    assert found >= {Squared, Huber}
    assert not found & {Logistic, Softmax, HuberizedHinge, OneVsRest}
