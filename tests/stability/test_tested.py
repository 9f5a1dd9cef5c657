"""Exact values released by a distance, and estimates of tested sensitivity."""

from math import exp

import numpy as np
import pytest
from scipy import stats
from tests.stat import assert_detects, assert_follows, assert_probability_at_most

from tacit._random import as_generator
from tacit.audit import replay
from tacit.exceptions import PlanError
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import Budget, Neighbors
from tacit.stability import ProposeTestRelease, StableValue, private_answer
from tacit.stability._stable import as_distance

ADDED = Neighbors.ADD_OR_REMOVE_ONE


def many(X, y):
    return "many" if len(X) >= 30 else "few"


def to_thirty(X, y):
    return len(X) - 30 if len(X) >= 30 else 29 - len(X)


@pytest.mark.parametrize(
    ("n", "word"),
    [(200, "many"), (1, "few"), *((n, NO_ANSWER) for n in (28, 29, 30, 31))],
)
def test_a_value_is_released_if_it_is_far_from_another(n, word):
    answer = private_answer(
        StableValue(many, to_thirty),
        np.zeros((n, 1)),
        epsilon=1.0,
        delta=1e-6,
        neighbors=ADDED,
        random_state=0,
    )
    assert answer.value == word
    assert "moves by at most one" in str(answer.privacy)


@pytest.mark.parametrize(
    "found", [np.nan, np.inf, -np.inf, -1, None, "9", [9], 10**400, 3 + 0j]
)
def test_what_is_no_distance_is_zero(found):
    assert as_distance(found) == 0.0


def test_distances_are_numbers_of_any_kind():
    for found in (3, 3.0, np.float32(3.0), np.int8(3)):
        assert as_distance(found) == 3.0


def test_a_distance_that_fails_leaks_nothing():
    def fails(X, y):
        raise ValueError("17 rows")

    answer = private_answer(
        StableValue(many, fails), np.zeros((99, 1)), epsilon=1.0, random_state=0
    )
    assert answer.value == NO_ANSWER
    answer = private_answer(
        StableValue(fails, lambda X, y: 999),
        np.zeros((99, 1)),
        epsilon=1.0,
        random_state=0,
    )
    assert answer.value is None


def test_only_the_distance_of_a_value_is_seen():
    plan = StableValue(many, to_thirty).plan(Budget(1.0, 0.1, ADDED), 40)

    def train(X, shift):
        wrong = StableValue(many, lambda X, y: shift * to_thirty(X, y))
        planned = wrong.plan(Budget(1.0, 0.1, ADDED), 40)
        return wrong.run(planned, X, None, as_generator(0))

    X = np.zeros((40, 1))
    assert plan.event.curve(ADDED).fits(Budget(1.0, 0.1, ADDED))
    assert replay(train, (X, 1), (X[1:], 1)).ok
    assert not replay(train, (X, 2), (X[1:], 2)).ok


def center(X, y):
    return float(np.median(X[:, 0]))


def rows_in_the_middle(X, y):
    """Rows to change before the median can jump: half of those well within reach."""
    inside = np.sum(np.abs(X[:, 0]) <= 0.5)
    return max(0, int(inside - len(X) / 2) - 1)


MIDDLE = ProposeTestRelease(center, rows_in_the_middle, sensitivity=1.0)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("law", "size", "cdf"), [("gamma", 1, stats.laplace), ("gaussian", 2, stats.norm)]
)
def test_what_passes_gets_noise_for_the_sensitivity(law, size, cdf, seed):
    procedure = ProposeTestRelease(
        lambda X, y: [3.0] * size, lambda X, y: 1000, 0.5, size, law=law
    )
    plan = procedure.plan(Budget(1.0, 1e-6), 10)
    rng, X = as_generator(seed), np.zeros((10, 1))
    drawn = [procedure.run(plan, X, None, rng)[0] - 3.0 for _ in range(1200)]
    assert_follows(drawn, cdf(scale=plan.scale).cdf)
    assert_detects(drawn, cdf(scale=plan.scale / 2).cdf)


@pytest.mark.statistical
def test_unstable_data_have_no_answer_but_for_delta(seed):
    delta = 0.02
    procedure = ProposeTestRelease(center, lambda X, y: 0, 1.0)
    plan = procedure.plan(Budget(1.0, delta), 10)
    rng, X = as_generator(seed), np.zeros((10, 1))
    released = sum(
        not isinstance(procedure.run(plan, X, None, rng), type(NO_ANSWER))
        for _ in range(1000)
    )
    assert_probability_at_most(released, 1000, delta)
    assert plan.stable.release_probability(0.0) <= delta


@pytest.mark.parametrize("law", ["gaussian", "gamma"])
def test_test_and_noise_are_both_charged(law):
    budget = Budget(1.0, 1e-6)
    plan = ProposeTestRelease(center, rows_in_the_middle, 1.0, law=law).plan(budget, 10)
    test, noise = plan.event.events
    assert test == plan.stable.event
    assert noise == plan.distribution.event(plan.multiplier)


