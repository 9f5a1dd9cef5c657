"""The bound on the rows of a classifier and the ball for its weights."""

from __future__ import annotations

from typing import Any

from tacit._estimators import guaranteed_budget, planning_rows
from tacit._validate import one_of
from tacit.data.declared import TableFacts
from tacit.solvers._auto import SPARSE_ENTRY, auto_norm, named_fact, sparse_radius

__all__ = ["row_limits"]

Limits = tuple[float, str, float]

# Radius of the L1 ball for rows bounded entry by entry, by the bound on an entry; the
# best of 1, 5 and 20 on synthetic problems with few features that matter
RADIUS = 5.0


def row_limits(model: Any, table: TableFacts, n_classes: int) -> Limits:
    """Return the bound on rows, its norm, and the radius for bounded entries."""
    norm = model.bound_norm
    one_of(("auto", "l2", "linf"), bound_norm=norm)
    name = model.solver if isinstance(model.solver, str) else ""
    if norm == "auto" and named_fact(name, "row_norm") == "linf":
        norm = "linf"
    elif norm == "auto":
        if model.penalty is None and name == "auto":
            return _auto_limits(model, table, n_classes)
        norm = "l2"
    return table.x_norm(model.x_norm, norm), norm, RADIUS


def _auto_limits(model: Any, table: TableFacts, n_classes: int) -> Limits:
    """Return the same where it is left to us, from public facts."""
    n_rows, relation = table.n_rows, model.neighbors
    budget = guaranteed_budget(model.epsilon, model.delta, relation, n_rows)
    planned = planning_rows(budget, n_rows, model.expected_rows)
    shape = planned, table.n_features
    norm = auto_norm(*shape, table.is_sparse, budget)
    row, entry = (table.x_norm(model.x_norm, kind) for kind in ("l2", "linf"))
    if norm == "linf" and not table.is_sparse:
        return entry, norm, RADIUS
    # several classes share one ball, for which no rule was measured
    if norm == "l2" or n_classes > 2:
        return row, "l2", RADIUS
    return min(entry, SPARSE_ENTRY * row), norm, sparse_radius(*shape, budget)
