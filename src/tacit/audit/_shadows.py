"""Membership scores of rows, from one model or beside shadow models."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import special, stats
from sklearn.base import is_classifier

from tacit._random import Seed
from tacit.audit._seeds import shuffled

__all__ = ["confidences", "likelihood_ratios", "losses", "margins"]

Floats = NDArray[np.float64]

# With fewer models of either kind, all rows get the same variance
FEW = 32
MOST_LOG_ODDS = 700.0  # finite for a probability of one


def losses(model: Any, X: Any, y: Any) -> Floats:
    """Return minus the loss of each row, as members have smaller ones."""
    if not is_classifier(model):
        return -(margins(model, X, y) ** 2)
    # minus the logistic loss of the confidence, which no probability rounds to one
    return np.asarray(special.log_expit(confidences(model, X, y)))


def margins(model: Any, X: Any, y: Any) -> Floats:
    """Return by how much each row's own label leads, in the model's own scores."""
    if not is_classifier(model):
        return np.asarray(-np.abs(model.predict(X) - np.asarray(y, float)))
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), float)
    else:
        scores = np.log(np.maximum(np.asarray(model.predict_proba(X)), 1e-300))
    positions = _positions(model, y)
    if scores.ndim == 1:
        return np.where(positions == 1, scores, -scores)
    own = np.take_along_axis(scores, positions[:, None], axis=1)[:, 0]
    others = scores.copy()
    np.put_along_axis(others, positions[:, None], -np.inf, axis=1)
    return np.asarray(own - others.max(axis=1))


def confidences(model: Any, X: Any, y: Any) -> Floats:
    """Return the log-odds of each row's own label, or minus its residual."""
    if not is_classifier(model) or not hasattr(model, "predict_proba"):
        return margins(model, X, y)
    with np.errstate(divide="ignore"):
        logs = np.log(np.asarray(model.predict_proba(X), float))
    positions = _positions(model, y)[:, None]
    own = np.take_along_axis(logs, positions, axis=1)[:, 0]
    np.put_along_axis(logs, positions, -np.inf, axis=1)
    log_odds = own - special.logsumexp(logs, axis=1)
    return np.asarray(np.clip(log_odds, -MOST_LOG_ODDS, MOST_LOG_ODDS))


def _positions(model: Any, y: Any) -> NDArray[np.intp]:
    labels = np.asarray(y)
    if not np.isin(labels, model.classes_).all():
        raise ValueError("Labels of members and non_members must be among classes_.")
    order = np.argsort(model.classes_)
    return np.asarray(order[np.searchsorted(model.classes_, labels, sorter=order)])


def likelihood_ratios(
    model: Any,
    shadow: Any,
    X: Any,
    y: Any,
    *,
    n_shadows: int,
    jobs: int,
    sequence: np.random.SeedSequence,
) -> Floats:
    """Return how much likelier each confidence is if the row was trained on.

    Models of the same kind are trained on random halves of all rows, in pairs that
    share no row. The confidences of a row in models with it and in models without it
    are taken to be normal (Carlini et al. 2022, Section V).
    """
    halves = []
    for child in sequence.spawn(n_shadows // 2):
        chosen = np.zeros(len(y), dtype=bool)
        chosen[shuffled(child, len(y))[: len(y) // 2]] = True
        halves += [chosen, ~chosen]
    seeds = sequence.spawn(1)[0].generate_state(n_shadows)
    found = Parallel(n_jobs=jobs, max_nbytes=None)(
        delayed(_shadow)(shadow, X, y, chosen, int(seed))
        for chosen, seed in zip(halves, seeds, strict=True)
    )
    seen, chosen = np.stack(found), np.stack(halves)
    own = confidences(model, X, y)
    inside, outside = (_log_density(own, seen, kind) for kind in (chosen, ~chosen))
    return inside - outside


def _shadow(shadow: Any, X: Any, y: Any, chosen: NDArray[np.bool_], seed: int) -> Any:
    model = deepcopy(shadow)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=Seed(seed))
    return confidences(model.fit(X[chosen], y[chosen]), X, y)


def _log_density(values: Floats, seen: Floats, kind: NDArray[np.bool_]) -> Floats:
    of_kind = np.ma.masked_array(seen, ~kind)
    mean = of_kind.mean(axis=0).filled(0.0)
    variance = of_kind.var(axis=0).filled(0.0)
    if len(seen) // 2 < FEW:
        variance = np.full(mean.shape, variance.mean())
    spread = np.sqrt(np.maximum(variance, 1e-12))
    return np.asarray(stats.norm.logpdf(values, mean, spread))
