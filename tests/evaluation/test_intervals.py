"""Intervals of coefficients: what they release and cost, and how often they cover."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from tests.evaluation.populations import best_coefficients, population
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit import assert_replays
from tacit.convex import L1, Objective
from tacit.data.rows import ArrayRows
from tacit.evaluation import coefficient_intervals
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
)
from tacit.privacy import Budget, Ledger, Neighbors
from tacit.solvers import (
    AMP,
    AdaSSP,
    NoisyGD,
    ObjectivePerturbation,
    OutputPerturbation,
)


def logistic(solver="amp", **other):
    return LogisticRegression(
        1.0, 1e-6, classes=[0, 1], solver=solver, **other, x_norm=1.0
    )


def linear(solver="ada_ssp", **other):
    return LinearRegression(
        1.0, 1e-6, y_range=(-1, 1), solver=solver, **other, x_norm=1.0
    )


def sample(kind="labels", n=400, p=3, seed=0):
    X, y = population(p, kind)
    drawn = as_generator(seed).integers(0, len(X), n)
    return X[drawn], y[drawn]


@pytest.mark.parametrize(
    "solver", [AMP(), ObjectivePerturbation(), OutputPerturbation()]
)
def test_without_noise_they_are_those_of_the_sandwich(solver):
    X, y = sample(n=2000)
    model = logistic(solver).set_params(epsilon=1e6, ridge=1.0, delta=1e-3).fit(X, y)
    found = coefficient_intervals(model, X, y, epsilon=1e6, delta=1e-3)
    rows = np.column_stack([X, np.full(len(X), 0.25)])
    W = np.append(model.coef_[0], model.intercept_ / 0.25)[:, None]
    labels = 2.0 * y - 1
    plan = model._facts.planned.plan
    ridge = getattr(plan, "tilted", plan).ridge
    H = Objective(model.loss_, ridge).hessian(ArrayRows(rows, labels), W)
    g = rows * model.loss_.derivative(labels, rows @ W)
    V = np.linalg.inv(H) @ (g.T @ g) @ np.linalg.inv(H)
    # a tenth of the chance to miss is kept for the matrices
    wide = stats.norm.isf(0.05 * 0.9 / 2) * np.sqrt(np.diag(V))
    np.testing.assert_allclose(found.high[0] - model.coef_[0], wide[:-1], rtol=0.02)
    np.testing.assert_allclose(
        found.intercept_high - model.intercept_, wide[-1:] * 0.25, rtol=0.02
    )
    assert found.covers == "noise and sampling"


def test_least_squares_give_the_sandwich_in_units_of_the_targets():
    X, y = sample("targets", 2000)
    small = linear().set_params(epsilon=1e6, delta=1e-3).fit(X, y)
    found = coefficient_intervals(small, X, y, epsilon=1e6)
    rows = np.column_stack([X, np.ones(len(X))])
    H = rows.T @ rows
    residual = y - rows @ np.linalg.solve(H, rows.T @ y)
    middle = (rows * residual[:, None]).T @ (rows * residual[:, None])
    V = np.linalg.inv(H) @ middle @ np.linalg.inv(H)
    wide = stats.norm.isf(0.05 * 0.9 / 2) * np.sqrt(np.diag(V))
    np.testing.assert_allclose(found.high - small.coef_, wide[:-1], rtol=0.02)
    np.testing.assert_allclose(
        found.intercept_high - small.intercept_, wide[-1], rtol=0.02
    )
    large = clone(small).set_params(y_range=(-10, 10)).fit(X, 10 * y)
    wider = coefficient_intervals(large, X, 10 * y, epsilon=1e6)
    np.testing.assert_allclose(wider.high - large.coef_, 10 * wide[:-1], rtol=0.02)


def shares(model, kind, n, p, repeats, seed):
    """Return how far coefficients are off, in units of half their intervals.

    Each repeat has fresh rows and fresh noise.
    """
    X, y = population(p, kind)
    rng = as_generator(seed)
    best, found = None, []
    for _ in range(repeats):
        drawn = rng.integers(0, len(X), n)
        rows = X[drawn], y[drawn]
        fitted = clone(model).set_params(random_state=rng).fit(*rows)
        if best is None:
            best = best_coefficients(fitted, X, y, n)
        ends = coefficient_intervals(fitted, *rows, epsilon=1.0, random_state=rng)
        half = np.ravel(ends.high - ends.low) / 2
        found.append(np.abs(best - np.ravel(fitted.coef_)) / half)
    return np.array(found)


def assert_covers(shares, alpha=0.05, tolerance=0.01):
    """Fails wrongly with probability at most P_FAIL where intervals are as stated."""
    missed, repeats = (shares > 1).sum(axis=0), len(shares)
    p = [
        stats.binomtest(
            int(m), repeats, alpha + tolerance, alternative="greater"
        ).pvalue
        for m in missed
    ]
    assert min(p) > P_FAIL / len(p)


FAST = [
    (linear(AdaSSP(noise="float")), "targets", 1000),
    (logistic(OutputPerturbation(noise="float")), "labels", 1000),
]
CASES = [
    *FAST,
    (linear(AdaSSP(noise="float")), "targets", 10_000),
    (logistic(OutputPerturbation(noise="float")), "labels", 10_000),
    (logistic(AMP(noise="float")), "labels", 2000),
    (logistic(AMP(noise="float")), "labels", 10_000),
    (logistic(ObjectivePerturbation(noise="float")), "labels", 10_000),
    (
        LinearSVC(1.0, 1e-6, classes=[0, 1], solver=AMP(noise="float"), x_norm=1.0),
        "labels",
        10_000,
    ),
    (
        HuberRegressor(
            1.0, 1e-6, y_range=(-1, 1), solver=AMP(noise="float"), x_norm=1.0
        ),
        "targets",
        10_000,
    ),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("model", "kind", "n"), FAST, ids=["ada_ssp", "output"])
def test_intervals_cover_and_narrow_ones_are_caught(model, kind, n, seed):
    found = shares(model, kind, n, 3, 50, seed)
    assert_covers(found)
    with pytest.raises(AssertionError):
        assert_covers(found / 0.3)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("model", "kind", "n"), CASES)
def test_intervals_cover_as_often_as_they_say(model, kind, n, seed):
    found = shares(model, kind, n, 4, 300, seed)
    assert_covers(found)
    with pytest.raises(AssertionError):
        assert_covers(found / 0.3)


@pytest.mark.parametrize("neighbors", [n.value for n in Neighbors])
@pytest.mark.parametrize("kind", ["labels", "targets"])
def test_nothing_but_mechanisms_tells_neighbors_apart(kind, neighbors):
    X, y = sample(kind, 100)
    other, changed = X.copy(), y.copy()
    other[0], changed[0] = -X[0], 1 - y[0] if kind == "labels" else -y[0]
    pair = (X, y), (other, changed)
    if neighbors == "add_or_remove_one":
        pair = (X, y), (X[1:], y[1:])
    model = logistic("amp") if kind == "labels" else linear()
    model.set_params(neighbors=neighbors, random_state=0).fit(X, y)

    def release(X, y):
        return coefficient_intervals(model, X, y, epsilon=1.0, random_state=0)

    report = assert_replays(release, *pair, min_releases=1)
    assert {entry.label for entry in report.entries} == {"SymmetricGaussian"}


def test_they_are_charged_before_rows_are_read():
    X, y = sample()
    ledger = Ledger(Budget(2.0, 1e-5))
    model = logistic(random_state=0).fit(X, y, ledger=ledger)
    found = coefficient_intervals(model, X, y, epsilon=0.5, ledger=ledger)
    assert [e.label for e in ledger.report().entries][1:] == ["coefficient intervals"]
    assert found.privacy.guarantee == Budget(0.5, 1e-6)
    assert not found.privacy.seeded
    before = ledger.spent()
    with pytest.raises(BudgetExceeded):
        coefficient_intervals(
            model, np.full_like(X, np.nan), y, epsilon=5.0, ledger=ledger
        )
    assert ledger.spent() == before


def test_the_report_says_what_the_promise_rests_on():
    X, y = sample()
    model = logistic(random_state=0).fit(X, y)
    report = coefficient_intervals(model, X, y, epsilon=0.5, random_state=1).privacy
    assert report.seeded
    assert "no shared ledger was charged" in report.notes
    assert "the number of rows is public" in report.assumptions
    assert "there are at most 2^24 rows" in report.assumptions
    assert any("clipped to L2 norm 1" in words for words in report.assumptions)


@pytest.mark.parametrize(
    "model",
    [
        logistic(NoisyGD()),
        logistic("preconditioned_gd"),
        logistic(AMP(law="laplace")),
        logistic(OutputPerturbation(law="gamma")),
        linear(AdaSSP(adaptive=True)),
        # their weights are kept in a set, and the ridge of the second is not one
        linear("quadratic_perturbation"),
        linear("adaptive_ridge"),
    ],
)
def test_other_solvers_are_refused_with_the_names_of_those_that_work(model):
    X, y = sample("targets" if isinstance(model, LinearRegression) else "labels")
    model = clone(model).fit(X, y)
    ledger = Ledger(Budget(2.0, 1e-5))
    names = "solver='amp' or 'output_perturbation', by 'ada_ssp' .* by [A-Za-z]*[.]$"
    with pytest.raises(ValueError, match=names):
        coefficient_intervals(model, X, y, epsilon=1.0, ledger=ledger)
    assert ledger.spent() == 0


def with_a_hole(X):
    X = X.copy()
    X[3, 1] = np.nan
    return X


def without_facts(model):
    del model._facts
    return model


REJECTED = {
    "no penalty but the ridge": lambda m, X, y: (
        logistic(penalty=L1(1.0)).fit(X, y),
        X,
        y,
    ),
    "X must be the rows of the fit, 100": lambda m, X, y: (m, X[:-1], y[:-1]),
    "X contains NaN": lambda m, X, y: (m, with_a_hole(X), y),
    "y holds labels outside the public": lambda m, X, y: (m, X, y + 7),
    "features": lambda m, X, y: (m, X[:, :2], y),
    "fit it again": lambda m, X, y: (without_facts(m), X, y),
    "must be a private linear model": lambda m, X, y: (object(), X, y),
    "not fitted": lambda m, X, y: (logistic(), X, y),
}


@pytest.mark.parametrize("words", REJECTED)
def test_bad_rows_are_refused_in_words_and_charge_nothing(words):
    X, y = sample(n=100)
    ledger = Ledger(Budget(2.0, 1e-5))
    arguments = REJECTED[words](logistic(OutputPerturbation()).fit(X, y), X, y)
    with pytest.raises(ValueError, match=words):
        coefficient_intervals(*arguments, epsilon=1.0, ledger=ledger)
    assert ledger.spent() == 0


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"delta": 0.0}, "delta must be > 0"),
        ({"level": 95}, "level must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"random_state": "dice"}, "random_state must be"),
    ],
)
def test_bad_parameters_are_refused_in_words_and_charge_nothing(other, words):
    X, y = sample(n=100)
    ledger = Ledger(Budget(2.0, 1e-5))
    model = logistic(OutputPerturbation()).fit(X, y)
    with pytest.raises(ValueError, match=words):
        coefficient_intervals(
            model, X, y, **{"epsilon": 1.0, "ledger": ledger, **other}
        )
    assert ledger.spent() == 0


def test_sparse_rows_give_what_dense_rows_give():
    X, y = sample()
    model = logistic().fit(X, y)
    dense, thin = (
        coefficient_intervals(model, Z, y, epsilon=1.0, random_state=0)
        for Z in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(thin.low, dense.low, rtol=1e-6)


def test_several_classes_get_an_interval_for_each_coefficient():
    X, y = sample()
    model = LogisticRegression(
        1.0, 1e-6, classes=[0, 1, 2], solver="amp", x_norm=1.0
    ).fit(X, y)
    found = coefficient_intervals(model, X, y, epsilon=1.0)
    assert found.low.shape == (3, 3)
    assert found.intercept_low.shape == (3,)
    assert (found.low < model.coef_).all()
