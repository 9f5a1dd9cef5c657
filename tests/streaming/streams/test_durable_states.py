"""States of streams in folders: other parameters, damage and links are refused."""

import numpy as np
import pytest
from tests.refusal import raises_one_line
from tests.streaming.streams.folders import (
    STEPS,
    folder_run,
    plain_run,
    rows_of,
    values,
)
from tests.streaming.streams.tiny import Tiny

from tacit._resumable import record as _record
from tacit._state import StateDamaged, dumped, loaded
from tacit.streaming import DurableStream


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"epsilon": 2.0}, "epsilon"),
        ({"delta": 1e-7}, "delta"),
        ({"horizon": 30}, "horizon"),
        ({"x_norm": 2.0}, "x_norm"),
        ({"y_range": (0.0, 2.0)}, "y_range"),
        ({"fit_intercept": False}, "fit_intercept"),
        ({"neighbors": "add_or_remove_one"}, "neighbors"),
        ({"random_state": None}, "random_state"),
    ],
)
def test_other_parameters_are_refused_and_change_nothing(tmp_path, seed, change, word):
    rows = rows_of(seed)
    folder_run(tmp_path / "s", rows[:2])
    before = (tmp_path / "s" / "private-state").read_bytes()
    model = Tiny(**{"random_state": 7, **change})
    with pytest.raises(ValueError, match=rf"begun with; {word} must be unchanged"):
        DurableStream(model, tmp_path / "s")
    assert not hasattr(model, "coef_")
    assert (tmp_path / "s" / "private-state").read_bytes() == before
    assert values(folder_run(tmp_path / "s", rows)[STEPS]) == values(
        plain_run(rows)[-1]
    )


def test_parameters_may_be_written_in_another_way(tmp_path, seed):
    rows = rows_of(seed)
    folder_run(tmp_path / "s", rows[:2])
    model = Tiny(np.float64(1), y_range=np.array([0, 1]), x_norm=1, random_state=3)
    with DurableStream(model, tmp_path / "s") as stream:
        assert stream.n_steps == 2


def test_a_plan_of_other_code_is_refused(tmp_path, seed, monkeypatch):
    folder_run(tmp_path / "s", rows_of(seed)[:2])
    plan = Tiny._planned
    monkeypatch.setattr(Tiny, "_planned", lambda self, p: plan(self, p + 1))
    with pytest.raises(ValueError, match="has another plan"):
        DurableStream(Tiny(random_state=7), tmp_path / "s")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign"])
def test_a_damaged_state_is_one_sentence_and_no_new_start(tmp_path, seed, damage):
    rows = rows_of(seed)
    folder_run(tmp_path / "s", rows[:2])
    path = tmp_path / "s" / "private-state"
    whole = path.read_bytes()
    other = {
        "cut": whole[:-5],
        "changed": whole[:99] + bytes([whole[99] ^ 1]) + whole[100:],
        "empty": b"",
        "foreign": dumped({"format": "another"}),
    }
    path.write_bytes(other[damage])
    with raises_one_line(StateDamaged, match="charged again"):
        DurableStream(Tiny(random_state=7), tmp_path / "s")
    assert path.read_bytes() == other[damage]
    path.write_bytes(whole)
    folder_run(tmp_path / "s", rows)


def test_a_later_format_is_told_apart_from_damage(tmp_path):
    (tmp_path / "s").mkdir()
    state = {"format": "tacit stream", "version": _record.VERSION + 1}
    (tmp_path / "s" / "private-state").write_bytes(dumped(state))
    with pytest.raises(StateDamaged, match="format 2"):
        DurableStream(Tiny(), tmp_path / "s")


PARTS = {
    "version": "1",
    "identity": 3,
    "key": "key",
    "parameters": None,
    "n_steps": 2.0,
    "plan": None,
    "n_features": "2",
    "names": 7,
    "digest": None,
    "privacy": "{}",
    "position": "no JSON",
    "state": ("nothing",),
}


@pytest.mark.parametrize("other", [True, False], ids=["other", "gone"])
@pytest.mark.parametrize("name", PARTS)
def test_a_state_with_other_parts_is_damaged(tmp_path, seed, name, other):
    folder_run(tmp_path / "s", rows_of(seed)[:2])
    path = tmp_path / "s" / "private-state"
    state = loaded(path.read_bytes())
    assert state.keys() == {"format", *PARTS}
    del state[name]
    content = dumped({**state, name: PARTS[name]} if other else state)
    path.write_bytes(content)
    model = Tiny(random_state=7)
    with pytest.raises(StateDamaged, match="charged again"):
        DurableStream(model, tmp_path / "s")
    assert not hasattr(model, "coef_")
    assert path.read_bytes() == content


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path, seed):
    rows = rows_of(seed)
    folder_run(tmp_path / "s", rows[:1])
    (tmp_path / "mine").write_text("dear")
    (tmp_path / "s" / "private-state.partial").symlink_to(tmp_path / "mine")
    folder_run(tmp_path / "s", rows[:2])
    assert (tmp_path / "mine").read_text() == "dear"
    (tmp_path / "s" / "lock").unlink()
    (tmp_path / "s" / "lock").symlink_to(tmp_path / "new")
    with pytest.raises(OSError, match="lock"):
        folder_run(tmp_path / "s", rows)
    assert not (tmp_path / "new").exists()
