"""Rounding and derivatives of the proximal maps."""

import numpy as np
import pytest
from tests.convex import exact
from tests.convex.exact import norm

from tacit.convex import L1, Box, ElasticNet, GroupL1, L1Ball, L2Ball, Simplex
from tacit.convex.proximal import InBall

REGULARIZERS = [
    *exact.REGULARIZERS,
    InBall(ElasticNet(10.0, 5.0), 100.0),
    InBall(GroupL1(0.5), 1.0),
]


@pytest.mark.parametrize("r", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_rounding_of_the_proximal_map_is_bounded(r, scale, rng):
    U = scale * rng.standard_normal((50, 3))
    V = r.prox(U, 0.25)
    error = norm(exact_prox(r, U.astype(np.longdouble), np.longdouble(0.25)) - V)
    bound = r.prox_roundoff(U, V)
    assert error <= bound
    assert bound <= 1e-12 * (scale + 1)


def exact_prox(r, U, step):
    if isinstance(r, InBall):
        return exact_prox(L2Ball(r.radius), exact_prox(r.penalty, U, step), step)
    if isinstance(r, L1 | ElasticNet):
        l1, l2 = (r.weight, 0.0) if isinstance(r, L1) else (r.l1, r.l2)
        return np.sign(U) * np.maximum(np.abs(U) - step * l1, 0) / (1 + step * l2)
    if isinstance(r, GroupL1):
        rows = np.sqrt((U * U).sum(axis=1, keepdims=True))
        return U * np.maximum(1 - step * r.weight / rows, 0)
    if isinstance(r, L2Ball):
        return U * min(np.longdouble(1), r.radius / max(norm(U), 1e-300))
    if isinstance(r, Box):
        return np.clip(U, r.low, r.high)
    total = 1.0 if isinstance(r, Simplex) else r.radius
    v = U if isinstance(r, Simplex) else np.abs(U)
    low = -np.longdouble(total) - np.abs(v).max()
    high = v.max()
    if isinstance(r, L1Ball):
        low = np.longdouble(0)
        if v.sum() <= total:
            return U
    for _ in range(200):
        level = (low + high) / 2
        low, high = (
            (level, high) if np.maximum(v - level, 0).sum() > total else (low, level)
        )
    kept = np.maximum(v - level, 0)
    return kept if isinstance(r, Simplex) else np.copysign(kept, U)


@pytest.mark.parametrize("r", REGULARIZERS, ids=repr)
def test_derivatives_of_the_proximal_map_match_differences(r, rng):
    U, D = rng.standard_normal((2, 6, 2))
    step, h = 0.03, 1e-7
    moves, J = r.prox_jacobian(U, r.prox(U, step), step)
    difference = (r.prox(U + h * D, step) - r.prox(U - h * D, step)).ravel() / (2 * h)
    assert np.allclose(difference[moves], J @ D.ravel()[moves], atol=1e-6)
    assert np.all(difference[~moves] == 0)


@pytest.mark.parametrize("r", REGULARIZERS, ids=repr)
def test_a_scaled_regularizer_is_so_many_times_the_value(r, rng):
    W = r.prox(rng.standard_normal((4, 2)), 1.0)
    assert np.isclose(r.scaled(0.25).value(W), 0.25 * r.value(W))
