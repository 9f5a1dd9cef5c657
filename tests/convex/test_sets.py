"""Guarantees of every set in SETS."""

import numpy as np
import pytest
from tests.cases import Cases, cases

from tacit.convex import Box, GroupBall, L1Ball, L2Ball, NuclearBall, Simplex

SHARED_CASES = Cases(
    sets=[
        L2Ball(),
        L2Ball(2.5),
        L1Ball(),
        L1Ball(0.4),
        GroupBall(),
        GroupBall(2.0, group_size=2),
        GroupBall(0.7, group_size=50),
        Simplex(),
        Box(),
        Box(-0.5, 2.0, size=12),
        NuclearBall(),
        NuclearBall(3.0),
    ]
)
SETS = cases("sets")
SHAPES = [(1, 1), (5, 1), (4, 3)]

every_set = pytest.mark.parametrize("domain", SETS, ids=repr)
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def members(domain, shape, rng, n=30):
    """Corners from the oracle, points of the boundary, and points inside."""
    corners = [domain.lmo(rng.standard_normal(shape)) for _ in range(n)]
    edges = [domain.prox(4 * rng.standard_normal(shape), 1.0) for _ in range(n)]
    inside = [(a + b) / 2 for a, b in zip(corners, edges, strict=True)]
    return corners + edges + inside


@every_set
@every_shape
def test_projection_is_a_member_and_idempotent(domain, shape, rng):
    for size in (0.1, 1.0, 1e6):
        W = domain.prox(size * rng.standard_normal(shape), 1.0)
        assert domain.contains(W)
        assert domain.value(W) == 0.0
        assert np.allclose(domain.prox(W, 1.0), W, rtol=1e-12, atol=1e-12)


@every_set
@every_shape
def test_projection_is_nearest_among_members(domain, shape, rng):
    others = members(domain, shape, rng)
    for _ in range(5):
        W = 2 * rng.standard_normal(shape)
        P = domain.prox(W, 1.0)
        for V in others:
            # the obtuse angle that characterizes a projection
            assert np.vdot(W - P, V - P) <= 1e-9


@every_set
@every_shape
def test_projection_is_non_expansive(domain, shape, rng):
    for _ in range(30):
        A, B = 3 * rng.standard_normal((2, *shape))
        moved = np.linalg.norm(domain.prox(A, 1.0) - domain.prox(B, 1.0))
        assert moved <= np.linalg.norm(A - B) * (1 + 1e-9)


@every_set
@every_shape
def test_oracle_returns_a_member_and_no_member_does_better(domain, shape, rng):
    others = members(domain, shape, rng)
    for _ in range(10):
        G = rng.standard_normal(shape)
        S = domain.lmo(G)
        assert S.shape == shape
        assert domain.contains(S)
        assert all(np.vdot(G, S) <= np.vdot(G, V) + 1e-9 for V in others)


@every_set
def test_oracle_of_a_zero_gradient_is_a_member(domain):
    assert domain.contains(domain.lmo(np.zeros((3, 2))))


@every_set
def test_points_well_outside_are_not_members(domain, rng):
    W = 100 + rng.random((4, 3))
    assert not domain.contains(W)
    assert domain.value(W) == np.inf


@every_set
@every_shape
def test_radius_bounds_members_and_is_reached(domain, shape, rng):
    norms = [np.linalg.norm(W) for W in members(domain, shape, rng)]
    assert max(norms) <= domain.radius * (1 + 1e-12)
    size = getattr(domain, "size", 0)
    if size == 0 or size == np.prod(shape):
        farthest = np.linalg.norm(domain.lmo(-np.ones(shape)))
        assert farthest >= 0.99 * domain.radius


@every_set
@every_shape
def test_diameter_bounds_distances_and_is_reached(domain, shape, rng):
    points = members(domain, shape, rng)
    G = rng.standard_normal(shape)
    points += [domain.lmo(G), domain.lmo(-G)]
    distances = [np.linalg.norm(a - b) for a in points for b in points]
    claimed = domain.diameter(*shape)
    assert max(distances) <= claimed * (1 + 1e-12)
    assert max(distances) >= 0.99 * claimed


