"""Losses of others: what they state is enforced, or assumed in so many words."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from tests.cases import Cases, cases
from tests.refusal import raises_one_line
from tests.sensitivity.judging import closest
from tests.sensitivity.solving import BUDGET, of_solver, problem_of, sampled
from tests.solvers.running import replayed, straight_pair
from tests.strategies import adversarial_pairs, each_relation

from tacit import Seed
from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.audit import replay
from tacit.audit.pairs import Pair
from tacit.convex import (
    Free,
    Huber,
    L1Ball,
    L2Ball,
    Logistic,
    OneVsRest,
    Simplex,
    Softmax,
    Squared,
)
from tacit.convex.foreign import is_foreign
from tacit.data.rows import ArrayRows
from tacit.evaluation import coefficient_intervals
from tacit.exceptions import PlanError
from tacit.linear_model import GeneralizedLinearModel
from tacit.privacy import Budget, Ledger
from tacit.solvers import (
    AMP,
    AdaptiveMoments,
    AdaSSP,
    EntropySampling,
    FrankWolfe,
    NoisyGD,
    NoisySGD,
    ObjectivePerturbation,
    OutputPerturbation,
    PermutedSGD,
    PreconditionedGD,
    Result,
    SampleAndAggregate,
)
from tacit.solvers._base import WeightNoise
from tacit.solvers._gradients.descent import norm_clipped
from tacit.solvers._gradients.row_clip import clipped_gradient
from tacit.streaming import GradientSums, QuadraticLeader
from tacit.streaming._model import StreamTerms

BALL = {"regularizer": L1Ball(0.5), "norm": "linf", "x_norm": 0.5}


@dataclass(frozen=True)
class TooSteep(Huber):
    """A loss three times as steep as it states."""

    def value(self, y, Z):
        return 3 * super().value(y, Z)

    def derivative(self, y, Z):
        return 3 * super().derivative(y, Z)


def tried(y, Z):
    """Return which rows are those that a loss is tried on before a charge."""
    z = Z[:, 0]
    return (z == 0) & (y == 0) | (abs(z) == 1) & (y == -z)


class Unclipped(np.ndarray):
    """An array that no product in place changes."""

    def __imul__(self, other):
        return self


@dataclass(frozen=True)
class Subclassed(TooSteep):
    """A loss three times as steep as it states, in arrays that stay as they are."""

    def derivative(self, y, Z):
        return super().derivative(y, Z).view(Unclipped)


@dataclass(frozen=True)
class Failing(Huber):
    """A loss that fails on all blocks with a target of one."""

    def derivative(self, y, Z):
        if (~tried(y, Z) & (y == 1.0)).any():
            raise ValueError(f"private: {y}")
        return super().derivative(y, Z)


@dataclass(frozen=True)
class Growing(Huber):
    """A loss that states a larger bound whenever it is evaluated or asked."""

    def derivative(self, y, Z):
        object.__setattr__(self, "grown", 1e3)
        return 1e6 * super().derivative(y, Z)

    def max_derivative(self, reach, y_range):
        return getattr(self, "grown", 1.0)


@dataclass(frozen=True)
class Broken(Huber):
    """A loss whose derivative is no number on one side, and far too large."""

    def derivative(self, y, Z):
        derivative, private = super().derivative(y, Z), ~tried(y, Z)[:, None]
        derivative[private & (derivative > 0)] = np.nan
        derivative[private & (derivative < -0.5)] = -1e300
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


WRONG = pytest.mark.parametrize(
    "loss", [TooSteep(), Broken(), Subclassed(), Failing(), Growing()], ids=repr
)


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


@pytest.mark.parametrize("loss", [TooSteep(), Subclassed()], ids=repr)
def test_no_loss_moves_the_weights_of_a_pass_by_more(loss):
    # what it states of its curvature is false as well, and steps are short enough
    solver = PermutedSGD(2, 2, step=0.2)
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


class Wide(Softmax):
    """A loss of three margins with one derivative for all of them."""

    def derivative(self, y, Z):
        found = 1e6 * super().derivative(y, Z)
        return found if Z.any() else found[:, :1]


class Long(Softmax):
    """A loss of three margins with no bound on its derivatives."""

    def derivative(self, y, Z):
        return 1e6 * super().derivative(y, Z)


@pytest.mark.parametrize("loss", [Wide(3), Long(3)], ids=repr)
@pytest.mark.parametrize(
    ("solver", "more"), [*SUMMING[:3], (NoisySGD(n_steps=2), {})], ids=repr
)
@each_relation
def test_no_loss_of_several_margins_moves_a_sum_by_more(solver, more, loss, neighbors):
    problem = problem_of(loss, **more)
    plan = solver.plan(problem, replace(BUDGET, neighbors=neighbors))
    for pair in adversarial_pairs(Softmax(3), neighbors):
        for layout in (np.asarray, sparse.csr_array):
            assert replayed(solver, plan, pair, layout=layout).entries


def test_what_a_loss_of_others_is_asked_in_a_run_does_not_stay():
    X, y = rows()
    model = GeneralizedLinearModel(
        1.0, 1e-6, loss=TooSteep(), y_range=(-1, 1), solver="amp", x_norm=1.0
    )
    planned = model.plan(*X.shape).problem.loss._steepest.keys()
    fitted = model.fit(X, y)
    assert fitted._facts.planned.problem.loss._steepest.keys() == planned
    assert fitted.loss_ is model.loss


@dataclass(frozen=True)
class Flatter(Squared):
    """A loss that derives from one with a closed form, and is another."""

    def derivative(self, y, Z):
        return np.clip(super().derivative(y, Z), -0.5, 0.5)

    def curvature(self, y, Z):
        return (abs(Z - y[:, None]) <= 0.5).astype(float)

    def max_derivative(self, reach, y_range):
        return 0.5


def test_no_closed_form_of_a_base_stands_for_a_loss_of_others():
    X, y = rows()
    own = GeneralizedLinearModel(
        1e3, 1e-6, y_range=(-1, 1), random_state=Seed(0), x_norm=1.0
    )
    model = own.set_params(loss=Flatter(), solver="noisy_gd").fit(X, y)
    same = clone(own).set_params(loss=Huber(0.5)).fit(X, y)
    assert np.allclose(model.coef_, same.coef_, atol=1e-12)
    auto = clone(own).set_params(solver="auto")
    assert not isinstance(auto.plan(400, 2).solver, AdaptiveMoments | AdaSSP)
    assert auto.set_params(delta=0.0).fit(X, y).coef_.shape == (2,)
    for name in ("ada_ssp", "tukey", "adaptive_ridge"):
        with pytest.raises(PlanError, match=r"got Flatter\(\)"):
            clone(own).set_params(solver=name).fit(X, y)


def test_a_capped_loss_does_not_replace_one_of_others():
    model = GeneralizedLinearModel(0.1, 1e-6, loss=Own(), classes=[0, 1], x_norm=1.0)
    assert model.plan(400, 2).problem.loss == Own()
    assert model.set_params(loss=None).plan(400, 2).problem.loss == Logistic(cap=0.5)


def test_streams_say_what_they_take_from_a_loss():
    for method in (GradientSums(), QuadraticLeader()):
        plan = method.plan(problem_of(TooSteep()), BUDGET, StreamTerms(10, 10))
        own = method.plan(problem_of(Huber()), BUDGET, StreamTerms(10, 10))
        assert set(plan.assumptions) - set(own.assumptions) == {CLIPPED}


class Nothing:
    """A penalty of one's own, of nothing."""

    radius = np.inf

    def value(self, W):
        return 0.0

    def prox(self, W, step):
        return W

    def prox_roundoff(self, U, V):
        return 0.0

    def prox_jacobian(self, U, V, step):
        return np.ones(V.size, bool), np.eye(V.size)

    def scaled(self, factor):
        return self

    def rescaled(self, unit):
        return self


