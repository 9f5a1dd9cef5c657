"""Shapes of additive models on a page."""

import numpy as np
import pytest
from tests.reports.examples import privacy
from tests.reports.skeleton import Skeleton
from tests.reports.test_charts import corners, drawn, near

from tacit.reports import card_html, card_markdown, report_html
from tacit.reports._shape_charts import importance_chart, shape_chart
from tacit.reports._shapes import AdditiveShapes


def shapes(**changes):
    """What ``shape_facts`` returns of a model of two columns."""
    numbers = {
        "column": "age",
        "edges": [18.0, 30.0, 60.0, 90.0],
        "labels": ["(missing)"],
        "values": [[-1.0], [0.5], [2.0], [0.25]],
        "std": [[0.1], [0.1], [0.2], [0.5]],
        "mass": [0.2, 0.5, 0.25, 0.05],
        "edited": False,
    }
    categories = {
        "column": "home",
        "edges": None,
        "labels": ["own", "rent", "(other)", "(missing)"],
        "values": [[0.3], [-0.3], [9.0], [0.0]],
        "std": [[0.1], [0.1], [7.0], [7.0]],
        "mass": [0.5, 0.5, 0.0, 0.0],
        "edited": True,
    }
    found = {
        "intercept": [0.75],
        "importances": [["age", 1.1], ["home", 0.3], ["age and home", 0.1]],
        "pairs": 1,
        "shapes": [categories, numbers],
    }
    return found | changes


def facts(**changes):
    given = {
        "title": "Default",
        "estimator": "AdditiveClassifier",
        "privacy": privacy(),
        "features": ["age", "home"],
        "classes": ["no", "yes"],
        "shapes": shapes(),
    }
    return given | changes


def panels(**changes):
    return AdditiveShapes.of(shapes(**changes), ["no", "yes"]).outputs[0][2]


def words(page):
    return " ".join(" ".join(Skeleton(page).text).split())


def test_the_page_shows_shapes_and_no_coefficients():
    page = report_html(facts())
    shown = words(page)
    assert "What each column adds to the log-odds of yes" in shown
    assert "1 pair of columns" in shown
    assert "Intercept 0.75" in shown
    assert "edited by hand after the fit" in shown
    assert "Coefficients" not in shown
    assert "about 95% of them contain" in shown
    found = Skeleton(page)
    assert len(found.ids) == len(set(found.ids))
    assert not [link for link in found.links if not link.startswith("#")]


def test_the_most_important_column_is_first():
    assert [panel.name for panel in panels()] == ["age", "home"]


def test_cards_say_what_the_model_is():
    for card in (card_html(facts()), card_markdown(facts())):
        assert "an additive model" in card
        assert "cannot learn other interactions" in card
        assert "The model is linear" not in card


def test_no_band_is_promised_where_none_is_known():
    given = shapes()
    for shape in given["shapes"]:
        shape["std"] = None
    page = words(report_html(facts(shapes=given)))
    assert "There are no bands" in page
    assert "Band from" not in page


def test_every_class_has_its_shapes():
    given = shapes(intercept=[0.1, 0.2, 0.3], importances=[["age", 1.0]])
    given["shapes"] = [
        shape | {"values": np.outer(np.ravel(shape["values"]), [1, 2, 3]), "std": None}
        for shape in given["shapes"]
    ]
    page = words(report_html(facts(shapes=given, classes=["a", "b", "c"])))
    assert "adds to a margin" in page
    assert all(f"Intercept {value}" in page for value in (0.1, 0.2, 0.3))


def test_a_shape_is_drawn_as_steps_with_its_band():
    chart = shape_chart(panels()[0], (-2.0, 3.0), 340)
    (line,) = drawn(chart, "path", stroke="var(--accent)")
    steps = [(18, -1), (30, -1), (30, 0.5), (60, 0.5), (60, 2), (90, 2)]
    assert corners(line) == near(chart, *steps)
    (band,) = drawn(chart, "path", fill="var(--accent)")
    low, high = -1 - 0.196, -1 + 0.196
    outline = corners_of_area(band)
    assert outline[[0, -1]] == near(chart, (18, high), (18, low))


def corners_of_area(path):
    pairs = path.get("d").removeprefix("M").removesuffix("Z").split("L")
    return np.array([pair.split(",") for pair in pairs], dtype=float)


def test_bins_without_rows_do_not_set_the_scale():
    home = panels()[1]
    assert home.ends == pytest.approx([-0.496, 0.496])
    assert [row["name"] for row in home.categories] == ["own", "rent"]
    assert [row["name"] for row in home.rows][-2:] == ["(other)", "(missing)"]


def test_the_longest_bar_is_on_top():
    found = AdditiveShapes.of(shapes(), None)
    chart = importance_chart(found.bars, 720)
    bars = [corners(bar) for bar in drawn(chart, "path", stroke="var(--accent)")]
    lengths = [float(bar[1, 0] - bar[0, 0]) for bar in bars]
    assert lengths == sorted(lengths, reverse=True)
    assert bars[0][0, 1] < bars[-1][0, 1]


def test_many_bins_are_joined_in_the_table_by_their_rows():
    n = 128
    mass = np.append(np.full(n, 0.95 / n), 0.05)
    wide = shapes()["shapes"][1] | {
        "edges": np.linspace(0, 1, n + 1).tolist(),
        "values": np.arange(n + 1.0)[:, None].tolist(),
        "std": None,
        "mass": mass.tolist(),
    }
    (panel,) = AdditiveShapes.of(shapes(shapes=[wide]), None).outputs[0][2]
    assert len(panel.rows) == 17
    assert panel.rows[0]["value"] == pytest.approx(3.5)
    assert sum(row["mass"] for row in panel.rows) == pytest.approx(1.0)


def test_names_are_shown_as_they_are():
    given = shapes()
    given["shapes"][1]["column"] = "<script>alert(1)</script>"
    page = report_html(facts(shapes=given))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    "change",
    [
        {"values": [[np.inf], [0.5], [2.0], [0.25]]},
        {"values": [[1.0], [0.5]]},
        {"edges": [18.0, 30.0, 30.0, 90.0]},
        {"edges": [18.0, 30.0]},
        {"std": [[0.1]]},
        {"mass": [0.2, -0.5, 0.25, 0.05]},
        {"labels": []},
    ],
)
def test_other_facts_are_rejected(change):
    given = shapes()
    given["shapes"][1] = given["shapes"][1] | change
    with pytest.raises(ValueError, match="shape_facts"):
        report_html(facts(shapes=given))


@pytest.mark.parametrize("given", [7, [], {}, shapes(importances=[["age"]])])
def test_facts_of_another_form_are_rejected(given):
    with pytest.raises(ValueError, match="shape_facts"):
        report_html(facts(shapes=given))
