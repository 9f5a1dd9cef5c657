"""Solvers by name, and what "auto" makes of a problem."""

from math import inf

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tacit._random import as_generator
from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    Free,
    GroupL1,
    Huber,
    HuberizedHinge,
    L1Ball,
    L2Ball,
    Logistic,
    OneVsRest,
    Simplex,
    Softmax,
    Squared,
)
from tacit.convex.regularizers import CoordinatePenalty
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
)
from tacit.privacy import Budget, Ledger
from tacit.solvers import NoisyGD, Problem, Result
from tacit.solvers._auto import auto_solver, named_solver, solver_names
from tacit.solvers._gradients.descent import capped_where_noisy

N, P = 200, 3
Y_RANGE = (-2.0, 4.0)
BUDGET = Budget(1.0, 1e-6)
L2, ENTRIES = RowBounds(), RowBounds(norm="linf")


def data(n=N, seed=0):
    rng = as_generator(seed)
    X = rng.normal(size=(n, P)) / 3
    return X, X @ np.array([2.0, -1.0, 0.0]) + 1.0 + rng.normal(size=n) / 4


def test_names_are_the_ones_promised():
    first, *names = solver_names()
    assert first == "auto"
    assert names == sorted(names)
    # and those of solvers that are added
    assert {*names} >= {
        "ada_ssp",
        "adaptive_moments",
        "adaptive_ridge",
        "amp",
        "cd",
        "entropy_sampling",
        "frank_wolfe",
        "gcd",
        "noisy_gd",
        "noisy_sgd",
        "online_to_batch",
        "output_perturbation",
        "permuted_sgd",
        "preconditioned_gd",
        "quadratic_perturbation",
        "sample_and_aggregate",
        "tukey",
    }


def name_of(solver):
    return type(solver).__name__


def problem(loss, penalty=None, bounds=L2, n_rows=10_000, n_features=10):
    return Problem(loss, bounds, n_rows, n_features, regularizer=penalty or Free())


def each_weight(n_features):
    """Return a penalty of every weight but the intercept."""
    l1 = [*[1.0] * (n_features - 1), 0.0]
    ends = [inf] * n_features
    return CoordinatePenalty(l1, [0.0] * n_features, [-end for end in ends], ends)


def coordinates(loss, n_rows, n_features=10):
    return problem(loss, each_weight(n_features), ENTRIES, n_rows, n_features)


AUTO = [
    (coordinates(Squared(), 10_000), BUDGET, "CoordinateDescent"),
    (coordinates(Squared(), 2000), BUDGET, "GreedyCoordinateDescent"),
    (coordinates(Squared(), 300), BUDGET, "CoordinateDescent"),
    (coordinates(Squared(), 10_000, 3000), BUDGET, "GreedyCoordinateDescent"),
    (coordinates(Squared(), 10_000), Budget(1.0), "GreedyCoordinateDescent"),
    (coordinates(Logistic(), 10_000), BUDGET, "CoordinateDescent"),
    (coordinates(Logistic(), 10_000, 3000), BUDGET, "GreedyCoordinateDescent"),
    (problem(Logistic()), BUDGET, "PreconditionedGD"),
    (problem(Logistic(), n_rows=10**6), BUDGET, "AMP"),
    (problem(Logistic(), n_rows=100), BUDGET, "PreconditionedGD"),
    # low noise, where good weights may be longer than the ridge of AMP leaves them
    (
        problem(Logistic(), n_rows=113_000, n_features=23),
        Budget(1.0, 113_000.0**-2),
        "PreconditionedGD",
    ),
    (problem(Logistic(), n_rows=10**6, n_features=3000), BUDGET, "AMP"),
    (problem(Logistic(), n_features=3000), BUDGET, "NoisyGD"),
    (problem(HuberizedHinge()), BUDGET, "PreconditionedGD"),
    (problem(Huber(0.3)), BUDGET, "AMP"),
    (problem(Huber(0.3), n_rows=1000), BUDGET, "NoisyGD"),
    (problem(Softmax(3)), BUDGET, "PreconditionedGD"),
    (problem(Softmax(3), n_features=3000), BUDGET, "NoisyGD"),
    (problem(OneVsRest(Logistic(), 3)), BUDGET, "PreconditionedGD"),
    (problem(Logistic(), L1()), BUDGET, "AMP"),
    (problem(Logistic(), L1(), n_rows=100), BUDGET, "NoisyGD"),
    (problem(Softmax(3), GroupL1()), BUDGET, "NoisyGD"),
    (problem(Logistic(), L1Ball()), BUDGET, "AMP"),
    (problem(Logistic(), L1Ball(), ENTRIES), BUDGET, "FrankWolfe"),
    (problem(Squared(), Simplex(), ENTRIES), BUDGET, "FrankWolfe"),
    (problem(Squared(), Simplex(), ENTRIES), Budget(1.0), "FrankWolfe"),
    (problem(Squared()), BUDGET, "AdaptiveMoments"),
    (problem(Squared(), n_rows=200), BUDGET, "AdaptiveMoments"),
    (problem(Squared(), n_rows=10**9), BUDGET, "AdaSSP"),
    (problem(Squared(), L2Ball(), n_rows=200), BUDGET, "NoisyGD"),
    (problem(Squared(), L2Ball(), n_rows=10**5), BUDGET, "AdaSSP"),
    (problem(Squared(), n_rows=10**9, n_features=2000), BUDGET, "AdaptiveMoments"),
    (problem(Squared(), n_rows=10**9, n_features=3000), BUDGET, "NoisyGD"),
    (problem(Squared(), L1()), BUDGET, "NoisyGD"),
    (problem(Logistic()), Budget(1.0), "AMP"),
    (problem(Softmax(3)), Budget(1.0), "AMP"),
    (problem(Logistic(), L1()), Budget(1.0), "AMP"),
]


