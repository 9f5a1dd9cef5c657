"""Charging: the same decisions as in memory, from threads, forks and pickles."""

import copy
import gc
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.privacy.strategies import EVENTS

from tacit.exceptions import BudgetExceeded, LedgerDamaged
from tacit.linear_model import LogisticRegression
from tacit.mechanisms import Gaussian
from tacit.privacy import Budget, Composed, GaussianNoise, Ledger, PureDP, Repeated
from tacit.privacy._store._account import Account
from tacit.privacy._store._database import _databases
from tacit.privacy.events import L2LaplaceNoise

BUDGET = Budget(1.0, 1e-6)

# charges, and releases of the n-th thing that counts, by void or by cancelling
STEPS = st.lists(st.one_of(EVENTS, st.integers(0, 3)), max_size=6)


def admitted(ledger, event):
    try:
        ledger.charge(event, "query")
    except BudgetExceeded:
        return False
    return True


@given(st.lists(EVENTS, max_size=6))
@settings(max_examples=15)
def test_memory_and_database_admit_and_refuse_the_same(tmp_path_factory, events):
    path = tmp_path_factory.mktemp("same") / "budget.db"
    stored = Ledger.open(f"sqlite:///{path}", dataset="x", budget=BUDGET)
    memory = Ledger(BUDGET)
    for event in events:
        assert stored.admits(event) == memory.admits(event)
        assert admitted(stored, event) == admitted(memory, event)
        assert stored.spent() == memory.spent()
    assert stored.report() == memory.report()
    assert stored.verify().ok
    stored.close()


