"""Charts, and the data behind them."""

from xml.etree import ElementTree

import numpy as np
import pytest
from tests.reports.examples import ledger, privacy, record

from tacit.privacy import Budget, GaussianNoise, PrivacyReport, TradeOff
from tacit.reports._charts import coefficient_chart, curve_chart, spend_chart
from tacit.reports._ledger import account_of, thinned
from tacit.reports._pages import attacker_limits, curve_points, roc_points


def drawn(chart, tag, **attributes):
    """Return the elements of a chart that have this tag and these attributes."""
    svg = ElementTree.fromstring(str(chart.svg("name", "title", "description")))
    return [
        element
        for element in svg.iter("{http://www.w3.org/2000/svg}" + tag)
        if attributes.items() <= element.attrib.items()
    ]


def corners(path):
    """Return the corners of a path in pixels from the left and the top."""
    pairs = path.get("d").removeprefix("M").split("L")
    return np.array([pair.split(",") for pair in pairs], dtype=float)


def near(chart, *points):
    """Return the positions of points in a chart, to the hundredth of a pixel."""
    return pytest.approx(np.array([chart.at(*point) for point in points]), abs=0.01)


def test_the_curve_is_that_of_the_composed_events():
    report = PrivacyReport.from_dict(privacy())
    exact = GaussianNoise((29.9**-2 + 30 * 23.5**-2) ** -0.5).curve(
        report.guarantee.neighbors
    )
    points = curve_points(report)
    for point in points[::10]:
        expected = exact.delta(point["epsilon"])
        assert point["delta"] == pytest.approx(expected, rel=1e-5)
    assert points[-1]["delta"] <= report.guarantee.delta / 50


def test_the_guarantee_is_on_or_above_the_drawn_curve():
    report = PrivacyReport.from_dict(privacy())
    points = curve_points(report)
    below = [point for point in points if point["epsilon"] >= 1.0]
    assert all(point["delta"] <= 1e-6 for point in below)
    chart = curve_chart(points, {"epsilon": 1.0, "delta": 1e-6}, 720)
    (mark,) = drawn(chart, "circle")
    x, y = float(mark.get("cx")), float(mark.get("cy"))
    assert chart.at(1.0, -6.0) == pytest.approx((x, y), abs=0.01)
    (curve,) = drawn(chart, "path", stroke="var(--accent)")
    right = [down for across, down in corners(curve) if across >= x]
    assert len(right) == len(below) > 0
    assert all(down >= y for down in right)


def test_the_roc_ends_at_certainty_and_agrees_with_the_table():
    bound = TradeOff.of(Budget(1.0, 1e-6))
    points = roc_points(bound)
    assert points[0]["false"] == 0
    assert points[-1] == {"false": 1.0, "true": 1.0}
    found = {p["false"]: p["true"] for p in points}
    assert found[1.0] == 1.0
    assert attacker_limits(bound).found[1] == pytest.approx(float(bound.power(0.01)))


def test_steps_carry_the_spend_over_records_without_one():
    rows = [record(0, "open"), record(1, "charge", spent_after=0.5), record(2, "note")]
    account = account_of(ledger() | {"records": rows})
    assert [step["spent"] for step in account.steps] == [0.0, 0.5, 0.5]
    chart = spend_chart(account.steps, account.marks, 3.0, account.last, 720)
    (budget,) = drawn(chart, "path", stroke="var(--warn)")
    assert corners(budget) == near(chart, (0, 3.0), (3, 3.0))
    (spent,) = drawn(chart, "path", stroke="var(--accent)")
    stairs = [(0, 0.0), (1, 0.0), (1, 0.5), (2, 0.5), (2, 0.5), (3, 0.5)]
    assert corners(spent) == near(chart, *stairs)
    (mark,) = drawn(chart, "circle")
    at = float(mark.get("cx")), float(mark.get("cy"))
    assert at == pytest.approx(chart.at(1, 0.5), abs=0.01)


def test_thinning_keeps_ends_peaks_and_falls():
    steps = [{"seq": i, "spent": i / 1000, "kind": "charge"} for i in range(10_000)]
    steps[5003] = {"seq": 5003, "spent": 50.0, "kind": "reserve"}
    steps[7001] = {"seq": 7001, "spent": 0.0, "kind": "cancel"}
    kept = thinned(steps, 400)
    assert len(kept) <= 400
    assert [step["seq"] for step in kept] == sorted(step["seq"] for step in kept)
    assert {0, 9999, 5003, 7001} <= {step["seq"] for step in kept}
    assert thinned(steps[:300], 400) == steps[:300]


def test_names_are_escaped():
    rows = [
        {"name": "<script>", "value": 1.0, "low": None, "high": None},
        {"name": "患" * 40, "value": -1.0, "low": -2.0, "high": 0.5},
    ]
    chart = coefficient_chart(rows, 340)
    names = [name.text for name in drawn(chart, "text", fill="var(--ink)")]
    assert names[0] == "<script>"
    assert len(names[1]) < 10
    (bar,) = drawn(chart, "path", stroke="var(--accent)")
    assert corners(bar) == near(chart, (-2.0, 1.5), (0.5, 1.5))


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-9, 1.0, 12345.0, 1e300, 8e307])
def test_coefficients_of_any_size_are_drawn_within_the_frame(size):
    rows = [
        {"name": "up", "value": size, "low": None, "high": None},
        {"name": "down", "value": -size, "low": -float("inf"), "high": size},
        {"name": "unknown", "value": float("nan"), "low": None, "high": None},
    ]
    chart = coefficient_chart(rows, 720)
    assert drawn(chart, "path", stroke="var(--accent)") == []
    up, down = (float(dot.get("cx")) for dot in drawn(chart, "circle"))
    assert 0 < down <= up < 720
    labels = [label.text for label in drawn(chart, "text", fill="var(--muted)")]
    assert "0" in labels
    assert 3 <= len(set(labels)) == len(labels) <= 10
