"""Fixtures shared by all tests."""

import os
import secrets

import pytest
from hypothesis import settings

import tacit

# a busy machine is no reason for a test to fail
settings.register_profile("tacit", deadline=None)
settings.load_profile("tacit")

# scipy reads it on import, which comes later: lets scikit-learn check array API input
os.environ.setdefault("SCIPY_ARRAY_API", "1")

SLOW_TIMEOUT = 3600  # seconds


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests longer than the timeout of all others in pyproject.toml."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT))


@pytest.fixture
def seed() -> int:
    """Return 0, or a fresh seed with TACIT_RANDOM_SEED=1; a failing test shows it."""
    return secrets.randbits(32) if os.environ.get("TACIT_RANDOM_SEED") == "1" else 0


@pytest.fixture(autouse=True)
def integers_fix_noise(request):
    """Let ``random_state=0`` repeat noise in tests, but for those about seeds."""
    if request.node.get_closest_marker("fresh_noise"):
        yield
    else:
        with tacit.reproducible_noise():
            yield
