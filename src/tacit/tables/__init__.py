"""Tables in files, encoded by a schema of public facts."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.data._files import TableError
    from tacit.tables._cells import cell_batches, read_cells
    from tacit.tables._column import Column
    from tacit.tables._draft import draft
    from tacit.tables._growing import GrowingTable
    from tacit.tables._read import batches, check, read_rows
    from tacit.tables._schema import Schema
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Column",
    "GrowingTable",
    "Schema",
    "TableError",
    "batches",
    "cell_batches",
    "check",
    "draft",
    "read_cells",
    "read_rows",
]
