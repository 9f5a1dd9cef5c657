"""The private search, attacked with candidates whose ranks reveal most."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases

from tacit._random import as_generator
from tacit.evaluation._measures import ACCURACY, Measure
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.repeats import RandomRepeats
from tacit.model_selection import PrivateSearchCV, _candidates, private_choice
from tacit.model_selection._plan import _score_noise
from tacit.model_selection._runs import best_run, one_run
from tacit.privacy import Budget, GaussianNoise, LaplaceNoise, Neighbors, calibrate

SHARED_CASES = Cases(audits="PrivateSearchCV RandomRepeats private_choice")

REPLACE = Neighbors.REPLACE_ONE
MEASURE = Measure(ACCURACY)
HELD = 400
# Scores of the middle of the release, of its low end and of its high end: who sees a
# model from the low end knows that there was none from the high end
SHARES = (0.1, 0.5, 0.9)


@lru_cache
def mechanism(budget):
    if budget.delta > 0:
        return Gaussian(calibrate(GaussianNoise, budget), 1.0)
    return Laplace(calibrate(LaplaceNoise, budget), 1.0)


class Lure(ClassifierMixin, BaseEstimator):
    """Releases a sum with noise, and is right as often as its place in it says."""

    def __init__(
        self, epsilon=1.0, delta=0.0, *, classes=(0, 1), neighbors="replace_one",
        random_state=None,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.neighbors = neighbors
        self.random_state = random_state

    def plan(self, n_rows, n_features):
        return self  # which has the event and no assumptions

    assumptions = ()

    @property
    def mechanism(self):
        return mechanism(Budget(self.epsilon, self.delta, self.neighbors))

    @property
    def event(self):
        return self.mechanism.event

    def fit(self, X, y, *, ledger=None):
        ledger.charge(self.event, "Lure")
        rng = as_generator(self.random_state)
        value = float(self.mechanism(np.array([np.sum(X[:, 0])]), rng)[0])
        scale = self.mechanism.scale(1)
        self.place_ = 1 if value < 0 else 2 if value > 1 + scale / 5 else 0
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return (np.arange(len(X)) < SHARES[self.place_] * len(X)).astype(int)


@pytest.fixture(autouse=True)
def lures_are_let_in(monkeypatch):
    """A search takes estimators of this library alone; the attack needs its own."""
    monkeypatch.setattr(_candidates, "PRIVATE", (*_candidates.PRIVATE, Lure))


def prepared(budget, charged_for_one_fit=False):
    """A search over one candidate, or one whose runs each spend all of the budget."""
    search = PrivateSearchCV(
        Lure(), {"classes": [(0, 1)]}, budget.epsilon, budget.delta
    )
    _, models = search._candidates()
    found = search._prepared(models, np.zeros((1, 1)), 1000, None)
    repeats = RandomRepeats(4.0, 0.35)
    one = budget if charged_for_one_fit else Budget(budget.epsilon / 6, 0.0)
    assert (
        repeats.event(LaplaceNoise(1 / one.epsilon)).curve(REPLACE).fits(budget)
        is not charged_for_one_fit
    )
    model = found.models[0].set_params(epsilon=one.epsilon, delta=one.delta)
    plan = replace(found.plan, per_run=one, repeats=repeats, noise=_score_noise(one))
    return replace(found, plan=plan, models=(model,), events=(model.event,))


def fit_attack(budget, n_runs, seed, charged_for_one_fit):
    """One row of those fitted on has the value one, or zero."""
    found = prepared(budget, charged_for_one_fit)
    pair = [(np.full((1, 1), value), np.ones(1)) for value in (0.0, 1.0)]
    held = np.zeros((HELD, 1)), np.ones(HELD, dtype=int)

    def train(kept, seed):
        best = best_run(found, kept, held, MEASURE, as_generator(seed))
        return np.array([best.model.place_ == 1], dtype=float)

    return bound_of_runs(
        train,
        pair,
        n_runs,
        0.0,
        seed,
        method="clopper-pearson",
        score=lambda release: float(release[0]),
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_a_search_that_charges_for_one_fit_is_caught(seed):
    budget = Budget(1.5, 0.0)
    planned = fit_attack(budget, 400, seed, False)
    control = fit_attack(budget, 1600, seed, True)
    name = "PrivateSearchCV with RandomRepeats, one candidate"
    assert_refutes_the_control(name, 1.5, planned, control, "charged for one fit")


def score_attack(budget, n_runs, seed, noise):
    """One run, whose held-out answers are all right but for one that is not."""
    search = PrivateSearchCV(
        Lure(), {"classes": [(0, 1)]}, budget.epsilon, budget.delta
    )
    _, models = search._candidates()
    found = search._prepared(models, np.zeros((1, 1)), 1000, None)
    quieter = replace(found.plan.noise, multiplier=noise * found.plan.noise.multiplier)
    found = replace(found, plan=replace(found.plan, noise=quieter))
    kept = np.zeros((1, 1)), np.ones(1)
    pair = [(np.zeros((20, 1)), np.array([label] + [1] * 19)) for label in (0, 1)]

    def train(held, seed):
        run = one_run(found, 0, kept, held, MEASURE, as_generator(seed))
        # predictions depend on the place, and the first row is right in all of them
        return np.array([run.rank - 20 * SHARES[run.model.place_]])

    one = found.plan.per_run
    return one.epsilon, bound_of_runs(
        train,
        pair,
        n_runs,
        one.delta,
        seed,
        method="gaussian" if one.delta > 0 else "clopper-pearson",
    )


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "budget", [Budget(3.0, 0.0), Budget(4.0, 1e-3)], ids=["pure", "delta"]
)
def test_half_the_noise_of_a_score_in_a_search_is_caught(budget, seed):
    claim, planned = score_attack(budget, 1200, seed, 1.0)
    _, control = score_attack(budget, 1200, seed, 0.5)
    assert_refutes_the_control("PrivateSearchCV, a score", claim, planned, control)


def choice_attack(epsilon, n_runs, seed):
    """Of two models one is right for a row, the other for the row in its place."""
    models = []
    for position in (0, 2):
        model = Lure().set_params(random_state=0)
        model.place_, model.classes_ = position, np.array([0, 1])
        models.append(model)
    X = np.zeros((2, 1))  # the first row is right in both, the second in the last
    pair = [np.array([1, label]) for label in (0, 1)]

    def train(y, seed):
        found = private_choice(models, X, y, epsilon=epsilon, random_state=seed)
        return np.array([float(found.index)])

    return bound_of_runs(train, pair, n_runs, 0.0, seed, method="clopper-pearson")


@pytest.mark.slow
@pytest.mark.statistical
def test_a_choice_keeps_its_claim_and_twice_as_much_is_caught(seed):
    planned = choice_attack(2.0, 1500, seed)
    control = choice_attack(4.0, 4000, seed)
    assert_refutes_the_control("private_choice", 2.0, planned, control)
