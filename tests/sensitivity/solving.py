"""Every solver on problems small enough to run thousands of times."""

from dataclasses import replace
from functools import partial

from tests.cases import Cases
from tests.sensitivity.judging import Planned, Subject, charged
from tests.sensitivity.pairs import REPLACE, pairs_of, sampled_rows

from tacit._random import as_generator
from tacit.convex import (
    Box,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    Simplex,
    Softmax,
    Squared,
)
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms import StableRelease
from tacit.mechanisms.nested import NestedExponential
from tacit.privacy import Budget
from tacit.solvers import (
    AMP,
    AdaptiveMoments,
    AdaptiveRidge,
    AdaSSP,
    CoordinateDescent,
    EntropySampling,
    FrankWolfe,
    GreedyCoordinateDescent,
    NoisyGD,
    NoisySGD,
    ObjectivePerturbation,
    OnlineToBatch,
    OutputPerturbation,
    PermutedSGD,
    PreconditionedGD,
    Problem,
    QuadraticPerturbation,
    SampleAndAggregate,
    TukeyRegression,
)
from tacit.solvers.noisy_sgd import NoisySGDPlan, Sampling, sample_sensitivity
from tacit.solvers.tukey_regression import TukeyRegressionPlan

SEED = 0
BUDGET = Budget(2.0, 1e-3)
HINGE, CAPPED, HUBER = HuberizedHinge(), Logistic(cap=0.5), Huber()


def problem_of(loss, n_rows=5, n_features=2, x_norm=1.0, norm="l2", **more):
    return Problem(loss, RowBounds(x_norm, norm=norm), n_rows, n_features, **more)


def targets_of(problem, y):
    """Return classes as labels that a loss takes, and numbers in their range."""
    if problem.loss.targets == "codes":
        return y
    numbers = problem.loss.targets == "numbers"
    return problem.bounds.clip_target(y if numbers else 2.0 * y - 1.0)


def solved(solver, problem, neighbors, budget=BUDGET, plan_of=None):
    """Return a trainer with all that is planned before there are rows."""
    plan_of = plan_of or solver.plan
    plan = plan_of(problem, replace(budget, neighbors=neighbors))

    def train(X, y):
        rows = bounded_rows(X, targets_of(problem, y), problem.bounds)
        return solver.run(plan, rows, as_generator(SEED)).coefficients

    return Planned(train, charged(plan.event))


def of_solver(
    solver, problem, name="", *, plan_of=None, budget=BUDGET, last=False, **more
):
    """Return a solver on one problem as a subject."""
    kind, loss = type(solver).__name__, problem.loss
    numbers = loss.targets == "numbers"
    pairs = partial(
        pairs_of,
        n_rows=problem.n_rows,
        n_features=problem.n_features,
        unit=problem.bounds.x_norm,
        n_classes=0 if numbers else max(2, loss.n_outputs),
        sparse_too=more.pop("sparse_too", False),
        last=last,
        kinds=more.pop("kinds", ()),
    )
    return Subject(
        f"{kind} {name or type(loss).__name__}",
        (f"solvers.{kind}",),
        partial(solved, solver, problem, budget=budget, plan_of=plan_of),
        pairs,
        **more,
    )


BALL = {"regularizer": L2Ball(1.0)}


def sampled(problem, budget):
    """Return a plan with noise that was not searched for, which takes seconds."""
    poisson = budget.neighbors is not REPLACE
    sampling = Sampling(problem.n_rows, 3, 4, poisson=poisson)
    limit = sample_sensitivity(
        problem, sampling, problem.max_derivative, budget.neighbors
    )
    clip = problem.max_derivative
    return NoisySGDPlan(problem, sampling, 0.05, 0.5, clip, False, 2.0, limit)


def in_blocks(tested, problem, budget):
    """Return a plan for fewer rows than its depth would ask for."""
    test = (4, StableRelease(5.0, 1e-2), 0.1) if tested else ()
    equal, choice = budget.neighbors is REPLACE, NestedExponential(5.0)
    return TukeyRegressionPlan(problem, 21, equal, 4.0, 1e-3, choice, *test)


def wide_solvers():
    """Return the solvers whose rows are bounded entry by entry."""
    ball, entries = {"regularizer": L1Ball(0.5)}, {"norm": "linf", "x_norm": 0.5}
    walks = [CoordinateDescent(2), CoordinateDescent(2, smoothness="private")]
    rules = [GreedyCoordinateDescent(3, mechanism=m) for m in ("gumbel", "laplace")]
    return [
        *(
            of_solver(s, problem_of(HINGE, **entries), name, sparse_too=True)
            for s, name in zip(walks, ["public", "private"], strict=True)
        ),
        *(
            of_solver(s, problem_of(HINGE, **entries), s.mechanism, sparse_too=True)
            for s in rules
        ),
        of_solver(FrankWolfe(3), problem_of(HINGE, **entries, **ball), sparse_too=True),
        of_solver(
            FrankWolfe(3, "laplace"), problem_of(HINGE, **entries, **ball), "laplace"
        ),
        of_solver(
            EntropySampling(),
            problem_of(Squared(), 20, **entries, regularizer=Simplex()),
            relations=(REPLACE,),
            reach=0.1,
        ),
    ]


def solvers():
    """Return all solvers, each with a loss as steep as declared where it takes one."""
    return [
        of_solver(ObjectivePerturbation(), problem_of(HINGE)),
        of_solver(ObjectivePerturbation(), problem_of(Softmax(3)), reach=0.5),
        of_solver(AMP(), problem_of(CAPPED, x_norm=3.0), sparse_too=True),
        of_solver(OutputPerturbation(), problem_of(HINGE, ridge=1.0), reach=0.5),
        of_solver(NoisyGD(n_steps=3), problem_of(HINGE), sparse_too=True),
        of_solver(NoisyGD(n_steps=3), problem_of(HUBER, x_norm=1e-3)),
        of_solver(NoisyGD(n_steps=3, clip=0.3), problem_of(Squared()), "clipped"),
        of_solver(PreconditionedGD(n_steps=2), problem_of(HINGE)),
        of_solver(
            PermutedSGD(2, 2), problem_of(HUBER), relations=(REPLACE,), reach=0.8
        ),
        of_solver(
            OnlineToBatch("last", 0.2),
            problem_of(HUBER, **BALL),
            last=True,
            reach=0.4,
        ),
        of_solver(AdaSSP(), problem_of(Squared())),
        of_solver(AdaSSP(adaptive=True), problem_of(Squared()), "adaptive"),
        of_solver(AdaptiveMoments(), problem_of(Squared())),
        of_solver(AdaptiveRidge(), problem_of(Squared(), **BALL), reach=0.4),
        of_solver(QuadraticPerturbation(), problem_of(Squared(), **BALL), reach=0.4),
        of_solver(
            QuadraticPerturbation(),
            problem_of(Squared(), regularizer=Box(-1.0, 1.0, 2)),
            "in a box",
            reach=0.4,
        ),
        of_solver(NoisySGD(), problem_of(HINGE), plan_of=sampled, last=True),
        of_solver(
            SampleAndAggregate(n_blocks=3, radius=0.02),
            problem_of(HUBER, 9),
            last=True,
            reach=0.4,
        ),
        *(
            of_solver(
                TukeyRegression(),
                problem_of(Squared(), 400),
                "tested" if tested else "clamped",
                plan_of=partial(in_blocks, tested),
                last=True,
                redraw=True,
                kinds=sampled_rows(400, 2),
            )
            for tested in (True, False)
        ),
        *wide_solvers(),
    ]


SHARED_CASES = Cases(searches=solvers)
