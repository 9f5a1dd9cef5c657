"""Notions of fairness: one form for all of them, and what they are told about."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.fairness.people import people

from tacit._random import as_generator
from tacit.fairness import group_fairness
from tacit.fairness._groups import LEAST_ROWS, NOTIONS, Group, cells_of
from tacit.fairness._notions import form_of


def directly(y, pred, s, notion, group, desirable=None):
    """The definition of a notion, share by share."""
    right, label, who = y == pred, group.label, group.sensitive
    if notion == "accuracy":
        return right.mean()
    if notion == "accuracy_parity":
        return right[s == who].mean() - right.mean()
    if notion == "demographic_parity":
        chosen = pred == label
        return chosen[s == who].mean() - chosen.mean()
    return right[(y == label) & (s == who)].mean() - right[y == label].mean()


@pytest.mark.parametrize(
    ("notion", "n_labels"),
    # demographic parity is for two labels
    [
        *((notion, 2) for notion in NOTIONS),
        ("equalized_odds", 4),
        ("equal_opportunity", 4),
        ("accuracy_parity", 4),
    ],
)
def test_the_form_is_the_definition_for_any_predictions(notion, n_labels, seed):
    _, y, s = people(2000, n_labels=n_labels)
    rng = as_generator(seed)
    desirable = [1, 2] if notion == "equal_opportunity" and n_labels > 2 else None
    for _ in range(20):
        pred = rng.integers(n_labels, size=len(y))
        found = group_fairness(
            y, pred, sensitive_features=s, notion=notion, desirable=desirable
        )
        wanted = [directly(y, pred, s, notion, group) for group in found.groups]
        np.testing.assert_allclose(found.values, wanted, atol=1e-12)
        assert found.aggregate == pytest.approx(np.abs(wanted).mean())


def shares(y, s):
    """P(Y = y | S = r), P(Y = y, S = r), P(Y = y) and P(S = r | Y = y)."""
    joint = np.array([[((y == a) & (s == r)).mean() for r in range(3)] for a in (0, 1)])
    return joint / joint.sum(0), joint, joint.sum(1), joint / joint.sum(1)[:, None]


def test_constants_are_those_of_the_table():
    _, y, s = people()
    given_group, joint, label, given_label = shares(y, s)
    odds = form_of(cells_of(y, s, "equalized_odds"))
    parity = form_of(cells_of(y, s, "demographic_parity"))
    for k, group in enumerate(odds.groups):
        for c, cell in enumerate(odds.cells):
            a, r, b, q = group.label, group.sensitive, cell.label, cell.sensitive
            own = (r == q) - given_label[a, q] if a == b else 0.0
            assert odds.C[k, c] == pytest.approx(own)
            inside = given_group[b, r] if r == q else 0.0
            sign = 1 if a == b else -1
            assert parity.C[k, c] == pytest.approx(sign * (inside - joint[b, q]))
        assert parity.C0[k] == pytest.approx(label[a] - given_group[a, r])
    np.testing.assert_array_equal(odds.C0, 0.0)


def test_opportunity_is_averaged_over_desirable_labels_alone():
    X, y, s = people()
    pred = (X[:, 0] > 0).astype(int)
    odds = group_fairness(y, pred, sensitive_features=s)
    one = group_fairness(y, pred, sensitive_features=s, notion="equal_opportunity")
    assert {group.label for group in one.groups} == {1}
    wanted = [v for g, v in zip(odds.groups, odds.values, strict=True) if g.label == 1]
    np.testing.assert_allclose(one.values, wanted)
    other = group_fairness(
        y, pred, sensitive_features=s, notion="equal_opportunity", desirable=0
    )
    assert {group.label for group in other.groups} == {0}


def test_lists_series_and_tables_give_the_same():
    X, y, s = people()
    pred = (X[:, 0] > 0).astype(int)
    wanted = group_fairness(y, pred, sensitive_features=s)
    for kind in (list, pd.Series, lambda v: pd.DataFrame({"v": v})):
        found = group_fairness(kind(y), kind(pred), sensitive_features=kind(s))
        np.testing.assert_array_equal(found.values, wanted.values)
        assert found.groups == wanted.groups


def test_groups_of_several_columns_are_their_combinations():
    _, y, s = people(2000)
    table = pd.DataFrame({"sex": np.where(np.arange(2000) % 2, "f", "m"), "age": s})
    found = group_fairness(y, y, sensitive_features=table, notion="accuracy_parity")
    assert len(found.groups) == 6
    assert found.groups[0] == Group(None, ("f", 0))
    assert str(found.groups[0]) == "group f, 0"
    assert sum(found.sizes) == 2000


def test_figures_are_plain_data_and_say_that_they_are_private():
    X, y, s = people()
    found = group_fairness(y, X[:, 0] > 0, sensitive_features=s)
    data = json.loads(json.dumps(found.to_dict()))
    assert len(data["groups"]) == 6
    assert "private data" in data["privacy"]
    assert "private data" in str(found)


def test_figures_are_drawn():
    pytest.importorskip("matplotlib").use("agg")
    _, y, s = people()
    ax = group_fairness(y, y, sensitive_features=s).plot()
    assert ax.get_yticklabels()[0].get_text() == "label 0, group 0"


@pytest.mark.parametrize("notion", ["equalized_odds", "accuracy_parity"])
def test_groups_that_are_too_small_are_refused_without_their_size(notion):
    _, y, s = people()
    s = s.copy()
    s[: LEAST_ROWS - 1] = 7
    with pytest.raises(ValueError, match=f"at least {LEAST_ROWS} rows") as rejection:
        group_fairness(y, y, sensitive_features=s, notion=notion)
    assert str(LEAST_ROWS - 1) not in str(rejection.value)


def test_bad_input_is_refused_by_name():
    _, y, s = people()

    def measure(**changed):
        kept = {"y_true": y, "y_pred": y, "sensitive_features": s, **changed}
        return group_fairness(kept.pop("y_true"), kept.pop("y_pred"), **kept)

    def objects(first):
        column = s.astype(object)
        column[0] = first
        return column

    for changed, said in [
        ({"notion": "odds"}, "notion must be"),
        ({"y_pred": y[1:]}, "y_true and y_pred must have as many rows"),
        ({"sensitive_features": s[1:]}, "sensitive_features must have as many rows"),
        ({"sensitive_features": [None, *s[1:]]}, "no missing values"),
        ({"sensitive_features": np.where(s > 1, np.nan, s)}, "no missing values"),
        ({"sensitive_features": objects(pd.NA)}, "no missing values"),
        ({"sensitive_features": objects({"a": 1})}, "must contain strings or numbers"),
        ({"y_true": []}, "y_true must have one value for each row"),
        ({"desirable": 1}, "desirable is for notion='equal_opportunity'"),
        ({"notion": "equal_opportunity", "desirable": 5}, "must name labels"),
        ({"notion": "demographic_parity", "y_true": np.zeros(600)}, "two labels"),
        ({"y_pred": y + 1}, "y_pred must contain labels of y_true"),
        ({"y_pred": y.astype(str)}, "y_pred must contain labels of y_true"),
        ({"y_pred": y / 3}, "not probabilities"),
        ({"y_true": y.astype(str), "notion": "equal_opportunity"}, "desirable must"),
    ]:
        with pytest.raises(ValueError, match=said):
            measure(**changed)
