"""Candidates of a search: their parameters, events and fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, Normalizer

from tacit._estimators import checked_shape, labels_found
from tacit._validate import at_least
from tacit.additive._model import AdditiveModel
from tacit.data import RowBounds
from tacit.data.bounds import sorted_classes
from tacit.data.declared import (
    TableFacts,
    declare,
    declared_bounds,
    declared_like,
    given_norm,
)
from tacit.exceptions import PlanError
from tacit.feature_selection._base import PrivateSelector
from tacit.linear_model._base import PrivateLinearModel, checked_features
from tacit.preprocessing import (
    PublicOneHot,
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)
from tacit.preprocessing._bounded import BoundedOutput
from tacit.preprocessing._transformer import PrivateTransformer
from tacit.privacy import (
    Budget,
    Composed,
    Event,
    Ledger,
    Neighbors,
    PrivacyReport,
    Shares,
)
from tacit.privacy.events import whole_budget

__all__ = [
    "candidates_of",
    "checked_rows",
    "common_neighbors",
    "event_of_fit",
    "fit_on",
    "labels_of",
    "private_parts",
    "published",
    "require_private_parts",
    "with_budget",
    "with_params",
]

# Parameters that the search sets in every candidate
OWN = ("epsilon", "delta", "neighbors", "random_state", "verbose")
# and in all its parts: printing and caching reveal the number of runs and the models
# that lost; writing into rows changes those of the next run; and the form of the rows
# must not depend on how many entries are zero
SECRETIVE = {
    "verbose": False,
    "memory": None,
    "n_jobs": None,
    "copy": True,
    "sparse_threshold": 0.0,
}
# Estimators that charge the ledger they are given, whatever the rows
PRIVATE = (PrivateLinearModel, AdditiveModel, PrivateTransformer, PrivateSelector)
# Steps that map each valid row by itself and never fail
PUBLIC = (
    *(PublicScaler, PublicOneHot, RandomFourierFeatures, RandomPartitionTrees),
    *(Normalizer, Binarizer),
)
# Basic composition of the parts of a fit
BASIC = Shares(basic=1.0, gaussian=0.0, renyi=0.0, slack=0.0)


def candidates_of(
    grid: Any, n_candidates: int | None, seed: int
) -> list[dict[str, Any]]:
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
        _require_searchable(part)
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


def _require_searchable(names: Mapping[str, Any]) -> None:
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
    """Return the private estimators of a candidate by their prefix."""
    return [
        (f"{name}__" if name else "", step)
        for name, step in _steps(model)
        if _is_private(step)
    ]


def require_private_parts(model: Any) -> None:
    """Check that every part which learns from rows is private, so that it charges."""
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            f"estimator must be an estimator or a Pipeline, got {type(model).__name__}."
        )
    steps = _steps(model)
    for position, (name, step) in enumerate(steps, 1):
        transforms = position < len(steps)  # all but the last step
        if _is_private(step) and (hasattr(step, "transform") or not transforms):
            continue
        if transforms and _learns_nothing(step):
            continue
        where = f"step {name!r} of the pipeline" if name else "estimator"
        if hasattr(step, "complete_row"):
            raise TypeError(
                f"{where} must learn from rows with a target; recommenders are not "
                f"supported, got {type(step).__name__}: choose its parameters on "
                "public ratings."
            )
        names = ", ".join(kind.__name__ for kind in PUBLIC)
        others = (
            f"; or take {names}, with columns listed and no weights, and do what else "
            "maps each row by itself before the search"
        )
        raise TypeError(
            f"{where} must be private, with the fit of an estimator of tacit, got "
            f"{type(step).__name__}{others if transforms else ''}."
        )


def _steps(model: Any) -> list[tuple[str, Any]]:
    return list(model.steps) if type(model) is Pipeline else [("", model)]


def _is_private(step: Any) -> bool:
    """Return whether the fit is one that charges before it learns."""
    return any(isinstance(step, k) and type(step).fit is k.fit for k in PRIVATE)


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in ("passthrough", "drop"))


def _learns_nothing(step: Any) -> bool:
    """Return whether a step maps every row by itself and never fails.

    A step that fails on some rows makes runs fail, which leaks those rows.
    """
    if _is_nothing(step):
        return True
    if type(step) is Pipeline:
        return all(_learns_nothing(part) for _, part in step.steps)
    if type(step) is FeatureUnion:
        parts = [part for _, part in step.transformer_list]
    elif type(step) is ColumnTransformer:
        if any(callable(columns) for *_, columns in step.transformers):
            return False
        parts = [step.remainder, *(part for _, part, _ in step.transformers)]
    else:
        return type(step) in PUBLIC
    # products with weights may overflow on some rows
    return step.transformer_weights is None and all(map(_learns_nothing, parts))


def common_neighbors(model: Any) -> Neighbors:
    """Return the neighbors that all private parts have in common, or raise."""
    require_private_parts(model)
    found = {Neighbors.of(part.neighbors) for _, part in private_parts(model)}
    if len(found) > 1:
        raise ValueError("neighbors must be the same in all private parts.")
    return found.pop()


def with_budget(
    model: Any, budget: Budget, classes: Any, expected_rows: int | None
) -> Any:
    """Divide a budget among the private parts of a candidate, by their epsilons.

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
        model.set_params(**{prefix + name: value for name, value in given.items()})
    inside = model.get_params()
    for name in inside:
        owner, _, last = name.rpartition("__")
        holder = inside[owner] if owner else model
        # a step may have the name of a parameter
        if last in SECRETIVE and last in holder.get_params(deep=False):
            model.set_params(**{name: SECRETIVE[last]})
    return model


