"""Labels whose process is killed at any moment: nothing lost, nothing asked twice."""

import os
import shutil

import pytest
from tests.cli.labeling import LABELS, arguments, charges, hash_of, position
from tests.cli.streaming import forked, killed_after

from tacit._random import as_generator
from tacit.cli import _labeling


def released(folder):
    """Return what tells all that was released from anything else."""
    return (folder / "labels.csv").read_bytes(), hash_of(folder / "student")


def kill_until_done(given, moments):
    """Start a command again and again; return how often it was killed."""
    for killed, moment in enumerate(moments):
        code = killed_after(forked(given), moment)
        if code is not None:
            assert code == 0
            return killed
    raise AssertionError("it did not end")


@pytest.mark.slow
def test_a_killed_run_releases_what_an_undisturbed_one_does(tmp_path, run, seed):
    # labels alone: what draws reports does not work in a fork
    position(tmp_path)
    alone = ("--no-ledger", "--labels", tmp_path / "alone.csv")
    assert run(*arguments(tmp_path, *alone, out=(), state="other")).code == 0
    # early ones first, so that no machine is too fast to be interrupted
    moments = [*sorted(as_generator(seed).uniform(0.02, 0.6, 8)), 60.0]
    assert kill_until_done(arguments(tmp_path, out=LABELS), moments) > 0
    written = [tmp_path / name for name in ("labels.csv", "alone.csv")]
    assert written[0].read_bytes() == written[1].read_bytes()
    assert len(charges(tmp_path)) == 1


def _ending(function, made, call, after):
    """Return a function that ends the process before or after one of its calls."""

    def called(*arguments, **named):
        made.append(function)
        if len(made) == call and not after:
            raise SystemExit("ended")
        result = function(*arguments, **named)
        if len(made) == call:
            raise SystemExit("ended")
        return result

    return called


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_end_at_any_call_to_the_disk_changes_nothing(
    tmp_path, run, monkeypatch, after
):
    position(tmp_path, n_private=40, n_public=8)
    monkeypatch.setattr(_labeling, "BATCH", 3)
    few = {"teachers": 2}
    given = arguments(tmp_path, **few)
    assert run(*given).code == 0
    expected = released(tmp_path)
    call = 0
    while True:
        call += 1
        for name in ("state", "student"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        for name in ("labels.csv", "budget.db"):
            (tmp_path / name).unlink(missing_ok=True)
        position(tmp_path, n_private=40, n_public=8)
        made = []
        with monkeypatch.context() as patch:
            for name in ("fsync", "replace", "rename"):
                patch.setattr(os, name, _ending(getattr(os, name), made, call, after))
            code = run(*given).code
        if code == 0:
            break
        assert code == "ended"
        answer = run(*given)
        assert answer.code == 0, (call, answer.err)
        assert released(tmp_path) == expected, call
        assert len(charges(tmp_path)) == 1, call
    assert call > 10
