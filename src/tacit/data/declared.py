"""Public bounds on rows that a transformer declares, and how a model gets them.

A model sees an array and not the step that made it. So transformers of the library
note the bound of what they return, for as long as that object exists. No guarantee
rests on the note: whatever the rows are, a model clips them to the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import ref

__all__ = [
    "DeclaredBounds",
    "TableFacts",
    "declare",
    "declared_bounds",
    "declared_like",
    "given_norm",
]

Rows = TypeVar("Rows")


@dataclass(frozen=True)
class DeclaredBounds:
    """Bounds on the rows that a transformer returns.

    Parameters
    ----------
    x_norm
        Bound on the Euclidean norm of a row.
    x_max
        Bound on the absolute value of an entry.
    source
        Class of the transformer.
    """

    x_norm: float
    x_max: float
    source: str


@dataclass(frozen=True)
class TableFacts:
    """Public facts about the rows of a fit: their shape and what is declared of them.

    Parameters
    ----------
    n_rows, n_features
        Shape of the table.
    is_sparse
        Whether it is a sparse matrix.
    declared
        Bounds that a transformer declared, or None.
    """

    n_rows: int
    n_features: int
    is_sparse: bool = False
    declared: DeclaredBounds | None = None

    def x_norm(self, given: float | None, norm: str, name: str = "x_norm") -> float:
        """Return the given bound in this norm, or the declared one, or raise."""
        declared = self.declared
        if given is not None or declared is None:
            return given_norm(
                given,
                name,
                "; or fit on what such a step returns, which a slice, a split and a "
                "ColumnTransformer are not",
            )
        return declared.x_norm if norm == "l2" else declared.x_max

    def origin(self, given: float | None) -> str:
        """Return where the bound on rows comes from, in the words of a report."""
        if given is not None or self.declared is None:
            return "chosen without looking at the data"
        return f"declared by {self.declared.source}, without looking at the data"


# By the identity of what a transformer returned, with a reference that keeps no rows
_noted: dict[int, tuple[ref[Any], DeclaredBounds]] = {}


def declare(rows: Rows, bounds: DeclaredBounds) -> Rows:
    """Note the bounds of these rows, and return them."""
    key = id(rows)
    _noted[key] = ref(rows, lambda _: _noted.pop(key, None)), bounds
    return rows


def declared_bounds(rows: Any) -> DeclaredBounds | None:
    """Return the bounds that were declared of these rows, or None."""
    owner, bounds = _noted.get(id(rows), (None, None))
    return bounds if owner is not None and owner() is rows else None


def declared_like(rows: Rows, source: Any) -> Rows:
    """Note for a part of rows what was declared of them all, if anything was."""
    bounds = declared_bounds(source)
    return rows if bounds is None else declare(rows, bounds)


def given_norm(given: float | None, name: str = "x_norm", otherwise: str = "") -> float:
    """Return the given bound on rows; ValueError where there is none."""
    if given is None:
        what = "the norm of a row" if name == "x_norm" else "the entries of a row"
        raise ValueError(
            f"{name} must be given: a public bound on {what}, chosen without looking "
            f"at the data, such as {name}_ of PublicScaler(ranges){otherwise}."
        )
    return given
