"""Tables in files, read by a schema of public facts."""

from typing import TYPE_CHECKING, Any

from tacit.data._files.errors import TableError
from tacit.tables._column import Column
from tacit.tables._schema import Schema

if TYPE_CHECKING:
    from tacit.tables._draft import draft
    from tacit.tables._growing import GrowingTable, Taken
    from tacit.tables._read import Block, Table, batches, check, read_rows

__all__ = [
    "Block",
    "Column",
    "GrowingTable",
    "Schema",
    "Table",
    "TableError",
    "Taken",
    "batches",
    "check",
    "draft",
    "read_rows",
]


def __getattr__(name: str) -> Any:
    # these need pyarrow, which takes half a second that a schema alone need not wait
    if name == "draft":
        from tacit.tables._draft import draft  # noqa: PLC0415

        return draft
    if name in ("GrowingTable", "Taken"):
        from tacit.tables import _growing  # noqa: PLC0415

        return getattr(_growing, name)
    if name in __all__:
        from tacit.tables import _read  # noqa: PLC0415

        return getattr(_read, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
