"""Estimators and functions attacked as users call them.

The attack reads nothing of their plans. The control is the same call while every
mechanism draws less noise than planned, and chooses as much more sharply.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from tests.audits.quiet import quieter
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs, check
from tests.cases import Cases
from tests.stat import P_FAIL

from tacit.audit import audit_estimator
from tacit.ensemble import PrivateLabeler, PrivateStudent
from tacit.evaluation import private_score
from tacit.linear_model import (
    ElasticNet,
    GeneralizedLinearModel,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
    SparseLogisticRegression,
)
from tacit.model_selection import private_accuracy, private_rmse
from tacit.recommend import MatrixCompletion, PrivateALS
from tacit.solvers import (
    AdaSSP,
    CoordinateDescent,
    EntropySampling,
    OutputPerturbation,
)
from tacit.stability import ProposeTestRelease, private_answer
from tacit.streaming import HedgeAggregator, OnlineLinearRegression, QuadraticLeader

SHARED_CASES = Cases(
    audits="AdaSSP CoordinateDescent ElasticNet EntropySampling GeneralizedLinearModel "
    "HedgeAggregator HuberRegressor Lasso LinearRegression LinearSVC "
    "LogisticRegression MatrixCompletion OnlineLinearRegression OutputPerturbation "
    "PrivateALS PrivateStudent ProposeTestRelease QuadraticLeader Ridge "
    "SimplexRegressor SparseLogisticRegression private_accuracy private_answer "
    "private_rmse private_score"
)

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

EPSILON, DELTA = 8.0, 1e-4

# A heavy ridge leaves the sums of the rows alone; one update of each column shows all
# that was charged for it.
HEAVY = {"solver": OutputPerturbation(ridge=200.0)}
SUMS = {"solver": AdaSSP(ridge=1e4), "fit_intercept": False}
ONCE = CoordinateDescent(1, smoothness="public", step=1.0, order="cyclic", clip=1.0)
SPARSE = {"solver": ONCE, "alpha": 0.0, "fit_intercept": False}

LINEAR = {
    "LinearSVC with OutputPerturbation": LinearSVC(**HEAVY),
    "LogisticRegression with OutputPerturbation": LogisticRegression(**HEAVY),
    "HuberRegressor with OutputPerturbation": HuberRegressor(**HEAVY),
    "GeneralizedLinearModel with OutputPerturbation": GeneralizedLinearModel(**HEAVY),
    "LinearRegression with AdaSSP": LinearRegression(**SUMS),
    "Ridge with AdaSSP": Ridge(**SUMS),
    "Lasso with CoordinateDescent": Lasso(**SPARSE),
    "ElasticNet with CoordinateDescent": ElasticNet(**SPARSE),
    "SparseLogisticRegression with CoordinateDescent": SparseLogisticRegression(
        **{**SPARSE, "solver": replace(ONCE, clip=0.5)}
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_keep_their_claim_and_less_noise_is_caught(name, seed):
    model = LINEAR[name].set_params(epsilon=EPSILON, delta=DELTA)

    def lower(part):
        with quieter(part):
            return audit_estimator(
                model, n_rows=4, runs=300, confidence=1 - P_FAIL, random_state=seed
            ).result

    check(name, EPSILON, lower, broken=0.2)


class MoreSamples(EntropySampling):
    """Draws many times the samples that were planned: its noise is in the draws."""

    def run(self, plan, rows, rng):
        return super().run(replace(plan, n_samples=200 * plan.n_samples), rows, rng)


def test_weights_on_the_simplex_keep_their_claim(seed):
    # many draws are nearly a Gaussian mechanism
    planned, control = (
        audit_estimator(
            SimplexRegressor(EPSILON, DELTA, solver=kind(weight=50.0), x_max=1.0),
            n_rows=4,
            runs=300,
            method="gaussian",
            confidence=1 - P_FAIL,
            random_state=seed,
        ).result
        for kind in (EntropySampling, MoreSamples)
    )
    name, more = "SimplexRegressor with EntropySampling", "200 times the samples"
    assert_refutes_the_control(name, EPSILON, planned, control, more)


def lower_bound(release, pair, delta, n_runs, seed, part):
    """Return the bound on epsilon while this part of all noise is drawn."""
    with quieter(part):
        return bound_of_runs(
            lambda data, seed: np.atleast_1d(release(data, seed)),
            pair,
            n_runs,
            delta,
            seed,
            method="gaussian" if delta else "clopper-pearson",
        )


def rmse_model():
    """A regressor that says minus one of all, for targets from minus one to one."""
    model = Ridge(1.0, 1e-6, y_range=(-1, 1), random_state=0, x_norm=1.0)
    model.fit(np.zeros((50, 1)), np.zeros(50))
    model.coef_, model.intercept_ = np.zeros(1), -1.0
    return model


RIGHT = DummyClassifier(strategy="constant", constant=1).fit([[0]] * 2, [0, 1])
SCORES = {
    "private_score": (private_score, lambda: RIGHT),
    "private_accuracy": (private_accuracy, lambda: RIGHT),
    "private_rmse": (private_rmse, rmse_model),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_keep_their_claim_and_less_noise_is_caught(name, seed):
    score, made = SCORES[name]
    model = made()
    # one label is wrong, or one target as far away as can be
    pair = [np.r_[last, np.ones(19, dtype=int)] for last in (1, 0)]
    if name == "private_rmse":
        pair = [np.r_[last, np.full(19, -1.0)] for last in (1.0, -1.0)]

    def release(y, seed):
        return score(
            model,
            np.zeros((20, 1)),
            y,
            epsilon=1.0,
            neighbors="replace_one",
            random_state=seed,
        ).value

    check(name, 1.0, partial(lower_bound, release, pair, 0.0, 800, seed), broken=0.25)


def test_an_answer_keeps_its_claim_and_less_noise_is_caught(seed):
    procedure = ProposeTestRelease(
        lambda X, y: X[0, 0], lambda X, y: 1e6, 1.0, test_share=0.05
    )

    def release(X, seed):
        given = {"epsilon": 1.0, "delta": 1e-6, "random_state": seed}
        return private_answer(procedure, X, **given).value

    def lower(part):
        with quieter(part):
            return bound_of_runs(
                release,
                [np.zeros((3, 1)), np.ones((3, 1))],
                800,
                1e-6,
                seed,
                method="clopper-pearson",
            )

    check("private_answer with ProposeTestRelease", 1.0, lower, broken=0.25)


def learned_weight(y, seed):
    """One row of a stream; so heavy a ridge shows the noisy product as it is."""
    model = OnlineLinearRegression(
        EPSILON,
        DELTA,
        horizon=1,
        y_range=(-1, 1),
        fit_intercept=False,
        method=QuadraticLeader(ridge=1e5, recent=0.0),
        random_state=seed,
        x_norm=1.0,
    )
    return 1e6 * model.partial_fit(np.ones((1, 1)), [y]).coef_[0]


def log_odds(costs, seed):
    """One row of costs of two experts, and the weights that come of it."""
    model = HedgeAggregator(
        EPSILON,
        DELTA,
        horizon=1,
        loss="cost",
        cost_range=(-1, 1),
        play="weights",
        hold=1,
        temperature=1e-6,
        random_state=seed,
    )
    weights = np.clip(model.partial_fit([costs]).weights_, 1e-300, 1.0)
    return np.log(weights[0] / weights[1])


def preference(ratings, seed):
    """Which of two items the published side prefers."""
    # so many that offsets are far from zero, and not shrunk to it
    others = [[1.0, -1.0]] * 30 + [[-1.0, 1.0]] * 5
    table = sparse.csr_array(np.array([*others, ratings]))
    model = MatrixCompletion(
        PrivateALS(),
        EPSILON,
        DELTA,
        rating_range=(-1, 1),
        max_ratings=2,
        random_state=seed,
    ).fit(table)
    return model.factors_.offsets[0] - model.factors_.offsets[1]


class Finder(ClassifierMixin, BaseEstimator):
    """A teacher that votes for one if the marked row is in its chunk."""

    def fit(self, X, y):
        self.found_ = int(np.any(X[:, 0] > 0))
        return self

    def predict(self, X):
        return np.full(len(X), self.found_)


def taught(mark, seed):
    """What a student says, who learns the noisy votes themselves."""
    X = np.zeros((10, 1))
    X[0] = mark
    labeler = PrivateLabeler(
        Finder(),
        10,
        EPSILON,
        DELTA,
        classes=[0, 1],
        mechanism="gnmax",
        n_queries=4,
        random_state=seed,
    )
    student = PrivateStudent(labeler)
    student.fit(X, np.arange(10) % 2, X_public=np.arange(4.0)[:, None])
    return (student.labels_.votes[:, 1] - student.labels_.votes[:, 0]).sum()


# what is released of one person's data, for her and for another in her place
STREAMED = {
    "OnlineLinearRegression with QuadraticLeader": (learned_weight, (1.0, -1.0)),
    "HedgeAggregator": (log_odds, ([1.0, -1.0], [-1.0, 1.0])),
    "MatrixCompletion with PrivateALS": (preference, ([1.0, -1.0], [-1.0, 1.0])),
    "PrivateStudent": (taught, (1.0, -1.0)),
}


@pytest.mark.parametrize("name", STREAMED)
def test_other_estimators_keep_their_claim_and_less_noise_is_caught(name, seed):
    release, pair = STREAMED[name]
    lower = partial(lower_bound, release, pair, DELTA, 400, seed)
    check(name, EPSILON, lower, broken=0.25)
