"""Private Frank-Wolfe: the textbook without noise, the same on sparse rows, private."""

from dataclasses import replace
from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.refusal import raises_one_line
from tests.solvers.running import coefficients
from tests.strategies import (
    adversarial_pairs,
    budgets,
    each_relation,
    neighboring_data,
    targets,
)

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.audit import assert_replays, replay
from tacit.convex import (
    Free,
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
from tacit.exceptions import PlanError
from tacit.mechanisms import Exponential, NoisyMax
from tacit.privacy import BoundedRange, Budget, Neighbors, PureDP, Repeated
from tacit.solvers import Problem
from tacit.solvers._published import published_epsilon
from tacit.solvers.frank_wolfe import FrankWolfe, entry_derivative, score_sensitivity

BOUNDS = RowBounds(norm="linf")
LOSSES = [Logistic(), Softmax(3), HuberizedHinge(), Huber(), Squared()]
SETS = [L1Ball(3.0), Simplex()]
BUDGET = Budget(1.0, 1e-5)

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_set = pytest.mark.parametrize("inside", SETS, ids=repr)
each_selection = pytest.mark.parametrize("selection", ["exponential", "laplace"])
each_schedule = pytest.mark.parametrize("schedule", ["classic", "average"])

layouts = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])


def problem_of(loss, inside=SETS[0], n_rows=60, n_features=8, bounds=BOUNDS):
    return Problem(loss, bounds, n_rows, n_features, regularizer=inside)


def sample(loss, seed, n=60, p=8, layout=np.asarray):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(n, p)) * (rng.random((n, p)) < 0.4)
    signal = X[:, 0] + 0.2 * rng.normal(size=n)
    codes = np.where(signal > 0, 0, 1 + (X[:, 1] > 0))
    numbers = isinstance(loss, Huber | Squared)
    y = np.clip(signal, -1, 1) if numbers else targets(loss, codes)
    return layout(X), y


def rows_of(loss, seed, layout=np.asarray, **shape):
    return bounded_rows(*sample(loss, seed, layout=layout, **shape), BOUNDS)


def risk(loss, X, y, W):
    return float(loss.value(y, X @ W).mean())


def textbook(loss, inside, X, y, n_steps, fraction):
    """Frank-Wolfe with exact gradients, from zero."""
    W = np.zeros((X.shape[1], loss.n_outputs))
    for t in range(n_steps):
        vertex = inside.lmo(X.T @ loss.derivative(y, X @ W))
        W = (1 - fraction(t)) * W + fraction(t) * vertex
    return W


@each_selection
@each_relation
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_planned_event_fits_and_wastes_nothing(selection, neighbors, delta):
    budget = Budget(1.0, delta, neighbors)
    plan = FrankWolfe(selection=selection).plan(problem_of(Logistic()), budget)
    assert plan.event.curve(neighbors).fits(budget)
    kind = {"exponential": BoundedRange, "laplace": PureDP}[selection]
    assert plan.event == Repeated(kind(plan.step_epsilon), plan.n_steps)
    less = replace(plan, step_epsilon=plan.step_epsilon / 0.99)
    assert not less.event.curve(neighbors).fits(budget)
    assert plan == FrankWolfe(selection=selection).plan(problem_of(Logistic()), budget)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(data):
    neighbors = data.draw(st.sampled_from(Neighbors))
    budget = data.draw(budgets(neighbors))
    problem = problem_of(
        data.draw(st.sampled_from(LOSSES)),
        data.draw(st.sampled_from(SETS)),
        n_rows=data.draw(st.integers(2, 10**6)),
        bounds=RowBounds(data.draw(st.floats(1e-3, 1e3)), norm="linf"),
    )
    solver = FrankWolfe(
        selection=data.draw(st.sampled_from(["exponential", "laplace"]))
    )
    plan = solver.plan(problem, budget)
    assert plan.event.curve(neighbors).epsilon(budget.delta) <= budget.epsilon * (
        1 + 1e-9
    )
    assert plan.mechanism.sensitivity == plan.sensitivity
    assert 1 <= plan.n_steps <= 2000
    assert 0.01 <= plan.staleness <= 0.2