@example(steps=[PureDP(0.4), 0])
@given(STEPS)
@settings(max_examples=15)
def test_what_was_given_back_counts_as_if_it_had_never_been(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("back") / "budget.db"
    stored = Ledger.open(f"sqlite:///{path}", dataset="x", budget=BUDGET)
    counting = []
    for step in steps:
        if not isinstance(step, int):
            try:
                if len(counting) % 2:
                    seq, free = stored.reserve(step, "query").seq, stored.cancel
                else:
                    stored.charge(step, "query")
                    seq, free = stored.head[0], stored.void
            except BudgetExceeded:
                continue
            counting.append((step, seq, free))
        elif step < len(counting):
            _, seq, free = counting.pop(step)
            free(seq, "never ran")
    memory = Ledger(BUDGET)
    for event, *_ in counting:
        # what stands was admitted beside more than this
        memory.charge(event, "query")
    assert stored.spent() == memory.spent()
    assert stored.verify().ok
    # a reader that comes late adds up the same
    assert Ledger.open(f"sqlite:///{path}", dataset="x").spent() == stored.spent()
    stored.close()


def test_a_charge_keeps_all_that_was_said(ledger):
    guarantee = Budget(0.5, 1e-7)
    entry = ledger.charge(PureDP(0.25), "mean ä", guarantee=guarantee, seeded=True)
    assert (entry.label, entry.event) == ("mean ä", PureDP(0.25))
    assert (entry.epsilon, entry.seeded) == (0.5, True)
    record = ledger.history()[1]
    assert record.promise == {
        "epsilon": 0.5,
        "delta": 1e-7,
        "neighbors": "replace_one",
    }
    assert record.event == {"type": "PureDP", "epsilon": 0.25}
    assert record.seeded
    assert record.epsilon == 0.5
    assert record.hash == ledger.head[1]
    assert record.when.endswith("+00:00")
    assert ledger.report().entries == (entry,)


def test_a_promise_must_be_true_and_of_the_same_relation(ledger):
    with pytest.raises(ValueError, match="smaller than what the event spends"):
        ledger.charge(GaussianNoise(1.0), "query", guarantee=Budget(0.1, 1e-7))
    other = Budget(1.0, 1e-6, "add_or_remove_one")
    with pytest.raises(ValueError, match="neighbors='add_or_remove_one'"):
        ledger.charge(GaussianNoise(100.0), "query", guarantee=other)
    assert ledger.head[0] == 0


@pytest.mark.parametrize(
    ("given_event", "kept"),
    [
        (Gaussian(100.0, 2.0), GaussianNoise(100.0)),
        (GaussianNoise(np.float64(100)), GaussianNoise(100.0)),
        (GaussianNoise(np.float32(64)), GaussianNoise(64.0)),
        (Repeated(GaussianNoise(100.0), np.int64(3)),) * 2,
        (Composed((GaussianNoise(100.0), PureDP(0.1))),) * 2,
    ],
)
def test_mechanisms_and_numpy_numbers_are_kept_as_plain_events(
    sqlite_url, given_event, kept
):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    assert ledger.charge(given_event, "query").event == kept
    again = Ledger.open(sqlite_url, dataset="x")
    assert again.report().entries[0].event == kept


def test_an_event_that_nobody_could_read_back_is_refused(sqlite_url):
    @dataclass(frozen=True)
    class Mine:
        epsilon: float

        def curve(self, neighbors):
            return PureDP(self.epsilon).curve(neighbors)

    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    with pytest.raises(ValueError, match="got Mine; bound it by PureDP or ApproxDP"):
        ledger.charge(Mine(0.1), "query")
    assert ledger.head[0] == 0


class Steps(Repeated):
    """A subclass, as people write them."""


class Dearer(PureDP):
    def curve(self, neighbors):
        return PureDP(1000 * self.epsilon).curve(neighbors)


Dearer.__name__ = "PureDP"


@dataclass(frozen=True)
class EachRow:
    event: PureDP
    count: int

    def curve(self, neighbors):
        return self.event.curve(neighbors) * self.count


@pytest.mark.parametrize(
    "event",
    [
        Steps(PureDP(0.1), 10**6),
        EachRow(PureDP(0.1), 10**6),
        Dearer(0.01),
        Repeated(Dearer(0.01), 2),
        Composed((PureDP(0.1), Steps(PureDP(0.1), 5))),
    ],
    ids=["subclass", "wrapper", "same name", "inside", "in a list"],
)
def test_an_event_is_never_charged_as_another(sqlite_url, event):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    with pytest.raises(ValueError, match=r"event must be one of tacit\.privacy's"):
        ledger.charge(event, "query")
    assert ledger.head[0] == 0


@pytest.mark.parametrize("size", [1, 5])
def test_an_event_that_cannot_be_counted_is_one_sentence(sqlite_url, size):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    with pytest.raises(ValueError, match="numbers that can be counted with"):
        ledger.charge(L2LaplaceNoise(1e-100, size), "query")


def test_an_interrupt_while_reading_leaves_no_half_account(ledger, monkeypatch):
    other = Ledger.open(ledger.url, dataset="patients")
    ledger.charge(PureDP(0.4), "query")
    assert other.spent() == pytest.approx(0.4, rel=1e-4)
    ledger.void(1, "never ran")
    recount = Account._recount

    def interrupted(self, without):
        recount(self, without)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Account, "_recount", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.spent()
    assert other.spent() == 0
    other.charge(PureDP(0.1), "query")
    assert ledger.spent() == other.spent() == pytest.approx(0.1, rel=1e-4)
    other.close()


@pytest.mark.parametrize(
    "label", ["a\tb\n", "'; DROP TABLE tacit_record; --", "🦊", ""]
)
def test_any_label_comes_back_as_it_was(ledger, label):
    ledger.charge(PureDP(0.1), label)
    assert ledger.history()[1].label == label
    assert ledger.verify().ok


def test_labels_that_cannot_be_kept_are_refused(sqlite_url):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    with pytest.raises(TypeError, match="label must be a str"):
        ledger.charge(PureDP(0.1), None)
    for label in ("\ud800", "a\0b"):
        with pytest.raises(ValueError, match="label must be valid Unicode"):
            ledger.charge(PureDP(0.1), label)
    with pytest.raises(ValueError, match="label must have at most"):
        ledger.charge(PureDP(0.1), "x" * 5000)
    assert ledger.head[0] == 0


def test_asking_whether_a_charge_fits_charges_nothing(ledger):
    assert ledger.admits(PureDP(0.5))
    assert not ledger.admits(PureDP(1.5))
    ledger.require(PureDP(0.5), "query")
    with pytest.raises(BudgetExceeded, match="Charging 'query'"):
        ledger.require(PureDP(1.5), "query")
    assert ledger.head[0] == 0


def test_a_pickled_ledger_is_the_same_account(ledger):
    other = pickle.loads(pickle.dumps(ledger))
    other.charge(PureDP(0.5), "elsewhere")
    assert ledger.spent() == other.spent() > 0.4
    assert copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    other.close()


def test_a_pickle_of_an_account_that_was_opened_anew_is_refused(sqlite_url, tmp_path):
    pickled = pickle.dumps(Ledger.open(sqlite_url, dataset="x", budget=BUDGET))
    for part in tmp_path.iterdir():
        part.unlink()
    Ledger.open(sqlite_url, dataset="x", budget=BUDGET)
    with pytest.raises(LedgerDamaged, match="not the one that was pickled"):
        pickle.loads(pickled)


def test_the_analyst_is_the_real_user_unless_another_name_is_given(url):
    Ledger.open(url, dataset="x", budget=BUDGET).charge(PureDP(0.1), "query")
    named = Ledger.open(url, dataset="x", analyst="ann")
    named.charge(PureDP(0.1), "query")
    pickle.loads(pickle.dumps(named)).charge(PureDP(0.1), "query")
    _, first, second, third = named.history()
    assert first.analyst == first.who.rpartition("@")[0] == named.owner
    assert second.analyst == third.analyst == "ann"
    assert first.who == second.who == third.who


def test_a_ledger_that_nobody_holds_is_closed(url):
    gc.collect()
    before = len(_databases)
    ledger = Ledger.open(url, dataset="x", budget=BUDGET)
    ledger.charge(PureDP(0.1), "query")
    engine = ledger._chain.database._engine()
    assert len(_databases) == before + 1
    assert engine.pool.checkedin() == 1
    del ledger
    gc.collect()
    assert len(_databases) == before
    assert engine.pool.checkedin() == 0


def test_threads_share_one_ledger(ledger):
    def spend(_):
        return sum(admitted(ledger, PureDP(0.1)) for _ in range(4))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 10
    assert ledger.verify().ok


def test_a_ledger_goes_on_on_both_sides_of_a_fork(ledger):
    ledger.charge(PureDP(0.1), "before")
    child = os.fork()
    if child == 0:
        try:
            ledger.charge(PureDP(0.1), "child")
        finally:
            os._exit(0)
    ledger.charge(PureDP(0.1), "parent")
    assert os.waitpid(child, 0)[1] == 0
    labels = {record.label for record in ledger.history()[1:]}
    assert labels == {"before", "child", "parent"}
    assert ledger.spent() == pytest.approx(0.3, rel=1e-4)


def test_no_connection_is_used_on_both_sides_of_a_fork(ledger):
    database = ledger._chain.database
    ledger.charge(PureDP(0.1), "before")
    opened = database._open
    child = os.fork()
    if child == 0:
        os._exit(int(database._open is not None))
    assert os.waitpid(child, 0)[1] == 0
    if database.sqlite:  # closed before the fork: locks of a file belong to a process
        assert database._open is None
        assert opened.engine.pool.checkedin() == 0
    else:
        assert database._open is opened


def test_threads_may_fork_at_the_same_time(sqlite_url):
    ledger = Ledger.open(sqlite_url, dataset="x", budget=Budget(1000.0))
    began, done = threading.Event(), threading.Event()

    def spend():
        while not done.is_set():
            ledger.charge(PureDP(0.001), "query")
            began.set()

    def fork():
        began.wait(10)
        for _ in range(40):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)

    threads = [threading.Thread(target=f, daemon=True) for f in (fork, fork, spend)]
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join(20)
    done.set()
    threads[2].join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert ledger.verify().ok


def test_a_fit_charges_before_it_runs_and_a_failure_stays_charged(ledger):
    X, y = np.eye(40) / 2, np.arange(40) % 2
    model = LogisticRegression(epsilon=0.25, delta=1e-8, classes=[0, 1], x_norm=1.0)
    model.fit(X, y, ledger=ledger)
    assert ledger.history()[1].label == "LogisticRegression"
    assert ledger.history()[1].promise["epsilon"] == 0.25

    class Failing:
        """A solver whose run fails after it saw that the charge stands."""

        def plan(self, problem, budget):
            self.event = PureDP(budget.epsilon)
            return self

        def run(self, plan, rows, rng):
            assert ledger.head[0] == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        model.set_params(solver=Failing()).fit(X, y, ledger=ledger)
    assert ledger.spent() == pytest.approx(0.5, rel=1e-4)
    before = ledger.head
    with pytest.raises(BudgetExceeded):
        model.set_params(solver="auto", epsilon=0.75).fit(X, y, ledger=ledger)
    assert ledger.head == before
