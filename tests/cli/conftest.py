"""A small confirmed table, and a way to run commands in this process."""

import json
from dataclasses import dataclass

import pytest

from tacit.cli import main


@dataclass(frozen=True)
class Answer:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self):
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.delenv("TACIT_LEDGER", raising=False)
    monkeypatch.delenv("TACIT_DATASET", raising=False)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Answer(end.value.code, said.out, said.err)

    return run


@pytest.fixture
def census(tmp_path, run):
    """A folder with census.csv, a confirmed census.toml and a ledger of epsilon 3."""
    table = tmp_path / "census.csv"
    schema = tmp_path / "census.toml"
    account = ("--ledger", f"sqlite:///{tmp_path / 'budget.db'}", "--dataset", "census")
    steps = [
        ("example", table, "--rows", 3000),
        ("schema", "init", table, "--target", "high_income", "--out", schema),
        ("schema", "confirm", schema, "--all"),
        ("ledger", "init", *account, "--epsilon", 3, "--delta", 1e-6),
    ]
    for step in steps:
        answer = run(*step)
        assert answer.code == 0, answer.err
    return tmp_path
