"""Coordinate sums in integers: each row's part is its own, and sums are exact."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from tacit._random import as_generator
from tacit.convex import Huber, HuberizedHinge, Logistic, Softmax, Squared
from tacit.exceptions import PlanError
from tacit.mechanisms import DiscreteGaussian
from tacit.solvers._coordinates import kernels as kernels
from tacit.solvers._coordinates.columns import (
    Columns,
    Updates,
    check_loss,
    weight_after,
    weights_after,
)

LOSSES = [Squared(), Huber(0.4), Logistic(), Logistic(0.7), HuberizedHinge(0.3)]
MECHANISM = DiscreteGaussian(0.5)
UNITS = MECHANISM.units
N, P = 83, 7  # no multiple of any width of vectors

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
layouts = pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"]
)


def has_labels(loss):
    return not isinstance(loss, (Squared, Huber))


def sample(loss, seed, n=N, p=P):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, p)) * (rng.random((n, p)) < 0.6)
    y = X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n)
    return X, (np.where(y > 0, 1.0, -1.0) if has_labels(loss) else y)


def updates_of(p=P, clip=0.3, step=0.05, l1=0.2, l2=0.1, low=-2.0, high=1.5):
    parts = tuple(np.full(p, v) for v in (l1, l2, low, high))
    return Updates.of(np.linspace(clip, 2 * clip, p), UNITS, np.full(p, step), parts, 1)


def order_of(n, p=P, seed=3):
    return as_generator(seed).integers(0, p, n)


def noise_of(n, seed=5):
    return MECHANISM.draws(n, as_generator(seed))


def own_part(loss, x, target, w, j, updates):
    """A row's part of sum j from its own numbers alone, by a table of one row."""
    columns = Columns(x[None], np.array([target]), loss)
    return columns.sums(columns.state(w), updates)[j]


@each_loss
def test_slopes_agree_with_the_loss(loss, seed):
    z = np.concatenate([np.linspace(-40, 40, 2001), [-1e60, -800.0, 800.0, 1e60, 0.0]])
    z = np.append(z, as_generator(seed).standard_normal(1001))
    for label in (1.0, -1.0):
        y = np.full(len(z), label)
        columns = Columns(z[:, None], y, loss)
        found = columns.derivatives(columns.state(np.ones(1)))
        expected = loss.derivative(y, z[:, None])[:, 0]
        if has_labels(loss):
            expected *= y
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)


@each_loss
@layouts
def test_a_row_has_the_same_part_wherever_it_lies(loss, layout, seed):
    X, y = sample(loss, seed)
    rng, updates = as_generator(seed + 1), updates_of()
    w = rng.standard_normal(P)
    states, derivatives = [], []
    for some in [
        np.arange(N),
        rng.permutation(N),
        np.arange(N - 1),
        np.arange(3, N),
        np.append(np.arange(N), rng.integers(0, N, 14)),
    ]:
        columns = Columns(layout(X[some]), y[some], loss)
        state, derivative = np.full(N, np.nan), np.full(N, np.nan)
        t = columns.state(w)
        columns.update_all(w, t, order_of(30), updates, released=noise_of(30))
        state[some], derivative[some] = t, columns.derivatives(t)
        states.append(state)
        derivatives.append(derivative)
    for found in (states, derivatives):
        for other in found[1:]:
            both = np.isfinite(other)
            assert np.array_equal(found[0][both], other[both])


@each_loss
@layouts
def test_a_sum_is_that_of_the_parts_of_its_rows(loss, layout, seed):
    X, y = sample(loss, seed)
    updates, w = updates_of(), as_generator(seed).standard_normal(P)
    columns = Columns(layout(X), y, loss)
    sums = columns.sums(columns.state(w), updates)
    for j in range(P):
        parts = [own_part(loss, x, v, w, j, updates) for x, v in zip(X, y, strict=True)]
        assert sums[j] == sum(parts)
        assert max(np.abs(parts)) <= UNITS
    # and each part is the cut product, rounded
    derivatives = loss.derivative(y, (X @ w)[:, None])
    scaled = np.clip(derivatives * X * updates.per_unit, -UNITS, UNITS)
    assert np.allclose(sums, scaled.sum(axis=0), atol=1e-6 * UNITS)


