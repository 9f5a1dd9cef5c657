"""The runs of a search are drawn as they are charged."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.stat import assert_counts_detect, assert_counts_follow, assert_probability

from tacit._random import as_generator
from tacit.mechanisms.repeats import RandomRepeats
from tacit.model_selection import _runs
from tacit.model_selection._plan import plan_search, planned_runs
from tacit.privacy import Budget, GaussianNoise, PureDP
from tacit.privacy.combined import OneOf

SEARCHES = 1000
CELLS = 6


@pytest.fixture
def searches(monkeypatch, seed):
    """The candidates of each run of many searches, with half a chance to continue."""
    runs = []

    def one_run(prepared, index, kept, held, measure, rng):
        runs[-1].append(index)

    monkeypatch.setattr(_runs, "one_run", one_run)
    prepared = SimpleNamespace(
        plan=SimpleNamespace(repeats=RandomRepeats(1.0, 0.5)), models=("a", "b", "c")
    )
    rng = as_generator(seed)
    for _ in range(SEARCHES):
        runs.append([])
        assert _runs.best_run(prepared, None, None, None, rng) is None
    return runs


@pytest.mark.statistical
def test_the_number_of_runs_follows_the_law_that_is_charged(searches):
    """Fails wrongly at 1e-6; a 1.3 times larger chance to stop is detected."""
    counts = np.bincount([min(len(s), CELLS) - 1 for s in searches], minlength=CELLS)

    def geometric(stop):
        odds = stop * (1 - stop) ** np.arange(CELLS)
        odds[-1] = (1 - stop) ** (CELLS - 1)
        return odds

    assert_counts_follow(counts, geometric(0.5))
    assert_counts_detect(counts, geometric(0.65))


@pytest.mark.statistical
def test_each_run_draws_its_candidate_by_itself(searches):
    """Fails wrongly at 3e-6; the positive control is a candidate repeated in turn."""
    first = np.bincount([s[0] for s in searches], minlength=3)
    assert_counts_follow(first, np.full(3, 1 / 3))
    pairs = [(s[0], s[1]) for s in searches if len(s) > 1]
    for step in range(3):
        found = sum((b - a) % 3 == step for a, b in pairs)
        assert_probability(found, len(pairs), 1 / 3)
    with pytest.raises(AssertionError, match="is not probability"):
        assert_probability(len(pairs), len(pairs), 1 / 3)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_charge_covers_every_candidate(reverse):
    budget = Budget(2.0, 1e-6)

    def fits_for(per_run):
        multiplier = 4 / per_run.epsilon
        events = [GaussianNoise(20 * multiplier), PureDP(per_run.epsilon / 4)]
        events = events[::-1] if reverse else events
        return [(None, event, ()) for event in events]

    plan, fits = plan_search(budget, planned_runs(budget, 2), 0.2, fits_for)
    fitted, scored = plan.event.event.events
    assert isinstance(fitted, OneOf)
    assert set(fitted.events) == {event for _, event, _ in fits}
    assert scored == plan.noise.event
    assert plan.event.curve(budget.neighbors).fits(budget)
