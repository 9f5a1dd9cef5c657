"""Sums by bins are those of features; shrinkage leaves what stands out."""

import numpy as np
import pytest

from tacit import Seed
from tacit._random import as_generator
from tacit.additive import AdditiveClassifier
from tacit.additive._bins import Bins
from tacit.additive._columns import CELLS, Column
from tacit.additive._plan import Facts, planned_fit, regression_loss
from tacit.additive._shrink import blocks_of, shrink, unseen
from tacit.additive._sums import MARGIN_NORM, PARTS, BinSums, binned_rows
from tacit.additive._terms import ROW_NORM, Waves, main_terms, usual_waves
from tacit.convex import Logistic, Softmax
from tacit.privacy import Budget, Neighbors
from tacit.solvers._gradients.descent import (
    gradient_sensitivity,
    largest_margin,
    norm_clipped,
)

N = 5000
COLUMNS = (Column("a"), Column("b", categories=("x", "y", "z")), Column("c"))


def made_bins(column, mass, rng):
    """Return bins of a column, with masses that a fit might have released."""
    n = len(mass) - 1
    if not column.is_numeric:
        return Bins(column, np.arange(n + 1, dtype=np.int32), np.zeros(n + 1), mass)
    starts = np.sort(rng.choice(CELLS - 1, n - 1, replace=False)) + 1
    starts = np.append(0, starts).astype(np.int32)
    return Bins(column, starts, (np.arange(n) + 0.5) / n, mass)


def made(loss, y_range=None):
    """Return sums, binned rows, features as in gradients and as in margins, and y."""
    rng = as_generator(3)
    sizes = (41, 5, 12)
    mass = [rng.dirichlet(np.full(size, 0.3)) for size in sizes]
    bins = [made_bins(*each, rng) for each in zip(COLUMNS, mass, strict=True)]
    facts = Facts(COLUMNS, N, loss, y_range)
    plan = planned_fit(facts, Budget(1.0, 1e-6, Neighbors.REPLACE_ONE), "grid")
    terms = main_terms(bins, plan.waves)
    of_rows = np.column_stack([rng.choice(size, N) for size in sizes])
    if loss.targets == "codes":
        y = rng.choice(loss.n_outputs, N).astype(float)
    else:
        y = rng.choice([-1.0, 1.0], N)
    sums = BinSums(plan.descent.problem, plan.descent.clip, terms)
    rows = binned_rows(terms, of_rows, y, ROW_NORM)
    features = np.hstack([t.factors[0][of_rows[:, k]] for k, t in enumerate(terms)])
    constant = np.full((N, 1), plan.descent.problem.constant)
    within, near = (
        np.hstack([features * scales[:, None], constant])
        for scales in rows.arrays()[1][:, 1:].T
    )
    return sums, rows, within, near, y


LOSSES = [Logistic(cap=0.5), Softmax(3), regression_loss()]


@pytest.mark.parametrize("loss", LOSSES, ids=["two", "three", "regression"])
def test_sums_by_bins_are_those_of_features(loss):
    y_range = (-1.0, 1.0) if loss is LOSSES[2] else None
    sums, rows, X, near, y = made(loss, y_range)
    W = as_generator(4).normal(size=(X.shape[1], loss.n_outputs))
    labels = y.astype(np.intp) if loss.targets == "codes" else y
    expected = X.T @ norm_clipped(loss.derivative(labels, near @ W), sums.clip)
    np.testing.assert_allclose(rows.sum(sums.gradient(W))[0], expected, atol=1e-9)
    np.testing.assert_allclose(rows.sum(sums.moments)[0], X.T @ X, atol=1e-9)


def test_rows_are_within_the_norm_and_some_reach_it():
    _, rows, *features, _ = made(Logistic())
    all_scales = rows.arrays()[1][:, 1:].T
    for X, scales, most in zip(features, all_scales, (1, MARGIN_NORM), strict=True):
        norms = np.linalg.norm(X[:, :-1], axis=1)
        assert norms.max() <= most * ROW_NORM
        assert norms.max() > most * ROW_NORM * (1 - 2 / PARTS)
        assert (scales < 1).any()
        assert (scales == 1).any()
        assert np.array_equal(scales * PARTS, np.rint(scales * PARTS))


def test_a_row_moves_a_gradient_by_its_clip_and_no_further():
    sums, rows, X, *_ = made(Logistic(cap=0.5))
    W = np.zeros((X.shape[1], 1))
    bins, targets = rows.arrays()
    longest = int(np.argmax(np.linalg.norm(X, axis=1)))
    one = sums.gradient(W)(bins[longest : longest + 1], targets[longest : longest + 1])
    moved = np.linalg.norm(one[0])
    bound = sums.clip * sums.problem.bounds.x_norm
    assert 0.99 * bound < moved <= bound


def test_sums_do_not_depend_on_how_rows_are_in_memory():
    sums, rows, X, *_ = made(Logistic())
    bins, targets = rows.arrays()
    W = as_generator(5).normal(size=(X.shape[1], 1))
    columns = np.asfortranarray(bins)
    for of in (sums.moments, sums.gradient(W)):
        np.testing.assert_array_equal(of(bins, targets)[0], of(columns, targets)[0])


