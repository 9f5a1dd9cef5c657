"""Audits on pages: what was shown, what was not, and attacks that are private data."""

import copy

import numpy as np
import pytest
from tests.reports.examples import facts
from tests.reports.skeleton import Skeleton
from tests.reports.test_hostile import HOSTILE
from tests.reports.test_pages import words

from tacit import __version__
from tacit._json import readable_parameters
from tacit._random import as_generator
from tacit.audit import audit_estimator, audit_one_run, membership_attack
from tacit.audit._attacked import digest_of
from tacit.audit.one_run import bound_of_guesses
from tacit.linear_model import LogisticRegression
from tacit.reports import audit_html, card_html, card_markdown, report_html

ATTACKED = {
    "estimator": "LogisticRegression",
    "version": "tacit 0.1.0",
    "promise": {"epsilon": 1.0, "delta": 1e-6, "neighbors": "replace_one"},
    "parameters": {"x_norm": 3.0},
    "solver": "AMP",
}


def bound(**changes):
    """What an audit says it attacked, with its digest."""
    parts = {**ATTACKED, **changes}
    return {**parts, "sha256": digest_of(parts)}


MANY = {
    "estimator": "LogisticRegression",
    "attacked": bound(),
    "promise": ATTACKED["promise"],
    "claims_gaussian": False,
    "epsilon_lower": 0.6633578686597748,
    "most_shown": 4.732710543271776,
    "leaks": [],
    "refuses_far_rows": False,
    "confidence": 0.95,
    "method": "clopper-pearson",
    "runs": 1000,
    "rows": 10,
    "features": 2,
    "hits": [80, 20],
    "trials": [500, 500],
    "favors_first": True,
    "refuted": False,
    "verdict": "Not refuted: it proves nothing.",
}
REFUTED = {
    **MANY,
    "epsilon_lower": 1.6960146378035508,
    "hits": [200, 20],
    "refuted": True,
    "verdict": "Refuted.",
}
ONE = {
    **{n: MANY[n] for n in ("estimator", "attacked", "promise", "claims_gaussian")},
    "epsilon_lower": bound_of_guesses(
        (139, 240, 500), delta=1e-6, confidence=0.99, method="any"
    ).epsilon_lower,
    "most_shown": 4.682798169669695,
    "attribute": "coef_",
    "confidence": 0.99,
    "method": "any",
    "mu_lower": None,
    "runs": 1,
    "canaries": 1000,
    "judged": 500,
    "guesses": 240,
    "correct": 139,
    "features": 1000,
    "refuted": False,
    "verdict": "Not refuted: one run.",
}
ATTACK = {
    "score": "loss",
    "members": 1500,
    "non_members": 1400,
    "auc": 0.5312,
    "auc_interval": [0.5102, 0.5521],
    "rates": [
        {
            "asked": 0.001,
            "false_positive_rate": 0.0007,
            "false_positive_interval": [0.0, 0.004],
            "true_positive_rate": 0.0021,
            "true_positive_interval": [0.00041, 0.0059],
        }
    ],
    "confidence": 0.95,
    "assigned": None,
    "bound": None,
    "verdict": "Membership attack by loss.\nThis is private data.",
}
BOUND = bound_of_guesses((80, 100, 200), delta=1e-5, confidence=0.95, method="any")


def page(*audits, **more):
    return audit_html({"title": "Our audits", "audits": audits, **more})


def known(*audits):
    return facts(audits=list(audits), solver="AMP")


def test_an_audit_is_shown_with_its_largest_possible_result():
    shown = words(page(MANY, ONE))
    assert "epsilon is at least 0.6633" in shown  # rounded down
    assert "epsilon 4.732" in shown
    assert "1,000 on each of two tables" in shown
    assert "1,000 in one training" in shown
    assert "139 of 240" in shown
    assert "for neighbors that replace a row" in shown
    assert "never prove one" in shown
    assert "PRIVATE DATA" not in shown
    assert "REFUTES" not in shown


def test_a_refuted_guarantee_has_a_banner():
    assert "AN AUDIT REFUTES THE GUARANTEE" in page(ONE, REFUTED)
    for render in (report_html, card_html, card_markdown):
        shown = render(known(ONE, REFUTED))
        assert shown.count("AN AUDIT REFUTES THE GUARANTEE") == 1
        assert shown.index("AN AUDIT REFUTES THE GUARANTEE") < 15000  # at the top
        assert "AN AUDIT REFUTES THE GUARANTEE" not in render(known(ONE))


