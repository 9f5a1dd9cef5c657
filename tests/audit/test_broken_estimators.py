"""Estimators that break their guarantee each in one way, which an audit must show."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from tacit.audit import audit_estimator


class Sums(ClassifierMixin, BaseEstimator):
    """Noisy sums of clipped rows: the honest one, from which the others depart."""

    def __init__(self, epsilon=1.0, x_norm=1.0, random_state=None):
        self.epsilon = epsilon
        self.x_norm = x_norm
        self.random_state = random_state

    def fit(self, X, y):
        rows = self.clipped(X) * np.where(y > 0, 1.0, -1.0)[:, None]
        self.rng = np.random.Generator(np.random.PCG64(self.random_state))
        # the distance of two rows is at most twice their bound, in the l1 norm
        scale = 2 * self.x_norm / self.epsilon
        noise = self.rng.laplace(scale=scale, size=X.shape[1])
        self.coef_ = rows.sum(axis=0) + self.kept(noise)
        self.after(X, y)
        del self.rng
        return self

    def clipped(self, X):
        norms = np.abs(X).sum(axis=1, keepdims=True)
        return X * np.minimum(1, self.x_norm / np.maximum(norms, 1e-9))

    def kept(self, noise):
        return noise

    def after(self, X, y): ...


class NoNoise(Sums):
    def kept(self, noise):
        return 0 * noise


class NoClipping(Sums):
    def clipped(self, X):
        return X


class LastColumnExact(Sums):
    def kept(self, noise):
        return np.append(noise[:-1], 0.0)


class ExactMean(Sums):
    def after(self, X, y):
        self.mean_ = float(np.mean(y))


class Counts(Sums):
    """Tells by a text that depends on a label."""

    def after(self, X, y):
        self.found_ = {"first": "up" if y[0] > 0 else "down"}


class Undecided(Sums):
    """Numbers of which only the spread depends on the rows."""

    def after(self, X, y):
        self.n_iter_ = int(self.rng.choice([3, 7])) if y[0] > 0 else 5


class NotANumber(Sums):
    def after(self, X, y):
        if y[0] > 0:
            self.coef_[0] = np.nan


class Raises(Sums):
    def after(self, X, y):
        if y[0] > 0:
            raise ArithmeticError("did not converge")


class MostlyRaises(Sums):
    def after(self, X, y):
        if y[0] > 0 and self.rng.random() < 0.9:
            raise ArithmeticError("did not converge")


class RefusesFarRows(Sums):
    def clipped(self, X):
        if np.abs(X).sum(axis=1).max() > self.x_norm:
            raise ValueError("rows must be within x_norm")
        return X


class RefusesOneRow(Sums):
    """Fails for all data, so that nothing can be said."""

    def fit(self, X, y):
        raise ArithmeticError("always")


FAST = {"n_rows": 4, "runs": 100, "random_state": 0}


@pytest.mark.parametrize("n_features", [2, 3])
@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_the_honest_one_is_not_refuted(relation, n_features):
    found = audit_estimator(Sums(), neighbors=relation, n_features=n_features, **FAST)
    assert not found.refuted
    assert found.leaks == ()
    assert not found.refuses_far_rows


@pytest.mark.parametrize("n_features", [2, 3])
@pytest.mark.parametrize(
    "kind",
    [
        NoNoise,
        NoClipping,
        LastColumnExact,
        ExactMean,
        Counts,
        Undecided,
        NotANumber,
        Raises,
        MostlyRaises,
    ],
)
def test_each_broken_one_is_refuted(kind, n_features):
    found = audit_estimator(kind(), n_features=n_features, **FAST)
    assert found.refuted, found.verdict
    assert found.verdict.startswith(f"Refuted: {kind.__name__}")


@pytest.mark.parametrize(
    ("kind", "leak"),
    [
        (NoNoise, "coef_"),
        (ExactMean, "mean_"),
        (Counts, "found_['first']"),
        (Raises, "error"),
    ],
)
def test_what_differs_in_every_run_is_named(kind, leak):
    found = audit_estimator(kind(), **FAST)
    assert leak in found.leaks
    assert leak in found.verdict
    assert leak in found.to_dict()["leaks"]


def test_rows_beyond_the_bound_that_are_refused_are_left_out_and_said():
    found = audit_estimator(RefusesFarRows(), **FAST)
    assert not found.refuted
    assert found.refuses_far_rows
    assert "rejects rows outside its bounds" in found.verdict


def test_an_error_on_both_sides_is_passed_on():
    with pytest.raises(ArithmeticError, match="always"):
        audit_estimator(RefusesOneRow(), **FAST)


def test_an_audit_that_could_not_fail_is_refused_with_the_runs_it_needs():
    with pytest.raises(ValueError, match=r"runs must be more.*at least") as rejection:
        audit_estimator(NoNoise(3.0), n_rows=4, runs=60, random_state=0)
    needed = int(str(rejection.value).partition("at least ")[2].partition(",")[0])
    found = audit_estimator(NoNoise(3.0), n_rows=4, runs=needed, random_state=0)
    assert found.refuted
    assert found.epsilon_lower == found.most_shown
    with pytest.raises(ValueError, match="runs must be more"):
        audit_estimator(NoNoise(3.0), n_rows=4, runs=needed - 1, random_state=0)
    with pytest.raises(ValueError, match="a smaller epsilon"):
        audit_estimator(NoNoise(50.0), n_rows=4)
