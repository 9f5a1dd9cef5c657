"""Candidates of a search: which there are, what they cost, how one is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags

from tacit._estimators import checked_shape
from tacit._validate import at_least
from tacit.exceptions import PlanError
from tacit.linear_model._erm import checked_features
from tacit.preprocessing import PublicOneHot, PublicScaler
from tacit.privacy import (
    ApproxDP,
    Budget,
    Composed,
    Event,
    Ledger,
    Neighbors,
    PrivacyReport,
    PureDP,
    Shares,
)

__all__ = [
    "candidates_of",
    "checked_rows",
    "fit_on",
    "labels_of",
    "planned_fit",
    "private_parts",
    "published",
    "relation_of",
    "with_budget",
    "with_params",
]

# What a search sets itself, in every candidate
OWN = ("epsilon", "delta", "neighbors", "random_state", "verbose")
# Promises of the parts of a fit simply add up
BASIC = Shares(basic=1.0, gaussian=0.0, renyi=0.0, slack=0.0)


def candidates_of(grid: Any, n_candidates: int | None, seed: int) -> list[dict]:
    """Return the parameters of all candidates, each once.

    Lists are crossed with each other. Where there are distributions, or more than
    ``n_candidates``, so many are drawn.
    """
    several = [grid] if isinstance(grid, Mapping) else grid
    listed = isinstance(several, list | tuple) and several
    if not listed or not all(isinstance(part, Mapping) for part in several):
        raise ValueError(
            "param_grid must be a mapping from names to values, or a list of such."
        )
    for part in several:
        _refuse_own(part)
    drawn = any(hasattr(v, "rvs") for part in several for v in part.values())
    if n_candidates is not None:
        at_least(1, n_candidates=n_candidates)
    elif drawn:
        raise ValueError(
            "n_candidates must be given where param_grid holds distributions: how many "
            "candidates to draw from them."
        )
    if drawn:
        found = list(ParameterSampler(several, n_candidates, random_state=seed))
    else:
        found = list(ParameterGrid(several))
        if n_candidates is not None and n_candidates < len(found):
            found = list(ParameterSampler(several, n_candidates, random_state=seed))
    return found


def _refuse_own(names: Mapping[str, Any]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise ValueError("param_grid must have names of parameters as its keys.")
        last = name.rsplit("__", 1)[-1]
        if last in OWN:
            raise ValueError(
                f"param_grid must not list {name!r}: every candidate gets its "
                f"{last} from the search."
            )


def with_params(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return an unfitted copy with these parameters."""
    return clone(estimator).set_params(**clone(dict(params), safe=False))


def private_parts(model: Any) -> list[tuple[str, Any]]:
    """Return the private estimators of a candidate by their prefix, or refuse it.

    Whatever learns from the rows must be private: nothing else is paid for.
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            f"estimator must be an estimator or a Pipeline, got {type(model).__name__}."
        )
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    parts = []
    for place, (name, step) in enumerate(steps):
        if _is_private(step):
            parts.append((f"{name}__" if name else "", step))
        elif place == len(steps) - 1 or not _learns_nothing(step):
            where = f"step {name!r} of the pipeline" if name else "estimator"
            raise TypeError(
                f"{where} must be private, with an epsilon and a fit that takes a "
                f"ledger, got {type(step).__name__}; use one of tacit's, or a step "
                "that learns nothing from the rows."
            )
    return parts


def _is_private(step: Any) -> bool:
    return (
        isinstance(step, BaseEstimator)
        and {"epsilon", "delta", "neighbors"} <= set(step.get_params(deep=False))
        and "ledger" in signature(step.fit).parameters
        and hasattr(step, "plan")
    )


def _learns_nothing(step: Any) -> bool:
    """Return whether a step maps each row by public facts alone."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return True
    if isinstance(step, PublicScaler | PublicOneHot):
        return True
    if isinstance(step, Pipeline):
        return all(_learns_nothing(part) for _, part in step.steps)
    if isinstance(step, FeatureUnion):
        return all(_learns_nothing(part) for _, part in step.transformer_list)
    if isinstance(step, ColumnTransformer):
        parts = [part for _, part, _ in step.transformers]
        return all(map(_learns_nothing, [*parts, step.remainder]))
    return isinstance(step, BaseEstimator) and not get_tags(step).requires_fit


def relation_of(model: Any) -> Neighbors:
    """Return the one relation that all private parts are for."""
    found = {Neighbors.of(part.neighbors) for _, part in private_parts(model)}
    if len(found) > 1:
        raise ValueError("neighbors must be the same in all private parts.")
    return found.pop()


