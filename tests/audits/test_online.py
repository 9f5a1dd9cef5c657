"""Learners on streams, attacked through everything that they release."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.audits.verdict import bound_of_runs, check
from tests.cases import Cases

from tacit._random import as_generator
from tacit.convex import Logistic, Squared
from tacit.data import RowBounds
from tacit.privacy import Budget, Neighbors
from tacit.solvers import Problem
from tacit.streaming import GradientSums, OnlineLogisticRegression, QuadraticLeader
from tacit.streaming._model import Progress, StreamTerms

SHARED_CASES = Cases(audits="GradientSums OnlineLogisticRegression QuadraticLeader")

# In a tree over two steps a row of the first is in two nodes, whose noises are
# independent: a linear score of both releases is the best there is.
TERMS = {"tree": StreamTerms(2), "blt": StreamTerms(1)}
# Weights so slow, or a ridge so heavy, that they show the noisy sums as they are
METHODS = {
    "GradientSums": (Logistic(cap=0.5), GradientSums(learning_rate=1e-6, recent=0.0)),
    "QuadraticLeader": (Squared(), QuadraticLeader(ridge=1e5, recent=0.0)),
}


def neighbors_of(relation):
    """Return two streams whose first steps differ by a row that matters most."""
    nothing = np.empty((0, 1)), np.empty(0)
    here, there = ((np.ones((1, 1)), np.array([label])) for label in (1.0, -1.0))
    if relation is Neighbors.ADD_OR_REMOVE_ONE:
        there = nothing
    return [(here, nothing), (there, nothing)]


def released(learner, steps, seed):
    """Return the weights of all steps, in units in which they are of order one."""
    rng, state, found = as_generator(seed), learner.init(), []
    for X, y in steps:
        state = learner.step(state, X, y, rng)
        found.append(learner.weights(state)[0, 0])
    return np.array(found) * 1e6


def lower_bound(name, sums, budget, n_runs, seed, noise):
    """Return the bound on epsilon with this part of the planned noise."""
    loss, method = METHODS[name]
    terms = TERMS[sums]
    problem = Problem(loss, RowBounds(), terms.n_rows, 1)
    learner = replace(method, sums=sums).plan(problem, budget, terms)
    mechanism = learner.mechanism
    less = replace(mechanism, multiplier=noise * mechanism.multiplier)
    learner = replace(learner, mechanism=less)
    pair = [steps[: terms.horizon] for steps in neighbors_of(budget.neighbors)]
    return bound_of_runs(
        lambda steps, seed: released(learner, steps, seed),
        pair,
        n_runs,
        budget.delta,
        seed,
    )


@pytest.mark.statistical
@pytest.mark.parametrize("name", METHODS)
def test_half_the_noise_is_caught_quickly(name, seed):
    budget = Budget(10.0, 1e-5)
    check(name, 10.0, partial(lower_bound, name, "tree", budget, 800, seed))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("relation", list(Neighbors), ids=lambda r: r.name)
@pytest.mark.parametrize("sums", TERMS)
@pytest.mark.parametrize("name", METHODS)
def test_claim_survives_and_half_the_noise_is_caught(name, sums, relation, seed):
    budget = Budget(4.0, 1e-3, relation)
    check(name, 4.0, partial(lower_bound, name, sums, budget, 3000, seed))


def estimated(monkeypatch, n_runs, seed, noise):
    """Attack the estimator itself, whose noise is keyed by the rows."""
    start = Progress.__init__

    def with_less(self, planned, *rest, **named):
        mechanism = planned.learner.mechanism
        less = replace(mechanism, multiplier=noise * mechanism.multiplier)
        learner = replace(planned.learner, mechanism=less)
        start(self, replace(planned, learner=learner), *rest, **named)

    def train(labels, seed):
        model = OnlineLogisticRegression(
            10.0,
            1e-5,
            horizon=1,
            classes=(0, 1),
            fit_intercept=False,
            method=GradientSums(learning_rate=1e-6, recent=0.0),
            random_state=seed,
            x_norm=1.0,
        )
        return 1e6 * model.partial_fit(np.ones((1, 1)), labels).coef_[0]

    with monkeypatch.context() as patch:
        if noise != 1.0:
            patch.setattr(Progress, "__init__", with_less)
        return bound_of_runs(train, [[0], [1]], n_runs, 1e-5, seed)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_estimator_keeps_its_claim_with_noise_keyed_by_rows(monkeypatch, seed):
    check("OnlineLogisticRegression", 10.0, partial(estimated, monkeypatch, 800, seed))
