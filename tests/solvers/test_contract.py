"""What every solver guarantees; one line in a list adds a solver or a loss."""

import inspect
from dataclasses import is_dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from tests.cases import Cases, cases
from tests.refusal import raises_one_line
from tests.sensitivity.judging import charged
from tests.solvers.running import (
    assert_reported,
    assert_seed_decides,
    assert_tight,
    coefficients,
    exact_minimum,
    replayed,
)
from tests.strategies import (
    adversarial_pairs,
    budgets,
    each_relation,
    neighboring_data,
    targets,
)

from tacit._random import as_generator
from tacit.audit import replay, worst_case_pair
from tacit.convex import (
    Box,
    Free,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    Softmax,
    Squared,
)
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Neighbors
from tacit.solvers import (
    AMP,
    AdaptiveMoments,
    AdaptiveRidge,
    AdaSSP,
    NoisyGD,
    ObjectivePerturbation,
    OutputPerturbation,
    PreconditionedGD,
    Problem,
    QuadraticPerturbation,
    TukeyRegression,
)
from tacit.solvers._gradients import descent
from tacit.solvers.amp import AMPPlan
from tacit.solvers.preconditioned_gd import PreconditionedGDPlan

# those that take any loss, any relation and rows in L2; others have files of their own
SHARED_CASES = Cases(
    solvers=[
        ObjectivePerturbation(),
        AMP(),
        OutputPerturbation(),
        NoisyGD(),
        PreconditionedGD(),
    ]
)
SOLVERS = cases("solvers")
PURE = (ObjectivePerturbation, AMP, OutputPerturbation)
# those of the squared loss alone, whose distributions and bounds have files of their
# own
LEAST_SQUARES = [
    AdaSSP(),
    AdaptiveMoments(),
    AdaptiveRidge(),
    QuadraticPerturbation(),
    TukeyRegression(),
]
LOSSES = [Logistic(), Logistic(cap=0.5), Softmax(3), HuberizedHinge(), Huber()]

each_solver = pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: type(s).__name__)
each_least_squares = pytest.mark.parametrize(
    "solver", LEAST_SQUARES, ids=lambda s: type(s).__name__
)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def problem_of(loss, n_rows=40, n_features=2, x_norm=1.0, ridge=0.0):
    return Problem(loss, RowBounds(x_norm), n_rows, n_features, ridge)


def scaled(plan, factor):
    """Return the plan with all its noise times a factor, and nothing else changed."""
    if isinstance(plan, AMPPlan):
        return replace(
            plan,
            tilted=scaled(plan.tilted, factor),
            output_multiplier=plan.output_multiplier * factor,
        )
    if isinstance(plan, PreconditionedGDPlan):
        plan = replace(plan, moment_multiplier=plan.moment_multiplier * factor)
    return replace(plan, multiplier=plan.multiplier * factor)


def halved_sensitivity(plan):
    """Return the plan with a planted bug: half the sensitivity is declared."""
    if isinstance(plan, AMPPlan):
        return replace(plan, tilted=halved_sensitivity(plan.tilted))
    return replace(plan, sensitivity=plan.sensitivity / 2)


def n_releases(solver, plan):
    """Return how often a solver draws noise: once for each event, but for three."""
    fixed = {ObjectivePerturbation: 2, AMP: 3, OutputPerturbation: 1}
    return fixed.get(type(solver), charged(plan.event))


def sample(loss, seed, n=40, p=2):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p))
    noise = rng.normal(size=n)
    codes = np.where(X[:, 0] + 0.5 * noise > 0, 0, np.where(X[:, 1] > 0, 1, 2))
    return X, targets(loss, codes)


@each_solver
@each_loss
@each_relation
def test_planned_event_fits_and_wastes_nothing(solver, loss, neighbors):
    budget = Budget(1.0, 1e-5, neighbors)
    plan = solver.plan(problem_of(loss), budget)
    assert_tight(plan, budget, scaled(plan, 0.99))


@each_solver
@each_relation
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(solver, neighbors, data):
    budget = data.draw(budgets(neighbors))
    loss = data.draw(st.sampled_from(LOSSES))
    x_norm = data.draw(st.floats(1e-3, 1e3))
    n_rows = data.draw(st.integers(2, 10**6))
    plan = solver.plan(problem_of(loss, n_rows, x_norm=x_norm), budget)
    assert plan.event.curve(neighbors).epsilon(budget.delta) <= budget.epsilon * (
        1 + 1e-9
    )