def test_bounded_range_allows_twice_the_epsilon_of_noisy_max():
    plans = {
        selection: FrankWolfe(100, selection).plan(problem_of(Logistic()), BUDGET)
        for selection in ("exponential", "laplace")
    }
    ratio = plans["exponential"].step_epsilon / plans["laplace"].step_epsilon
    assert 1.9 < ratio < 2.1
    assert isinstance(plans["exponential"].mechanism, Exponential)
    assert isinstance(plans["laplace"].mechanism, NoisyMax)


def test_published_noise_keeps_one_and_not_twenty():
    problem = problem_of(Logistic())
    delta, n_steps = 7.6e-10, 100
    paper = FrankWolfe(n_steps, "laplace", "paper")
    plan = paper.plan(problem, Budget(1.0, delta))
    # the published scale, for the average loss of m rows: noisy max costs 2 s / scale
    m, radius = problem.n_rows, problem.regularizer.radius
    scale = sqrt(32 * radius**2 * n_steps * log(1 / delta)) / m
    assert plan.step_epsilon == pytest.approx(2 * (2 * radius / m) / scale)
    ten = Budget(10.0, delta)  # composed exactly, just within
    assert (
        9.0 < paper.plan(problem, ten).event.curve(ten.neighbors).epsilon(delta) <= 10
    )
    with pytest.raises(PlanError, match="accounting='tight'"):
        paper.plan(problem, Budget(20.0, delta))
    one = published_epsilon(Budget(1.0, delta, Neighbors.ADD_OR_REMOVE_ONE), n_steps)
    assert one == pytest.approx(plan.step_epsilon / 2)


@pytest.mark.parametrize(
    ("problem", "budget", "cure"),
    [
        (problem_of(Logistic(), Free()), BUDGET, r"L1Ball\(radius\) or Simplex"),
        (problem_of(Logistic(), L2Ball()), BUDGET, "NoisyGD or AMP"),
        (problem_of(Logistic(), bounds=RowBounds()), BUDGET, "bound_norm='linf'"),
        (
            Problem(Logistic(), BOUNDS, 9, 2, ridge=1.0, regularizer=L1Ball()),
            BUDGET,
            "ridge=0",
        ),
        (problem_of(Logistic()), Budget(1e-9, 0.0), "fewer steps"),
    ],
    ids=["free", "other set", "l2", "ridge", "tiny epsilon"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(problem, budget, cure):
    with raises_one_line(PlanError, match=cure):
        FrankWolfe().plan(problem, budget)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"selection": "gumbel"}, "selection must be 'exponential' or 'laplace'"),
        ({"accounting": "loose"}, "accounting must be"),
        ({"accounting": "paper"}, "selection='laplace'"),
        ({"schedule": "short"}, "schedule must be"),
        ({"staleness": -1.0}, "staleness must be"),
        ({"n_steps": 0}, "n_steps"),
        ({"noise": "none"}, "noise must be"),
    ],
)
def test_bad_parameters_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        FrankWolfe(**arguments)


def test_paper_accounting_needs_a_delta():
    paper = FrankWolfe(10, "laplace", "paper")
    with pytest.raises(PlanError, match="accounting='tight'"):
        paper.plan(problem_of(Logistic()), Budget(1.0, 0.0))


@each_loss
@each_set
@each_schedule
@layouts
def test_without_noise_it_is_the_textbook(loss, inside, schedule, layout, seed):
    solver = FrankWolfe(12, schedule=schedule, staleness=0.0)
    plan = solver.plan(problem_of(loss, inside), Budget(1e9, 1e-5))
    W = coefficients(solver, plan, rows_of(loss, seed, layout), seed)
    fractions = {"classic": lambda t: 2 / (t + 2), "average": lambda t: 1 / (t + 1)}
    fraction = fractions[schedule]
    X, y = sample(loss, seed)
    np.testing.assert_allclose(
        W, textbook(loss, inside, X, y, 12, fraction), rtol=0, atol=1e-9
    )


