"""Students of private teachers: the source of labels, and no coefficients."""

from functools import cache

import pytest
from tests.reports.examples import facts
from tests.reports.test_pages import words

from tacit.reports import card_html, card_markdown, report_html

PAGES = [report_html, card_html, card_markdown]
TAUGHT = {
    "teachers": 250,
    "asked": 3000,
    "answered": 2900,
    "labels_only": False,
    "by_person": False,
}


WEIGHTS = ("coef", "intercept", "noise", "selected", "selection")


def student(**changed):
    known = facts(student={**TAUGHT, **changed})
    return {key: part for key, part in known.items() if key not in WEIGHTS}


@cache
def shown_by(render, **changed):
    return words(render(student(**changed)))


@pytest.mark.parametrize("render", PAGES)
def test_teachers_labels_and_the_one_charge_are_shown(render):
    shown = shown_by(render)
    assert "labels from 250 teachers" in shown
    assert "Labels for 3,000 rows were queried, and 2,900 were released" in shown
    assert "One charge covers all released labels" in shown


@pytest.mark.parametrize("render", PAGES)
def test_a_student_has_no_coefficients(render):
    shown = shown_by(render)
    assert "oefficient" not in shown
    assert "linear" not in shown
    # while others have
    assert "oefficient" in words(render(facts()))


@pytest.mark.parametrize("render", PAGES)
def test_protection_of_labels_only_is_reported(render):
    assert "Only the labels are protected" in shown_by(render, labels_only=True)
    assert "Only the labels are protected" not in shown_by(render)


def test_protection_of_all_rows_of_a_person_is_reported():
    shown = shown_by(report_html, by_person=True)
    assert "covers all rows of a person together" in shown
    assert "protected less" not in shown
    assert "protected less" in shown_by(report_html)


def test_the_page_names_the_files_of_a_student():
    shown = shown_by(report_html)
    assert "student.json" in shown
    assert "tacit.persistence.read_student" in shown
    assert "weights.npz" not in shown


@pytest.mark.parametrize(
    "changed", [{"teachers": "many"}, {"asked": True}, {"labels_only": 1}], ids=repr
)
def test_facts_without_a_student_are_rejected(changed):
    with pytest.raises(ValueError, match="student"):
        report_html(student(**changed))
    with pytest.raises(ValueError, match="student"):
        report_html(facts(student=[]))


def test_other_models_need_their_coefficients():
    with pytest.raises(ValueError, match="coef"):
        report_html({k: v for k, v in facts().items() if k != "coef"})
