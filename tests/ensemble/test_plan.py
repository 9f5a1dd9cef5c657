"""Plans for teachers: what they expect is what the mechanisms then do."""

import json
from dataclasses import replace
from math import nan, nextafter

import numpy as np
import pytest
from scipy import stats
from tests.stat import (
    assert_counts_detect,
    assert_counts_follow,
    assert_detects,
    assert_follows,
    assert_probability,
)

from tacit.ensemble import compare_mechanisms, plan_teachers
from tacit.ensemble._labeler_plan import AUTO_NUMBER_ROWS, AUTO_ROWS, auto_teachers
from tacit.ensemble._teacher_plan import TeacherPlan, agreement_groups
from tacit.exceptions import PlanError
from tacit.mechanisms import NoAnswer, as_generator
from tacit.mechanisms._votes._plans import (
    CLASS_VOTES,
    NUMBER_VOTES,
    VoteTerms,
    stable_votes,
    vote_mechanism,
)
from tacit.mechanisms._votes._probabilities import VoteDistribution
from tacit.mechanisms._votes._stable import StableVotes
from tacit.privacy import Budget

BUDGET = Budget(4.0, 1e-6)
HARD = [(0.9, 0.9), (0.1, 0.5)]


def drawn_counts(law, n, rng):
    rest = (1 - law.agreement) / (law.n_classes - 1)
    shares = [law.agreement, *[rest] * (law.n_classes - 1)]
    return rng.multinomial(law.n_teachers, shares, size=n)


def streams(mechanism, laws, n_queries, n_streams, rng):
    """Return how many questions of each stream are answered, and how many rightly."""
    answered, right = [], []
    shares = [share for share, _ in laws]
    for _ in range(n_streams):
        state, told = mechanism.init(rng), []
        for _ in range(n_queries):
            if mechanism.remaining(state).ended:
                break
            law = laws[rng.choice(len(laws), p=shares)][1]
            (counts,) = drawn_counts(law, 1, rng)
            votes = np.repeat(np.arange(law.n_classes), counts)
            state, answer = mechanism.step(state, votes, rng)
            if not isinstance(answer.value, NoAnswer):
                told.append(answer.value == 0)
        answered.append(len(told))
        right.append(sum(told))
    return np.array(answered), np.array(right)


def laws_for(n_teachers, n_classes, groups=HARD):
    return tuple(
        (share, VoteDistribution(n_teachers, a, n_classes)) for share, a in groups
    )


def near_mean(samples, mean, p_fail=1e-6):
    """Whether a mean is not refuted, by the normal law of that of the samples."""
    error = np.std(samples, ddof=1) / np.sqrt(len(samples))
    return abs(np.mean(samples) - mean) <= -stats.norm.ppf(p_fail / 2) * error


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_votes_win_as_often_as_the_distribution_says(n_classes, seed):
    rng = as_generator(seed)
    law, scale, n = VoteDistribution(60, 0.6, n_classes), 15.0, 20_000
    counts = drawn_counts(law, n, rng) + scale * rng.normal(size=(n, n_classes))
    won = int(np.sum(counts.argmax(axis=1) == 0))
    expected = law.expected(law.right(scale))
    # the normal law of the other labels is near, and exact with two
    slack = 0.0 if n_classes == 2 else 0.006
    low, high = stats.binomtest(won, n).proportion_ci(1 - 1e-6)
    assert low - slack <= expected <= high + slack
    # control: half the noise is another law
    assert not low - slack <= law.expected(law.right(scale / 2)) <= high + slack


def test_leads_of_two_classes_follow_the_binomial_distribution(seed):
    rng = as_generator(seed)
    law = VoteDistribution(30, 0.7, 2)
    counts = drawn_counts(law, 5_000, rng)
    leads = counts[:, 0] - counts[:, 1]
    found = [int(np.sum(leads == lead)) for lead in law.leads[:, 0]]
    assert_counts_follow(found, law.probabilities)
    other = VoteDistribution(30, 0.65, 2)
    found = [int(np.sum(leads == lead)) for lead in other.leads[:, 0]]
    assert_counts_detect(found, other.probabilities)