@layouts
def test_without_noise_the_gap_falls_with_the_steps(layout, seed):
    loss, inside = Logistic(), L1Ball(4.0)
    X, y = sample(loss, seed, n=300)
    best = risk(loss, X, y, textbook(loss, inside, X, y, 5000, lambda t: 2 / (t + 2)))
    gaps = []
    for n_steps in (5, 50, 500):
        solver = FrankWolfe(n_steps, staleness=1e-4)
        plan = solver.plan(problem_of(loss, inside, 300), Budget(1e9, 1e-5))
        rows = rows_of(loss, seed, layout, n=300)
        W = coefficients(solver, plan, rows, seed)
        gaps.append(risk(loss, X, y, W) - best)
        # Jaggi (2013): twice the curvature constant over the steps and two
        assert gaps[-1] <= 2 * (0.25 * 8**2) / (n_steps + 2)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 2e-3


@each_loss
@each_set
@pytest.mark.parametrize("staleness", [0.0, 0.05])
def test_sparse_steps_see_the_scores_of_dense_steps(loss, inside, staleness, seed):
    solver = FrankWolfe(30, staleness=staleness)
    plan = solver.plan(problem_of(loss, inside), Budget(20.0, 1e-5))
    with recording() as dense:
        W = coefficients(solver, plan, rows_of(loss, seed), seed)
    with replaying(dense) as thin:
        V = coefficients(solver, plan, rows_of(loss, seed, sparse.csr_array), seed)
    np.testing.assert_array_equal(W, V)
    assert len(dense.releases) == len(thin.releases) == 30
    off = max(
        np.abs(a.value - b.value).max()
        for a, b in zip(dense.releases, thin.releases, strict=True)
    )
    # 60 rows, whose derivatives follow their margins at most as fast as the curvature
    allowed = 60 * loss.max_curvature() * sqrt(loss.n_outputs) * inside.radius
    assert off <= allowed * staleness + 1e-7
    assert (off > 1e-6) == (staleness > 0)


@each_loss
@each_set
@each_schedule
@each_selection
@layouts
def test_weights_are_exactly_in_the_set(
    loss, inside, schedule, selection, layout, seed
):
    solver = FrankWolfe(25, selection, schedule=schedule)
    plan = solver.plan(problem_of(loss, inside), Budget(0.5, 1e-5))
    rows = rows_of(loss, seed, layout)
    W, again, other = (
        coefficients(solver, plan, rows, s) for s in (seed, seed, seed + 1)
    )
    assert W.shape == (8, loss.n_outputs)
    assert W.dtype == np.float64
    total = sum(Fraction(abs(w)) for w in W.ravel().tolist())
    assert total <= Fraction(inside.radius)
    assert np.count_nonzero(W) <= 25
    if isinstance(inside, Simplex):
        assert inside.contains(W)
        assert total >= 1 - Fraction(1, 10**12)
    np.testing.assert_array_equal(W, again)
    assert not np.array_equal(W, other)


@layouts
def test_the_one_informative_feature_is_found(layout, seed):
    n, p = 4000, 200
    rng = as_generator(seed)
    X = rng.choice([-1.0, 0.0, 1.0], size=(n, p), p=[0.1, 0.8, 0.1])
    y = np.where(X[:, 7] != 0, -np.sign(X[:, 7]), rng.choice([-1.0, 1.0], size=n))
    solver = FrankWolfe(6)
    plan = solver.plan(problem_of(Logistic(), L1Ball(2.0), n, p), Budget(8.0, 1e-6))
    W = coefficients(solver, plan, bounded_rows(layout(X), y, BOUNDS), seed)
    assert np.flatnonzero(W).tolist() == [7]
    assert W[7, 0] == pytest.approx(-2.0)


@pytest.mark.parametrize("noise", ["grid", "float"])
def test_float_noise_is_said_and_grid_noise_is_not(noise, seed):
    solver = FrankWolfe(5, noise=noise)
    plan = solver.plan(problem_of(Logistic()), BUDGET)
    assert (len(plan.assumptions) == 2) == (noise == "grid")
    W = coefficients(solver, plan, rows_of(Logistic(), seed), seed)
    assert L1Ball(3.0).contains(W)


