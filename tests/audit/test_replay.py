"""Replay finds each planted leak and passes the trainer without one."""

import dataclasses
import functools
import logging
import time
import warnings

import numpy as np
import pytest

from tacit._release import release
from tacit.audit import assert_replays, replay
from tacit.audit._state import leaves

X_NORM = 1.0
N_STEPS = 3


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def clipped(X):
    return (
        X
        * np.minimum(1, X_NORM / np.maximum(np.linalg.norm(X, axis=1), 1e-300))[:, None]
    )


class Mean:
    """A toy trainer: steps toward the mean of the clipped rows."""

    def __init__(self, sensitivity=2 * X_NORM, n_steps=N_STEPS):
        self.sensitivity = sensitivity
        self.n_steps = n_steps

    def sum(self, X):
        return clipped(X).sum(axis=0)

    def noisy_sum(self, X, rng):
        total = self.sum(X)
        return release(
            "row sum",
            value=total,
            sensitivity=self.sensitivity,
            norm="l2",
            draw=lambda: total + rng.normal(size=total.shape),
        )

    def fit(self, X, y):
        rng = generator()
        self.coef_ = np.zeros(X.shape[1])
        for _ in range(self.n_steps):
            self.coef_ = self.coef_ / 2 + self.noisy_sum(X, rng) / 10
        self._private_total = self.sum(X)
        self.after(X, y)
        return self

    def after(self, X, y):
        pass


class LeaksAttribute(Mean):
    def after(self, X, y):
        self.n_clipped_ = int(np.sum(np.linalg.norm(X, axis=1) > X_NORM))


class LeaksNestedArray(Mean):
    def after(self, X, y):
        self.history_ = {"steps": [np.zeros(2), self.sum(X)]}


class LeaksHiddenState(Mean):
    def after(self, X, y):
        self._margins = X @ self.coef_


class LeaksProperty(Mean):
    def after(self, X, y):
        self._private_rows = X

    @property
    def loss_(self):
        return float(np.sum(self._private_rows @ self.coef_))


class LeaksReleaseCount(Mean):
    def fit(self, X, y):
        self.n_steps = 3 if self.sum(X)[0] > 0 else 2
        return super().fit(X, y)


class LeaksMoreReleases(Mean):
    def fit(self, X, y):
        self.n_steps = 2 if self.sum(X)[0] > 0 else 3
        return super().fit(X, y)


class LeaksException(Mean):
    def after(self, X, y):
        if self.sum(X)[0] < 0:
            raise ValueError("not converged")


class LeaksMessage(Mean):
    def after(self, X, y):
        raise ValueError(f"first row is {X[0, 0]}")


class LeaksPrint(Mean):
    def after(self, X, y):
        print(self.sum(X)[0] > 0)  # noqa: T201


class LeaksWarning(Mean):
    def after(self, X, y):
        if self.sum(X)[0] < 0:
            warnings.warn("negative", stacklevel=2)


class LeaksDebugLog(Mean):
    def after(self, X, y):
        logging.getLogger("toy").debug("sum %s", self.sum(X)[0])


class LeaksShape(Mean):
    def sum(self, X):
        total = super().sum(X)
        return total if total[0] > 0 else total[:1]


class LeaksSensitivity(Mean):
    def fit(self, X, y):
        self.sensitivity = 2 * float(np.abs(X).max())
        return super().fit(X, y)


class UsesUnclipped(Mean):
    def sum(self, X):
        clipped(X)
        return X.sum(axis=0)


class NormForItsSquare(Mean):
    """Releases second moments, which move by norm squared, and declares the norm."""

    def sum(self, X):
        return X.T @ X


class NotANumber(Mean):
    def sum(self, X):
        return super().sum(X) * np.nan


def neighbors(first_row=(1.0, 0.0), other=(-1.0, 0.0)):
    X = np.full((5, 2), 0.1)
    X[0] = first_row
    Z = X.copy()
    Z[0] = other
    y = np.ones(5)
    return (X, y), (Z, y)


def fit(model, X, y):
    return model().fit(X, y)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (LeaksAttribute, "result.n_clipped_ differs"),
        (LeaksNestedArray, "result.history_['steps'][1] differs"),
        (LeaksHiddenState, "result._margins differs"),
        (LeaksProperty, "result.loss_ differs"),
        (LeaksReleaseCount, "The first run made 3 release(s) and the second 2."),
        (LeaksMoreReleases, "made 2 release(s) and the second at least 3."),
        (LeaksException, "finished and the second raised 'ValueError: not converged'"),
        (LeaksMessage, "raised 'ValueError: first row is"),
        (LeaksPrint, "differ in their standard output"),
        (LeaksWarning, "differ in their warnings"),
        (LeaksDebugLog, "differ in their log lines"),
        (LeaksShape, "has shape (2,) in the first run and (1,) in the second"),
        (LeaksSensitivity, "declares sensitivity 4 in l2 in the first run and 2 in l2"),
        (UsesUnclipped, "over the declared sensitivity 2"),
        (NotANumber, "moved by nan"),
    ],
)
def test_a_planted_leak_is_found(model, sentence):
    first, second = neighbors((2.0, 0.0), (-1.0, 0.0))
    report = replay(functools.partial(fit, model), first, second)
    assert not report.ok
    assert any(sentence in v for v in report.violations), str(report)
    with pytest.raises(AssertionError) as caught:
        assert_replays(functools.partial(fit, model), first, second)
    assert sentence in str(caught.value)


def test_norm_in_place_of_its_square_is_found():
    x_norm = 10.0
    first, second = neighbors((x_norm, 0.0), (0.0, x_norm))
    wrong = functools.partial(NormForItsSquare, 2 * x_norm)
    right = functools.partial(NormForItsSquare, 2 * x_norm**2)
    report = replay(functools.partial(fit, wrong), first, second)
    assert any("over the declared sensitivity 20" in v for v in report.violations)
    assert_replays(functools.partial(fit, right), first, second)


