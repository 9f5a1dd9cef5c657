"""Columns scaled without centering: plans, exact sums, and sparse rows."""

import time
from dataclasses import is_dataclass, replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from tests.refusal import raises_one_line
from tests.stat import assert_detects, assert_follows
from tests.strategies import budgets, each_relation

from tacit._random import as_generator
from tacit.audit import assert_replays, replay
from tacit.data.features import FeatureBounds
from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS
from tacit.persistence import ModelFileError, load_model, save_model
from tacit.preprocessing import PrivateStandardScaler
from tacit.preprocessing._moments import plan_moments
from tacit.preprocessing._squares import SquaresPlan, plan_squares
from tacit.privacy import Budget, Ledger, Neighbors

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
RANGES = ((0.0, 10.0), (-1.0, 3.0), (-1e-100, 0.0))
LARGEST = np.array([10.0, 3.0, 1e-100])


each_delta = pytest.mark.parametrize("delta", [0.0, 1e-5], ids=["pure", "delta"])


def squares(budget, n_rows=5, ranges=RANGES, noise="grid"):
    return plan_squares(ranges, budget, n_rows=n_rows, noise=noise)


def table(n=300, p=40, seed=0, density=0.2):
    """Return sparse rows, some of them beyond the range of -1 to 2."""
    rng = as_generator(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < density)
    return sparse.csr_array(X)


def fitted(X, **parameters):
    given = {"ranges": (-1, 2), "with_mean": False, "random_state": 0, **parameters}
    return PrivateStandardScaler(given.pop("epsilon", 1.0), 1e-6, **given).fit(X)


def extreme_pairs(neighbors):
    """Yield neighbors whose changed row goes from zero to as far as ranges allow."""
    low, high = np.array(RANGES).T
    end = np.where(high > -low, high, low)
    zero = np.zeros(3)
    for others in (np.tile(end, (4, 1)), np.zeros((4, 3)), np.vstack([low, high])):
        for row, other in ((end, zero), (1e300 * np.sign(end), zero), (low, high)):
            first = np.vstack([others, row])
            yield first, np.vstack([others, other]) if neighbors is REPLACE else others


def released(plan, make=np.asarray):
    return lambda X: plan.run(make(X), as_generator(0), 0.01)


@each_relation
@each_delta
def test_planned_event_fits_and_wastes_nothing(neighbors, delta):
    budget = Budget(1.0, delta, neighbors)
    plan = squares(budget)
    assert plan.event.curve(neighbors).fits(budget)
    quieter = replace(plan, multiplier=plan.multiplier * 0.99)
    assert not quieter.event.curve(neighbors).fits(budget)
    assert is_dataclass(plan)
    assert plan == squares(budget)
    assert not any(isinstance(v, Budget | np.ndarray) for v in vars(plan).values())


@each_relation
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(neighbors, data):
    budget = data.draw(budgets(neighbors))
    spent = squares(budget).event.curve(neighbors).epsilon(budget.delta)
    assert spent <= budget.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("noise", ["grid", "float"])
@each_relation
@each_delta
def test_releases_move_within_the_declared_sensitivity(neighbors, delta, noise, make):
    plan = squares(Budget(1.0, delta, neighbors), noise=noise)
    for first, second in extreme_pairs(neighbors):
        assert_replays(released(plan, make), [first], [second])


def violations(plan, neighbors):
    return [
        sentence
        for first, second in extreme_pairs(neighbors)
        for sentence in replay(released(plan), [first], [second]).violations
    ]


@each_relation
@each_delta
def test_planted_bugs_are_reported(neighbors, delta, monkeypatch):
    plan = squares(Budget(1.0, delta, neighbors))
    words = "over the declared sensitivity"
    halved = replace(plan, sensitivity=plan.sensitivity / 2)
    assert any(words in sentence for sentence in violations(halved, neighbors))
    # half the range instead of the largest value, as centered columns have it
    half = np.array([5.0, 2.0, 5e-101])
    monkeypatch.setattr(SquaresPlan, "largest", half)
    assert any(words in sentence for sentence in violations(plan, neighbors))


