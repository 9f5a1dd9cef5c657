"""Labelers in folders: killed anywhere, they answer as if nothing had happened."""

import copy
import os
import pickle
import shutil
import signal
import stat
import time
from decimal import Decimal

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tests.ending import ended_at, refused_in_a_fork
from tests.ensemble.labeling import clouds, labeler, shown

from tacit._random import as_generator
from tacit._resumable import folder as _stored
from tacit._resumable.record import OtherParameters
from tacit._state import StateDamaged, dumped, loaded
from tacit.ensemble import DurableLabeler, _durable
from tacit.exceptions import BudgetExceeded
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import Budget, Ledger

FEW = {"n_teachers": 4, "n_queries": 30}


def rows_of(seed, n_questions=12):
    return clouds(seed, n_rows=60, n_questions=n_questions)


def run(folder, seed, ledger=None, batch=3, fit=True, questions=12, **terms):
    """Go on to the end of the questions; return all labels, as plain data."""
    X, y, Q, _ = rows_of(seed, questions)
    model = labeler(**{**FEW, **terms})
    with DurableLabeler(model, folder, ledger=ledger) as durable:
        if fit or not durable.is_fitted:
            durable.fit(X, y)
        while durable.n_queried < len(Q):
            durable.label(Q[durable.n_queried : durable.n_queried + batch])
        return shown(durable.labels)


def undisturbed(seed, questions=12, **terms):
    X, y, Q, _ = rows_of(seed, questions)
    return shown(labeler(**{**FEW, **terms}).fit(X, y).label(Q))


@pytest.mark.parametrize(
    ("after", "mechanism"),
    [(False, "gnmax"), (True, "stable")],
    ids=["before", "after"],
)
def test_an_end_at_any_call_loses_and_repeats_nothing(
    tmp_path, monkeypatch, seed, after, mechanism
):
    terms = {"mechanism": mechanism, "max_refusals": 4, "questions": 4, "n_teachers": 2}
    expected = undisturbed(seed, **terms)
    call, names = 1, set()
    while True:
        folder, ledger = tmp_path / f"{call}", Ledger(Budget(100.0, 1e-3))
        try:
            with ended_at(monkeypatch, call, after, end=KeyboardInterrupt) as made:
                found = run(folder, seed, ledger, **terms)
        except KeyboardInterrupt:
            names.add(made[call - 1])
            found = run(folder, seed, ledger, **terms)
        else:
            break
        assert found == expected, call
        assert len(ledger.report().entries) == 1, call
        call += 1
    assert found == expected
    assert names == {"fsync", "replace", "charge"}


def test_an_answer_that_skips_its_disk_would_be_detected(tmp_path, monkeypatch, seed):
    X, y, Q, _ = rows_of(seed)
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        durable.fit(X, y)
        with monkeypatch.context() as patch:
            patch.setattr(_stored, "placed", lambda *_: None)
            told = durable.label(Q[:3])
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        assert durable.n_queried == 0
        # another query in its position, and the released answer is gone
        assert shown(durable.label(Q[3:6])) != shown(told)


def begun_process(folder, url, seed, terms, said):
    """Return the number of a process that answers question after question."""
    child = os.fork()
    if child:
        return child
    try:
        X, y, Q, _ = rows_of(seed)
        ledger = Ledger.open(url, dataset="ward")
        model = labeler(**FEW, **terms)
        with (
            DurableLabeler(model, folder, ledger=ledger) as durable,
            open(said, "a") as f,
        ):
            durable.fit(X, y)
            while durable.n_queried < len(Q):
                label = durable.answer(Q[durable.n_queried])
                f.write(f"{durable.n_queried} {label!r}\n")
                f.flush()
    finally:
        os._exit(0)


@pytest.mark.parametrize("mechanism", ["gnmax", "stable"])
def test_a_process_that_is_killed_continues_with_one_charge(tmp_path, seed, mechanism):
    url, said = f"sqlite:///{tmp_path / 'budget.db'}", tmp_path / "said"
    Ledger.open(url, dataset="ward", budget=Budget(100.0, 1e-3)).close()
    terms = {"mechanism": mechanism, "max_refusals": 12}
    expected = undisturbed(seed, **terms)
    rng, kills, ended = as_generator(seed), 0, False
    while not ended:
        child = begun_process(tmp_path / "s", url, seed, terms, said)
        # later and later, so that all stages of the work are met
        time.sleep(rng.uniform(0, 0.05 * (1 + kills)))
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        kills += status != 0
        ended = status == 0
    assert kills >= 1
    ledger = Ledger.open(url, dataset="ward")
    assert len(ledger.report().entries) == 1
    model = labeler(**FEW, **terms)
    with DurableLabeler(model, tmp_path / "s", ledger=ledger) as durable:
        assert shown(durable.labels) == expected
        labels = list(durable.labels)
    ledger.close()
    # what was said before a kill is what was said after it
    lines = said.read_text().splitlines()
    assert len(lines) >= len(labels) - kills
    for line in lines:
        position, _, label = line.partition(" ")
        assert repr(labels[int(position) - 1]) == label


