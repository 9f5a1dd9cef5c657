"""Streams in folders: killed anywhere, they go on as if nothing had happened."""

import copy
import os
import pickle
import shutil
import stat
from contextlib import contextmanager

import numpy as np
import pytest
from tests.streams.tiny import Tiny

from tacit._random import as_generator
from tacit._state import StateDamaged
from tacit.exceptions import BudgetExceeded
from tacit.privacy import Budget, Ledger
from tacit.streams import DurableStream, _durable

STEPS = 4


def rows_of(seed, steps=STEPS, rows=3, columns=2):
    rng = as_generator(seed)
    return [
        (rng.uniform(-0.5, 0.5, (rows, columns)), rng.uniform(0, 1, rows))
        for _ in range(steps)
    ]


def shown(model):
    """Everything that a fitted model shows, as text that is equal for equal bits."""
    public = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and name != "random_state"
    }
    parts = {
        name: (value.dtype.str, value.tolist())
        if isinstance(value, np.ndarray)
        else value
        for name, value in public.items()
    }
    return repr((sorted(parts.items(), key=lambda part: part[0]), model.n_steps_))


def plain_run(rows, **parameters):
    """Return what is shown after each step of a run that nothing disturbs."""
    model = Tiny(random_state=7, **parameters)
    return [shown(model.partial_fit(X, y)) for X, y in rows]


def values(text):
    """Leave the label of the charge out, which carries an identity."""
    model_part, _, _ = text.partition("('privacy_'")
    return model_part


def folder_run(folder, rows, ledger=None, seed=7, found=None):
    """Go on to the end of the rows, and return what was shown by step."""
    model = Tiny(random_state=seed)
    found = {} if found is None else found
    with DurableStream(model, folder, ledger=ledger) as stream:
        if stream.n_steps:
            assert stream.position == {"taken": stream.n_steps}
            found[stream.n_steps] = shown(model)
        for t in range(stream.n_steps, len(rows)):
            stream.partial_fit(*rows[t], position={"taken": t + 1})
            assert stream.n_steps == model.n_steps_ == t + 1
            found[t + 1] = shown(model)
    return found


@contextmanager
def ended_at(monkeypatch, call, after):
    """End the process at a call of the system or of the ledger, before it or after."""
    made = []

    def ending(function):
        def called(*arguments, **options):
            made.append(function.__name__)
            if len(made) == call and not after:
                raise SystemExit
            result = function(*arguments, **options)
            if len(made) == call and after:
                if function.__name__ == "open":  # as the system does it
                    os.close(result)
                raise SystemExit
            return result

        return called

    with monkeypatch.context() as patch:
        for owner, name in (
            (os, "open"),
            (os, "fsync"),
            (os, "replace"),
            (Ledger, "charge"),
        ):
            patch.setattr(owner, name, ending(getattr(owner, name)))
        yield made


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_end_at_any_call_loses_and_repeats_nothing(
    tmp_path, monkeypatch, seed, after
):
    rows = rows_of(seed, steps=3)
    expected = [values(text) for text in plain_run(rows)]
    call, names = 1, set()
    while True:
        folder = tmp_path / f"{call}"
        ledger = Ledger(Budget(5.0, 1e-5))
        seen = {}
        try:
            with ended_at(monkeypatch, call, after) as made:
                folder_run(folder, rows, ledger, found=seen)
        except SystemExit:
            names.add(made[call - 1])
        else:
            break
        for step, found in [*seen.items(), *folder_run(folder, rows, ledger).items()]:
            assert values(found) == expected[step - 1], (call, step)
        assert len(ledger.report().entries) == 1, call
        call += 1
    assert {"open", "fsync", "replace", "charge"} <= names
    assert call > 5 * len(rows)


def test_a_state_that_skips_its_disk_would_be_caught(tmp_path, monkeypatch, seed):
    rows = rows_of(seed)
    expected = [values(text) for text in plain_run(rows)]
    folder_run(tmp_path / "a", rows[:2])
    with monkeypatch.context() as patch:  # a step is shown and never written
        patch.setattr(_durable, "placed", lambda *_: None)
        folder_run(tmp_path / "a", rows[:3])
    found = folder_run(tmp_path / "a", [*rows[:2], rows[3]])
    assert values(found[2]) == expected[1]
    assert values(found[3]) != expected[2]


def test_a_resumed_model_shows_what_the_first_one_did(tmp_path, seed):
    pandas = pytest.importorskip("pandas")
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


def test_one_holder_at_a_time(tmp_path, seed):
    with DurableStream(Tiny(), tmp_path / "s") as stream:
        with pytest.raises(ValueError, match="held by another process"):
            DurableStream(Tiny(), tmp_path / "s")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                stream.partial_fit(*rows_of(seed)[0])
            except ValueError as error:
                code = 0 if "belongs to the process" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(ValueError, match="is closed"):
        stream.partial_fit(*rows_of(seed)[0])
    DurableStream(Tiny(), tmp_path / "s").close()


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
    with pytest.raises(ValueError, match=rf"begun with; {word} must be as then"):
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
    with pytest.raises(ValueError, match="planned otherwise"):
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
        "foreign": _durable.dumped({"format": "another"}),
    }
    path.write_bytes(other[damage])
    with pytest.raises(StateDamaged, match="charged anew") as error:
        DurableStream(Tiny(random_state=7), tmp_path / "s")
    assert "\n" not in str(error.value)
    assert path.read_bytes() == other[damage]
    path.write_bytes(whole)
    folder_run(tmp_path / "s", rows)


