"""How the command line answers: exit codes, JSON, and one sentence for each refusal."""

import json
import subprocess
import sys

import click
import pytest

from tacit.cli import main, tacit
from tacit.cli._console import explained
from tacit.exceptions import BudgetExceeded, LedgerDamaged, LedgerUnavailable, PlanError


def failing(error):
    @click.group()
    def group():
        pass

    @group.command()
    @click.option("--json", "as_json", is_flag=True)
    def go(as_json):
        raise error

    return group


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PlanError("No plan."), 2),
        (ValueError("epsilon must be positive."), 2),
        (BudgetExceeded("Too much."), 3),
        (LedgerUnavailable("The disk is full."), 4),
        (LedgerDamaged("Record 3 was changed."), 4),
    ],
)
def test_each_kind_of_refusal_has_its_code_and_its_sentence(error, code, capsys):
    assert explained(failing(error), ["go"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"tacit: {error}\n"
    assert explained(failing(error), ["go", "--json"]) == code
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"error": str(error), "exit_code": code}


def test_wrong_usage_points_to_the_help(capsys):
    assert explained(failing(None), ["go", "--fast"]) == 2
    assert "tacit go --help" in capsys.readouterr().err


def test_an_unexpected_error_does_not_quote_rows(capsys, monkeypatch):
    monkeypatch.delenv("TACIT_DEBUG", raising=False)
    assert explained(failing(KeyError("John Smith, 41")), ["go"]) == 1
    said = capsys.readouterr().err
    assert "KeyError" in said
    assert "John" not in said


def test_debugging_shows_where(monkeypatch):
    monkeypatch.setenv("TACIT_DEBUG", "1")
    with pytest.raises(KeyError):
        explained(failing(KeyError("x")), ["go"])


def test_an_interruption_has_its_own_code(capsys):
    assert explained(failing(KeyboardInterrupt()), ["go"]) == 130
    assert capsys.readouterr().err.endswith("tacit: Interrupted before any charge.\n")


def test_a_missing_file_is_named(capsys):
    error = FileNotFoundError(2, "No such file or directory", "rows.csv")
    assert explained(failing(error), ["go"]) == 2
    assert capsys.readouterr().err == "tacit: No such file or directory: rows.csv.\n"


@pytest.mark.parametrize("name", tacit.list_commands(None))
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert "Usage: tacit" in capsys.readouterr().out


def test_commands_end_in_json_for_programs():
    def leaves(command, path):
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                yield from leaves(command.get_command(context, name), [*path, name])
        else:
            yield path, command

    for path, command in leaves(tacit, ["tacit"]):
        options = {option for p in command.params for option in p.opts}
        assert "--json" in options, " ".join(path)


def test_nothing_to_do_shows_the_help(capsys):
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("Usage: tacit")


def test_a_typo_is_no_command(capsys):
    with pytest.raises(SystemExit) as end:
        main(["fitt"])
    assert end.value.code == 2
    assert "fitt" in capsys.readouterr().err


def test_the_command_line_is_a_module_too():
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "--version"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stdout.startswith("tacit, version")


def test_an_example_is_written_once(tmp_path, capsys):
    path = tmp_path / "census.csv"
    with pytest.raises(SystemExit) as end:
        main(["example", str(path), "--rows", "20", "--json"])
    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 20
    assert len(path.read_text("utf-8").splitlines()) == 21
    with pytest.raises(SystemExit) as end:
        main(["example", str(path)])
    assert end.value.code == 2
    assert "--force" in capsys.readouterr().err