@each_relation
@each_delta
def test_declared_sensitivity_is_reached_and_counts_the_columns(neighbors, delta):
    plan = squares(Budget(1.0, delta, neighbors))
    size = 3 + (neighbors is ADD)
    assert plan.size == size
    assert plan.sensitivity == (size if delta == 0 else sqrt(size))
    pair = next(iter(extreme_pairs(neighbors)))
    moved = np.subtract(*map(plan.sums, pair)) / plan.mechanism.units
    assert_allclose(np.linalg.norm(moved, 1 if delta == 0 else 2), plan.sensitivity)


@settings(max_examples=100, deadline=None)
@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    low=st.floats(-1e150, -1e-140),
    high=st.floats(1e-140, 1e150),
    epsilon=st.floats(1e-3, 1e3),
)
def test_the_part_of_an_entry_is_within_its_units(value, low, high, epsilon):
    plan = squares(Budget(epsilon, 1e-5), ranges=((low, high),))
    for row in (value, low, high, np.nextafter(high, 0)):
        part = plan.sums(np.array([[row]]))[0]
        assert 0 <= part <= plan.mechanism.units
    end = high if high >= -low else low
    assert plan.sums(np.array([[end]])) == plan.mechanism.units


def test_sums_are_exact_whatever_the_order_the_blocks_and_the_storage(monkeypatch):
    X = table()
    dense = X.toarray()
    plan = squares(Budget(1.0, 1e-5, ADD), ranges=((-1.0, 2.0),) * 40)
    units = plan.mechanism.units
    cut = np.clip(dense, -1, 2) / 2
    known = [round(v * v * units) for v in cut.ravel()]
    known = np.array(known).reshape(cut.shape).sum(axis=0)
    assert_array_equal(plan.sums(dense), [*known, 300 * units])
    for block in (2**20, 7):
        monkeypatch.setattr("tacit.preprocessing._squares.BLOCK_ENTRIES", block)
        assert_array_equal(plan.sums(dense[::-1]), plan.sums(X))
        assert_array_equal(plan.sums(np.asfortranarray(dense)), plan.sums(X))
        assert_array_equal(plan.sums(X[::-1]), plan.sums(X))


@pytest.mark.statistical
@each_delta
def test_scales_are_off_by_what_the_page_says(delta, seed):
    n, p, root = 2000, 800, 0.5
    # noise far from the floor and from one, where clipping would show
    epsilon = 20.0 if delta == 0 else 2.0
    plan = squares(Budget(epsilon, delta), n_rows=n, ranges=((-2.0, 2.0),) * p)
    X = np.full((n, p), 2 * root)
    _, scale = plan.run(X, as_generator(seed), 1e-9)
    size = p if delta == 0 else sqrt(p)
    noise = plan.multiplier * size / n
    off = ((scale / 2) ** 2 - root**2) / noise
    law = stats.laplace if delta == 0 else stats.norm
    assert_follows(off, law.cdf)
    assert_detects(off, law(scale=0.5).cdf)
    assert_detects(off, law(scale=2.0).cdf)
    # to first order, and with 800 columns known to a few percent
    expected = 2 * noise / (2 * root) * law.expect(np.abs)
    assert_allclose(np.abs(scale - 2 * root).mean(), expected, rtol=0.25)


@each_relation
@each_delta
def test_squares_alone_have_less_noise_than_means_and_squares(neighbors, delta):
    budget, ranges = Budget(1.0, delta, neighbors), ((-1.0, 1.0),) * 50
    both = plan_moments(ranges, budget, n_rows=100, noise="grid")
    alone = plan_squares(ranges, budget, n_rows=100, noise="grid")
    loud = both.mechanism.scale(both.size) / both.weight
    quiet = alone.mechanism.scale / alone.mechanism.units
    assert quiet <= loud * (1 + 1e-6)
    if neighbors is REPLACE:
        assert quiet < 0.76 * loud


