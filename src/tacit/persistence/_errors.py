"""The error of model folders."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ModelFileError", "rejected_as"]


class ModelFileError(ValueError):
    """A model folder cannot be written or read; the message says why."""


@contextmanager
def rejected_as(what: str) -> Iterator[None]:
    """Turn errors of a constructor given untrusted data into a `ModelFileError`."""
    try:
        yield
    except ModelFileError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelFileError(f"{what} cannot be used: {_brief(error)}") from error


def _brief(error: Exception) -> str:
    message = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    if isinstance(error, KeyError):
        message = f"{message} is missing"
    return (message if len(message) <= 300 else message[:297] + "...") + "."
