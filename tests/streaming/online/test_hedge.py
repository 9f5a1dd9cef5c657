"""Private Hedge: what it charges, what it draws, and what it regrets."""

from dataclasses import replace
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy import stats
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit._state import dumped, loaded
from tacit.exceptions import PlanError
from tacit.mechanisms import Exponential
from tacit.privacy import (
    BoundedRange,
    Budget,
    GaussianNoise,
    Neighbors,
    Repeated,
    calibrate,
)
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._hedge import Hedge
from tacit.streaming.online._hedge_learners import UNITS, Experts, integer_costs

BUDGET = Budget(1.0, 1e-6)
ADDED = Budget(1.0, 1e-6, Neighbors.ADD_OR_REMOVE_ONE)
EXPERTS = Experts(5)
NOTHING = np.zeros(1)


def least_temperature(budget, T, experts=EXPERTS, **terms):
    """Return the temperature that privacy needs where a draw follows each step."""
    method = Hedge("sample", hold=1, temperature=1e-9)
    return method.plan(experts, budget, StreamTerms(T, **terms)).temperature


@pytest.mark.parametrize(
    ("epsilon", "simple"), [(0.1, 105.3), (1.0, 10.70), (5.0, 2.28)]
)
def test_the_temperature_is_below_that_of_the_simple_conversion(epsilon, simple):
    T, symmetric = 10_000, Experts(5, (-1.0, 1.0))
    found = least_temperature(Budget(epsilon, 1e-6), T, symmetric) / sqrt(T)
    rho = (sqrt(log(1e6) + epsilon) - sqrt(log(1e6))) ** 2
    assert 4 / sqrt(8 * rho) == pytest.approx(simple, rel=2e-3)
    assert found <= simple
    # many draws are as a Gaussian mechanism of half the range: no less could do
    assert found > 2 * calibrate(GaussianNoise, Budget(epsilon, 1e-6))


def test_the_budget_is_spent_and_not_passed():
    for T in (1, 7, 1000):
        learner = Hedge("sample", hold=1, temperature=1e-9).plan(
            EXPERTS, BUDGET, StreamTerms(T)
        )
        spent = learner.event.curve(BUDGET.neighbors).epsilon(1e-6)
        assert 0.999 < spent <= 1.0
        assert learner.event == Repeated(BoundedRange(learner.epsilon), T)


def test_twice_the_horizon_doubles_the_squared_temperature():
    one, two = (least_temperature(BUDGET, T) for T in (4000, 8000))
    assert (two / one) ** 2 == pytest.approx(2, rel=2e-3)


def test_a_replaced_row_and_more_rows_of_a_person_cost_in_proportion():
    added = least_temperature(ADDED, 100)
    assert least_temperature(BUDGET, 100) == pytest.approx(2 * added)
    assert least_temperature(ADDED, 100, rows_per_person=3) == pytest.approx(3 * added)


def test_sums_behind_weights_move_by_all_rows_of_a_person():
    def scale(budget, **terms):
        learner = Hedge("weights").plan(EXPERTS, budget, StreamTerms(8, **terms))
        assert learner.multiplier == calibrate(GaussianNoise, budget)
        return learner.mechanism.scale(EXPERTS.n_experts)

    added = scale(ADDED)
    assert scale(BUDGET) == pytest.approx(2 * added, rel=1e-6)
    assert scale(ADDED, rows_per_person=3) == pytest.approx(3 * added, rel=1e-6)
    assert scale(BUDGET, rows_per_person=3) == pytest.approx(6 * added, rel=1e-6)


def test_pure_privacy_adds_up():
    assert least_temperature(Budget(0.5), 20) == pytest.approx(2 * 20 / 0.5, rel=1e-3)


def test_one_step_is_the_exponential_mechanism(seed):
    learner = Hedge("sample").plan(EXPERTS, Budget(1.0), StreamTerms(1, 10))
    costs = as_generator(seed).random((10, 5))
    state = learner.step(
        learner.init(), EXPERTS.centered(costs), NOTHING, as_generator(1)
    )
    known = Exponential(1.0, 2 * UNITS)
    assert learner.mechanism.epsilon == pytest.approx(1.0, rel=1e-4)
    scores = -integer_costs(EXPERTS.centered(costs)).astype(float)
    same = replace(known, epsilon=learner.mechanism.epsilon)(scores, as_generator(1))
    assert state.expert == same
    assert learner.event == Repeated(BoundedRange(learner.epsilon), 1)


