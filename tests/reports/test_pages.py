"""Contents of the pages, and that they stay small."""

import pytest
from tests.reports.examples import facts, ledger, privacy, record, weights
from tests.reports.skeleton import Skeleton

from tacit.privacy import (
    ApproxDP,
    Budget,
    Composed,
    GaussianNoise,
    PoissonSampled,
    PrivacyReport,
    PureDP,
    Repeated,
    TradeOff,
)
from tacit.reports import card_html, card_markdown, report_html
from tacit.reports._facts import Facts
from tacit.reports._format import NOTHING, TIMES, at_most
from tacit.tables import Column, Schema

CARDS = [card_html, card_markdown]
NEEDED = ["title", "estimator", "privacy", "features", "coef", "intercept"]


def words(page):
    return " ".join("".join(Skeleton(page).text).split())  # hard spaces too


@pytest.fixture(scope="module")
def page():
    return report_html(facts())


def test_the_page_loads_nothing(page):
    seen = Skeleton(page)
    assert all(link.startswith("#") for link in seen.links)
    targets = {link[1:] for link in seen.links}
    assert targets <= set(seen.ids)
    assert {tag for tag, *_ in seen.parts}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "embed", "form"}
    )
    assert "@import" not in page
    assert "url(http" not in page
    assert "default-src 'none'" in page


def test_identifiers_are_unique_and_every_drawing_has_a_title(page):
    seen = Skeleton(page)
    assert len(seen.ids) == len(set(seen.ids))
    drawings = [part for part in seen.parts if part[0] == "svg"]
    assert len(drawings) == 8  # four charts, for a desk and for a telephone
    assert all("aria-labelledby" in part for part in drawings)
    assert all("viewbox" in part and "width" not in part for part in drawings)


def test_the_guarantee_is_explained_in_words(page):
    shown = words(page)
    assert "factor of at most 2.72 (ε = 1)" in shown
    assert "1 in 1 million" in shown
    assert "replace that row by any other" in shown


def test_limits_on_an_attacker_are_those_of_the_exact_curve_and_of_the_budget(page):
    shown = words(page)
    fit = TradeOff.of(PrivacyReport.from_dict(privacy()))
    whole = TradeOff.of(Budget(3.0, 1e-6))
    for bound in (fit, whole):
        assert at_most(bound.accuracy()) in shown
        for rate in (0.001, 0.01, 0.1):
            assert at_most(float(bound.power(rate))) in shown
            assert at_most(float(bound.precision(rate))) in shown
        for chance in (0.05, 0.001):
            assert at_most(bound.posterior(chance)) in shown
    assert "In 999 of 1,000 fits, an attacker" in shown
    assert "Certainty in 19 of 20 fits, at most" in shown
    assert "Wasserman and Zhou" in shown


SCORE = privacy(budget=Budget(0.5), event=PureDP(0.5), label="private score")


def test_figures_are_about_everything_released():
    fit = privacy()
    extra = privacy(
        budget=Budget(3.0, 1e-7), event=GaussianNoise(2.0), label="intervals"
    )
    given = facts(releases=[fit, extra, SCORE])
    whole = PrivacyReport.from_dict(fit).entries[0].event
    bound = TradeOff.of(Composed((whole, GaussianNoise(2.0), PureDP(0.5))))
    alone = TradeOff.of(PrivacyReport.from_dict(fit))
    assert at_most(bound.accuracy()) != at_most(alone.accuracy())
    for render in (report_html, *CARDS):
        shown = words(render(given))
        assert f"at most {at_most(bound.accuracy())}" in shown
        assert f"at most {at_most(float(bound.power(0.01)))}" in shown
        assert f"at most {at_most(alone.accuracy())}" not in shown
        assert f"1.1 {TIMES} 10⁻⁶" in shown
        assert "factor of at most 90.02" in shown  # exp(4.5)
        assert "upper limit" in shown
        for label in ("readmission", "intervals", "private score"):
            assert label in shown


