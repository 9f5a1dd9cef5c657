"""Noisy top columns: exact sums, declared sensitivities, laws and accuracy."""

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.special import log_softmax
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import replay
from tacit.exceptions import PlanError
from tacit.feature_selection import PeelingSelector
from tacit.feature_selection._peel import (
    FRACTIONS,
    Peel,
    _integer_columns,
    centered_targets,
)
from tacit.feature_selection._sums import SCALE, UNIT
from tacit.privacy import Budget, Neighbors

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
COMMON = {"feature_bounds": 1.0, "y_range": (-2, 2)}
each_relation = pytest.mark.parametrize(
    "neighbors", [REPLACE, ADD], ids=["replace", "add"]
)
each_method = pytest.mark.parametrize("pursuit", [False, True], ids=["corr", "pursuit"])
each_kind = pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["pure", "approx"])
# wide enough a budget for all kinds of releases to be planned
LOOSE = 1e4


def rows(n=300, p=6, seed=0):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, p))
    y = X[:, 1] - 0.5 * X[:, min(4, p - 1)] + 0.1 * rng.standard_normal(n)
    return X, np.clip(y, -1, 1)


@each_relation
@each_method
@each_kind
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1000.0])
def test_plans_fit_the_budget_and_use_most_of_it(
    neighbors, pursuit, delta, labels, epsilon
):
    budget = Budget(epsilon, delta, neighbors)
    plan = Peel(3, pursuit, labels).plan(budget, 5000, 20)
    curve = plan.event.curve(neighbors)
    assert curve.fits(budget)
    assert curve.epsilon(delta) > 0.99 * epsilon


def test_columns_are_scaled_only_where_the_noise_leaves_their_squares():
    solver, budget = Peel(3), Budget(1.0, 1e-6)
    assert solver.plan(budget, 10_000, 10).spread_multiplier is not None
    assert solver.plan(budget, 10_000, 10_000).spread_multiplier is None
    assert solver.plan(budget, 100, 10).spread_multiplier is None


def test_an_epsilon_below_all_use_is_rejected():
    with pytest.raises(PlanError, match="epsilon"):
        Peel(3).plan(Budget(1e-9), 100, 5)


@each_method
@each_kind
@pytest.mark.parametrize("labels", [False, True], ids=["numbers", "labels"])
def test_every_release_is_charged(pursuit, delta, labels):
    X, y = rows()
    solver = Peel(3, pursuit, labels)
    plan = solver.plan(Budget(LOOSE, delta), len(y), X.shape[1])
    with recording() as tape:
        solver.run(plan, X, np.sign(y) if labels else y, as_generator(0))
    charged = [getattr(event, "count", 1) for event in plan.event.events]
    assert sum(charged) == len(tape.releases)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_scaled_columns_stay_within_the_bound_of_scores(is_sparse):
    X = np.zeros((300, 4))
    X[0] = 1.0  # far from all others, which the scale is made for
    plan = Peel(2).plan(Budget(LOOSE, 1e-6), len(X), X.shape[1])
    assert plan.spread_multiplier is not None
    table = sparse.csr_array(X) if is_sparse else X
    columns = _integer_columns(plan, table, float(len(X)), as_generator(0))
    assert abs(columns).max() == SCALE


@each_relation
@each_method
@each_kind
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("epsilon", [1.0, LOOSE])
def test_neighbors_move_each_release_by_no_more_than_declared(
    neighbors, pursuit, delta, is_sparse, epsilon, seed
):
    X, y = rows(seed=seed)
    solver = Peel(3, pursuit)
    plan = solver.plan(Budget(epsilon, delta, neighbors), len(y), X.shape[1])
    rng = as_generator(seed + 1)

    def select(X, y):
        table = sparse.csr_array(X) if is_sparse else X.copy()
        return solver.run(plan, table, y.copy(), as_generator(seed))

    for trial in range(12):
        position = int(rng.integers(len(y)))
        row = np.sign(rng.standard_normal(X.shape[1])) * (trial % 3 > 0)
        target = [-1.0, 1.0, 0.0][trial % 3]
        if neighbors is REPLACE:
            other, z = X.copy(), y.copy()
            other[position], z[position] = row, target
        else:
            other, z = np.vstack([X, row]), np.append(y, target)
        for pair in (((X, y), (other, z)), ((other, z), (X, y))):
            report = replay(select, *pair)
            assert report.ok, str(report)
    spread = plan.spread_multiplier is not None
    assert len(report.entries) == 2 + 1 + 3 + spread + 2 * pursuit


