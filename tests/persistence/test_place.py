"""A folder appears as a whole, or not at all."""

import os
import stat

import pytest
from tests.persistence.subjects import fitted

from tacit.linear_model import LogisticRegression
from tacit.persistence import ModelFileError, digest, load_model, save_model
from tacit.persistence import _atomic_folder as position

OLD = fitted(LogisticRegression(1.0, x_norm=1.0), [0, 1])
NEW = fitted(LogisticRegression(2.0, x_norm=1.0), [0, 1])


@pytest.fixture
def folder(tmp_path):
    return save_model(OLD, tmp_path / "model")


def names(folder):
    return [path.name for path in folder.parent.iterdir()]


@pytest.fixture(params=["exchange", "renames"])
def way(request, monkeypatch):
    """With the system's exchange of two names where it has one, and without."""
    if request.param == "renames":
        monkeypatch.setattr(position, "_exchanged", lambda first, second: False)


def test_missing_parents_are_made(tmp_path):
    assert load_model(save_model(OLD, tmp_path / "a" / "b")).epsilon == 1.0


def test_a_folder_in_the_way_is_refused(folder):
    before = digest(folder)
    with pytest.raises(ModelFileError, match="overwrite=True"):
        save_model(NEW, folder)
    assert digest(folder) == before
    assert names(folder) == ["model"]


@pytest.mark.usefixtures("way")
def test_overwriting_replaces_the_whole_folder(folder):
    (folder / "report.html").write_text("of the old model")
    save_model(NEW, folder, overwrite=True)
    assert load_model(folder).epsilon == 2.0
    assert not (folder / "report.html").exists()
    assert names(folder) == ["model"]


def test_overwriting_where_nothing_is_just_writes(tmp_path):
    assert load_model(save_model(OLD, tmp_path / "m", overwrite=True)).epsilon == 1.0


def test_what_is_no_model_folder_is_never_replaced(tmp_path, folder):
    empty, letters = tmp_path / "empty", tmp_path / "letters"
    empty.mkdir()
    letters.mkdir()
    (letters / "model.json").write_text("{}")
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(folder)
    file.write_text("mine")
    for target in (empty, letters, link, file, tmp_path):
        with pytest.raises(ModelFileError, match="not replaced"):
            save_model(NEW, target, overwrite=True)
    assert (letters / "model.json").read_text() == "{}"
    assert file.read_text() == "mine"
    assert load_model(link).epsilon == 1.0


class Stop(KeyboardInterrupt):
    """A Ctrl-C at a place of our choice."""


@pytest.mark.parametrize("call", ["fsync", "rename"])
@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("overwrite", [True, False], ids=["over", "new"])
def test_an_interrupt_leaves_the_old_or_the_new_model(
    call, at, overwrite, tmp_path, monkeypatch
):
    folder = tmp_path / "model"
    if overwrite:
        save_model(OLD, folder)
    monkeypatch.setattr(position, "_exchanged", lambda first, second: False)
    real, count = getattr(os, call), iter(range(100))

    def interrupted(*arguments):
        if next(count) == at:
            raise Stop
        return real(*arguments)

    monkeypatch.setattr(os, call, interrupted)
    try:
        save_model(NEW, folder, overwrite=overwrite)
        stopped = False
    except Stop:
        stopped = True
    monkeypatch.undo()
    left = [load_model(path).epsilon for path in tmp_path.iterdir()]
    if not stopped:
        assert left == [2.0]
    elif overwrite:
        assert left in ([1.0], [2.0])
    else:
        assert left in ([], [2.0])


def test_a_full_disk_leaves_the_old_model(folder, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_model(NEW, folder, overwrite=True)
    assert load_model(folder).epsilon == 1.0
    assert names(folder) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_modes_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        folder = save_model(OLD, tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o640}