def test_leads_of_many_classes_are_near(seed):
    law = VoteDistribution(200, 0.4, 5)
    counts = drawn_counts(law, 20_000, as_generator(seed))
    leads = counts[:, 0] - counts[:, 1:].max(axis=1)
    expected = law.expected(law.leads.astype(float))
    assert expected == pytest.approx(leads.mean(), abs=0.6)
    assert expected != pytest.approx(0.4 * 200 - 0.15 * 200, abs=0.6)


@pytest.mark.parametrize(
    ("name", "n_teachers", "n_classes"),
    [
        ("gnmax", 100, 2),
        ("gnmax", 100, 10),
        ("confident_gnmax", 150, 3),
        ("stable", 150, 2),
        ("stable", 150, 4),
    ],
)
def test_a_query_meets_what_was_planned(name, n_teachers, n_classes, seed):
    rng = as_generator(seed)
    terms = VoteTerms(
        n_teachers, 300, n_classes, max_refusals=3, max_answers=300, agreement=0.8
    )
    mechanism = vote_mechanism(name, BUDGET, terms)
    laws = laws_for(n_teachers, n_classes, [(0.8, 0.85), (0.2, 0.5)])
    expected = mechanism.outcome(laws)
    # single questions, since those of one stream share a threshold
    n = 800
    answered, right = streams(mechanism, laws, 1, n, rng)
    assert_probability(int(answered.sum()), n, min(expected.answered, 1.0))
    low, high = stats.binomtest(int(right.sum()), n).proportion_ci(1 - 1e-6)
    assert low - 0.01 <= expected.right <= high + 0.01
    # control: with a quarter of the teachers it is another law
    fewer = mechanism.outcome(laws_for(n_teachers // 4, n_classes))
    assert not low - 0.01 <= fewer.right <= high + 0.01


@pytest.mark.parametrize("name", ["stable", "published", "confident_gnmax"])
def test_as_many_queries_are_answered_as_planned(name, seed):
    rng = as_generator(seed)
    n_teachers, n_queries = (9_000 if name == "published" else 250), 40
    terms = VoteTerms(
        n_teachers, n_queries, 2, max_refusals=2, max_answers=15, agreement=0.9
    )
    mechanism = vote_mechanism(name, BUDGET, terms)
    laws = laws_for(n_teachers, 2)
    answered, _ = streams(mechanism, laws, n_queries, 80, rng)
    expected = mechanism.fraction_answered(laws, n_queries)
    assert near_mean(answered / n_queries, expected)
    # control: if no limit ended the streams, more would be answered
    assert not near_mean(answered / n_queries, mechanism.outcome(laws).answered)


@pytest.mark.parametrize(
    ("refusals", "n_queries"), [(2, 40), (5, 200), (20, 200), (100, 2000)]
)
def test_runs_between_withheld_answers_have_about_their_mean_length(
    refusals, n_queries, seed
):
    # a threshold for each withheld answer, where the distribution of a plan is not
    # exact
    rng = as_generator(seed)
    mechanism, laws = StableVotes(0.2, 0.6, 1e-3, 2, refusals), laws_for(150, 2)
    rates = mechanism.refusals_by_level(laws)
    runs = rng.geometric(rng.choice(rates, size=(20_000, refusals + 1)))
    ends = np.cumsum(runs, axis=1)
    asked = np.minimum(ends[:, -1], n_queries)
    answered = np.mean(asked - np.sum(ends <= n_queries, axis=1)) / n_queries
    expected = mechanism.fraction_answered(laws, n_queries)
    assert expected == pytest.approx(answered, rel=0.03)
    # control: were all withheld answers as likely as on average, fewer would be
    # answered
    mean = rates.mean()
    rejected = stats.binom.sf(np.arange(refusals + 1), n_queries, mean).sum()
    wrong = (1 / mean - 1) * rejected / n_queries
    assert wrong != pytest.approx(answered, rel=0.03)


def test_thresholds_average_to_the_release_probability():
    mechanism = stable_votes(BUDGET, 2, 5)
    laws = laws_for(150, 2)
    rejected = mechanism.refusals_by_level(laws)
    assert rejected.mean() == pytest.approx(
        1 - mechanism.outcome(laws).answered, abs=2e-3
    )
    # runs of questions that share a threshold are longer than independent ones
    assert np.mean(1 / rejected) > 1.02 / rejected.mean()


@pytest.mark.parametrize("name", CLASS_VOTES)
def test_the_lead_that_is_needed_is_enough_and_one_less_is_not(name):
    terms = VoteTerms(500, 100, 2, max_refusals=3)
    mechanism = vote_mechanism(name, BUDGET, terms)
    lead = mechanism.lead_needed()

    def told(lead):
        if name in ("gnmax", "confident_gnmax"):
            return stats.norm.cdf(lead / (2**0.5 * mechanism.scale))
        return mechanism.release_probability(mechanism.distance(lead))

    assert told(lead) >= 0.99
    assert told(lead - 1) < 0.99


def test_means_err_as_much_as_planned(seed):
    rng = as_generator(seed)
    mechanism = vote_mechanism("mean", BUDGET, VoteTerms(300, 100, y_range=(0, 10)))
    votes, state = np.full(300, 5.0), mechanism.init(rng)
    errors = [mechanism.step(state, votes, rng)[1].value - 5 for _ in range(400)]
    expected = mechanism.error(300, 0.5)
    assert_follows(errors, stats.norm(0, expected).cdf)
    assert_detects(errors, stats.norm(0, mechanism.error(100, 0.5)).cdf)


def test_medians_follow_the_distribution_that_their_error_is_of(seed):
    rng = as_generator(seed)
    mechanism = vote_mechanism("median", BUDGET, VoteTerms(100, 100, y_range=(0, 10)))
    votes = 5 + 0.5 * stats.norm.ppf((np.arange(100) + 0.5) / 100)
    state = mechanism.init(rng)
    answers = [mechanism.step(state, votes, rng)[1].value for _ in range(500)]
    edges = [0, 4.8, 4.95, 5.05, 5.2, 10]
    found, _ = np.histogram(answers, edges)
    values, chances = mechanism.distribution(votes)
    expected, _ = np.histogram(values, edges, weights=chances)
    assert_counts_follow(found, expected)
    wrong, chances = mechanism.distribution(votes + 0.1)
    expected, _ = np.histogram(wrong, edges, weights=chances)
    assert_counts_detect(found, expected)
    error = float(np.sqrt(mechanism.distribution(votes)[1] @ (values - 5) ** 2))
    assert mechanism.error(100, 0.5) == pytest.approx(error)


def test_all_mechanisms_are_compared_and_one_is_planned():
    terms = {"agreement": HARD, "n_teachers": 400}
    plans = compare_mechanisms(20_000, 100, 1.0, 1e-6, **terms)
    names = [plan.mechanism for plan in plans]
    # what is there to compare with has to be named
    assert names == [name for name in CLASS_VOTES if name != "published"]
    named = compare_mechanisms(20_000, 100, 1.0, 1e-6, mechanisms=CLASS_VOTES, **terms)
    assert [plan.mechanism for plan in named] == list(CLASS_VOTES)
    assert named[: len(plans)] == plans
    for plan in named:
        named = {"mechanism": plan.mechanism, **terms}
        assert plan_teachers(20_000, 100, 1.0, 1e-6, **named) == plan
    assert plan_teachers(20_000, 100, 1.0, 1e-6, **terms) == plans[0]
    terms = {"y_range": (0, 1), "n_teachers": 100}
    numbers = compare_mechanisms(20_000, 100, 1.0, 1e-6, **terms)
    assert plan_teachers(20_000, 100, 1.0, 1e-6, **terms) == numbers[0]
    assert [plan.mechanism for plan in numbers] == list(NUMBER_VOTES)
    assert all(plan.error > 0 and plan.label_accuracy is None for plan in numbers)


def test_what_cannot_keep_its_guarantee_is_left_out_and_rejected_by_name():
    terms = {"n_teachers": 4000, "max_refusals": 200, "agreement": 0.9}
    named = {"mechanisms": CLASS_VOTES, **terms}
    plans = compare_mechanisms(20_000, 1000, 20.0, 1e-6, **named)
    assert "published" not in [plan.mechanism for plan in plans]
    with pytest.raises(PlanError, match="published"):
        plan_teachers(20_000, 1000, 20.0, 1e-6, mechanism="published", **terms)


def test_no_delta_is_rejected_in_one_sentence():
    for planned in (plan_teachers, compare_mechanisms):
        with pytest.raises(PlanError, match=r"delta"):
            planned(1000, 10, 1.0, 0.0, n_teachers=10)


def test_only_stable_votes_have_no_limit_of_queries():
    terms = {"n_teachers": 400, "mechanisms": CLASS_VOTES}
    plans = compare_mechanisms(20_000, 100, 1.0, 1e-6, **terms)
    limits = {plan.mechanism: plan.max_queries for plan in plans}
    assert limits.pop("stable") is None
    assert set(limits.values()) == {100}


def test_more_teachers_of_one_agreement_are_never_worse():
    def planned(name, n_teachers):
        plan = plan_teachers(
            10**5,
            200,
            1.0,
            1e-6,
            agreement=HARD,
            mechanism=name,
            n_teachers=n_teachers,
            max_refusals=10,
        )
        return plan.fraction_right

    for name in ("gnmax", "stable"):
        shares = [planned(name, n) for n in (50, 200, 800, 3200)]
        assert shares == sorted(shares)
        assert shares[-1] > shares[0] + 0.2


def test_teachers_are_chosen_by_what_rows_do_for_them():
    def learned(rows):
        # with few rows a teacher guesses
        return 0.5 + 0.45 * stats.norm.cdf(2 * np.log(rows / 50))

    plan = plan_teachers(20_000, 100, 1.0, 1e-6, agreement=learned, mechanism="gnmax")
    others = [
        plan_teachers(
            20_000,
            100,
            1.0,
            1e-6,
            agreement=learned,
            mechanism="gnmax",
            n_teachers=n,
        )
        for n in (10, 50, 100, 200, 400, 1000, 4000, 20_000)
    ]
    assert 20 < plan.n_teachers < 2000
    assert plan.fraction_right >= 0.985 * max(other.fraction_right for other in others)
    # far fewer and far more are worse, so that there was something to choose
    assert plan.fraction_right > others[0].fraction_right + 0.1
    assert plan.fraction_right > others[-1].fraction_right + 0.1


def test_hard_queries_have_no_answer():
    terms = {"mechanism": "stable", "n_teachers": 1000, "max_refusals": 5}
    easy = plan_teachers(20_000, 500, 1.0, 1e-6, agreement=0.95, **terms)
    mixed = plan_teachers(20_000, 500, 1.0, 1e-6, agreement=HARD, **terms)
    assert easy.fraction_answered > 0.99
    assert mixed.fraction_answered < 0.3
    assert mixed.label_accuracy > 0.99


@pytest.mark.parametrize(
    "agreement",
    [0.3, 1.1, "much", [], [(0.5, 0.9)], [(1.5, 0.9), (-0.5, 0.9)], [0.9], True, None],
)
def test_agreement_of_another_kind_is_rejected(agreement):
    with pytest.raises(ValueError, match="agreement must be"):
        plan_teachers(1000, 10, 1.0, 1e-6, agreement=agreement, n_teachers=10)


def test_a_function_may_say_less_than_guesses():
    assert agreement_groups(lambda rows: 0.1, 5, 4) == ((1.0, 0.25),)
    assert agreement_groups(lambda rows: [(1.0, 0.1 * rows)], 5, 4) == ((1.0, 0.5),)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"n_rows": 0}, "n_rows"),
        ({"n_queries": 0}, "n_queries"),
        ({"n_classes": 1}, "n_classes"),
        ({"mechanism": "mean"}, "mechanism"),
        ({"n_teachers": 0}, "n_teachers"),
        ({"n_teachers": 101}, "n_teachers must be at most the 100 rows"),
        ({"epsilon": -1}, "epsilon"),
        ({"neighbors": "some"}, "neighbors"),
    ],
)
def test_wrong_values_are_named(changed, named):
    given = {"n_rows": 100, "n_queries": 10, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ValueError, match=named):
        plan_teachers(**{**given, **changed})


