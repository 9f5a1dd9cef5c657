"""Tables in files, encoded by a schema of public facts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.data._files import TableError
from tacit.tables._column import Column
from tacit.tables._schema import Schema

if TYPE_CHECKING:
    from tacit.tables._draft import draft
    from tacit.tables._growing import GrowingTable
    from tacit.tables._read import batches, check, read_rows

__all__ = [
    "Column",
    "GrowingTable",
    "Schema",
    "TableError",
    "batches",
    "check",
    "draft",
    "read_rows",
]


def __getattr__(name: str) -> Any:
    # these import pyarrow, which a schema does not need
    homes = {"draft": "_draft", "GrowingTable": "_growing"}
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"tacit.tables.{homes.get(name, '_read')}")
    return getattr(home, name)