def test_a_restart_resets_neither_counts_nor_the_threshold(tmp_path, seed):
    X, y, Q, _ = rows_of(seed)
    terms = {**FEW, "mechanism": "stable", "max_refusals": 3, "epsilon": 0.5}
    plain = labeler(**terms).fit(X, y)
    plain.label(Q)
    assert plain.remaining_.refusals == 0
    states, asked = [], 0
    while True:
        with DurableLabeler(labeler(**terms), tmp_path / "s") as durable:
            if asked == 0:
                durable.fit(X, y)
            if durable.remaining.ended:
                break
            states.append(durable.labeler._private_labeler_state._private_state)
            assert durable.n_queried == asked
            assert durable.answer(Q[asked]) is NO_ANSWER
            asked += 1
    assert asked == plain.n_queried_ == 4
    with DurableLabeler(labeler(**terms), tmp_path / "s") as durable:
        with pytest.raises(ValueError, match="answered all queries that were charged"):
            durable.answer(Q[0])
        assert durable.labeler.remaining_ == plain.remaining_
    # the state that a process begins with is the one that the last one left
    again = labeler(**terms).fit(X, y)
    for position, state in enumerate(states):
        assert state == again._private_labeler_state._private_state
        again.answer(Q[position])


def test_a_threshold_that_is_drawn_anew_would_be_detected(seed):
    X, y, _, _ = rows_of(seed)
    terms = {**FEW, "mechanism": "stable", "max_refusals": 3, "epsilon": 0.5}
    one, other = labeler(**terms), labeler(**{**terms, "random_state": 9})
    for model in (one, other):
        model.fit(X, y)
    before = one._private_labeler_state._private_state
    assert before != other._private_labeler_state._private_state


@pytest.mark.parametrize(
    "terms",
    [
        {"estimator": LinearRegression(), "classes": None, "y_range": (-4, 4)},
        {"mechanism": "confident_gnmax", "max_answers": 12},
        {"neighbors": "add_or_remove_one"},
        {"private": "labels"},
        {"classes": None, "delta": None},
    ],
    ids=["numbers", "confident", "added", "labels", "defaults"],
)
def test_all_kinds_of_labelers_continue_without_their_rows(tmp_path, seed, terms):
    X, y, Q, _ = rows_of(seed)
    terms = {**FEW, **terms}
    for end in range(3, 13, 3):
        with DurableLabeler(labeler(**terms), tmp_path / "s") as durable:
            if end == 3:
                durable.fit(X, y)
            durable.label(Q[end - 3 : end])
            found = shown(durable.labels)
            report = durable.labeler.privacy_
    plain = labeler(**terms).fit(X, y)
    for end in range(3, 13, 3):
        plain.label(Q[end - 3 : end])
    assert found == shown(plain.labels_)
    assert report.assumptions == plain.privacy_.assumptions


def test_strings_and_names_of_columns_come_back(tmp_path, seed):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    X, y, Q, _ = rows_of(seed)
    names, columns = np.array(["no", "yes"]), ["a", "b"]
    model = labeler(**FEW, classes=None)
    with DurableLabeler(model, tmp_path / "s") as durable:
        durable.fit(pandas.DataFrame(X, columns=columns), names[y])
        first = durable.label(pandas.DataFrame(Q, columns=columns))
    again = labeler(**FEW, classes=None)
    with DurableLabeler(again, tmp_path / "s") as durable:
        assert again.classes_.tolist() == ["no", "yes"]
        assert again.classes_.dtype == names.dtype
        assert again.feature_names_in_.tolist() == columns
        assert list(durable.labels) == list(first)
        with pytest.raises(ValueError, match="feature names"):
            durable.label(pandas.DataFrame(Q, columns=["b", "a"]))


