"""What the scripts of this folder share: a shell to type commands in, and a table."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from socket import gethostname
from tempfile import mkdtemp

import pyarrow as pa
from pyarrow.csv import write_csv

from tacit.datasets import make_census_table
from tacit.tables import draft


@dataclass(frozen=True)
class Shell:
    """A place to type ``tacit`` commands in, with a folder of its own."""

    folder: Path = field(default_factory=lambda: Path(mkdtemp()))

    def __call__(self, line, exit_code=0):
        """Type a command, show what it says, and check how it ends."""
        print(f"$ tacit {line}")
        done = subprocess.run(
            [sys.executable, "-m", "tacit", *shlex.split(line)],
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "88"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(unnamed(done.stdout, getuser(), gethostname()))
        assert done.returncode == exit_code, f"exit code {done.returncode}"


def unnamed(said, user, host):
    """Show ``me@here`` where a ledger names the user and the machine.

    Pages are published, and who built them is nobody's business. Columns stay as wide.
    """
    user, who = re.escape(user), re.escape(f"{user}@{host}")
    said = re.sub(rf"(?<!\S){who}(?!\S)", lambda m: f"{'me@here':{len(m[0])}}", said)
    return re.sub(
        rf"(owner |me@here +)({user})(?!\S)",
        lambda m: f"{m[1]}{'me':{len(m[2])}}",
        said,
    )


def census_files(folder):
    """Write ``census.csv``, of people who do not exist, and its schema, confirmed."""
    table = folder / "census.csv"
    write_csv(pa.table(make_census_table(10_000, 0)), table)
    draft(table, "high_income").confirm(by="us").save(folder / "census.toml")
