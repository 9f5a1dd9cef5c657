"""The subjects of diffprivlib, and what it does where its pages promise something.

Runs inside the environment of that library.
"""

from __future__ import annotations

import warnings
from importlib.metadata import version

import numpy as np
from benchmarks.audit_peers.densities import vector_mechanism_law
from benchmarks.audit_peers.evidence import (
    Evidence,
    classes_of_zeros,
    noise_of_workers,
    two_classes,
)
from diffprivlib import BudgetAccountant
from diffprivlib.models import LinearRegression, LogisticRegression
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

LIBRARY = f"diffprivlib {version('diffprivlib')}"
DELTA = 0.0  # pure epsilon is what it promises


class BoundedRegression(LinearRegression):
    """Its linear regression under the names of bounds that `audit_estimator` knows.

    ``feature_bounds`` has the two ends of each column.
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        feature_bounds=((-1.0, 1.0), (-1.0, 1.0)),
        y_range=(-1.0, 1.0),
        fit_intercept=True,
        random_state=None,
    ):
        super().__init__(
            epsilon=epsilon,
            bounds_X=tuple(map(np.array, zip(*feature_bounds, strict=True))),
            bounds_y=y_range,
            fit_intercept=fit_intercept,
            random_state=random_state,
        )
        self.feature_bounds = feature_bounds
        self.y_range = y_range


def logistic(setting, epsilon, seed):
    return LogisticRegression(
        epsilon=epsilon,
        data_norm=setting.norm,
        C=setting.C,
        fit_intercept=setting.fit_intercept,
        random_state=seed,
    )


def law(setting, epsilon):
    """Return the law of a released model, and the value of its constant column."""
    found = vector_mechanism_law(
        epsilon, setting.norm, setting.C, 1, fit_intercept=setting.fit_intercept
    )
    return found, 1.0


def linear(setting, epsilon, seed):
    return LinearRegression(
        epsilon=epsilon,
        bounds_X=setting.bounds,
        bounds_y=(-1.0, 1.0),
        fit_intercept=setting.fit_intercept,
        random_state=seed,
    )


def estimators(epsilon):
    """Return what `audit_estimator` attacks, each with its settings in words."""
    return {
        "LogisticRegression, norm 1": LogisticRegression(
            epsilon=epsilon, data_norm=1.0
        ),
        "LogisticRegression, norm 100, no intercept": LogisticRegression(
            epsilon=epsilon, data_norm=100.0, fit_intercept=False
        ),
        "LinearRegression, -1 to 1": BoundedRegression(epsilon=epsilon),
        "LinearRegression, 0 to 1": BoundedRegression(
            epsilon=epsilon, feature_bounds=((0.0, 1.0), (0.0, 1.0))
        ),
    }


def _fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def clones_and_accounts():
    X, y = two_classes()
    account = BudgetAccountant(epsilon=2.0)
    model = LogisticRegression(epsilon=1.0, data_norm=1.0, accountant=account)
    for _ in range(5):
        _fitted(clone(model), X, y)
    recorded = account.total()[0]
    _fitted(model, X, y)
    return Evidence(
        "Five clones are fitted at epsilon 1 under a cap of 2.",
        "all five fit" if recorded == 0 else "charged",
        f"recorded {recorded:g} after the clones, {account.total()[0]:g} after a fit "
        "of the model itself",
        recorded >= 1,
    )


def searches_and_accounts():
    X, y = two_classes()
    account = BudgetAccountant(epsilon=2.0)
    model = LogisticRegression(epsilon=1.0, data_norm=1.0, accountant=account)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3)
    _fitted(search, X, y)
    kept = account.total()[0]
    return Evidence(
        "GridSearchCV fits seven models at epsilon 1 under a cap of 2.",
        "all seven fit",
        f"recorded {kept:g}; the copy that the best model holds has "
        f"{search.best_estimator_.accountant.total()[0]:g}",
        kept >= 1,
    )


def workers_and_noise():
    return noise_of_workers(
        lambda state: LogisticRegression(epsilon=1.0, data_norm=1.0, random_state=state)
    )


def classes_and_noise():
    X, y = classes_of_zeros()
    found = {}
    for jobs in (1, 2):
        model = LogisticRegression(
            epsilon=1.0, data_norm=1.0, n_jobs=jobs, fit_intercept=False
        )
        found[jobs] = len({row.tobytes() for row in _fitted(model, X, y).coef_})
    return Evidence(
        "Three classes are fitted by two processes, without a seed.",
        "the same noise for all" if found[2] == 1 else "noise of their own",
        f"rows of coef_ that differ: {found[2]} of 3; by one process {found[1]}",
        found[2] == 3,
    )


def noise_on_squares():
    X = np.full((10, 2), 0.5)
    moved = []
    for seed in range(20):
        model = LinearRegression(
            epsilon=1.0,
            bounds_X=(0.0, 1.0),
            bounds_y=(0.0, 1.0),
            fit_intercept=False,
            random_state=seed,
        )
        squares = _fitted(model, X, X[:, 0])._obj_coefs[2]
        moved.append(np.abs(squares - X.T @ X))
    diagonal = max(float(m.diagonal().max()) for m in moved)
    other = max(float(m[0, 1]) for m in moved)
    return Evidence(
        "A linear regression of columns from 0 to 1, without an intercept.",
        "no noise on squares" if diagonal < 1e-9 else "noise on squares",
        f"largest noise of 20 fits on the diagonal {diagonal:.1g}, beside it "
        f"{other:.3g}",
        diagonal > 1e-9,
    )


def unfinished_fits():
    X, y = two_classes()
    model = LogisticRegression(epsilon=1.0, data_norm=1.0, max_iter=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return Evidence(
        "A fit is stopped before it reaches its minimum, for which its proof is.",
        "released" + (", with a warning" if warned else ""),
        f"after {int(model.n_iter_[0])} iteration",
        False,
    )


PROBES = (
    clones_and_accounts,
    searches_and_accounts,
    workers_and_noise,
    classes_and_noise,
    noise_on_squares,
    unfinished_fits,
)
