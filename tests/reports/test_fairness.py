"""Groups on pages: what is certified, what is not, and what must not be published."""

import copy
import re

import pytest
from tests.reports.examples import facts
from tests.reports.skeleton import Skeleton
from tests.reports.test_hostile import HOSTILE
from tests.reports.test_pages import words

from tacit.fairness import _groups
from tacit.privacy import Budget, Ledger, PureDP
from tacit.reports import card_html, card_markdown, fairness_html, report_html
from tacit.reports._facts import Facts
from tacit.reports._fairness import NOTIONS

PAGES = [report_html, card_html, card_markdown]


def charge(epsilon=0.5, seeded=False):
    ledger = Ledger(Budget(epsilon))
    ledger.charge(PureDP(epsilon), "fairness", seeded=seeded)
    return ledger.report(("labels and groups are public",)).to_dict()


def group(label, sensitive, value=0.01, **more):
    ends = {"lower": value - 0.1, "upper": value + 0.2, "change": 0.2}
    names = {"label": label, "sensitive": sensitive, "rows": None}
    return {**names, "value": value, **ends, **more}


def certificate(**changed):
    return {
        "notion": "equalized_odds",
        "groups": [group("home", "female"), group("home", "male", -0.0312)],
        "aggregate": 0.02,
        "aggregate_interval": [0.0, 0.2],
        "largest_change": 0.2,
        "distance": 0.3,
        "failure": 0.01,
        "sampling": None,
        "bound": "one_sided",
        "charged": True,
        "privacy": charge(),
        **changed,
    }


def outcome(**changed):
    return {
        "title": "Readmission",
        "target": "readmitted",
        "sensitive": ["sex"],
        "measured": None,
        "certificate": certificate(),
        "no_certificate": None,
        **changed,
    }


def uncharged(**changed):
    return outcome(certificate=certificate(charged=False, privacy="private", **changed))


def measured():
    rows = [
        {"label": None, "sensitive": ["a", "b"], "rows": 1200, "value": 0.25},
        {"label": None, "sensitive": ["a", "c"], "rows": 30, "value": -0.5},
    ]
    found = {"notion": "accuracy_parity", "groups": rows, "aggregate": 0.375}
    why = "how much noise changed this model is not known."
    return outcome(
        certificate=None, measured=found, sensitive=["x", "y"], no_certificate=why
    )


@pytest.mark.parametrize("render", PAGES)
def test_report_and_card_show_figures_intervals_and_their_limits(render):
    shown = words(render(facts(fairness=outcome())))
    assert "minus the accuracy on all rows with that label" in shown
    assert "groups by sex" in shown
    assert "With probability 99%" in shown
    assert "No figure differs by more than 0.200" in shown
    assert "The certificate does not say that the model is fair" in shown
    assert "sex male, label home" in shown
    assert "Fairness" not in words(render(facts()))


@pytest.mark.parametrize("render", PAGES)
def test_ends_are_rounded_outwards(render):
    shown = words(render(facts(fairness=outcome())))
    # of -0.1312 and 0.1688
    assert "\N{MINUS SIGN}0.132" in shown
    assert "0.169" in shown


@pytest.mark.parametrize("render", PAGES)
def test_the_cost_of_the_certificate_is_added_to_the_fit(render):
    alone, both = facts(), facts(fairness=outcome())
    assert "upper limit" not in words(render({**alone, "releases": None}))
    shown = words(render({**both, "releases": None}))
    assert "upper limit" in shown
    assert "1.5" in shown


def test_a_score_without_a_report_is_still_reported_as_uncounted():
    known = {**facts(fairness=outcome()), "releases": None}
    assert known["score"] is not None
    assert Facts.of(known).uncounted


@pytest.mark.parametrize("render", PAGES)
def test_figures_without_a_charge_are_kept_out_of_reports(render):
    for private in (uncharged(), measured()):
        with pytest.raises(ValueError, match="private data"):
            render(facts(fairness=private))


