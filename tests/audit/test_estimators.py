"""Audits of estimators: an honest one passes, one with half the noise does not.

An honest guarantee is refuted with probability at most P_FAIL an audit, and the
controls are refuted with room to spare.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit import audit_estimator
from tacit.audit._subjects import NORMS, gaussian_only, pair_of, prepared
from tacit.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
    SparseLogisticRegression,
)
from tacit.mechanisms import Laplace
from tacit.solvers import CoordinateDescent, OutputPerturbation

ESTIMATORS = [
    LogisticRegression(1.0, x_norm=1.0),
    LogisticRegression(1.0, 0.0, x_norm=1.0),
    LogisticRegression(1.0, classes=["a", "b", "c"], x_norm=1.0),
    LogisticRegression(1.0, 1e-4, neighbors="add_or_remove_one", x_norm=1.0),
    LogisticRegression(1.0, bound_norm="linf", x_norm=2.0),
    LinearSVC(1.0, x_norm=1.0),
    LinearRegression(1.0, x_norm=1.0),
    Ridge(1.0, y_range=(0, 10), fit_intercept=False, x_norm=1.0),
    HuberRegressor(1.0, x_norm=1.0),
    SimplexRegressor(1.0, radius=3.0, x_max=1.0),
    Lasso(1.0, alpha=0.01, solver="cd"),
    Lasso(1.0, 0.0, alpha=0.01, feature_bounds=2.0),
    ElasticNet(1.0, alpha=0.01, feature_bounds=[(0, 4), 1], solver="gcd"),
    SparseLogisticRegression(1.0, feature_bounds=3.0),
    SparseLogisticRegression(1.0, 1e-4, neighbors="add_or_remove_one"),
    SparseLogisticRegression(1.0, solver="frank_wolfe", l1_radius=1.0),
]


class NoisySum(ClassifierMixin, BaseEstimator):
    """Someone else's classifier, with a share of the noise that it should add."""

    def __init__(self, epsilon=1.0, data_norm=None, share=1.0, random_state=None):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.share = share
        self.random_state = random_state

    def fit(self, X, y):
        assert np.abs(X).sum(axis=1).max() <= self.data_norm
        self.classes_ = np.unique(y)
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        noise = Laplace(self.share / self.epsilon, 2 * self.data_norm)
        self.coef_ = noise(X.T @ signs, as_generator(self.random_state))[None]
        return self


class HalfNoise(NoisySum):
    """The same, broken."""

    def __init__(self, epsilon=1.0, data_norm=None, share=0.5, random_state=None):
        super().__init__(epsilon, data_norm, share, random_state)


@dataclass(frozen=True)
class Quiet:
    """A solver of ours that runs with a share of the noise that it planned."""

    solver: Any
    share: float

    def plan(self, problem, budget):
        return self.solver.plan(problem, budget)

    def run(self, plan, rows, rng):
        quiet = replace(plan, multiplier=plan.multiplier * self.share)
        return self.solver.run(quiet, rows, rng)


@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_every_estimator_can_be_audited_and_few_runs_refute_none(model):
    before = model.get_params()
    # a fixed seed, as so few runs can refute at a low confidence only
    found = audit_estimator(model, n_rows=4, runs=40, random_state=0)
    assert not found.refuted
    assert found.verdict.startswith("Not refuted")
    assert "proves nothing" in found.verdict
    assert found.leaks == ()
    assert found.most_shown > 1.0
    assert found.epsilon == 1.0
    assert model.get_params() == before
    assert not hasattr(model, "coef_")
    assert json.loads(json.dumps(found.to_dict()))["refuted"] is False


# so many that half the noise of a pure guarantee of one shows at P_FAIL
FOREIGN = {"n_rows": 4, "runs": 1500, "confidence": 1 - P_FAIL}


@pytest.mark.statistical
def test_a_foreign_estimator_passes(seed):
    found = audit_estimator(NoisySum(1.0), random_state=seed, **FOREIGN)
    assert not found.refuted
    # and not for want of power
    assert found.epsilon_lower > 0.25