@pytest.mark.statistical
def test_draws_follow_the_exponential_weights(seed):
    learner = Hedge("sample").plan(EXPERTS, Budget(2.0), StreamTerms(1))
    costs = np.array([[0.0, 0.25, 0.5, 0.75, 1.0]])
    rng = as_generator(seed)
    start = learner.init()
    drawn = [
        learner.step(start, EXPERTS.centered(costs), NOTHING, rng).expert
        for _ in range(5000)
    ]
    counts = np.bincount(drawn, minlength=5)

    def law(temperature):
        odds = np.exp(-costs[0] / temperature)
        return odds / odds.sum()

    assert learner.temperature == pytest.approx(1.0, rel=1e-3)
    assert_counts_follow(counts, law(learner.temperature))
    assert_counts_detect(counts, law(0.7 * learner.temperature))


@pytest.mark.parametrize("budget", [BUDGET, ADDED], ids=["replaced", "added"])
def test_log_odds_of_one_step_move_within_the_range(budget, seed):
    # one pair reaches the range, and none passes it
    rng, largest = as_generator(seed), 0.0
    learner = Hedge("sample", hold=1).plan(EXPERTS, budget, StreamTerms(50))
    corners = [np.array([1.0, -1, -1, -1, -1]), *rng.choice([-1.0, 1.0], (40, 5))]
    for corner in corners:
        other = -corner if budget is BUDGET else None
        moved = integer_costs(corner[None])
        moved = moved if other is None else moved - integer_costs(other[None])
        unit = EXPERTS.width / 2 / UNITS
        largest = max(largest, float(np.ptp(moved)) * unit / learner.temperature)
    assert largest == pytest.approx(learner.epsilon, rel=1e-12)
    assert largest <= learner.epsilon * (1 + 1e-15)


def test_exact_exponents_move_within_the_range_at_any_sums(seed):
    learner = Hedge("sample", hold=1).plan(EXPERTS, BUDGET, StreamTerms(50))
    mechanism, rng = learner.mechanism, as_generator(seed)
    for size in (0, 2**10, 2**30, 2**45, 2**52):
        sums = rng.integers(-size, size + 1, 5).astype(float)
        moved = sums + rng.choice([-2.0, 2.0], 5) * UNITS
        before, after = (mechanism._exponents(-s) for s in (sums, moved))
        assert np.ptp(after - before) <= learner.epsilon * 2**32


def test_rows_are_rounded_by_themselves_and_stay_in_range(seed):
    X = as_generator(seed).uniform(-1, 1, (30, 5))
    alone = sum(integer_costs(row[None]) for row in X)
    assert (integer_costs(X) == alone).all()
    assert (integer_costs(np.array([[1.0, -1.0]])) == [UNITS, -UNITS]).all()
    assert (integer_costs(np.zeros((0, 2))) == 0).all()


@pytest.mark.parametrize("play", ["sample", "weights"])
@pytest.mark.parametrize("budget", [BUDGET, ADDED], ids=["replaced", "added"])
def test_replayed_streams_differ_within_the_sensitivity(play, budget, seed):
    T, rng = 12, as_generator(seed)
    learner = Hedge(play, hold=1).plan(EXPERTS, budget, StreamTerms(T))
    costs = rng.random((T, 1, 5))
    costs[0] = 1.0
    other = costs.copy()
    other[0] = 0.0

    def run(stream):
        state = learner.init()
        for position, row in enumerate(stream):
            X = EXPERTS.centered(row)
            if budget is ADDED and stream is other and position == 0:
                X = X[:0]
            state = learner.step(state, X, NOTHING, as_generator(0))
        return learner.weights(state)

    with recording() as tape:
        first = run(costs)
    with replaying(tape) as again:
        second = run(other)
    assert (first == second).all()
    norm = inf if play == "sample" else 2
    moves = [
        np.linalg.norm(a.value - b.value, norm) / a.sensitivity
        for a, b in zip(tape.releases, again.releases, strict=True)
    ]
    assert len(moves) == T
    assert max(moves) <= 1 + 1e-12
    # every draw sees the first row in full; sums hide parts of it, of length one in all
    assert np.linalg.norm(moves) == pytest.approx(
        sqrt(T) if play == "sample" else 1.0, rel=0.01
    )


