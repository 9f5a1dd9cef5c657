"""Plans of the private transformers: budgets, sensitivities and exact distributions."""

from dataclasses import is_dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.refusal import raises_one_line
from tests.strategies import budgets, each_relation

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.exceptions import PlanError
from tacit.preprocessing import PrivateQuantileBounds, PrivateStandardScaler
from tacit.preprocessing._moments import PARTS as MOMENT_PARTS
from tacit.preprocessing._moments import plan_moments
from tacit.preprocessing._quantiles import PARTS, plan_quantiles, rank_scores
from tacit.privacy import Budget, Neighbors

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
RANGES = ((0.0, 10.0), (-1.0, 1.0), (1e6, 1e6 + 1.0))
LEVELS = (0.1, 0.9)


each_delta = pytest.mark.parametrize("delta", [0.0, 1e-5], ids=["pure", "delta"])


def moments(budget, n_rows=5, ranges=RANGES, noise="grid"):
    return plan_moments(ranges, budget, n_rows=n_rows, noise=noise)


def quantiles(budget, ranges=RANGES, n_cells=16, noise="grid"):
    return plan_quantiles(ranges, LEVELS, budget, n_cells=n_cells, noise=noise)


def louder(plan, factor):
    """Return the plan with all its noise times a factor."""
    if hasattr(plan, "multiplier"):
        return replace(plan, multiplier=plan.multiplier * factor)
    return replace(plan, epsilon=plan.epsilon / factor)


def halved(plan):
    """Return the plan with a planted bug: half the sensitivity is declared."""
    if hasattr(plan, "sensitivity"):
        return replace(plan, sensitivity=plan.sensitivity / 2)
    return replace(plan, sensitivities=tuple(s / 2 for s in plan.sensitivities))


def released(plan, seed=0):
    """Return a trainer that makes the release of a plan."""

    def train(X):
        if hasattr(plan, "multiplier"):
            return plan.run(X, as_generator(seed), 0.01)
        return plan.run(X, as_generator(seed))

    return train


def extreme_pairs(neighbors):
    """Yield neighbors whose changed row is as far as ranges allow, and beyond."""
    low, high = np.array(RANGES).T
    middle = (low + high) / 2
    base = np.vstack([low, middle, high, middle])
    rows = {
        "ends": (low, high),
        "end and middle": (low, middle),
        "where the square moves most": (high, middle + 0.19 * (high - low) / 2),
        "beyond": (np.full(3, -1e300), np.full(3, 1e300)),
        "opposite corners": (
            np.where([1, 0, 1], low, high),
            np.where([1, 0, 1], high, low),
        ),
    }
    for row, other in rows.values():
        for others in (base, np.tile(low, (4, 1)), np.tile(high, (4, 1))):
            first = np.vstack([others, row])
            second = np.vstack([others, other]) if neighbors is REPLACE else others
            yield first, second


@pytest.mark.parametrize("plan_of", [moments, quantiles])
@each_relation
@each_delta
def test_planned_event_fits_and_wastes_nothing(plan_of, neighbors, delta):
    budget = Budget(1.0, delta, neighbors)
    plan = plan_of(budget)
    assert plan.event.curve(neighbors).fits(budget)
    assert not louder(plan, 0.99).event.curve(neighbors).fits(budget)


@pytest.mark.parametrize("plan_of", [moments, quantiles])
@each_relation
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(plan_of, neighbors, data):
    budget = data.draw(budgets(neighbors))
    spent = plan_of(budget).event.curve(neighbors).epsilon(budget.delta)
    assert spent <= budget.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("plan_of", [moments, quantiles])
def test_a_plan_holds_public_facts_only(plan_of):
    budget = Budget(1.0, 1e-5)
    plan = plan_of(budget)
    assert is_dataclass(plan)
    assert plan == plan_of(budget)
    assert not any(isinstance(v, Budget | np.ndarray) for v in vars(plan).values())


@pytest.mark.parametrize("noise", ["grid", "float"])
@pytest.mark.parametrize("plan_of", [moments, quantiles])
@each_relation
@each_delta
def test_releases_move_within_the_declared_sensitivity(
    plan_of, neighbors, delta, noise
):
    plan = plan_of(Budget(1.0, delta, neighbors), noise=noise)
    for first, second in extreme_pairs(neighbors):
        assert_replays(released(plan), [first], [second])


