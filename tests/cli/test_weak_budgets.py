"""A weak budget is named before anything is charged, by every command that charges."""

import pytest
from tests.cli import labeling, recommending, streaming
from tests.cli.story import fit_arguments, spent

WEAK = "tacit: warning: epsilon 1000 is a weak guarantee"


@pytest.fixture
def commands(census, tmp_path):
    """Commands with an epsilon that their ledgers have no room for."""
    folders = {
        "stream": streaming.position(_new(tmp_path / "stream")),
        "label": labeling.position(_new(tmp_path / "label")),
        "recommend": recommending.position(_new(tmp_path / "recommend")),
    }
    return {
        "fit": fit_arguments(census, epsilon=1000),
        "select": fit_arguments(
            census, "--target", "hours_per_week", "--select", 2, epsilon=1000
        ),
        "stream": streaming.arguments(folders["stream"], epsilon=1000),
        "label": labeling.arguments(folders["label"], epsilon=1000),
        "recommend": recommending.fit(folders["recommend"], epsilon=1000),
    }


def _new(folder):
    folder.mkdir()
    return folder


def test_a_weak_budget_is_named_before_the_charge(commands, run, census):
    for name, arguments in commands.items():
        answer = run(*arguments)
        assert answer.code == 3, (name, answer.err)
        first, rejection = answer.err.splitlines()
        assert first.startswith(WEAK), name
        # so the charge came after the warning
        assert "budget" in rejection
    assert spent(census) == 0


def test_a_usual_budget_is_not_warned_of(run, census):
    answer = run(*fit_arguments(census))
    assert answer.code == 0
    assert "warning" not in answer.err


def test_warnings_leave_one_json_object_on_standard_output(run, census):
    budget = ("--epsilon", 50, "--delta", 0.5)
    schema = ("--schema", census / "census.toml", "--rows", 3000)
    answer = run("plan", *schema, *budget, "--quiet", "--json")
    assert answer.code == 0
    assert answer.data["epsilon"] == 50
    told = answer.err.splitlines()
    assert told[0].startswith("tacit: warning: epsilon 50 is a weak guarantee")
    assert "publishing 1,500 whole rows on average" in told[1]


def test_everything_that_will_be_released_counts(run, census):
    extras = ("--measure", 6, "--json")
    answer = run(*fit_arguments(census, *extras, epsilon=5))
    assert answer.code == 3
    assert "tacit: warning: epsilon 11 is a weak guarantee" in answer.err


def test_the_budget_of_a_ledger_is_warned_of(run, tmp_path):
    account = ("--ledger", f"sqlite:///{tmp_path / 'b.db'}", "--dataset", "a")
    answer = run("ledger", "init", *account, "--epsilon", 20, "--delta", 0.01)
    assert answer.code == 0
    assert answer.err.count("tacit: warning:") == 2


DROWNED = "tacit: warning: 41 columns are too many for "


def test_noise_above_any_signal_is_named_once_by_a_fit(run, census):
    answer = run(*fit_arguments(census, epsilon=0.003))
    assert answer.code == 0
    assert answer.err.count("the noise exceeds any signal") == 1
    assert DROWNED in answer.err
    assert "the noise exceeds any signal" in (census / "model/report.html").read_text()


def test_noise_above_any_signal_is_named_by_a_plan(run, census):
    schema = ("--schema", census / "census.toml", "--quiet", "--json")
    for rows, drowned in ((30, True), (50_000, False)):
        answer = run("plan", *schema, "--rows", rows, "--epsilon", 1, "--delta", 1e-6)
        assert answer.code == 0
        assert (DROWNED + str(rows) in answer.err) == drowned
        notes = [n for n in answer.data["notes"] if "exceeds any signal" in n]
        assert len(notes) == drowned
