"""The subjects of this library, and what it does in the same situations."""

from __future__ import annotations

from inspect import signature

import numpy as np
from benchmarks.audit_peers.densities import TiltedLaw
from benchmarks.audit_peers.evidence import (
    Evidence,
    classes_of_zeros,
    noise_of_workers,
    two_classes,
)
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tacit import Seed
from tacit._release import recording
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.privacy import Budget, Ledger
from tacit.solvers import AdaptiveMoments, ObjectivePerturbation
from tacit.solvers._base import INTERCEPT_FRACTION

LIBRARY = "tacit"
# What its regressions need; classifiers here promise pure epsilon, as the other one's
DELTA = 1e-6


class Noted(ObjectivePerturbation):
    """Objective perturbation that keeps the plans that it made."""

    def plan(self, problem, budget):
        plan = super().plan(problem, budget)
        NOTED.append(plan)
        return plan


NOTED = []


def logistic(setting, epsilon, seed, solver=None):
    return LogisticRegression(
        epsilon,
        0.0,
        x_norm=setting.norm,
        fit_intercept=setting.fit_intercept,
        classes=[0, 1],
        solver=solver or ObjectivePerturbation(),
        random_state=Seed(seed),
    )


def law(setting, epsilon):
    """Return the law of a released model, and the value of its constant column."""
    logistic(setting, epsilon, 0, Noted()).fit(*setting.pair().first)
    plan = NOTED.pop()
    found = TiltedLaw(
        (plan.ridge,) * plan.problem.size,
        plan.scale(),
        order=1,  # the law of the tilt where delta is zero
        cap=plan.problem.loss.cap,
    )
    return found, INTERCEPT_FRACTION * setting.norm


def linear(setting, epsilon, seed):
    return LinearRegression(
        epsilon,
        DELTA,
        y_range=(-1.0, 1.0),
        fit_intercept=setting.fit_intercept,
        random_state=Seed(seed),
        x_norm=1.0,
    )


def estimators(epsilon):
    """Return what `audit_estimator` attacks, each with its settings in words."""
    return {
        "LogisticRegression, norm 1": LogisticRegression(epsilon, DELTA, x_norm=1.0),
        "LogisticRegression, norm 100, no intercept": LogisticRegression(
            epsilon, DELTA, x_norm=100.0, fit_intercept=False
        ),
        "LinearRegression, norm 1": LinearRegression(epsilon, DELTA, x_norm=1.0),
    }


def clones_and_accounts():
    X, y = two_classes()
    ledger = Ledger(Budget(2.0, 1e-5))
    model = LogisticRegression(1.0, DELTA, x_norm=1.0)
    done = _until_rejected(lambda: clone(model).fit(X, y, ledger=ledger), 5)
    return Evidence(
        "Five clones are fitted at epsilon 1 under a cap of 2.",
        f"{done} fit, the next is rejected",
        f"recorded {ledger.spent():.3g}",
        done < 5 and ledger.spent() <= 2,
    )


def _until_rejected(fit, most):
    for done in range(most):
        try:
            fit()
        except BudgetExceeded:
            return done
    return most


def searches_and_accounts():
    X, y = two_classes()
    ledger = Ledger(Budget(2.0, 1e-5))
    model = LogisticRegression(1.0, DELTA, x_norm=1.0)
    with config_context(enable_metadata_routing=True):
        asked = model.set_fit_request(ledger=True)
        search = GridSearchCV(asked, {"ridge": [0.0, 1.0]}, cv=3, error_score="raise")
        rejected = not _until_rejected(lambda: search.fit(X, y, ledger=ledger), 1)
    fits = len(ledger.report().entries)
    return Evidence(
        "GridSearchCV fits seven models at epsilon 1 under a cap of 2.",
        f"rejected after {fits} fits" if rejected else "all seven fit",
        f"recorded {ledger.spent():.3g}; without a ledger nothing is recorded",
        rejected and ledger.spent() <= 2,
    )


def workers_and_noise():
    return noise_of_workers(
        lambda state: LogisticRegression(1.0, DELTA, random_state=state, x_norm=1.0)
    )


def classes_and_noise():
    X, y = classes_of_zeros()
    model = LogisticRegression(1.0, DELTA, fit_intercept=False, x_norm=1.0).fit(X, y)
    found = len({row.tobytes() for row in model.coef_})
    return Evidence(
        "Three classes are fitted by two processes, without a seed.",
        "noise of their own" if found == 3 else "the same noise",
        f"rows of coef_ that differ: {found} of 3; one model, and no n_jobs",
        found == 3,
    )


def noise_on_squares():
    model = LinearRegression(
        1.0,
        DELTA,
        y_range=(0, 1),
        fit_intercept=False,
        solver=AdaptiveMoments(),
        x_norm=1.0,
    )
    X = np.full((10, 2), 0.5)
    with recording() as tape:
        model.fit(X, X[:, 0])
    least = min(float(np.abs(r.output - _value(r)).min()) for r in tape.releases)
    return Evidence(
        "A linear regression of columns from 0 to 1, without an intercept.",
        "noise on squares" if least > 1e-9 else "no noise on squares",
        f"least noise of all numbers released in a fit {least:.1g}",
        least > 1e-9,
    )


def _value(release):
    return release.value(release.output) if callable(release.value) else release.value


def unfinished_fits():
    taken = signature(LogisticRegression).parameters
    return Evidence(
        "A fit is stopped before it reaches its minimum, for which its proof is.",
        "not possible",
        "no parameter limits iterations, and a minimum that is not certified is an "
        "error",
        not {"max_iter", "tol"} & set(taken),
    )


PROBES = (
    clones_and_accounts,
    searches_and_accounts,
    workers_and_noise,
    classes_and_noise,
    noise_on_squares,
    unfinished_fits,
)
