"""Folders of labelers: where they are, what binds them, what needs no teachers."""

import os
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.ensemble.labeling import clouds, labeler, shown

from tacit._resumable.record import estimator_string
from tacit._state import StateDamaged
from tacit.ensemble import DurableLabeler
from tacit.ensemble._teachers import TeacherFolder
from tacit.exceptions import BudgetExceeded
from tacit.privacy import Budget, Ledger

FEW = {"n_teachers": 4, "n_queries": 30}


def rows_of(seed):
    return clouds(seed, n_rows=60, n_questions=12)


def test_a_relative_folder_stays_where_it_was_when_the_process_goes(
    tmp_path, seed, monkeypatch
):
    X, y, Q, _ = rows_of(seed)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(tmp_path)
    with DurableLabeler(labeler(**FEW), "s") as durable:
        durable.fit(X, y).label(Q[:2])
        monkeypatch.chdir(other)
        durable.label(Q[2:5])
        expected = shown(durable.labels)
    assert not list(other.iterdir())
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        assert shown(durable.labels) == expected


@pytest.mark.parametrize("folder", ["", None, 3, b"s", ["s"]])
def test_what_is_no_path_is_rejected_in_one_sentence(seed, folder):
    with pytest.raises(ValueError, match=r"^folder must be the path of a folder, got"):
        DurableLabeler(labeler(**FEW), folder)
    if folder is not None:
        X, y, _, _ = rows_of(seed)
        with pytest.raises(ValueError, match="teacher_folder must be the path"):
            labeler(**FEW, teacher_folder=folder).fit(X, y)


@pytest.mark.parametrize(
    "wrong",
    [{"n_teachers": 0}, {"classes": [0, 2]}, {"epsilon": 99.0}, {"n_queries": 10**30}],
)
def test_a_rejected_fit_binds_a_folder_to_nothing(tmp_path, seed, wrong):
    X, y, Q, _ = rows_of(seed)
    ledger = Ledger(Budget(50.0, 1e-3))
    model = labeler(**{**FEW, **wrong})
    with (
        DurableLabeler(model, tmp_path / "s", ledger=ledger) as durable,
        pytest.raises((ValueError, BudgetExceeded)),
    ):
        durable.fit(X, y)
    assert not DurableLabeler.exists(tmp_path / "s")
    with DurableLabeler(labeler(**FEW), tmp_path / "s", ledger=ledger) as durable:
        durable.fit(X, y).label(Q)
    assert len(ledger.report().entries) == 1


def removed(path):
    path.unlink()


def changed(path):
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["private-teacher-2", "teachers.json"])
@pytest.mark.parametrize("harm", [removed, changed])
def test_answers_are_read_without_teachers_and_none_is_given(
    tmp_path, seed, name, harm
):
    X, y, Q, _ = rows_of(seed)
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        durable.fit(X, y).label(Q[:5])
        expected, left = shown(durable.labels), durable.remaining
    harm(tmp_path / "s" / "teachers" / name)
    state = tmp_path / "s" / "private-state"
    before = state.read_bytes()
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        for ask in (lambda: durable.label(Q[5:]), lambda: durable.answer(Q[5])):
            with pytest.raises(StateDamaged, match="restore a complete copy of the"):
                ask()
        assert shown(durable.labels) == expected
        assert durable.remaining == left
        assert durable.labeler.privacy_.guarantee.epsilon == 40.0
    assert state.read_bytes() == before


def test_teachers_are_not_read_before_a_query(tmp_path, seed, monkeypatch):
    X, y, Q, _ = rows_of(seed)
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        durable.fit(X, y).label(Q[:5])
    read = []
    real = TeacherFolder._whole
    monkeypatch.setattr(
        TeacherFolder, "_whole", lambda *given: read.append(1) or real(*given)
    )
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        assert len(durable.labels) == 5
        assert not read
        durable.label(Q[5:])
    assert read


def test_a_lost_teacher_of_a_running_labeler_raises_the_same_error(tmp_path, seed):
    X, y, Q, _ = rows_of(seed)
    with DurableLabeler(labeler(**FEW), tmp_path / "s") as durable:
        durable.fit(X, y)
        removed(tmp_path / "s" / "teachers" / "private-teacher-1")
        with pytest.raises(StateDamaged, match="restore a complete copy of the"):
            durable.label(Q)
        assert durable.n_queried == 0


def test_how_things_are_printed_changes_nothing(tmp_path, seed):
    X, y, Q, _ = rows_of(seed)

    def model():
        learner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=50))
        return labeler(learner, **FEW)

    with DurableLabeler(model(), tmp_path / "s") as durable:
        durable.fit(X, y).label(Q[:5])
    with (
        sklearn.config_context(print_changed_only=False),
        np.printoptions(legacy="1.25", threshold=3),
        DurableLabeler(model(), tmp_path / "s") as durable,
    ):
        durable.fit(X, y).label(Q[5:])
        assert durable.n_queried == len(Q)


CODE = """
from sklearn.preprocessing import FunctionTransformer
from tacit._resumable.record import estimator_string
learner = FunctionTransformer(kw_args={"skip": {"a", "b", "c", "dd", "ee"}})
print(estimator_string(learner))
"""


def test_sets_are_described_alike_in_all_processes():
    told = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(told) == 1


def test_learners_that_differ_are_described_otherwise():
    long = np.arange(5000.0)
    moved = long.copy()
    moved[2500] = -1.0
    learners = [
        GaussianNB(),
        GaussianNB(priors=long),
        GaussianNB(priors=moved),
        GaussianNB(priors=[1]),
        FunctionTransformer(kw_args={"a": {1, 2}}),
        FunctionTransformer(kw_args={"a": {1, 3}}),
        make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1.0)),
        make_pipeline(StandardScaler(), GaussianNB(var_smoothing=2.0)),
    ]
    assert len(set(map(estimator_string, learners))) == len(learners)