@pytest.mark.parametrize("n_teachers", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.01, 1000.0])
def test_few_teachers_and_odd_budgets_have_plans(n_teachers, epsilon):
    plans = compare_mechanisms(
        5, 1, epsilon, 1e-6, n_teachers=n_teachers, n_classes=3, max_refusals=0
    )
    for plan in plans:
        assert 0 <= plan.fraction_answered <= 1
        assert 0 <= plan.label_accuracy <= 1
    if epsilon == 1000.0 and n_teachers == 1:
        assert plans[0].label_accuracy == pytest.approx(0.8, abs=0.02)


def test_teachers_that_always_agree_are_right():
    plan = plan_teachers(
        10**4, 100, 1.0, 1e-6, agreement=1.0, n_teachers=1000, mechanism="gnmax"
    )
    assert plan.label_accuracy > nextafter(0.9999, 0)


def test_a_plan_is_read_as_lines_and_as_plain_data():
    plans = compare_mechanisms(20_000, 100, 1.0, 1e-6, agreement=HARD, n_teachers=40)
    for plan in plans:
        assert isinstance(plan, TeacherPlan)
        text = str(plan)
        assert 4 <= len(text.splitlines()) <= 8
        assert "40, each with 500 rows" in text
        data = json.loads(json.dumps(plan.to_dict()))
        assert data["rows_per_teacher"] == 500
        assert data["budget"]["delta"] == 1e-6
    stable = plans[CLASS_VOTES.index("stable")]
    assert "more than there are teachers" in str(stable)
    assert "more than there are teachers" not in str(replace(stable, least_lead=39))