@each_solver
def test_plans_without_data_and_runs_without_a_budget(solver):
    assert list(inspect.signature(solver.plan).parameters) == ["problem", "budget"]
    assert list(inspect.signature(solver.run).parameters) == ["plan", "rows", "rng"]
    problem, budget = problem_of(Logistic()), Budget(1.0, 1e-5)
    plan = solver.plan(problem, budget)
    assert is_dataclass(plan)
    assert plan == solver.plan(problem, budget)
    assert not any(isinstance(value, Budget) for value in vars(plan).values())


@each_solver
@each_relation
def test_more_budget_means_less_noise(solver, neighbors):
    plans = [
        solver.plan(problem_of(Logistic()), Budget(epsilon, 1e-5, neighbors))
        for epsilon in (0.1, 1.0, 10.0)
    ]
    noise = [getattr(plan, "tilted", plan).multiplier for plan in plans]
    assert noise == sorted(noise, reverse=True)


@each_solver
@pytest.mark.parametrize(
    ("loss", "bounds", "cure"),
    [
        (Squared(), RowBounds(), r"Huber\(\)"),
        (Logistic(), RowBounds(norm="linf"), "norm='l2'"),
    ],
    ids=["unbounded derivative", "linf"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(solver, loss, bounds, cure):
    with raises_one_line(PlanError, match=cure):
        solver.plan(Problem(loss, bounds, 40, 2), Budget(1.0, 1e-5))


class Rough(Logistic):
    """A loss that claims no bound on its curvature."""

    def max_curvature(self):
        return np.inf


@each_solver
def test_a_loss_that_is_not_smooth_is_refused_with_a_cure(solver):
    with pytest.raises(PlanError, match=r"smooth loss.*HuberizedHinge\(\)"):
        solver.plan(problem_of(Rough()), Budget(1.0, 1e-5))


@each_solver
def test_plans_say_what_the_number_of_rows_matters_for(solver):
    plan = solver.plan(problem_of(Logistic()), Budget(1.0, 1e-5))
    assert plan.assumptions[0] == (
        "planned for 40 rows; another number costs accuracy only"
    )
    assert plan.assumptions.count(plan.assumptions[0]) == 1


@each_solver
@pytest.mark.parametrize("narrow", [np.float16, np.float32, np.longdouble, Fraction])
def test_narrow_numbers_do_not_narrow_the_plan(solver, narrow):
    loss, plain = HuberizedHinge(narrow(0.5)), HuberizedHinge(0.5)
    problem = replace(problem_of(loss), ridge=narrow(3.0))
    plan = solver.plan(problem, Budget(1.0, 1e-5))
    assert plan == solver.plan(replace(problem_of(plain), ridge=3.0), Budget(1.0, 1e-5))
    tilted = getattr(plan, "tilted", plan)
    assert type(tilted.sensitivity) is float


@pytest.mark.parametrize("kind", [L1Ball, L2Ball])
def test_a_set_beyond_all_numbers_is_no_problem_at_all(kind):
    with pytest.raises(PlanError, match="smaller set"):
        replace(problem_of(Squared()), regularizer=kind(1e160))


def test_a_box_of_another_size_is_no_problem_at_all():
    with pytest.raises(PlanError, match="size=2"):
        replace(problem_of(Squared()), regularizer=Box(-1.0, 1.0, size=1))


@each_solver
@each_relation
def test_a_pure_budget_is_kept_or_refused_with_a_cure(solver, neighbors):
    budget = Budget(1.0, 0.0, neighbors)
    rejected = ""
    try:
        plan = solver.plan(problem_of(Logistic()), budget)
    except PlanError as error:
        rejected = str(error)
    if rejected:
        assert "give a delta" in rejected
        assert not isinstance(solver, PURE)
    else:
        assert plan.event.curve(neighbors).epsilon(0.0) <= 1.0 + 1e-9


def test_descent_takes_an_unbounded_slope_once_it_is_clipped():
    plan = NoisyGD(clip=0.5).plan(problem_of(Squared()), Budget(1.0, 1e-5))
    for pair in adversarial_pairs(Huber(), Neighbors.REPLACE_ONE):
        replayed(NoisyGD(), plan, pair)


@each_solver
@each_loss
def test_same_seed_same_bits_and_another_seed_other_bits(solver, loss, seed):
    plan = solver.plan(problem_of(loss), Budget(1.0, 1e-5))
    rows = bounded_rows(*sample(loss, seed), RowBounds())
    assert_seed_decides(solver, plan, rows, seed)


@each_solver
@each_loss
def test_sparse_rows_give_what_dense_rows_give(solver, loss, seed):
    plan = solver.plan(problem_of(loss, ridge=1.0), Budget(1.0, 1e-5))
    X, y = sample(loss, seed)
    X[X < 0] = 0.0
    dense, thin = (
        coefficients(solver, plan, bounded_rows(Z, y, RowBounds()), seed)
        for Z in (X, sparse.csr_array(X))
    )
    # minimizers agree to what their certificate leaves open
    np.testing.assert_allclose(thin, dense, rtol=0, atol=1e-5)


@each_relation
@each_loss
@pytest.mark.parametrize("kind", [ObjectivePerturbation, AMP])
def test_tilted_minimum_tends_to_the_minimum_without_privacy(
    kind, loss, neighbors, seed
):
    rows = bounded_rows(*sample(loss, seed, n=200), RowBounds())
    exact = exact_minimum(loss, rows, 5.0)
    gaps = []
    for epsilon in (1e2, 1e6, 1e12):
        solver = kind(ridge=5.0)
        plan = solver.plan(problem_of(loss, 200), Budget(epsilon, 1e-5, neighbors))
        W = coefficients(solver, plan, rows, seed)
        gaps.append(np.max(np.abs(W - exact)))
    assert gaps[0] > gaps[1] > gaps[2]
    # where the number of rows is private, the certificate provides for millions
    tilted = getattr(plan, "tilted", plan)
    assert gaps[2] <= max(1e-6, tilted.gradient_tolerance / tilted.ridge)


@pytest.mark.parametrize("kind", [ObjectivePerturbation, AMP])
def test_tilted_minimum_tends_to_the_fit_of_scikit_learn(kind, seed):
    X, y = sample(Logistic(), seed, n=200)
    bounds = RowBounds()
    solver = kind(ridge=2.0)
    plan = solver.plan(problem_of(Logistic(), 200), Budget(1e13, 1e-5))
    W = coefficients(solver, plan, bounded_rows(X, y, bounds), seed)
    peer = SklearnLogistic(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    peer.fit(bounds.clip(X), y)
    np.testing.assert_allclose(W[:, 0], peer.coef_[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", [Logistic(), HuberizedHinge(), Huber()], ids=repr)
def test_descent_tends_to_the_minimum_with_steps_and_budget(loss, seed):
    rows = bounded_rows(*sample(loss, seed, n=200), RowBounds())
    exact = exact_minimum(loss, rows, 5.0)
    gaps = []
    for n_steps in (5, 50, 1000):
        solver = NoisyGD(n_steps=n_steps, step=1 / (200 * loss.max_curvature() + 5))
        plan = solver.plan(problem_of(loss, 200, ridge=5.0), Budget(1e13, 1e-5))
        W = coefficients(solver, plan, rows, seed)
        gaps.append(np.max(np.abs(W - exact)))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] <= 1e-4


@each_least_squares
@each_relation
def test_a_plan_of_least_squares_keeps_the_budget_and_sees_no_data(solver, neighbors):
    assert list(inspect.signature(solver.plan).parameters) == ["problem", "budget"]
    assert list(inspect.signature(solver.run).parameters) == ["plan", "rows", "rng"]
    problem = problem_of(Squared(), 5000)
    for epsilon, delta in ((0.5, 1e-5), (10.0, 1e-9)):
        budget = Budget(epsilon, delta, neighbors)
        plan = solver.plan(problem, budget)
        assert is_dataclass(plan)
        assert plan == solver.plan(problem, budget)
        assert not any(isinstance(value, Budget) for value in vars(plan).values())
        spent = plan.event.curve(neighbors).epsilon(delta)
        assert 0.9 * epsilon < spent <= epsilon * (1 + 1e-9)
        assert plan.assumptions[0] == (
            "planned for 5000 rows; another number costs accuracy only"
        )


@each_least_squares
def test_plans_of_least_squares_say_how_many_rows_round_off_is_counted_for(solver):
    rounded = not isinstance(solver, TukeyRegression)  # which counts blocks
    for n_rows, most in ((5000, "2^24"), (2**24 + 1, 2**24 + 1)):
        plan = solver.plan(problem_of(Squared(), n_rows), Budget(1.0, 1e-5))
        assert (f"there are at most {most} rows" in plan.assumptions) == rounded


@each_least_squares
def test_least_squares_take_no_other_loss_and_name_a_cure(solver):
    with raises_one_line(PlanError, match=r"; use \w+"):
        solver.plan(problem_of(Logistic(), 5000), Budget(1.0, 1e-5))


@each_least_squares
def test_least_squares_are_found_again_as_the_budget_grows(solver, seed):
    rng = as_generator(seed)
    X = rng.normal(size=(5000, 2)) / 4
    y = X @ [0.5, -0.3] + 0.05 * rng.normal(size=5000)
    rows = bounded_rows(X, y, RowBounds())
    exact = np.linalg.lstsq(RowBounds().clip(X), y)[0]
    problem = problem_of(Squared(), 5000)
    gaps = []
    for epsilon in (0.5, 1e3):
        plan = solver.plan(problem, Budget(epsilon, 1e-5))
        first = assert_seed_decides(solver, plan, rows, seed)
        gaps.append(np.linalg.norm(first[:, 0] - exact))
    assert gaps[1] < min(gaps[0], 0.02)


@each_solver
@each_loss
@each_relation
@pytest.mark.parametrize("epsilon", [0.5, 1e3])
def test_neighbors_stay_within_the_declared_sensitivity(
    solver, loss, neighbors, epsilon, seed
):
    problem = problem_of(loss, n_rows=5)
    plan = solver.plan(problem, Budget(epsilon, 1e-3, neighbors))
    if hasattr(plan, "n_steps"):
        plan = replace(plan, n_steps=4)
    for pair in adversarial_pairs(loss, neighbors):
        report = replayed(solver, plan, pair, seed=seed)
        assert len(report.entries) == n_releases(solver, plan)


@each_solver
def test_no_gradient_is_taken_where_its_round_off_is_not_bounded(solver, seed):
    # `derivative_clipped` raises where nothing projects weights that noise throws far
    plan = solver.plan(problem_of(HuberizedHinge(), n_rows=5), Budget(1e-3, 1e-5))
    rows = bounded_rows(*sample(HuberizedHinge(), seed, n=5), RowBounds())
    assert np.isfinite(coefficients(solver, plan, rows, seed)).all()


def test_a_solver_that_does_not_project_its_weights_is_found(monkeypatch, seed):
    monkeypatch.setattr(descent, "L2Ball", lambda radius: Free())
    with pytest.raises(AssertionError, match="project the weights"):
        test_no_gradient_is_taken_where_its_round_off_is_not_bounded(
            NoisyGD(step=1.0), seed
        )


@each_solver
@each_relation
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(solver, neighbors, data):
    loss = data.draw(st.sampled_from(LOSSES))
    plan = solver.plan(problem_of(loss, n_rows=6), Budget(2.0, 1e-3, neighbors))
    if hasattr(plan, "n_steps"):
        plan = replace(plan, n_steps=3)
    replayed(solver, plan, data.draw(neighboring_data(loss, neighbors)))


@each_solver
@each_relation
@pytest.mark.parametrize(
    ("loss", "kind"), [(Logistic(cap=0.5), "logistic"), (HuberizedHinge(), "hinge")]
)
def test_half_the_sensitivity_is_reported(solver, neighbors, loss, kind):
    # a heavy ridge keeps the weights where the derivatives are largest
    problem = problem_of(loss, n_rows=4, ridge=100.0)
    plan = solver.plan(problem, Budget(50.0, 1e-3, neighbors))
    pair = worst_case_pair(kind, 4, 2, neighbors=neighbors)
    assert replayed(solver, plan, pair, replay).ok
    reports = [
        replayed(solver, halved_sensitivity(plan), pair, replay, seed=seed)
        for seed in range(8)
    ]
    assert_reported(*reports)


@each_solver
def test_rows_used_before_clipping_are_reported(solver):
    bounds, loss = RowBounds(), Logistic(cap=0.5)
    # a heavy ridge keeps the weights where the derivatives are largest
    problem = problem_of(loss, n_rows=4, ridge=100.0)
    plan = solver.plan(problem, Budget(50.0, 1e-3))
    wide = RowBounds(1e6)  # what a solver that forgets to clip would read
    X, y = np.array([[3.0, 0.0], [0.0, 0.5]]), np.array([1.0, -1.0])

    def train(y, bounds):
        return coefficients(solver, plan, bounded_rows(X, y, bounds), 0)

    other = np.array([-1.0, -1.0])
    assert replay(train, (y, bounds), (other, bounds)).ok
    assert not replay(train, (y, wide), (other, wide)).ok