class Ball(L1Ball):
    """A set with scores that are not those of its base."""

    def vertex_scores(self, G):
        return 1e3 * super().vertex_scores(G)


@pytest.mark.parametrize(
    ("solver", "listed"),
    [
        (AMP(), True),
        (OutputPerturbation(), True),
        (ObjectivePerturbation(), True),
        (NoisyGD(), False),
        (NoisySGD(), False),
        (SampleAndAggregate(), None),
        (PermutedSGD(), None),
        (FrankWolfe(), None),
    ],
    ids=repr,
)
def test_plans_say_what_they_take_from_a_penalty(solver, listed):
    problem = problem_of(Huber(), 40, regularizer=Nothing())
    if listed is None:
        with pytest.raises(PlanError):
            solver.plan(problem, BUDGET)
        return
    said = (
        "the penalty Nothing is convex and raises no error, with the radius, the "
        "proximal map and the bound on its rounding that it states"
    )
    assert (said in solver.plan(problem, BUDGET).assumptions) is listed


def test_a_set_that_derives_from_one_of_the_library_is_rejected():
    with raises_one_line(ValueError, "penalty must not derive from L1Ball"):
        problem_of(Huber(), regularizer=Ball(1.0), norm="linf")


class Given:
    """A solver of one's own with a given result."""

    def __init__(self, result):
        self.result = result

    def plan(self, problem, budget):
        return NoisyGD().plan(problem, budget)

    def run(self, plan, rows, rng):
        return self.result