@pytest.mark.parametrize(("problem", "budget", "expected"), AUTO)
def test_auto_sees_public_facts_and_chooses(problem, budget, expected):
    solver = auto_solver(problem, budget)
    assert name_of(solver) == expected
    plan = solver.plan(problem, budget)
    assert plan.event.curve(budget.neighbors).fits(budget)


def test_squared_slopes_are_cut_in_units_of_the_targets():
    for name in ("noisy_gd", "noisy_sgd"):
        for top in (1.0, 40.0):
            bounds = RowBounds(y_range=(-1.0, top))
            squared = problem(Squared(), bounds=bounds)
            assert 0 < named_solver(name, squared, BUDGET, "grid").clip < top
        assert named_solver(name, problem(Logistic()), BUDGET, "grid").clip is None


@pytest.mark.parametrize("base", [Logistic(), OneVsRest(Logistic(), 3)], ids=repr)
def test_logistic_slopes_are_capped_where_noise_matters(base):
    capped = capped_where_noisy(problem(base), BUDGET)
    assert capped.max_derivative(inf, (-1, 1)) == base.max_derivative(inf, (-1, 1)) / 2
    free = capped_where_noisy(problem(base), Budget(1e13, 1e-5))
    assert free == base


CLASSIFIERS = [
    LogisticRegression(x_norm=1.0),
    LinearSVC(x_norm=1.0),
]
FITS = [
    *((kind, name) for kind in CLASSIFIERS for name in ("noisy_sgd", "permuted_sgd")),
    *((kind, "output_perturbation") for kind in CLASSIFIERS),
    *((kind, "online_to_batch") for kind in CLASSIFIERS),
    *((kind, "sample_and_aggregate") for kind in CLASSIFIERS),
    *((kind, name) for kind in CLASSIFIERS for name in ("cd", "gcd")),
    (
        HuberRegressor(y_range=Y_RANGE, bound_norm="linf", penalty=L1(2.0), x_norm=1.0),
        "cd",
    ),
    (LinearRegression(y_range=Y_RANGE, bound_norm="linf", x_norm=1.0), "gcd"),
    (
        LogisticRegression(penalty=L1Ball(2.0), bound_norm="linf", x_norm=1.0),
        "frank_wolfe",
    ),
    (LinearRegression(y_range=Y_RANGE, x_norm=1.0), "ada_ssp"),
    (LinearRegression(y_range=Y_RANGE, x_norm=1.0), "adaptive_moments"),
    (LinearRegression(y_range=Y_RANGE, x_norm=1.0), "quadratic_perturbation"),
    (
        LinearRegression(y_range=Y_RANGE, penalty=Box(-9.0, 9.0), x_norm=1.0),
        "quadratic_perturbation",
    ),
    (Ridge(y_range=Y_RANGE, penalty=L2Ball(9.0), x_norm=1.0), "quadratic_perturbation"),
    (LinearRegression(y_range=Y_RANGE, x_norm=1.0), "adaptive_ridge"),
    (LinearRegression(y_range=Y_RANGE, x_norm=1.0), "noisy_gd"),
    (LinearRegression(y_range=Y_RANGE, x_norm=1.0), "noisy_sgd"),
    (LinearRegression(y_range=Y_RANGE, x_norm=1.0), "sample_and_aggregate"),
    (LinearRegression(y_range=Y_RANGE, expected_rows=20_000, x_norm=1.0), "tukey"),
    (LinearRegression(y_range=Y_RANGE, penalty=L2Ball(9.0), x_norm=1.0), "amp"),
    (
        LinearRegression(y_range=Y_RANGE, penalty=L2Ball(9.0), x_norm=1.0),
        "permuted_sgd",
    ),
    (
        LinearRegression(y_range=Y_RANGE, penalty=L2Ball(9.0), x_norm=1.0),
        "online_to_batch",
    ),
    (Ridge(y_range=Y_RANGE, x_norm=1.0), "ada_ssp"),
    (Ridge(y_range=Y_RANGE, penalty=L2Ball(9.0), x_norm=1.0), "output_perturbation"),
    (HuberRegressor(y_range=Y_RANGE, x_norm=1.0), "amp"),
    (HuberRegressor(y_range=Y_RANGE, x_norm=1.0), "noisy_sgd"),
    (HuberRegressor(y_range=Y_RANGE, x_norm=1.0), "output_perturbation"),
    (
        LinearRegression(
            y_range=Y_RANGE, penalty=L1Ball(3.0), bound_norm="linf", x_norm=1.0
        ),
        "frank_wolfe",
    ),
    (SimplexRegressor(y_range=Y_RANGE, x_max=1.0), "frank_wolfe"),
    (SimplexRegressor(y_range=Y_RANGE, x_max=1.0), "entropy_sampling"),
]


