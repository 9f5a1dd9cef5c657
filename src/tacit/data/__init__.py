"""Public facts about rows, and how rows are read."""

from tacit.data.bounds import RowBounds
from tacit.data.rows import ArrayRows, Rows, bounded_rows

__all__ = ["ArrayRows", "RowBounds", "Rows", "bounded_rows"]
