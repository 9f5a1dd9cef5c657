"""Charges of streams in folders: one stands, through all restarts."""

import pytest
from tests.streaming.streams.folders import STEPS, folder_run, rows_of
from tests.streaming.streams.tiny import Tiny

from tacit.exceptions import BudgetExceeded
from tacit.privacy import Budget, Ledger
from tacit.streaming import DurableStream
from tacit.streaming._model import Progress


def killed(*_):
    raise SystemExit


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
    with pytest.raises(ValueError, match="still has the charge"):
        folder_run(tmp_path / "s", rows, ledger)
    other.close()
    ledger.close()


def test_a_voided_charge_without_a_step_is_made_again(tmp_path, seed, monkeypatch):
    rows = rows_of(seed)
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    ledger = Ledger.open(url, dataset="ward", budget=Budget(5.0, 1e-5))

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advanced", killed)
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
        patch.setattr(
            Progress, "advanced", lambda *_: (_ for _ in ()).throw(SystemExit)
        )
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