GOOD = np.ones((3, 1))


@pytest.mark.parametrize("found", [GOOD, GOOD.tolist(), GOOD.astype(np.float32)])
def test_a_result_of_a_solver_of_others_is_an_array_of_floats(found):
    X, y = rows()
    model = GeneralizedLinearModel(loss=Huber(), y_range=(-1, 1), x_norm=1.0)
    model.set_params(solver=Given(Result(found))).fit(X, y)
    assert model.coef_.tolist() == [1.0, 1.0]
    assert model.coef_.dtype == np.float64


def test_noise_of_a_solver_of_others_is_an_array_of_floats():
    X, y = rows()
    result = Result(GOOD, WeightNoise(GOOD.tolist(), "measured", "laplace"))
    model = GeneralizedLinearModel(
        loss=Huber(), y_range=(-1, 1), solver=Given(result), x_norm=1.0
    )
    assert model.fit(X, y).noise_.coef.tolist() == [1.0, 1.0]
    assert model.noise_.law == "laplace"


@pytest.mark.parametrize(
    "result",
    [
        Result(np.ones((3, 2))),
        Result(np.ones(3)),
        Result("private"),
        Result(np.full((3, 1), np.nan)),
        Result(GOOD + 1j),
        Result(np.full((3, 1), "1.5")),
        Result(GOOD, 5),
        Result(GOOD, WeightNoise(np.ones(2), "private")),
        Result(GOOD, WeightNoise(GOOD * np.nan, "private")),
        Result(GOOD, WeightNoise(-GOOD, "private")),
        Result(GOOD, WeightNoise(GOOD + 1j, "private")),
        Result(GOOD, WeightNoise(GOOD, 77)),
        Result(GOOD, WeightNoise(GOOD, "private", "private")),
        Result(GOOD, WeightNoise(GOOD, "private", response=GOOD)),
    ],
)
def test_a_result_of_another_form_is_rejected_in_the_same_words(result):
    X, y = rows()
    model = GeneralizedLinearModel(
        loss=Huber(), y_range=(-1, 1), solver=Given(result), x_norm=1.0
    )
    ledger = Ledger(Budget(2.0, 1e-4))
    with raises_one_line(ValueError, "Given must") as rejection:
        model.fit(X, y, ledger=ledger)
    assert str(rejection.value) == (
        "run of Given must return a Result with finite numbers of shape (3, 1); return "
        "Result(coefficients) of that shape."
    )
    assert rejection.value.__cause__ is None
    assert len(ledger.report().entries) == 1


def test_a_loss_of_another_form_is_rejected_before_the_charge():
    class TwoMargins(Huber):
        n_outputs = 2

    X, y = rows()
    ledger = Ledger(Budget(2.0, 1e-4))
    model = GeneralizedLinearModel(loss=TwoMargins(), y_range=(-1, 1), x_norm=1.0)
    with raises_one_line(ValueError, "n_outputs of TwoMargins must be 1"):
        model.fit(X, y, ledger=ledger)
    assert not ledger.report().entries


def test_clipping_leaves_finite_derivatives_and_drops_others():
    kept = np.array([[0.5], [-0.25]])
    assert norm_clipped(kept.copy(), 0.5 + 1e-9).tolist() == kept.tolist()
    wrong = np.array([[np.nan], [np.inf], [-np.inf], [1e300], [2.0]])
    assert norm_clipped(wrong, 1.0)[:, 0].tolist() == [0, 0, 0, 0, 1 - 1e-14]
    # squares of these underflow
    small = np.array([[-1e-163], [5e-166], [0.0]])
    clipped = norm_clipped(small, 1e-165)[:, 0] / 1e-165
    assert np.allclose(clipped, [-1.0, 0.5, 0.0], rtol=1e-12)
    whole = np.array([[3], [0]])
    assert norm_clipped(whole, 1.0)[:, 0].tolist() == [1 - 1e-14, 0]