def test_a_charge_without_a_report_is_reported_as_uncounted():
    for render in (report_html, *CARDS):
        assert "about the fit only" in words(render(facts()))
    sampled = facts()["noise"] | {"covers": "noise and sampling"}
    assert Facts.of(facts(score=None, noise=sampled)).uncounted
    assert not Facts.of(facts(score=None)).uncounted
    assert not Facts.of(facts(releases=[privacy(), SCORE])).uncounted


@pytest.mark.parametrize(
    ("releases", "message"),
    [
        ([SCORE], "begin with"),
        ([privacy(), {}], "PrivacyReport.to_dict"),
        (
            [privacy(), privacy(budget=Budget(1.0, 1e-6, "add_or_remove_one"))],
            "same neighbors",
        ),
        (
            [privacy(), SCORE | {"promise": SCORE["promise"] | {"epsilon": 0.1}}],
            "charges that spend more than its guarantee",
        ),
    ],
)
def test_releases_that_do_not_fit_are_rejected(releases, message):
    with pytest.raises(ValueError, match=message):
        report_html(facts(releases=releases))


def test_the_owners_statement_and_the_time_of_the_records_are_shown():
    account = ledger() | {
        "as_of": "2026-11-15T16:37:00+00:00",
        "assumptions": ["the owner 'eve' states that nothing was released"],
    }
    for render in (report_html, *CARDS):
        shown = words(render(facts(ledger=account)))
        assert "as of 15 November 2026, 16:37 UTC" in shown
        assert "the owner 'eve' states" in shown


@pytest.mark.parametrize("render", [report_html, *CARDS])
def test_a_voided_charge_of_this_model_has_a_banner(render):
    alarm = "THE CHARGE OF THIS MODEL WAS VOIDED"
    assert alarm in render(facts(charge=2))  # what record 7 voids
    for other in (6, 7, None):
        assert not Facts.of(facts(charge=other)).voided


def test_an_allowance_shows_its_amount_and_is_the_owners_work():
    account = ledger()
    own = {"epsilon": 0.25, "delta": 1e-8, "neighbors": "replace_one"}
    account["records"][1] |= {"who": "m.keller", "analyst": "newcomer", "promise": own}
    account["records"][8] |= {"kind": "allow", "analyst": "stranger", "promise": None}
    shown = words(report_html(facts(ledger=account)))
    assert "newcomer may spend ε = 0.25, δ = 10⁻⁸" in shown
    assert "stranger may spend nothing" in shown
    people = shown[shown.index("Who did what") : shown.index("Records of the ledger")]
    assert "newcomer" not in people
    assert "stranger" not in people


def test_charges_and_columns_are_counted_as_people_count_them(page):
    shown = words(page)  # of three charges, one was voided
    assert "by 2 charges; open reservations count too." in shown
    assert "with 3 columns, encoded as 18" in shown
    assert "with 18 columns." in words(report_html(facts(schema=None)))


def test_the_ledger_shows_people_records_and_cancellations(page):
    shown = words(page)
    for part in (
        "m.keller",
        "quality",
        "refers to record 2",
        "computed on the wrong export",
        "reservation cancelled",
        "52.7%",
        f"--head 8:{8:064x}",
    ):
        assert part in shown


@pytest.mark.parametrize("render", CARDS)
def test_a_card_names_the_head_of_the_ledger(render):
    assert f"--head 8:{8:064x}" in render(facts())


@pytest.mark.parametrize("digest", ["; rm -rf ~", "$(x)", "abcdef12; x", "", None])
def test_only_a_hash_goes_into_a_command_line(digest):
    account = ledger()
    account["records"][-1]["hash"] = digest
    for render in CARDS:
        assert "--head" not in render(facts(ledger=account))


def test_accuracy_is_shown_only_if_it_was_charged(page):
    assert "charged with ε" in words(page)
    shown = words(report_html(facts(score=facts()["score"] | {"level": 0.95})))
    assert "0.764 to 0.800, with 95% confidence" in shown
    assert "always predicting the most frequent class, which was not measured" in shown
    without = words(report_html(facts(score=None)))
    assert "It was not measured." in without
    assert "private_score" in without


