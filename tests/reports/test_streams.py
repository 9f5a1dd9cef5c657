"""Models of streams: what the one charge covers, and how many rows of a person."""

import pytest
from tests.reports.examples import facts
from tests.reports.test_pages import words

from tacit.reports import card_html, card_markdown, report_html

PAGES = [report_html, card_html, card_markdown]
TERMS = {"steps": 12, "horizon": 2000, "rows_per_person": 1}


@pytest.mark.parametrize("render", PAGES)
def test_steps_horizon_and_the_one_charge_are_told(render):
    told = words(render(facts(stream=TERMS)))
    assert "The model after step 12 of a stream" in told
    assert "covers the models of all 2,000 steps together" in told
    assert "One charge, made at the first step" in told


@pytest.mark.parametrize("render", PAGES)
def test_rows_of_one_person_are_told(render):
    told = words(render(facts(stream={**TERMS, "rows_per_person": 3})))
    if render is report_html:
        assert "all rows of a person together, up to 3 in the whole stream" in told
        assert "protected less" not in told
    else:
        assert "at most 3 rows in it, which are protected together" in told


@pytest.mark.parametrize("render", [card_html, card_markdown])
def test_one_row_a_person_is_told(render):
    assert "A person has at most one row in it" in words(render(facts(stream=TERMS)))


@pytest.mark.parametrize("render", PAGES)
def test_rows_after_the_last_fit_are_not_said_to_be_used(render):
    told = words(render(facts(stream={**TERMS, "last_refit": 8})))
    assert "of a stream, fitted to the rows up to step 8." in told
    none = words(render(facts(stream={**TERMS, "last_refit": 0})))
    assert "of a stream, before its first fit." in none
    if render is not report_html:
        assert "rows came, and those up to step 8 were used for the fit" in told
        assert "rows came, and none was used yet" in none
        assert "rows were used for the fit" in words(render(facts(stream=TERMS)))


@pytest.mark.parametrize("render", PAGES)
def test_other_models_say_nothing_of_streams(render):
    told = words(render(facts()))
    assert "of a stream" not in told
    assert "at most one row in it" not in told


@pytest.mark.parametrize(
    "terms",
    [True, [], {"steps": 3}, {**TERMS, "steps": "many"}, {**TERMS, "horizon": True}],
    ids=repr,
)
def test_what_says_nothing_of_a_stream_is_refused(terms):
    with pytest.raises(ValueError, match=r"facts\['stream'\] must say"):
        report_html(facts(stream=terms))
