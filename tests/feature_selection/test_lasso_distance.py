"""Distances to instability: one row moves them by one, and they are never too long."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.feature_selection.lasso_pairs import about_to_enter, twins, violations

from tacit._random import as_generator
from tacit.feature_selection import _exact_lasso, _lasso_distance
from tacit.feature_selection._lasso_distance import (
    PaperFacts,
    SquaredFacts,
    lasso_distance,
)

RELATIONS = [1, 2]


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def squared(rows_changed):
    def facts_of(rng, n, s):
        return SquaredFacts(
            s,
            log_uniform(rng, 2, n / 2),
            float(rng.choice([0.8, 1.5])),
            float(rng.choice([0.3, 1.0, 2.0])),
            rows_changed,
            bool(rng.integers(2)),
        )

    return facts_of


@pytest.mark.parametrize("rows_changed", RELATIONS)
def test_neighbors_move_a_distance_by_one_at_most(rows_changed, seed):
    found, tried = violations(squared(rows_changed), seed)
    assert found == []
    assert tried > 40


@dataclass(frozen=True)
class ShortSlacks(SquaredFacts):
    """A planted bug: slopes outside are said to move a tenth of what they may."""

    @property
    def slack(self):
        return super().slack / 10


def test_slacks_too_short_are_detected(seed):
    def facts_of(rng, n, s):
        facts = squared(2)(rng, n, s)
        given = {name: getattr(facts, name) for name in facts.__match_args__}
        return ShortSlacks(**given)

    assert violations(facts_of, seed)[0]


TWINS = SquaredFacts(2, 40.0, 1.0, 0.8, 1, intercept=False)


def given_up(sums, positions, start, *, penalty, ridge):
    """A planted bug: slopes are left as they are where sweeps were too few."""
    return sums.with_targets()[0] - sums.with_columns(positions) @ start


@pytest.mark.parametrize("sweeps", [1, 20, 20_000])
def test_similar_columns_do_not_hide_a_stable_support(sweeps, monkeypatch):
    """Some neighbors would be solved and others not if sweeps had to be enough."""
    monkeypatch.setattr(_exact_lasso, "SWEEPS", sweeps)
    X, y = twins(20_000, 0.014)
    support, distance = TWINS.distance(X, y)
    assert support == (0, 8)
    assert distance == pytest.approx(2.17, abs=0.01)
    for rows in (slice(1, None), slice(None, -1)):
        other, far = TWINS.distance(X[rows], y[rows])
        assert other == support
        assert abs(far - distance) <= 1
    if sweeps < 20_000:
        monkeypatch.setattr(_exact_lasso, "ridged_derivatives", given_up)
        assert TWINS.distance(X, y)[1] == 0


@pytest.mark.slow
def test_neighbors_on_two_sides_of_a_limit_of_sweeps_have_one_support():
    X, y = twins(1_795_328, 0.0009)
    facts = replace(TWINS, penalty=230.0)
    first, second = (facts.distance(X[:n], y[:n]) for n in (len(y), len(y) - 1))
    assert first[0] == second[0] == (0, 8)
    assert min(first[1], second[1]) > 18
    assert abs(first[1] - second[1]) <= 1


@pytest.mark.parametrize("rows_changed", RELATIONS)
def test_distances_are_the_same_however_few_sweeps_there_are(
    rows_changed, monkeypatch, seed
):
    usual = violations(squared(rows_changed), seed, n_sets=12)
    monkeypatch.setattr(_exact_lasso, "SWEEPS", 1)
    monkeypatch.setattr(_exact_lasso, "_polished", lambda *_: None)
    assert violations(squared(rows_changed), seed, n_sets=12) == usual
    assert usual[0] == []


def test_without_the_one_that_is_taken_off_a_neighbor_has_another_support(monkeypatch):
    pair = about_to_enter()
    facts = SquaredFacts(2, 100.0, 0.2, 0.1, 1, intercept=False)
    first, second = (facts.distance(*side) for side in pair)
    assert first[0] != second[0]
    assert first[1] == second[1] == 0
    monkeypatch.setattr(_lasso_distance, "safe_distance", lambda x: max(0.0, x))
    assert facts.distance(*pair[0])[1] > 0


def test_published_slacks_hold_once_repaired(seed):
    n = 40_000
    hadamard = np.array([[1, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1]], dtype=float)
    X = np.tile(hadamard, (n // 4, 1))
    y = 0.4 * X[:, 0] + 0.0125 * X[:, 1]
    corners = [((1, 1, 1), 1.0), ((1, -1, 1), -1.0), ((-1, 1, 0), 1.0)]
    for rows_changed in RELATIONS:
        facts = PaperFacts(2, 5000.0, 0.4, rows_changed, intercept=False)
        support, distance = facts.distance(X, y)
        assert support == (0,)
        assert distance > 1
        for x, target in corners:
            Z, t = X.copy(), y.copy()
            if rows_changed == 2:
                Z[7], t[7] = x, target
            else:
                Z, t = np.vstack([Z, x]), np.append(t, target)
            other, far = facts.distance(Z, t)
            assert other == support
            assert abs(far - distance) <= 1


def test_tight_slacks_go_an_order_of_magnitude_further_than_published_ones(seed):
    n, p, s = 5000, 100, 2
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, p))
    y = np.clip(
        (0.6 * X[:, 0] - 0.6 * X[:, 1] + 0.5 * rng.standard_normal(n)) / s, -1, 1
    )
    tight = SquaredFacts(s, 160.0, 0.7, 0.3, 1, intercept=False)
    support, distance = lasso_distance(X, y, tight)
    assert support == (0, 1)
    assert distance > 36
    paper = PaperFacts(s, 160.0, 0.2, 1, intercept=False)
    assert paper.distance(X, y)[1] == 0


def test_an_empty_support_has_a_distance_and_one_too_large_has_none(seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (500, 4))
    noise = 0.1 * rng.standard_normal(500)
    facts = SquaredFacts(1, 100.0, 1.0, 1.0, 2)
    support, distance = facts.distance(X, np.clip(noise, -1, 1))
    assert support == ()
    assert distance > 5
    y = np.clip(0.5 * X[:, 0] + 0.5 * X[:, 1] + noise, -1, 1)
    assert replace(facts, penalty=40.0).distance(X, y)[1] == 0
    assert replace(facts, n_select=2, penalty=40.0).distance(X, y)[0] == (0, 1)


@pytest.mark.parametrize("intercept", [True, False])
def test_columns_that_cannot_be_distinguished_are_never_released(intercept, seed):
    rng = as_generator(seed)
    x = rng.uniform(-1, 1, 1000)
    X, y = np.column_stack([x, x]), np.clip(0.8 * x, -1, 1)
    assert SquaredFacts(2, 30.0, 1.5, 5.0, 1, intercept).distance(X, y)[1] == 0


def test_one_column_and_constant_columns_are_taken(seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (2000, 1))
    y = 0.8 * X[:, 0]
    support, distance = SquaredFacts(1, 60.0, 1.5, 1.0, 2).distance(X, y)
    assert support == (0,)
    assert distance > 3
    constant = np.column_stack([X, np.full(2000, -1.0), np.zeros(2000)])
    facts = SquaredFacts(2, 60.0, 1.5, 1.5, 2)
    assert facts.distance(constant, y)[0] == (0,)
    assert facts.distance(np.zeros((2, 1)), np.zeros(2)) == ((), 0.0)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (SquaredFacts, {"penalty": 0.0}),
        (SquaredFacts, {"n_select": 0}),
        (PaperFacts, {"curvature": 2.0}),
    ],
)
def test_invalid_facts_are_rejected(kind, wrong):
    given = {"n_select": 1, "penalty": 1.0, "rows_changed": 1, **wrong}
    if kind is SquaredFacts:
        given |= {"coef_bound": 1.0, "incoherence": 1.0}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        kind(**given)
