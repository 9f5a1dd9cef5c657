"""Perturbed minima with penalties, in sets, with pure noise and published constants."""

from dataclasses import replace
from math import pi, sqrt

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import ElasticNet as SklearnElasticNet
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from tests.refusal import raises_one_line
from tests.solvers.running import (
    assert_reported,
    assert_tight,
    coefficients,
    exact_minimum,
    replayed,
)
from tests.strategies import adversarial_pairs, each_relation, targets

from tacit._random import as_generator
from tacit._release import recording
from tacit.audit import replay, worst_case_pair
from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    Entropy,
    Free,
    GroupL1,
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
from tacit.privacy import ApproxDP, Budget, Neighbors, PureDP
from tacit.solvers import AMP, ObjectivePerturbation, Problem
from tacit.solvers._minimizers.ridge_rules import ridge_for_weights
from tacit.solvers.amp import AMPPlan, allowed
from tacit.solvers.output_perturbation import OutputPerturbation

KINDS = [ObjectivePerturbation, AMP, OutputPerturbation]
REGULARIZERS = [
    L1(0.5),
    ElasticNet(0.5, 0.5),
    GroupL1(0.5),
    L2Ball(0.5),
    L1Ball(0.5),
    Box(-0.4, 0.6, 2),
    Simplex(),
]
SETS = REGULARIZERS[3:]
FREE = Free()

each_kind = pytest.mark.parametrize("kind", KINDS)

each_regularizer = pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)


def problem_of(loss, n_rows=40, n_features=2, regularizer=FREE, ridge=0.0, x_norm=1.0):
    return Problem(loss, RowBounds(x_norm), n_rows, n_features, ridge, regularizer)


def sample(loss, seed, n=40, p=2):
    rng = as_generator(seed)
    X = rng.normal(size=(n, p))
    codes = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 0, 1)
    return X, targets(loss, codes)


def tilt_of(plan):
    return getattr(plan, "tilted", plan)


def with_noise(plan, part):
    """Return the plan with this part of all its noise."""
    if isinstance(plan, AMPPlan):
        output = part * plan.output_multiplier
        tilted = with_noise(plan.tilted, part)
        return replace(plan, tilted=tilted, output_multiplier=output)
    return replace(plan, multiplier=part * plan.multiplier)


def run_on(solver, plan, data, seed=0):
    rows = bounded_rows(*data, tilt_of(plan).problem.bounds)
    return coefficients(solver, plan, rows, seed)


@each_kind
@each_relation
@pytest.mark.parametrize(
    ("law", "delta"),
    [("gaussian", 1e-5), ("gamma", 1e-5), ("laplace", 1e-5), (None, 1e-5), (None, 0.0)],
)
def test_planned_event_fits_and_wastes_nothing(kind, neighbors, law, delta):
    budget = Budget(1.0, delta, neighbors)
    for loss in (Logistic(), Softmax(3)):
        plan = kind(law=law).plan(problem_of(loss), budget)
        assert tilt_of(plan).law == law or law is None
        assert_tight(plan, budget, with_noise(plan, 0.98))


@each_kind
def test_pure_budgets_get_noise_that_needs_no_delta(kind, seed):
    budget = Budget(2.0)
    for law, noise in ((None, "grid"), ("laplace", "grid"), ("gamma", "float")):
        solver = kind(law=law, noise=noise)
        plan = solver.plan(problem_of(Logistic()), budget)
        curve = plan.event.curve(budget.neighbors)
        assert curve.slack == 0.0
        assert 0.99 * 2.0 <= curve.pure <= 2.0
        W = run_on(solver, plan, sample(Logistic(), seed))
        assert np.isfinite(W).all()
    with pytest.raises(PlanError, match="law='laplace'"):
        kind(law="gamma").plan(problem_of(Logistic()), budget)
    with pytest.raises(PlanError, match="give a delta"):
        kind(law="gaussian").plan(problem_of(Logistic()), budget)


