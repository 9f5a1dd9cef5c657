"""Item sides of recommenders: users are protected, and there are no coefficients."""

from functools import cache

import pytest
from tests.reports.examples import facts, privacy
from tests.reports.test_pages import words

from tacit.privacy import Budget
from tacit.reports import card_html, card_markdown, report_html

PAGES = [report_html, card_html, card_markdown]
SIDE = {"items": 1682, "vectors": 12, "max_ratings": 80, "low": 1.0, "high": 5.0}
OTHERS = ("coef", "intercept", "noise", "selected", "selection", "schema", "classes")


def side(**changed):
    known = facts(side={**SIDE, **changed}, features=[], score=None)
    return {key: part for key, part in known.items() if key not in OTHERS}


@cache
def shown_by(render, **changed):
    return words(render(side(**changed)))


@pytest.mark.parametrize("render", PAGES)
def test_the_release_and_its_completion_are_explained(render):
    shown = shown_by(render)
    assert "vectors of 12 numbers for 1,682 items" in shown
    assert "between 1 and 5, at most 80 of each user" in shown
    assert "jointly differentially private" in shown
    assert "48,211 users" in shown


@pytest.mark.parametrize("render", PAGES)
def test_users_are_protected_and_not_rows(render):
    shown = shown_by(render)
    assert "Take any one user" in shown
    for other in ("any one row", "every other row", "one row belongs", "0 columns"):
        assert other not in shown
    # while others are about rows
    assert "any one row" in words(render(facts()))


@pytest.mark.parametrize("render", PAGES)
def test_a_side_has_no_coefficients(render):
    shown = shown_by(render)
    assert "oefficient" not in shown
    assert "linear" not in shown


def test_all_ratings_of_a_user_are_protected_together():
    shown = shown_by(report_html)
    assert "covers all ratings of a user together" in shown
    assert "a person with several accounts is protected less" in shown


@pytest.mark.parametrize("render", PAGES)
def test_the_number_of_users_is_left_out_where_it_is_private(render):
    budget = Budget(1.0, 1e-6, "add_or_remove_one")
    private = {**side(), "privacy": privacy(budget=budget), "ledger": None}
    private.pop("releases", None)
    assert "48,211" not in words(render(private))
    assert "48,211" in shown_by(render)


def test_the_page_names_the_files_of_a_side():
    shown = shown_by(report_html)
    for name in (
        "side.json",
        "weights.npz",
        "items.json",
        "tacit.persistence.read_side",
    ):
        assert name in shown
    assert "model.json" not in shown


@pytest.mark.parametrize("render", PAGES)
def test_an_unknown_cap_is_left_out(render):
    assert "of each user" not in shown_by(render, max_ratings=None)


@pytest.mark.parametrize(
    "changed",
    [{"items": "many"}, {"vectors": True}, {"max_ratings": 1.5}, {"low": "<b>"}],
    ids=repr,
)
def test_facts_without_a_side_are_rejected(changed):
    with pytest.raises(ValueError, match="side"):
        report_html(side(**changed))
    with pytest.raises(ValueError, match="side"):
        report_html({**side(), "side": []})
