"""Columns that were selected before the fit: which, how, and for what."""

import pytest
from tests.reports.examples import facts
from tests.reports.test_pages import words

from tacit.reports import card_html, card_markdown, report_html

HOW = {"asked": 3, "answered": True, "epsilon": 0.61234}


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_a_private_selection_is_told_with_its_cost(render):
    told = words(render(facts(selected=["age", "sodium"], selection=HOW)))
    assert "2 of 18 columns have a weight: age, sodium" in told
    assert "selected before the fit, privately: up to 3 columns were asked for" in told
    # rounded up, as all promises are
    assert "cost epsilon 0.6124 of the promise" in told
    assert "is itself noisy" in told
    assert "no answer" not in told


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_no_answer_is_told_in_words(render):
    how = {**HOW, "answered": False}
    told = words(render(facts(selected=[], selection=how)))
    assert "no answer was given, because one row might have changed it" in told
    assert "The model is a private mean" in told
    assert "0 of 18 columns have a weight" in told


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
@pytest.mark.parametrize("answered", [True, False])
def test_where_a_search_paid_its_total_is_told(render, answered):
    how = {**HOW, "answered": answered, "epsilon": None}
    given = facts(selected=["age"] if answered else [], selection=how)
    told = words(render(given))
    total = given["privacy"]["promise"]["epsilon"]
    assert (
        f"A private search chose the model, and its total of epsilon {total:g}" in told
    )
    assert "epsilon None" not in told


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_nothing_is_called_a_choice_where_all_columns_are_used(render):
    how = {**HOW, "asked": 20, "epsilon": 0.0}
    told = words(render(facts(selected=["age"], selection=how)))
    assert "All columns are used: up to 20 were asked for" in told
    assert "is itself noisy" not in told
    assert "cost epsilon 0" not in told


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_other_sparse_models_say_nothing_of_it(render):
    told = words(render(facts(selected=["age"])))
    assert "before the fit, privately" not in told


@pytest.mark.parametrize(
    "how", [True, [], {"asked": 3}, {**HOW, "epsilon": "much"}, "yes"], ids=repr
)
def test_what_says_nothing_of_a_selection_is_refused(how):
    with pytest.raises(ValueError, match=r"facts\['selection'\] must say"):
        report_html(facts(selected=[], selection=how))
