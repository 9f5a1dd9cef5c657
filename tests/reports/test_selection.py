"""Columns that were selected before the fit: which, how, and at what cost."""

import pytest
from tests.reports.examples import facts
from tests.reports.test_pages import words

from tacit.reports import card_html, card_markdown, report_html

HOW = {"asked": 3, "answered": True, "epsilon": 0.61234}


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_a_private_selection_is_told_with_its_cost(render):
    shown = words(render(facts(selected=["age", "sodium"], selection=HOW)))
    assert "2 of 18 columns have a nonzero coefficient: age, sodium" in shown
    assert "selected privately before the fit: up to 3 columns were requested" in shown
    # rounded up, as all guarantees are
    assert "cost epsilon 0.6124 of the guarantee" in shown
    assert "is itself noisy" in shown
    assert "no selection" not in shown


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_a_selection_that_was_not_released_is_explained(render):
    how = {**HOW, "answered": False}
    shown = words(render(facts(selected=[], selection=how)))
    assert "no selection was released, because one row might have changed it" in shown
    assert "The model is a private mean" in shown
    assert "0 of 18 columns have a nonzero coefficient" in shown


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
@pytest.mark.parametrize("answered", [True, False])
def test_the_total_of_a_search_is_shown_where_it_covers_the_selection(render, answered):
    how = {**HOW, "answered": answered, "epsilon": None}
    given = facts(selected=["age"] if answered else [], selection=how)
    shown = words(render(given))
    total = given["privacy"]["promise"]["epsilon"]
    assert (
        f"A private search chose the model, and its total of epsilon {total:g}" in shown
    )
    assert "epsilon None" not in shown


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_no_selection_is_reported_where_all_columns_are_used(render):
    how = {**HOW, "asked": 20, "epsilon": 0.0}
    shown = words(render(facts(selected=["age"], selection=how)))
    assert "All columns are used: up to 20 were requested" in shown
    assert "is itself noisy" not in shown
    assert "cost epsilon 0" not in shown


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_other_sparse_models_do_not_mention_a_selection(render):
    shown = words(render(facts(selected=["age"])))
    assert "privately before the fit" not in shown


@pytest.mark.parametrize(
    "how", [True, [], {"asked": 3}, {**HOW, "epsilon": "much"}, "yes"], ids=repr
)
def test_facts_without_a_selection_are_rejected(how):
    with pytest.raises(ValueError, match=r"facts\['selection'\] must have"):
        report_html(facts(selected=[], selection=how))