@pytest.mark.parametrize("render", [report_html, *CARDS])
def test_notes_are_apart_from_assumptions(render):
    note = "planned for 48211 rows; another number costs accuracy only"
    shown = words(render(facts()))
    before, after = shown.split("Notes, on which the guarantee does not rely:")
    assert "the number of rows is public" in before
    assert after.strip(" *").startswith(note)
    plain = privacy()
    del plain["notes"]
    assert "Notes, on which" not in render(facts(privacy=plain))


@pytest.mark.parametrize("render", [report_html, *CARDS])
def test_a_fixed_seed_has_a_banner_without_its_value(render):
    seeded = render(
        facts(privacy=privacy(seeded=True), parameters={"random_state": 987123})
    )
    assert "FIXED SEED: NOT PRIVATE" in seeded
    assert "987123" not in seeded


def test_without_a_fixed_seed_there_is_no_alarm(page):
    assert "FIXED SEED" not in page
    for render in CARDS:
        assert "FIXED SEED" not in render(facts())


@pytest.mark.parametrize("render", [report_html, *CARDS])
def test_a_seeded_charge_elsewhere_in_the_ledger_has_a_banner_too(render):
    account = ledger()
    account["records"][2]["seeded"] = True
    shown = render(facts(ledger=account))
    assert "FIXED SEED: NOT PRIVATE" in shown
    assert "Some charges in the ledger" in shown


@pytest.mark.parametrize("render", [report_html, *CARDS])
def test_what_is_spent_never_looks_smaller_than_it_is(render):
    account = ledger() | {"spent": 1.58341}
    account["records"][2]["spent_after"] = 0.123412
    shown = words(render(facts(ledger=account)))
    assert "1.584" in shown
    assert "1.583" not in shown
    assert "0.1234" not in shown
    assert ("0.1235" in shown) == (render is report_html)


@pytest.mark.parametrize("render", [report_html, *CARDS])
def test_the_number_of_rows_is_left_out_where_it_is_private(render):
    budget = Budget(1.0, 1e-6, "add_or_remove_one")
    report = privacy(budget=budget)
    report["assumptions"] = []
    shown = render(facts(privacy=report, rows=31337, ledger=None))
    assert "31,337" not in shown
    assert "31337" not in shown
    assert "out of the data" in shown


def test_the_number_of_rows_is_shown_where_it_is_public(page):
    assert "48,211 rows" in words(page)
    for render in CARDS:
        assert "48,211 rows were used for the fit" in render(facts())


@pytest.mark.parametrize(
    "report",
    [
        privacy(budget=Budget(1.0), event=PureDP(1.0)),
        privacy(budget=Budget(2.0, 0.1), event=ApproxDP(1.0, 0.05)),
        privacy(budget=Budget(1e5, 1e-6), event=PureDP(1e4)),
        privacy(budget=Budget(1e-7), event=PureDP(1e-8)),
        privacy(
            budget=Budget(1.0, 1e-9, "add_or_remove_one"),
            event=Repeated(PoissonSampled(GaussianNoise(3.0), 0.01), 10),
        ),
    ],
    ids=["pure", "approximate", "huge", "tiny", "sampled"],
)
def test_unusual_guarantees_have_a_page(report):
    shown = words(report_html(facts(privacy=report, ledger=None)))
    assert "Each (ε, δ) on or above the line is a valid guarantee." in shown
    assert "nan" not in shown.lower().split()
    assert "undefined" not in shown


def test_optional_facts_may_be_missing():
    few = {key: facts()[key] for key in NEEDED}
    shown = words(report_html(few))
    assert "No ledger was given" in shown
    assert "There are no error bars: noise is added" in shown
    assert "No schema was saved" in shown
    assert card_markdown(few).startswith("# Model card: Readmission")


