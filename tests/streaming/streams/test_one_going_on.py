"""A stream goes on from one place alone: two would release twice what was paid once."""

import copy
import os
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from tests.streaming.streams.tiny import Tiny

from tacit import _estimators
from tacit._estimators import exclusive_step
from tacit._random import as_generator
from tacit.privacy import Budget, Ledger
from tacit.streaming import DurableStream, OnlineLogisticRegression, _model

WIDTH = 2


def rows(seed=0):
    rng = as_generator(seed)
    return rng.uniform(-0.5, 0.5, (3, WIDTH)), rng.uniform(0, 1, 3)


def test_a_held_model_takes_rows_from_its_stream_alone(tmp_path):
    model = Tiny(random_state=7)
    with DurableStream(model, tmp_path / "s") as stream:
        for step in range(2):
            for way in (model.partial_fit, model.fit):
                with pytest.raises(ValueError, match="belongs to a DurableStream"):
                    way(*rows())
            assert stream.partial_fit(*rows(step)).n_steps == step + 1
        with pytest.raises(ValueError, match="belong to another"):
            DurableStream(clone_with_holder(model), tmp_path / "other")


def clone_with_holder(model):
    other = clone(model)
    other._holder = object()
    return other


def test_a_refused_second_holder_leaves_the_first_one_its_model(tmp_path):
    model = Tiny(random_state=7)
    with DurableStream(model, tmp_path / "s") as stream:
        with pytest.raises(ValueError, match="belong to another"):
            DurableStream(model, tmp_path / "other")
        stream.partial_fit(*rows())


def test_a_model_whose_stream_was_closed_predicts_and_cannot_go_on(tmp_path):
    ledger = Ledger(Budget(5.0, 1e-5))
    model = OnlineLogisticRegression(
        1.0, 1e-6, horizon=5, classes=["a", "b"], x_norm=1.0
    )
    X, labels = rows()[0], ["a", "b", "a"]
    with DurableStream(model, tmp_path / "s", ledger=ledger) as stream:
        stream.partial_fit(X, labels)
        before = model.predict(X), model.coef_.copy()
    assert not [name for name in vars(model) if "private" in name or "holder" in name]
    assert (model.predict(X) == before[0]).all()
    with pytest.raises(ValueError, match="cannot continue"):
        model.partial_fit(X, labels)
    with pytest.raises(ValueError, match="must not be fitted"):
        DurableStream(model, tmp_path / "s")
    assert (model.coef_ == before[1]).all()
    assert model.n_steps_ == 1
    again = clone(model)
    with DurableStream(again, tmp_path / "s", ledger=ledger) as stream:
        stream.partial_fit(X, labels)
    assert len(ledger.report().entries) == 1
    # what was never begun is free again
    unused = Tiny()
    DurableStream(unused, tmp_path / "t").close()
    assert unused.partial_fit(*rows()).n_steps_ == 1


def test_copies_of_a_held_model_are_not_held(tmp_path):
    model = Tiny(random_state=7, horizon=3)
    with DurableStream(model, tmp_path / "s") as stream:
        stream.partial_fit(*rows())
        twin = copy.deepcopy(model)
        with pytest.raises(ValueError, match="cannot continue"):
            twin.partial_fit(*rows())
        assert twin.fit(*rows()).n_steps_ == 3


def race(step, threads=4, calls=20):
    """Have several threads step at once; return the errors they got."""
    errors = []

    def work(seed):
        for call in range(calls):
            try:
                step(100 * seed + call)
            except ValueError as error:
                errors.append(str(error))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=work, args=(s,)) for s in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(before)
    return errors


class Recording(Tiny):
    """Notes every release, with its step."""

    def _publish(self, planned, weights):
        super()._publish(planned, weights)
        self.seen.append(self._n_steps)


def raced(tmp_path, kind, horizon=30):
    model = Recording(horizon=horizon)
    model.seen = []
    stream = DurableStream(model, tmp_path / "s") if kind == "folder" else model
    errors = race(lambda seed: stream.partial_fit(*rows(seed)))
    if kind == "folder":
        stream.close()
    return model, errors


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_threads_release_each_step_once(tmp_path, kind):
    model, errors = raced(tmp_path, kind)
    assert model.seen == list(range(1, len(model.seen) + 1))
    assert len(model.seen) <= 30
    assert len(errors) + len(model.seen) == 80
    assert all("in the middle of a step" in e or "horizon=30" in e for e in errors)