@each_relation
def test_declared_sensitivities_are_reached(neighbors, seed):
    # every row says that all columns are the target, but for one that denies it
    y = np.resize([1.0, -1.0], 50)
    X = np.tile(y[:, None], (1, 4))
    other, z = (X[1:], y[1:]) if neighbors is ADD else (X.copy(), y)
    if neighbors is REPLACE:
        other[0] *= -1
    solver = Peel(2, pursuit=True, labels=True)
    plan = solver.plan(Budget(LOOSE, 1e-6, neighbors), 50, 4)
    for spread in (plan.spread_multiplier, None):
        used = replace(plan, spread_multiplier=spread)
        report = replay(
            lambda X, y, used=used: solver.run(used, X.copy(), y, as_generator(seed)),
            (X, y),
            (other, z),
        )
        assert report.ok
        # half of what is declared would be passed by far
        for choices, least in ((True, 0.9), (False, 0.6)):
            parts = [
                entry.moved / entry.sensitivity
                for entry in report.entries
                if (entry.label == "Exponential") is choices
            ]
            assert max(parts) > least


@pytest.mark.parametrize("count", [1, 3])
@each_kind
@each_relation
def test_moments_move_by_no_more_than_declared_and_nearly_that(count, delta, neighbors):
    plan = Peel(2).plan(Budget(1.0, delta, neighbors), 100, 5)
    norm = 1 if plan.pure else 2
    values = np.linspace(-1, 1, 201)
    # columns do as they like, so the worst of one is the worst of all
    if neighbors is REPLACE:
        a, b = np.meshgrid(values, values)
        worst = (np.abs(a - b) ** norm + np.abs(a**2 - b**2) ** norm).max() * count
    else:
        worst = 2 * count + 1
    sensitivity = plan.moments(count, 1.0).sensitivity / UNIT
    assert worst ** (1 / norm) <= sensitivity <= 1.001 * worst ** (1 / norm)


@each_kind
@each_relation
def test_normal_equations_move_by_no_more_than_declared(delta, neighbors):
    plan = Peel(2, pursuit=True).plan(Budget(1.0, delta, neighbors), 100, 5)
    norm = 1 if plan.pure else 2
    moved = [1, 2, 2] if neighbors is REPLACE else [1, 1, 1]
    declared = plan.products(3).sensitivity / UNIT
    assert declared == pytest.approx(np.linalg.norm(moved, norm))


def test_sums_are_integers(seed):
    X, y = rows(seed=seed)
    with recording() as tape:
        Peel(3, True).run(
            Peel(3, True).plan(Budget(LOOSE, 1e-6), *X.shape),
            X,
            y,
            as_generator(seed),
        )
    for entry in tape.releases[2:]:  # after two quantiles, of ranks
        assert_array_equal(entry.value, np.rint(entry.value))


def columns_law(solver, plan, X, y, chosen_of):
    """Return the probability of each set, where nothing but the choices is noisy."""
    targets = centered_targets(plan, y, as_generator(0)).values
    exponents = plan.column()._exponents(
        np.abs(np.rint(X * SCALE).T @ targets)
    ) / float(2**32)
    law = {}
    for order in permutations(range(X.shape[1]), plan.n_select):
        log_p, free = 0.0, list(range(X.shape[1]))
        for position in order:
            log_p += log_softmax(exponents[free])[free.index(position)]
            free.remove(position)
        key = tuple(sorted(order))
        law[key] = law.get(key, 0.0) + np.exp(log_p)
    return np.array([law[key] for key in chosen_of])


@pytest.mark.statistical
def test_columns_are_chosen_by_the_distribution_of_the_mechanism(seed):
    X, y = rows(200, 4, seed)
    solver, sets = Peel(2, labels=True), list(combinations(range(4), 2))
    # sums of the targets without noise, as nothing but choices is to vary
    quiet = replace(solver.plan(Budget(0.3), 200, 4), center_multiplier=1e-9)
    rng = as_generator(seed)
    found = [sets.index(solver.run(quiet, X.copy(), y, rng)) for _ in range(2000)]
    counts = np.bincount(found, minlength=len(sets))
    assert_counts_follow(counts, columns_law(solver, quiet, X, y, sets))
    half = replace(quiet, choice_epsilon=2 * quiet.choice_epsilon)
    assert_counts_detect(counts, columns_law(solver, half, X, y, sets))