@pytest.mark.parametrize("render", CARDS)
@pytest.mark.parametrize(
    ("missing", "left_out"),
    [
        ("ledger", "The whole data set has a budget"),
        ("schema", "confirmed"),
        ("score", "Privately measured accuracy"),
        ("classes", "readmitted"),
    ],
)
def test_a_card_leaves_out_what_was_not_given(render, missing, left_out):
    given = facts(schema=None) if missing == "classes" else facts()
    assert left_out in words(render(given))
    assert left_out not in words(render(given | {missing: None}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coef": [[1.0]]}, "one column for each of the 18 features"),
        ({"intercept": [1.0, 2.0]}, "must have 1 entries"),
        ({"privacy": {}}, "what PrivacyReport.to_dict returned"),
        ({"selected": ["shoe size"]}, "must be among facts"),
        (
            {"noise": {"low": [[0.0]], "high": [[0.0]]}},
            "must have the shape of facts",
        ),
    ],
)
def test_facts_that_do_not_fit_are_rejected(change, message):
    with pytest.raises(ValueError, match=message):
        report_html(facts(**change))


@pytest.mark.parametrize("entry", NEEDED)
def test_a_missing_fact_is_named(entry):
    few = {key: value for key, value in facts().items() if key != entry}
    with pytest.raises(ValueError, match=f"must have the entry '{entry}'"):
        report_html(few)


@pytest.mark.parametrize("render", [report_html, card_html, card_markdown])
def test_selected_columns_are_shown_with_a_note_on_their_noise(render):
    shown = words(render(facts(selected=["age", "sodium"])))
    assert "2 of 18 columns have a nonzero coefficient: age, sodium" in shown
    assert "is itself noisy" in shown
    shown = words(render(facts(selected=["age"])))
    assert "1 of 18 columns has a nonzero coefficient: age" in shown
    assert "0 of 18 columns have a nonzero coefficient" in words(
        render(facts(selected=[]))
    )
    assert "have a nonzero coefficient" not in words(render(facts()))


def test_a_long_list_of_selected_columns_is_truncated():
    p = 10_000
    names = [f"word {j}" for j in range(p)]
    given = {"features": names, "coef": [weights(p)], "noise": None, "selected": names}
    page = report_html(facts(**given))
    assert len(page) < 210_000
    assert "and 9,800 more" in words(page)


def test_a_wide_model_stays_small():
    p = 10_000
    page = report_html(
        facts(features=[f"word {j}" for j in range(p)], coef=[weights(p)], noise=None)
    )
    assert len(page) < 200_000
    shown = words(page)
    assert "The largest 30 of 10,000 coefficients" in shown
    assert "the largest 50 of 10,000 coefficients" in shown
    assert "weights.npz" in shown
    assert page.count('<td class="name">word ') == 50


def test_every_class_has_its_panel_and_many_classes_stay_small():
    k, p = 30, 300
    page = report_html(
        facts(
            features=[f"pixel {j}" for j in range(p)],
            classes=[f"digit {c}" for c in range(k)],
            coef=[weights(p, c) for c in range(k)],
            intercept=[0.0] * k,
            noise=None,
        )
    )
    assert len(page) < 500_000
    shown = words(page)
    assert "digit 0" in shown
    assert "digit 19" in shown
    assert "10 more classes are not shown" in shown


def test_every_coefficient_of_a_small_model_is_in_the_table(page):
    shown = words(page)
    for name in facts()["features"]:
        assert name in shown
    assert page.count("<td>uncertain</td>") + page.count("<td>clear</td>") == 18
    low = facts()["noise"]["low"][0]
    high = facts()["noise"]["high"][0]
    crossing = sum(a <= 0 <= b for a, b in zip(low, high, strict=True))
    assert page.count("<td>uncertain</td>") == crossing > 0


