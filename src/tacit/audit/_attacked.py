"""What exactly an audit attacked, so that it cannot pass for one of something else."""

from __future__ import annotations

import sys
from hashlib import sha256
from typing import Any

from tacit import _json

__all__ = ["LEFT_OUT", "AuditDisagrees", "attacked", "digest_of", "solver_name"]

# Parameters that change no guarantee, or that the guarantee states
LEFT_OUT = {
    *("epsilon", "delta", "neighbors"),
    *("random_state", "verbose", "n_jobs", "scratch"),
}


class AuditDisagrees(ValueError):
    """What an audit states does not follow from its own counts."""


def attacked(
    estimator: Any, guarantee: dict[str, Any], solver: str | None
) -> dict[str, Any]:
    """Return class, version, guarantee, parameters and solver, with their digest.

    The estimator is as it was given, without what an audit fills in, and the solver the
    one that was planned for the attacked data.
    """
    kind = type(estimator)
    package = kind.__module__.partition(".")[0]
    version = getattr(sys.modules.get(package), "__version__", "of unknown version")
    parts = {
        "estimator": kind.__name__,
        "version": f"{package} {version}",
        "promise": guarantee,
        "parameters": _json.readable_parameters(estimator, LEFT_OUT),
        "solver": solver,
    }
    return {**parts, "sha256": digest_of(parts)}


def digest_of(parts: dict[str, Any]) -> str:
    """Return the digest of what was attacked, of which it is no part itself."""
    kept = {name: part for name, part in parts.items() if name != "sha256"}
    return sha256(_json.canonical(kept).encode()).hexdigest()


def solver_name(estimator: Any, n_rows: Any, n_features: int) -> str | None:
    """Return the solver that a plan for rows of this shape chooses, if it names one.

    The name ``"auto"`` stands for different solvers at different shapes.
    """
    try:
        planned = estimator.plan(n_rows, n_features)
        plan, solver = getattr(planned, "plan", None), planned.solver
    except Exception:  # an estimator of another library, or one without solvers
        return None
    names = [getattr(solver, "selector", None), getattr(plan, "solver", solver)]
    return ", ".join(type(part).__name__ for part in names if part is not None)
