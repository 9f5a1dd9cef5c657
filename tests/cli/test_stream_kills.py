"""Streams whose process is killed at any moment: nothing lost, nothing repeated."""

import os

import pytest
from tests.cli.streaming import (
    arguments,
    forked,
    head_of,
    killed_after,
    position,
    releases,
)

from tacit._random import as_generator
from tacit.persistence import read
from tacit.privacy import Ledger

HORIZON = 12


def undisturbed(folder, run, horizon=HORIZON):
    path = folder / "expected.jsonl"
    more = ("--releases", path, "--no-ledger")
    given = arguments(folder, *more, state="other", horizon=horizon)
    assert run(*given).code == 0
    return releases(path)


def charges(folder):
    ledger = Ledger.open(f"sqlite:///{folder / 'budget.db'}", dataset="ward")
    assert ledger.verify().ok
    found = [record.label for record in ledger.history() if record.kind == "charge"]
    ledger.close()
    return found


def kill_until_done(folder, given, moments, limit):
    """Start a command again and again, and return how often it was killed."""
    head = None
    for killed, moment in enumerate(moments):
        child = forked(given)
        code = killed_after(child, moment if killed < limit else 60.0)
        if (folder / "r.jsonl").exists():  # charged by now, and never again
            head = head or head_of(folder)
            assert head_of(folder) == head
        if code is not None:
            assert code == 0
            return killed
    raise AssertionError("it did not end")


def test_a_killed_stream_releases_what_an_undisturbed_one_does(tmp_path, run, seed):
    position(tmp_path, 10 * HORIZON)
    expected = undisturbed(tmp_path, run)
    rng = as_generator(seed)
    more = ("--releases", tmp_path / "r.jsonl")
    given = arguments(tmp_path, *more, horizon=HORIZON)
    # the first before a fast machine is through
    moments = [0.01, *rng.uniform(0.02, 0.15, 99)]
    assert kill_until_done(tmp_path, given, moments, limit=5) > 0
    assert releases(tmp_path / "r.jsonl") == expected
    assert len(charges(tmp_path)) == 1


@pytest.mark.slow
def test_many_kills_with_a_model_folder(tmp_path, run, seed):
    position(tmp_path, 1000)
    expected = undisturbed(tmp_path, run, horizon=100)
    rng = as_generator(seed)
    more = ("--releases", tmp_path / "r.jsonl", "--output", tmp_path / "m")
    given = arguments(tmp_path, *more, horizon=100)
    moments = rng.uniform(0.05, 0.3, 400)
    assert kill_until_done(tmp_path, given, moments, limit=40) > 5
    assert releases(tmp_path / "r.jsonl") == expected
    assert read(tmp_path / "m").estimator.coef_.tolist() == expected[-1]["coef"]
    assert len(charges(tmp_path)) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_end_at_any_call_to_the_disk_changes_nothing(
    tmp_path, run, monkeypatch, after
):
    position(tmp_path, 20)
    expected = undisturbed(tmp_path, run)
    assert len(expected) == 2
    given = arguments(
        tmp_path, "--no-ledger", "--releases", tmp_path / "r.jsonl", horizon=HORIZON
    )
    call = 0
    while True:
        call += 1
        for path in (tmp_path / "state").glob("*"):
            path.unlink()
        (tmp_path / "r.jsonl").unlink(missing_ok=True)
        made = []
        with monkeypatch.context() as patch:
            for name in ("fsync", "replace"):
                patch.setattr(os, name, _ending(getattr(os, name), made, call, after))
            code = run(*given).code
        if code == 0:
            break
        assert code == "ended"
        assert run(*given).code == 0
        assert releases(tmp_path / "r.jsonl") == expected, call
    assert call > 10


def _ending(function, made, call, after):
    """Return a function that ends the process before or after one of its calls."""

    def called(*arguments):
        made.append(function)
        if len(made) == call and not after:
            raise SystemExit("ended")
        result = function(*arguments)
        if len(made) == call:
            raise SystemExit("ended")
        return result

    return called