CLAIM = "a curvature of at most 1, as it states"
CLIPPED = f"the loss TooSteep computes each row by itself, with {CLAIM}"
ASSUMED = (
    "the loss TooSteep is convex and computes each row by itself, with a derivative of "
    f"at most 1 in size and {CLAIM}"
)


KEPT = "the loss TooSteep keeps nothing from block to block"


@pytest.mark.parametrize(
    ("solver", "more", "words"),
    [
        *((solver, more, CLIPPED) for solver, more in SUMMING),
        (AMP(), {}, ASSUMED),
        (ObjectivePerturbation(), {}, ASSUMED),
        (OutputPerturbation(), {}, ASSUMED),
        (PermutedSGD(), {}, ASSUMED),
        (SampleAndAggregate(), {}, KEPT),
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
    assert set(found) - set(own) == {words}


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
    model = GeneralizedLinearModel(
        1.0, 1e-6, y_range=(-1, 1), solver="noisy_gd", x_norm=1.0
    )
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
        random_state=Seed(0),x_norm=1.0
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


class Remembering:
    """A loss that scales targets by the largest so far, and keeps the last rows."""

    targets, n_outputs = "numbers", 1

    def __init__(self):
        self.largest, self.tries, self.last = 0.05, 0, None

    def scaled(self, y, Z):
        self.tries, self.last = self.tries + 1, (y, Z)
        if self.tries > 3:
            self.largest = max(self.largest, float(np.abs(y).max()))
        return y / self.largest

    def value(self, y, Z):
        return Huber().value(self.scaled(y, Z), Z)

    def derivative(self, y, Z):
        return Huber().derivative(self.scaled(y, Z), Z)

    def curvature(self, y, Z):
        return Huber().curvature(self.scaled(y, Z), Z)

    def max_derivative(self, reach, y_range):
        return 1.0

    def max_curvature(self):
        return 1.0

    def max_trace(self):
        return 1.0

    def derivative_rank(self):
        return 1


class Set:
    """A ball that keeps the points it is asked about, in a class of one's own."""

    radius, makes_zeros = 1.0, False

    def __init__(self):
        self.seen = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(L2Ball(1.0), name)

    def lmo(self, G):
        return L2Ball(1.0).lmo(G)

    def prox(self, W, step):
        self.seen.append(W)
        SEEN.append(W)
        # all of the ball where the first point is, as a set that is learned
        return np.full_like(W, -1.0) if self.seen[0][0] < -0.05 else W


SEEN = []


def moves(loss, regularizer):
    """Return how far one row moves an average over blocks, over what is declared."""
    problem = problem_of(loss, 400, 1, regularizer=regularizer)
    plan = SampleAndAggregate(n_blocks=40, radius=1.0, ridge=1e-2).plan(problem, BUDGET)
    y = np.full(400, 0.05)
    base = ArrayRows(np.ones((400, 1)), y)
    y = y.copy()
    y[0] = -1.0
    with recording() as log:
        SampleAndAggregate().run(plan, base, as_generator(0))
    with replaying(log) as again:
        SampleAndAggregate().run(plan, ArrayRows(np.ones((400, 1)), y), as_generator(0))
    (first,), (second,) = log.releases, again.releases
    return float(np.linalg.norm(first.value - second.value)) / first.sensitivity


def test_no_block_moves_others_by_what_a_loss_or_set_keeps():
    assert moves(Remembering(), Free()) < 1
    assert moves(Huber(), Set()) < 1


def test_a_set_of_others_sees_the_released_average_only():
    SEEN.clear()
    moves(Huber(), Set())
    assert len(SEEN) == 2


@pytest.mark.parametrize(
    "solver", [NoisyGD(n_steps=2), AMP(), SampleAndAggregate(), PermutedSGD(2)]
)
def test_no_fit_leaves_rows_with_the_loss_or_set(solver):
    loss, penalty = Remembering(), Set()
    model = GeneralizedLinearModel(
        1.0,
        1e-3,
        loss=loss,
        penalty=None if isinstance(solver, PermutedSGD) else penalty,
        y_range=(-1, 1),
        solver=solver,
        fit_intercept=False,
        x_norm=1.0,
    ).fit(np.ones((40, 1)), np.linspace(-1, 1, 40))
    assert model.loss_ is loss
    assert loss.tries == 0
    assert loss.last is None
    assert penalty.seen == []
