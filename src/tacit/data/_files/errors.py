"""The one error of tables and schemas."""

__all__ = ["TableError"]


class TableError(ValueError):
    """A table or its schema cannot be used; the message says what to do."""
