"""What the scripts of this folder share: a shell to type commands in, and a table."""

import os
import re
import shlex
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from getpass import getuser
from io import StringIO
from pathlib import Path
from socket import gethostname
from tempfile import mkdtemp
from unittest.mock import patch

import pyarrow as pa
from pyarrow.csv import write_csv

from tacit.cli import main
from tacit.datasets import make_census_table
from tacit.tables import draft


@dataclass(frozen=True)
class Shell:
    """A shell to type ``tacit`` commands in, with a folder of its own."""

    folder: Path = field(default_factory=lambda: Path(mkdtemp()))

    def __call__(self, line, exit_code=0):
        """Type a command, show what it says, and check how it ends."""
        print(f"$ tacit {line}")
        said, code = StringIO(), 0
        # in this process, as a new one for each would load everything again
        with (
            chdir(self.folder),
            patch.dict(os.environ, COLUMNS="88"),
            redirect_stdout(said),
            redirect_stderr(said),
        ):
            try:
                main(shlex.split(line))
            except SystemExit as end:
                code = end.code
        print(unnamed(said.getvalue(), getuser(), gethostname()))
        assert code == exit_code, f"exit code {code}"


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
