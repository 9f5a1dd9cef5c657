"""What ``tacit stream`` refuses: in one sentence, charged nothing, changed nothing."""

import os

import pytest
from tests.cli.streaming import arguments, head_of, position, rows


@pytest.fixture
def ward(tmp_path):
    return position(tmp_path)


def changed_source(ward):
    text = (ward / "t.csv").read_text()
    (ward / "t.csv").write_text(text.replace("f", "m"))


def cut_source(ward):
    (ward / "t.csv").write_text((ward / "t.csv").read_text()[:200])


def other_range(ward):
    text = (ward / "t.toml").read_text()
    (ward / "t.toml").write_text(text.replace("[0, 100]", "[0, 90]"))


def damaged_state(ward):
    path = ward / "state" / "private-state"
    path.write_bytes(path.read_bytes()[:-1])


def nothing(ward):
    pass


BEGUN = {
    "another epsilon": (nothing, {"epsilon": 2}, (), "epsilon must be unchanged"),
    "another horizon": (nothing, {"horizon": 20}, (), "horizon must be unchanged"),
    "no seed": (nothing, {}, ("--set", "random_state=null"), "twice"),
    "another person": (nothing, {}, ("--rows-per-person", 2), "; --rows-per-person"),
    "another target": (nothing, {}, ("--target", "pay"), "; --model and --target"),
    "another model": (nothing, {}, ("--model", "incremental"), "; --model and"),
    "no intercept": (nothing, {}, ("--set", "fit_intercept=false"), "; --set fit_int"),
    "a changed file": (changed_source, {}, (), "have changed"),
    "a cut file": (cut_source, {}, (), "shorter"),
    "no file": (lambda w: (w / "t.csv").unlink(), {}, (), "no such file"),
    "another schema": (other_range, {}, (), "schema"),
    "a damaged state": (damaged_state, {}, (), "damaged"),
    "another output": (
        lambda w: (w / "m").mkdir(),
        {},
        ("--output", "m"),
        "contains no model",
    ),
    "another releases": (
        lambda w: (w / "r").write_text('{"step": 3}\n'),
        {},
        ("--releases", "r"),
        "does not end with",
    ),
}


@pytest.mark.parametrize("case", BEGUN)
def test_what_does_not_fit_a_stream_that_was_begun_is_one_sentence(
    ward, run, case, monkeypatch
):
    monkeypatch.chdir(ward)
    change, options, more, words = BEGUN[case]
    assert run(*arguments(ward)).code == 0
    (ward / "t.csv").write_text((ward / "t.csv").read_text() + "".join(rows(30, 1)))
    change(ward)
    before = (ward / "state" / "private-state").read_bytes(), head_of(ward)
    answer = run(*arguments(ward, *more, **options))
    assert answer.code == 2, answer.out
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert ((ward / "state" / "private-state").read_bytes(), head_of(ward)) == before


NEW = {
    "no account": (("--dataset", "elsewhere"), "elsewhere"),
    "no neighbors": (("--neighbors", "add_or_remove_one"), "replace_one"),
    "a bad method": (("--method", "magic"), "method"),
    "a bad model": (("--model", "forest"), "--model"),
    "no method at all": (("--model", "incremental", "--method", "x"), "no --method"),
    "a fixed parameter": (("--set", "horizon=3"), "use --horizon"),
    "no parameter": (("--set", "depth=3"), "no parameter 'depth'"),
    "no rows a step": (("--rows-per-step", 0), "--rows-per-step"),
    "no delta": (("--delta", 0), "delta"),
    "a negative epsilon": (("--epsilon", -1), "epsilon"),
    "a bad poll": (("--poll", 0), "--poll"),
    "no poll": (("--poll", "nan", "--follow"), "--poll"),
    "an endless poll": (("--poll", "inf", "--follow"), "--poll"),
    **{
        f"{seed} as a seed": (("--set", f"random_state={seed}"), "random_state")
        for seed in ("abc", "-1", "1.5", "true", "[1,2]")
    },
    "releases in a folder": (("--releases", "."), "--releases"),
    "releases in the state": (("--releases", "state/r.jsonl"), "--state"),
    "releases as the state": (("--releases", "state"), "--state"),
    "releases as the lock": (("--releases", "state/lock"), "--state"),
    "an output in the state": (("--output", "state/m"), "--state"),
    "releases as the source": (("--releases", "t.csv"), "--releases"),
    "releases as the schema": (("--releases", "t.toml"), "--releases"),
    "releases as the ledger": (("--releases", "budget.db"), "--releases"),
    "releases as a ledger's": (("--releases", "budget.db-journal"), "--releases"),
    "releases by another name": (("--releases", "linked"), "--releases"),
    "releases of others": (("--releases", "notes"), "does not end with"),
    "releases without an end": (("--releases", "note"), "does not end with"),
    "a bad label": (("--label", ""), "--label"),
    "a bad encoding": (("--encoding", "utf-16"), "t.csv"),
    "a bad delimiter": (("--delimiter", "|"), "no column"),
    "a bad target": (("--target", "wealth"), "wealth"),
    "state in a file": (("--state", "t.csv"), "--state"),
    "state in a folder of others": (("--state", "."), "--state"),
    "releases in no folder": (("--releases", "no/r.jsonl"), "--releases"),
    "an output that holds the state": (("--output", "o", "--state", "o/s"), "--out"),
}


@pytest.mark.parametrize("case", NEW)
def test_bad_input_is_one_sentence_and_charges_nothing(ward, run, case, monkeypatch):
    monkeypatch.chdir(ward)
    more, words = NEW[case]
    os.link("t.csv", "linked")
    (ward / "notes").write_text("dear\n")
    (ward / "note").write_text("dear")
    given = arguments(ward, *more)
    if "seed" in case:  # one is given already
        position = given.index("random_state=5")
        given = (*given[: position - 1], *given[position + 1 :])
    head, before = head_of(ward), contents(ward)
    answer = run(*given)
    assert answer.code == 2, (answer.out, answer.err)
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert head_of(ward) == head
    assert contents(ward) == before


def contents(folder):
    """Return all there is, but for what a database writes by itself."""
    return {
        path: path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
        if "budget" not in path.name
    }