def with_budget(
    model: Any, budget: Budget, classes: Any, expected_rows: int | None
) -> Any:
    """Return the candidate, its private parts sharing a budget as their epsilons do.

    Labels and the guess of the number of rows go to parts that were given none.
    """
    parts = private_parts(model)
    shares = budget.split(*(part.epsilon for _, part in parts))
    for (prefix, part), share in zip(parts, shares, strict=True):
        known = part.get_params(deep=False)
        given = {"epsilon": share.epsilon, "delta": share.delta}
        if classes is not None and known.get("classes", 0) is None:
            given["classes"] = classes
        if expected_rows is not None and known.get("expected_rows", 0) is None:
            given["expected_rows"] = expected_rows
        if "verbose" in known:  # a bar would tell how many runs there are
            given["verbose"] = 0
        model.set_params(**{prefix + name: value for name, value in given.items()})
    return model


def labels_of(models: list[Any], y: Any) -> tuple[Any, bool]:
    """Return the public labels, and whether they had to be taken from ``y``."""
    given = [part[-1][1].classes for part in map(private_parts, models)]
    for classes in given:
        if classes is not None and not np.isin(y, np.asarray(classes)).all():
            raise ValueError("y must hold labels from classes only.")
    if all(classes is not None for classes in given):
        return None, False
    found = np.unique(y)
    if len(found) < 2:
        raise ValueError(
            "y holds one class; give the public labels as classes= to fit with fewer "
            "labels than there are."
        )
    return found, True


def planned_fit(
    model: Any, X: Any, n_rows: int, budget: Budget
) -> tuple[Event, tuple[str, ...]]:
    """Return the event of a fit on ``n_rows`` rows like these, and what it assumes.

    Of the rows no value matters, only what columns there are. Where the columns of a
    model depend on what a selection releases, the event is all the budget allows.
    """
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    sample = _safe_indexing(X, [0])
    events, told = [], []
    for place, (_, step) in enumerate(steps):
        if not _is_private(step):
            sample = _mapped(step, sample)
            continue
        step = clone(step)
        checked_shape(step, sample, fitting=True, least_rows=0, accept_sparse=True)
        like = {"sparse": sparse.issparse(sample)}
        takes = "sparse" in signature(step.plan).parameters
        planned = step.plan(n_rows, sample.shape[1], **(like if takes else {}))
        events.append(planned.event)
        told += planned.assumptions
        if hasattr(step, "get_support") and place < len(steps) - 1:
            # [search:adaptive] the ledger of the fit lets it spend no more than this
            return _all_of(budget), tuple(told)
        sample = np.zeros((1, sample.shape[1]))
    event = events[0] if len(events) == 1 else Composed(tuple(events))
    return event, tuple(told)


def _all_of(budget: Budget) -> Event:
    """Return the event of whatever keeps within a budget."""
    if budget.delta == 0:
        return PureDP(budget.epsilon)
    return ApproxDP(budget.epsilon, budget.delta)


def _mapped(step: Any, table: Any) -> Any:
    """Return rows after a step that learns nothing from them."""
    if step is None or isinstance(step, str):
        return table
    return clone(step).fit_transform(table)


def checked_rows(models: list[Any], X: Any) -> None:
    """Refuse values that a fit would refuse, before anything is charged."""
    seen = set()
    for model in models:
        front = []
        for _, step in model.steps if isinstance(model, Pipeline) else ():
            if _is_private(step):
                break
            front.append(step)
        if repr(front) in seen:
            continue
        seen.add(repr(front))
        table = X
        for step in front:
            table = _mapped(step, table)
        checked_features(table)


def fit_on(model: Any, X: Any, y: Any, budget: Budget, planned: Event) -> None:
    """Fit a candidate, which can spend what was planned and no more."""
    account = Ledger(budget, shares=BASIC)
    prefixes = [prefix for prefix, _ in private_parts(model)]
    with sklearn.config_context(enable_metadata_routing=False):
        model.fit(X, y, **{f"{prefix}ledger": account for prefix in prefixes})
    charges = tuple(entry.event for entry in account.report().entries)
    # [search:charges] what was charged inside is what the search was charged for
    known = charges == (planned,) or Composed(charges) == planned
    if len(charges) < len(prefixes) or not (known or planned == _all_of(budget)):
        raise PlanError("A fit made other charges than were planned.")


def published(model: Any, unfitted: Any, report: PrivacyReport) -> Any:
    """Return a fitted candidate under the promise of the search that chose it.

    What the fit alone would have promised is no longer true of it, nor is what it told
    of its noise.
    """
    for (_, part), (_, first) in zip(
        private_parts(model), private_parts(unfitted), strict=True
    ):
        before = first.get_params(deep=False)
        kept = {
            name: before[name]
            for name in ("random_state", "verbose", "expected_rows")
            if name in before
        }
        part.set_params(
            epsilon=report.promise.epsilon, delta=report.promise.delta, **kept
        )
        for inner in (part, *vars(part).values()):
            if hasattr(inner, "privacy_"):
                inner.privacy_ = report
        if hasattr(part, "noise_"):
            part.noise_ = None
        vars(part).pop("_facts", None)
    return model
