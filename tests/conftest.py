"""Fixtures shared by all tests."""

import os
import secrets

import pytest
from hypothesis import settings

# a busy machine is no reason for a test to fail
settings.register_profile("tacit", deadline=None)
settings.load_profile("tacit")

# scipy reads it on import, which comes later: lets scikit-learn check array API input
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture
def seed() -> int:
    """Return 0, or a fresh seed with TACIT_RANDOM_SEED=1; a failing test shows it."""
    return secrets.randbits(32) if os.environ.get("TACIT_RANDOM_SEED") == "1" else 0