@pytest.mark.parametrize("law", ["gaussian", "gamma", None])
@pytest.mark.parametrize("rule", ["optimal", "laplace"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_test_and_noise_fit_the_budget_together(law, rule, epsilon):
    procedure = ProposeTestRelease(center, lambda X, y: 9, 1.0, law=law, rule=rule)
    budget = Budget(epsilon, 1e-6)
    plan = procedure.plan(budget, 10)
    assert plan.event.curve(budget.neighbors).fits(budget)
    assert plan.stable.epsilon == epsilon / 2


def test_a_distance_that_is_likely_leaves_more_for_the_noise():
    budget = Budget(1.0, 1e-6)
    half = MIDDLE.plan(budget, 10)
    likely = ProposeTestRelease(
        center, rows_in_the_middle, 1.0, likely_distance=100
    ).plan(budget, 10)
    assert likely.scale < 0.7 * half.scale
    assert likely.stable.release_probability(100.0) >= 0.99
    with pytest.raises(PlanError, match="likely_distance=2"):
        ProposeTestRelease(center, rows_in_the_middle, 1.0, likely_distance=2).plan(
            budget, 10
        )


def test_the_distribution_that_spreads_less_is_taken():
    budget = Budget(1.0, 1e-6)
    for size, law in ((1, "gamma"), (400, "gaussian")):
        procedure = ProposeTestRelease(center, rows_in_the_middle, 1.0, size)
        assert procedure.plan(budget, 10).distribution.name == law


def test_a_median_is_released_where_rows_are_in_the_middle(seed):
    rng = as_generator(seed)
    X = rng.normal(size=(2000, 1)) / 10
    answer = private_answer(MIDDLE, X, epsilon=2.0, delta=1e-6, random_state=seed)
    assert answer.released
    assert abs(answer.value[0]) < 20
    spread = rng.normal(size=(2000, 1)) * 10
    answer = private_answer(MIDDLE, spread, epsilon=2.0, delta=1e-6, random_state=seed)
    assert answer.value == NO_ANSWER


@pytest.mark.parametrize(
    "estimate",
    [
        lambda X, y: 1 / 0,
        lambda X, y: [1.0, 2.0],
        lambda X, y: np.nan,
        lambda X, y: "x",
        lambda X, y: None,
    ],
)
def test_what_is_no_estimate_is_zero(estimate):
    procedure = ProposeTestRelease(estimate, lambda X, y: 1e6, 1e-9)
    plan = procedure.plan(Budget(1.0, 1e-6), 10)
    found = procedure.run(plan, np.zeros((10, 1)), None, as_generator(0))
    assert np.abs(found).max() < 1e-6


def test_both_releases_are_seen_by_a_replay():
    def train(X, sensitivity):
        procedure = ProposeTestRelease(
            lambda X, y: X[0], lambda X, y: 50 + X[0, 0], sensitivity
        )
        plan = procedure.plan(Budget(1.0, 1e-3), 4)
        return procedure.run(plan, X, None, as_generator(0))

    X, other = np.zeros((4, 1)), np.ones((4, 1))
    report = replay(train, (X, 1.0), (other, 1.0))
    assert report.ok, str(report)
    assert [entry.label for entry in report.entries] == ["StableRelease", "L2Laplace"]
    assert not replay(train, (X, 0.5), (other, 0.5)).ok


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("sensitivity", 0.0),
        ("size", 0),
        ("test_share", 1.0),
        ("likely_distance", 0),
        ("law", "cauchy"),
        ("rule", "best"),
        ("noise", "none"),
    ],
)
def test_bad_parameters_are_rejected(name, bad):
    given = {"sensitivity": 1.0, name: bad}
    with pytest.raises(ValueError, match=rf"^{name} must"):
        ProposeTestRelease(center, rows_in_the_middle, **given)


def test_no_delta_is_rejected_with_a_cure():
    for procedure in (MIDDLE, StableValue(many, to_thirty)):
        with pytest.raises(PlanError, match="give a delta"):
            procedure.plan(Budget(1.0), 10)
    with pytest.raises(ValueError, match="rule must be"):
        StableValue(many, to_thirty, rule="none")


def distribution_of(plan, distance, value):
    """Probabilities of no answer, and of a noisy value in each of many bins."""
    p = plan.stable.release_probability(distance)
    edges = np.linspace(-30, 30, 1201)
    noisy = stats.laplace(loc=value, scale=plan.multiplier * plan.sensitivity)
    return np.r_[1 - p, p * np.diff(noisy.cdf(edges))]


@pytest.mark.parametrize("rule", ["optimal", "laplace"])
def test_all_neighbors_are_within_the_claim_by_enumeration(rule):
    procedure = ProposeTestRelease(center, center, 1.0, law="gamma", rule=rule)
    budget = Budget(1.0, 0.01)
    plan = procedure.plan(budget, 5)
    # at distance zero a neighbor may be anywhere, elsewhere it is within one
    pairs = [((d, 0.0), (d + 1, 1.0)) for d in range(30)]
    pairs += [((d, 0.0), (d, 1.0)) for d in range(30)] + [((0, 0.0), (0, 25.0))]
    worst = 0.0
    for pair in pairs:
        both = [distribution_of(plan, *side) for side in pair]
        for a, b in (both, both[::-1]):
            worst = max(worst, np.maximum(a - exp(budget.epsilon) * b, 0).sum())
    assert worst <= budget.delta
    assert worst > 0.5 * budget.delta
    # data that the test wrongly takes for stable would break the claim
    wrong = [distribution_of(plan, 9, value) for value in (0.0, 25.0)]
    assert np.maximum(wrong[0] - exp(1.0) * wrong[1], 0).sum() > budget.delta
