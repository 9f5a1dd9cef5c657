"""What every regularizer promises, over REGULARIZERS."""

import numpy as np
import pytest

from tacit.convex import (
    CERTIFIED,
    L1,
    Box,
    ElasticNet,
    Entropy,
    Free,
    GroupL1,
    L1Ball,
    L2Ball,
    NuclearBall,
    Simplex,
    is_set,
    makes_zeros,
)

REGULARIZERS = [
    Free(),
    L1(0.7),
    ElasticNet(0.5, 2.0),
    ElasticNet(0.0, 1.0),
    GroupL1(0.9),
    Entropy(0.3),
    Entropy(1e-3),
    Entropy(50.0),
]
SHAPES = [(1, 1), (6, 1), (4, 3)]

every_regularizer = pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def prox_objective(regularizer, V, W, step):
    return 0.5 * np.sum((V - W) ** 2) + step * regularizer.value(V)


def members(regularizer, shape, rng):
    """Random points of the domain."""
    if isinstance(regularizer, Entropy):
        return rng.dirichlet(np.full(np.prod(shape), 0.5)).reshape(shape)
    return 3 * rng.standard_normal(shape)


@every_regularizer
@every_shape
def test_prox_beats_other_points(regularizer, shape, rng):
    for step in (0.01, 0.5, 4.0):
        W = 2 * rng.standard_normal(shape)
        best = regularizer.prox(W, step)
        least = prox_objective(regularizer, best, W, step)
        assert np.isfinite(least)
        for _ in range(50):
            V = members(regularizer, shape, rng)
            for mix in (1.0, 0.1, 1e-3):
                near = best + mix * (V - best)
                assert least <= prox_objective(regularizer, near, W, step) + 1e-9


@every_regularizer
def test_prox_is_non_expansive(regularizer, rng):
    for _ in range(50):
        A, B = 3 * rng.standard_normal((2, 5, 2))
        moved = np.linalg.norm(regularizer.prox(A, 0.7) - regularizer.prox(B, 0.7))
        assert moved <= np.linalg.norm(A - B) * (1 + 1e-9)


@every_regularizer
def test_value_is_convex(regularizer, rng):
    for _ in range(50):
        A, B = (members(regularizer, (5, 2), rng) for _ in range(2))
        chord = (regularizer.value(A) + regularizer.value(B)) / 2
        assert regularizer.value((A + B) / 2) <= chord + 1e-12


@every_regularizer
def test_radius_bounds_the_domain(regularizer, rng):
    for _ in range(20):
        W = members(regularizer, (5, 2), rng)
        assert np.linalg.norm(W) <= regularizer.radius * (1 + 1e-12)


@pytest.mark.parametrize(
    "regularizer",
    [r for r in REGULARIZERS if hasattr(r, "prox_coordinate")],
    ids=repr,
)
def test_prox_of_a_coordinate_agrees_with_the_whole(regularizer, rng):
    W = 2 * rng.standard_normal((6, 2))
    whole = regularizer.prox(W, 0.6).ravel()
    for j, value in enumerate(W.ravel()):
        assert regularizer.prox_coordinate(value, 0.6, j) == pytest.approx(whole[j])


def test_group_penalty_removes_whole_rows():
    W = np.array([[0.3, -0.4], [3.0, 4.0], [0.0, 0.0]])
    assert np.allclose(GroupL1(1.0).prox(W, 1.0), [[0, 0], [2.4, 3.2], [0, 0]])


@pytest.mark.parametrize("weight", [1e-14, 1e-6, 1e-2, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_entropy_prox_is_a_distribution_at_every_scale(weight, size, rng):
    W = size * rng.standard_normal((300, 1))
    w = Entropy(weight).prox(W, 1.0)
    assert np.all(w >= 0)
    assert w.sum() == pytest.approx(1.0, abs=1e-12)


def test_entropy_prox_meets_its_conditions_of_optimality(rng):
    W = rng.standard_normal((50, 2))
    w = Entropy(0.2).prox(W, 0.5)
    tau = W - w - 0.1 * np.log(w)
    assert np.ptp(tau) < 1e-11


def test_entropy_is_infinite_off_the_simplex():
    assert Entropy(1.0).value(np.full((3, 1), 0.5)) == np.inf


@pytest.mark.parametrize(
    "make",
    [lambda: L1(0.0), lambda: GroupL1(-1.0), lambda: Entropy(np.inf)],
)
def test_bad_weights_are_refused(make):
    with pytest.raises(ValueError, match="weight must be"):
        make()


def test_negative_elastic_net_is_refused():
    with pytest.raises(ValueError, match="l2 must be"):
        ElasticNet(1.0, -1.0)


@pytest.mark.parametrize(
    ("regularizer", "a_set", "zeros"),
    [
        (Free(), False, False),
        (L1(), False, True),
        (ElasticNet(1.0, 1.0), False, True),
        (ElasticNet(0.0, 1.0), False, False),
        (GroupL1(), False, True),
        (Entropy(1.0), False, False),
        (L2Ball(), True, False),
        (L1Ball(), True, True),
        (Box(-1.0, 1.0), True, False),
        (Simplex(), True, True),
        (NuclearBall(), True, False),
    ],
    ids=repr,
)
def test_sets_and_makers_of_zeros_are_told_apart(regularizer, a_set, zeros):
    assert is_set(regularizer) == a_set
    assert makes_zeros(regularizer) == zeros
    known = isinstance(regularizer, Free | Entropy | NuclearBall)
    assert isinstance(regularizer, CERTIFIED) != known