def test_a_page_of_figures_that_were_not_charged_has_a_banner():
    for private in (uncharged(), measured()):
        assert "PRIVATE DATA: NOT FOR PUBLICATION" in fairness_html(private)
    assert "PRIVATE DATA" not in fairness_html(outcome())
    assert "ε = 0.5" in words(fairness_html(outcome())).replace(
        "\N{NO-BREAK SPACE}", " "
    )


def test_a_page_without_a_certificate_says_why():
    shown = words(fairness_html(measured()))
    assert "no certificate" in shown
    assert "how much noise changed this model is not known" in shown
    assert "x a, y c" in shown
    assert "1,200" in shown
    assert "Without noise, from" not in shown


def test_a_page_has_a_column_for_the_population_where_it_is_certified():
    wide = {"population_lower": -0.4, "population_upper": 0.6}
    groups = [group(None, "a", **wide), group(None, "b", **wide)]
    shown = words(fairness_html(uncharged(groups=groups, notion="accuracy_parity")))
    assert "Population, from" in shown
    assert "hold for rows that the model was not fitted on" in shown


def test_noise_of_a_fixed_seed_has_a_banner():
    seeded = outcome(certificate=certificate(privacy=charge(seeded=True)))
    assert "FIXED SEED" in fairness_html(seeded)
    assert "FIXED SEED" in report_html(facts(fairness=seeded))
    assert "FIXED SEED" not in fairness_html(outcome())


def poisoned(text):
    groups = [group(text, text), group("home", text)]
    return outcome(
        title=text,
        target=text,
        sensitive=[text],
        model=text,
        created=text,
        tacit=text,
        certificate=certificate(groups=groups),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_has_the_same_skeleton_whatever_the_names(text):
    harmless = Skeleton(fairness_html(poisoned("plain"))).parts
    assert Skeleton(fairness_html(poisoned(text))).parts == harmless


@pytest.mark.parametrize("text", HOSTILE)
def test_a_reason_is_shown_as_text(text):
    plain, hostile = measured(), measured()
    plain["no_certificate"], hostile["no_certificate"] = "plain", text
    harmless = Skeleton(fairness_html(plain)).parts
    assert Skeleton(fairness_html(hostile)).parts == harmless


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("certificate",), 3),
        (("certificate", "notion"), "kindness"),
        (("certificate", "groups"), None),
        (("certificate", "failure"), float("nan")),
        (("certificate", "groups", 0, "value"), "much"),
        (("certificate", "groups", 0, "lower"), True),
        (("certificate", "groups", 0, "rows"), "many"),
        (("certificate", "groups", 0, "sensitive"), ["a", "b"]),
        (("certificate", "privacy"), {}),
        (("certificate", "privacy"), "private"),
        (("sensitive",), None),
    ],
    ids=repr,
)
@pytest.mark.parametrize("render", [fairness_html, report_html])
def test_other_facts_are_rejected_in_one_sentence(render, path, value):
    known = copy.deepcopy(outcome())
    position = known
    for key in path[:-1]:
        position = position[key]
    position[path[-1]] = value
    given = known if render is fairness_html else facts(fairness=known)
    with pytest.raises(ValueError, match=r"must be what"):
        render(given)


def test_many_groups_are_truncated_and_the_page_says_so():
    groups = [group(None, f"g{k}") for k in range(250)]
    shown = words(fairness_html(uncharged(groups=groups, notion="accuracy_parity")))
    assert "the first 200 of 250 groups" in shown
    assert "The first 30 of 250 groups are drawn" in shown


def test_pages_explain_all_notions_of_the_library():
    assert tuple(NOTIONS) == _groups.NOTIONS


@pytest.mark.parametrize("render", PAGES)
def test_every_certificate_is_counted_and_shown(render):
    first = outcome(certificate=certificate(notion="demographic_parity"))
    second = outcome(sensitive=["region"], certificate=certificate())
    shown = words(render(facts(fairness=[first, second])))
    assert "groups by sex" in shown
    assert "groups by region" in shown
    assert Facts.of(facts(fairness=[first, second])).privacy.guarantee.epsilon == 2.0
    page = report_html(facts(fairness=[first, second]))
    ids = re.findall(' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
