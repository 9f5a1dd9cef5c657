"""Errors as a user reads them: what they say, on one line."""

from contextlib import contextmanager

import pytest

__all__ = ["raises_one_line"]


@contextmanager
def raises_one_line(kind, match):
    """Expect an error that matches, and give it; its message is one line."""
    with pytest.raises(kind, match=match) as rejection:
        yield rejection
    assert "\n" not in str(rejection.value)
