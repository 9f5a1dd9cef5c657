"""Streams in folders: killed anywhere, they go on as if nothing had happened."""

import copy
import os
import pickle
import shutil
import stat

import numpy as np
import pytest
from tests.ending import ended_at, refused_in_a_fork
from tests.streaming.streams.folders import (
    STEPS,
    folder_run,
    plain_run,
    rows_of,
    shown,
    values,
)
from tests.streaming.streams.tiny import Tiny

from tacit._resumable import folder as _stored
from tacit.privacy import Budget, Ledger
from tacit.streaming import DurableStream


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_end_at_any_call_loses_and_repeats_nothing(
    tmp_path, monkeypatch, seed, after
):
    rows = rows_of(seed, steps=3)
    expected = [values(text) for text in plain_run(rows)]
    system = ("open", "fsync", "replace")
    call, names = 1, set()
    while True:
        folder = tmp_path / f"{call}"
        ledger = Ledger(Budget(5.0, 1e-5))
        seen = {}
        try:
            with ended_at(monkeypatch, call, after, names=system) as made:
                folder_run(folder, rows, ledger, found=seen)
        except SystemExit:
            names.add(made[call - 1])
        else:
            break
        for step, found in [*seen.items(), *folder_run(folder, rows, ledger).items()]:
            assert values(found) == expected[step - 1], (call, step)
        assert len(ledger.report().entries) == 1, call
        call += 1
    assert {*system, "charge"} <= names
    assert call > 5 * len(rows)


def test_a_state_that_skips_its_disk_would_be_caught(tmp_path, monkeypatch, seed):
    rows = rows_of(seed)
    expected = [values(text) for text in plain_run(rows)]
    folder_run(tmp_path / "a", rows[:2])
    with monkeypatch.context() as patch:  # a step is shown and never written
        patch.setattr(_stored, "placed", lambda *_: None)
        folder_run(tmp_path / "a", rows[:3])
    found = folder_run(tmp_path / "a", [*rows[:2], rows[3]])
    assert values(found[2]) == expected[1]
    assert values(found[3]) != expected[2]


def test_a_step_is_on_disk_before_the_model_shows_it(tmp_path, monkeypatch, seed):
    model, steps_shown = Tiny(random_state=7), []
    write = _stored.placed

    def watched(path, content):
        steps_shown.append(getattr(model, "_n_steps", 0))
        write(path, content)

    monkeypatch.setattr(_stored, "placed", watched)
    with DurableStream(model, tmp_path / "s") as stream:
        for X, y in rows_of(seed, steps=2):
            stream.partial_fit(X, y)
    # the identity before the charge, then each step while the one before is shown
    assert steps_shown == [0, 0, 1]


def test_noise_comes_from_the_key_that_was_saved_before_the_charge(tmp_path, seed):
    model = Tiny()
    with DurableStream(model, tmp_path / "s") as stream:
        stream.partial_fit(*rows_of(seed)[0])
        assert model._private_stream._private_key == stream._private_key


def test_a_resumed_model_shows_what_the_first_one_did(tmp_path, seed):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    X = pandas.DataFrame(rows_of(seed)[0][0], columns=["age", "income"])
    y = rows_of(seed)[0][1]
    first = Tiny(random_state=1)
    with DurableStream(first, tmp_path / "s") as stream:
        stream.partial_fit(X, y)
    second = Tiny(random_state=1)
    with DurableStream(second, tmp_path / "s") as stream:
        assert shown(second) == shown(first)
        assert second.privacy_ == first.privacy_
        assert second.feature_names_in_.tolist() == ["age", "income"]
        assert second.feature_names_in_.dtype == first.feature_names_in_.dtype
        assert second.n_features_in_ == 2
        stream.partial_fit(X, y)
    assert second.n_steps_ == 2


