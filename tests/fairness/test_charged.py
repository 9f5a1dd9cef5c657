"""Certificates that are charged: what they cost, release and hold."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fairness.people import models, people
from tests.stat import assert_probability_at_most

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import assert_replays
from tacit.exceptions import BudgetExceeded
from tacit.fairness import (
    certify_model,
    group_fairness,
    plan_certificate,
    private_certificate,
)
from tacit.fairness._charged import CertificatePlan
from tacit.fairness._groups import NOTIONS
from tacit.privacy import Budget, Ledger, PrivacyReport

RELATIONS = ("replace_one", "add_or_remove_one")
DISTANCE = 0.05


def charged(rows, model, **others):
    X, y, s = rows
    kept = {
        "sensitive_features": s,
        "epsilon": 1.0,
        "groups": [0, 1, 2],
        "distance": DISTANCE,
        "random_state": 0,
    }
    return private_certificate(model, X, y, **(kept | others))


@pytest.fixture(scope="module")
def rows():
    return people(20_000)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("notion", NOTIONS)
def test_intervals_hold_what_those_without_noise_hold(rows, notion, delta, seed):
    """Noise may make them fail with a chance of 0.02; fails wrongly at 1e-6."""
    X, y, s = rows
    model = models()[0]
    exact = certify_model(
        model, X, y, sensitive_features=s, distance=DISTANCE, notion=notion
    )
    missed = 0
    for run in range(20):
        found = charged(
            rows,
            model,
            notion=notion,
            delta=delta,
            failure=0.2,
            random_state=seed + run,
        )
        inside = (found.lower <= exact.lower) & (found.upper >= exact.upper)
        missed += not (inside & (found.change >= exact.change - 1e-9)).all()
    assert_probability_at_most(missed, 20, 0.02)
    # and they are not much wider
    assert (found.upper - found.lower <= exact.upper - exact.lower + 0.15).all()
    np.testing.assert_allclose(found.values, exact.values, atol=0.05)


@pytest.mark.parametrize("notion", NOTIONS)
def test_next_to_no_noise_gives_the_certificate_itself(rows, notion):
    X, y, s = rows
    model = models()[0]
    exact = certify_model(
        model, X, y, sensitive_features=s, distance=DISTANCE, notion=notion
    )
    found = charged(rows, model, notion=notion, epsilon=1e6)
    assert found.groups == exact.groups
    for name in ("values", "lower", "upper", "change"):
        ours, theirs = getattr(found, name), getattr(exact, name)
        if name == "change":  # both kinds of move are bounded apart
            assert (ours >= theirs - 1e-6).all()
        else:
            np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("m", [1, 4, 30])
def test_sums_of_noise_pass_their_reach_as_often_as_stated(m, delta, seed):
    """Fails wrongly with probability 1e-6; twice the noise is caught."""
    plan = plan_certificate(1.0, classes=[0, 1], groups=[0, 1], delta=delta)
    rng = as_generator(seed)
    law = rng.normal if delta else rng.laplace
    drawn = law(scale=plan.scale, size=(50_000, m)).sum(axis=1)
    reach = plan.reach(m, 0.01)
    assert_probability_at_most(int((drawn > reach).sum()), 50_000, 0.01)
    with pytest.raises(AssertionError):
        assert_probability_at_most(int((2 * drawn > reach).sum()), 50_000, 0.01)


@settings(max_examples=60)
@given(
    relation=st.sampled_from(RELATIONS),
    notion=st.sampled_from(NOTIONS),
    delta=st.sampled_from([0.0, 1e-6]),
    label=st.sampled_from([0, 1]),
    group=st.sampled_from([0, 1, 2]),
    row=st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=5),
    position=st.sampled_from([0, 7, 49]),
)
def test_one_person_moves_the_counts_by_no_more_than_declared(
    relation, notion, delta, label, group, row, position
):
    X, y, s = people(50)
    if relation == "replace_one":
        X2, y2, s2 = X.copy(), y.copy(), s.copy()
        X2[position], y2[position], s2[position] = row, label, group
    else:
        X2, y2, s2 = (np.delete(part, position, axis=0) for part in (X, y, s))
    moved = []
    for data in ((X, y, s), (X2, y2, s2)):
        with recording() as tape:
            charged(data, models()[0], neighbors=relation, notion=notion, delta=delta)
        (release,) = tape.releases
        moved.append(release)
    gap = moved[0].value - moved[1].value
    order = 1 if moved[0].norm == "l1" else 2
    assert np.linalg.norm(gap.ravel(), order) <= moved[0].sensitivity


def test_the_declared_sensitivity_is_reached_and_a_smaller_one_is_not_enough():
    """Control: a person who changes label and group moves two counts by one."""
    X, y, s = people(50)
    y2, s2 = y.copy(), s.copy()
    y2[0], s2[0] = 1 - y[0], (s[0] + 1) % 3
    tapes = []
    for data in ((X, y, s), (X, y2, s2)):
        with recording() as tape:
            charged(data, models()[0])
        tapes.append(tape.releases[0])
    assert np.abs(tapes[0].value - tapes[1].value).sum() == 2.0
    assert tapes[0].sensitivity == 2.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbors_differ_in_inputs_of_the_mechanism_alone(relation):
    X, y, s = people(60)
    other = X.copy(), y.copy(), s.copy()
    other[0][0], other[1][0], other[2][0] = 9.0, 1 - y[0], 2
    if relation == "add_or_remove_one":
        other = tuple(part[1:] for part in (X, y, s))

    def release(*data):
        return charged(data, models()[0], neighbors=relation)

    assert_replays(release, (X, y, s), other)


OTHERWISE = {
    "weights": {"model": 1},
    "budget": {"epsilon": 0.5},
    "notion": {"notion": "demographic_parity"},
    "distance": {"distance": 2 * DISTANCE},
}


@pytest.mark.parametrize("change", OTHERWISE)
def test_no_two_certificates_with_one_seed_share_their_noise(rows, monkeypatch, change):
    """The difference of two such certificates would be free of noise."""
    found, run = [], CertificatePlan.run

    def recorded(self, counts, rng):
        found.append(rng.integers(2**62))
        return run(self, counts, rng)

    monkeypatch.setattr(CertificatePlan, "run", recorded)
    small = tuple(part[:500] for part in rows)
    other = dict(OTHERWISE[change])
    charged(small, models()[0])
    charged(small, models()[0])
    charged(small, models()[other.pop("model", 0)], **other)
    assert found[0] == found[1] != found[2]


def test_distance_and_noise_share_the_chance_to_fail(monkeypatch):
    asked, tails = [], []

    def distance(chance):
        asked.append(chance)
        return DISTANCE

    real = CertificatePlan.reach

    def reach(plan, n_counts, chance):
        tails.append(chance)
        return real(plan, n_counts, chance)

    monkeypatch.setattr(CertificatePlan, "reach", reach)
    found = charged(people(200), models()[0], distance=distance, failure=0.1)
    (left,) = asked
    # an interval rests on at most 20 noisy sums, and all of them hold at once
    noise = 20 * len(found.groups) * max(tails)
    assert left == pytest.approx(0.09)
    assert left + noise <= 0.1 * (1 + 1e-12)


def test_the_charge_comes_before_the_release_and_is_refused_whole(rows):
    model = models()[0]
    ledger = Ledger(Budget(1.5))
    found = charged(rows, model, ledger=ledger)
    assert isinstance(found.privacy, PrivacyReport)
    assert found.privacy.guarantee.epsilon == 1.0
    assert ledger.spent() == pytest.approx(1.0, rel=1e-3)
    with recording() as tape, pytest.raises(BudgetExceeded):
        charged(rows, model, ledger=ledger)
    assert tape.releases == []
    assert ledger.spent() == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"groups": [0, 1]}, "sensitive_features must have public values only"),
        ({"groups": []}, "groups must name the public groups"),
        ({"groups": [0, 0, 1, 2]}, "each of them once"),
        ({"groups": "012"}, "groups must be a list"),
        ({"groups": [0, 1, np.nan]}, "groups must have no missing values"),
        ({"groups": [[0], [1], [2]]}, "groups must contain strings or numbers"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"notion": "odds"}, "notion must be"),
        ({"distance": -1.0}, "distance must be"),
        ({"distance": None}, "distance must be given for this model"),
        ({"failure": 2.0}, "failure must be"),
        ({"neighbors": "one"}, "neighbors must be"),
        ({"sensitive_features": [0, 1]}, "as many rows"),
    ],
)
def test_what_is_refused_is_not_charged(rows, changed, said):
    ledger = Ledger(Budget(10.0))
    with pytest.raises(ValueError, match=said):
        charged(rows, models()[0], ledger=ledger, **changed)
    assert ledger.spent() == 0.0


def test_a_group_without_rows_has_an_interval_that_says_nothing(rows):
    found = charged(rows, models()[0], groups=[0, 1, 2, 3], notion="accuracy_parity")
    k = [group.sensitive for group in found.groups].index(3)
    assert found.upper[k] - found.lower[k] > 0.5
    assert found.sizes is None


def test_one_group_has_no_figure_but_zero(rows):
    X, y, s = rows
    found = charged(
        (X, y, np.zeros(len(s), dtype=int)), models()[0], groups=[0],
        notion="accuracy_parity",
    )  # fmt: skip
    assert found.lower[0] == found.upper[0] == found.values[0] == 0.0


def test_a_charged_certificate_says_what_it_cost(rows):
    found = charged(rows, models()[0])
    data = json.loads(json.dumps(found.to_dict()))
    assert data["charged"] is True
    assert data["privacy"]["promise"]["epsilon"] == 1.0
    assert "the model is public, or was charged" in str(found)
    assert "private data" not in str(found)


def test_several_columns_have_tuples_as_groups(rows):
    X, y, s = rows
    who = np.column_stack([s, np.arange(len(s)) % 2])
    pairs = [(a, b) for a in range(3) for b in range(2)]
    found = charged((X, y, who), models()[0], groups=pairs, notion="accuracy_parity")
    assert [group.sensitive for group in found.groups] == pairs
    truth = group_fairness(
        y, models()[0].predict(X), sensitive_features=who, notion="accuracy_parity"
    )
    np.testing.assert_allclose(found.values, truth.values, atol=0.05)


@pytest.mark.parametrize("classes", [[], [0, 0, 1]])
def test_labels_of_a_plan_are_named_once(classes):
    with pytest.raises(ValueError, match="classes must name the public classes"):
        plan_certificate(1.0, classes=classes, groups=[0, 1])


def test_a_row_whose_square_is_too_large_is_counted_as_any_other(rows):
    X, y, s = rows
    X = X.copy()
    X[0] *= 1e160
    ledger = Ledger(Budget(2.0))
    found = charged((X, y, s), models()[0], ledger=ledger)
    assert ledger.spent() == pytest.approx(1.0, rel=1e-3)
    assert np.isfinite(found.change).all()


def test_a_plan_is_made_without_rows():
    plan = plan_certificate(
        0.5, classes=["no", "yes"], groups=["a", "b"], neighbors="add_or_remove_one"
    )
    assert plan.size == 16
    assert plan.scale == pytest.approx(2.0, rel=1e-3)
    louder = replace(plan, budget=Budget(0.5))
    assert louder.scale == pytest.approx(4.0, rel=1e-3)
    assert plan.run(np.zeros((4, 4)), as_generator(0)).shape == (4, 4)
