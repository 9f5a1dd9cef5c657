"""Losses of others: what they state is enforced, or assumed in so many words."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse
from tests.cases import Cases, cases
from tests.sensitivity.judging import closest
from tests.sensitivity.solving import BUDGET, of_solver, problem_of, sampled
from tests.solvers.running import replayed, straight_pair
from tests.strategies import adversarial_pairs, each_relation

from tacit import Seed
from tacit._random import as_generator
from tacit.audit import replay
from tacit.audit.pairs import Pair
from tacit.convex import Huber, L1Ball, Logistic, OneVsRest, Simplex, Softmax
from tacit.convex.losses import is_foreign
from tacit.evaluation import coefficient_intervals
from tacit.linear_model import GeneralizedLinearModel
from tacit.privacy import Budget
from tacit.solvers import (
    AMP,
    EntropySampling,
    FrankWolfe,
    NoisyGD,
    NoisySGD,
    ObjectivePerturbation,
    OutputPerturbation,
    PermutedSGD,
    PreconditionedGD,
    SampleAndAggregate,
)
from tacit.solvers._gradients.descent import norm_clipped
from tacit.solvers._gradients.row_clip import clipped_gradient

BALL = {"regularizer": L1Ball(0.5), "norm": "linf", "x_norm": 0.5}


@dataclass(frozen=True)
class TooSteep(Huber):
    """A loss three times as steep as it states."""

    def value(self, y, Z):
        return 3 * super().value(y, Z)

    def derivative(self, y, Z):
        return 3 * super().derivative(y, Z)


@dataclass(frozen=True)
class Broken(Huber):
    """A loss whose derivative is no number on one side, and far too large."""

    def derivative(self, y, Z):
        derivative = super().derivative(y, Z)
        derivative[derivative > 0] = np.nan
        derivative[derivative < -0.5] = -1e300
        return derivative


class Own(Logistic):
    """A loss of labels of one's own."""


SUMMING = [
    (NoisyGD(n_steps=3), {}),
    (NoisyGD(n_steps=3, clip_norm=0.5), {}),
    (PreconditionedGD(n_steps=2), {}),
    (FrankWolfe(3), BALL),
    (FrankWolfe(3, "laplace"), BALL),
]


def searches():
    """Return solvers that clip to what a loss states, each with one that is wrong."""
    return [
        *(
            of_solver(solver, problem_of(TooSteep(), **more), f"foreign {i}")
            for i, (solver, more) in enumerate(SUMMING)
        ),
        of_solver(
            NoisySGD(), problem_of(TooSteep()), "foreign", plan_of=sampled, last=True
        ),
        of_solver(
            PermutedSGD(2, 2),
            problem_of(TooSteep()),
            "foreign",
            relations=(Budget(1.0).neighbors,),
            reach=0.8,
        ),
    ]


SHARED_CASES = Cases(searches=searches)


WRONG = pytest.mark.parametrize("loss", [TooSteep(), Broken()], ids=repr)


@WRONG
@pytest.mark.parametrize(("solver", "more"), SUMMING, ids=repr)
@each_relation
def test_no_loss_moves_a_sum_by_more_than_it_states(solver, more, loss, neighbors):
    problem = problem_of(loss, **more)
    plan = solver.plan(problem, replace(BUDGET, neighbors=neighbors))
    for pair in adversarial_pairs(loss, neighbors, problem.bounds.x_norm):
        for layout in (np.asarray, sparse.csr_array):
            assert replayed(solver, plan, pair, layout=layout).entries


@WRONG
def test_no_loss_moves_a_sum_over_a_sample_by_more(loss):
    plan = sampled(problem_of(loss), BUDGET)
    for pair in adversarial_pairs(loss, BUDGET.neighbors):
        for layout in (np.asarray, sparse.csr_array):
            assert replayed(NoisySGD(), plan, pair, layout=layout).entries


def test_no_loss_moves_the_weights_of_a_pass_by_more():
    # what it states of its curvature is false as well, and steps are short enough
    loss, solver = TooSteep(), PermutedSGD(2, 2, step=0.2)
    plan = solver.plan(problem_of(loss), BUDGET)
    pairs = adversarial_pairs(loss, BUDGET.neighbors)
    assert max(closest(replayed(solver, plan, pair)) for pair in pairs) > 0.5


def test_more_than_it_states_would_be_seen():
    # the control: as steep as a loss of the library that states too little
    problem = problem_of(TooSteep())
    plan = NoisyGD(n_steps=1).plan(problem, BUDGET)
    pair = Pair(*straight_pair(5, 0))
    honest = replace(plan, problem=problem_of(Huber()), sensitivity=plan.sensitivity)
    assert replayed(NoisyGD(), honest, pair, replay).ok
    steep = replace(plan, clip=3.0)
    assert not replayed(NoisyGD(), steep, pair, replay).ok


