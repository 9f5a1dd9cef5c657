"""Models of streams: what the one charge covers, and the rows of a person."""

import pytest
from tests.reports.examples import facts
from tests.reports.test_pages import words

from tacit.reports import card_html, card_markdown, report_html

PAGES = [report_html, card_html, card_markdown]
TERMS = {"steps": 12, "horizon": 2000, "rows_per_person": 1}


@pytest.mark.parametrize("render", PAGES)
def test_steps_horizon_and_the_one_charge_are_shown(render):
    shown = words(render(facts(stream=TERMS)))
    assert "The model after step 12 of a stream" in shown
    assert "covers the models of all 2,000 steps together" in shown
    assert "One charge, made at the first step" in shown


@pytest.mark.parametrize("render", PAGES)
def test_the_rows_of_one_person_are_shown(render):
    shown = words(render(facts(stream={**TERMS, "rows_per_person": 3})))
    if render is report_html:
        assert "all rows of a person together, up to 3 in the whole stream" in shown
        assert "protected less" not in shown
    else:
        assert "at most 3 rows in the stream, which are protected together" in shown


@pytest.mark.parametrize("render", [card_html, card_markdown])
def test_one_row_per_person_is_shown(render):
    assert "A person has at most one row in the stream" in words(
        render(facts(stream=TERMS))
    )


@pytest.mark.parametrize("render", PAGES)
def test_rows_after_the_last_fit_are_not_reported_as_used(render):
    shown = words(render(facts(stream={**TERMS, "last_refit": 8})))
    assert "of a stream, fitted to the rows up to step 8." in shown
    before = words(render(facts(stream={**TERMS, "last_refit": 0})))
    assert "of a stream, before its first fit." in before
    if render is not report_html:
        assert "rows arrived, and those up to step 8 were used for the fit" in shown
        assert "rows arrived, and none was used yet" in before
        assert "rows were used for the fit" in words(render(facts(stream=TERMS)))


@pytest.mark.parametrize("render", PAGES)
def test_other_models_do_not_mention_streams(render):
    shown = words(render(facts()))
    assert "of a stream" not in shown
    assert "at most one row in the stream" not in shown


@pytest.mark.parametrize(
    "terms",
    [True, [], {"steps": 3}, {**TERMS, "steps": "many"}, {**TERMS, "horizon": True}],
    ids=repr,
)
def test_facts_without_a_stream_are_rejected(terms):
    with pytest.raises(ValueError, match=r"facts\['stream'\] must have"):
        report_html(facts(stream=terms))
