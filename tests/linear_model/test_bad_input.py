"""What cannot be fitted is refused with one sentence, and nothing is charged."""

import re

import numpy as np
import pytest
from scipy import sparse

from tacit.exceptions import BudgetExceeded, PlanError
from tacit.linear_model import LogisticRegression
from tacit.privacy import Budget, Ledger, PureDP

N = 20
X = np.cos(np.arange(2.0 * N)).reshape(N, 2)
Y = np.arange(N) % 2


def with_entry(value):
    rows = X.copy()
    rows[3, 1] = value
    return rows


def case(name, error, match, X=X, y=Y, ledger=None, **parameters):
    return pytest.param(X, y, ledger, parameters, error, match, id=name)


def each(name, values, match, error=ValueError):
    return [case(f"{name}={v!r}", error, match, **{name: v}) for v in values]


NUMBERS = (-1.0, 0.0, np.nan, np.inf, "1", True, None)

CASES = [
    case("NaN in X", ValueError, "X contains NaN", X=with_entry(np.nan)),
    case("inf in X", ValueError, "X contains infinity", X=with_entry(-np.inf)),
    case(
        "NaN in sparse X",
        ValueError,
        "X contains NaN",
        X=sparse.csr_array(with_entry(np.nan)),
    ),
    case("NaN in y", ValueError, "y contains NaN", y=np.where(Y == 0, np.nan, 1.0)),
    case("no y", ValueError, "y", y=None),
    case("X of one dimension", ValueError, "X must have 2 dimensions", X=X[:, 0]),
    case("list of one dimension", ValueError, "X must have 2 dim", X=[1.0] * N),
    case("X of three dimensions", ValueError, "dim 3", X=X[None]),
    case("lengths differ", ValueError, "inconsistent numbers", y=Y[:-1]),
    case("y of two dimensions", ValueError, "y should be a 1d", y=np.c_[Y, Y]),
    case("no rows", ValueError, "0 sample", X=X[:0], y=Y[:0]),
    case("one row", ValueError, "1 sample", X=X[:1], y=Y[:1], classes=[0, 1]),
    case("no features", ValueError, "0 feature", X=X[:, :0]),
    case("strings in X", ValueError, "X must hold numbers", X=np.full((N, 2), "a")),
    case("complex X", ValueError, "X must hold real numbers", X=X + 1j),
    case("a missing class", ValueError, "none of them missing", classes=[0, 1, np.nan]),
    case("continuous y", ValueError, "continuous", y=X[:, 0]),
    case("one class", ValueError, "give the public labels as classes=", y=0 * Y),
    case("one public class", ValueError, "classes", y=0 * Y, classes=[0]),
    case("classes is a number", ValueError, "classes", classes=3),
    case("label outside", ValueError, "outside the public classes", classes=[0, 2]),
    case("text classes", ValueError, "outside the public", classes=["0", "1"]),
    case(
        "text labels", ValueError, "outside the public", y=Y.astype(str), classes=[0, 1]
    ),
    *each("epsilon", NUMBERS, "epsilon must be"),
    *each("delta", (1, 1.5, -1e-9, np.nan, "1", True), "delta must be"),
    case("delta zero", PlanError, "needs delta > 0", delta=0.0),
    case(
        "delta missing",
        ValueError,
        "delta must be given",
        neighbors="add_or_remove_one",
    ),
    *each("x_norm", NUMBERS, "x_norm must be"),
    *each("ridge", (-1.0, np.nan, np.inf, "1", True, None), "ridge must be"),
    *each("expected_rows", (0, -1, 2.5, "1", True), "expected_rows must be"),
    *each("random_state", (-1, 1.5, "1", True), "random_state must be"),
    *each("solver", ("sgd", None, 3), "solver must be"),
    *each("neighbors", ("swap", None), "neighbors must be"),
    *each("noise", ("laplace", None), "noise must be"),
    case("noise of descent", ValueError, "noise", noise="x", solver="noisy_gd"),
    case("noise beyond the grid", PlanError, "the grid", epsilon=1e-9, delta=1e-12),
    case("ledger is text", TypeError, "ledger must be a Ledger", ledger="mine"),
    case("ledger is a budget", TypeError, "ledger must", ledger=Budget(1.0, 1e-3)),
    case("exhausted", BudgetExceeded, "nothing was charged", epsilon=50.0),
]


@pytest.mark.parametrize(("X", "y", "ledger", "parameters", "error", "match"), CASES)
def test_bad_input_is_refused_by_name_and_costs_nothing(
    X, y, ledger, parameters, error, match
):
    account = Ledger(Budget(5.0, 1e-2))
    account.charge(PureDP(1.0), "earlier")
    spent = account.spent()
    model = LogisticRegression(**parameters)
    with pytest.raises(Exception, match=re.escape(match)) as refusal:
        model.fit(X, y, ledger=account if ledger is None else ledger)
    assert type(refusal.value) is error
    # scikit-learn adds a paragraph of advice on missing values
    first, *advice = str(refusal.value).split("\n")
    assert not advice or "contains NaN" in first
    assert len(account.report().entries) == 1
    assert account.spent() == spent
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_label_is_enough_where_the_classes_are_public():
    for labels in (np.zeros(N, dtype=int), np.ones(N, dtype=int)):
        model = LogisticRegression(classes=[0, 1], random_state=0).fit(X, labels)
        assert model.coef_.shape == (1, 2)


def test_no_message_shows_a_value_of_the_data():
    secret = 0.123456789
    for bad in (np.full(N, secret), with_entry(np.nan) * secret, X[None] * secret):
        with pytest.raises(ValueError, match=r"X|dim") as refusal:
            LogisticRegression().fit(bad, Y)
        assert "0.1234" not in str(refusal.value)
    with pytest.raises(ValueError, match="outside") as refusal:
        LogisticRegression(classes=[0, 1]).fit(X, Y * 777)
    assert "777" not in str(refusal.value)
