"""Files of tables, of which each record is read by itself."""

__all__ = ["TableError"]


class TableError(ValueError):
    """A table or its schema cannot be used; the message says what to do."""