@pytest.mark.parametrize("plan_of", [moments, quantiles])
@each_relation
@each_delta
def test_half_the_sensitivity_is_reported(plan_of, neighbors, delta):
    plan = halved(plan_of(Budget(1.0, delta, neighbors)))
    found = [
        sentence
        for first, second in extreme_pairs(neighbors)
        for sentence in replay(released(plan), [first], [second]).violations
    ]
    assert any("over the declared sensitivity" in sentence for sentence in found)


@each_relation
@each_delta
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_sums_of_any_neighbors_are_within_the_sensitivity(neighbors, delta, data):
    plan = moments(Budget(1.0, delta, neighbors), n_rows=3)
    value = st.floats(-1.5, 1.5)
    unit = np.array(
        data.draw(st.lists(st.tuples(*[value] * 3), min_size=4, max_size=4))
    )
    low, high = np.array(RANGES).T
    X = (low + high) / 2 + unit * (high - low) / 2
    first, second = (X[:3], X[1:]) if neighbors is REPLACE else (X, X[1:])
    moved = plan.sums(first) - plan.sums(second)
    assert np.linalg.norm(moved, 1 if delta == 0 else 2) <= plan.sensitivity


@each_relation
@each_delta
def test_declared_sensitivity_of_moments_is_reached(neighbors, delta):
    plan = moments(Budget(1.0, delta, neighbors))
    low, high = np.array(RANGES).T
    if neighbors is REPLACE:
        moved = plan.sums(np.array([low, low])) - plan.sums(np.array([low, high]))
    else:
        moved = plan.sums(np.array([low, high])) - plan.sums(np.array([low]))
    assert_allclose(
        np.linalg.norm(moved, 1 if delta == 0 else 2), plan.sensitivity, rtol=1e-7
    )


@pytest.mark.parametrize(("neighbors", "weight"), [(REPLACE, 1.5), (ADD, 1.0)])
def test_a_heavier_second_moment_would_need_more_noise(neighbors, weight):
    # 1.7 and 1.1 are beyond what the proof allows: some pair of values shows it
    u = np.linspace(-1, 1, 401)
    gaps = {}
    for w in (weight, 1.7 if neighbors is REPLACE else 1.1):
        points = np.stack([u, w * (1 - u**2)])
        if neighbors is REPLACE:
            points = points[:, :, None] - points[:, None, :]
        gaps[w] = np.sqrt((points**2).sum(axis=0)).max() - neighbors.rows_changed
    assert gaps.pop(weight) <= 1e-12
    assert min(gaps.values()) > 1e-3


@each_relation
@each_delta
def test_moments_tend_to_those_without_noise(neighbors, delta, seed):
    rng = as_generator(seed)
    low, high = np.array(RANGES).T
    X = low + (high - low) * rng.beta(2.0, 3.0, size=(2000, 3))
    gaps = []
    for epsilon in (1.0, 1e3, 1e9):
        plan = moments(Budget(epsilon, delta, neighbors), n_rows=len(X))
        mean, scale = plan.run(X, as_generator(seed), 0.01)
        gaps.append(
            max(
                np.abs((mean - X.mean(axis=0)) / (high - low)).max(),
                np.abs((scale - X.std(axis=0)) / (high - low)).max(),
            )
        )
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-6


def test_sums_are_exact_whatever_the_order_and_the_blocks(seed, monkeypatch):
    rng = as_generator(seed)
    X = rng.normal(size=(1000, 3))
    plan = moments(Budget(1.0, 1e-5, ADD), ranges=((-3.0, 3.0),) * 3)
    whole = plan.sums(X)
    monkeypatch.setattr("tacit.preprocessing._moments.BLOCK_ROWS", 7)
    assert_array_equal(plan.sums(X[::-1]), whole)
    assert_array_equal(plan.sums(np.asfortranarray(X)), whole)
    assert_array_equal(whole * MOMENT_PARTS, np.rint(whole * MOMENT_PARTS))
    assert whole[-1] == 1000