def test_a_pure_tilt_is_one_event_and_not_a_composition():
    budget = Budget(1.0, 1e-3)
    plan = ObjectivePerturbation(ridge=0.5, law="gamma").plan(
        problem_of(Logistic()), budget
    )
    assert isinstance(plan.event, ApproxDP)
    assert 0 < plan.event.delta < 1e-20
    # two pure events would guarantee less at this delta than the bound on their sum
    offset = plan.event.epsilon - 1 / plan.multiplier
    parts = PureDP(offset).curve(budget.neighbors) + PureDP(1 / plan.multiplier).curve(
        budget.neighbors
    )
    assert parts.delta(0.6) < plan.event.curve(budget.neighbors).delta(0.6)


@each_kind
@pytest.mark.parametrize(
    ("choices", "problem", "cure"),
    [
        ({}, problem_of(Squared()), r"L2Ball\(\)"),
        ({}, problem_of(Squared(), regularizer=L1()), r"L2Ball\(\)"),
        ({}, problem_of(Logistic(), regularizer=Entropy()), r"Simplex\(\)"),
        ({"weight_norm": 2.0, "law": "gamma"}, problem_of(Logistic()), "ridge="),
        ({"weight_norm": 2.0}, problem_of(Logistic(), regularizer=L1()), "ridge="),
    ],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(kind, choices, problem, cure):
    with raises_one_line(PlanError, match=cure):
        kind(**choices).plan(problem, Budget(1.0, 1e-5))


@each_kind
@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"law": "uniform"}, "law must be 'gaussian', "),
        ({"accounting": "loose"}, "'tight' or 'paper'"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"weight_norm": 0.0}, "weight_norm must be"),
        ({"ridge": 1.0, "weight_norm": 1.0}, "not both"),
    ],
)
def test_choices_that_suit_no_problem_are_refused_at_once(kind, choices, message):
    with pytest.raises(ValueError, match=message):
        kind(**choices)


@each_kind
@each_regularizer
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_same_seed_same_bits_and_sparse_rows_as_dense(kind, regularizer, delta, seed):
    solver, loss = kind(ridge=40.0), Logistic()
    plan = solver.plan(problem_of(loss, regularizer=regularizer), Budget(5.0, delta))
    assert plan == solver.plan(tilt_of(plan).problem, Budget(5.0, delta))
    X, y = sample(loss, seed)
    X[X < 0] = 0.0
    first, again, other, thin = (
        run_on(solver, plan, (Z, y), s)
        for Z, s in ((X, 0), (X, 0), (X, 1), (sparse.csr_array(X), 0))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(thin, first, rtol=0, atol=1e-5)


@each_kind
@pytest.mark.parametrize("regularizer", SETS, ids=repr)
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_weights_stay_in_their_set(kind, regularizer, loss, seed):
    solver = kind()
    plan = solver.plan(problem_of(loss, regularizer=regularizer), Budget(1.0, 1e-5))
    for s in range(5):
        W = run_on(solver, plan, sample(loss, seed), s)
        assert regularizer.contains(W)


@each_kind
@each_relation
@each_regularizer
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_neighbors_stay_within_the_declared_sensitivity(
    kind, neighbors, regularizer, delta, seed
):
    # the squared loss is bounded by its set alone, the other by itself
    loss = Squared() if isinstance(regularizer, tuple(map(type, SETS))) else Huber()
    solver = kind()
    problem = problem_of(loss, 5, regularizer=regularizer)
    plan = solver.plan(problem, Budget(5.0, delta, neighbors))
    releases = {ObjectivePerturbation: 2, AMP: 3, OutputPerturbation: 1}[kind]
    for pair in adversarial_pairs(Huber(), neighbors):
        report = replayed(solver, plan, pair, seed=seed)
        assert len(report.entries) == releases


@each_relation
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1e3, 0.0)])
def test_output_perturbation_declares_what_neighbors_move(neighbors, epsilon, delta):
    for loss in (Logistic(), Logistic(cap=0.5), Softmax(3), HuberizedHinge(), Huber()):
        solver = OutputPerturbation()
        plan = solver.plan(problem_of(loss, 5), Budget(epsilon, delta, neighbors))
        for pair in adversarial_pairs(loss, neighbors):
            assert replayed(solver, plan, pair).ok


@each_relation
def test_half_the_sensitivity_of_an_output_is_reported(neighbors):
    # a heavy ridge keeps the weights where the derivatives are largest
    problem = problem_of(Logistic(cap=0.5), 4, ridge=100.0)
    solver = OutputPerturbation()
    plan = solver.plan(problem, Budget(5.0, 1e-3, neighbors))
    pair = worst_case_pair("logistic", 4, 2, neighbors=neighbors)
    assert replayed(solver, plan, pair, replay).ok
    found = replayed(
        solver, replace(plan, sensitivity=plan.sensitivity / 2), pair, replay
    )
    assert_reported(found)