@each_relation
@each_delta
def test_scales_tend_to_root_mean_squares(neighbors, delta):
    X = table(2000, 5).toarray()
    known = np.sqrt((np.clip(X, -1, 2) ** 2).mean(axis=0))
    gaps = []
    for epsilon in (0.3, 3.0, 1e9):
        plan = squares(
            Budget(epsilon, delta, neighbors), n_rows=2000, ranges=((-1.0, 2.0),) * 5
        )
        zeros, scale = plan.run(X, as_generator(0), 1e-3)
        assert not zeros.any()
        gaps.append(np.abs(scale - known).max())
    assert gaps[0] > gaps[1] > gaps[2]
    # units have an end, where noise is a sixteenth of a row
    assert gaps[2] < 1e-3


@pytest.mark.parametrize("neighbors", [n.value for n in Neighbors])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_spend_is_the_promise(neighbors, delta):
    ledger = Ledger(Budget(2.0, 1e-5, neighbors))
    model = PrivateStandardScaler(
        1.0, delta, ranges=(-1, 2), with_mean=False, neighbors=neighbors
    )
    report = model.fit(table(), ledger=ledger).privacy_
    assert report.guarantee == Budget(1.0, delta, neighbors)
    (entry,) = ledger.report().entries
    spent = entry.event.curve(Neighbors.of(neighbors)).epsilon(delta)
    assert 0.999 <= spent <= 1.0


@each_relation
def test_a_fit_shows_nothing_but_the_release(neighbors):
    X = table(6, 3)
    other = X.toarray()
    other[2] = [-1e9, 0.0, 1e9]
    second = other if neighbors is REPLACE else np.delete(other, 2, axis=0)
    assert_replays(
        lambda rows: fitted(rows, neighbors=neighbors), [X], [sparse.csr_array(second)]
    )


STORED = {
    "csr": lambda X: X,
    "csc": lambda X: X.tocsc(),
    "csr_matrix": sparse.csr_matrix,
    "coo with entries twice": lambda X: sparse.coo_array(
        (np.tile(X.data / 2, 2), tuple(np.tile(i, 2) for i in X.tocoo().coords)),
        shape=X.shape,
    ),
    "csr with entries twice": lambda X: sparse.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape
    ),
    "zeros stored": lambda X: sparse.csr_array(
        (X.toarray().ravel(), np.tile(np.arange(40), 300), np.arange(301) * 40)
    ),
}


@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("neighbors", [n.value for n in Neighbors])
def test_sparse_rows_stay_sparse_and_are_the_dense_ones_to_the_bit(
    store, dtype, neighbors
):
    X = table().astype(dtype)
    given = store(X)
    model = fitted(given, neighbors=neighbors)
    dense = fitted(X.toarray(), neighbors=neighbors)
    for name in ("mean_", "scale_", "feature_bounds_"):
        assert_array_equal(getattr(model, name), getattr(dense, name))
    found = model.transform(given)
    assert sparse.issparse(found)
    assert found.format == "csr"
    assert found.dtype == dtype
    assert found.nnz <= given.nnz
    assert_array_equal(found.toarray(), dense.transform(X.toarray()))
    assert given.dtype == dtype
    assert_array_equal(given.toarray(), X.toarray())


def test_only_stored_entries_are_touched():
    # dense, these rows would take 80 GB
    wide = sparse.csr_array((np.ones(3), ([0, 5, 9], [0, 7, 9_999])), (10**6, 10_000))
    plan = squares(Budget(1.0, 1e-5, ADD), ranges=((0.0, 1.0),) * 10_000)
    assert plan.sums(wide)[:-1].sum() == 3 * plan.mechanism.units