def test_long_files_of_answers_are_written_in_pieces(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(_durable, "ANSWERS_PER_FILE", 4)
    assert run(tmp_path / "s", seed, batch=3) == undisturbed(seed)
    assert run(tmp_path / "t", seed, batch=9) == undisturbed(seed)
    assert len(list((tmp_path / "s").glob("answers-*"))) == 3
    (tmp_path / "s" / "answers-1").write_bytes(b"")
    with pytest.raises(StateDamaged, match="answers-1 is damaged"):
        run(tmp_path / "s", seed)
    (tmp_path / "t" / "answers-2").unlink()
    with pytest.raises(StateDamaged, match="answers-2 is damaged"):
        run(tmp_path / "t", seed)


def test_other_rows_are_rejected_and_change_nothing(tmp_path, seed):
    X, y, _, _ = rows_of(seed)
    run(tmp_path / "s", seed)
    before = (tmp_path / "s" / "private-state").read_bytes()
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        durable.fit(X, y)
        for other in ((X[::-1].copy(), y), (X, 1 - y), (X[1:], y[1:])):
            with pytest.raises(ValueError, match="X, y and ids must be those"):
                durable.fit(*other)
    assert (tmp_path / "s" / "private-state").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 2.0}, "epsilon"),
        ({"n_teachers": 5}, "n_teachers"),
        ({"estimator": LogisticRegression()}, "estimator"),
        ({"estimator": GaussianNB(var_smoothing=1e-3)}, "estimator"),
        ({"n_queries": 31}, "n_queries"),
        ({"private": "labels"}, "private"),
        ({"random_state": None}, "random_state"),
    ],
)
def test_other_parameters_are_rejected(tmp_path, seed, change, name):
    run(tmp_path / "s", seed)
    with pytest.raises(OtherParameters, match=f"begun with; {name} must be unchanged"):
        DurableLabeler(labeler(**{**FEW, **change}), tmp_path / "s")
    # what changes no answer may be another
    DurableLabeler(labeler(**FEW, n_jobs=1, verbose=True), tmp_path / "s").close()


def test_the_ledger_is_charged_once_and_stays_the_same(tmp_path, seed):
    X, y, _, _ = rows_of(seed)
    ledger, stranger = Ledger(Budget(100.0, 1e-3)), Ledger(Budget(100.0, 1e-3))
    poor = Ledger(Budget(1.0, 1e-3))
    with pytest.raises(BudgetExceeded):
        run(tmp_path / "s", seed, poor)
    run(tmp_path / "s", seed, ledger, private="rows")
    (entry,) = ledger.report().entries
    assert entry.label.startswith("PrivateLabeler labeler ")
    run(tmp_path / "s", seed, ledger)
    run(tmp_path / "s", seed, None, fit=False)
    with pytest.raises(ValueError, match="ledger must be the one"):
        run(tmp_path / "s", seed, stranger)
    with pytest.raises(TypeError, match="Ledger"):
        DurableLabeler(labeler(**FEW), tmp_path / "s", ledger="budget.db")
    assert len(ledger.report().entries) == 1
    assert stranger.report().entries == poor.report().entries == ()
    with DurableLabeler(labeler(**FEW, private="labels"), tmp_path / "t") as durable:
        durable.fit(X, y)
        label = durable.labeler.privacy_.entries[0].label
        assert label.startswith("PrivateLabeler (labels only) labeler ")


def test_a_charge_for_other_rows_is_not_used(tmp_path, seed, monkeypatch):
    X, y, _, _ = rows_of(seed)
    ledger = Ledger(Budget(100.0, 1e-3))
    folder = tmp_path / "s"

    def end(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tacit.ensemble._labeler.train_on", end)
        with pytest.raises(KeyboardInterrupt):
            run(folder, seed, ledger, delta=None)
    model = labeler(**FEW, delta=None)
    with DurableLabeler(model, folder, ledger=ledger) as durable:
        with pytest.raises(ValueError, match="X and y must have as many rows"):
            durable.fit(X[1:], y[1:])
        durable.fit(X, y)
    assert len(ledger.report().entries) == 1


def test_labels_that_cannot_be_kept_are_rejected_before_the_charge(tmp_path, seed):
    X, y, _, _ = rows_of(seed)
    odd = np.array([Decimal(1), Decimal(2)])
    ledger = Ledger(Budget(100.0, 1e-3))
    model = labeler(**FEW, classes=odd)
    with (
        DurableLabeler(model, tmp_path / "s", ledger=ledger) as durable,
        pytest.raises(ValueError, match="classes must be strings, numbers or booleans"),
    ):
        durable.fit(X, odd[y])
    assert ledger.report().entries == ()


def test_one_holder_at_a_time_and_no_answer_past_it(tmp_path, seed):
    X, y, Q, _ = rows_of(seed)
    model = labeler(**FEW)
    with DurableLabeler(model, tmp_path / "s") as durable:
        with pytest.raises(ValueError, match="belong to another DurableLabeler"):
            DurableLabeler(model, tmp_path / "t")
        durable.fit(X, y)
        with pytest.raises(ValueError, match=r"labeler in .* is open in another"):
            DurableLabeler(labeler(**FEW), tmp_path / "s")
        for way in (lambda: model.label(Q), lambda: model.fit(X, y)):
            with pytest.raises(ValueError, match="used by a DurableLabeler"):
                way()
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="both would continue"):
                way(durable)
        assert refused_in_a_fork(lambda: durable.label(Q))
        durable.label(Q[:2])
    with pytest.raises(ValueError, match="is closed"):
        durable.label(Q)
    with pytest.raises(ValueError, match="copy of a labeler"):
        model.label(Q)
    assert len(model.labels_) == 2