def labels_of(models: list[Any], y: Any) -> tuple[Any, bool]:
    """Return the public labels, and whether they had to be taken from ``y``.

    Labels that a fit would reject are rejected here, by what the fit does itself.
    """
    parts = [part for model in models for _, part in private_parts(model)]
    for part in parts:
        if getattr(part, "classes", None) is None:
            continue
        public = tuple(sorted_classes(part.classes).tolist())
        try:
            RowBounds(classes=public).codes(y)
            known = True
        except ValueError:
            known = False
        if not known:
            raise ValueError("y must hold labels from classes only.")
    if all(private_parts(model)[-1][1].classes is not None for model in models):
        return None, False
    return labels_found(y), True


def event_of_fit(
    model: Any, sample: Any, n_rows: int, budget: Budget
) -> tuple[Event, tuple[str, ...]]:
    """Return the event and the assumptions of a fit on ``n_rows`` rows.

    Only the columns of ``sample`` matter, not its values. Where the columns of a model
    depend on a private selection, the event is the whole budget.
    """
    events: list[Event] = []
    assumptions: list[str] = []
    for name, step in _steps(model):
        if not _is_private(step):
            sample = _mapped(name, step, sample)
            continue
        step = clone(step)
        checked_shape(step, sample, fitting=True, least_rows=0, accept_sparse=True)
        is_sparse = sparse.issparse(sample)
        n_columns = sample.shape[1]
        if isinstance(step, PrivateLinearModel):
            declared = declared_bounds(sample)
            planned = step._plan_of(TableFacts(n_rows, n_columns, is_sparse, declared))
        else:
            takes = "sparse" in signature(step.plan).parameters
            planned = step.plan(
                n_rows, n_columns, **({"sparse": is_sparse} if takes else {})
            )
        events.append(planned.event)
        assumptions += planned.assumptions
        if isinstance(step, PrivateSelector):
            _require_norm(model)
            # [search:adaptive] the ledger of the fit lets it spend no more than this
            return whole_budget(budget), tuple(assumptions)
        sample = (
            sparse.csr_array((1, n_columns)) if is_sparse else np.zeros((1, n_columns))
        )
        if isinstance(step, PrivateTransformer):
            sample = declare(sample, step._output_bounds(n_columns))
    event = events[0] if len(events) == 1 else Composed(tuple(events))
    return event, tuple(assumptions)


def _require_norm(model: Any) -> None:
    """Reject a model without a bound on rows, where its plan is not made in advance."""
    steps = [step for _, step in _steps(model)]
    declared = any(isinstance(step, BoundedOutput) for step in steps)
    for name in ("x_norm", "x_max"):
        if not declared and name in steps[-1].get_params(deep=False):
            given_norm(getattr(steps[-1], name), name)


def _mapped(name: str, step: Any, table: Any) -> Any:
    """Return rows mapped by a public step; errors must not quote them."""
    if _is_nothing(step):
        return table
    try:
        return clone(step).fit_transform(table)
    except Exception:
        rejected = True
    if rejected:  # raised here, without the context that quotes the rows
        raise ValueError(
            f"X must have the columns and values that step {name!r} of the pipeline "
            "takes: numbers that are neither missing nor infinite, unless it fills "
            "them or takes strings."
        )


def checked_rows(models: Sequence[Any], X: Any) -> None:
    """Reject values that a fit would reject, before anything is charged.

    Only the steps up to the first private one need a check: its output is finite.
    """
    plain = False
    for model in models:
        table, (first, *_) = X, _steps(model)
        numbers = _is_private(first[1]) and not isinstance(first[1], AdditiveModel)
        if numbers and plain:
            continue
        plain |= numbers
        for name, step in _steps(model):
            if _is_private(step):
                break
            table = _mapped(name, step, table)
        if isinstance(step, AdditiveModel):
            clone(step).checked_cells(table)
        else:
            checked_features(table)


def fit_on(
    model: Any, X: Any, y: Any, sample: Any, budget: Budget, planned: Event
) -> None:
    """Fit a candidate, which spends exactly the planned event.

    Public steps read the columns off ``sample``, as there may be no rows; its values do
    not matter.
    """
    account = Ledger(budget, shares=BASIC)
    *front, (_, last) = _steps(model)
    for _, step in front:
        if _is_nothing(step):
            continue
        if _is_private(step):
            step.fit(X, y, ledger=account)
        else:
            step.fit(sample)
        sample = step.transform(sample)
        # [search:empty] some steps reject a table without rows, which reveals one
        X = step.transform(X) if X.shape[0] else declared_like(sample[:0], sample)
    last.fit(X, y, ledger=account)
    charges = tuple(entry.event for entry in account.report().entries)
    # [search:charges] what was charged inside is what the search was charged for
    known = charges == (planned,) or Composed(charges) == planned
    enough = len(charges) >= len(private_parts(model))
    if not enough or not (known or planned == whole_budget(budget)):
        raise PlanError("A fit made other charges than were planned.")


def published(model: Any, unfitted: Any, report: PrivacyReport) -> Any:
    """Return a fitted candidate under the guarantee of the search that chose it.

    The guarantee and the noise of the fit by itself no longer hold.
    """
    for (_, part), (_, first) in zip(
        private_parts(model), private_parts(unfitted), strict=True
    ):
        before = first.get_params(deep=False)
        part.set_params(epsilon=report.guarantee.epsilon, delta=report.guarantee.delta)
        for name in ("random_state", "verbose", "expected_rows"):
            if name in before:
                setattr(part, name, before[name])  # as it was given
        for inner in (part, *vars(part).values()):
            if hasattr(inner, "privacy_"):
                inner.privacy_ = report
        if hasattr(part, "noise_"):
            part.noise_ = None
        vars(part).pop("_facts", None)
    return model