@every_set
@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (4, 3), (200, 1), (30, 20)])
@pytest.mark.statistical
def test_width_bounds_the_mean_support_function(domain, shape, rng):
    draws = [rng.standard_normal(shape) for _ in range(200)]
    support = np.array([-np.vdot(G, domain.lmo(G)) for G in draws])
    support = np.concatenate([support, [np.vdot(G, domain.lmo(-G)) for G in draws]])
    # antithetic draws; five standard errors of the mean, P_FAIL below 1e-6
    error = 5 * support.std() / np.sqrt(len(draws))
    claimed = domain.width(*shape)
    assert support.mean() - error <= claimed
    assert claimed <= 1.6 * (support.mean() + error) + 1e-12


@pytest.mark.parametrize("polytope", [L1Ball(2.0), Simplex()], ids=repr)
@pytest.mark.parametrize("shape", [(4, 1), (3, 2)])
def test_vertices_score_minus_their_product_with_the_gradient(polytope, shape, rng):
    G = rng.standard_normal(shape)
    scores = polytope.vertex_scores(G)
    vertices = [polytope.vertex(i, shape) for i in range(len(scores))]
    assert all(polytope.contains(V) for V in vertices)
    assert np.allclose(scores, [-np.vdot(G, V) for V in vertices])
    assert np.array_equal(vertices[int(np.argmax(scores))], polytope.lmo(G))
    assert len({V.tobytes() for V in vertices}) == len(vertices)


def test_box_projects_each_coordinate_alone(rng):
    box, W = Box(-0.5, 1.0), 2 * rng.standard_normal((4, 2))
    whole = box.prox(W, 1.0).ravel()
    assert [box.prox_coordinate(w, 1.0, j) for j, w in enumerate(W.ravel())] == list(
        whole
    )


def test_box_has_no_radius_without_a_size():
    assert Box().radius == np.inf
    assert Box(-2.0, 1.0, size=9).radius == pytest.approx(6.0)


@pytest.mark.parametrize("ball", [L2Ball, L1Ball, GroupBall, NuclearBall])
@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
def test_bad_radius_is_refused(ball, radius):
    with pytest.raises(ValueError, match="radius must be"):
        ball(radius)


def test_empty_box_is_refused():
    with pytest.raises(ValueError, match="low must be"):
        Box(1.0, 1.0)


def test_norms_do_not_overflow():
    W = L2Ball(1.0).prox(np.full((3, 1), 1e300), 1.0)
    assert np.linalg.norm(W) == pytest.approx(1.0)


def test_group_ball_projects_norms_of_groups_wherever_their_features_are(rng):
    ball = GroupBall(1.0, groups=(0, 1, 0, 2, 1))
    W = 3 * rng.standard_normal((5, 2))
    P = ball.prox(W, 1.0)
    norms = [np.linalg.norm(W[np.array(ball.groups) == g]) for g in range(3)]
    short = L1Ball(1.0).prox(np.array(norms)[:, None], 1.0)[:, 0]
    for g in range(3):
        inside = np.array(ball.groups) == g
        assert np.allclose(P[inside], W[inside] * (short[g] / norms[g]))


def test_groups_of_one_feature_are_the_l1_ball_and_one_group_the_l2_ball(rng):
    W = 3 * rng.standard_normal((6, 1))
    assert np.allclose(GroupBall(1.3).prox(W, 1.0), L1Ball(1.3).prox(W, 1.0))
    separate = GroupBall(1.3, group_size=6)
    assert np.allclose(separate.prox(W, 1.0), L2Ball(1.3).prox(W, 1.0))
    assert np.array_equal(separate.lmo(W), L2Ball(1.3).lmo(W))


def test_groups_of_other_features_are_refused():
    with pytest.raises(ValueError, match="one entry for each of 3"):
        GroupBall(groups=(0, 1)).prox(np.ones((3, 1)), 1.0)
    with pytest.raises(ValueError, match="groups must be an integer >= 0"):
        GroupBall(groups=(0, -1))
    with pytest.raises(ValueError, match="group_size must be"):
        GroupBall(group_size=0)