def test_rows_in_order_and_within_bounds_are_not_copied(monkeypatch):
    X = sparse.random_array((50, 30), density=0.2, format="csr", rng=as_generator(0))
    kept = BOUNDS.clip(X)
    assert np.shares_memory(kept.data, X.data)
    assert not np.shares_memory(BOUNDS.clip(2 * X).data, X.data)
    # pieces must not hide an entry stored twice on their border
    for piece in (1, 2, 3, 1000):
        monkeypatch.setattr("tacit.data.bounds.PIECE", piece)
        assert np.shares_memory(BOUNDS.clip(X).data, X.data)
        for columns in ([0, 2, 2], [2, 1, 3]):
            odd = sparse.csr_array(
                (np.array([0.5, 0.6, 0.7]), np.array(columns), np.array([0, 0, 3, 3])),
                shape=(3, 4),
            )
            expected = np.clip(odd.toarray(), -1, 1)
            np.testing.assert_array_equal(BOUNDS.clip(odd).toarray(), expected)
            assert not np.shares_memory(BOUNDS.clip(odd).data, odd.data)


def test_many_outputs_use_a_slope_of_one_an_entry():
    assert entry_derivative(problem_of(Softmax(3))) == 1.0
    assert entry_derivative(problem_of(Logistic(cap=0.5))) == 0.5
    assert entry_derivative(problem_of(Squared())) == pytest.approx(3.0 + 1.0)
    for neighbors in Neighbors:
        problem = problem_of(Softmax(3))
        found = score_sensitivity(problem, 50, neighbors)
        exact = neighbors.rows_changed * 3.0
        assert exact < found < 1.001 * exact


def train(solver, plan):
    def run(X, y, layout=np.asarray, seed=0):
        X = np.asarray(X)
        rows = bounded_rows(layout(X), y, plan.problem.bounds)
        return coefficients(solver, plan, rows, seed)

    return run


@each_loss
@each_relation
@pytest.mark.parametrize(
    ("selection", "layout"),
    [
        ("exponential", np.asarray),
        ("exponential", sparse.csr_array),
        ("laplace", np.asarray),
    ],
)
def test_neighbors_stay_within_the_declared_sensitivity(
    loss, neighbors, selection, layout, seed
):
    for inside in SETS:
        problem = problem_of(loss, inside, 5, 2)
        solver = FrankWolfe(3, selection)
        plan = solver.plan(problem, Budget(2.0, 1e-3, neighbors))
        for pair in adversarial_pairs(loss, neighbors):
            first, second = (
                (*data, layout, seed) for data in (pair.first, pair.second)
            )
            report = assert_replays(train(solver, plan), first, second)
            assert len(report.entries) == 3


@each_relation
@layouts
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(neighbors, layout, data):
    loss = data.draw(st.sampled_from(LOSSES[:4]))
    problem = problem_of(loss, data.draw(st.sampled_from(SETS)), 6, 2)
    solver = FrankWolfe(4, staleness=data.draw(st.sampled_from([0.0, 0.1, 1.0])))
    plan = solver.plan(problem, Budget(2.0, 1e-3, neighbors))
    pair = data.draw(neighboring_data(loss, neighbors))
    first, second = ((*side, layout) for side in (pair.first, pair.second))
    assert len(assert_replays(train(solver, plan), first, second).entries) == 4


@each_relation
@layouts
def test_half_the_sensitivity_is_reported(neighbors, layout):
    # the hinge is as steep as declared wherever the margin is small
    problem = problem_of(HuberizedHinge(), L1Ball(0.5), 5, 2)
    solver = FrankWolfe(3)
    plan = solver.plan(problem, Budget(2.0, 1e-3, neighbors))
    broken = replace(plan, sensitivity=plan.sensitivity / 2)
    found = []
    for pair in adversarial_pairs(problem.loss, neighbors):
        first, second = ((*data, layout) for data in (pair.first, pair.second))
        assert replay(train(solver, plan), first, second).ok
        found += replay(train(solver, broken), first, second).violations
    assert any("over the declared sensitivity" in sentence for sentence in found)