@each_method
@each_relation
@each_kind
def test_the_right_columns_are_found_where_privacy_is_cheap(
    pursuit, neighbors, delta, seed
):
    X, y = rows(500, 8, seed)
    solver = Peel(2, pursuit)
    plan = solver.plan(Budget(100.0, delta, neighbors), 500, 8)
    assert solver.run(plan, X, y, as_generator(seed)) == (1, 4)


def test_a_mean_far_from_zero_does_not_drown_correlations(seed):
    rng = as_generator(seed)
    X = rng.uniform(0, 1, (3000, 10))
    y = 90 + X[:, 3] - X[:, 7] + 0.2 * rng.standard_normal(3000)
    for method in ("pursuit", "correlation"):
        selector = PeelingSelector(
            2.0,
            1e-6,
            n_features_to_select=2,
            feature_bounds=(-1, 1),
            y_range=(0, 100),
            method=method,
            random_state=seed,
        )
        assert selector.fit(X, y).selection_ == (3, 7)


def test_columns_of_unequal_spread_are_compared_by_correlation(seed):
    rng = as_generator(seed)
    spread = np.geomspace(0.05, 0.5, 12)
    X = np.clip(rng.standard_normal((20_000, 12)) * spread, -1, 1)
    signal = X[:, 0] / spread[0] - X[:, 2] / spread[2]
    y = (signal + 0.3 * rng.standard_normal(20_000)) / 6
    selector = PeelingSelector(
        1.0, 1e-6, n_features_to_select=2, random_state=seed, **COMMON
    )
    assert selector.fit(X, y).selection_ == (0, 2)


def test_pursuit_prefers_columns_that_matter_to_correlated_ones(seed):
    rng = as_generator(seed)
    X = rng.standard_normal((20_000, 6)) / 3
    X[:, 1] = 0.9 * X[:, 0] + 0.4 * X[:, 1]  # a shadow of the first
    y = X[:, 0] + 0.4 * X[:, 5]
    given = {"n_features_to_select": 2, "random_state": seed, **COMMON}
    pursuit = PeelingSelector(2.0, **given).fit(X, y)
    assert pursuit.selection_ == (0, 5)
    alone = PeelingSelector(2.0, method="correlation", **given).fit(X, y)
    assert alone.selection_ == (0, 1)


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_labels_and_binary_columns_work(share, seed):
    rng = as_generator(seed)
    X = (rng.random((8000, 20)) < 0.2).astype(float)
    score = 2 * X[:, 4] + 2 * X[:, 11] + rng.standard_normal(8000)
    labels = np.where(score > np.quantile(score, 1 - share), "yes", "no")
    selector = PeelingSelector(
        2.0,
        n_features_to_select=2,
        feature_bounds=(0, 1),
        classes=["no", "yes"],
        random_state=seed,
    )
    assert selector.fit(X, labels).selection_ == (4, 11)


@pytest.mark.parametrize("expected", [None, 20, 10**7])
def test_a_wrong_guess_of_the_rows_does_little(expected, seed):
    X, y = rows(4000, 10, seed)
    selector = PeelingSelector(
        2.0,
        1e-6,
        n_features_to_select=2,
        neighbors="add_or_remove_one",
        expected_rows=expected,
        random_state=seed,
        **COMMON,
    )
    assert selector.fit(X, y).selection_ == (1, 4)


@each_method
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((2, 1)), np.zeros(2)),
        (np.ones((50, 3)), np.arange(50.0)),
        (np.eye(4), np.ones(4)),
        (np.full((5, 2), 1e308), np.full(5, -1e308)),
    ],
    ids=["tiny", "constant", "square", "huge"],
)
def test_there_is_always_an_answer(pursuit, X, y, seed):
    selector = PeelingSelector(
        n_features_to_select=X.shape[1],
        method="pursuit" if pursuit else "correlation",
        random_state=seed,
        **COMMON,
    )
    assert selector.fit(X, y).selection_ == tuple(range(X.shape[1]))


def test_unknown_methods_are_rejected():
    X, y = rows()
    with pytest.raises(ValueError, match="method"):
        PeelingSelector(n_features_to_select=1, method="all", **COMMON).fit(X, y)


def test_rows_of_the_caller_are_left_alone(seed):
    X, y = rows(seed=seed)
    kept = X.copy()
    selector = PeelingSelector(n_features_to_select=2, random_state=seed, **COMMON)
    selector.fit(X, y)
    assert_array_equal(X, kept)
    table = sparse.csr_array(X)
    selector.fit(table, y)
    assert_array_equal(table.toarray(), kept)


def test_fractions_leave_most_for_the_choices():
    assert FRACTIONS.choices("targets", "center", "spread", "fits") > 0.5
