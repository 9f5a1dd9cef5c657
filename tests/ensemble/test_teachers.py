import copy
import json
import os
import pickle
import signal
import warnings

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.learners import (
    SECRET,
    Drawer,
    Looker,
    Majority,
    Misbehaving,
    Scribbler,
    Seeded,
)

from tacit._random import as_generator
from tacit.ensemble._chunks import chunk_members
from tacit.ensemble._teachers import Teachers, open_teachers, train_teachers
from tacit.ensemble._worker import ClassVoting, NumberVoting

TWO = ClassVoting([0, 1])
N = 6


@pytest.fixture
def rows(seed):
    rng = as_generator(seed)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] > 0).astype(int)


def taught(estimator, rows, voting=TWO, n=N, seeds=None, **options):
    X, y = rows
    chunks = chunk_members(X, y, n, key=bytes(16), neighbors="add_or_remove_one")
    seeds = list(range(n)) if seeds is None else seeds
    return train_teachers(estimator, X, y, chunks, voting, seeds=seeds, **options)


@pytest.mark.parametrize("folder", [False, True])
def test_each_teacher_votes_as_a_model_of_its_rows(rows, folder, tmp_path):
    X, y = rows
    position = tmp_path / "t" if folder else None
    teachers = taught(DecisionTreeClassifier(random_state=3), rows, folder=position)
    votes = teachers.votes(X)
    assert len(teachers) == N
    assert votes.shape == (N, 120)
    assert votes.dtype == np.int16
    chunks = chunk_members(X, y, N, key=bytes(16), neighbors="add_or_remove_one")
    for own, vote in zip(chunks, votes, strict=True):
        assert (vote[own] == y[own]).all()
    assert 0.8 < (votes == y).mean() < 1


def test_one_row_changes_the_votes_of_one_teacher(rows):
    X, y = rows
    full = taught(LogisticRegression(), rows).votes(X)
    for gone in (0, 60, 119):
        keep = np.arange(120) != gone
        part = taught(LogisticRegression(), (X[keep], y[keep])).votes(X)
        assert (part != full).any(axis=1).sum() <= 1
    # the positive control: a learner that saw all rows changes with each of them
    other = taught(LogisticRegression(), (X[::2], y[::2])).votes(X)
    assert (other != full).any(axis=1).sum() > 1


@pytest.mark.parametrize("when", ["fit", "predict"])
@pytest.mark.parametrize("how", ["raise", "exit", "interrupt"])
def test_a_teacher_that_fails_votes_the_default(rows, how, when, capfd):
    X, y = rows
    votes = taught(Misbehaving(how, when), (X, np.ones_like(y))).votes(X)
    assert (votes == 0).all()
    # the positive control: one that behaves says what it saw
    assert (taught(Majority(), (X, np.ones_like(y))).votes(X) == 1).all()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("how", ["nan", "unknown", "short", "wide", "nothing"])
def test_what_is_no_prediction_is_the_default(rows, how):
    X, y = rows
    ones = np.ones_like(y)
    assert (taught(Misbehaving(how, "predict"), (X, ones)).votes(X) == 0).all()
    numbers = taught(Misbehaving(how, "predict"), (X, ones), NumberVoting(0, 3))
    assert (numbers.votes(X) == 1.5).all()


@pytest.mark.parametrize("when", ["fit", "predict"])
@pytest.mark.parametrize("backend", ["sequential", "threading"])
def test_what_a_learner_says_is_kept_from_view(rows, when, backend, capfd, recwarn):
    X, y = rows
    with joblib.parallel_config(backend=backend, n_jobs=2):
        votes = taught(Misbehaving("talk", when), (X, np.ones_like(y))).votes(X)
    assert (votes == 1).all()
    said = capfd.readouterr()
    assert said == ("", "")
    assert not recwarn.list
    # and only that: the rest of the process still speaks
    print("heard")  # noqa: T201
    assert capfd.readouterr().out == "heard\n"
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", stacklevel=1)


def test_an_interrupt_of_the_user_is_not_the_learners(rows):
    class Interrupted(Majority):
        def fit(self, X, y):
            signal.raise_signal(signal.SIGINT)

    # a run that was started in the background ignores interrupts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            taught(Interrupted(), rows)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n", [1, 2, 300])
def test_any_number_of_teachers_votes(rows, n):
    X, y = rows
    votes = taught(DecisionTreeClassifier(), (X, y), n=n).votes(X[:40])
    assert votes.shape == (n, 40)


def test_empty_chunks_vote_the_default():
    X, y = np.zeros((0, 3)), np.zeros(0, dtype=int)
    for estimator in (DecisionTreeClassifier(), LogisticRegression(), Majority()):
        assert (taught(estimator, (X, y)).votes(np.zeros((5, 3))) == 0).all()


