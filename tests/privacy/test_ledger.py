"""The ledger: never over, rejects without charging, valid for adaptive charges."""

import copy
import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from math import exp, log
from threading import Barrier, BrokenBarrierError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.strategies import EVENTS

from tacit.exceptions import BudgetExceeded
from tacit.privacy import (
    ApproxDP,
    Budget,
    GaussianNoise,
    Ledger,
    Neighbors,
    PureDP,
    Shares,
    calibrate,
)
from tacit.privacy.curve import ORDERS, renyi_log_delta
from tacit.privacy.deltas import gaussian_delta
from tacit.privacy.events import TiltedMinimum
from tacit.privacy.ledger import Filter, Total

BUDGET = Budget(1.0, 1e-6)


@given(st.lists(EVENTS, max_size=8))
def test_never_over_budget_and_refusal_charges_nothing(events):
    ledger = Ledger(BUDGET)
    admitted = []
    for event in events:
        before = ledger.report()
        try:
            ledger.charge(event, "query")
            admitted.append(event)
        except BudgetExceeded:
            assert ledger.report() == before
    if admitted:
        first, *rest = (event.curve(BUDGET.neighbors) for event in admitted)
        assert sum(rest, first).delta(BUDGET.epsilon) <= BUDGET.delta
        assert ledger.spent() <= BUDGET.epsilon
    assert [entry.event for entry in ledger.report().entries] == admitted


def test_one_charge_may_spend_everything():
    noise = calibrate(GaussianNoise, BUDGET)
    ledger = Ledger(BUDGET)
    ledger.charge(GaussianNoise(noise), "all")
    assert ledger.spent() == pytest.approx(BUDGET.epsilon, rel=1e-3)
    with pytest.raises(BudgetExceeded, match="nothing was charged or released"):
        ledger.charge(GaussianNoise(1e4), "a little more")


def test_promises_simply_add_up():
    parts = Budget(1.0, 4e-7).split(0.1, 0.9)
    ledger = Ledger(BUDGET)
    for part in parts:
        noise = calibrate(GaussianNoise, part)
        ledger.charge(GaussianNoise(noise), "part", guarantee=part)
    assert len(ledger.report().entries) == 2


def test_a_refusal_names_a_delta_at_which_promises_add_up():
    part = Budget(0.5, 1e-6)
    event = ApproxDP(0.5, 1e-6)
    ledger = Ledger(Budget(1.0, 2e-6))
    ledger.charge(event, "first", guarantee=part)
    with pytest.raises(BudgetExceeded, match="a delta of 5e-06 to the ledger"):
        ledger.charge(event, "second", guarantee=part)
    larger = Ledger(Budget(1.0, 5e-6))
    for label in ("first", "second"):
        larger.charge(event, label, guarantee=part)
    # where the epsilons are too large no delta helps
    with pytest.raises(BudgetExceeded) as rejection:
        larger.charge(event, "third", guarantee=part)
    assert "to the ledger" not in str(rejection.value)


def test_three_tenths_fit_three_times_one_tenth():
    ledger = Ledger(Budget(0.3))
    for _ in range(3):
        ledger.charge(PureDP(0.1), "tenth")
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureDP(1e-6), "more")


def test_many_gaussian_charges_cost_the_root_of_their_number():
    ledger = Ledger(BUDGET)
    count = 0
    while count < 10_000:
        try:
            ledger.charge(GaussianNoise(100.0), "query")
        except BudgetExceeded:
            break
        count += 1
    mu = (count * 100.0**-2) ** 0.5
    # within a few per cent of the exact Gaussian profile at the whole delta
    assert 0.9 * BUDGET.delta * 0.25 < gaussian_delta(1.0, mu) <= BUDGET.delta * 0.25


def test_basic_shares_give_basic_composition():
    ledger = Ledger(BUDGET, shares=Shares(basic=1, gaussian=0, renyi=0, slack=0))
    for _ in range(10):
        ledger.charge(ApproxDP(0.1, 1e-7), "query")
    with pytest.raises(BudgetExceeded):
        ledger.charge(ApproxDP(0.001, 0.0), "query")


def test_deltas_add_up_too():
    ledger = Ledger(BUDGET, shares=Shares(basic=1, gaussian=0, renyi=0, slack=0))
    ledger.charge(ApproxDP(0.1, 6e-7), "query")
    with pytest.raises(BudgetExceeded):
        ledger.charge(ApproxDP(0.1, 6e-7), "query")
    ledger.charge(ApproxDP(0.1, 4e-7), "query")


@pytest.mark.parametrize("shares", [(0.6, 0.6, 0.0, 0.0), (-0.1, 0.5, 0.5, 0.1)])
def test_shares_must_be_a_division(shares):
    with pytest.raises(ValueError, match="shares must"):
        Shares(*shares)


