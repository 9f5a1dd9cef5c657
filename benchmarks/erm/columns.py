"""Columns of the tables: every way to fit that is compared.

A column that cannot run says why; nothing is left out silently.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import process_time

import numpy as np
from benchmarks.erm.data import Split
from benchmarks.erm.fits import solver_fit
from benchmarks.peers import client
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.svm import LinearSVC as PlainSVC

from tacit import Seed
from tacit.convex import L1Ball
from tacit.exceptions import PlanError
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.solvers import AMP, FrankWolfe, NoisyGD, NoisySGD, PermutedSGD

# weight of the loss of non-private models, one over the ridge
PLAIN_C = 100.0
# radii of the L1 ball that were published; each has a column, none is chosen
RADII = (1.0, 10.0)


class Rejected(Exception):
    """A fit that the method does not offer; the message says why."""


@dataclass(frozen=True)
class Fit:
    """What one fit gave: test accuracy, CPU seconds, and a note or a reason."""

    epsilon: float
    accuracy: float | None
    cpu_s: float
    note: str = ""
    status: str = "ok"  # or "refused", for good, or "failed", to be tried again


@dataclass(frozen=True)
class Column:
    """A column: its title and how to fit at one epsilon, or at several at once."""

    name: str
    title: str
    fit: Callable[[Split, str, float, int], tuple[np.ndarray, str]] | None = None
    fit_all: Callable[[Split, str, list[float], int], list[Fit]] | None = None
    private: bool = True

    def run(
        self, split: Split, loss: str, epsilons: list[float], seed: int
    ) -> list[Fit]:
        """Fit at every epsilon; never raises for what a method refuses."""
        if self.fit_all is not None:
            return _guarded(lambda: self.fit_all(split, loss, epsilons, seed), epsilons)
        return [
            fit
            for epsilon in epsilons
            for fit in _guarded(
                lambda e=epsilon: self._one(split, loss, e, seed), [epsilon]
            )
        ]

    def _one(self, split, loss, epsilon, seed):
        start = process_time()
        # the noise of two columns or epsilons must not be the same
        found, note = self.fit(split, loss, epsilon, _seed(self.name, epsilon, seed))
        took = process_time() - start
        return [Fit(epsilon, float(np.mean(found == split.y_test)), took, note)]


def _guarded(action, epsilons):
    start = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return action()
    except (PlanError, Rejected, client.PeerRefused) as error:
        status, reason = "refused", str(error)
    except Exception as error:  # a broken column must not stop the rest
        status, reason = "failed", f"{type(error).__name__}: {error}"
    took = process_time() - start
    return [Fit(epsilon, None, took, _line(reason), status) for epsilon in epsilons]


def _line(text):
    return " ".join(text.split())[:300]


def _seed(name, epsilon, seed):
    key = [ord(letter) for letter in name] + [round(1e4 * min(epsilon, 1e3)), seed]
    return int(np.random.SeedSequence(key).generate_state(1)[0])


def plain(split, loss, epsilon, seed):
    X, X_test = split.clipped()
    if loss == "logistic":
        model = PlainLogistic(C=PLAIN_C, max_iter=300)
        note = "scikit-learn LogisticRegression"
    else:
        model = PlainSVC(C=PLAIN_C, dual=X.shape[0] < X.shape[1], random_state=seed)
        note = "scikit-learn LinearSVC, squared hinge"
    return model.fit(X, split.y).predict(X_test), note


def majority(split, loss, epsilon, seed):
    """Say the largest class always: below or at this, nothing was learned."""
    return np.full(len(split.y_test), np.bincount(split.y).argmax()), ""


def estimator(**given):
    """Return a fit by the estimator of the loss, nothing set but what is given."""

    def fit(split, loss, epsilon, seed):
        kind = LogisticRegression if loss == "logistic" else LinearSVC
        model = kind(
            epsilon, classes=range(split.n_classes), random_state=Seed(seed), **given
        )
        return model.fit(split.X, split.y).predict(split.X_test), ""

    return fit


def with_solver(solver, **given):
    """Return a fit by this solver."""

    def fit(split, loss, epsilon, seed):
        return solver_fit(solver, split, loss, epsilon, seed, **given)

    return fit


def diffprivlib(split, loss, epsilons, seed):
    if loss != "logistic":
        raise Rejected("diffprivlib has no SVM.")
    found = client.diffprivlib(split, epsilons, seed)
    return [
        Fit(r["epsilon"], r["accuracy"], r["cpu_s"], _line("; ".join(_released(r))))
        for r in found
    ]


def _released(result):
    """Warnings for the user; what SciPy tells developers says nothing of the model."""
    return [w for w in result["warnings"] if not w.startswith("DeprecationWarning")]


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("non_private", "non-private", plain, private=False),
        Column("majority", "largest class", majority, private=False),
        Column("default", "**tacit, default**", estimator()),
        Column("entries", "tacit, bound_norm='linf'", estimator(bound_norm="linf")),
        Column(
            "hf_amp",
            "H-F AMP as published",
            with_solver(AMP(accounting="paper"), published=True),
        ),
        Column("amp", "AMP, tight", with_solver(AMP())),
        Column("noisy_gd", "noisy GD", with_solver(NoisyGD())),
        Column("noisy_sgd", "P-SGD", with_solver(NoisySGD())),
        Column("psgd", "P-PSGD", with_solver(PermutedSGD(ridge=0.0))),
        # any ridge asks for the strongly convex version, whose rule sets its own
        Column("scpsgd", "P-SCPSGD", with_solver(PermutedSGD(), ridge=1e-6)),
        *(
            Column(
                f"frank_wolfe_{radius:g}",
                f"P-FW, radius {radius:g}",
                with_solver(FrankWolfe(), norm="linf", regularizer=L1Ball(radius)),
            )
            for radius in RADII
        ),
        Column("diffprivlib", "diffprivlib 0.6.6", fit_all=diffprivlib),
    )
}
NON_PRIVATE_EPSILON = inf