@layouts
def test_targets_out_of_range_move_no_score_further(layout):
    problem = problem_of(Squared(), L1Ball(0.5), 5, 2)
    solver = FrankWolfe(3)
    plan = solver.plan(problem, Budget(2.0, 1e-3))
    X = np.array([[1.0, -1.0], [0.5, 0.0]])
    first, second = ((X, np.array([y, 0.0]), layout) for y in (1e9, -1e9))
    assert len(assert_replays(train(solver, plan), first, second).entries) == 3


def integer_cells(gradient):
    """Return entries as integers, from their two parts."""
    high, low = gradient.cells.T.astype(object)
    return (high * 2**22 + low).astype(np.int64)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(3)])
@pytest.mark.parametrize("n_rows", [10**3, 2**28, 2**31])
def test_sums_over_all_rows_planned_for_do_not_wrap(loss, n_rows):
    from tacit.solvers._sparse_frank_wolfe import SparseGradient  # noqa: PLC0415

    bounds = RowBounds(1.0, "linf")
    problem = Problem(loss, bounds, n_rows, 3, regularizer=L1Ball(1.0))
    plan = FrankWolfe(n_steps=3).plan(problem, Budget(1.0, 1e-6))
    # one row at the bound, with the largest derivative that there is
    gradient = SparseGradient(
        sparse.csr_array([[1.0, -1.0, 0.3]]),
        np.zeros(1, dtype=np.int64) if loss.n_outputs > 1 else -np.ones(1),
        loss=SteepestSlope(loss.n_outputs),
        derivative=entry_derivative(problem),
        quantum=plan.quantum,
        scales=np.ones(3),
        staleness=0.0,
    )
    one = gradient.entries()
    gradient.cells *= n_rows  # what as many such rows add up to
    np.testing.assert_allclose(gradient.entries(), n_rows * one, rtol=1e-15)
    assert np.abs(gradient.cells).max() < 2**54
    # and rounding to quanta stays a small part of the sensitivity
    assert problem.most_rows * plan.quantum <= 1e-3 * entry_derivative(problem)


class SteepestSlope:
    """A loss whose derivative is beyond every bound."""

    def __init__(self, n_outputs):
        self.n_outputs = n_outputs

    def derivative(self, y, Z):
        return np.full(Z.shape, 1e9)


def test_plans_for_more_rows_than_sums_hold_are_rejected():
    problem = Problem(
        Logistic(), RowBounds(1.0, "linf"), 2**31 + 1, 3, regularizer=L1Ball(1.0)
    )
    with pytest.raises(PlanError, match="up to 2\\*\\*31 rows"):
        FrankWolfe().plan(problem, Budget(1.0, 1e-6))


def test_gradient_entries_of_sparse_rows_leave_no_trace_of_the_past(seed):
    from tacit.solvers._sparse_frank_wolfe import SparseGradient  # noqa: PLC0415

    X, y = sample(Logistic(), seed, n=40, layout=sparse.csr_array)
    scales = np.cumprod([1.0, *(1 - 2 / (t + 2) for t in range(1, 60))])
    gradient = SparseGradient(
        X,
        y,
        loss=Logistic(),
        derivative=1.0,
        quantum=2.0**-38,
        scales=scales,
        staleness=0.03,
    )
    rng = as_generator(seed)
    for t in range(59):
        before = integer_cells(gradient)
        changed = gradient.move(t, int(rng.integers(8)), 4 * rng.normal() / (t + 2))
        moved = np.flatnonzero(before != integer_cells(gradient))
        assert np.isin(moved, changed).all()
        margins = scales[t] * gradient._scaled
        assert np.abs(margins - gradient._seen).max() <= 0.03 * (1 + 1e-12)
    derivatives = Logistic().derivative(y, gradient._seen)
    exact = np.rint(X.toarray() * derivatives * 2.0**38).sum(axis=0)
    np.testing.assert_array_equal(integer_cells(gradient), exact.astype(np.int64))