def test_a_clean_trainer_passes_in_milliseconds():
    first, second = neighbors((2.0, 0.0), (-1.0, 0.0))
    start = time.perf_counter()
    report = assert_replays(functools.partial(fit, Mean), first, second)
    assert time.perf_counter() - start < 0.5
    assert report.ok
    assert len(report.entries) == N_STEPS
    assert {e.label for e in report.entries} == {"row sum"}
    assert report.entries[0].moved == pytest.approx(2.0)
    assert "ok, 3 release(s) compared" in str(report)


def test_two_replays_agree():
    first, second = neighbors((2.0, 0.0), (-1.0, 0.0))
    train = functools.partial(fit, UsesUnclipped)
    assert replay(train, first, second) == replay(train, first, second)


def test_the_sensitivity_may_be_reached_but_not_passed():
    first, second = neighbors()
    for sensitivity, ok in [(2.0, True), (2.0 * (1 - 1e-6), False), (0.5, False)]:
        train = functools.partial(fit, functools.partial(Mean, sensitivity))
        assert replay(train, first, second).ok is ok


@pytest.mark.parametrize(
    ("norm", "distance"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)]
)
def test_distances_are_taken_in_the_declared_norm(norm, distance):
    def train(data):
        return release("x", value=data, sensitivity=distance, norm=norm, draw=float)

    report = assert_replays(train, (np.zeros(2),), (np.array([3.0, -4.0]),))
    assert report.entries[0].moved == distance


def test_large_integers_on_a_grid_are_compared_exactly():
    def train(data):
        return release("x", value=data, sensitivity=1.0, norm="l1", draw=float)

    big = np.array([2**62], dtype=np.int64)
    assert_replays(train, (big,), (big + 1,))
    assert not replay(train, (big,), (big + 2,)).ok


def test_equal_infinities_do_not_move():
    def train(data):
        return release("x", value=data, sensitivity=1.0, norm="linf", draw=float)

    assert_replays(train, (np.array([-np.inf, 0]),), (np.array([-np.inf, 1]),))


def test_one_object_returned_twice_is_still_compared():
    model = LeaksAttribute()
    first, second = neighbors((2.0, 0.0), (-1.0, 0.0))
    report = replay(model.fit, first, second)
    assert any("n_clipped_" in v for v in report.violations)


def test_a_swallowed_divergence_is_still_reported():
    def train(X, y):
        try:
            return LeaksMoreReleases().fit(X, y).coef_
        except Exception:
            return np.zeros(2)

    assert not replay(train, *neighbors()).ok


def test_shared_public_randomness_needs_redraw():
    def train(X, y):
        rng = generator()
        for _ in range(3):
            row = int(rng.integers(len(X)))
            release(
                "row",
                value=clipped(X)[row],
                sensitivity=2.0,
                norm="l2",
                draw=lambda: rng.normal(size=2),
            )
        return int(rng.integers(1 << 30))

    assert not replay(train, *neighbors()).ok
    assert_replays(train, *neighbors(), redraw=True)


def test_the_same_refusal_on_both_sides_is_no_leak_but_asserts_nothing():
    def train(X, y):
        raise ValueError("radius must be > 0, got 0.")

    report = replay(train, *neighbors())
    assert report.ok
    assert "radius" in report.raised
    assert "radius" in str(report)
    with pytest.raises(AssertionError, match="did not finish"):
        assert_replays(train, *neighbors())


def test_a_trainer_that_bypasses_the_tape_does_not_pass():
    with pytest.raises(AssertionError, match="made 0 release"):
        assert_replays(lambda X, y: 1, *neighbors())


@pytest.mark.parametrize(
    ("name", "passes"),
    [("numba", True), ("numba.core.ssa", True), ("numbat", False), ("toy", False)],
)
def test_only_the_log_of_a_compiler_may_differ(name, passes):
    class CompilesOnce(Mean):
        def after(self, X, y):
            logging.getLogger(name).debug("sum %s", self.sum(X)[0])

    first, second = neighbors((2.0, 0.0), (-1.0, 0.0))
    assert replay(functools.partial(fit, CompilesOnce), first, second).ok is passes


def test_the_loggers_are_left_as_they_were():
    root = logging.getLogger()
    before = (root.level, list(root.handlers), root.manager.disable)
    replay(functools.partial(fit, LeaksDebugLog), *neighbors())
    assert (root.level, list(root.handlers), root.manager.disable) == before


@dataclasses.dataclass(frozen=True)
class Report:
    entries: tuple
    note: str = ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1.0, np.nan]), np.array([1.0, -np.nan]), True),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.array([1.0]), np.array([np.nextafter(1.0, 2)]), False),
        (np.array([1.0]), np.array([1.0], dtype=np.float32), False),
        (np.zeros((2, 1)), np.zeros((1, 2)), False),
        (np.array(["a", None], object), np.array(["b", None], object), False),
        (np.longdouble(1), np.longdouble(1), True),
        (float("nan"), float("nan"), True),
        (1, 1.0, False),
        (True, 1, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({1, 2}, {2, 1}, True),
        ([1, (2, 3)], [1, (2, 4)], False),
        (Report((1.0,)), Report((1.0,)), True),
        (Report((1.0,)), Report((2.0,)), False),
        (object(), object(), True),
        (generator(0), generator(1), True),
    ],
)
def test_results_are_compared_bit_for_bit(one, other, same):
    assert (leaves(one) == leaves(other)) is same


def test_a_cycle_does_not_hang():
    model = Mean()
    model.self_ = model
    assert leaves(model)
