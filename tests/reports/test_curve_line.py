"""The line of a report against the guarantees that are printed with it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import (
    BoundedRange,
    Budget,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Ledger,
    PureDP,
    Repeated,
    TradeOff,
)
from tacit.privacy.combined import OneOf, Parallel, RepeatAndSelect
from tacit.privacy.events import TiltedMinimum
from tacit.reports._facts import _together
from tacit.reports._pages import curve_points

SIMPLE = st.one_of(
    st.floats(1.0, 30.0).map(GaussianNoise),
    st.floats(1.0, 30.0).map(LaplaceNoise),
    st.floats(0.05, 1.0).map(PureDP),
    st.floats(0.05, 1.0).map(BoundedRange),
    st.builds(TiltedMinimum, st.floats(0.0, 0.1), st.floats(2.0, 50.0)),
)
PAIRS = st.tuples(SIMPLE, SIMPLE)
EVENTS = st.one_of(
    SIMPLE,
    st.builds(Repeated, SIMPLE, st.integers(1, 20)),
    PAIRS.map(Composed),
    PAIRS.map(Parallel),
    PAIRS.map(OneOf),
    st.builds(RepeatAndSelect, SIMPLE, st.just(1.0), st.just(0.2)),
)


def released(event, delta):
    """Return the report of one release, charged with what its curve spends."""
    epsilon = event.curve(Budget(1.0).neighbors).epsilon(delta)
    ledger = Ledger(Budget(max(epsilon, 1e-3) * (1 + 1e-9), delta))
    ledger.charge(event, "release", ledger.budget)
    return ledger.report()


def line_at(report, epsilon):
    """Return the delta of the drawn line, which is straight between its points."""
    points = curve_points(report)
    deltas = np.log([point["delta"] for point in points])
    at = np.interp(epsilon, [point["epsilon"] for point in points], deltas)
    return np.exp(at)


def assert_line_is_at_or_below_what_is_printed(report):
    delta = report.guarantee.delta
    for epsilon in (report.guarantee.epsilon, report.spent):
        assert line_at(report, epsilon) <= delta * (1 + 1e-9)
        # and so is what the attacker may do
        stated = TradeOff.of(Budget(epsilon, delta))
        assert TradeOff.of(report).accuracy() <= stated.accuracy() + 1e-9


@settings(max_examples=8, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=3), st.sampled_from([1e-9, 1e-6, 1e-4]))
def test_line_of_random_releases_is_at_or_below_what_is_printed(events, delta):
    report = _together(tuple(released(event, delta) for event in events))
    assert_line_is_at_or_below_what_is_printed(report)


@pytest.mark.parametrize("measure", [0.1, 0.5])
def test_line_of_a_fit_and_its_score_is_at_or_below_what_is_printed(measure):
    fit = released(RepeatAndSelect(GaussianNoise(8.0), 1.0, 0.2), 1e-6)
    score = Ledger(Budget(measure))
    score.charge(PureDP(measure), "score")
    assert_line_is_at_or_below_what_is_printed(_together((fit, score.report())))


def test_line_of_charges_with_guarantees_is_at_or_below_what_was_spent():
    ledger = Ledger(Budget(3.0, 1e-5))
    event = RepeatAndSelect(PureDP(0.2), 1.0, 0.2)
    for name in ("one", "two"):
        ledger.charge(event, name, Budget(0.61))
    assert_line_is_at_or_below_what_is_printed(ledger.report())
