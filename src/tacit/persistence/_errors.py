"""The one error of model folders."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ModelFileError", "rejected_as"]


class ModelFileError(ValueError):
    """A model folder cannot be written or read; the message says why."""


@contextmanager
def rejected_as(what: str) -> Iterator[None]:
    """Turn whatever a constructor says of wrong data into one refusal.

    The data may come from anyone, so any of these can happen to it.
    """
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
    said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    if isinstance(error, KeyError):
        said = f"{said} is missing"
    return (said if len(said) <= 300 else said[:297] + "...") + "."