def test_no_variance_is_negative_however_loud_the_noise(seed):
    X = np.full((4, 3), 0.5)
    for s in range(50):
        plan = moments(Budget(0.01, 1e-5, ADD))
        mean, scale = plan.run(X, as_generator(seed + s), 0.02)
        low, high = np.array(RANGES).T
        assert np.all((low <= mean) & (mean <= high))
        assert np.all(scale >= 0.01 * (high - low) * (1 - 1e-12))
        assert np.all(scale <= (high - low) / 2)


def missed_rows(counts, position, q):
    """Rows that keep a grid point from being a quantile, by its definition."""
    n, below, above = sum(counts), sum(counts[:position]), sum(counts[position + 1 :])
    return max(0, below - q * n, above - (1 - q) * n)


def test_scores_are_the_rows_by_which_a_point_misses_the_quantile(seed):
    counts = as_generator(seed).integers(0, 9, size=20)
    for level in (1, PARTS // 100, PARTS // 3, PARTS - 1):
        q = Fraction(level, PARTS)
        exact = [-missed_rows(counts.tolist(), k, q) for k in range(20)]
        assert_array_equal(rank_scores(counts, level), [float(e) for e in exact])


@each_relation
def test_scores_move_by_at_most_the_sensitivity_on_a_whole_small_domain(neighbors):
    plan = quantiles(Budget(1.0, 0.0, neighbors), ranges=((0.0, 1.0),))
    cells = 3
    eye = np.eye(cells, dtype=np.int64)
    for counts in product(range(4), repeat=cells):
        counts = np.array(counts)
        for i, j in product(range(cells), repeat=2):
            other = counts + eye[i] - (eye[j] if neighbors is REPLACE else 0)
            if min(other) < 0 or not counts.any() or not other.any():
                continue
            for level, sensitivity in zip(plan.levels, plan.sensitivities, strict=True):
                moved = rank_scores(counts, level) - rank_scores(other, level)
                assert np.abs(moved).max() <= sensitivity


def test_a_row_more_moves_scores_by_less_than_a_row_replaced():
    added = quantiles(Budget(1.0, 0.0, ADD)).sensitivities
    assert_allclose(added, 0.9, rtol=1e-5)
    assert quantiles(Budget(1.0)).sensitivities == (1.0, 1.0)


@each_relation
def test_quantiles_tend_to_those_without_noise(neighbors, seed):
    X = as_generator(seed).beta(2.0, 3.0, size=(3000, 3)) * 10
    plan = quantiles(
        Budget(1e6, 1e-5, neighbors), ranges=((0.0, 10.0),) * 3, n_cells=1000
    )
    found = plan.run(X, as_generator(seed)) * 10
    snapped = np.rint(X * 100) / 100
    for position, q in enumerate(LEVELS):
        below = (snapped < found[position] - 1e-9).mean(axis=0)
        up_to = (snapped <= found[position] + 1e-9).mean(axis=0)
        assert np.all((below <= q + 1e-5) & (up_to >= q - 1e-5))


def test_counts_put_each_row_at_the_nearest_point():
    plan = quantiles(Budget(1.0), n_cells=4)
    values = np.array([-9.0, 0.0, 0.12, 0.13, 0.5, 0.99, 7.0])
    assert_array_equal(plan.counts(values, 0.0, 1.0), [3, 1, 1, 0, 2])


@pytest.mark.parametrize("plan_of", [moments, quantiles])
def test_a_budget_too_small_for_the_draw_is_refused_in_one_sentence(plan_of):
    with raises_one_line(PlanError, match="raise epsilon"):
        plan_of(Budget(2e-8 if plan_of is quantiles else 1e-9, 0.0))


@pytest.mark.parametrize("ranges", [(0, 1), {"a": (0, 1), "b": (0, 2)}])
def test_a_transformer_plans_without_rows_what_its_fit_charges(ranges):
    for kind in (PrivateStandardScaler, PrivateQuantileBounds):
        step = kind(1.0, 1e-6, ranges=ranges, random_state=0)
        planned = step.plan(100, 2)
        X = pd.DataFrame(np.zeros((100, 2)), columns=["a", "b"])
        (entry,) = step.fit(X).privacy_.entries
        assert entry.event == planned.event
        assert step.set_params(epsilon=2.0).plan(100, 2).event != planned.event
        with pytest.raises(ValueError, match="n_rows must be an integer >= 2"):
            step.plan(1, 2)