def test_a_long_ledger_stays_small_and_says_what_it_leaves_out():
    n = 5000
    account = ledger() | {
        "records": [
            record(
                i, "charge" if i % 50 else "void", spent_after=3 * i / n, epsilon=0.1
            )
            for i in range(n)
        ]
    }
    page = report_html(facts(ledger=account))
    assert len(page) < 300_000
    shown = words(page)
    assert "of 5,000 records" in shown
    assert "4,940 records are left out here" in shown
    assert f"charge {TIMES} 4,900" in shown
    assert "of the other marks, the last 80" in shown


def test_a_ledger_without_records_has_a_page():
    empty = ledger() | {"records": [], "spent": 0.0}
    assert "by 0 charges" in words(report_html(facts(ledger=empty)))


def test_cards_mark_what_the_team_fills_in():
    for render in CARDS:
        card = render(facts())
        assert card.count("To be filled in by the team") == 4
        assert "tacit ledger verify" in card
        for section in ("Intended use", "Limitations", "Ethical considerations"):
            assert section in card


def test_a_markdown_card_has_a_table_of_columns():
    lines = card_markdown(facts()).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| name |"))
    bars = [line.count("|") for line in lines[start : start + 5]]
    assert len(set(bars)) == 1
    assert lines[start + 1].startswith("|---|")
    assert lines[start] == (
        "| name | kind | values | if missing or not listed | source | confirmed by |"
    )
    assert lines[start + 2].startswith("| age | number | 0 to 120 | refuse |")
    assert lines[start + 3].startswith("| sex | category | female, male | refuse |")


def test_a_coefficient_is_also_shown_per_unit_of_its_column():
    schema = Schema(
        (
            Column("age", "number", range=(20.0, 100.0)),
            Column("sex", "category", categories=("f", "m")),
            Column("dose", "number", range=(0.0, 10.0), zero=2.0),
        ),
        target=Column("ill", "category", categories=("no", "yes")),
    )
    few = {"features": schema.feature_names, "coef": [[8.0, 1.5, -1.5, 4.0]]}
    given = facts(**few, noise=None, schema=schema.to_dict())
    page = report_html(given)
    assert "per half of the range" in words(page)
    # 8 for 40 years; 4 for the eight units from 2 to 10
    for cells in (("age", "8", "0.2"), ("dose", "4", "0.5"), ("sex=f", "1.5", NOTHING)):
        name, *figures = cells
        row = "".join(f'<td class="n">{figure}</td>' for figure in figures)
        assert f'<td class="name">{name}</td>{row}' in page
    other = words(report_html(given | {"schema": facts()["schema"]}))
    assert "per half of the range" not in other


@pytest.mark.parametrize("render", [report_html, *CARDS])
def test_the_title_says_what_is_predicted(render):
    assert "Readmission within 30 days, predicting readmitted" in words(render(facts()))
    assert "Prediction of readmitted" in words(render(facts(title="readmitted")))


def weak(epsilon=1.0, delta=1e-6, **more):
    event = GaussianNoise(29.9)
    return facts(privacy=privacy(budget=Budget(epsilon, delta), event=event), **more)


@pytest.mark.parametrize("page", [report_html, card_html, card_markdown])
def test_a_weak_guarantee_has_a_banner(page):
    assert "WEAK GUARANTEE" not in page(weak())
    text = page(weak(50.0, 0.5, rows=None))
    assert "WEAK GUARANTEE" in text
    assert "epsilon 50 is a weak guarantee" in text
    assert "delta 0.5 is too large: with that probability" in text
    # a delta that is small by itself, and not for so few rows
    few = page(weak(delta=5e-4, rows=10_000))
    assert "is above one over the number of rows, 10,000" in few
    assert "WEAK GUARANTEE" not in page(weak(delta=5e-4, rows=None))


@pytest.mark.parametrize("page", [report_html, card_html, card_markdown])
def test_a_weak_budget_of_the_data_set_has_a_banner_without_its_account(page):
    budget = {"epsilon": 50.0, "delta": 1e-6, "neighbors": "replace_one"}
    text = page(weak(ledger=None, budget=budget))
    assert "Budget of the data set: epsilon 50 is a weak guarantee" in text
    assert "WEAK GUARANTEE" not in page(weak(ledger=None))
