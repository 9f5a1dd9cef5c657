"""What people do with shapes: order, edit, explain and score by them."""

import numpy as np
import pandas as pd
import pytest

from tacit import Seed
from tacit._random import as_generator
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.additive._bins import Bins
from tacit.additive._columns import CELLS, Column
from tacit.additive._shapes import intervals, monotone_values
from tacit.additive._tables import _segments

N = 4000
PUBLIC = {
    "ranges": {"age": (18, 90), "debt": (0, 100)},
    "categories": {"home": ["own", "rent"]},
}


def rows():
    rng = as_generator(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(18, 90, N),
            "debt": rng.uniform(0, 100, N),
            "home": rng.choice(["own", "rent"], N),
        }
    )
    X.loc[::20, "debt"] = np.nan
    z = np.sin(X["age"] / 12) + X["debt"].fillna(50) / 30 - 1.6 + (X["home"] == "own")
    y = np.where(z + rng.logistic(size=N) > 0, "yes", "no")
    return X, y


X, Y = rows()


def classifier(**parameters):
    given = {"classes": ["no", "yes"], "random_state": Seed(1), **PUBLIC}
    return AdditiveClassifier(2.0, 1e-6, **given | parameters)


@pytest.fixture(scope="module")
def model():
    return classifier().fit(X, Y)


@pytest.fixture(scope="module")
def paired():
    return classifier(interactions=[("age", "home")]).fit(X, Y)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_monotone_column_never_goes_the_other_way(direction):
    ordered = classifier(monotone={"debt": direction}).fit(X, Y)
    steps = np.diff(ordered.shapes_[1].values[:-1, 0])
    assert (direction * steps >= 0).all()
    free = np.diff(ordered.shapes_[0].values[:-1, 0])
    assert free.min() < 0 < free.max()


def test_values_out_of_order_become_their_mean_by_rows():
    column = Column("debt", 0.0, 1.0, monotone=1)
    starts = np.array([0, CELLS // 4, CELLS // 2], dtype=np.int32)
    bins = Bins(column, starts, np.zeros(3), np.array([0.1, 0.3, 0.5, 0.1]))
    values = np.array([[4.0], [0.0], [5.0], [-7.0]])
    assert monotone_values(bins, values).ravel().tolist() == [1.0, 1.0, 5.0, -7.0]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"monotone": ["debt"]}, "give a dictionary"),
        ({"monotone": {"income": 1}}, "'income', which X lacks"),
        ({"monotone": {"debt": 2}}, "must be 1"),
        ({"monotone": {"debt": True}}, "must be 1"),
        ({"monotone": {"home": 1}}, "takes columns of numbers"),
        ({"monotone": {"debt": 1}, "interactions": 1}, "could break the order"),
        (
            {"monotone": {"debt": 1}, "interactions": [("age", "debt")]},
            "could break the order",
        ),
        ({"monotone": {"debt": 1}, "classes": ["no", "yes", "?"]}, "two classes"),
    ],
)
def test_monotone_is_checked_before_anything_is_charged(parameters, words):
    broken = classifier(**parameters)
    with pytest.raises(ValueError, match=words):
        broken.fit(X, Y)
    assert not hasattr(broken, "privacy_")


def test_pairs_of_other_columns_go_with_a_monotone_one():
    both = classifier(monotone={"debt": 1}, interactions=[("age", "home")]).fit(X, Y)
    assert both.pairs_[0].columns == ("age", "home")


def test_an_edit_changes_predictions_and_is_recorded():
    edited = classifier().fit(X, Y)
    before, spent = edited.decision_function(X), edited.privacy_.spent
    old = edited.shapes_[2].values.copy()
    assert edited.set_shape("home", [1.0, -1.0, 0.0, 0.0]) is edited
    change = np.where(X["home"] == "own", 1.0 - old[0, 0], -1.0 - old[1, 0])
    np.testing.assert_allclose(edited.decision_function(X) - before, change)
    (edit,) = edited.edits_
    assert edit.column == "home"
    np.testing.assert_array_equal(edit.before, old)
    assert edit.after.ravel().tolist() == [1.0, -1.0, 0.0, 0.0]
    assert edited.shapes_[2].std is None
    assert edited.privacy_.spent == spent
    assert "column 'home' was set by hand" in str(edited.privacy_)
    edited.set_shape("home", old)
    assert len(edited.edits_) == 2
    assert sum("by hand" in note for note in edited.privacy_.notes) == 1
    assert edited.fit(X, Y).edits_ == []