def test_a_hundred_thousand_columns_take_a_second_or_so():
    X = sparse.random_array((2000, 100_000), density=1e-3, format="csr", rng=0)
    fitted(X[:, :5])  # compiles the draws
    start = time.process_time()
    found = fitted(X, ranges=[(-1.0, 1.0)] * 100_000).transform(X)
    assert found.nnz == X.nnz
    assert time.process_time() - start < 1.5


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("limit", [0.3, 4.0, 1e3])
def test_feature_bounds_hold_are_reached_and_fit_a_sparse_model(
    with_mean, dtype, limit, seed
):
    ends = ((-1.0, 2.0), (0.0, 3.0), (-7.0, -5.0), (0.1, 0.7))
    rows = as_generator(seed).normal(size=(200, 4))
    rows[:2] = np.array(ends).T
    X = np.vstack([rows, [[-1e30] * 4, [1e30] * 4]]).astype(dtype)
    model = fitted(X, with_mean=with_mean, ranges=ends, limit=limit, random_state=seed)
    found = np.abs(model.transform(X).astype(np.float64))
    bounds = model.feature_bounds_
    assert np.all(found <= bounds)
    assert_allclose(found.max(axis=0), bounds, rtol=1e-6)
    assert np.all((bounds > 0) & (bounds <= limit))
    if limit > 100:
        far = np.max(np.abs(np.array(ends) - model.mean_[:, None]), axis=1)
        assert_allclose(bounds, far / model.scale_)
    kept = FeatureBounds.of(bounds, 4, centered=False).clip(model.transform(X))
    assert_array_equal(kept, model.transform(X))


def test_scales_stay_within_the_floor_and_the_largest_value():
    X = np.zeros((4, 3))
    for s in range(50):
        plan = squares(Budget(0.01, 1e-5, ADD))
        _, scale = plan.run(X, as_generator(s), 0.02)
        assert np.all(scale >= 0.02 * LARGEST * (1 - 1e-12))
        assert np.all(scale <= LARGEST)


def test_dense_rows_need_no_zero_in_their_ranges():
    X = np.linspace(20.0, 60.0, 2000)[:, None]
    model = fitted(X, ranges=(10, 100), epsilon=10.0)
    assert_allclose(model.scale_, sqrt((X**2).mean()), rtol=0.01)
    assert model.transform(X).min() > 0
    with pytest.raises(ValueError, match="ranges must hold 0"):
        model.transform(sparse.csr_array(X))


def test_what_a_model_takes_is_decided_by_its_fit():
    X = table()
    model = fitted(X).set_params(with_mean=True)
    assert sparse.issparse(model.transform(X))
    centered = fitted(X.toarray(), with_mean=True).set_params(with_mean=False)
    with pytest.raises(TypeError, match="use with_mean=False"):
        centered.transform(X)


def test_a_saved_model_stays_what_it_was(tmp_path):
    X = table()
    model = fitted(X)
    again = load_model(save_model(model, tmp_path / "good"))
    assert_array_equal(again.feature_bounds_, model.feature_bounds_)
    assert_array_equal(again.transform(X).toarray(), model.transform(X).toarray())
    centered = fitted(X.toarray(), with_mean=True).set_params(with_mean=False)
    with pytest.raises(ModelFileError, match="no fit can give"):
        load_model(save_model(centered, tmp_path / "bad"))


def test_plans_that_whole_numbers_cannot_hold_are_refused_in_one_sentence():
    with raises_one_line(PlanError, match="or leave columns out"):
        squares(Budget(1e-8, 0.0))
    with pytest.raises(PlanError, match="use with_mean=True"):
        squares(Budget(1.0, 1e-5), n_rows=MAX_INTEGER_ROWS + 1)
    squares(Budget(1.0, 1e-5, ADD), n_rows=MAX_INTEGER_ROWS + 1)
