"""Public bounds of rows, and rows clipped to them."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.data.bounds import RowBounds
    from tacit.data.rows import Rows, bounded_rows
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["RowBounds", "Rows", "bounded_rows"]