def test_a_function_of_midpoints_leaves_missing_cells_as_they_are():
    edited = classifier().fit(X, Y)
    shape = edited.shapes_[1]
    edited.set_shape("debt", lambda debt: debt / 50)
    after = edited.shapes_[1].values
    np.testing.assert_allclose(after[:-1, 0], shape.middles / 50)
    assert after[-1] == shape.values[-1]


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("income", [1.0], "one of the columns"),
        ("home", [1.0], r"shape \(4,\)"),
        ("home", [1.0, np.nan, 0.0, 0.0], "finite"),
        ("home", lambda x: x, "no midpoints"),
        ("debt", lambda x: x[:-1], "midpoints, got shape"),
    ],
)
def test_an_edit_that_does_not_fit_changes_nothing(model, column, values, words):
    before = [shape.values for shape in model.shapes_]
    with pytest.raises(ValueError, match=words):
        model.set_shape(column, values)
    assert all(s.values is v for s, v in zip(model.shapes_, before, strict=True))
    assert model.edits_ == []


def test_a_given_pair_without_an_effect_adds_little():
    rng = as_generator(4)
    few = pd.DataFrame({"a": rng.random(600), "b": rng.random(600)})
    labels = rng.random(600) < few["a"]
    facts = {"ranges": (0, 1), "classes": [False, True], "random_state": Seed(2)}
    model = AdditiveClassifier(1.0, 1e-6, interactions=[("a", "b")], **facts)
    values = model.fit(few, labels).pairs_[0].values
    assert abs(values).max() < 0.5


def test_an_explanation_adds_up_to_the_margin(paired):
    row = X.iloc[[20]]  # its debt is missing
    found = paired.explain(row)
    parts = sum(part.value for part in found.parts)
    assert found.margin == pytest.approx(paired.decision_function(row)[0])
    assert found.intercept + parts == pytest.approx(found.margin)
    sizes = [abs(part.value) for part in found.parts]
    assert sizes == sorted(sizes, reverse=True)
    cells = {part.name: part.cell for part in found.parts}
    assert cells["debt"] == "(missing)"
    assert cells["home"] == X["home"][20]
    low, high = map(float, cells["age"].strip("[])").split(", "))
    assert low - 0.01 <= X["age"][20] <= high + 0.01
    assert cells["age and home"] == f"{cells['age']}, {cells['home']}"
    assert "log-odds of yes" in str(found)
    assert f"{found.margin:+.4g}" in str(found).splitlines()[-1]


def test_a_row_may_be_a_list_or_a_series(model):
    assert model.explain(X.iloc[3]).margin == model.explain(X.iloc[[3]]).margin
    assert model.explain(X.iloc[3].tolist()).margin == model.explain(X.iloc[3]).margin
    assert model.explain(X.iloc[3][["home", "age", "debt"]]) == model.explain(X.iloc[3])
    with pytest.raises(ValueError, match="one row, got shape"):
        model.explain(X.iloc[:2])
    with pytest.raises(ValueError, match="3 columns, got 2"):
        model.explain([40.0, "own"])


def test_names_in_an_explanation_are_escaped_in_notebooks():
    facts = {"ranges": {"<b>": (0, 1)}, "classes": ["no", "yes"]}
    table = pd.DataFrame({"<b>": np.linspace(0, 1, N)})
    found = AdditiveClassifier(1.0, 1e-6, **facts).fit(table, Y).explain([0.5])
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_the_margin_of_a_class_is_explained():
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    several = classifier(classes=["a", "b", "c"]).fit(X, labels)
    scores = several.decision_function(X.iloc[:1])[0]
    for k, label in enumerate("abc"):
        found = several.explain(X.iloc[0], label)
        assert found.margin == pytest.approx(scores[k])
    assert several.explain(X.iloc[0]).margin == pytest.approx(scores.max())
    with pytest.raises(ValueError, match="one of the classes"):
        several.explain(X.iloc[0], "d")
    with pytest.raises(ValueError, match="two classes"):
        several.scoring_table()


