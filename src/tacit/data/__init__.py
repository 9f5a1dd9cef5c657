"""Public bounds of rows, and rows clipped to them."""

from tacit.data.bounds import RowBounds
from tacit.data.rows import Rows, bounded_rows

__all__ = ["RowBounds", "Rows", "bounded_rows"]