@pytest.mark.statistical
def test_half_the_noise_of_a_foreign_estimator_is_refuted(seed):
    model = HalfNoise(1.0, data_norm=3.0)
    found = audit_estimator(model, random_state=seed, **FOREIGN)
    assert found.refuted
    assert found.verdict.startswith(
        "Refuted: HalfNoise guarantees epsilon 1 at delta 0"
    )
    assert found.result.method == "clopper-pearson"


@dataclass(frozen=True)
class Share(CoordinateDescent):
    """One pass over the columns, with a share of the noise that it planned."""

    share: float = 1.0

    def run(self, plan, rows, rng):
        return super().run(
            replace(plan, multiplier=plan.multiplier * self.share), rows, rng
        )


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "model",
    [Lasso(8.0, 1e-4), ElasticNet(8.0, 1e-4), SparseLogisticRegression(8.0, 1e-4)],
    ids=lambda model: type(model).__name__,
)
def test_half_the_noise_of_a_sparse_model_is_refuted(model, seed):
    options = {"runs": 500, "confidence": 1 - P_FAIL, "random_state": seed}
    # one update of each column, which shows all that was charged for it
    given = {"n_passes": 1, "smoothness": "public", "step": 1.0, "order": "cyclic"}
    model.set_params(alpha=0.0, fit_intercept=False)
    clip = 1.0 if hasattr(model, "y_range") else 0.5
    honest, broken = (
        audit_estimator(
            model.set_params(solver=Share(**given, clip=clip, share=share)), **options
        )
        for share in (1.0, 0.5)
    )
    assert (honest.refuted, broken.refuted) == (False, True)
    assert honest.epsilon_lower > 2.0
    assert honest.result.method == "gaussian"


@pytest.mark.slow
@pytest.mark.statistical
def test_our_estimator_passes_and_half_its_noise_is_refuted(seed):
    options = {"runs": 800, "confidence": 1 - P_FAIL, "random_state": seed}
    # a heavy ridge keeps the margins small, where the hinge is steepest
    model, solver = LinearSVC(10.0, 1e-5, x_norm=1.0), OutputPerturbation(ridge=200.0)
    honest = audit_estimator(model.set_params(solver=Quiet(solver, 1.0)), **options)
    broken = audit_estimator(model.set_params(solver=Quiet(solver, 0.5)), **options)
    assert (honest.refuted, broken.refuted) == (False, True)
    assert honest.result.method == "gaussian"
    assert "as its report claims" in broken.verdict


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, Ridge, HuberRegressor])
def test_defaults_show_a_part_of_a_large_promise(kind, seed):
    options = {"n_rows": 4, "runs": 450, "confidence": 1 - P_FAIL}
    found = audit_estimator(kind(8.0), random_state=seed, **options)
    assert 1.0 < found.epsilon_lower < 8.0


def test_a_seed_fixes_the_outcome():
    first, second, other = (
        audit_estimator(NoisySum(1.0), n_rows=4, runs=60, random_state=s).result
        for s in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_without_a_seed_the_noise_is_fresh():
    model = NoisySum(1.0, random_state=0)
    found = audit_estimator(model, n_rows=4, runs=100, confidence=0.5)
    assert found.leaks == ()
    # with one and the same noise in all runs, the sides would be distinguished for sure
    assert 0 < found.result.hits[0] + found.result.hits[1] < 100
    assert model.random_state == 0


def test_progress_counts_trainings():
    seen = []
    audit_estimator(
        NoisySum(1.0),
        n_rows=4,
        runs=50,
        on_run=lambda done, planned: seen.append((done, planned)),
    )
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1] == (100, 100)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LogisticRegression, "instance"),
        (object(), "instance"),
        (LogisticRegression("a", x_norm=1.0), "epsilon"),
        (LogisticRegression(-1.0, x_norm=1.0), "epsilon"),
        (LogisticRegression(x_norm=-1.0), "bound on a row"),
        (LogisticRegression(classes=[1], x_norm=1.0), "2 labels"),
    ],
)
def test_what_cannot_be_audited_is_refused(model, words):
    with pytest.raises((TypeError, ValueError), match=words):
        audit_estimator(model, runs=20)


