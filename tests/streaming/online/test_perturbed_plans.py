"""Plans of noise on iterates: what is refused, and what is chosen without data."""

from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from tests.refusal import raises_one_line

from tacit._random import as_generator
from tacit.convex import L1, Huber, Logistic, NuclearBall, Softmax, Squared
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.streaming import PerturbedIterates
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._iterates import ImplicitGradient, Leader, ProjectedGradient

BUDGET = Budget(1.0, 1e-6)


def planned(method=None, *, budget=BUDGET, horizon=20, **more):
    problem = Problem(Logistic(), RowBounds(), 1, 2, **more)
    return (method or PerturbedIterates()).plan(problem, budget, StreamTerms(horizon))


class Other(Logistic):
    """A loss that the compiled loop does not know."""


@dataclass(frozen=True)
class Rough(Huber):
    """A loss that claims no bound on its curvature."""

    def max_curvature(self):
        return inf


@pytest.mark.parametrize(
    ("method", "facts", "cure"),
    [
        ({}, {"budget": Budget(1.0)}, "needs delta > 0"),
        ({}, {"regularizer": L1()}, "no penalty but a ridge"),
        ({}, {"regularizer": NuclearBall()}, "no penalty but a ridge"),
        ({}, {"loss": Squared()}, r"L2Ball\(\)"),
        ({}, {"bounds": RowBounds(norm="linf")}, "norm='l2'"),
        ({}, {"loss": Softmax(3)}, "use ProjectedGradient"),
        ({}, {"loss": Other()}, "loss of this library"),
        ({"learner": ProjectedGradient()}, {"loss": Rough()}, "smooth loss"),
        ({"learner": Leader()}, {"loss": Rough()}, "smooth loss"),
        ({"accounting": "paper"}, {"budget": Budget(1000.0, 0.5)}, "do not keep"),
        ({}, {"budget": Budget(1e-9, 1e-15)}, "too large for the grid"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused_with_a_cure(method, facts, cure):
    budget = facts.pop("budget", BUDGET) if "budget" in facts else BUDGET
    public = {"loss": Logistic(), "bounds": RowBounds(), "n_rows": 1, "n_features": 2}
    problem = Problem(**{**public, **facts})
    with raises_one_line(PlanError, match=cure):
        PerturbedIterates(**method).plan(problem, budget, StreamTerms(1000))


def test_bad_parameters_are_rejected():
    for wrong in (
        {"learner": "implicit"},
        {"schedule": "linear"},
        {"accounting": "tight"},
        {"average": "yes"},
        {"noise": "none"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            PerturbedIterates(**wrong)
    for kind in (ImplicitGradient, ProjectedGradient, Leader):
        with pytest.raises(ValueError, match="strong_convexity"):
            kind(0.0)


@pytest.mark.parametrize("x_norm", [1e-3, 1.0, 1e3])
def test_the_rule_does_not_depend_on_the_units_of_features(x_norm):
    """What it asks for, in units of the row norm."""
    terms = StreamTerms(100, 10)
    problems = [
        Problem(loss, RowBounds(x_norm), 1, 2) for loss in (Logistic(), Huber(0.3))
    ]
    for problem in problems:
        plan = PerturbedIterates().plan(problem, BUDGET, terms)
        same = PerturbedIterates().plan(
            Problem(problem.loss, RowBounds(1.0), 1, 2), BUDGET, terms
        )
        assert plan.iterates.unit == pytest.approx(same.iterates.unit * x_norm**2)


def test_more_budget_and_longer_streams_ask_for_less_strength():
    units = [
        planned(PerturbedIterates(), budget=Budget(epsilon, 1e-6)).iterates.unit
        for epsilon in (0.1, 1.0, 10.0)
    ]
    assert units == sorted(units, reverse=True)
    # a ridge of the problem is the least
    ridged = planned(PerturbedIterates(), ridge=1e6, horizon=10)
    assert ridged.iterates.unit == pytest.approx(1e6 / 10)


@pytest.mark.parametrize("horizon", [1, 2, 2**22])
def test_streams_of_any_length_are_planned(horizon):
    plan = planned(PerturbedIterates(), horizon=horizon)
    row = np.ones((1, 2)) / 2, np.ones(1)
    state = plan.step(plan.init(), *row, as_generator(0))
    assert np.isfinite(plan.weights(state)).all()
