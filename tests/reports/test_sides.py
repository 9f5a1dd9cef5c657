"""Item sides of recommenders: users are protected, rows are theirs, no weights."""

from functools import cache

import pytest
from tests.reports.examples import facts, privacy
from tests.reports.test_pages import words

from tacit.privacy import Budget
from tacit.reports import card_html, card_markdown, report_html

PAGES = [report_html, card_html, card_markdown]
TOLD = {"items": 1682, "vectors": 12, "max_ratings": 80, "low": 1.0, "high": 5.0}
OTHERS = ("coef", "intercept", "noise", "selected", "selection", "schema", "classes")


def side(**changed):
    known = facts(side={**TOLD, **changed}, features=[], score=None)
    return {key: part for key, part in known.items() if key not in OTHERS}


@cache
def told_by(render, **changed):
    return words(render(side(**changed)))


@pytest.mark.parametrize("render", PAGES)
def test_what_was_released_and_who_completes_it_are_told(render):
    told = told_by(render)
    assert "vectors of 12 numbers for 1,682 items" in told
    assert "between 1 and 5, at most 80 of each user" in told
    assert "jointly private" in told
    assert "48,211 users" in told


@pytest.mark.parametrize("render", PAGES)
def test_users_are_protected_and_not_rows(render):
    told = told_by(render)
    assert "For any one user" in told
    for other in ("any one row", "every other row", "one row belongs", "0 columns"):
        assert other not in told
    # while others are about rows
    assert "any one row" in words(render(facts()))


@pytest.mark.parametrize("render", PAGES)
def test_a_side_has_no_coefficients(render):
    told = told_by(render)
    assert "oefficient" not in told
    assert "linear" not in told


def test_all_ratings_of_a_user_are_protected_together():
    told = told_by(report_html)
    assert "about all ratings of a user together" in told
    assert "a person with several accounts is protected less" in told


@pytest.mark.parametrize("render", PAGES)
def test_the_number_of_users_is_left_out_where_it_is_private(render):
    budget = Budget(1.0, 1e-6, "add_or_remove_one")
    private = {**side(), "privacy": privacy(budget=budget), "ledger": None}
    private.pop("releases", None)
    assert "48,211" not in words(render(private))
    assert "48,211" in told_by(render)


def test_the_page_names_the_files_of_a_side():
    told = told_by(report_html)
    for name in (
        "side.json",
        "weights.npz",
        "items.json",
        "tacit.persistence.read_side",
    ):
        assert name in told
    assert "model.json" not in told


@pytest.mark.parametrize("render", PAGES)
def test_a_cap_that_is_not_known_is_not_told(render):
    assert "of each user" not in told_by(render, max_ratings=None)


@pytest.mark.parametrize(
    "changed",
    [{"items": "many"}, {"vectors": True}, {"max_ratings": 1.5}, {"low": "<b>"}],
    ids=repr,
)
def test_what_says_nothing_of_a_side_is_refused(changed):
    with pytest.raises(ValueError, match="side"):
        report_html(side(**changed))
    with pytest.raises(ValueError, match="side"):
        report_html({**side(), "side": []})
