"""Sums kept between choices: exact, and each row's part follows from the row alone."""

import numpy as np
import pytest
from scipy import sparse

from tacit._random import as_generator
from tacit.convex import Huber, HuberizedHinge, Logistic, Squared
from tacit.solvers._coordinates import greedy_descent as module
from tacit.solvers._coordinates import greedy_kernels as kernels
from tacit.solvers._coordinates.columns import Columns, Updates
from tacit.solvers._coordinates.greedy_descent import KeptSums

LOSSES = [Squared(), Huber(0.4), Logistic(), Logistic(0.7), HuberizedHinge(0.3)]
UNITS, N, P = 2**30, 83, 7

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_staleness = pytest.mark.parametrize("staleness", [0.0, 0.1])


def sample(loss, seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (N, P)) * (rng.random((N, P)) < 0.6)
    y = X @ rng.standard_normal(P) + 0.5 * rng.standard_normal(N)
    labels = not isinstance(loss, Squared | Huber)
    return X, (np.where(y > 0, 1.0, -1.0) if labels else y)


def updates_of(clip=0.3):
    zeros, ones = np.zeros(P), np.ones(P)
    ends = zeros, zeros, -9 * ones, 9 * ones
    return Updates.of(np.linspace(clip, 2 * clip, P), UNITS, 0.1 * ones, ends, 1.0)


def kept_of(X, y, loss, updates, watched=None, **given):
    columns = Columns(sparse.csr_array(X), y, loss)
    t = columns.state(np.zeros(P))
    watched = np.arange(P) if watched is None else watched
    return KeptSums(columns, t, updates, watched, **given), columns, t


def moves_of(n, seed):
    rng = as_generator(seed)
    sizes = rng.normal(size=n) * rng.choice([1.0, 1e-3], n)
    return list(zip(rng.integers(0, P, n).tolist(), sizes.tolist(), strict=True))


@each_loss
@each_staleness
@pytest.mark.parametrize("clip", [1.0, 1e-2, 1e-6])
def test_sums_are_exactly_those_of_the_kept_slopes(loss, staleness, clip, seed):
    X, y = sample(loss, seed)
    updates = updates_of(clip)
    kept, columns, t = kept_of(X, y, loss, updates, staleness=staleness)
    w = np.zeros(P)
    for k, (j, delta) in enumerate(moves_of(60, seed)):
        w[j] += delta
        kept.move(j, delta)
        if k % 3:  # some moves are followed up together
            continue
        before = kept._private_sums.copy()
        changed = kept.renew()
        sums, derivatives = kept._private_sums, kept._private_derivatives
        # by integers: not a last digit is left behind
        assert np.array_equal(sums, columns.sums(t, updates, derivatives))
        assert np.array_equal(np.flatnonzero(sums != before), changed)
        assert changed.dtype == np.int32
        assert np.all(np.abs(derivatives - columns.derivatives(t)) <= staleness)
    assert np.allclose(t, columns.state(w), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("fraction", [0.0, 0.4, 2.0])
def test_sums_are_the_same_however_they_are_found(fraction, seed, monkeypatch):
    monkeypatch.setattr(module, "RECOMPUTE", fraction)
    X, y = sample(Logistic(), seed)
    updates = updates_of()
    kept, columns, t = kept_of(X, y, Logistic(), updates)
    for j in range(P):
        kept.move(j, 0.3)
        kept.renew()
        assert np.array_equal(kept._private_sums, columns.sums(t, updates))


def derivatives_only(X, y, loss, moves, i):
    """Return the derivative and the parts of a row in a table of its own."""
    kept, *_ = kept_of(X[i : i + 1], y[i : i + 1], loss, updates_of(), staleness=0.2)
    for j, delta in moves:
        kept.move(j, delta)
    kept.renew()
    return kept._private_derivatives[0], kept._private_sums


def together(X, y, loss, moves):
    kept, *_ = kept_of(X, y, loss, updates_of(), staleness=0.2)
    for k, (j, delta) in enumerate(moves):
        kept.move(j, delta)
        if k % 4 == 0:
            kept.renew()
    kept.renew()
    return kept._private_derivatives, kept._private_sums


@each_loss
def test_a_stale_row_has_the_parts_that_it_has_alone(loss, seed):
    X, y = sample(loss, seed)
    moves = moves_of(25, seed)
    derivatives, sums = together(X, y, loss, moves)
    alone = [derivatives_only(X, y, loss, moves, i) for i in range(N)]
    assert np.array_equal(derivatives, [derivative for derivative, _ in alone])
    assert np.array_equal(sums, np.sum([parts for _, parts in alone], axis=0))
    # so a row that goes takes its own parts with it and nothing else
    rest = together(X[1:], y[1:], loss, moves)[1]
    assert np.array_equal(sums - rest, alone[0][1])
    assert np.abs(sums - rest).max() <= UNITS


def test_staleness_that_looks_at_other_rows_is_caught(seed, monkeypatch):
    right = kernels.stale_rows

    def spread(*given):
        # wrong on purpose: how stale a row may be depends on who else there is
        given = list(given)
        given[8] = 0.1 * np.abs(given[6]).mean()
        return right(*given)

    X, y = sample(Squared(), seed)
    moves = moves_of(25, seed)
    monkeypatch.setattr(kernels, "stale_rows", spread)
    derivatives, _ = together(X, y, Squared(), moves)
    alone = [derivatives_only(X, y, Squared(), moves, i)[0] for i in range(N)]
    assert not np.array_equal(derivatives, alone)


def test_a_move_without_rows_changes_nothing(seed):
    X, y = sample(Squared(), seed)
    X[:, 2] = 0.0
    kept, *_ = kept_of(X, y, Squared(), updates_of())
    before = kept._private_sums.copy()
    kept.move(2, 1.0)
    assert len(kept.renew()) == 0
    assert np.array_equal(kept._private_sums, before)


def test_only_what_is_watched_is_told(seed):
    X, y = sample(Squared(), seed)
    kept, columns, t = kept_of(X, y, Squared(), updates_of(), np.array([1, 4]))
    kept.move(0, 1.0)
    assert kept.renew().tolist() == [0, 1]
    assert np.array_equal(kept._private_sums, columns.sums(t, updates_of()))
