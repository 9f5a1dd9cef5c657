"""Public facts about rows, and how rows are read."""

from tacit.data.bounds import RowBounds
from tacit.data.features import FeatureBounds
from tacit.data.rows import ArrayRows, InMemoryRows, Rows, bounded_rows, held

__all__ = [
    "ArrayRows",
    "FeatureBounds",
    "InMemoryRows",
    "RowBounds",
    "Rows",
    "bounded_rows",
    "held",
]
