"""Files reach the disk before anything relies on them."""

import os

import pyarrow as pa
import pytest

from tacit._resumable.files import made, placed
from tacit.cli._labeling import write_labels
from tacit.cli._streaming import _append
from tacit.persistence._atomic_folder import write_atomically


@pytest.fixture
def calls(monkeypatch):
    """Flushes, by what was flushed, and new names, in their order."""
    found = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def flushed(handle):
        fsync(handle)
        found.append(("flush", os.fstat(handle).st_ino, os.fstat(handle).st_size))

    def named(call):
        def recorded(source, target):
            found.append(("name", os.stat(source).st_ino))
            call(source, target)

        return recorded

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", named(replace))
    monkeypatch.setattr(os, "rename", named(rename))
    return found


def flushes(path):
    """The flush of what now stands at a path, with all of its bytes."""
    return ("flush", path.stat().st_ino, path.stat().st_size)


def test_a_state_is_flushed_before_it_takes_its_name_and_its_folder_after(
    tmp_path, calls
):
    path = tmp_path / "state"
    for content in (b"old", b"much newer"):
        calls.clear()
        placed(path, content)
        file, name, folder = calls
        assert file == flushes(path)
        assert name == ("name", path.stat().st_ino)
        assert folder[:2] == ("flush", tmp_path.stat().st_ino)


def test_the_name_of_a_new_folder_is_flushed(tmp_path, calls):
    made(tmp_path / "a")
    assert [call[1] for call in calls] == [tmp_path.stat().st_ino]


def test_a_released_line_is_flushed(tmp_path, calls):
    path = tmp_path / "releases.jsonl"
    _append(path, {"stream": "s", "step": 1})
    assert calls == [flushes(path)]


def test_a_table_of_labels_is_flushed_before_it_takes_its_name(tmp_path, calls):
    path = tmp_path / "labels.csv"
    write_labels(path, pa.table({"label": [1, 2]}), False)
    assert calls == [flushes(path), ("name", path.stat().st_ino)]


def test_a_saved_model_is_flushed_before_its_folder_takes_its_name(tmp_path, calls):
    folder = tmp_path / "model"
    files = {"a": b"weights", "b": b"privacy"}
    write_atomically(folder, files, overwrite=False, replaceable=lambda _: False)
    first, second, inside, name, outside = calls
    assert [first, second] == [flushes(folder / part) for part in files]
    assert inside[:2] == ("flush", folder.stat().st_ino)
    assert name == ("name", folder.stat().st_ino)
    assert outside[:2] == ("flush", tmp_path.stat().st_ino)