@each_loss
def test_walks_on_both_layouts_release_the_same(loss, seed):
    X, y = sample(loss, seed)
    w, order, noise = np.zeros(P), order_of(200), noise_of(200)
    dense, packed = Columns(X, y, loss), Columns(sparse.csr_array(X), y, loss)
    found = [
        c.update_all(w, c.state(w), order, updates_of(), noise=noise)
        for c in (dense, packed)
    ]
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)
    assert not dense.is_sparse
    assert packed.is_sparse
    assert (packed.n_rows, packed.n_features) == (N, P)


@each_loss
@layouts
def test_following_a_walk_finds_its_sums_again(loss, layout, seed):
    X, y = sample(loss, seed)
    columns, updates, order = Columns(layout(X), y, loss), updates_of(), order_of(300)
    w = as_generator(seed).standard_normal(P)
    first, again = columns.state(w), columns.state(w)
    before, noise = w.copy(), noise_of(300)
    released, sums = columns.update_all(w, first, order, updates, noise=noise)
    followed = columns.update_all(w, again, order, updates, released=released)
    assert np.array_equal(followed[0], released)
    assert np.array_equal(followed[1], sums)
    assert np.array_equal(first, again)
    assert np.array_equal(released - sums, noise)
    assert np.array_equal(w, before)
    # a pass in two pieces is the same pass
    t = columns.state(w)
    head = columns.update_all(w, t, order[:100], updates, noise=noise[:100])[0]
    middle = weights_after(w, order[:100], head, updates)
    tail = columns.update_all(middle, t, order[100:], updates, noise=noise[100:])[0]
    assert np.array_equal(np.append(head, tail), released)


@each_loss
@layouts
def test_weights_from_what_was_released_are_those_of_the_states(loss, layout, seed):
    X, y = sample(loss, seed)
    columns, updates, order = Columns(layout(X), y, loss), updates_of(), order_of(500)
    w = np.zeros(P)
    t = columns.state(w)
    released, sums = columns.update_all(w, t, order, updates, noise=noise_of(500))
    after = weights_after(w, order, released, updates)
    scale = np.abs(X) @ np.abs(after) + np.abs(y)
    assert np.all(np.abs(columns.state(after) - t) <= 1e-10 * scale)
    # control: the weights some updates earlier have other states
    before = weights_after(w, order[:-20], released[:-20], updates)
    assert not np.allclose(columns.state(before), t, rtol=1e-6)
    # each private sum is that at the weights of its step
    for k in (0, 1, 17, 499):
        there = weights_after(w, order[:k], released[:k], updates)
        expected = columns.sums(columns.state(there), updates)[order[k]]
        assert abs(int(sums[k]) - int(expected)) <= 1e-6 * UNITS


def plain_prox(u, step, l1, l2, low, high):
    shrunk = np.sign(u) * max(abs(u) - step * l1, 0.0) / (1 + step * l2)
    return min(max(shrunk, low), high)


def test_weights_and_their_mean_are_those_of_the_plain_algorithm(seed):
    updates, order, n = updates_of(), order_of(400), 400
    released = noise_of(n, seed) * 2
    w = as_generator(seed).uniform(-1, 1, P)
    path, current = [], w.copy()
    for j, r in zip(order, released, strict=True):
        s = updates.step[j]
        ends = updates.l1[j], updates.l2[j], updates.low[j], updates.high[j]
        current[j] = plain_prox(current[j] - s * updates.back[j] * r, s, *ends)
        path.append(current.copy())
    assert np.allclose(weights_after(w, order, released, updates), path[-1], rtol=1e-14)
    mean = weights_after(w, order, released, updates, average=True)
    assert np.allclose(mean, np.mean(path, axis=0), rtol=1e-12, atol=1e-14)
    # control: the mean of theta^0 to theta^(K-1) is another
    other = np.mean([w, *path[:-1]], axis=0)
    assert not np.allclose(mean, other, rtol=1e-12)
    assert np.array_equal(weights_after(w, order[:0], released[:0], updates, True), w)