def test_without_the_guard_threads_would_release_a_step_twice(monkeypatch):
    class Open:
        setdefault = staticmethod(lambda _, mine: mine)
        get = staticmethod(lambda _: None)

    monkeypatch.setattr(_estimators, "_under_way", Open)
    both = threading.Barrier(2, timeout=20)

    class Slow(Recording):
        def _checked_step(self, X, y, *, first):
            found = super()._checked_step(X, y, first=first)
            both.wait()
            return found

    model = Slow()
    model.seen = []
    race(lambda seed: model.partial_fit(*rows(seed)), threads=2, calls=1)
    assert model.seen == [1, 1]


def test_a_refused_step_does_not_undo_the_one_under_way():
    # a refusal that puts back what was, after the other has ended, would
    model = OnlineLogisticRegression(1.0, 1e-6, horizon=5, classes=[0, 1], x_norm=1.0)
    X, y = rows()[0], [0, 1, 0]
    model.partial_fit(X, y)
    with exclusive_step(model):
        before = dict(vars(model))
        with pytest.raises(ValueError, match="in the middle of a step"):
            model.partial_fit(X, y, classes=[0, 1])
        with pytest.raises(ValueError, match="in the middle of a step"):
            model.fit(X, y)
        assert vars(model) == before
    model.partial_fit(X, y)
    assert not _estimators._under_way


def test_a_step_asked_for_within_a_step_is_refused():
    model = Tiny().partial_fit(*rows())

    class Asking:
        shape = (3, WIDTH)

        def __array__(self, dtype=None, copy=None):
            model.partial_fit(*rows(1))

    with pytest.raises(ValueError, match="in the middle of a step"):
        model.partial_fit(Asking(), np.zeros(3))
    assert model.partial_fit(*rows(2)).n_steps_ == 2


def test_a_stream_is_not_closed_in_the_middle_of_a_step(tmp_path, monkeypatch):
    with DurableStream(Tiny(), tmp_path / "s") as stream:

        def closing(*_):
            stream.close()

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", closing)
            with pytest.raises(ValueError, match="in the middle of a step"):
                stream.partial_fit(*rows())
        assert stream.partial_fit(*rows()).n_steps == 1


def in_a_fork(function):
    """Return what a function says in a forked process."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, function().encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def rejection(step):
    try:
        step()
    except ValueError as error:
        return str(error)
    return "taken"


def test_a_forked_process_predicts_and_cannot_go_on(tmp_path):
    model = Tiny().partial_fit(*rows())
    words = in_a_fork(lambda: rejection(lambda: model.partial_fit(*rows(1))))
    assert "process that began it" in words
    assert in_a_fork(lambda: str(model.predict(rows()[0]).shape)) == "(3,)"
    assert in_a_fork(lambda: str(model.fit(*rows()).n_steps_)) == "3"
    assert model.partial_fit(*rows(2)).n_steps_ == 2
    with DurableStream(Tiny(), tmp_path / "s") as stream:
        stream.partial_fit(*rows())
        held = in_a_fork(lambda: rejection(lambda: stream.model.partial_fit(*rows(1))))
        assert "belongs to a DurableStream" in held


def test_no_one_reads_a_release_before_it_is_on_the_disk(tmp_path, monkeypatch):
    model = Tiny(random_state=7)
    with DurableStream(model, tmp_path / "s") as stream:
        stream.partial_fit(*rows())
        seen = []

        def looking(_):
            seen.append((model.n_steps_, model.coef_.tolist(), stream.n_steps))
            raise OSError(28, "No space left on device")

        first = (1, model.coef_.tolist(), 1)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", looking)
            with pytest.raises(OSError, match="No space"):
                stream.partial_fit(*rows(1))
        assert seen == [first]
        # other rows may take its place, as it was never seen
        assert stream.partial_fit(*rows(2)).n_steps == 2


def test_what_is_on_the_disk_and_was_not_shown_is_not_taken_again(
    tmp_path, monkeypatch
):
    model = Tiny(random_state=7)
    with DurableStream(model, tmp_path / "s") as stream:
        stream.partial_fit(*rows())
        with monkeypatch.context() as patch:
            patch.setattr(_model.StreamModel, "_show", interrupted)
            with pytest.raises(KeyboardInterrupt):
                stream.partial_fit(*rows(1))
        assert model.n_steps_ == 1
        with pytest.raises(ValueError, match="open the folder again"):
            stream.partial_fit(*rows(2))
    again = Tiny(random_state=7)
    with DurableStream(again, tmp_path / "s"):
        assert again.n_steps_ == 2


def interrupted(*_):
    raise KeyboardInterrupt