def response(e, loss, epsilon):
    """Return what randomized response adds to delta after ``loss`` was incurred."""
    q = exp(e) / (1 + exp(e))
    return q * max(0.0, 1 - exp(epsilon - loss - e)) + (1 - q) * max(
        0.0, 1 - exp(epsilon - loss + e)
    )


def test_the_best_bound_of_each_path_would_not_be_a_filter():
    """Why the rule divides delta in advance: an adversary gains from choosing late.

    After a randomized response the adversary picks, by what came out, another one or
    a mechanism that fails with probability delta. Each alone just fits; choosing
    between them spends a third more.
    """
    epsilon, delta, e0 = 1.0, 1e-2, 0.6
    p = exp(e0) / (1 + exp(e0))
    low, high = 0.0, 5.0
    for _ in range(60):
        e = (low + high) / 2
        spent = p * response(e, e0, epsilon) + (1 - p) * response(e, -e0, epsilon)
        low, high = (e, high) if spent <= delta else (low, e)
    adaptive = p * max(response(low, e0, epsilon), delta) + (1 - p) * max(
        response(low, -e0, epsilon), delta
    )
    assert adaptive > 1.3 * delta
    ledger = Ledger(Budget(epsilon, delta))
    ledger.charge(PureDP(e0), "first")
    with pytest.raises(BudgetExceeded):
        ledger.charge(ApproxDP(1e-9, delta), "all of delta")
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureDP(low), "all of delta")


def test_the_filter_holds_for_an_adversary_who_chooses_late():
    """Exact delta of two adaptive rounds of Laplace-like and Gaussian charges."""
    epsilon, delta = 1.0, 1e-2
    budget = Budget(epsilon, delta)
    e0 = 0.6
    p = exp(e0) / (1 + exp(e0))
    first = [(p, e0), (1 - p, -e0)]
    candidates = [PureDP(e) for e in np.linspace(0.02, 1.5, 60)]
    candidates += [GaussianNoise(m) for m in np.geomspace(0.5, 50, 60)]

    def spent(event, loss):
        if isinstance(event, GaussianNoise):
            return gaussian_delta(epsilon - loss, 1 / event.multiplier)
        return response(event.epsilon, loss, epsilon)

    admitted = []
    for event in candidates:
        ledger = Ledger(budget)
        ledger.charge(PureDP(e0), "first")
        try:
            ledger.charge(event, "second")
        except BudgetExceeded:
            continue
        admitted.append(event)
    assert len(admitted) > 20
    worst = sum(q * max(spent(event, loss) for event in admitted) for q, loss in first)
    assert worst <= delta


