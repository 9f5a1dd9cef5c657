"""Teachers in worker processes: joblib's own, and those of a dask cluster."""

import os
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.learners import SECRET, Majority, Misbehaving

from tacit._random import as_generator
from tacit.ensemble._chunks import chunk_members
from tacit.ensemble._teachers import train_teachers
from tacit.ensemble._worker import ClassVoting

TWO = ClassVoting([0, 1])
N = 6
BACKENDS = ("loky", "threading", "multiprocessing")


@pytest.fixture
def rows(seed):
    rng = as_generator(seed)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] > 0).astype(int)


def taught(estimator, rows, **options):
    X, y = rows
    chunks = chunk_members(X, y, N, key=bytes(16), neighbors="replace_one")
    return train_teachers(
        estimator, X, y, chunks, TWO, **{"seeds": range(N), "n_jobs": 2, **options}
    )


@pytest.mark.slow
@pytest.mark.parametrize("folder", [False, True], ids=["memory", "folder"])
@pytest.mark.parametrize(
    "learner",
    [
        DecisionTreeClassifier(max_features=1),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["tree", "pipeline"],
)
def test_processes_and_threads_train_the_same_teachers(rows, learner, folder, tmp_path):
    X, _ = rows
    alone = taught(learner, rows, n_jobs=1).votes(X)
    for backend in BACKENDS:
        position = tmp_path / backend if folder else None
        with joblib.parallel_config(backend=backend):
            teachers = taught(learner, rows, folder=position)
            assert (teachers.votes(X) == alone).all()
            assert (teachers.votes(X[:2]) == alone[:, :2]).all()


SCRIPT = f"""
import os, joblib, numpy as np
from tests.ensemble.learners import Misbehaving
from tests.ensemble.test_teachers_in_processes import taught
X, ones = np.arange(120.0).reshape(-1, 1), np.ones(120, dtype=int)
for how in ("talk", "shell", "raise", "exit", "interrupt"):
    for when in ("fit", "predict"):
        votes = taught(Misbehaving(how, when), (X, ones)).votes(X)
        assert (votes == (how in ("talk", "shell"))).all()
print("control")
joblib.Parallel(2)([joblib.delayed(os.system)("echo {SECRET} >&2")])
"""


@pytest.mark.slow
def test_workers_say_nothing_of_rows():
    command = [sys.executable, "-W", "always", "-c", SCRIPT]
    # the workers of a new process write to where it does
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "control\n"
    # the positive control: what a worker prints itself is seen
    assert done.stderr == f"{SECRET}\n"


@pytest.mark.slow
def test_functions_without_a_name_reach_the_workers(rows):
    X, _ = rows
    learner = make_pipeline(FunctionTransformer(lambda t: t), DecisionTreeClassifier())
    alone = taught(learner, rows, n_jobs=1).votes(X)
    assert (taught(learner, rows).votes(X) == alone).all()


@pytest.mark.slow
def test_a_model_that_cannot_be_sent_votes_the_default(rows):
    X, y = rows
    votes = taught(Misbehaving("unpicklable"), (X, np.ones_like(y))).votes(X)
    assert (votes == 0).all()


@pytest.mark.slow
def test_rows_that_cannot_be_sent_are_a_teacher_that_failed(rows):
    X, y = rows
    odd = X.astype(object)
    odd[5, 0] = threading.Lock()
    votes = taught(Majority(), (odd, np.ones_like(y))).votes(X)
    assert (votes == 0).all(axis=1).sum() == 1
    assert (votes == 1).all(axis=1).sum() == N - 1


class CrashesAbove(Majority):
    """Ends its process where a row is large, as native code may."""

    def fit(self, X, y):
        if X.max() > 100:
            os._exit(3)
        return super().fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [False, True], ids=["memory", "folder"])
def test_a_worker_that_ends_is_a_teacher_that_failed(rows, folder, tmp_path, recwarn):
    X, y = rows
    large = X.copy()
    large[5] = 1000.0
    position = tmp_path / "t" if folder else None
    teachers = taught(CrashesAbove(), (large, np.ones_like(y)), folder=position)
    votes = teachers.votes(X)
    assert (votes == 0).all(axis=1).sum() == 1
    assert (votes == 1).all(axis=1).sum() == N - 1
    assert not recwarn.list


@pytest.mark.slow
def test_a_dask_cluster_trains_the_same_teachers(rows, tmp_path):
    distributed = pytest.importorskip(
        "distributed", reason="needs the extra tacit[dask]"
    )
    X, _ = rows
    learner = DecisionTreeClassifier(max_features=1)
    alone = taught(learner, rows, n_jobs=1).votes(X)
    began = time.monotonic()
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path / "dask"),
        ) as cluster,
        distributed.Client(cluster, timeout=60),
        joblib.parallel_config(backend="dask", wait_for_workers_timeout=60),
    ):
        for position in (None, tmp_path / "t"):
            teachers = taught(learner, rows, folder=position, n_jobs=-1)
            assert (teachers.votes(X) == alone).all()
    assert time.monotonic() - began < 300
