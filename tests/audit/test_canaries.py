"""One-run audits of estimators: honest ones pass, those with less noise do not."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.audit.test_broken_estimators import NoNoise, Sums
from tests.stat import P_FAIL, assert_probability_at_most

from tacit.audit import audit_one_run
from tacit.audit._seeds import coins
from tacit.audit._subjects import prepared
from tacit.audit.canaries import _made
from tacit.linear_model import (
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
)
from tacit.solvers import OutputPerturbation

REPLACE, ADD = "replace_one", "add_or_remove_one"


class HalfNoise(Sums):
    """Twice the epsilon that is guaranteed."""

    def kept(self, noise):
        return noise / 2


class Remembers(Sums):
    """Honest coefficients, and beside them a number for each row."""

    def after(self, X, y):
        self.dual_coef_ = y * 0.1


class OnlyACount(Sums):
    """A scalar that depends on the rows tells next to nothing of many coins."""

    def after(self, X, y):
        self.n_iter_ = int(np.sum(y > 0))


@dataclass(frozen=True)
class Quiet:
    """A solver of ours that runs with a share of the noise that it planned."""

    solver: Any
    share: float

    def plan(self, problem, budget):
        return self.solver.plan(problem, budget)

    def run(self, plan, rows, rng):
        quiet = replace(plan, multiplier=plan.multiplier * self.share)
        return self.solver.run(quiet, rows, rng)


@pytest.mark.statistical
def test_an_honest_promise_is_refuted_no_more_often_than_allowed(seed):
    n_audits, confidence = 60, 0.9
    refuted = {}
    for kind in (Sums, HalfNoise):
        found = [
            audit_one_run(
                kind(), n_canaries=200, confidence=confidence, random_state=seed + i
            )
            for i in range(n_audits)
        ]
        refuted[kind] = sum(audit.refuted for audit in found)
    assert_probability_at_most(refuted[Sums], n_audits, 1 - confidence)
    # control: half the noise
    with pytest.raises(AssertionError):
        assert_probability_at_most(refuted[HalfNoise], n_audits, 1 - confidence)


# an honest guarantee is refuted with probability at most P_FAIL
SURE = {"n_canaries": 2000, "confidence": 1 - P_FAIL}


@pytest.mark.statistical
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_less_noise_is_refuted_in_one_run(relation, seed):
    options = {"neighbors": relation, "random_state": seed, **SURE}
    honest = audit_one_run(Sums(), **options)
    assert not honest.refuted
    assert honest.verdict.startswith(
        "Not refuted: Sums guarantees epsilon 1 at delta 0"
    )
    assert "proves nothing" in honest.verdict
    nothing = audit_one_run(NoNoise(), **options)
    assert nothing.refuted
    assert nothing.epsilon_lower == nothing.most_shown
    if relation == REPLACE:  # a present row moves the sum by half as much
        assert honest.epsilon_lower > 0.4
        half = audit_one_run(HalfNoise(), **options)
        assert half.refuted
        assert half.verdict.startswith("Refuted: HalfNoise")


def test_a_number_for_each_row_is_seen_and_a_count_is_not():
    found = audit_one_run(Remembers(), n_canaries=200, random_state=0)
    assert found.refuted
    assert found.attribute == "dual_coef_"
    assert not audit_one_run(OnlyACount(), n_canaries=200, random_state=0).refuted


@pytest.mark.statistical
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_our_solver_passes_and_a_quarter_of_its_noise_is_refuted(relation, seed):
    model = LinearSVC(4.0, 1e-5, neighbors=relation, fit_intercept=False, x_norm=1.0)
    options = {"n_canaries": 800, "confidence": 0.999, "random_state": seed}
    solver = OutputPerturbation(ridge=50.0)
    honest, broken = (
        audit_one_run(model.set_params(solver=Quiet(solver, share)), **options)
        for share in (1.0, 0.25)
    )
    assert (honest.refuted, broken.refuted) == (False, True)
    assert honest.result.method == "gaussian"
    assert "as its report claims" in honest.verdict
    assert honest.epsilon_lower > 0.3


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(1.0, 1e-4, x_norm=1.0),
        LogisticRegression(1.0, classes=["a", "b", "c"], solver="noisy_gd", x_norm=1.0),
        LogisticRegression(1.0, 1e-4, bound_norm="linf", neighbors=ADD, x_norm=1.0),
        LinearRegression(1.0, y_range=(0, 10), x_norm=1.0),
        Ridge(1.0, fit_intercept=False, x_norm=1.0),
        Lasso(1.0, alpha=0.01, feature_bounds=2.0),
    ],
    ids=repr,
)
def test_our_estimators_can_be_audited_in_one_run(model):
    before = model.get_params()
    found = audit_one_run(model, n_canaries=40, random_state=0)
    assert not found.refuted
    assert model.get_params() == before
    assert not hasattr(model, "coef_")
    told = json.loads(json.dumps(found.to_dict()))
    assert told["runs"] == 1
    assert told["canaries"] == 40
    assert told["judged"] == 20
    assert told["attribute"] == "coef_"


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize(
    "model", [LinearSVC(1.0, 1e-4, x_norm=1.0), Lasso(1.0, 1e-4, feature_bounds=3.0)]
)
def test_a_coin_changes_one_row_in_the_way_of_the_promise(model, relation):
    subject = prepared(model).set_params(neighbors=relation)
    truth = coins(np.random.SeedSequence(0), 30)
    other = truth.copy()
    other[7] = -other[7]
    first, second = (_made(subject, 30, None, relation, t) for t in (truth, other))
    gram = first.rows @ first.rows.T
    np.testing.assert_array_equal(gram, gram[0, 0] * np.eye(30))
    order = np.inf if isinstance(model, Lasso) else 2
    bound = 3.0 if isinstance(model, Lasso) else 1.0
    norms = np.linalg.norm(first.X, order, axis=1)
    np.testing.assert_array_equal(norms, np.full(len(norms), bound))
    if relation == REPLACE:
        np.testing.assert_array_equal(first.X, second.X)
        assert np.flatnonzero(first.y != second.y).tolist() == [7]
    else:
        assert abs(len(first.X) - len(second.X)) == 1
        rows = {tuple(row) for row in first.X} ^ {tuple(row) for row in second.X}
        assert len(rows) == 1
        assert len(set(first.y)) == 2


def test_coins_are_fair_and_fixed_by_a_seed():
    many = coins(np.random.SeedSequence(0), 100_000)
    # five standard deviations, so wrong with probability below P_FAIL
    assert abs(many.sum()) < 5 * np.sqrt(100_000)
    assert set(many) == {-1, 1}
    first, again, other = (
        audit_one_run(Sums(), n_canaries=60, random_state=s) for s in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_an_audit_that_could_not_fail_is_refused():
    with pytest.raises(ValueError, match=r"n_canaries must be more: 40 show"):
        audit_one_run(NoNoise(4.0), n_canaries=40)
    assert audit_one_run(NoNoise(4.0), n_canaries=400, random_state=0).refuted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_canaries", 10),
        ("n_canaries", 2.5),
        ("n_features", 1),
        ("confidence", 0.0),
        ("confidence", "a"),
        ("random_state", "a"),
        ("method", "clopper-pearson"),
        ("neighbors", "strangers"),
    ],
)
def test_a_bad_option_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        audit_one_run(Sums(), **{name: value})


def test_what_says_nothing_of_columns_is_refused():
    class Silent(Sums):
        def after(self, X, y):
            self.coef_ = np.zeros(3)

    with pytest.raises(ValueError, match="number for each column"):
        audit_one_run(Silent(), n_canaries=40)


def test_the_plot_shows_the_promise():
    pytest.importorskip("matplotlib", reason="needs the extra tacit[plots]").use("Agg")
    ax = audit_one_run(Sums(), n_canaries=60, random_state=0).plot()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(name.startswith("forbidden by epsilon 1") for name in names)
    assert ax.get_ylabel() == "true-positive rate"