@pytest.mark.parametrize(("model", "name"), FITS, ids=repr)
def test_every_name_fits_somewhere_and_keeps_its_promise(model, name, seed):
    X, y = data()
    if hasattr(model, "classes"):
        y = (y > 1).astype(int)
    model.set_params(solver=name, delta=1e-5, random_state=seed)
    ledger = Ledger(Budget(1.0, 1e-5))
    model.fit(X, y, ledger=ledger)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(X).astype(float)).all()
    assert 0 < model.privacy_.spent <= 1.0
    assert len(ledger.report().entries) == 1


PURE = [
    LogisticRegression(x_norm=1.0),
    LogisticRegression(multi_class="one_vs_rest", x_norm=1.0),
    LinearSVC(x_norm=1.0),
    HuberRegressor(y_range=Y_RANGE, x_norm=1.0),
    LinearRegression(y_range=Y_RANGE, penalty=L2Ball(9.0), x_norm=1.0),
    LinearRegression(y_range=Y_RANGE, solver="quadratic_perturbation", x_norm=1.0),
    LinearRegression(y_range=Y_RANGE, solver="adaptive_ridge", x_norm=1.0),
    SimplexRegressor(y_range=Y_RANGE, x_max=1.0),
]


@pytest.mark.parametrize("model", PURE, ids=repr)
def test_no_delta_is_pure_privacy(model, seed):
    X, y = data()
    if hasattr(model, "classes"):
        y = np.digitize(y, [0.5, 1.5])
    model.set_params(delta=0.0, random_state=seed)
    report = model.fit(X, y).privacy_
    assert report.guarantee == Budget(1.0, 0.0)
    assert report.spent <= 1.0
    (entry,) = report.entries
    assert entry.event.curve(report.guarantee.neighbors).epsilon(0.0) <= 1.0


PENALTIES = [L1(5.0), ElasticNet(5.0, 2.0), GroupL1(5.0), L2Ball(1.0), L1Ball(1.0)]