def test_an_estimator_without_bounds_is_refused():
    class Unbounded(BaseEstimator):
        def __init__(self, epsilon=1.0):
            self.epsilon = epsilon

        def fit(self, X, y): ...

    with pytest.raises(ValueError, match="x_norm, data_norm, x_max"):
        audit_estimator(Unbounded())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_rows", 3),
        ("n_features", 1),
        ("runs", 19),
        ("jobs", 0),
        ("confidence", 1.0),
        ("method", "guess"),
        ("neighbors", "strangers"),
    ],
)
def test_a_bad_option_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        audit_estimator(NoisySum(1.0), **{name: value})


def test_pairs_reach_the_ends_of_every_range():
    ranges = [(0, 4), 1, (-1, 3)]
    subject = prepared(Lasso(1.0, feature_bounds=ranges))
    (X, _), (other, _) = pair_of(subject, 10, 3, "replace_one", "linf")
    assert_array_equal(X[0], [4, -1, 3])
    assert_array_equal(np.abs(X - other).max(axis=1)[1:], np.zeros(9))
    assert_array_equal(X[1:], np.tile([2.0, 0.0, 1.0], (9, 1)))
    far = pair_of(subject, 10, 3, "replace_one", "linf", 1000.0).first[0]
    assert np.abs(far[0]).min() > 900
    with pytest.raises(ValueError, match="one entry for each of the 2 features"):
        pair_of(subject, 10, 2, "replace_one", "linf")
    named = prepared(Lasso(1.0, feature_bounds={"age": (0, 4), "dose": 1}))
    with pytest.raises(ValueError, match="feature_bounds names features"):
        pair_of(named, 10, 2, "replace_one", "linf")


@pytest.mark.parametrize(
    "model",
    [m for m in ESTIMATORS if not isinstance(m, ElasticNet)],
    ids=repr,
)
def test_pairs_keep_the_public_bounds_and_change_one_row(model):
    subject = prepared(model)
    given = subject.get_params()
    relation, norm = given["neighbors"], given.get("bound_norm", "linf")
    norm = "linf" if norm == "linf" else "l2"
    (X, y), (other_X, other_y) = pair_of(subject, 10, 3, relation, norm)
    bound = next(given[name] for name in NORMS if name in given)
    order = np.inf if norm == "linf" else 2
    assert 0.97 * bound < np.linalg.norm(X, order, axis=1).max() <= bound
    assert X[0].all()  # a column without anything in it could be released as it is
    if relation == "add_or_remove_one":
        np.testing.assert_array_equal(other_X, X[1:])
        np.testing.assert_array_equal(other_y, y[1:])
    else:
        np.testing.assert_array_equal(other_X[1:], X[1:])
        np.testing.assert_array_equal(other_y[1:], y[1:])
        assert other_y[0] != y[0] or (other_X[0] != X[0]).any()
    if "y_range" in given:
        low, high = given["y_range"]
        assert (y.max(), other_y.min()) == (high, low)


def test_only_gaussian_noise_is_gaussian():
    gaussian = {"type": "GaussianNoise", "multiplier": 1.0}
    repeated = {"type": "Repeated", "event": gaussian, "count": 3}
    pure = {"type": "PureDP", "epsilon": 1.0}
    assert gaussian_only({"type": "Composed", "events": [gaussian, repeated]})
    assert not gaussian_only({"type": "Composed", "events": [gaussian, pure]})
    assert not gaussian_only({"type": "PoissonSampled", "event": gaussian})


@pytest.mark.slow
def test_processes_give_what_one_process_gives(seed):
    # two fresh interpreters take seconds to start
    options = {"n_rows": 4, "runs": 60, "random_state": seed}
    alone = audit_estimator(SimplexRegressor(1.0, x_max=1.0), **options)
    assert audit_estimator(SimplexRegressor(1.0, x_max=1.0), jobs=2, **options) == alone


def test_the_plot_has_the_judged_runs_and_the_promise():
    pytest.importorskip("matplotlib", reason="needs the extra tacit[plots]").use("Agg")
    found = audit_estimator(SimplexRegressor(1.0, x_max=1.0), runs=60, random_state=0)
    assert len(found.result.scores_first) == found.result.trials[0] == 30
    ax = found.plot()
    assert ax.get_title() == "Audit of SimplexRegressor"
    assert any("60 runs" in text.get_text() for text in ax.get_legend().get_texts())
    assert "scores" not in repr(found)
