"""Transformers that declare the bounds of the rows they return."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tacit.data.declared import DeclaredBounds, declare
from tacit.preprocessing._columns import norm_bound

__all__ = ["BoundedOutput"]


class BoundedOutput:
    """Mixin that declares ``x_norm_`` and ``x_max_`` of what ``transform`` returns.

    It comes before scikit-learn's mixin, whose containers are declared as well.
    """

    x_norm_: float
    x_max_: float

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "transform" in vars(cls):
            cls.transform = _declaring(cls.transform)  # type: ignore[attr-defined]

    def _bound_entries(self, n_columns: int, x_max: float) -> None:
        """Keep the bounds of rows of so many entries up to ``x_max``."""
        self.x_norm_, self.x_max_ = norm_bound(n_columns, x_max), float(x_max)


def _declaring(transform: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(transform)
    def declared(self: Any, X: Any) -> Any:
        rows = transform(self, X)
        bounds = DeclaredBounds(self.x_norm_, self.x_max_, type(self).__name__)
        return declare(rows, bounds)

    return declared
