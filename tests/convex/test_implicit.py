"""Implicit steps: the derivative is that at their end, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tacit._random import as_generator
from tacit.convex import (
    Huber,
    HuberizedHinge,
    Logistic,
    OneVsRest,
    Softmax,
    Squared,
)
from tacit.convex.implicit import (
    DERIVATIVE_UNITS,
    derivative_error,
    implicit_derivatives,
    implicit_step,
    kernel_loss,
)
from tacit.convex.objective import UNIT

LOSSES = [
    Logistic(),
    Logistic(cap=0.5),
    Logistic(cap=0.7),
    HuberizedHinge(),
    HuberizedHinge(1e-3),
    Huber(),
    Huber(0.05),
    Squared(),
]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
CORNERS = {
    "hinge": lambda y, z: np.maximum(1 - y * z, 0),
    "absolute": lambda y, z: np.abs(z - y),
}
numbers = st.floats(-1e4, 1e4)
weights = st.floats(0, 1e-3) | st.floats(0, 1e8)


def derivative_at(loss, y, z):
    return loss.derivative(np.array([y]), np.array([[z]]))[0, 0]


def exact_pull(y, z, weight, knee=-np.inf):
    """Return minus the implicit derivative of the logistic loss times the label, in
    more digits than floats have, by bisection."""
    t, weight = (np.longdouble(y) * np.longdouble(z), np.longdouble(weight))
    low, high = np.longdouble(0), np.longdouble(1)
    for _ in range(80):
        middle = (low + high) / 2
        with np.errstate(over="ignore"):
            value = 1 / (1 + np.exp(max(t + weight * middle, np.longdouble(knee))))
        low, high = (middle, high) if middle < value else (low, middle)
    return float(low)


@each_loss
@settings(max_examples=150, deadline=None)
@given(sign=st.sampled_from([-1.0, 1.0]), z=numbers, weight=weights)
def test_the_slope_is_that_at_the_end_of_the_step(loss, sign, z, weight):
    s = implicit_derivatives(loss, np.array([sign]), np.array([z]), weight)[0]
    end = z - weight * s
    curvature, size = loss.max_curvature(), 1 + abs(z) + weight * abs(s)
    rounded = 1e-15 * (1 + curvature * size)
    assert abs(s - derivative_at(loss, sign, end)) <= 100 * rounded * (1 + abs(s))


@pytest.mark.parametrize("cap", [1.0, 0.7, 0.5])
def test_the_stated_error_holds_for_the_logistic_loss(cap, seed):
    rng = as_generator(seed)
    loss, n = Logistic(cap), 300
    z = rng.normal(size=n) * 10 ** rng.uniform(-3, 4, n)
    weight = 10 ** rng.uniform(-8, 9, n)
    y = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    s = implicit_derivatives(loss, y, z, weight)
    exact = [exact_pull(*row, loss._knee) for row in zip(y, z, weight, strict=True)]
    assert np.abs(-y * s - exact).max() <= DERIVATIVE_UNITS * UNIT
    # a billionth off in the equation is caught
    early = implicit_derivatives(loss, y, z, weight * (1 + 1e-9))
    assert np.abs(-y * early - exact).max() > DERIVATIVE_UNITS * UNIT


@pytest.mark.parametrize("name", CORNERS)
@settings(max_examples=100, deadline=None)
@given(y=st.sampled_from([-1.0, 1.0]), z=st.floats(-5, 5), step=st.floats(1e-3, 10))
def test_losses_with_corners_reach_their_minimum(name, y, z, step):
    end = implicit_step(name, np.array([z]), np.array([1.0]), y, step)[0]

    def cost(v):
        return (v - z) ** 2 / 2 + step * CORNERS[name](y, v)

    found = minimize_scalar(cost, bounds=(-20, 20), method="bounded")
    assert cost(end) <= found.fun + 1e-9


def test_a_row_without_weight_has_the_slope_where_it_is():
    for name, derivatives in [("hinge", [-1.0, 0.0]), ("absolute", [-1.0, 1.0])]:
        z = np.array([0.5, 1.5])
        assert implicit_derivatives(name, np.ones(2), z, 0.0).tolist() == derivatives
    z = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(
        implicit_derivatives(Logistic(), np.ones(7), z, 0.0),
        Logistic().derivative(np.ones(7), z[:, None])[:, 0],
        rtol=1e-15,
    )


@each_loss
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_steps_bring_no_weights_apart_and_go_no_further_than_the_slope(loss, data):
    entries = st.floats(-10, 10)
    w, v, x = (np.array(data.draw(st.tuples(entries, entries))) for _ in range(3))
    step, strength = data.draw(st.floats(1e-4, 1e3)), data.draw(st.floats(0, 10))
    y = data.draw(st.sampled_from([-1.0, 1.0]))
    ends = [implicit_step(loss, u, x, y, step, strength) for u in (w, v)]
    shrink = 1 / (1 + step * strength)
    apart = np.linalg.norm(ends[0] - ends[1])
    tiny = 1e-12 * (1 + step) * (1 + np.abs([w, v, x]).max()) ** 3
    tiny *= 1 + loss.max_curvature()
    assert apart <= shrink * np.linalg.norm(w - v) + tiny
    reach = loss.max_derivative(np.linalg.norm(x) * np.linalg.norm(w), (-1.0, 1.0))
    moved = np.linalg.norm(ends[0] - shrink * w)
    assert moved <= shrink * step * reach * np.linalg.norm(x) + tiny


def test_a_step_minimizes_what_it_says(seed):
    rng = as_generator(seed)
    w, x = rng.normal(size=3), rng.normal(size=3)
    for loss in LOSSES:
        v = implicit_step(loss, w, x, 1.0, 0.7, 0.3)
        gradient = v - w + 0.7 * (derivative_at(loss, 1.0, x @ v) * x + 0.3 * v)
        assert np.abs(gradient).max() < 1e-11


def test_what_has_no_implicit_slope_is_refused():
    for loss in (Softmax(3), OneVsRest(Logistic(), 3), "log", object()):
        with pytest.raises(ValueError, match="loss must be"):
            implicit_derivatives(loss, np.ones(1), np.ones(1), 1.0)
    with pytest.raises(ValueError, match="weight must hold"):
        implicit_derivatives(Squared(), np.ones(1), np.ones(1), -1.0)
    with pytest.raises(ValueError, match="step must be"):
        implicit_step(Squared(), np.ones(1), np.ones(1), 1.0, 0.0)


def test_losses_are_known_by_their_own_class_alone():
    class Other(Logistic):
        pass

    assert kernel_loss(Other()) is None
    assert kernel_loss(OneVsRest(Logistic(), 3))[0]
    assert kernel_loss(Squared(), 2.0) == kernel_loss(Huber(2.0))


def test_the_error_of_a_slope_grows_with_what_it_is_made_of():
    facts = {
        "n_features": 5,
        "n_outputs": 1,
        "x_norm": 1.0,
        "w_norm": 1.0,
        "largest_target": 1.0,
        "derivative": 1.0,
        "curvature": 1.0,
    }
    least = derivative_error(**facts)
    assert least > DERIVATIVE_UNITS * UNIT
    for name in facts:
        assert derivative_error(**{**facts, name: 10 * facts[name]}) > least
