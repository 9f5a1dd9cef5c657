"""Sets of columns drawn by their least squares: the law, computed and counted."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from tests.feature_selection.lasso_pairs import designs
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit.audit import assert_replays
from tacit.exceptions import PlanError
from tacit.feature_selection import ExponentialSelector
from tacit.feature_selection._exponential import (
    MOST_SELECT,
    RIDGE,
    SCORE_ERROR,
    ExponentialPlan,
    subset_at,
)
from tacit.feature_selection._kernels import least_value
from tacit.feature_selection._sums import SCALE
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS
from tacit.privacy import BoundedRange, Neighbors

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
each_relation = pytest.mark.parametrize("neighbors", [REPLACE, ADD])


def plan_of(neighbors=REPLACE, *, p=5, s=2, bound=1.0, epsilon=1.0, intercept=True):
    return ExponentialPlan(p, s, bound, intercept, epsilon, neighbors)


def rows(rng, n=60, p=5):
    X = np.rint(designs(rng, n, p) * SCALE) / SCALE
    y = np.clip(0.7 * X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n), -1, 1)
    return X, np.rint(y * SCALE) / SCALE


def log_odds(plan, scores):
    """Return the log-probabilities that the mechanism draws by."""
    exponents = plan.mechanism._exponents(scores) / 2.0**32
    return exponents - np.logaddexp.reduce(exponents)


def reference(X, y, bound):
    """Return the least value by another way, with a constant column."""
    Z = np.column_stack([X, np.ones(len(y))])
    k = Z.shape[1]

    def value(v):
        w = v[:k] - v[k:]
        r = y - Z @ w
        derivative = RIDGE * w - Z.T @ r
        return (r @ r + RIDGE * w @ w) / 2, np.r_[derivative, -derivative]

    room = {"type": "ineq", "fun": lambda v: bound - v.sum()}
    return minimize(
        value,
        np.zeros(2 * k),
        jac=True,
        bounds=[(0, None)] * (2 * k),
        constraints=room | {"jac": lambda v: -np.ones(2 * k)},
        options={"ftol": 1e-14, "maxiter": 1000},
    ).fun


@pytest.mark.parametrize("bound", [0.2, 1.0, 3.0])
def test_scores_are_least_squares_within_the_bound(bound, seed):
    X, y = rows(as_generator(seed))
    X[:, 4] = X[:, 3]  # columns that are alike
    scores = plan_of(bound=bound).scores(X, y)
    for position, chosen in enumerate(combinations(range(5), 2)):
        assert subset_at(position, 5, 2) == chosen
        other = reference(X[:, chosen], y, bound)
        assert_allclose(-scores[position], other, rtol=1e-5)
        assert -scores[position] <= other + 1e-9


@pytest.mark.parametrize("times", [1, 2**17])
@pytest.mark.parametrize("size", [1, 2, 4, MOST_SELECT + 1])
def test_least_points_are_certified_by_their_gap(size, times, seed):
    """No direction to a corner of the bound leads down, even where columns repeat."""
    rng = as_generator(seed)
    for trial in range(20):
        X = rng.choice([-1.0, 1.0], (500, size)) if trial % 2 else designs(rng, 500, 1)
        X = np.broadcast_to(X, (500, size)) + 0.0
        X = np.rint(X * SCALE) / SCALE
        # every row so many times
        H = times * X.T @ X + RIDGE * np.eye(size)
        b = times * X.T @ (np.rint(rng.uniform(-1, 1, 500) * SCALE) / SCALE)
        bound = float(rng.choice([0.01, 0.3, 1.0]))
        w, room = np.zeros(size), np.empty((size + 1, size + 1))
        least_value(H, b, bound, size, room, np.empty(size + 1), w)
        derivatives = H @ w - b
        assert np.abs(w).sum() <= bound * (1 + 1e-12)
        assert derivatives @ w + bound * np.abs(derivatives).max() <= SCORE_ERROR / 10


@each_relation
def test_one_row_moves_scores_by_their_sensitivity_at_most(neighbors, seed):
    rng = as_generator(seed)
    largest = 0.0
    for _ in range(60):
        plan = plan_of(neighbors, bound=float(rng.choice([0.5, 1.0, 2.0])))
        X, y = rows(rng, n=int(rng.integers(1, 30)))
        x, target = rng.choice([-1.0, 1.0], 5), rng.choice([-1.0, 1.0])
        if neighbors is REPLACE:
            Z, t = X.copy(), y.copy()
            Z[0], t[0] = x, target
        else:
            Z, t = np.vstack([X, x]), np.append(y, target)
        moved = np.abs(plan.scores(X, y) - plan.scores(Z, t)).max()
        assert moved <= plan.mechanism.sensitivity
        largest = max(largest, moved / plan.mechanism.sensitivity)
    assert largest > 0.2


@each_relation
def test_exact_log_ratios_of_neighbors_keep_epsilon(neighbors, seed):
    """On two columns of corners: all rows that can come, and all sets of two rows."""
    plan = plan_of(neighbors, p=2, s=1, epsilon=2.0, intercept=False)
    half = replace(plan, epsilon=4.0)  # the odds of half the noise
    corners = list(product((-1.0, 1.0), repeat=3))
    worst, worse = 0.0, 0.0
    for first, second, third in product(corners, repeat=3):
        sides = [[first, second], [first, third]]
        if neighbors is ADD:
            sides = [[first, second], [first, second, third]]
        data = [np.array(side) for side in sides]
        laws = [log_odds(plan, plan.scores(d[:, :2], d[:, 2])) for d in data]
        worst = max(worst, float(np.ptp(laws[0] - laws[1])))
        laws = [log_odds(half, half.scores(d[:, :2], d[:, 2])) for d in data]
        worse = max(worse, float(np.ptp(laws[0] - laws[1])))
    assert worst <= 2.0
    assert worse > 2.0 * worst * 0.99


@pytest.mark.statistical
@each_relation
def test_sets_are_drawn_by_the_exact_distribution(neighbors, seed):
    X, y = rows(as_generator(seed), n=20)
    plan = plan_of(neighbors, epsilon=3.0)
    scores, rng = plan.scores(X, y), as_generator(seed)
    found = np.bincount(
        [plan.mechanism(scores, rng) for _ in range(6_000)], minlength=10
    )
    error = 2 * SCORE_ERROR * (1 + plan.coef_bound) ** 2
    loss = plan.largest_loss + error
    rate = 3.0 / (2 * loss) if neighbors is REPLACE else 3.0 / loss
    weights = np.exp(rate * (scores - scores.max()))
    assert_counts_follow(found, weights / weights.sum())
    weights = np.exp(rate / 2 * (scores - scores.max()))
    assert_counts_detect(found, weights / weights.sum())


def test_the_best_set_is_drawn_as_epsilon_grows(seed):
    X, y = rows(as_generator(seed), n=400)
    plan = plan_of(epsilon=1e6)
    best = int(
        np.argmin([reference(X[:, c], y, 1.0) for c in combinations(range(5), 2)])
    )
    assert plan.mechanism(plan.scores(X, y), as_generator(seed)) == best


@pytest.mark.parametrize(("p", "s"), [(1, 1), (7, 3), (6, 6), (30, 2)])
def test_positions_are_those_of_the_usual_order(p, s):
    expected = list(combinations(range(p), s))
    assert [subset_at(i, p, s) for i in range(len(expected))] == expected


def selector(**given):
    defaults = {"n_features_to_select": 2, "feature_bounds": 1.0, "y_range": (-1, 1)}
    return ExponentialSelector(**defaults | given)


def test_too_many_sets_are_rejected_by_a_public_count():
    with pytest.raises(PlanError, match="most_supports"):
        selector(n_features_to_select=3).plan(100, 1000)
    with pytest.raises(PlanError, match="at most 6 columns"):
        selector(n_features_to_select=7).plan(100, 8)
    assert selector(most_supports=45).plan(100, 10)
    for wrong in ({"coef_bound": 0.0}, {"most_supports": 0}, {"fit_intercept": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            selector(**wrong).plan(100, 5)


def test_the_guarantee_is_pure_and_delta_only_helps():
    plan = selector(epsilon=0.7).plan(100, 5)
    assert plan.event == BoundedRange(0.7)
    assert plan.budget.delta == 0
    more = selector(epsilon=0.7, delta=1e-2).plan(100, 5)
    assert more.event.epsilon >= 0.7
    assert more.event.curve(REPLACE).epsilon(1e-2) <= 0.7
    alone = selector(neighbors="add_or_remove_one").plan(100, 5)
    assert alone.plan.mechanism.sensitivity < 0.51 * plan.plan.mechanism.sensitivity


@each_relation
def test_fits_find_the_columns_and_replay(neighbors, seed):
    rng = as_generator(seed)
    X, y = rows(rng, n=3000, p=8)
    fitted = selector(epsilon=2.0, neighbors=neighbors, random_state=seed).fit(X, y)
    assert fitted.selection_ == (0, 1)
    other = (X[1:], y[1:]) if neighbors is ADD else (np.vstack([-X[:1], X[1:]]), y)

    def train(X, y):
        return selector(epsilon=2.0, neighbors=neighbors, random_state=seed).fit(X, y)

    assert_replays(train, (X, y), other)


def test_one_column_and_constant_columns_are_taken(seed):
    X = np.zeros((50, 1))
    fitted = selector(n_features_to_select=1, random_state=seed).fit(X, np.zeros(50))
    assert fitted.selection_ == (0,)


@pytest.mark.parametrize(("bound", "least"), [(1.0, 0.0), (1e4, 2 * SCORE_ERROR)])
def test_round_off_is_within_what_is_counted_at_any_bound(bound, least, seed):
    """Columns are nearly alike, and values computed again in fractions."""
    rng = as_generator(seed)
    times = MAX_INTEGER_ROWS // 4
    room, x, w = np.empty((4, 4)), np.empty(4), np.zeros(3)
    largest = 0.0
    for _ in range(30):
        Z = np.rint(rng.uniform(-1, 1, (4, 3)) * SCALE)
        Z[:, 1] = np.clip(Z[:, 0] + rng.integers(-4, 5, 4), -SCALE, SCALE)
        y = np.rint(rng.uniform(-1, 1, 4) * SCALE)
        H = times * (Z.T @ Z) / SCALE**2 + RIDGE * np.eye(3)
        b = times * (Z.T @ y) / SCALE**2
        found = least_value(H, b, bound, 3, room, x, w)
        exact = [Fraction(value) for value in w]
        derivatives = [
            sum(Fraction(H[i, j]) * exact[j] for j in range(3)) - 2 * Fraction(b[i])
            for i in range(3)
        ]
        value = (
            sum(
                derivative * v for derivative, v in zip(derivatives, exact, strict=True)
            )
            / 2
        )
        largest = max(largest, abs(float(Fraction(found) - value)))
    plan = replace(plan_of(REPLACE), coef_bound=bound)
    counted = plan.mechanism.sensitivity - plan.largest_loss
    assert least <= largest <= counted / 10
    assert counted == pytest.approx(2 * SCORE_ERROR * (1 + bound) ** 2)
