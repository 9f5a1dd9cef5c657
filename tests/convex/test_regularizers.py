"""Guarantees of every regularizer in REGULARIZERS."""

import numpy as np
import pytest
from tests.cases import Cases, cases

from tacit.convex import (
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
)
from tacit.convex._protocols import is_set
from tacit.convex.proximal import is_certified
from tacit.convex.regularizers import CoordinatePenalty, coordinate_parts, makes_zeros
from tacit.exceptions import PlanError

SHARED_CASES = Cases(
    regularizers=[
        Free(),
        L1(0.7),
        ElasticNet(0.5, 2.0),
        ElasticNet(0.0, 1.0),
        GroupL1(0.9),
        Entropy(0.3),
        Entropy(1e-3),
        Entropy(50.0),
    ]
)
REGULARIZERS = cases("regularizers")
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
        (CoordinatePenalty([0, 1], [1, 0], [-1, -1], [1, 1]), False, True),
        (CoordinatePenalty([0, 0], [1, 0], [-1, -1], [1, 1]), False, False),
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
    known = isinstance(regularizer, Free | CoordinatePenalty | Entropy | NuclearBall)
    assert is_certified(regularizer) != known


MIXED = CoordinatePenalty(
    l1=[0.0, 0.7, 0.0, 2.0, 0.5],
    l2=[0.0, 0.0, 1.5, 0.3, 0.0],
    low=[-np.inf, -np.inf, -0.4, 0.0, -1.0],
    high=[np.inf, np.inf, np.inf, np.inf, 0.2],
)


def test_prox_of_mixed_coordinates_beats_other_points(rng):
    for step in (0.01, 0.5, 4.0):
        W = 2 * rng.standard_normal((5, 1))
        best = MIXED.prox(W, step)
        least = prox_objective(MIXED, best, W, step)
        assert np.isfinite(least)
        for _ in range(200):
            near = best + 10.0 ** -rng.integers(0, 4) * rng.standard_normal((5, 1))
            assert least <= prox_objective(MIXED, near, W, step) + 1e-12


def test_prox_of_each_mixed_coordinate_agrees_with_the_whole(rng):
    W = 2 * rng.standard_normal((5, 1))
    whole = MIXED.prox(W, 0.6).ravel()
    each = [MIXED.prox_coordinate(v, 0.6, j) for j, v in enumerate(W.ravel())]
    assert np.array_equal(each, whole)


def test_mixed_coordinates_outside_their_intervals_cost_everything():
    assert MIXED.value(np.zeros((5, 1))) == 0.0
    assert MIXED.value(
        np.array([[9.0], [-1.0], [1.0], [1.0], [-1.0]])
    ) == pytest.approx(4.1)
    assert MIXED.value(np.array([[0.0], [0.0], [0.0], [-0.1], [0.0]])) == np.inf


def test_radius_of_mixed_coordinates_is_that_of_the_farthest_corner():
    assert MIXED.radius == np.inf
    corner = CoordinatePenalty([0, 0], [0, 0], [-3, 0], [1, 4])
    assert corner.radius == 5.0


@pytest.mark.parametrize(
    ("regularizer", "same"),
    [
        (Free(), ([0, 0], [2, 2], [-np.inf] * 2, [np.inf] * 2)),
        (L1(3.0), ([3, 3], [2, 2], [-np.inf] * 2, [np.inf] * 2)),
        (ElasticNet(1.0, 4.0), ([1, 1], [6, 6], [-np.inf] * 2, [np.inf] * 2)),
        (Box(-1.0, 5.0), ([0, 0], [2, 2], [-1, -1], [5, 5])),
        (
            CoordinatePenalty([1, 0], [0, 3], [0, -1], [np.inf, 2]),
            ([1, 0], [2, 5], [0, -1], [np.inf, 2]),
        ),
    ],
    ids=repr,
)
def test_penalties_that_are_sums_fall_into_coordinates(regularizer, same, rng):
    parts = coordinate_parts(regularizer, 2.0, 2)
    assert all(np.array_equal(got, want) for got, want in zip(parts, same, strict=True))
    # and their sum is the penalty with the ridge, where the weights may be
    W = np.clip(rng.standard_normal((2, 1)), parts[2][:, None], parts[3][:, None])
    whole = regularizer.value(W) + np.vdot(W, W)
    assert CoordinatePenalty(*parts).value(W) == pytest.approx(whole)


@pytest.mark.parametrize(
    "regularizer", [GroupL1(), L1Ball(), Simplex(), Entropy(), Box(1.0, 2.0)], ids=repr
)
def test_other_penalties_do_not_fall_into_coordinates(regularizer):
    with pytest.raises(PlanError, match="needs a separable penalty"):
        coordinate_parts(regularizer, 0.0, 3)


def test_penalty_of_coordinates_must_have_one_entry_a_weight():
    with pytest.raises(PlanError, match="not for 4 weights"):
        coordinate_parts(MIXED, 0.0, 4)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        (([1], [1, 1], [0], [1]), "one entry for each"),
        (([], [], [], []), "one entry for each"),
        (([-1], [1], [0], [1]), "l1 must hold"),
        (([np.inf], [1], [0], [1]), "l1 must hold"),
        (([1], [np.nan], [0], [1]), "l2 must hold"),
        (([1], [1], [0.5], [1]), "low must be"),
        (([1], [1], [0], [0]), "low must be"),
        (([1], [1], [np.nan], [1]), "low must be"),
    ],
)
def test_bad_penalties_of_coordinates_are_refused(parts, match):
    with pytest.raises(ValueError, match=match):
        CoordinatePenalty(*parts)


def test_penalty_of_many_coordinates_is_told_in_a_line():
    penalty = CoordinatePenalty(*([1.0] * 1000,) * 2, [-1.0] * 1000, [1.0] * 1000)
    assert repr(penalty) == "CoordinatePenalty(1000 weights)"
    assert penalty == CoordinatePenalty(
        penalty.l1, penalty.l2, penalty.low, penalty.high
    )