@each_kind
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_tends_to_the_fit_of_scikit_learn(kind, delta, seed):
    X, y = sample(Logistic(), seed, n=200)
    solver = kind(ridge=2.0)
    plan = solver.plan(problem_of(Logistic(), 200), Budget(1e13, delta))
    W = run_on(solver, plan, (X, y), seed)
    peer = SklearnLogistic(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    peer.fit(RowBounds().clip(X), y)
    np.testing.assert_allclose(W[:, 0], peer.coef_[0], rtol=0, atol=1e-6)


@each_kind
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_tends_to_the_sparse_fit_of_scikit_learn(kind, delta, seed):
    rng, n, ridge, weight = as_generator(seed), 200, 2.0, 8.0
    X = RowBounds().clip(rng.normal(size=(n, 6)))
    y = np.clip(X[:, 0] - 0.7 * X[:, 1] + 0.1 * rng.normal(size=n), -1, 1)
    # no residual reaches this threshold, so the loss is half the square
    problem = problem_of(Huber(2.0), n, 6, L1(weight))
    solver = kind(ridge=ridge)
    plan = solver.plan(problem, Budget(1e15, delta))
    W = run_on(solver, plan, (X, y), seed)
    peer = SklearnElasticNet(
        alpha=(weight + ridge) / n,
        l1_ratio=weight / (weight + ridge),
        fit_intercept=False,
        tol=1e-14,
        max_iter=100_000,
    )
    peer.fit(X, y)
    np.testing.assert_allclose(W[:, 0], peer.coef_, rtol=0, atol=1e-6)
    zeros = peer.coef_ == 0
    assert 0 < zeros.sum() < 6
    if kind is not OutputPerturbation:
        np.testing.assert_array_equal(W[:, 0] == 0, zeros)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_zeros_outlive_the_final_noise(delta, seed):
    rng, n, p = as_generator(seed), 500, 40
    X = RowBounds().clip(rng.normal(size=(n, p)))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    for regularizer in (L1(15.0), ElasticNet(15.0, 1.0), GroupL1(15.0)):
        problem = problem_of(Logistic(), n, p, regularizer)
        solver = AMP(ridge=5.0)
        plan = solver.plan(problem, Budget(100.0, delta))
        with recording() as tape:
            W = run_on(solver, plan, (X, y), seed)
        before = tape.releases[1].output
        assert 1 <= np.count_nonzero(before) < p
        np.testing.assert_array_equal(W == 0, before == 0)
        # the noisy weights themselves have no zero
        assert np.all(tape.releases[2].output != 0)


def test_weights_are_moved_into_the_form_of_their_penalty():
    W = np.array([[0.5, 0.01], [0.02, -0.01], [0.0, 2.0]])
    problem = Problem(Softmax(2), RowBounds(), 9, 3)
    assert allowed(problem, W, 0.1) is W
    expected = {
        L1(): [[0.5, 0.0], [0.0, 0.0], [0.0, 2.0]],
        ElasticNet(1.0, 1.0): [[0.5, 0.0], [0.0, 0.0], [0.0, 2.0]],
        ElasticNet(0.0, 1.0): W,
        GroupL1(): [[0.5, 0.01], [0.0, 0.0], [0.0, 2.0]],
        Box(0.0, 1.0): [[0.5, 0.01], [0.02, 0.0], [0.0, 1.0]],
    }
    for regularizer, wanted in expected.items():
        shaped = allowed(replace(problem, regularizer=regularizer), W, 0.1)
        np.testing.assert_array_equal(shaped, wanted)


@each_relation
@pytest.mark.parametrize("loss", [Logistic(), HuberizedHinge(), Huber()], ids=repr)
def test_minimizers_of_neighbors_are_as_near_as_declared(loss, neighbors, seed):
    rng = as_generator(seed)
    solver = OutputPerturbation(ridge=0.7)
    plan = solver.plan(problem_of(loss, 6, 3), Budget(1.0, 1e-5, neighbors))
    furthest = 0.0
    for _ in range(60):
        X = 0.3 * rng.normal(size=(6, 3))
        X[0] = 9 * rng.normal(size=3)
        codes = rng.integers(0, 4, size=6)
        pair = [(X, codes), (X[1:], codes[1:])]
        if neighbors is Neighbors.REPLACE_ONE:
            pair[1] = np.vstack([-X[:1], X[1:]]), codes
        found = [
            exact_minimum(
                loss,
                bounded_rows(Z, targets(loss, c), RowBounds()),
                plan.ridge,
                plan.gradient_tolerance,
            )
            for Z, c in pair
        ]
        furthest = max(furthest, np.linalg.norm(found[0] - found[1]))
    assert 0.2 * plan.sensitivity <= furthest <= plan.sensitivity


@each_relation
@each_kind
def test_ridge_from_a_weight_norm_minimizes_the_bound_on_risk(kind, neighbors):
    n, norm = 5000, 4.0
    plans = [
        tilt_of(
            kind(weight_norm=norm).plan(
                problem_of(Logistic(), n, p), Budget(1.0, 1e-6, neighbors)
            )
        )
        for p in (5, 5000)
    ]
    # the number of features does not enter
    assert plans[0].ridge == pytest.approx(plans[1].ridge, rel=1e-6)
    plan = plans[0]
    noise = neighbors.rows_changed * plan.multiplier

    def bound(ridge):
        return ridge * norm**2 / (2 * n) + (2 + sqrt(2 / pi) * noise) / ridge

    assert bound(plan.ridge) <= 1.001 * min(map(bound, np.logspace(-2, 5, 3001)))


def test_mean_length_of_the_noise_on_margins_counts_outputs():
    one, three = (
        ridge_for_weights(problem_of(loss), Neighbors.ADD_OR_REMOVE_ONE, 1.0, 1e12)
        for loss in (Logistic(), Softmax(3))
    )
    # root two is the bound on the derivative of the softmax
    ratio = three / one / sqrt(2)
    assert ratio**2 == pytest.approx(sqrt(8 / pi) / sqrt(2 / pi))


def padded(X, n_zeros):
    n, p = X.shape
    positions = np.tile(np.arange(p), n), np.arange(0, n * p + 1, p)
    return sparse.csr_array((X.ravel(), *positions), shape=(n, p + n_zeros))


def assert_columns_of_zeros_change_nothing(kind, n, n_zeros, seed):
    X, y = sample(Logistic(), seed, n=n, p=8)
    found, scales, slack = [], [], 0.0
    for Z in (X, padded(X, n_zeros)):
        solver = kind(weight_norm=10.0)
        plan = solver.plan(problem_of(Logistic(), n, Z.shape[1]), Budget(1.0, 1e-6))
        found.append(run_on(solver, plan, (Z, y), seed)[:8])
        part = tilt_of(plan)
        # what the certificate leaves open, and the grid, which knows the size
        slack += part.gradient_tolerance / part.ridge + 1e-6
        scales.append(plan.mechanism.multiplier * plan.mechanism.sensitivity)
    if kind is OutputPerturbation:
        # the tolerance of the minimizer is in the noise, and grows with the columns
        slack += 10 * abs(scales[1] - scales[0])
    elif kind is AMP:
        slack += 10 * sum(scales)
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=slack)


@each_kind
def test_columns_of_zeros_change_nothing(kind, seed):
    assert_columns_of_zeros_change_nothing(kind, 2000, 3000, seed)


@pytest.mark.slow
@each_kind
def test_a_million_columns_of_zeros_change_nothing(kind, seed):
    assert_columns_of_zeros_change_nothing(kind, 42_000, 10**6, seed)


def test_projecting_on_the_orthant_costs_what_grows_with_the_features(seed):
    # best weights at zero: noise that would cancel does not once it is clipped at zero
    rng, gains = as_generator(seed), []
    for p in (100, 10_000):
        noise = rng.normal(size=(200, p))
        x = np.full(p, p**-0.5)
        assert abs(np.mean(noise @ x)) < 0.5
        gains.append(np.mean(Box(0.0, 1e9).prox(noise, 1.0) @ x) / sqrt(p))
    np.testing.assert_allclose(gains, 1 / sqrt(2 * pi), rtol=0.05)