def test_a_regression_is_explained_before_it_is_clipped():
    target = X["age"].to_numpy()
    fitted = AdditiveRegressor(1.0, 1e-6, y_range=(0, 90), **PUBLIC).fit(X, target)
    found = fitted.explain(X.iloc[0])
    assert np.clip(found.margin, 0, 90) == pytest.approx(fitted.predict(X.iloc[:1])[0])
    with pytest.raises(ValueError, match="no labels"):
        fitted.explain(X.iloc[0], "yes")


def test_importances_are_mean_sizes_by_released_rows(paired):
    found = paired.importances_
    assert set(found) == {"age", "debt", "home", ("age", "home")}
    assert list(found.values()) == sorted(found.values(), reverse=True)
    home = paired.shapes_[2]
    expected = float(home.mass @ np.abs(home.values[:, 0]) / home.mass.sum())
    assert found["home"] == pytest.approx(expected)


def test_a_table_of_a_shape_has_all_its_bins(model):
    table = model.shape_table("debt")
    shape = model.shapes_[1]
    np.testing.assert_array_equal(table["low"][:-1], shape.edges[:-1])
    np.testing.assert_array_equal(table["high"][:-1], shape.edges[1:])
    assert np.isnan(table["low"][-1])
    assert table["label"][-1] == "(missing)"
    np.testing.assert_array_equal(table["value"], shape.values[:, 0])
    assert {len(part) for part in table.values()} == {shape.n_bins}
    labels = model.shape_table("home")["label"].tolist()
    assert labels == ["own", "rent", "(other)", "(missing)"]


def points_of(card, model, cells):
    """Add the points of a row up, as someone with a pencil would."""
    total = card.base
    for column, value in cells.items():
        for name, cell, points in card.rows:
            if name != column:
                continue
            if cell == value or (value is None and cell == "(missing)"):
                total += points
                break
            if cell[0] == "[" and isinstance(value, float):
                low, high = map(float, cell.strip("[])").split(", "))
                if low <= value < high or (cell[-1] == "]" and value == high):
                    total += points
                    break
        else:
            raise AssertionError(column)
    return total


def test_points_of_a_scorecard_add_up_to_the_margin(model):
    card = model.scoring_table(points=40, cells=12)
    margins = model.decision_function(X.iloc[:60]) * 40 / np.log(2)
    for k in range(60):
        row = X.iloc[k]
        debt = None if np.isnan(row["debt"]) else float(row["debt"])
        cells = {"age": float(row["age"]), "debt": debt, "home": row["home"]}
        # ends of intervals are printed with few digits
        assert abs(points_of(card, model, cells) - margins[k]) <= card.off + 3
    assert all(points >= 0 for _, _, points in card.rows)
    assert "40 points double the odds of yes" in str(card)
    for column in ("age", "debt"):
        assert sum(name == column for name, _, _ in card.rows) <= 13


def test_a_scorecard_is_checked(model, paired):
    with pytest.raises(ValueError, match="points"):
        model.scoring_table(points=0)
    with pytest.raises(ValueError, match="no pairs"):
        paired.scoring_table()


def test_intervals_of_a_scorecard_are_the_best_ones():
    values = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 9.0])
    assert _segments(values, np.ones(6), 3) == [0, 2, 5, 6]
    assert _segments(values, np.ones(6), 1) == [0, 6]
    assert _segments(values, np.ones(6), 50) == [0, 1, 2, 3, 4, 5, 6]
    heavy = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1e-9])
    assert _segments(values, heavy, 2) == [0, 2, 6]


def test_intervals_have_as_many_digits_as_differ():
    assert intervals(np.array([0.0, 1.5, 3.0])) == ["[0, 1.5)", "[1.5, 3]"]
    close = intervals(np.array([1000.01, 1000.02, 1000.03]))
    assert close == ["[1000.01, 1000.02)", "[1000.02, 1000.03]"]