@pytest.mark.parametrize("render", [card_html, card_markdown])
def test_a_card_has_one_line_for_each_audit(render):
    shown = words(render(known(MANY, REFUTED)))
    for line in (
        "An audit by 1,000 trainings on each of two neighboring tables does not refute "
        "epsilon 1, which proves nothing: epsilon is at least 0.6633",
        "An audit by 1,000 trainings on each of two neighboring tables refutes "
        "epsilon 1: epsilon is at least 1.696",
    ):
        assert shown.count(line) == 1
    assert "An audit by" not in words(render(known()))


@pytest.mark.parametrize(
    ("audit", "changes", "match"),
    [
        (REFUTED, {"epsilon_lower": 0.5}, "states epsilon_lower 0.5, and its counts"),
        (REFUTED, {"epsilon_lower": 0.5, "refuted": False}, "states epsilon_lower 0.5"),
        (REFUTED, {"refuted": False}, "states refuted False, and its counts give True"),
        (MANY, {"refuted": True}, "states refuted True, and its counts give False"),
        (MANY, {"hits": [8, 2]}, "states epsilon_lower 0.663, and its counts give 0"),
        (MANY, {"hits": [501, 2]}, "states hits"),
        (MANY, {"hits": [-1, 2]}, "states hits"),
        (MANY, {"trials": [5000, 500]}, "states trials"),
        (MANY, {"most_shown": 2.0}, "states most_shown 2, and its counts give 4.73"),
        (MANY, {"confidence": 0.5}, "states epsilon_lower"),
        (MANY, {"confidence": 1.0}, "states confidence 1"),
        (MANY, {"method": "gaussian"}, "states epsilon_lower"),
        (MANY, {"method": "any"}, "states a method that is none of"),
        (MANY, {"refuses_far_rows": True}, "states epsilon_lower"),
        (MANY, {"epsilon_lower": float("nan")}, "states epsilon_lower nan"),
        (
            REFUTED,
            {"promise": {**ATTACKED["promise"], "epsilon": 8.0}},
            "states another promise than it attacked",
        ),
        (ONE, {"correct": 300}, "states 300 right of 240 guesses"),
        (ONE, {"correct": 200}, "states epsilon_lower 0.00846, and its counts give"),
        (ONE, {"judged": 900}, "states that 900 canaries judge"),
        (ONE, {"most_shown": 9.0}, "states most_shown 9"),
        (ATTACK, {"auc": 1.5}, "states auc 1.5"),
        (ATTACK, {"auc_interval": [0.6, 0.5]}, "states auc_interval from 0.6 to 0.5"),
        (
            ATTACK,
            {"bound": {**BOUND.to_dict(), "epsilon_lower": 0.0}},
            "states epsilon_lower 0, and its counts give",
        ),
    ],
)
def test_an_outcome_that_does_not_follow_from_its_counts_is_rejected(
    audit, changes, match
):
    page(audit)
    with pytest.raises(ValueError, match=match):
        page({**audit, **changes})
    if audit is not ATTACK:
        with pytest.raises(ValueError, match=match):
            report_html(known({**audit, **changes}))


def test_the_verdict_is_written_anew():
    shown = words(page({**REFUTED, "verdict": "Nothing to see."}))
    assert "Nothing to see" not in shown
    assert "Refuted: LogisticRegression guarantees epsilon 1 at delta 1e-06" in shown
    shown = words(page({**ATTACK, "verdict": "Nothing to see."}))
    assert "Nothing to see" not in shown
    assert "AUC 0.531 (0.510 to 0.552" in shown


def test_an_audit_of_an_earlier_version_counts_for_the_side_that_shows_more():
    old = {name: part for name, part in REFUTED.items() if name != "favors_first"}
    assert "REFUTES" in page(old)
    assert "REFUTES" in page({**old, "hits": [20, 200]})
    with pytest.raises(ValueError, match="states epsilon_lower 1"):
        page({**REFUTED, "hits": [20, 200]})


def test_no_audit_is_left_out_of_a_page_silently():
    assert "AN AUDIT REFUTES THE GUARANTEE" in page(*[ONE] * 49, REFUTED)
    with pytest.raises(ValueError, match="at most 50 audits, got 51"):
        page(*[ONE] * 50, REFUTED)
    with pytest.raises(ValueError, match="at most 50 audits, got 51"):
        report_html(known(*[ONE] * 50, REFUTED))


def test_a_membership_attack_has_a_banner_and_outward_ends():
    shown = words(page(MANY, ATTACK))
    assert "PRIVATE DATA: NOT FOR PUBLICATION" in shown
    assert "0.531, between 0.510 and 0.553" in shown
    assert "1,500 trained on, 1,400 not" in shown
    assert "0.1%" in shown
    assert "0.006" in shown
    assert "rows were not assigned at random" in shown
    bounded = {**ATTACK, "assigned": "coins", "bound": BOUND.to_dict()}
    assert "epsilon is at least 0.9" in words(page(bounded))


