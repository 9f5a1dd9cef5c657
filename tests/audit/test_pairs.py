"""Worst-case pairs attain what their docstring says; the precision attack."""

import enum

import numpy as np
import pytest
from scipy import special

from tacit.audit import precision_attack, pushed_pair, worst_case_pair


class Relation(enum.Enum):
    REPLACE_ONE = 1
    ADD_OR_REMOVE_ONE = 2


def generator(seed):
    return np.random.Generator(np.random.PCG64(seed))


def gradient(loss_kind, data, w=None, n_classes=3):
    X, y = data
    if loss_kind == "softmax":
        derivative = np.full((len(X), n_classes), 1 / n_classes)
        derivative -= np.eye(n_classes)[y]
        return X.T @ derivative
    z = X @ (np.zeros(X.shape[1]) if w is None else w)
    derivative = {
        "logistic": -y * special.expit(-y * z),
        "hinge": np.where(y * z < 1, -y, 0.0),
        "squared": z - y,
        "huber": np.clip(z - y, -1, 1),
    }[loss_kind]
    return X.T @ derivative


def moved(loss_kind, pair, **kw):
    gap = gradient(loss_kind, pair[0], **kw) - gradient(loss_kind, pair[1], **kw)
    return np.linalg.norm(gap)


@pytest.mark.parametrize(
    ("loss_kind", "derivative"),
    [
        ("logistic", 0.5),
        ("hinge", 1.0),
        ("squared", 1.0),
        ("huber", 1.0),
        ("softmax", np.sqrt(2 / 3)),
    ],
)
def test_the_gradient_at_zero_moves_as_far_as_it_can(loss_kind, derivative):
    x_norm = 3.0
    pair = worst_case_pair(loss_kind, 7, 4, x_norm)
    assert moved(loss_kind, pair) == pytest.approx(2 * derivative * x_norm)
    pair = worst_case_pair(loss_kind, 7, 4, x_norm, Relation.ADD_OR_REMOVE_ONE)
    assert moved(loss_kind, pair) == pytest.approx(derivative * x_norm)


@pytest.mark.parametrize("loss_kind", ["logistic", "hinge", "softmax"])
def test_no_random_replacement_moves_it_further(loss_kind, seed):
    rng = generator(seed)
    most = moved(loss_kind, worst_case_pair(loss_kind, 2, 3))
    for _ in range(200):
        rows = rng.normal(size=(2, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        codes = rng.integers(3, size=2)
        labels = codes if loss_kind == "softmax" else 2.0 * (codes > 0) - 1
        pair = [(rows[i : i + 1], labels[i : i + 1]) for i in (0, 1)]
        assert moved(loss_kind, pair) <= most * (1 + 1e-12)


@pytest.mark.parametrize("loss_kind", ["logistic", "hinge", "squared", "softmax"])
@pytest.mark.parametrize("make", ["replace_one", Relation.REPLACE_ONE])
def test_replacement_changes_one_row_within_the_bounds(loss_kind, make):
    (X, y), (Z, u) = worst_case_pair(loss_kind, 8, 3, 2.0, make)
    changed = (X != Z).any(axis=1) | (y != u)
    assert changed.tolist() == [True] + [False] * 7
    assert (X[1:] == 0).all()
    assert np.linalg.norm(X, axis=1).max() == 2.0
    if loss_kind != "squared":
        assert set(y[1:]) == set(u)


def test_removal_drops_one_row():
    (X, y), (Z, u) = worst_case_pair("logistic", 8, 3, neighbors="add_or_remove_one")
    np.testing.assert_array_equal(X[1:], Z)
    np.testing.assert_array_equal(y[1:], u)


def test_softmax_targets_are_codes():
    (_, y), _ = worst_case_pair("softmax", 8, 3, n_classes=4)
    assert y.dtype == np.int64
    assert set(y) == {0, 1, 2, 3}


def test_the_pushed_pair_comes_close_to_the_whole_logistic_bound():
    x_norm = 2.0
    pair = pushed_pair(50, 3, x_norm, lean=0.2)
    w = np.array([0.0, 12.0, 0.0])
    plain = worst_case_pair("logistic", 50, 3, x_norm)
    assert moved("logistic", plain, w=w) == pytest.approx(x_norm)
    assert 1.9 * x_norm < moved("logistic", pair, w=w) <= 2 * x_norm
    assert np.linalg.norm(pair.first[0], axis=1).max() <= x_norm
    # the crowd pulls the weights to where the changed row is misclassified
    X, y = pair.first
    assert gradient("logistic", (X[1:], y[1:]))[1] < 0
    assert y[0] * (X[0] @ w) < 0


def test_the_pushed_pair_follows_the_relation():
    (X, _), (Z, _) = pushed_pair(9, 2, neighbors=Relation.ADD_OR_REMOVE_ONE)
    np.testing.assert_array_equal(X[1:], Z)
    (X, y), (Z, u) = pushed_pair(9, 2)
    assert (X != Z).any(axis=1).tolist() == [True] + [False] * 8
    np.testing.assert_array_equal(y, u)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: worst_case_pair("cubic", 3, 1), "loss_kind must be one of"),
        (lambda: worst_case_pair("hinge", 1, 1), "n_rows must be"),
        (lambda: worst_case_pair("hinge", 3, 0), "n_features must be"),
        (lambda: worst_case_pair("hinge", 3, 1, 0.0), "x_norm must be"),
        (lambda: worst_case_pair("hinge", 3, 1, 1.0, "swap"), "neighbors must be"),
        (lambda: pushed_pair(3, 1), "n_features must be >= 2"),
        (lambda: pushed_pair(3, 2, lean=1.0), "lean must be"),
        (lambda: precision_attack(np.abs, 0.0, 0.0), "high not zero"),
        (lambda: precision_attack(np.abs, n=10), "n must be"),
        (lambda: precision_attack(np.sum), "release must return shape"),
    ],
)
def test_bad_parameters_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("high", [1.0, -3.0, 0.7])
@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_floating_point_noise_is_broken(law, high, seed):
    rng = generator(seed)
    found = precision_attack(
        lambda v: v + getattr(rng, law)(scale=abs(high), size=v.shape), high=high
    )
    assert found.broken
    assert found.high_fraction == 0
    if high == 1.0:
        assert 0.13 < found.low_fraction < 0.21


def test_single_precision_noise_is_broken(seed):
    rng = generator(seed)

    def release(values):
        noise = rng.normal(size=values.shape).astype(np.float32)
        return values.astype(np.float32) + noise

    assert precision_attack(release).broken


@pytest.mark.parametrize("bits", [10, 32])
def test_one_public_grid_passes(bits, seed):
    rng = generator(seed)

    def release(values):
        grid = 2.0**bits
        noise = np.round(grid * rng.normal(size=values.shape))
        return (np.round(grid * values) + noise) / grid

    found = precision_attack(release)
    assert found.conclusive
    assert not found.broken
    assert (found.low_fraction, found.high_fraction) == (0, 0)


def test_equal_fineness_on_both_sides_passes(seed):
    rng = generator(seed)

    def release(values):
        # fine digits that do not depend on the value
        coarse = np.round(2.0**20 * (values + rng.normal(size=values.shape)))
        return np.ldexp(coarse, -20) + np.ldexp(rng.random(values.shape), -21)

    found = precision_attack(release)
    assert found.low_fraction > 0
    assert found.high_fraction > 0
    assert not found.broken


def test_too_little_noise_to_meet_is_inconclusive(seed):
    rng = generator(seed)
    found = precision_attack(lambda v: v + rng.normal(scale=0.01, size=v.shape))
    assert not found.conclusive
    assert not found.broken