def test_without_a_seed_a_resumed_stream_keeps_its_key(tmp_path, seed):
    rows = rows_of(seed)
    folder_run(tmp_path / "s", rows[:2], seed=None)
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    one = folder_run(tmp_path / "s", rows, seed=None)
    other = folder_run(tmp_path / "copy", rows, seed=None)
    assert one == other
    fresh = folder_run(tmp_path / "new", rows, seed=None)
    assert values(fresh[STEPS]) != values(one[STEPS])


def test_only_the_owner_may_read_the_folder(tmp_path, seed):
    folder_run(tmp_path / "deep" / "s", rows_of(seed)[:1])
    folder = tmp_path / "deep" / "s"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} == {"lock", "private-state"}
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_existing_folder_is_restricted_to_its_owner(tmp_path, seed):
    folder = tmp_path / "s"
    folder.mkdir()
    folder.chmod(0o777)
    folder_run(folder, rows_of(seed)[:1])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # also where a copy brought the state back, readable by all
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    with DurableStream(Tiny(random_state=0), folder):
        modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert modes == {0o600}


def test_links_in_a_folder_are_left_alone(tmp_path, seed):
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "private-other").symlink_to(outside)
    folder_run(folder, rows_of(seed)[:1])
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_an_open_folder_with_other_files_is_rejected_as_it_is(tmp_path):
    (tmp_path / "letter").write_text("")
    tmp_path.chmod(0o777)
    with pytest.raises(ValueError, match=r"open to other users \(mode 0777\)"):
        DurableStream(Tiny(), tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o777
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]
    tmp_path.chmod(0o700)
    DurableStream(Tiny(), tmp_path).close()