def test_one_class_alone_is_a_vote_or_the_default(rows):
    X, y = rows
    ones = np.ones_like(y)
    assert (taught(DecisionTreeClassifier(), (X, ones)).votes(X) == 1).all()
    assert (taught(LogisticRegression(), (X, ones)).votes(X) == 0).all()


def test_numbers_are_voted_on(rows):
    X, _ = rows
    teachers = taught(Ridge(), (X, X[:, 0] * 2), NumberVoting(-1, 1))
    votes = teachers.votes(X)
    assert votes.dtype == np.float64
    assert np.abs(votes - np.clip(X[:, 0] * 2, -1, 1)).mean() < 0.2


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [False, True], [3.5, 7.25], list("abcdefghij")],
    ids=lambda labels: str(labels[0]),
)
def test_labels_of_any_kind_are_voted_on(rows, labels):
    X, _ = rows
    y = np.array(labels)[(np.abs(X[:, 0]) * 1.7).astype(int) % len(labels)]
    teachers = taught(DecisionTreeClassifier(), (X, y), ClassVoting(labels))
    assert (np.array(labels)[teachers.votes(X)] == y).mean() > 0.6


def test_sparse_rows_and_data_frames_are_taken(rows):
    X, y = rows
    table = sparse.csr_array(np.round(X))
    assert taught(DecisionTreeClassifier(), (table, y)).votes(table).shape == (N, 120)
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(120) * 7)
    framed = taught(DecisionTreeClassifier(), (frame, pd.Series(y)))
    assert (framed.votes(frame) == y).mean() > 0.8
    # names of columns that differ are rejected by the learner, which then has no vote
    assert (framed.votes(frame.rename(columns={"a": "z"})) == 0).all()


def test_a_chunk_leaks_nothing_of_other_rows():
    y = np.array(["a", "b", "a", "longer"])
    frame = pd.DataFrame({"kind": pd.Series(list("abcd"), dtype="category")})
    chunks = [np.array([0, 2]), np.array([1, 3])]
    teachers = train_teachers(
        Looker(), frame, y, chunks, ClassVoting(["a", "b", "longer"]), seeds=[0, 1]
    )
    seen = [model.unpacked().seen_ for model in teachers._private_models]
    assert seen == [(2, 4, 2, 1), (2, 24, 2, 1)]


class Codes(Majority):
    """Says how large the codes of categories are, or how many values there are."""

    def fit(self, X, y):
        kinds = X["kind"]
        if hasattr(kinds, "cat"):
            self.label_ = int(kinds.cat.codes.mean() > 0.5)
        else:
            stored = kinds.array.__arrow_array__().chunk(0)
            self.label_ = int("rare" in stored.dictionary.to_pylist())
        return self


def as_listed(values):
    return pd.Categorical(values, list(dict.fromkeys(values)))


def in_arrow(values):
    return pd.arrays.ArrowExtensionArray(pa.array(values).dictionary_encode())


@pytest.mark.parametrize("made", [as_listed, in_arrow])
@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_one_row_changes_one_teacher_also_where_it_lists_categories(made, relation):
    values = ["b", "a", *("aab" * 30)]
    others = {
        "replace_one": ["a" if made is as_listed else "rare", *values[1:]],
        "add_or_remove_one": values[1:],
    }
    if made is in_arrow and relation == "add_or_remove_one":
        values = ["rare", *values[1:]]
    votes = []
    for kinds in (values, others[relation]):
        X, y = pd.DataFrame({"kind": made(kinds)}), np.zeros(len(kinds), dtype=int)
        chunks = chunk_members(X, y, N, key=bytes(16), neighbors=relation)
        options = {"seeds": range(N)}
        teachers = train_teachers(Codes(), X, y, chunks, TWO, **options)
        votes.append(teachers.votes(X[:1])[:, 0])
    assert (votes[0] != votes[1]).sum() <= 1


class Writer(Majority):
    """Writes into its cells where it finds a mark."""

    def fit(self, X, y):
        self.label_ = int(sum(cell[0] for cell in X["shared"]) > 0)
        if any(X["mark"]):
            for cell in X["shared"]:
                cell[0] = 1000.0
        return self


@pytest.mark.parametrize("as_target", [False, True])
def test_a_teacher_cannot_write_into_cells_of_another(as_target):
    cell = np.zeros(1)
    X = pd.DataFrame({"mark": np.arange(60) == 7, "shared": [cell] * 60})
    y = np.zeros(60, dtype=object if as_target else int)
    votes = taught(Writer(), (X, y)).votes(X[:1])
    assert (votes == 0).all()
    assert cell[0] == 0
    # the positive control
    Writer().fit(X, y)
    assert cell[0] == 1000


