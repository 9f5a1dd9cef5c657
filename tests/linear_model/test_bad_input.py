"""What cannot be fitted is refused with one sentence, and nothing is charged."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tacit.convex import L1, Entropy, L1Ball, L2Ball, NuclearBall, Simplex
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
    SparseLogisticRegression,
)
from tacit.privacy import Budget, Ledger, PureDP
from tacit.solvers import AMP, FrankWolfe

N = 20
X = np.cos(np.arange(2.0 * N)).reshape(N, 2)
LABELS = np.arange(N) % 2
TARGETS = X[:, 0] + 0.5

SEVERAL = (LogisticRegression, LinearSVC)  # also of more than two classes
CLASSIFIERS = (*SEVERAL, SparseLogisticRegression)
SCALED = (LinearRegression, Ridge, HuberRegressor)
REGRESSORS = (*SCALED, SimplexRegressor, Lasso, ElasticNet)
LINEAR = (*SEVERAL, *SCALED)  # with an intercept, a penalty and a norm
SPARSE = (Lasso, ElasticNet, SparseLogisticRegression)
ALL = (*CLASSIFIERS, *REGRESSORS)


def with_entry(value):
    rows = X.copy()
    rows[3, 1] = value
    return rows


def cases(name, kinds, error, match, X=X, y=None, ledger=None, **parameters):
    return [
        pytest.param(
            kind, X, y, ledger, parameters, error, match, id=f"{kind.__name__}-{name}"
        )
        for kind in kinds
    ]


def each(name, kinds, values, match, error=ValueError):
    """Try the first value on every estimator, and the others on one each in turn."""
    found = []
    for i, value in enumerate(values):
        tried = kinds if i == 0 else [kinds[i % len(kinds)]]
        found += cases(f"{name}={value!r}", tried, error, match, **{name: value})
    return found


NUMBERS = (-1.0, 0.0, np.nan, np.inf, "1", True, None)
NOT_NEGATIVE = (-1.0, np.nan, np.inf, "1", True, None)
RANGES = (
    *((1, 0), (0, 0), (0,), (0, 1, 2), (0, np.inf), ("0", "1"), 3, (np.nan, 1)),
    (0, 10**400),
)
NONE = np.array([None] * N)

CASES = [
    *cases("NaN in X", ALL, ValueError, "X contains NaN", X=with_entry(np.nan)),
    *cases("inf in X", ALL, ValueError, "X contains infinity", X=with_entry(-np.inf)),
    *cases(
        "NaN in sparse X",
        ALL,
        ValueError,
        "X contains NaN",
        X=sparse.csr_array(with_entry(np.nan)),
    ),
    *cases("NaN in y", ALL, ValueError, "y contains NaN", y=TARGETS * np.nan),
    *cases(
        "inf in y",
        REGRESSORS,
        ValueError,
        "y contains NaN or inf",
        y=np.full(N, np.inf),
    ),
    *cases("text y", REGRESSORS, ValueError, "y must hold num", y=LABELS.astype(str)),
    *cases(
        "text in y",
        REGRESSORS,
        ValueError,
        "y must hold numbers",
        y=np.array(["secret", *TARGETS[1:]], dtype=object),
    ),
    *cases("None in y", REGRESSORS, ValueError, "y", y=NONE),
    *cases("complex y", ALL, ValueError, "y must hold real numbers", y=TARGETS + 1j),
    *cases("no y", ALL, ValueError, "y", y="none"),
    *cases("X of one dimension", ALL, ValueError, "X must have 2 dim", X=X[:, 0]),
    *cases("list of one dimension", ALL, ValueError, "X must have 2 dim", X=[1.0] * N),
    *cases("X of three dimensions", ALL, ValueError, "2 dimensions, got 3", X=X[None]),
    *cases("lengths differ", ALL, ValueError, "inconsistent numbers", y=LABELS[:-1]),
    *cases(
        "y of two dimensions",
        ALL,
        ValueError,
        "y should be a 1d",
        y=np.c_[LABELS, LABELS],
    ),
    *cases("no rows", ALL, ValueError, "0 sample", X=X[:0], y=LABELS[:0]),
    *cases("one row", ALL, ValueError, "1 sample", X=X[:1], y=LABELS[:1]),
    *cases("no features", ALL, ValueError, "0 feature", X=X[:, :0]),
    *cases(
        "strings in X", ALL, ValueError, "X must hold numbers", X=np.full((N, 2), "a")
    ),
    *cases("complex X", ALL, ValueError, "X must hold real numbers", X=X + 1j),
    *cases(
        "a missing class",
        CLASSIFIERS,
        ValueError,
        "none of them missing",
        classes=[0, 1, np.nan],
    ),
    *cases("continuous y", CLASSIFIERS, ValueError, "continuous", y=TARGETS),
    *cases(
        "one class",
        CLASSIFIERS,
        ValueError,
        "y has one class; pass all public labels as classes=",
        y=0 * LABELS,
    ),
    *cases(
        "one public class",
        CLASSIFIERS,
        ValueError,
        "classes",
        y=0 * LABELS,
        classes=[0],
    ),
    *cases("classes is a number", CLASSIFIERS, ValueError, "classes", classes=3),
    *cases(
        "label outside",
        CLASSIFIERS,
        ValueError,
        "outside the public classes",
        classes=[0, 2],
    ),
    *cases(
        "text classes",
        CLASSIFIERS,
        ValueError,
        "outside the public",
        classes=["0", "1"],
    ),
    *cases(
        "text labels",
        CLASSIFIERS,
        ValueError,
        "outside the public",
        y=LABELS.astype(str),
        classes=[0, 1],
    ),
    *each(
        "multi_class",
        [LogisticRegression],
        ("ovr", None, 1),
        "multi_class must be 'softmax' or 'one_vs_rest'",
    ),
    *each("h", [LinearSVC], NUMBERS, "h must be"),
    *each("y_range", REGRESSORS, RANGES, "y_range must be"),
    *cases("y_range missing", REGRESSORS, ValueError, "y_range must be", y_range=None),
    *each("y_range", REGRESSORS, ((-1e308, 1e308), (1.0, 1 + 1e-12)), "y_range must"),
    *each("alpha", [Ridge, HuberRegressor], NOT_NEGATIVE, "alpha must be"),
    *each("threshold", [HuberRegressor], NUMBERS[:-1], "threshold must be"),
    *each("radius", [SimplexRegressor], NUMBERS, "radius must be"),
    *each("x_max", [SimplexRegressor], NUMBERS, "x_max must be"),
    *each("epsilon", ALL, NUMBERS, "epsilon must be"),
    *each("delta", ALL, (1, 1.5, -1e-9, np.nan, "1", True), "delta must be"),
    *cases(
        "delta missing",
        ALL,
        ValueError,
        "delta must be given",
        neighbors="add_or_remove_one",
    ),
    *each("x_norm", LINEAR, NUMBERS, "x_norm must be"),
    *each("bound_norm", LINEAR, ("l1", None, 2), "bound_norm must be"),
    *each("ridge", SEVERAL, NOT_NEGATIVE, "ridge must be"),
    *each("expected_rows", ALL, (0, -1, 2.5, "1", True), "expected_rows must be"),
    *each("random_state", ALL, (-1, 1.5, "1", True), "random_state must be"),
    *each("verbose", ALL, (-1, "1", None, 0.5), "verbose must be"),
    *each("solver", ALL, ("sgd", None, 3), "solver must be"),
    *each("solver", ALL, ("objective_perturbation",), "solver must be"),
    *each("neighbors", ALL, ("swap", None), "neighbors must be"),
    *each("noise", ALL, ("laplace", None), "noise must be"),
    *each("penalty", LINEAR, ("l1", 1.0, L1, Entropy(), NuclearBall()), "penalty must"),
    *cases("simplex", LINEAR, ValueError, "fit_intercept=False", penalty=Simplex()),
    *cases(
        "simplex in units",
        SCALED,
        ValueError,
        "use SimplexRegressor",
        penalty=Simplex(),
        fit_intercept=False,
    ),
    *cases(
        "entries bounded, no corners",
        LINEAR,
        PlanError,
        "bound_norm='l2'",
        bound_norm="linf",
        penalty=L2Ball(),
    ),
    *cases(
        "no penalty in descent of entries",
        LINEAR,
        PlanError,
        "norm='l2'",
        bound_norm="linf",
        penalty=L1Ball(),
        solver="noisy_gd",
    ),
    *cases(
        "delta zero",
        (LinearRegression, Ridge),
        ValueError,
        "delta=0.0 needs weights in a set",
        delta=0.0,
    ),
    *each("alpha", SPARSE, NOT_NEGATIVE, "alpha must be"),
    *each(
        "l1_ratio",
        [ElasticNet, SparseLogisticRegression],
        (-0.1, 1.1, np.nan, "1", True, None),
        "l1_ratio must be",
    ),
    *each(
        "feature_bounds",
        SPARSE,
        (
            None,
            0.0,
            -1.0,
            np.nan,
            np.inf,
            "1",
            True,
            [1.0],
            [1.0, 2.0, 3.0],
            [1.0, 0.0],
            (0, 10),
            [(0, 1), (1, 0)],
            [(0, 1), (2, 2)],
            [(0, 1), (0, np.nan)],
            [(0, 1), (1, 1 + 1e-12)],
            [(0, 1, 2), (0, 1, 2)],
            np.ones((2, 3)),
            {"a": 1.0, "b": 1.0},
        ),
        "feature_bounds",
    ),
    *cases(
        "a name without bounds",
        SPARSE,
        ValueError,
        "feature_bounds has no entry 'b'",
        X=pd.DataFrame(X, columns=["a", "b"]),
        feature_bounds={"a": 1.0},
    ),
    *cases(
        "bounds without a name",
        SPARSE,
        ValueError,
        "feature_bounds has an unknown entry 'c'",
        X=pd.DataFrame(X, columns=["a", "b"]),
        feature_bounds={"a": 1.0, "b": 1.0, "c": 1.0},
    ),
    *cases(
        "sparse rows without zero",
        SPARSE,
        ValueError,
        "must hold 0 in every range",
        X=sparse.csr_array(X),
        feature_bounds=[(0, 1), (1, 2)],
    ),
    *cases(
        "targets too wide for the features",
        (Lasso, ElasticNet),
        ValueError,
        "y_range is too wide",
        y_range=(-1e150, 1e150),
        feature_bounds=1e-90,
    ),
    *each("positive", (Lasso, ElasticNet), (None, 1, "yes"), "positive must be"),
    *each("fit_intercept", SPARSE, (None, 1, "yes"), "fit_intercept must be"),
    *each("solver", SPARSE, ("amp", "noisy_gd", "ada_ssp", AMP()), "solver must be"),
    *each("l1_radius", SPARSE, (3.0, -1.0), "l1_radius is for"),
    *cases(
        "radius with cd",
        SPARSE,
        ValueError,
        "l1_radius is for",
        solver="cd",
        l1_radius=3.0,
    ),
    *cases(
        "no radius", SPARSE, ValueError, "l1_radius must be given", solver="frank_wolfe"
    ),
    *cases(
        "no radius", SPARSE, ValueError, "l1_radius must be given", solver=FrankWolfe()
    ),
    *[
        case
        for radius in (0.0, -1.0, np.nan, np.inf, "1", True)
        for case in cases(
            f"radius {radius!r}",
            SPARSE,
            ValueError,
            "l1_radius must be a finite number > 0",
            solver="frank_wolfe",
            l1_radius=radius,
        )
    ],
    *cases(
        "ridge in a ball",
        [ElasticNet],
        ValueError,
        "l1_ratio must be 1.0",
        solver="frank_wolfe",
        l1_radius=1.0,
    ),
    *cases(
        "positive in a ball",
        [Lasso],
        ValueError,
        "positive=True is not",
        solver="frank_wolfe",
        l1_radius=1.0,
        positive=True,
    ),
    *cases(
        "delta zero by cd", SPARSE, PlanError, "needs delta > 0", delta=0.0, solver="cd"
    ),
    *cases(
        "three classes",
        [SparseLogisticRegression],
        ValueError,
        "Only binary classification is supported",
        y=np.arange(N) % 3,
    ),
    *cases(
        "three public classes",
        [SparseLogisticRegression],
        ValueError,
        "give two classes, or use LogisticRegression",
        classes=[0, 1, 2],
    ),
    *cases(
        "noise beyond the grid",
        SEVERAL,
        PlanError,
        "the grid",
        epsilon=1e-9,
        delta=1e-12,
    ),
    *cases(
        "noise beyond whole numbers",
        SPARSE,
        PlanError,
        "too large for integers",
        epsilon=1e-9,
        delta=1e-12,
        solver="cd",
    ),
    *cases("ledger is text", ALL, TypeError, "ledger must be a Ledger", ledger="mine"),
    *cases(
        "ledger is a budget", ALL, TypeError, "ledger must", ledger=Budget(1.0, 1e-3)
    ),
    *cases("exhausted", ALL, BudgetExceeded, "nothing was charged", epsilon=50.0),
]


def usual(kind):
    """Return parameters and targets with which a fit would go well."""
    bound = "x_max" if kind is SimplexRegressor else "x_norm"
    settings = {"feature_bounds" if kind in SPARSE else bound: 1.0}
    if kind in CLASSIFIERS:
        return settings, LABELS
    return settings | {"y_range": (-1, 2)}, TARGETS


@pytest.mark.parametrize(
    ("kind", "X", "y", "ledger", "parameters", "error", "match"), CASES
)
def test_bad_input_is_refused_by_name_and_costs_nothing(
    kind, X, y, ledger, parameters, error, match
):
    account = Ledger(Budget(5.0, 1e-2))
    account.charge(PureDP(1.0), "earlier")
    spent = account.spent()
    settings, targets = usual(kind)
    if y is not None:
        targets = None if isinstance(y, str) else y
    model = kind(**(settings | parameters))
    with pytest.raises(Exception, match=re.escape(match)) as rejection:
        model.fit(X, targets, ledger=account if ledger is None else ledger)
    assert type(rejection.value) is error
    # scikit-learn adds a paragraph of advice on missing values
    first, *advice = str(rejection.value).split("\n")
    assert not advice or "contains NaN" in first
    assert "secret" not in first
    assert len(account.report().entries) == 1
    assert account.spent() == spent
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_one_label_is_enough_where_the_classes_are_public(kind):
    for labels in (np.zeros(N, dtype=int), np.ones(N, dtype=int)):
        settings, _ = usual(kind)
        model = kind(classes=[0, 1], random_state=0, **settings).fit(X, labels)
        assert model.coef_.shape == (1, 2)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_targets_beyond_the_range_are_cut_and_not_told(kind, seed):
    far = TARGETS.copy()
    far[:2] = 1e300, -1e300
    cut = np.clip(far, -1, 2)
    settings, _ = usual(kind)
    fits = [
        kind(random_state=seed, **settings).fit(X, targets).coef_
        for targets in (far, cut)
    ]
    assert np.array_equal(*fits)


@pytest.mark.parametrize("kind", ALL)
def test_no_message_shows_a_value_of_the_data(kind):
    secret = 0.123456789
    settings, targets = usual(kind)
    for bad in (np.full(N, secret), with_entry(np.nan) * secret, X[None] * secret):
        with pytest.raises(ValueError, match=r"X|dim") as rejection:
            kind(**settings).fit(bad, targets)
        assert "0.1234" not in str(rejection.value)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_no_message_shows_a_label(kind):
    settings, _ = usual(kind)
    with pytest.raises(ValueError, match="outside") as rejection:
        kind(classes=[0, 1], **settings).fit(X, LABELS * 777)
    assert "777" not in str(rejection.value)


def test_an_overspend_is_refused_before_any_value_is_read():
    missing = np.full((N, 2), np.nan)
    ledger = Ledger(Budget(0.5, 1e-6))
    model = LogisticRegression(1.0, 1e-7, classes=[0, 1], x_norm=1.0)
    with pytest.raises(BudgetExceeded):
        model.fit(missing, LABELS, ledger=ledger)
    with pytest.raises(ValueError, match="X contains NaN"):
        model.set_params(epsilon=0.1).fit(missing, LABELS, ledger=ledger)
    assert ledger.spent() == 0
