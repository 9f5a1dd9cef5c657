"""Output of ``tacit stream``: rows that are ignored, runs with nothing to do, fits."""

import pytest
from tests.cli.streaming import HEADER, arguments, position, releases


@pytest.fixture
def ward(tmp_path):
    return position(tmp_path)


def test_rows_that_are_ignored_follow_from_the_schema(ward, run):
    text = (ward / "t.toml").read_text()
    assert text.count('unseen = "refuse"') == 1
    some = {"pay": 'missing = "refuse"', "sex": 'unseen = "refuse"'}
    plain = run(*arguments(ward, "--plan")).out
    assert "ignored      rows where ill is not one of no, yes\n" in plain
    assert "rows where sex is not one of f, m\n" in plain
    assert 'rows where one of age, pay is missing (missing = "refuse")' in plain
    told = run(*arguments(ward, "--target", "pay", "--plan", "--json")).data
    assert "pay is missing or not a number" in told["adds_nothing"]
    # the same for rows of which none can be used, and once alone
    (ward / "t.csv").write_text(HEADER + "?\n" * 100)
    first, second = (run(*arguments(ward)).out for _ in range(2))
    lines = [line for line in plain.splitlines() if line.startswith("ignored")]
    assert first.splitlines()[:3] == lines
    assert "ignored  " not in second
    other = text.replace(some["sex"], 'unseen = "other"')
    (ward / "t.toml").write_text(other.replace(some["pay"], "missing = 1", 1))
    assert run("schema", "confirm", ward / "t.toml", "--all").code == 0
    told = run(*arguments(ward, "--plan", "--json")).data["adds_nothing"]
    assert len(told) == 2
    assert told[1] == 'pay is missing (missing = "refuse") or not a number'


def test_a_run_with_nothing_to_do_says_so(ward, run):
    first = run(*arguments(ward)).out
    assert "no step" not in first
    assert "charged  " not in first
    again = run(*arguments(ward)).out
    assert "no step      this run released no model" in again
    assert "charged      at step 1; this run charged nothing" in again
    more = arguments(ward, "--json", state="short", horizon=4)
    assert [run(*more).data["ended_before"] for _ in range(2)] == [False, True]


def test_the_last_fit_of_a_model_that_is_refitted_is_printed(ward, run):
    given = ("--model", "incremental", "--releases", ward / "r.jsonl")
    more = (*given, "--output", ward / "m")
    out = run(*arguments(ward, *more)).out
    last = releases(ward / "r.jsonl")[-1]
    assert (last["step"], last["last_refit"]) == (10, 6)
    assert "fitted       after step 6, to the first 60 rows" in out
    assert run("report", ward / "m").code == 0
    card = (ward / "m" / "card.md").read_text()
    assert "100 rows arrived, and those up to step 6 were used for the fit" in card
