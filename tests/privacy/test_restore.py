"""Events and reports written as plain data come back as they were."""

import json
from dataclasses import replace

import pytest

from tacit._release import is_note, rows_note
from tacit.privacy import (
    ApproxDP,
    BoundedRange,
    Budget,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Ledger,
    PoissonSampled,
    PrivacyReport,
    PureDP,
    Repeated,
)
from tacit.privacy.combined import FixedSizeSampled, OneOf, Parallel, RepeatAndSelect
from tacit.privacy.event_data import describe, restore
from tacit.privacy.events import L2LaplaceNoise, TiltedMinimum

NOISE = GaussianNoise(1.2345678901234567)
EVENTS = [
    NOISE,
    LaplaceNoise(0.1),
    L2LaplaceNoise(3.0, 7),
    PureDP(1e-9),
    ApproxDP(0.5, 1e-7),
    BoundedRange(0.3),
    TiltedMinimum(0.1, 4.0, rank=3),
    PoissonSampled(NOISE, 0.01),
    FixedSizeSampled(NOISE, 10, 1000),
    Repeated(PoissonSampled(NOISE, 0.01), 500),
    Composed((NOISE, Repeated(Composed((PureDP(0.1), NOISE)), 2))),
    Parallel((NOISE, LaplaceNoise(0.1))),
    OneOf((NOISE, NOISE, PureDP(0.1))),
    RepeatAndSelect(Parallel((OneOf((NOISE, PureDP(0.1))), NOISE)), -0.5, 0.01),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_goes_through_json(event):
    assert restore(json.loads(json.dumps(describe(event)))) == event


NO_EVENT = "is not an event of this version of tacit; use the version that wrote it"
OTHER_PARTS = "GaussianNoise has other parts in this version"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, f"None {NO_EVENT}"),
        ([], NO_EVENT),
        ("GaussianNoise", NO_EVENT),
        ({}, NO_EVENT),
        ({"type": "Budget", "epsilon": 1.0, "delta": 0.0}, f"'Budget' {NO_EVENT}"),
        ({"type": "GaussianNoise"}, OTHER_PARTS),
        ({"type": "GaussianNoise", "multiplier": 1.0, "extra": 2}, OTHER_PARTS),
        ({"type": "GaussianNoise", "multiplier": None}, OTHER_PARTS),
        ({"type": "GaussianNoise", "multiplier": -1.0}, "multiplier must be .* > 0"),
        (
            {"type": "Repeated", "event": {"type": "os.system"}, "count": 2},
            f"'os.system' {NO_EVENT}",
        ),
        ({"type": ["GaussianNoise"], "multiplier": 1.0}, NO_EVENT),
    ],
)
def test_what_was_not_written_by_describe_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        restore(data)


def test_a_report_goes_through_json():
    ledger = Ledger(Budget(1.0, 1e-6, "add_or_remove_one"))
    ledger.charge(PoissonSampled(GaussianNoise(20.0), 0.01), "counts", seeded=True)
    report = ledger.report(("the number of rows is guessed",))
    for notes in ((), ("no shared ledger was charged",)):
        report = replace(report, notes=notes)
        assert PrivacyReport.from_dict(json.loads(report.to_json())) == report
        assert ("notes" in report.to_dict()) == bool(notes)


def test_an_assumption_and_a_note_are_told_apart():
    report = replace(
        Ledger(Budget(1.0)).report(("rows are clipped",)), notes=(rows_note(40),)
    )
    lines = str(report).splitlines()
    assert "assumes      rows are clipped" in lines
    assert f"note         {rows_note(40)}" in lines
    assert is_note(rows_note(40))
    assert not is_note("rows are clipped")


SAMPLED = describe(PoissonSampled(NOISE, 0.01))


def nested(depth):
    data = {"type": "PureDP", "epsilon": 0.1}
    for _ in range(depth):
        data = {"type": "Repeated", "event": data, "count": 1}
    return data


@pytest.mark.parametrize(
    "data",
    [
        {"type": "Repeated", "event": SAMPLED, "count": 10**18},
        {
            "type": "Repeated",
            "event": {"type": "Repeated", "event": SAMPLED, "count": 10**4},
            "count": 10**4,
        },
        {"type": "Repeated", "event": SAMPLED, "count": 2.0},
        {"type": "Repeated", "event": SAMPLED, "count": True},
        {"type": "TiltedMinimum", "offset": 0.1, "multiplier": 1.0, "rank": 10**18},
        {"type": "TiltedMinimum", "offset": float("nan"), "multiplier": 1.0, "rank": 1},
        {"type": "L2LaplaceNoise", "multiplier": 1.0, "size": 10**300},
        {
            "type": "PoissonSampled",
            "event": {"type": "GaussianNoise", "multiplier": 1e-3},
            "rate": 0.1,
        },
        {"type": "Composed", "events": [describe(NOISE)] * 20_000},
        {"type": "Composed", "events": 3},
        {"type": "Parallel", "events": [describe(NOISE)] * 20_000},
        {"type": "OneOf", "events": []},
        {"type": "RepeatAndSelect", "event": SAMPLED, "eta": -1.0, "gamma": 0.1},
        {"type": "RepeatAndSelect", "event": SAMPLED, "eta": 1.0, "gamma": 0.0},
        {"type": "RepeatAndSelect", "event": SAMPLED, "eta": "1", "gamma": 0.1},
        {"type": "Composed", "events": [3]},
        {"type": "Repeated", "event": 3, "count": 2},
        {"type": "PureDP", "epsilon": "1"},
        nested(900),
    ],
)
def test_what_would_take_for_ever_to_count_is_refused(data):
    with pytest.raises(ValueError, match=r"must|may|is not an event"):
        restore(data)


def test_what_people_charge_is_within_the_bounds():
    assert restore(nested(10)) == restore(json.loads(json.dumps(nested(10))))
    assert restore({"type": "Repeated", "event": SAMPLED, "count": 10**6}).count