def test_a_teacher_cannot_write_into_the_queries_of_another(rows):
    X = np.zeros((3, 3))
    assert (taught(Scribbler(), rows).votes(X) == 1).all()
    assert (X == 0).all()
    # the positive control
    model = Scribbler().fit(*rows)
    assert (model.predict(X) == 1).all()
    assert (model.predict(X) == 0).all()


def test_a_teacher_draws_nothing_that_another_left(rows):
    X, y = rows
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first = taught(Drawer(), rows)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    drawn = [model.unpacked().drawn_ for model in first._private_models]
    chunks = chunk_members(X, y, N, key=bytes(16), neighbors="add_or_remove_one")
    # without the rows of the first teacher, all others draw as before
    keep = np.setdiff1d(np.arange(120), chunks[0])
    again = taught(Drawer(), (X[keep], y[keep]))._private_models
    assert again[0].unpacked() is None
    assert [model.unpacked().drawn_ for model in again[1:]] == drawn[1:]


def test_every_part_that_draws_has_a_seed_of_its_own(rows):
    X, _ = rows
    estimator = Seeded(inner=RandomForestClassifier())
    voting = NumberVoting(-1, 2**33)
    seeds = taught(estimator, rows, voting).votes(X[:2])
    assert len(np.unique(seeds)) == 2 * N
    assert (taught(estimator, rows, voting).votes(X[:2]) == seeds).all()
    others = taught(estimator, rows, voting, seeds=list(range(N, 2 * N)))
    assert not np.isin(others.votes(X[:2]), seeds).any()
    assert estimator.random_state is None
    assert estimator.inner.random_state is None


def test_settings_of_scikit_learn_reach_the_teachers(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abc"))

    class Frames(Majority):
        def fit(self, X, y):
            self.label_ = int(hasattr(X, "iloc"))
            return self

        def predict(self, X):
            return np.full(len(X), self.label_ and int(hasattr(X, "iloc")))

    learner = make_pipeline(StandardScaler(), Frames())
    with config_context(transform_output="pandas"):
        assert (taught(learner, (frame, y)).votes(frame) == 1).all()
    assert (taught(learner, (frame, y)).votes(frame) == 0).all()


def test_no_queries_have_no_votes(rows):
    assert taught(Majority(), rows).votes(np.zeros((0, 3))).shape == (N, 0)


@pytest.mark.parametrize("folder", [False, True])
def test_teachers_cannot_be_copied_or_pickled(rows, folder, tmp_path):
    teachers = taught(Majority(), rows, folder=tmp_path / "t" if folder else None)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            duplicate(teachers)


def test_models_are_kept_under_a_private_name_alone(rows):
    teachers = taught(Majority(), rows)
    public = {n: v for n, v in vars(teachers).items() if not n.startswith("_private_")}
    assert set(public) == {"voting", "folder", "n_jobs", "verbose"}


def test_a_bar_counts_teachers(rows, capfd):
    teachers = taught(Misbehaving("talk"), rows, verbose=1)
    told = capfd.readouterr()
    assert "teachers" in told.err
    assert "100%" in told.err
    assert SECRET not in told.out + told.err
    teachers.votes(rows[0])
    assert "votes of teachers" in capfd.readouterr().err


def test_a_folder_is_for_its_owner_alone(rows, tmp_path):
    taught(Majority(), rows, folder=tmp_path / "t")
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o700
    names = sorted(path.name for path in (tmp_path / "t").iterdir())
    assert names == [
        "lock",
        *(f"private-teacher-{j}" for j in range(N)),
        "teachers.json",
    ]
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in (tmp_path / "t").iterdir())


def test_an_empty_folder_becomes_its_owners_alone(rows, tmp_path):
    position = tmp_path / "t"
    position.mkdir()
    position.chmod(0o755)
    taught(Majority(), rows, folder=position)
    assert position.stat().st_mode & 0o777 == 0o700
    # and so does one that holds teachers already
    position.chmod(0o750)
    (position / "private-teacher-0").chmod(0o644)
    taught(Majority(), rows, folder=position)
    assert position.stat().st_mode & 0o777 == 0o700
    assert (position / "private-teacher-0").stat().st_mode & 0o777 == 0o600


