"""Students of private teachers: whose answers they learnt from, and no weights."""

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
def told_by(render, **changed):
    return words(render(student(**changed)))


@pytest.mark.parametrize("render", PAGES)
def test_teachers_questions_and_the_one_charge_are_told(render):
    told = told_by(render)
    assert "learnt from the answers of 250 teachers" in told
    assert "3,000 rows were asked about, and 2,900 got an answer" in told
    assert "One charge covers all answers" in told


@pytest.mark.parametrize("render", PAGES)
def test_a_student_has_no_coefficients(render):
    told = told_by(render)
    assert "oefficient" not in told
    assert "linear" not in told
    # while others have
    assert "oefficient" in words(render(facts()))


@pytest.mark.parametrize("render", PAGES)
def test_labels_alone_are_said_to_be_protected(render):
    assert "Labels alone are protected" in told_by(render, labels_only=True)
    assert "Labels alone are protected" not in told_by(render)


def test_rows_of_a_person_are_said_to_be_protected_together():
    told = told_by(report_html, by_person=True)
    assert "about all rows of a person together" in told
    assert "protected less" not in told
    assert "protected less" in told_by(report_html)


def test_the_page_names_the_files_of_a_student():
    told = told_by(report_html)
    assert "student.json" in told
    assert "tacit.persistence.read_student" in told
    assert "weights.npz" not in told


@pytest.mark.parametrize(
    "changed", [{"teachers": "many"}, {"asked": True}, {"labels_only": 1}], ids=repr
)
def test_what_says_nothing_of_a_student_is_refused(changed):
    with pytest.raises(ValueError, match="student"):
        report_html(student(**changed))
    with pytest.raises(ValueError, match="student"):
        report_html(facts(student=[]))


def test_other_models_need_their_weights():
    with pytest.raises(ValueError, match="coef"):
        report_html({k: v for k, v in facts().items() if k != "coef"})