def test_the_printed_temperature_is_too_small_for_a_large_epsilon():
    # T coins of the worst odds, counted exactly: what the published rule promises
    T, delta = 10_000, 1e-6

    def true_delta(temperature, epsilon):
        odds = 4 * temperature**-1 / 2
        heads, k = 1 / (1 + np.exp(-odds)), np.arange(T + 1)
        one = stats.binom.logpmf(k, T, heads)
        two = stats.binom.logpmf(k, T, 1 - heads)
        with np.errstate(over="ignore"):
            return float(np.sum(np.maximum(np.exp(one) - np.exp(epsilon + two), 0.0)))

    def printed(epsilon):
        return sqrt(8 * T * log(1 / delta)) / epsilon

    symmetric = Experts(2, (-1.0, 1.0))
    assert true_delta(printed(10.0), 10.0) > 2 * delta
    assert true_delta(printed(1.0), 1.0) < delta  # no harm is done there
    for epsilon in (1.0, 10.0):
        ours = least_temperature(Budget(epsilon, delta), T, symmetric)
        assert true_delta(ours, epsilon) < delta


def test_the_printed_regret_does_not_follow_from_the_printed_temperature():
    T, p, epsilon, delta = 10**6, 10**4, 1.0, 1e-6
    temperature = sqrt(8 * T * log(p) * log(1 / delta)) / epsilon
    claimed = sqrt(T * log(p) * log(1 / delta)) / epsilon
    assert temperature * log(p) > 20 * claimed
    # held draws are far below even the least temperature that is private at each step
    held = Hedge("sample").plan(
        Experts(p, (-1.0, 1.0)), Budget(epsilon, delta), StreamTerms(T)
    )
    assert held.regret_bound < 0.4 * least_temperature(
        Budget(epsilon, delta), T, Experts(p, (-1.0, 1.0))
    ) * log(p)


def test_draws_are_held_and_the_last_sees_every_step(seed):
    learner = Hedge("sample", hold=4).plan(EXPERTS, BUDGET, StreamTerms(10))
    assert learner.n_draws == 3
    state, rng, draws = learner.init(), as_generator(seed), []
    with recording() as tape:
        for t in range(1, 11):
            before = len(tape.releases)
            state = learner.step(state, np.ones((1, 5)), NOTHING, rng)
            if len(tape.releases) > before:
                draws.append(t)
            elif not draws:
                assert learner.weights(state).ravel() == pytest.approx(np.full(5, 0.2))
    assert draws == [2, 6, 10]
    assert (tape.releases[-1].value == -10 * UNITS).all()


def test_holding_lowers_the_bound_where_privacy_is_dear():
    terms = StreamTerms(10_000)
    free = Hedge("sample").plan(Experts(100), BUDGET, terms)
    each = Hedge("sample", hold=1).plan(Experts(100), BUDGET, terms)
    assert free.hold > 4
    assert free.regret_bound < each.regret_bound / 2
    assert Hedge("sample").plan(Experts(100), Budget(1e4, 1e-6), terms).hold == 1


def test_auto_takes_the_play_with_the_smaller_bound():
    few = Hedge().plan(Experts(3), BUDGET, StreamTerms(10_000))
    many = Hedge().plan(Experts(3000), BUDGET, StreamTerms(10_000))
    assert type(few).__name__ == "WeightedHedge"
    assert type(many).__name__ == "SampledHedge"
    for experts, learner in ((Experts(3), few), (Experts(3000), many)):
        for play in ("sample", "weights"):
            other = Hedge(play).plan(experts, BUDGET, StreamTerms(10_000))
            assert learner.regret_bound <= other.regret_bound
    pure = Hedge().plan(Experts(3), Budget(1.0), StreamTerms(10_000))
    assert type(pure).__name__ == "SampledHedge"