def test_an_empty_folder_of_another_owner_is_rejected(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(ValueError, match=r"^teacher_folder .* belongs to another user"):
        taught(Majority(), rows, folder=tmp_path)
    assert not list(tmp_path.iterdir())


class Counted(Majority):
    """Leaves a file for each training."""

    def __init__(self, folder=None):
        self.folder = folder

    def fit(self, X, y):
        open(os.path.join(self.folder, f"{len(os.listdir(self.folder))}"), "x").close()
        return super().fit(X, y)


def test_training_continues_where_it_stopped(rows, tmp_path):
    X, _ = rows
    trainings, position = tmp_path / "trainings", tmp_path / "t"
    trainings.mkdir()
    learner = Counted(str(trainings))
    whole = taught(learner, rows, folder=position).votes(X)
    assert len(list(trainings.iterdir())) == N
    # one file was not written, one is damaged, one is of another teacher
    (position / "private-teacher-1").unlink()
    damaged = position / "private-teacher-2"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    (position / "private-teacher-3").write_bytes(
        (position / "private-teacher-4").read_bytes()
    )
    (position / "private-teacher-5.partial").write_bytes(b"cut")
    again = taught(learner, rows, folder=position)
    assert len(list(trainings.iterdir())) == N + 3
    assert (again.votes(X) == whole).all()
    # other rows of the same seeds are other teachers
    taught(learner, (X, 1 - rows[1]), folder=position)
    assert len(list(trainings.iterdir())) == 2 * N + 3


def test_teachers_are_opened_without_their_rows(rows, tmp_path):
    X, _ = rows
    learner = DecisionTreeClassifier(max_depth=2)
    votes = taught(learner, rows, folder=tmp_path / "t").votes(X)
    seeds = list(range(N))
    teachers = open_teachers(tmp_path / "t", learner, TWO, seeds=seeds)
    assert (teachers.votes(X) == votes).all()
    (tmp_path / "t" / "private-teacher-2").unlink()
    with pytest.raises(ValueError, match="lacks a teacher"):
        teachers.votes(X)
    with pytest.raises(ValueError, match="lacks a teacher"):
        open_teachers(tmp_path / "t", learner, TWO, seeds=seeds)
    with pytest.raises(ValueError, match="differs in"):
        open_teachers(tmp_path / "none", learner, TWO, seeds=seeds)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seeds": list(range(1, N + 1))}, "seeds"),
        ({"n": N + 1}, "n_teachers, seeds"),
        ({"estimator": LogisticRegression()}, "estimator, parameters"),
        ({"estimator": DecisionTreeClassifier(max_depth=3)}, "parameters"),
    ],
    ids=["seeds", "number", "learner", "parameters"],
)
def test_a_folder_of_other_teachers_is_rejected(rows, change, named, tmp_path):
    asked = {"estimator": DecisionTreeClassifier(), "rows": rows, "folder": tmp_path}
    taught(**asked)
    taught(**asked)
    with pytest.raises(ValueError, match=f"differs in {named}\\."):
        taught(**{**asked, **change})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "other"}'])
def test_a_folder_with_another_manifest_is_rejected(rows, content, tmp_path):
    (tmp_path / "teachers.json").write_bytes(content)
    with pytest.raises(ValueError, match="must be new, or have been made"):
        taught(Majority(), rows, folder=tmp_path)


def test_one_process_at_a_time_trains_in_a_folder(rows, tmp_path):
    class Training(Majority):
        def fit(self, X, y):
            try:
                taught(Majority(), (X, y), folder=tmp_path / "t")
            except ValueError as error:
                self.label_ = int("locked by another process" in str(error))
            return self

    votes = taught(Training(), rows, folder=tmp_path / "t").votes(rows[0])
    assert (votes == 1).all()


def test_a_manifest_shows_no_seed(rows, tmp_path):
    seeds = [10**9 + position for position in range(N)]
    taught(Majority(), rows, seeds=seeds, folder=tmp_path)
    found = json.loads((tmp_path / "teachers.json").read_text())
    assert found["n_teachers"] == N
    assert found["estimator"] == "Majority"
    assert not any(str(seed) in repr(found) for seed in seeds)


def test_what_cannot_be_pickled_votes_from_memory_and_not_from_a_folder(rows, tmp_path):
    X, y = rows
    learner, ones = Misbehaving("unpicklable"), np.ones_like(y)
    assert (taught(learner, (X, ones)).votes(X) == 1).all()
    assert (taught(learner, (X, ones), folder=tmp_path).votes(X) == 0).all()


def test_functions_without_a_name_are_kept_in_a_folder(rows, tmp_path):
    X, _ = rows
    learner = make_pipeline(FunctionTransformer(lambda t: t), DecisionTreeClassifier())
    assert taught(learner, rows, folder=tmp_path).votes(X).any()


def test_teachers_say_how_many_they_are():
    assert len(Teachers(TWO, [1, 2, 3], models=[None] * 3)) == 3
