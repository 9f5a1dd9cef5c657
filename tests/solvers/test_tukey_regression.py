"""Regression by depth among block fits, enumerated where it is small enough."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import exp

import numpy as np
import pytest
from scipy import sparse
from tests.refusal import raises_one_line
from tests.solvers.running import coefficients
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit.audit import replay
from tacit.convex import L1, Huber, L2Ball, Squared
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.linear_model import LinearRegression
from tacit.mechanisms import StableRelease
from tacit.mechanisms.nested import NestedExponential
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem, TukeyRegression
from tacit.solvers._depth import depth_boxes, distance_to_unsafe, most_depth
from tacit.solvers._gradients.kernels import ridge_weights
from tacit.solvers.tukey_regression import TukeyRegressionPlan, _model

BUDGET = Budget(1.0, 1e-6)


def problem_of(n_rows=20_000, n_features=3, loss=None, **facts):
    return Problem(loss or Squared(), RowBounds(), n_rows, n_features, **facts)


def depth_of(point, models):
    """Depth by counting models on either side, in every coordinate."""
    models, point = np.asarray(models), np.asarray(point)
    sides = (models <= point).sum(axis=0), (models >= point).sum(axis=0)
    return min(int(np.min(sides)), most_depth(len(models)))


@pytest.mark.parametrize("n_models", [1, 2, 5, 6])
def test_boxes_hold_the_points_of_each_depth(n_models, seed):
    rng = as_generator(seed)
    points = list(product(range(-3, 4), repeat=2))
    for _ in range(20):
        models = rng.integers(-3, 4, size=(n_models, 2))
        boxes = depth_boxes(models, 3)
        depths = [depth_of(point, models) for point in points]
        # the public box is the first of them
        assert [boxes.depth(np.array(p)) - 1 for p in points] == depths
        assert boxes.volumes() == [
            sum(d >= i for d in depths) for i in range(most_depth(n_models) + 1)
        ]


def test_one_model_moves_no_depth_by_more_than_one(seed):
    rng = as_generator(seed)
    points = list(product(range(-3, 4), repeat=2))
    for _ in range(100):
        models = rng.integers(-3, 4, size=(6, 2))
        other = models.copy()
        other[rng.integers(6)] = rng.integers(-3, 4, size=2)
        moved = [abs(depth_of(p, models) - depth_of(p, other)) for p in points]
        assert max(moved) <= 1


# a line of points and thirteen models: all data sets and all neighbors of each
ENDS, N_MODELS, LEVEL = 10, 13, 3
POSITIONS = (-10, -1, 0, 10)
CHOICE, TEST, SAFE = NestedExponential(2.0), StableRelease(1.0, 0.03), 0.1
CLAIM = 1.0 + 2.0 + SAFE
SETS = list(combinations_with_replacement(POSITIONS, N_MODELS))


def steps():
    return CHOICE.steps(most_depth(N_MODELS) + 1 - LEVEL)


@cache
def distance_of(models):
    boxes = depth_boxes(np.array(models)[:, None], ENDS)
    return distance_to_unsafe(boxes.volumes(), steps(), LEVEL, SAFE)


@cache
def is_unsafe(models):
    """The definition: points one level out would weigh too much."""
    volumes = depth_boxes(np.array(models)[:, None], ENDS).volumes()
    total = sum(a * v for a, v in zip(steps(), volumes[LEVEL:], strict=True))
    return steps()[0] * volumes[LEVEL - 1] > Fraction(SAFE) * total


def neighbors_of(models):
    for position in range(N_MODELS):
        rest = models[:position] + models[position + 1 :]
        for value in POSITIONS:
            yield tuple(sorted((*rest, value)))


def distribution_of(models, passing=None):
    """Probability of no answer and of every point."""
    boxes = depth_boxes(np.array(models)[:, None], ENDS)
    p = TEST.release_probability(distance_of(models)) if passing is None else passing
    weights = CHOICE.weights(most_depth(N_MODELS) + 1 - LEVEL)
    depths = [boxes.depth(np.array([y])) - 1 for y in range(-ENDS, ENDS + 1)]
    mass = np.array([float(weights[d - LEVEL]) if d >= LEVEL else 0.0 for d in depths])
    return np.r_[1 - p, p * mass / mass.sum()]


def excess(first, second, epsilon):
    return np.maximum(first - exp(epsilon) * second, 0.0).sum()


def test_distances_move_by_one_and_are_zero_beside_unsafe_models():
    released = set()
    for models in SETS:
        here = distance_of(models)
        released.add(here)
        for other in set(neighbors_of(models)):
            assert abs(here - distance_of(other)) <= 1
            if is_unsafe(other) or is_unsafe(models):
                assert here == 0
    assert len(released) > 1  # some models are far from unsafe


def test_every_pair_of_neighbors_is_within_the_claim():
    plan = planned_test()
    claim = plan.event.curve(Neighbors.REPLACE_ONE)
    delta = TEST.delta + SAFE
    epsilon = claim.epsilon(delta * (1 + 1e-9))
    assert 0.99 * CLAIM <= epsilon <= CLAIM
    distributions = {models: distribution_of(models) for models in SETS}
    worst = max(
        excess(distributions[models], distributions[other], epsilon)
        for models in SETS
        for other in set(neighbors_of(models))
    )
    assert worst <= delta
    assert worst >= 0.2 * TEST.delta  # values that a neighbor cannot give


def test_leaving_out_the_test_is_caught():
    distributions = {models: distribution_of(models, passing=1.0) for models in SETS}
    worst = max(
        excess(distributions[models], distributions[other], CLAIM)
        for models in SETS
        for other in set(neighbors_of(models))
    )
    assert worst > TEST.delta + SAFE


def test_draws_from_the_whole_box_are_within_the_claim_for_every_pair():
    choice = NestedExponential(1.0)
    weights = choice.weights(most_depth(N_MODELS) + 1)

    def law(models):
        boxes = depth_boxes(np.array(models)[:, None], ENDS)
        mass = [
            float(weights[boxes.depth(np.array([y])) - 1])
            for y in range(-ENDS, ENDS + 1)
        ]
        return np.array(mass) / np.sum(mass)

    distributions = {models: law(models) for models in SETS}
    worst = max(
        np.abs(np.log(distributions[models] / distributions[other])).max()
        for models in SETS
        for other in set(neighbors_of(models))
    )
    assert 0.6 <= worst <= 1.0


def planned_test(**changes):
    plan = TukeyRegressionPlan(
        problem_of(40, 1), N_MODELS, True, 1.0, 1e-3, CHOICE, LEVEL, TEST, SAFE
    )
    return replace(plan, **changes)


def sample(n, p, seed, noise=0.1):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(n, p)) / np.sqrt(p)
    y = X @ np.linspace(1.0, -1.0, p) + noise * rng.normal(size=n)
    return X, np.clip(y, -1, 1)


def test_a_model_is_a_function_of_its_block_alone(seed):
    X, y = sample(50, 3, seed)
    plan = planned_test(problem=problem_of(50, 3))
    found = _model(plan, X, y)
    wide = np.full((50, 8), 9.0)
    wide[:, 1:4] = X
    for copy in (np.asfortranarray(X), wide[:, 1:4], X.astype(">f8"), X[::-1][::-1]):
        np.testing.assert_array_equal(_model(plan, copy, y), found)
    np.testing.assert_array_equal(_model(plan, sparse.csr_array(X), y), found)


def test_a_model_is_least_squares_with_a_ridge(seed):
    X, y = sample(50, 3, seed)
    exact = np.linalg.solve(X.T @ X + 0.5 * np.eye(3), X.T @ y)
    np.testing.assert_allclose(ridge_weights(X, y, 0.5), exact, rtol=1e-10)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.empty((0, 2)), np.empty(0)),
        (np.zeros((5, 2)), np.ones(5)),
        (np.full((5, 2), 1e200), np.ones(5)),
        (np.ones((1, 2)), np.array([np.inf])),
        (np.full((3, 2), np.nan), np.ones(3)),
    ],
    ids=["empty", "zero", "huge", "infinite", "nan"],
)
def test_every_block_has_a_model(X, y):
    model = _model(planned_test(problem=problem_of(5, 2)), X, y)
    assert model.dtype == np.int64
    assert np.abs(model).max() <= 2**14


@each_relation
@pytest.mark.parametrize("tested", [True, False])
def test_weights_are_near_least_squares(tested, neighbors, seed):
    X, y = sample(20_000, 3, seed)
    solver = TukeyRegression(tested=tested)
    budget = Budget(2.0, 1e-6, neighbors)
    plan = solver.plan(problem_of(), budget)
    assert (plan.test is not None) == tested
    W = coefficients(solver, plan, bounded_rows(X, y, RowBounds()), seed)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    assert W.shape == (3, 1)
    np.testing.assert_allclose(W[:, 0], exact, atol=0.05)


def test_all_weights_are_zero_where_the_test_fails(seed):
    X, y = sample(2000, 3, seed)
    plan = TukeyRegression(tested=True).plan(problem_of(), BUDGET)
    assert "all weights are zero where the test" in plan.assumptions[-1]
    rows = bounded_rows(X, y, RowBounds())
    # so few models are never far from unsafe
    few = replace(plan, n_blocks=9, level=2)
    assert not coefficients(TukeyRegression(), few, rows, seed).any()
    assert coefficients(TukeyRegression(), plan, rows, seed).any()


@pytest.mark.parametrize("tested", [True, False, None])
@each_relation
def test_same_seed_same_bits_and_sparse_rows_as_dense(tested, neighbors, seed):
    X, y = sample(20_000, 3, seed)
    X[X < 0] = 0.0
    solver = TukeyRegression(tested=tested)
    plan = solver.plan(problem_of(), Budget(1.0, 1e-6, neighbors))
    runs = [
        coefficients(solver, plan, bounded_rows(Z, y, RowBounds()), s)
        for Z, s in ((X, seed), (X, seed), (sparse.csr_array(X), seed), (X, seed + 1))
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_allclose(runs[0], runs[2], atol=1e-3)
    assert not np.array_equal(runs[0], runs[3])


@pytest.mark.parametrize("tested", [True, False])
@each_relation
def test_neighbors_move_the_distance_and_the_depth_by_one(tested, neighbors, seed):
    X, y = sample(400, 2, seed)
    X[-1], y[-1] = [0.0, 1.0], -1.0
    problem = problem_of(400, 2)
    plan = TukeyRegressionPlan(
        problem,
        21,
        neighbors is Neighbors.REPLACE_ONE,
        4.0,
        1e-3,
        NestedExponential(5.0),
        *((4, StableRelease(5.0, 1e-2), 0.1) if tested else ()),
    )
    if neighbors is Neighbors.REPLACE_ONE:
        other = X.copy(), y.copy()
        other[0][-1], other[1][-1] = [1.0, 0.0], 1.0
    else:
        other = X[:-1], y[:-1]

    def train(rows):
        return coefficients(TukeyRegression(), plan, rows, seed)

    first, second = (bounded_rows(*d, RowBounds()) for d in ((X, y), other))
    report = replay(train, (first,), (second,), redraw=True)
    assert report.ok, str(report)
    labels = ["NestedExponential"]
    assert [e.label for e in report.entries] == ["StableRelease"] * tested + labels


def test_a_row_in_every_block_is_caught(seed, monkeypatch):
    from tacit.solvers import tukey_regression as module  # noqa: PLC0415

    X, y = sample(400, 2, seed)
    other = X.copy(), y.copy()
    other[0][-1], other[1][-1] = [1.0, 0.0], -1.0

    def shared(n, n_blocks, equal, rng):
        blocks = np.array_split(np.arange(n - 1), n_blocks)
        return [np.r_[block, np.full(40, n - 1)] for block in blocks]

    monkeypatch.setattr(module, "block_members", shared)
    plan = TukeyRegressionPlan(
        problem_of(400, 2), 21, True, 4.0, 1e-3, NestedExponential(5.0)
    )

    def train(rows):
        return coefficients(TukeyRegression(), plan, rows, seed)

    first, second = (bounded_rows(*d, RowBounds()) for d in ((X, y), other))
    assert not replay(train, (first,), (second,), redraw=True).ok


@each_relation
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-3])
def test_any_budget_is_kept(epsilon, delta, neighbors):
    budget = Budget(epsilon, delta, neighbors)
    plan = TukeyRegression().plan(problem_of(10**6, 4), budget)
    assert plan.event.curve(neighbors).epsilon(delta) <= epsilon
    assert 2 <= plan.n_blocks <= 4001
    assert (plan.test is None) == (delta == 0)


@pytest.mark.parametrize(
    ("solver", "problem", "budget", "words"),
    [
        (TukeyRegression(), problem_of(loss=Huber()), BUDGET, r"Squared\(\).*NoisyGD"),
        (TukeyRegression(), problem_of(regularizer=L1()), BUDGET, "CoordinateDescent"),
        (TukeyRegression(), problem_of(2), BUDGET, "too few rows.*AdaSSP"),
        (TukeyRegression(), problem_of(20_000, 500), BUDGET, "too few rows"),
        (TukeyRegression(), problem_of(), Budget(0.001, 1e-6), "too few rows"),
        (TukeyRegression(tested=True), problem_of(), Budget(1.0), "give a delta"),
        (TukeyRegression(tested=True), problem_of(), Budget(1e-3, 0.5), "below eps"),
        (TukeyRegression(n_blocks=3), problem_of(), BUDGET, "too few rows"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(solver, problem, budget, words):
    with raises_one_line(PlanError, match=words):
        solver.plan(problem, budget)


@pytest.mark.parametrize(
    ("name", "bad"),
    [("n_blocks", 1), ("bound", 0.0), ("tested", "yes"), ("noise", "none")],
)
def test_bad_parameters_are_rejected(name, bad):
    with pytest.raises(ValueError, match=rf"^{name} must"):
        TukeyRegression(**{name: bad})


def test_a_set_bounds_the_weights(seed):
    X, y = sample(20_000, 3, seed)
    problem = problem_of(regularizer=L2Ball(0.5))
    plan = TukeyRegression().plan(problem, BUDGET)
    assert plan.bound == 0.5
    rows = bounded_rows(X, y, RowBounds())
    W = coefficients(TukeyRegression(), plan, rows, seed)
    assert np.linalg.norm(W) <= 0.5 + 1e-9
    assert TukeyRegression(bound=3.0).plan(problem_of(), BUDGET).bound == 3.0


def test_targets_in_a_tenth_of_their_range_are_fitted_as_well(seed):
    X, y = sample(20_000, 4, seed, noise=0.3)
    for scale in (1.0, 0.1):
        model = LinearRegression(
            1.0, 1e-6, x_norm=1.0, y_range=(-1, 1), solver="tukey", random_state=seed
        )
        assert model.fit(X, scale * y).score(X, scale * y) > 0.35


def test_a_wrong_guess_of_the_rows_costs_accuracy_only(seed):
    X, y = sample(3000, 2, seed)
    for expected in (2000, 50_000):
        model = LinearRegression(
            3.0,
            1e-6,
            y_range=(-1, 1),
            solver="tukey",
            neighbors="add_or_remove_one",
            expected_rows=expected,
            random_state=seed,
            x_norm=1.0,
        ).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert model.privacy_.spent <= 3.0


def test_no_delta_and_no_set_is_pure_privacy(seed):
    X, y = sample(20_000, 3, seed)
    model = LinearRegression(
        1.0, 0.0, y_range=(-1, 1), solver="tukey", random_state=seed, x_norm=1.0
    ).fit(X, y)
    (entry,) = model.privacy_.entries
    assert entry.event.curve(Neighbors.REPLACE_ONE).epsilon(0.0) <= 1.0
    assert model.score(X, y) > 0.8