def most_admitted(rule):
    """Return the largest number of charges that ``rule`` admits, by bisection."""
    low, high = 1, 2
    while rule(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rule(middle) else (low, middle)
    return low


def test_renyi_rule_divides_delta_between_orders_fixed_by_the_budget():
    """Neither all of delta for each order, nor the order that suits the charges."""
    budget = Budget(1.0, 1e-6)
    rule = Filter(budget, Shares(basic=0.0, gaussian=0.0, renyi=0.9, slack=0.0))
    curve = TiltedMinimum(0.001, 900.0).curve(budget.neighbors)
    best = 1 + 2 * log(1 / budget.delta) / budget.epsilon
    factors, weights = (0.25, 0.5, 1.0, 2.0, 4.0), (0.1, 0.15, 0.5, 0.15, 0.1)
    fixed = [int(np.argmin(np.abs(np.log(ORDERS / (f * best))))) for f in factors]

    def admits(count, orders, parts):
        spent = renyi_log_delta(curve.renyi * count, budget.epsilon)[list(orders)]
        return bool((spent <= np.log(np.array(parts) * 0.9 * budget.delta)).any())

    found = most_admitted(lambda n: rule.admits(Total(curve * n, None, count=n)))
    assert found == most_admitted(lambda n: admits(n, fixed, weights))
    undivided = most_admitted(lambda n: admits(n, fixed, [1.0] * 5))
    everywhere = range(len(ORDERS))
    late = most_admitted(lambda n: admits(n, everywhere, [0.5] * len(ORDERS)))
    assert found < min(undivided, late)


def test_the_filter_holds_over_random_adaptive_trees():
    """Three rounds of randomized response with parameters chosen by the path."""
    epsilon, delta = 1.2, 1e-2
    levels = [0.1, 0.3, 0.6]
    worst = 0.0
    for tree in product(levels, repeat=3):
        total = 0.0
        # the adversary's second and third parameter depend on the first output
        for outputs in product([1, -1], repeat=3):
            parameters = [tree[0], tree[1 if outputs[0] > 0 else 2], tree[2]]
            ledger = Ledger(Budget(epsilon, delta))
            loss, probability = 0.0, 1.0
            for e, sign in zip(parameters, outputs, strict=True):
                try:
                    ledger.charge(PureDP(e), "round")
                except BudgetExceeded:
                    probability *= 0.5  # rejected: both continuations are the same
                    continue
                q = exp(e) / (1 + exp(e))
                probability *= q if sign > 0 else 1 - q
                loss += sign * e
            total += probability * max(0.0, 1 - exp(epsilon - loss))
        worst = max(worst, total)
    assert worst <= delta


def test_a_promise_must_be_true_and_of_the_same_relation():
    ledger = Ledger(BUDGET)
    with pytest.raises(ValueError, match="smaller than what the event spends"):
        ledger.charge(GaussianNoise(1.0), "query", guarantee=Budget(0.1, 1e-7))
    other = Budget(1.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE)
    with pytest.raises(ValueError, match="neighbors='add_or_remove_one'"):
        ledger.charge(GaussianNoise(100.0), "query", guarantee=other)
    assert ledger.report().entries == ()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_ledger_cannot_be_duplicated(duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(Ledger(BUDGET))


def test_a_ledger_needs_a_budget():
    with pytest.raises(TypeError, match="budget must be a Budget"):
        Ledger(1.0)


def test_report_prints_as_a_table_and_as_json():
    ledger = Ledger(BUDGET)
    ledger.charge(GaussianNoise(10.0), "mean age", seeded=True)
    report = ledger.report(("rows are public",))
    text = str(report)
    for word in ("epsilon 1", "mean age", "rows are public", "FIXED SEED", "1e-06"):
        assert word in text
    plain = json.loads(report.to_json())
    assert plain["promise"]["neighbors"] == "replace_one"
    assert plain["entries"][0]["event"] == {"type": "GaussianNoise", "multiplier": 10.0}
    assert plain["seeded"] is True
    assert plain["spent"]["epsilon"] == pytest.approx(report.spent)


def test_asking_whether_a_charge_fits_charges_nothing():
    ledger = Ledger(BUDGET)
    assert ledger.admits(GaussianNoise(10.0))
    assert not ledger.admits(GaussianNoise(0.1))
    ledger.require(GaussianNoise(10.0), "query")
    assert ledger.report().entries == ()
    assert ledger.spent() == 0


def test_several_charges_are_asked_for_together():
    ledger = Ledger(Budget(1.0))
    fits = [(PureDP(0.5), "first", None), (PureDP(0.5), "second", None)]
    ledger.require_all(fits)
    with pytest.raises(BudgetExceeded, match="'third'"):
        ledger.require_all([*fits, (PureDP(0.1), "third", None)])
    assert ledger.spent() == 0


def test_refusal_says_what_was_asked_and_what_is_spent():
    ledger = Ledger(BUDGET)
    ledger.charge(PureDP(0.25), "first")
    with pytest.raises(BudgetExceeded, match=r"epsilon=0.9 .* 0.25 is spent"):
        ledger.charge(PureDP(0.9), "second")
    loose = Budget(0.9, 1e-3)
    noise = calibrate(GaussianNoise, loose)
    with pytest.raises(BudgetExceeded, match="whose delta is already above"):
        ledger.charge(GaussianNoise(noise), "third", guarantee=loose)


def test_a_forked_copy_refuses_to_charge():
    ledger = Ledger(BUDGET)
    child = os.fork()
    if child == 0:
        try:
            ledger.charge(PureDP(0.1), "lost")
        except TypeError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.report().entries == ()


def test_threads_together_spend_the_budget_once(monkeypatch):
    ledger = Ledger(Budget(1.0))
    admits, meeting = Filter.admits, Barrier(2)

    def admits_together(*arguments):
        # without a lock both threads decide on the same total, and both continue
        with suppress(BrokenBarrierError):
            meeting.wait(0.2)
        return admits(*arguments)

    def spend(_):
        with suppress(BudgetExceeded):
            ledger.charge(PureDP(0.6), "query")

    monkeypatch.setattr(Filter, "admits", admits_together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(spend, range(2)))
    assert len(ledger.report().entries) == 1


def test_a_budget_barely_touched_counts_as_unspent():
    ledger = Ledger(Budget(5.0, 1e-2))
    ledger.charge(GaussianNoise(1e6), "whisper")
    assert ledger.spent() < 1e-8


def test_equal_charges_are_printed_once():
    ledger = Ledger(BUDGET)
    for _ in range(3):
        ledger.charge(PureDP(0.1), "tenth")
    assert str(ledger.report()).count("tenth") == 1
    assert "3 times" in str(ledger.report())


def test_numpy_numbers_become_plain_ones():
    budget = Budget(np.float32(1), np.float64(1e-6))
    assert type(budget.epsilon) is float
    assert json.loads(Ledger(budget).report().to_json())["promise"]["epsilon"] == 1.0


@pytest.mark.parametrize("share", [float("nan"), float("inf")])
def test_a_share_that_is_no_number_is_refused_in_words(share):
    with pytest.raises(ValueError, match="shares must be >= 0 and add up"):
        Shares(gaussian=share)
