"""Data behind the charts."""

import pytest
from tests.reports.examples import ledger, privacy, record

from tacit.privacy import Budget, GaussianNoise, PrivacyReport, TradeOff
from tacit.reports._attacker_metrics import curve_points, odds_of, roc_points
from tacit.reports._charts import coefficient_chart, curve_chart, spend_chart
from tacit.reports._ledger import account_of, thinned


def layer(spec, kind):
    return next(part for part in spec["layer"] if part["mark"]["type"] == kind)


def test_the_curve_is_that_of_the_composed_events():
    report = PrivacyReport.from_dict(privacy())
    exact = GaussianNoise((29.9**-2 + 30 * 23.5**-2) ** -0.5).curve(
        report.promise.neighbors
    )
    points = curve_points(report)
    for point in points[::10]:
        expected = exact.delta(point["epsilon"])
        assert point["delta"] == pytest.approx(expected, rel=1e-5)
    assert points[-1]["delta"] <= report.promise.delta / 50


def test_the_promise_is_on_or_above_the_drawn_curve():
    report = PrivacyReport.from_dict(privacy())
    spec = curve_chart(curve_points(report), {"epsilon": 1.0, "delta": 1e-6}, 720)
    (mark,) = layer(spec, "point")["data"]["values"]
    assert mark == {"epsilon": 1.0, "delta": 1e-6}
    below = [p for p in layer(spec, "line")["data"]["values"] if p["epsilon"] >= 1.0]
    assert all(point["delta"] <= mark["delta"] for point in below)


def test_the_roc_ends_at_certainty_and_agrees_with_the_table():
    bound = TradeOff.of(Budget(1.0, 1e-6))
    points = roc_points(bound)
    assert points[0]["false"] == 0
    assert points[-1] == {"false": 1.0, "true": 1.0}
    found = {p["false"]: p["true"] for p in points}
    assert found[1.0] == 1.0
    assert odds_of(bound).found[1] == pytest.approx(float(bound.power(0.01)))


def test_steps_carry_the_spend_over_records_that_say_none():
    rows = [record(0, "open"), record(1, "charge", spent_after=0.5), record(2, "note")]
    account = account_of(ledger() | {"records": rows})
    assert [step["spent"] for step in account.steps] == [0.0, 0.5, 0.5]
    spec = spend_chart(account.steps, account.marks, 3.0, account.last, 720)
    budget, spent = (part for part in spec["layer"] if part["mark"]["type"] == "line")
    assert {point["spent"] for point in budget["data"]["values"]} == {3.0}
    assert spent["mark"]["interpolate"] == "step-after"
    assert [m["kind"] for m in layer(spec, "point")["data"]["values"]] == ["charge"]


def test_thinning_keeps_ends_peaks_and_falls():
    steps = [{"seq": i, "spent": i / 1000, "kind": "charge"} for i in range(10_000)]
    steps[5003] = {"seq": 5003, "spent": 50.0, "kind": "reserve"}
    steps[7001] = {"seq": 7001, "spent": 0.0, "kind": "cancel"}
    kept = thinned(steps, 400)
    assert len(kept) <= 400
    assert [step["seq"] for step in kept] == sorted(step["seq"] for step in kept)
    assert {0, 9999, 5003, 7001} <= {step["seq"] for step in kept}
    assert thinned(steps[:300], 400) == steps[:300]


def test_names_are_data_and_never_expressions():
    rows = [
        {"name": "datum.value + 1", "value": 1.0, "low": None, "high": None},
        {"name": "患" * 40, "value": -1.0, "low": -2.0, "high": 0.5},
    ]
    spec = coefficient_chart(rows, 340)
    (names,) = spec["params"]
    assert names["value"][0] == "datum.value + 1"
    assert len(names["value"][1]) < 10
    bars = next(part for part in spec["layer"] if "x2" in part["encoding"])
    assert [(b["low"], b["high"]) for b in bars["data"]["values"]] == [(-2.0, 0.5)]