@pytest.mark.parametrize("average", [False, True])
def test_a_coordinate_that_is_never_visited_keeps_its_weight(average):
    w = np.arange(P) / 10
    order = np.zeros(20, dtype=np.int64)
    out = weights_after(w, order, noise_of(20), updates_of(), average)
    assert np.allclose(out[1:], w[1:], rtol=1e-15)
    assert out[0] != w[0]


def neighbors_of(loss, seed):
    """Rows that are as steep as can be, for either sign, and huge ones."""
    X, y = sample(loss, seed)
    hostile = []
    for size in (1.0, 1e6):
        for sign in (1.0, -1.0):
            for target in (1.0, -1.0) if has_labels(loss) else (1e6, -1e6, 1e-9):
                hostile.append((np.full(P, sign * size), target))
    return X, y, hostile


@each_loss
@layouts
def test_neighbors_move_a_sum_by_the_units_of_their_rows_and_no_more(
    loss, layout, seed
):
    X, y, hostile = neighbors_of(loss, seed)
    updates, w = updates_of(clip=1e-3), np.zeros(P)
    here = Columns(layout(X), y, loss)
    base = here.sums(here.state(w), updates)
    replaced, most_added, most_replaced = [], 0, 0
    for x, target in hostile:
        added = Columns(layout(np.vstack([X, x])), np.append(y, target), loss)
        moved = added.sums(added.state(w), updates) - base
        most_added = max(most_added, np.abs(moved).max())
        first = Columns(layout(np.vstack([x, X[1:]])), np.append(target, y[1:]), loss)
        replaced.append(first.sums(first.state(w), updates))
    for a in replaced:
        for b in replaced:
            most_replaced = max(most_replaced, np.abs(a - b).max())
    assert most_added == UNITS
    assert most_replaced == 2 * UNITS


@each_loss
@layouts
def test_neighbors_move_the_sums_of_a_whole_walk_by_no_more(loss, layout, seed):
    X, y, hostile = neighbors_of(loss, seed)
    updates, order, w = updates_of(clip=1e-3), order_of(200), np.zeros(P)
    here = Columns(layout(X), y, loss)
    noise = noise_of(200)
    released, sums = here.update_all(w, here.state(w), order, updates, noise=noise)
    for x, target in hostile:
        there = Columns(layout(np.vstack([X, x])), np.append(y, target), loss)
        found = there.update_all(w, there.state(w), order, updates, released=released)[
            1
        ]
        assert np.abs(found - sums).max() <= UNITS


def test_parts_that_are_not_cut_are_caught(seed):
    # the planted bug: a limit so high that nothing is clipped
    X, y, hostile = neighbors_of(Squared(), seed)
    updates = replace(updates_of(clip=1e-3), limit=2.0**50)
    columns = Columns(X, y, Squared())
    base = columns.sums(columns.state(np.zeros(P)), updates)
    x, target = hostile[0]
    added = Columns(np.vstack([X, x]), np.append(y, target), Squared())
    moved = added.sums(added.state(np.zeros(P)), updates) - base
    assert np.abs(moved).max() > UNITS


def test_an_entry_stored_in_pieces_is_cut_as_one():
    pieces = sparse.csr_array(([9.0, 9.0], [0, 0], [0, 2]), shape=(1, 1))
    updates = updates_of(p=1, clip=1e-3)
    columns = Columns(pieces, np.array([5.0]), Squared())
    assert columns.sums(columns.state(np.zeros(1)), updates).tolist() == [-UNITS]
    assert pieces.nnz == 2  # what was given is left alone


def test_parts_round_to_the_nearest_whole_number():
    values = np.array([0.4, 0.6, -0.4, -0.6, 1.5, 2.5, 2.0**36 - 0.5, -(2.0**36)])
    parts = [kernels.part(v, 1.0, 1.0, 2.0**36) for v in values]
    assert parts == [int(np.rint(v)) for v in values]