def test_a_folder_of_another_user_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(ValueError, match=r"^folder .* belongs to another user"):
        DurableStream(Tiny(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_whose_permissions_cannot_change_is_rejected(tmp_path, monkeypatch):
    def rejected(*_):
        raise PermissionError

    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "fchmod", rejected)
    with pytest.raises(ValueError, match="permissions cannot be changed"):
        DurableStream(Tiny(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_one_holder_at_a_time(tmp_path, seed):
    with DurableStream(Tiny(), tmp_path / "s") as stream:
        with pytest.raises(ValueError, match="open in another process"):
            DurableStream(Tiny(), tmp_path / "s")
        assert refused_in_a_fork(lambda: stream.partial_fit(*rows_of(seed)[0]))
    with pytest.raises(ValueError, match="is closed"):
        stream.partial_fit(*rows_of(seed)[0])
    DurableStream(Tiny(), tmp_path / "s").close()


def test_a_relative_folder_stays_where_it_was_when_the_process_goes(
    tmp_path, monkeypatch, seed
):
    rows, other = rows_of(seed), tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(tmp_path)
    with DurableStream(Tiny(random_state=7), "s") as stream:
        stream.partial_fit(*rows[0])
        monkeypatch.chdir(other)
        stream.partial_fit(*rows[1])
    assert not list(other.iterdir())
    with DurableStream(Tiny(random_state=7), tmp_path / "s") as stream:
        assert stream.n_steps == 2


def test_a_refused_first_step_binds_a_folder_to_nothing(tmp_path, seed):
    rows = rows_of(seed)
    with DurableStream(Tiny(epsilon=-1.0), tmp_path / "s") as stream:
        with pytest.raises(ValueError, match="epsilon"):
            stream.partial_fit(*rows[0])
        assert stream.identity is None
    assert not DurableStream.exists(tmp_path / "s")
    folder_run(tmp_path / "s", rows)


@pytest.mark.parametrize("folder", ["", None, 3])
def test_what_is_no_path_is_rejected_in_one_sentence(folder):
    with pytest.raises(ValueError, match=r"^folder must be the path of a folder, got"):
        DurableStream(Tiny(), folder)


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("where", ["fsync", "replace", "open"])
def test_a_write_that_fails_takes_the_step_back(
    tmp_path, monkeypatch, seed, step, where
):
    rows = rows_of(seed)
    expected = [values(text) for text in plain_run(rows)]
    ledger = Ledger(Budget(5.0, 1e-5))
    model = Tiny(random_state=7)
    with DurableStream(model, tmp_path / "s", ledger=ledger) as stream:
        for X, y in rows[: step - 1]:
            stream.partial_fit(X, y)
        before = dict(vars(model))
        with monkeypatch.context() as patch:

            def full(*_, **__):
                raise OSError(28, "No space left on device")

            real = _stored.placed

            def placed(path, content):
                # the identity, which comes before the charge, finds room
                if stream.identity is not None:
                    patch.setattr(os, where, full)
                real(path, content)

            patch.setattr(_stored, "placed", placed)
            with pytest.raises(OSError, match="No space"):
                stream.partial_fit(*rows[step - 1])
        assert dict(vars(model)) == before
        assert stream.n_steps == step - 1
        for t in range(step, STEPS + 1):
            stream.partial_fit(*rows[t - 1])
            assert values(shown(model)) == expected[t - 1]
    assert len(ledger.report().entries) == 1
    assert not list((tmp_path / "s").glob("*.partial"))


def test_two_goings_on_of_one_past_have_noise_of_their_own(tmp_path, seed):
    rows = rows_of(seed, steps=3)
    folder_run(tmp_path / "s", rows[:2])
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    X, y = rows[2]
    moved = X.copy()
    moved[0] = -moved[0]
    one, other = Tiny(random_state=7), Tiny(random_state=7)
    with DurableStream(one, tmp_path / "s") as stream:
        stream.partial_fit(X, y)
    with DurableStream(other, tmp_path / "copy") as stream:
        stream.partial_fit(moved, y)
    planned = one.plan(2)
    center, scale = one.target_unit()
    exact = (X - moved).T @ (y - center)
    apart = (one.coef_ - other.coef_) - exact
    # the noise of one run alone is of this size; shared noise would leave round-off
    noise = planned.learner.multiplier * scale
    assert np.abs(apart).max() > 0.01 * noise
    shared = Tiny(random_state=7)
    with DurableStream(shared, tmp_path / "third") as stream:
        for X_t, y_t in rows:
            stream.partial_fit(X_t, y_t)
    assert (shared.coef_ == one.coef_).all()


def test_the_end_of_the_horizon_is_the_end_after_a_restart_too(tmp_path, seed):
    rows = rows_of(seed, steps=2)
    for _ in range(2):
        with DurableStream(Tiny(horizon=2, random_state=7), tmp_path / "s") as stream:
            for X, y in rows[stream.n_steps :]:
                stream.partial_fit(X, y)
            before = (tmp_path / "s" / "private-state").read_bytes()
            with pytest.raises(ValueError, match="horizon=2"):
                stream.partial_fit(*rows[0])
            assert (tmp_path / "s" / "private-state").read_bytes() == before


def test_a_position_is_plain_data_and_refused_before_the_step(tmp_path, seed):
    rows = rows_of(seed)
    with DurableStream(Tiny(random_state=7), tmp_path / "s") as stream:
        with pytest.raises(ValueError, match="position"):
            stream.partial_fit(*rows[0], position={"at": object()})
        assert stream.n_steps == 0
        stream.partial_fit(*rows[0], position=("file", np.int64(3), None, 0.5))
        assert stream.position == ["file", 3, None, 0.5]
    with DurableStream(Tiny(random_state=7), tmp_path / "s") as stream:
        assert stream.position == ["file", 3, None, 0.5]


def test_a_stream_is_neither_copied_nor_pickled(tmp_path, seed):
    with DurableStream(Tiny(random_state=7), tmp_path / "s") as stream:
        stream.partial_fit(*rows_of(seed)[0])
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="both would continue"):
                way(stream)
        copied = copy.deepcopy(stream.model)
        assert (copied.coef_ == stream.model.coef_).all()
        assert "_private_stream" not in vars(copied)


def test_what_is_no_model_on_streams_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"tacit\.streaming"):
        DurableStream(object(), tmp_path / "s")
    assert not (tmp_path / "s").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        DurableStream(Tiny(), tmp_path / "file")
