"""Databases to keep ledgers in: a file, and a PostgreSQL server of our own."""

import pytest
from tests.privacy.store.server import Server

from tacit.privacy import Budget, Ledger

BUDGET = Budget(1.0, 1e-6)


@pytest.fixture(scope="session")
def server():
    """One server for each worker that asks for it."""
    try:
        started = Server()
    except ModuleNotFoundError:
        pytest.skip("no PostgreSQL server to test with")
    except (OSError, RuntimeError, AssertionError) as error:
        pytest.skip(f"this machine starts no PostgreSQL server: {error}")
    # stopping flushes every table, and no test here cuts the power
    started.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    yield started
    started.close()


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture
def postgres_url(server):
    return server.database()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def ledger(url):
    opened = Ledger.open(url, dataset="patients", budget=BUDGET)
    yield opened
    opened.close()
