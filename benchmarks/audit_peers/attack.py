"""Attack one library; run inside its own environment.

Usage: ``python -m benchmarks.audit_peers.attack '{"library": "tacit", ...}'`` with the
``kind`` of attack, the ``name`` of what is attacked, and ``runs``. Prints one line of
JSON. The code that judges is that of `tacit.audit`, in every environment.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from importlib import import_module

import numpy as np
from benchmarks.audit_peers.settings import CONFIDENCE, LINEAR, LOGISTIC

from tacit.audit import audit, audit_estimator, audit_one_run

EPSILON = 1.0  # of models that are audited by their parameters
# Fits that are given so many times the epsilon that is judged
CONTROL = 4.0


def of_library(name):
    """Return the module that knows a library, which its environment alone can load."""
    return import_module(f"benchmarks.audit_peers.of_{name}")


def attack_logistic(library, setting, times, runs):
    """Bound the epsilon of a classifier by the exact ratio of its densities."""
    given = times * setting.epsilon
    law, constant = library.law(setting, given)

    def weights(model):
        w = [float(model.coef_[0, 0])]
        if setting.fit_intercept:
            w.append(float(model.intercept_[0]) / constant)
        return np.array(w)

    def train(data, seed):
        return weights(library.logistic(setting, given, seed).fit(*data))

    def side(X, y):
        if setting.fit_intercept:
            X = np.c_[X, np.full(len(X), constant)]
        return X, 2.0 * y - 1

    pair = setting.pair()
    sides = [side(*data) for data in pair]
    return audit(
        train,
        pair,
        n_runs=runs,
        delta=0.0,
        score=lambda w: law.log_ratio(w[None], *sides)[0],
        confidence=CONFIDENCE,
        random_state=0,
    )


def attack_linear(library, setting, times, runs):
    """Bound the epsilon of a regression by the size of its one coefficient."""
    given = times * setting.epsilon

    def train(data, seed):
        return np.ravel(library.linear(setting, given, seed).fit(*data).coef_)

    return audit(
        train,
        setting.pair(),
        n_runs=runs,
        delta=library.DELTA,
        score=lambda w: np.log(np.abs(w[0]) + 1e-300),
        confidence=CONFIDENCE,
        random_state=0,
    )


MODELS = {"logistic": "LogisticRegression", "linear": "LinearRegression"}
KINDS = {"logistic": (LOGISTIC, attack_logistic), "linear": (LINEAR, attack_linear)}


def attacked(library, kind, name, runs):
    """Return the bound for a setting and that of its control, as plain data."""
    settings, attack = KINDS[kind]
    setting = next(s for s in settings if s.name == name)
    found = attack(library, setting, 1.0, runs)
    control = attack(library, setting, CONTROL, max(runs // 4, 200))
    return {
        "model": MODELS[kind],
        "setting": name,
        **judged(setting.epsilon, found),
        "control_at_least": control.epsilon_lower,
    }


def judged(guaranteed, found):
    """Return what all tables say of a bound."""
    return {
        "promised": guaranteed,
        "delta": found.delta,
        "at_least": found.epsilon_lower,
        "hits": f"{found.hits[0]} : {found.hits[1]}",
        "judged": found.trials[0],
        "refuted": "yes" if found.refutes(guaranteed) else "no",
    }


def estimator_audited(library, name, runs):
    """Return what `audit_estimator` makes of a model, by its parameters alone."""
    found = audit_estimator(
        library.estimators(EPSILON)[name],
        runs=runs,
        confidence=CONFIDENCE,
        method="clopper-pearson",
        random_state=0,
    )
    return {
        "setting": name,
        **judged(found.epsilon, found.result),
        "leaks": ", ".join(found.leaks),
    }


def one_run(library, name, n_canaries):
    """Return what `audit_one_run` makes of a model, by a single fit."""
    found = audit_one_run(
        library.estimators(EPSILON)[name],
        n_canaries=n_canaries,
        confidence=CONFIDENCE,
        method="any",
        random_state=0,
    )
    return {
        "setting": name,
        "promised": found.epsilon,
        "delta": found.delta,
        "at_least": found.epsilon_lower,
        "right": f"{found.result.n_correct} of {found.result.n_guesses}",
        "judged": found.result.n_canaries,
        "most_shown": found.most_shown,
        "refuted": "yes" if found.refuted else "no",
    }


def main(given):
    warnings.simplefilter("ignore")
    library = of_library(given["library"])
    what = given["kind"], given.get("name"), given.get("runs")
    match what:
        case "promises", _, _:
            shown = [probe() for probe in library.PROBES]
            found = [asdict(e) | {"kept": "yes" if e.kept else "no"} for e in shown]
        case "estimator", name, runs:
            found = estimator_audited(library, name, runs)
        case "one_run", name, n_canaries:
            found = one_run(library, name, n_canaries)
        case "names", _, _:
            found = list(library.estimators(EPSILON))
        case kind, name, runs:
            found = attacked(library, kind, name, runs)
    return {"library": library.LIBRARY, "found": found}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