def test_what_is_no_fresh_labeler_is_rejected(tmp_path, seed):
    X, y, _, _ = rows_of(seed)
    with pytest.raises(TypeError, match="labeler must be a PrivateLabeler"):
        DurableLabeler(GaussianNB(), tmp_path / "s")
    with pytest.raises(ValueError, match="must not be fitted"):
        DurableLabeler(labeler(**FEW).fit(X, y), tmp_path / "s")
    with pytest.raises(ValueError, match="teacher_folder"):
        DurableLabeler(labeler(**FEW, teacher_folder=tmp_path / "t"), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_folder_is_for_its_owner_alone_and_damage_is_rejected(tmp_path, seed):
    run(tmp_path / "s", seed)
    for path in [tmp_path / "s", *(tmp_path / "s").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    state = tmp_path / "s" / "private-state"
    content = state.read_bytes()
    state.write_bytes(content[:-40] + b"x" * 40)
    with pytest.raises(StateDamaged, match="begin a labeler in another"):
        run(tmp_path / "s", seed)
    state.write_bytes(content)
    assert run(tmp_path / "s", seed) == undisturbed(seed)
    next((tmp_path / "s").rglob("private-teacher-*")).unlink()
    with pytest.raises(StateDamaged, match=r"teachers in .* are damaged or missing"):
        run(tmp_path / "s", seed, questions=13, fit=False)


PARTS = {
    "version": "1",
    "identity": 3,
    "key": "key",
    "parameters": None,
    "n_steps": 2.0,
    "plan": None,
    "n_features": "2",
    "names": 7,
    "privacy": "{}",
    "n_rows": None,
    "classes": "ab",
    "class_type": "no type",
    "rows": None,
    "digest": None,
    "answers": {},
    "state": ("nothing",),
}


@pytest.mark.parametrize("other", [True, False], ids=["other", "gone"])
@pytest.mark.parametrize("name", PARTS)
def test_a_state_with_other_parts_is_damaged(tmp_path, seed, name, other):
    run(tmp_path / "s", seed, questions=3)
    path = tmp_path / "s" / "private-state"
    state = loaded(path.read_bytes())
    assert state.keys() == {"format", *PARTS}
    del state[name]
    path.write_bytes(dumped({**state, name: PARTS[name]} if other else state))
    model = labeler(**FEW)
    with pytest.raises(StateDamaged, match="begin a labeler in another"):
        DurableLabeler(model, tmp_path / "s")
    assert not hasattr(model, "n_queried_")
    assert not hasattr(model, "privacy_")


def test_a_copied_folder_repeats_answers_and_differs_after_other_queries(
    tmp_path, seed
):
    X, y, Q, _ = rows_of(seed)
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        durable.fit(X, y).label(Q[:4])
    shutil.copytree(tmp_path / "s", tmp_path / "t")
    found = []
    for folder, asked in (("s", Q[4:6]), ("t", Q[5:3:-1])):
        with DurableLabeler(labeler(**FEW), tmp_path / folder) as durable:
            durable.label(asked)
            durable.answer(Q[7])
            found.append(durable.labels.votes % 1)
    assert (found[0][:4] == found[1][:4]).all()
    # the same question after others: its noise is another
    assert (found[0][6] != found[1][6]).any()


def test_a_write_that_fails_takes_the_answers_back(tmp_path, seed, monkeypatch):
    X, y, Q, _ = rows_of(seed)
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        durable.fit(X, y).label(Q[:2])

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(OSError, match="No space"):
                durable.label(Q[2:])
        assert durable.n_queried == len(durable.labels) == 2
        durable.label(Q[2:])
        assert shown(durable.labels) == undisturbed(seed)