def test_a_loss_of_the_library_is_none_of_others():
    for loss in cases("losses"):
        assert not is_foreign(loss)
    assert is_foreign(TooSteep())
    assert is_foreign(OneVsRest(Own(), 3))


def test_clipping_leaves_finite_derivatives_and_drops_others():
    kept = np.array([[0.5], [-0.25]])
    assert norm_clipped(kept.copy(), 0.5 + 1e-9).tolist() == kept.tolist()
    wrong = np.array([[np.nan], [np.inf], [-np.inf], [1e300], [2.0]])
    assert norm_clipped(wrong, 1.0)[:, 0].tolist() == [0, 0, 0, 0, 1 - 1e-14]
    whole = np.array([[3], [0]])
    assert norm_clipped(whole, 1.0)[:, 0].tolist() == [1 - 1e-14, 0]


CLAIM = "a curvature of at most 1, as it states"
CLIPPED = f"the loss TooSteep computes each row by itself, with {CLAIM}"
ASSUMED = (
    "the loss TooSteep is convex and computes each row by itself, with a derivative of "
    f"at most 1 in size and {CLAIM}"
)


@pytest.mark.parametrize(
    ("solver", "more", "words"),
    [
        *((solver, more, CLIPPED) for solver, more in SUMMING),
        (AMP(), {}, ASSUMED),
        (ObjectivePerturbation(), {}, ASSUMED),
        (OutputPerturbation(), {}, ASSUMED),
        (PermutedSGD(), {}, ASSUMED),
        (SampleAndAggregate(), {}, None),
        (
            EntropySampling(weight=50.0),
            {"regularizer": Simplex(), "norm": "linf"},
            ASSUMED,
        ),
    ],
    ids=repr,
)
def test_plans_say_what_they_take_from_a_loss(solver, more, words):
    own = solver.plan(problem_of(Huber(), 40, **more), BUDGET).assumptions
    found = solver.plan(problem_of(TooSteep(), 40, **more), BUDGET).assumptions
    assert set(found) - set(own) == ({words} if words else set())


class ThreeClasses(Softmax):
    """A loss of three margins of one's own."""


def test_plans_say_what_they_take_from_a_loss_of_several_margins():
    found = AMP().plan(problem_of(ThreeClasses(3), 40), BUDGET).assumptions
    assert (
        "the loss ThreeClasses is convex and computes each row by itself, with a "
        "derivative of at most 1.414 in size and a curvature of at most 0.5 and a "
        "Hessian of trace at most 0.6667 and rank 2, as it states"
    ) in found


def rows(n=400):
    rng = as_generator(0)
    X = rng.normal(size=(n, 2)) / 3
    return X, np.clip(X @ [1.0, -1.0], -1.0, 1.0)


def test_the_report_says_it_and_that_of_a_loss_of_the_library_does_not():
    X, y = rows()
    model = GeneralizedLinearModel(1.0, 1e-6, y_range=(-1, 1), solver="noisy_gd")
    said = [
        model.set_params(loss=loss).fit(X, y).privacy_.assumptions
        for loss in (Huber(), TooSteep())
    ]
    assert set(said[1]) - set(said[0]) == {CLIPPED}


@each_relation
def test_no_loss_moves_what_intervals_read_by_more(neighbors):
    X, y = rows()
    model = GeneralizedLinearModel(
        1e4, 1e-6, loss=TooSteep(), y_range=(-1, 1), solver="amp",
        fit_intercept=False, neighbors=neighbors, expected_rows=400,
        random_state=Seed(0),
    ).fit(X, y)  # fmt: skip

    def train(X, y):
        coefficient_intervals(model, X, y, epsilon=1.0, random_state=Seed(1))

    X[0], other = [1.0, 0.0], y.copy()
    y[0], other[0] = 1.0, -1.0
    sides = ((X, y), (X, other))
    if neighbors.rows_changed == 1:
        sides = (X, y), (X[1:], y[1:])
    assert replay(train, *sides).ok


@pytest.mark.parametrize("loss", [Logistic(), Huber()], ids=repr)
def test_gradients_beyond_the_reach_of_their_round_off_are_a_mistake(loss):
    problem = problem_of(loss, x_norm=2.0)
    W = np.array([[60.0], [80.0]])
    clipped_gradient(problem, W, 1.0, None)
    with pytest.raises(AssertionError, match="project the weights"):
        clipped_gradient(problem, 1.01 * W, 1.0, None)
    # rows whose margins do not depend on others have no such limit
    clipped_gradient(problem, 1e9 * W, 1.0, 1.0)