@each_loss
@layouts
def test_one_sum_and_one_weight_are_those_of_a_walk(loss, layout, seed):
    X, y = sample(loss, seed)
    columns, updates = Columns(layout(X), y, loss), updates_of()
    w = as_generator(seed).uniform(-1, 1, P)
    t = columns.state(w)
    for j in range(P):
        noise = noise_of(1, seed + j)
        visited, shifted = t.copy(), t.copy()
        slow = replace(updates, step=updates.step / (j + 1))
        released, sums = columns.update_all(w, visited, [j], slow, noise=noise)
        assert np.array_equal(columns.sum_of(j, t, updates), sums)
        after = weights_after(w, [j], released, slow)
        new = weight_after(w[j], j, released[0], updates, j + 1)
        assert new == after[j] != w[j]
        columns.shift(j, new - w[j], shifted)
        assert np.array_equal(shifted, visited)


@layouts
def test_an_empty_column_still_gets_its_noise(layout, seed):
    X, y = sample(Squared(), seed)
    X[:, 2] = 0.0
    columns, updates = Columns(layout(X), y, Squared()), updates_of(l1=0.0, l2=0.0)
    order, noise = np.array([2, 2]), np.array([2**33, 2**32])
    t = columns.state(np.zeros(P))
    before = t.copy()
    released, sums = columns.update_all(np.zeros(P), t, order, updates, noise=noise)
    assert sums.tolist() == [0, 0]
    assert released.tolist() == noise.tolist()
    assert np.array_equal(t, before)
    assert weights_after(np.zeros(P), order, released, updates)[2] != 0


@each_loss
@layouts
def test_no_rows_release_pure_noise(loss, layout):
    columns = Columns(layout(np.empty((0, P))), np.empty(0), loss)
    t = columns.state(np.zeros(P))
    noise = noise_of(40)
    found = columns.update_all(np.zeros(P), t, order_of(40), updates_of(), noise=noise)
    assert np.array_equal(found[0], noise)
    assert np.array_equal(columns.sums(t, updates_of()), np.zeros(P))


@each_loss
@layouts
def test_nothing_overflows_when_weights_run_away(loss, layout, seed):
    X, y = sample(loss, seed)
    unconstrained = updates_of(step=1e200, l1=0.0, l2=0.0, low=-np.inf, high=np.inf)
    columns, w, order = Columns(layout(X), y, loss), np.zeros(P), order_of(60)
    t = columns.state(w)
    released, sums = columns.update_all(w, t, order, unconstrained, noise=noise_of(60))
    after = weights_after(w, order, released, unconstrained)
    assert np.all(np.isfinite(t))
    assert np.all(np.isfinite(after))
    assert np.abs(after).max() == 1e60
    assert np.abs(sums).max() <= N * UNITS


@layouts
def test_sums_of_squares_are_of_whole_numbers_within_their_units(layout, seed):
    X, y = sample(Squared(), seed)
    units = DiscreteGaussian(1.0, np.sqrt(P)).units
    found = Columns(layout(X), y, Squared()).square_sums(2.0, units)
    assert found.dtype == np.int64
    expected = np.rint((X * 0.5) * (X * 0.5) * units).sum(axis=0)
    assert np.array_equal(found, expected)
    # labels change nothing, and what is over the bound counts as the bound
    labels = np.where(y > 0, 1.0, -1.0)
    again = Columns(layout(X), labels, Logistic()).square_sums(2.0, units)
    assert np.array_equal(again, found)
    full = Columns(layout(np.full((5, P), -9.0)), y[:5], Squared())
    assert full.square_sums(1.0, units).tolist() == [5 * units] * P


def test_a_walk_needs_noise_or_what_was_released():
    columns = Columns(np.ones((2, P)), np.ones(2), Squared())
    t = columns.state(np.zeros(P))
    both = {"noise": noise_of(3), "released": noise_of(3)}
    for given in ({}, both):
        with pytest.raises(ValueError, match="one of noise and released"):
            columns.update_all(np.zeros(P), t, order_of(3), updates_of(), **given)


def test_losses_without_kernels_are_refused():
    with pytest.raises(PlanError, match=r"^Some solver is for .*Softmax"):
        check_loss(Softmax(3), "Some solver")
    for loss in LOSSES:
        check_loss(loss, "Some solver")
    with pytest.raises(PlanError):
        Columns(np.ones((2, 2)), np.ones(2), Softmax(3))