def test_pure_noise_is_shrunk_and_signal_stays():
    rng = as_generator(6)
    bins = [
        made_bins(c, np.full(s, 1 / s), rng)
        for c, s in zip(COLUMNS, (41, 5, 12), strict=True)
    ]
    terms = main_terms(bins, Waves(14, 0.6))
    blocks = blocks_of(terms, bins)
    size = blocks[-1].stop
    assert [k for b in blocks for k in range(b.start, b.stop)] == list(range(size))
    root = 0.1 * rng.normal(size=(size, size))
    noise = root @ root.T + 0.01 * np.eye(size)
    weights = rng.multivariate_normal(np.zeros(size), noise)
    kept, for_bands = shrink(weights, noise, blocks)
    assert np.linalg.norm(kept) < 0.4 * np.linalg.norm(weights)
    assert (np.diag(for_bands) < np.diag(noise)).all()
    weights = rng.normal(scale=50.0, size=size)
    kept, for_bands = shrink(weights, noise, blocks)
    np.testing.assert_allclose(kept, weights, atol=1.5)
    np.testing.assert_allclose(np.diag(for_bands), np.diag(noise), rtol=0.02)


def test_what_one_block_loses_another_takes_over():
    # the sum of two weights is known ten times better than either
    noise = np.array([[1.0, -0.99], [-0.99, 1.0]])
    weights = np.array([3.0, -1.0])
    found, _ = shrink(weights, noise, [slice(0, 1), slice(1, 2)])
    assert abs(found[1]) < 0.5
    assert found.sum() == pytest.approx(2.0, abs=0.15)


def test_shrinkage_accepts_covariances_that_round_off_made_indefinite():
    noise = np.array([[1.0, 1.0], [1.0, 1.0]]) - 1e-9 * np.eye(2)
    found, for_bands = shrink(np.array([1e-8, 1e-8]), noise, [slice(0, 1), slice(1, 2)])
    assert np.isfinite(found).all()
    assert np.isfinite(for_bands).all()


@pytest.mark.parametrize("regression", [False, True])
def test_less_noise_gives_more_waves(regression):
    levels = (1e-6, 1e-4, 1e-3, 1e-2, 1.0)
    found = [usual_waves(noise, 4, regression=regression).count for noise in levels]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[2] > found[4] > 1
    many = usual_waves(1e-6, 64, regression=regression).count
    assert many < usual_waves(1e-6, 16, regression=regression).count / 2


def test_many_columns_have_as_few_waves_as_a_descent_takes():
    columns = tuple(Column(k) for k in range(300))
    budget = Budget(1.0, 1e-9, Neighbors.REPLACE_ONE)
    plan = planned_fit(Facts(columns, 10**6, Logistic()), budget, "grid")
    assert plan.descent.problem.n_features <= 2000
    assert plan.waves.count == 5
    assert plan.descent.problem.n_features > 1600


def test_rounding_of_margins_is_inside_the_sensitivity():
    facts = Facts(COLUMNS, N, Logistic())
    plan = planned_fit(facts, Budget(1.0, 1e-6, Neighbors.REPLACE_ONE), "grid").descent
    problem = plan.problem
    alone = gradient_sensitivity(problem, plan.clip, Neighbors.REPLACE_ONE)
    # a sum of as many products as features, and a scale, for each of 2^24 rows, twice
    unit = np.finfo(float).eps / 2
    off = unit * (problem.n_features + 1) * MARGIN_NORM * largest_margin(problem)
    moved = 2 * 2**24 * off * problem.loss.max_curvature() * problem.bounds.x_norm
    assert plan.sensitivity - alone >= moved


def test_missing_cells_that_no_row_may_have_are_unseen():
    mass = np.array([0.5, 0.3, 0.19, 0.005, 0.005])
    rng = as_generator(7)
    listed = made_bins(COLUMNS[1], mass, rng)
    numbers = made_bins(COLUMNS[0], mass, rng)
    assert unseen(listed, 0.004).tolist() == [False, False, False, True, True]
    assert unseen(numbers, 0.004).tolist() == [False, False, False, False, True]
    assert not unseen(listed, 0.002).any()


def test_missing_cells_without_rows_have_no_effect():
    rng = as_generator(8)
    X = rng.choice([0, 1], (3000, 2)).astype(object)
    y = X[:, 0].astype(int)
    lists = {0: [0, 1], 1: [0, 1]}
    model = AdditiveClassifier(
        1.0, 1e-6, categories=lists, interactions=[(0, 1)], random_state=Seed(1)
    )
    model.set_params(classes=[0, 1]).fit(X, y)
    for shape in model.shapes_:
        # the mean over all bins was taken off after they were set to zero
        assert abs(shape.values[2:]).max() < 0.1
    cells = model.pairs_[0].values
    assert (cells[2:] == 0).all()
    assert (cells[:, 2:] == 0).all()
    assert abs(cells[:2, :2]).min() > 0