@pytest.mark.parametrize("penalty", [*PENALTIES, Box(-0.5, 0.5)], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_penalties_reach_the_weights(penalty, n_classes, seed):
    X, y = data()
    y = np.digitize(y, [1.0] if n_classes == 2 else [0.5, 1.5])
    free, held = (
        LogisticRegression(
            1e3, 1e-5, penalty=choice, random_state=seed, x_norm=1.0
        ).fit(X, y)
        for choice in (None, penalty)
    )
    assert np.abs(held.coef_).sum() < 0.8 * np.abs(free.coef_).sum()
    if isinstance(penalty, L1Ball | L2Ball | Box):
        weights = np.c_[held.coef_, held.intercept_ / 0.25].T
        assert penalty.contains(weights, tol=1e-3)


def test_box_gets_its_size_from_the_problem(seed):
    X, y = data()
    model = LinearRegression(
        1.0, 1e-5, y_range=Y_RANGE, penalty=Box(-5.0, 5.0), solver="amp", x_norm=1.0
    ).set_params(random_state=seed)
    assert np.abs(model.fit(X, y).coef_).max() <= 5.1


def test_entropy_sampling_refuses_more_rows_than_planned_before_the_charge():
    X, y = data()
    ledger = Ledger(Budget(2.0, 1e-5))
    model = SimplexRegressor(
        delta=1e-5,
        y_range=Y_RANGE,
        solver="entropy_sampling",
        expected_rows=N - 1,
        x_max=1.0,
    )
    with pytest.raises(ValueError, match="expected_rows must be at least"):
        model.fit(X, y, ledger=ledger)
    assert ledger.report().entries == ()


def test_what_a_solver_cannot_do_is_refused_before_the_charge():
    X, y = data()
    ledger = Ledger(Budget(2.0, 1e-5))
    for solver, settings in [
        ("frank_wolfe", {}),
        ("entropy_sampling", {}),
        ("amp", {}),
        ("permuted_sgd", {}),
        ("online_to_batch", {}),
        ("quadratic_perturbation", {"penalty": L1()}),
        ("adaptive_ridge", {"penalty": Box()}),
    ]:
        model = LinearRegression(
            delta=1e-5, y_range=Y_RANGE, solver=solver, **settings, x_norm=1.0
        )
        with pytest.raises(PlanError):
            model.fit(X, y, ledger=ledger)
    assert ledger.report().entries == ()


LOSSES = [Logistic(), HuberizedHinge(), Softmax(3), Squared(), Huber(0.3)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(("x", "y"), [(7.0, 1.0), (0.05, 1.0), (3.0, 40.0)])
def test_no_rule_depends_on_units(loss, x, y):
    # features and targets in other units give the same weights in those units
    small = problem(loss)
    scaled = Huber(0.3 * y) if isinstance(loss, Huber) else loss
    large = problem(scaled, bounds=RowBounds(x, y_range=(-y, y)))
    assert name_of(auto_solver(small, BUDGET)) == name_of(auto_solver(large, BUDGET))
    one, other = (
        named_solver("noisy_gd", each, BUDGET, "grid").plan(each, BUDGET)
        for each in (small, large)
    )
    assert other.n_steps == one.n_steps
    assert other.step == pytest.approx(one.step / x**2, rel=1e-9)
    if isinstance(loss, Squared | Huber):
        assert other.clip == pytest.approx(one.clip * y, rel=1e-9)
    if not isinstance(loss, Squared):
        one, other = (
            named_solver("amp", each, BUDGET, "grid").plan(each, BUDGET)
            for each in (small, large)
        )
        assert other.tilted.ridge == pytest.approx(one.tilted.ridge * x**2, rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [LinearRegression, Ridge, HuberRegressor])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_noise_never_makes_predictions_much_worse_than_none(kind, epsilon, seed):
    X, y = data(n=2000)
    scores = [
        kind(epsilon, y_range=Y_RANGE, random_state=seed + i, x_norm=1.0)
        .fit(X, y)
        .score(X, y)
        for i in range(3)
    ]
    # noise is kept below a third of the range, whatever the budget
    assert np.median(scores) > (-0.5 if epsilon < 1 else 0.5)


def test_given_object_is_taken_as_it_is(seed):
    X, y = data()
    by_name, by_object = (
        LinearRegression(
            y_range=Y_RANGE, solver=solver, random_state=seed, x_norm=1.0
        ).fit(X, y)
        for solver in ("ada_ssp", named_solver("ada_ssp", None, None, "grid"))
    )
    assert_array_equal(by_name.coef_, by_object.coef_)


class Plain:
    """Own solver whose run returns an array."""

    def plan(self, problem, budget):
        return NoisyGD().plan(problem, budget)

    def run(self, plan, rows, rng):
        return NoisyGD().run(plan, rows, rng).coefficients


class Wrapped(Plain):
    """Own solver, not derived from the library's."""

    def run(self, plan, rows, rng):
        return Result(super().run(plan, rows, rng))


def test_a_solver_of_ones_own_returns_a_result():
    X, y = data()
    model = LogisticRegression(1.0, 1e-6, classes=[0, 1], x_norm=1.0)
    labels = (y > 1.0).astype(int)
    fitted = model.set_params(solver=Wrapped()).fit(X, labels)
    assert fitted.coef_.shape == (1, P)
    with pytest.raises(TypeError, match=r"run of Plain must return .*got ndarray"):
        model.set_params(solver=Plain()).fit(X, labels)