def test_a_later_format_is_told_apart_from_damage(tmp_path):
    (tmp_path / "s").mkdir()
    state = {"format": _durable.FORMAT, "version": 2}
    (tmp_path / "s" / "private-state").write_bytes(_durable.dumped(state))
    with pytest.raises(StateDamaged, match="format 2"):
        DurableStream(Tiny(), tmp_path / "s")


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

            real = _durable.placed

            def placed(path, content):
                # the identity, which comes before the charge, finds room
                if stream.identity is not None:
                    patch.setattr(os, where, full)
                real(path, content)

            patch.setattr(_durable, "placed", placed)
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


def test_the_ledger_of_a_resumed_stream_is_that_of_the_charge(tmp_path, seed):
    rows = rows_of(seed)
    ledger, stranger = Ledger(Budget(5.0, 1e-5)), Ledger(Budget(5.0, 1e-5))
    folder_run(tmp_path / "s", rows[:2], ledger)
    with pytest.raises(ValueError, match="ledger must be the one"):
        folder_run(tmp_path / "s", rows, stranger)
    with pytest.raises(TypeError, match="Ledger"):
        DurableStream(Tiny(random_state=7), tmp_path / "s", ledger="budget.db")
    folder_run(tmp_path / "s", rows[:3], None)
    folder_run(tmp_path / "s", rows, ledger)
    assert len(ledger.report().entries) == 1
    assert stranger.report().entries == ()


def test_a_stored_ledger_is_charged_once_through_all_restarts(tmp_path, seed):
    rows = rows_of(seed)
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    ledger = Ledger.open(url, dataset="ward", budget=Budget(5.0, 1e-5))
    folder_run(tmp_path / "s", rows[:1], ledger)
    head = ledger.head
    for end in range(2, STEPS + 1):
        again = Ledger.open(url, dataset="ward")
        folder_run(tmp_path / "s", rows[:end], again)
        assert again.head == head
        again.close()
    other = Ledger.open(url, dataset="other", budget=Budget(5.0, 1e-5))
    with pytest.raises(ValueError, match="ledger must be the one"):
        folder_run(tmp_path / "s", rows, other)
    ledger.void(head[0], "made by mistake")
    with pytest.raises(ValueError, match="the charge must stand"):
        folder_run(tmp_path / "s", rows, ledger)
    other.close()
    ledger.close()


def test_a_voided_charge_without_a_step_is_made_again(tmp_path, seed, monkeypatch):
    rows = rows_of(seed)
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    ledger = Ledger.open(url, dataset="ward", budget=Budget(5.0, 1e-5))

    def end(self, planned, entry, ledger, key):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Tiny, "_started", end)
        with pytest.raises(SystemExit):
            folder_run(tmp_path / "s", rows[:1], ledger)
    assert len(ledger.report().entries) == 1
    ledger.void(ledger.head[0], "killed before its first step")
    folder_run(tmp_path / "s", rows[:1], ledger)
    assert [record.kind for record in ledger.history()][-3:] == [
        "charge",
        "void",
        "charge",
    ]
    ledger.close()


def test_a_charge_for_other_columns_is_not_used(tmp_path, seed, monkeypatch):
    ledger = Ledger(Budget(5.0, 1e-5))
    plan = Tiny._planned

    def wider(self, p):  # a plan that depends on the columns
        planned = plan(Tiny(self.epsilon / p, horizon=self.horizon), p)
        return planned

    monkeypatch.setattr(Tiny, "_planned", wider)
    with monkeypatch.context() as patch:
        patch.setattr(Tiny, "_started", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            folder_run(tmp_path / "s", rows_of(seed), ledger)
    with pytest.raises(ValueError, match="as many columns"):
        folder_run(tmp_path / "s", rows_of(seed, columns=3), ledger)
    folder_run(tmp_path / "s", rows_of(seed), ledger)
    assert len(ledger.report().entries) == 1


def test_a_refused_charge_leaves_nothing_that_harms(tmp_path, seed):
    rows = rows_of(seed)
    poor = Ledger(Budget(0.5, 1e-5))
    with pytest.raises(BudgetExceeded):
        folder_run(tmp_path / "s", rows, poor)
    rich = Ledger(Budget(5.0, 1e-5))
    folder_run(tmp_path / "s", rows, rich)
    assert len(rich.report().entries) == 1
    assert poor.report().entries == ()


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


def test_a_step_outside_of_the_stream_is_noticed(tmp_path, seed):
    rows = rows_of(seed)
    model = Tiny(random_state=7)
    with DurableStream(model, tmp_path / "s") as stream:
        stream.partial_fit(*rows[0])
        model.partial_fit(*rows[1])
        with pytest.raises(ValueError, match="not on the disk"):
            stream.partial_fit(*rows[2])
    with pytest.raises(ValueError, match="must not be fitted"):
        DurableStream(model, tmp_path / "s")


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
            with pytest.raises(TypeError, match="both would go on"):
                way(stream)
        copied = copy.deepcopy(stream.model)
        assert (copied.coef_ == stream.model.coef_).all()
        assert "_private_stream" not in vars(copied)


def test_what_is_no_model_on_streams_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"tacit\.online"):
        DurableStream(object(), tmp_path / "s")
    assert not (tmp_path / "s").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        DurableStream(Tiny(), tmp_path / "file")