@pytest.mark.parametrize("name", [*CLASS_VOTES, *NUMBER_VOTES])
def test_auto_leaves_each_teacher_some_rows(name):
    facts = {"n_queries": 100}
    facts |= {"y_range": (0.0, 1.0)} if name in NUMBER_VOTES else {"n_classes": 2}
    least = AUTO_NUMBER_ROWS if name in NUMBER_VOTES else AUTO_ROWS
    numbers = [
        auto_teachers(n_rows, Budget(1.0, 1e-6), name, **facts)
        for n_rows in (1, least, 500, 20_000)
    ]
    assert numbers[:2] == [1, 1]
    assert numbers == sorted(numbers)
    assert all(
        n <= max(1, rows // least)
        for n, rows in zip(numbers, (1, least, 500, 20_000), strict=True)
    )


def test_auto_takes_the_fewest_teachers_that_noise_does_not_disturb():
    facts = {"n_queries": 100, "n_classes": 2, "agreement": 0.8}
    found = auto_teachers(10**6, BUDGET, "gnmax", **facts)

    def accuracy(n_teachers):
        mechanism = vote_mechanism("gnmax", BUDGET, VoteTerms(n_teachers, **facts))
        return mechanism.outcome(
            ((1.0, VoteDistribution(n_teachers, 0.8, 2)),)
        ).accuracy

    assert accuracy(found) >= 0.99 > accuracy(found - 1)
    assert auto_teachers(10**7, BUDGET, "gnmax", **facts) == found
    # a smaller budget takes more of them
    assert auto_teachers(10**6, Budget(1.0, 1e-6), "gnmax", **facts) > 2 * found


@pytest.mark.parametrize(
    "given",
    [
        {"n_queries": 10**9},
        {"n_queries": 10**18},
        {"n_rows": 10**30},
        {"epsilon": 1e9},
        {"max_refusals": 10**30},
        {"agreement": [(nan, 0.5)]},
        {"agreement": True},
    ],
)
@pytest.mark.parametrize("mechanism", ["gnmax", "stable", "confident_gnmax"])
def test_what_is_beyond_all_plans_is_rejected_by_name(given, mechanism):
    facts = {"n_rows": 1000, "n_queries": 100, "epsilon": 1.0, "delta": 1e-5, **given}
    (name,) = given
    with pytest.raises(ValueError, match=f"^{name} must be"):
        plan_teachers(**facts, mechanism=mechanism)


@pytest.mark.parametrize(
    "given", [{"epsilon": 1e4}, {"max_refusals": 10**8}, {"n_rows": 10**12}]
)
def test_plans_at_the_ends_of_what_is_planned_for_say_something(given):
    facts = {"n_rows": 1000, "n_queries": 100, "epsilon": 1.0, "delta": 1e-5, **given}
    assert 0 <= plan_teachers(**facts, mechanism="stable").fraction_answered <= 1