def test_the_rate_of_weights_counts_the_noise():
    terms = StreamTerms(1000)
    loud = Hedge("weights").plan(EXPERTS, Budget(0.1, 1e-6), terms)
    still = Hedge("weights").plan(EXPERTS, Budget(1e5, 1e-6), terms)
    assert still.temperature == pytest.approx(sqrt(999 / 8 / log(5)), rel=1e-3)
    noise = loud.mechanism.std_at(1000, 5) / (2 * UNITS)
    expected = sqrt((999 / 8 + noise**2 / 2) / log(5))
    assert loud.temperature == pytest.approx(expected, rel=1e-9)
    assert loud.regret_bound == pytest.approx(
        loud.temperature * log(5) + (1000 / 4 + noise**2) / (2 * loud.temperature)
    )


@pytest.mark.parametrize("play", ["sample", "weights"])
def test_a_state_is_written_and_read(play, seed):
    learner = Hedge(play).plan(EXPERTS, BUDGET, StreamTerms(6))
    rng, state = as_generator(seed), learner.init()
    for _ in range(4):
        state = learner.step(state, np.ones((2, 5)) / 3, NOTHING, rng)
    again = loaded(dumped(state))
    ends = [
        learner.weights(learner.step(s, np.ones((1, 5)), NOTHING, as_generator(1)))
        for s in (state, again)
    ]
    assert (ends[0] == ends[1]).all()
    assert "private" not in repr(state)


def test_bad_parameters_are_refused_in_a_sentence():
    for wrong, word in [
        ({"play": "both"}, "play"),
        ({"hold": 0}, "hold"),
        ({"temperature": -1.0}, "temperature"),
        ({"noise": "none"}, "noise"),
    ]:
        with pytest.raises(ValueError, match=word):
            Hedge(**wrong)
    for wrong in ((1.0, 0.0), (0.0, float("inf")), 3.0, ("a", "b"), (0.0,)):
        with pytest.raises(ValueError, match="cost_range"):
            Experts(2, wrong)
    with pytest.raises(PlanError, match="delta > 0"):
        Hedge("weights").plan(EXPERTS, Budget(1.0), StreamTerms(3))
    with pytest.raises(PlanError, match="hold must be at least 2"):
        Hedge("sample", hold=1).plan(EXPERTS, BUDGET, StreamTerms(2 * 10**6))
    with pytest.raises(PlanError, match="leaves less than 1e-8"):
        Hedge("sample", hold=1).plan(EXPERTS, Budget(1e-5), StreamTerms(10**5))


def test_very_long_streams_are_planned():
    learner = Hedge("sample").plan(EXPERTS, BUDGET, StreamTerms(2**26))
    assert learner.n_draws <= 10**6


def test_costs_are_centered_and_cut():
    found = Experts(4, (10.0, 20.0)).centered([[5.0, 10.0, 15.0, np.nan]])
    assert (found == [[-1.0, -1.0, 0.0, 1.0]]).all()


@pytest.mark.parametrize("play", ["sample", "weights"])
def test_a_step_beyond_the_horizon_is_refused(play):
    learner = Hedge(play).plan(EXPERTS, BUDGET, StreamTerms(3))
    state = learner.init()
    with recording() as tape:
        for t in range(3):
            state = learner.step(state, np.zeros((1, 5)), NOTHING, as_generator(t))
        n_draws = len(tape.releases)
        with pytest.raises(ValueError, match="3 steps and cannot take step 4"):
            learner.step(state, np.zeros((1, 5)), NOTHING, as_generator(3))
    assert len(tape.releases) == n_draws <= 3


def test_costs_beyond_their_range_are_cut_and_missing_ones_are_the_highest():
    costs = np.array([[np.nan, 1e9, -1e9, np.inf, -np.inf], [0.5, 0.5, 0.5, 0.5, 0.5]])
    assert (integer_costs(costs[:1]) == UNITS * np.array([1, 1, -1, 1, -1])).all()
    assert (integer_costs(costs) == integer_costs(costs[:1]) + UNITS // 2).all()