def test_a_report_has_a_section_of_audits_with_their_scope():
    shown = words(report_html(known(MANY, ONE)))
    assert "not about this particular model" in shown
    assert "139 of 240" in shown
    assert "139 of 240" not in words(report_html(known()))


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_a_membership_attack_is_kept_out_of_reports(render):
    with pytest.raises(ValueError, match="private data"):
        render(known(ATTACK))


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"estimator": "Ridge"}, "another estimator: Ridge, and the model has Log"),
        ({"version": "tacit 0.0.9"}, "another version: tacit 0.0.9, and the model"),
        (
            {"promise": {**ATTACKED["promise"], "epsilon": 8.0}},
            "another promise: epsilon 8, delta 1e-06, .* the model has epsilon 1,",
        ),
        ({"solver": "NoisySGD"}, "another solver: NoisySGD, and the model has AMP"),
        (
            {"parameters": {"x_norm": 1.0}},
            "another parameter x_norm: 1, and the model has 3",
        ),
        ({"parameters": {"x_norm": 3.0, "alpha": 2}}, "another parameter alpha: 2"),
    ],
)
def test_an_audit_of_something_else_is_kept_out_of_a_report(render, changes, match):
    render(known(MANY))
    stated = {name: part for name, part in changes.items() if name in MANY}
    other = {**MANY, **stated, "attacked": bound(**changes)}
    with pytest.raises(ValueError, match=match):
        render(known(ONE, other))


def test_an_audit_without_a_record_is_marked_and_kept_out_of_reports():
    old = {name: part for name, part in MANY.items() if name != "attacked"}
    assert "this audit has no parameters or version of the estimator" in words(
        page(old)
    )
    assert "not recorded" not in words(page(MANY))
    with pytest.raises(
        ValueError, match="an audit without a record of what it attacked"
    ):
        report_html(known(old))


@pytest.mark.parametrize("changes", [{"sha256": "0" * 64}, {"parameters": {}}, {1: 2}])
def test_an_audit_that_was_changed_is_kept_out_of_reports(changes):
    edited = {**MANY, "attacked": {**MANY["attacked"], **changes}}
    with pytest.raises(ValueError, match="was changed after it was written"):
        report_html(known(edited))


def test_results_of_the_library_make_a_page(seed):
    model = LogisticRegression(2.0, 1e-3, classes=[-1.0, 1.0], x_norm=1.0)
    rng = as_generator(seed)
    X = rng.normal(size=(60, 2)) / 3
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    fitted = model.fit(X[:30], y[:30])
    attack = membership_attack(fitted, (X[:30], y[:30]), (X[30:], y[30:]))
    audits = [
        audit_estimator(model, runs=40, n_rows=4, random_state=seed),
        audit_one_run(model, n_canaries=40, random_state=seed),
    ]
    shown = words(page(*(found.to_dict() for found in (*audits, attack))))
    for title in ("Many trainings", "One training", "Membership attack"):
        assert title in shown
    own = facts(
        audits=[found.to_dict() for found in audits],
        privacy=fitted.privacy_.to_dict(),
        tacit=__version__,
        parameters=readable_parameters(fitted),
        solver=audits[0].attacked["solver"],
    )
    assert "Many trainings on neighboring tables" in words(report_html(own))
    more = audit_estimator(model.set_params(epsilon=1.0), runs=60, n_rows=4)
    with pytest.raises(ValueError, match="an audit of another promise: epsilon 1"):
        report_html({**own, "audits": [more.to_dict()]})


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_has_the_same_skeleton_whatever_the_names(text):
    def poisoned(text):
        line = text.replace("\n", " ")
        named = {"estimator": text, "attacked": bound(estimator=text)}
        many = {**MANY, **named, "verdict": line, "leaks": [line]}
        attack = {**ATTACK, "score": text, "verdict": line}
        return page(many, attack, title=text, created=text, tacit=text)

    assert Skeleton(poisoned(text)).parts == Skeleton(poisoned("plain")).parts


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("promise",), None),
        (("promise", "epsilon"), "one"),
        (("promise", "neighbors"), "friends"),
        (("runs",), None),
        (("hits",), 3),
        (("hits",), [True, 2]),
        (("refuses_far_rows",), 0),
        (("leaks",), None),
    ],
    ids=repr,
)
def test_other_facts_are_rejected_in_one_sentence(path, value):
    audit = copy.deepcopy(MANY)
    position = audit
    for key in path[:-1]:
        position = position[key]
    position[path[-1]] = value
    with pytest.raises(ValueError, match="must be what"):
        page(audit)
    for wrong in (None, 3, [3], ["audit"]):
        with pytest.raises(ValueError, match="must be what"):
            audit_html({"audits": wrong})
