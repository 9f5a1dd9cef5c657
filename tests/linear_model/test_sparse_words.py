"""What sparse models say where something is missing, and how long they say it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from tacit._random import as_generator
from tacit.exceptions import PlanError
from tacit.linear_model import ElasticNet, Lasso, SparseLogisticRegression

SPARSE = (ElasticNet, Lasso, SparseLogisticRegression)


def made(kind, *budget, **parameters):
    classify = kind is SparseLogisticRegression
    target = {"classes": [0, 1]} if classify else {"y_range": (0, 1)}
    return kind(*budget, **{"feature_bounds": 1.0} | target | parameters)


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("solver", ["auto", "gcd"])
@pytest.mark.parametrize("delta", [0.0, 1e-20])
def test_a_private_number_of_rows_without_a_guess_asks_for_one(kind, solver, delta):
    private = {"neighbors": "add_or_remove_one", "solver": solver}
    model = made(kind, 1.0, delta, **private)
    with pytest.raises(PlanError, match="expected_rows must be given") as rejection:
        model.plan(500, 4)
    assert "NoisyGD" not in str(rejection.value)
    assert model.set_params(expected_rows=500).plan(500, 4).problem.n_rows == 500
    # a fit says the same, and a ball needs no guess
    X, y = np.zeros((20, 4)), np.arange(20) % 2
    with pytest.raises(PlanError, match="expected_rows must be given"):
        model.set_params(expected_rows=None).fit(X, y)
    if kind is Lasso:
        model.set_params(solver="frank_wolfe", l1_radius=1.0).plan(500, 4)


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("n_rows", [2, 500, 2**26, 2**31, 2**40])
def test_a_private_number_of_rows_decides_about_no_refusal(kind, n_rows):
    model = made(kind, 1.0, 1e-20, neighbors="add_or_remove_one", solver="gcd")
    with pytest.raises(PlanError, match="expected_rows must be given") as rejection:
        model.plan(n_rows, 4)
    with pytest.raises(PlanError) as other:
        model.plan(20, 4)
    assert str(rejection.value) == str(other.value)


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("name", ["selected_names_", "selected_features_"])
def test_nothing_is_selected_before_a_fit(kind, name):
    model = made(kind)
    with pytest.raises(NotFittedError):
        getattr(model, name)
    assert not hasattr(model, name)


def test_columns_without_names_have_none_to_select(seed):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (60, 3))
    model = made(Lasso, 1.0).fit(X, X[:, 0])
    assert not hasattr(model, "selected_names_")
    with pytest.raises(AttributeError, match="X had none; fit a DataFrame, or use"):
        model.selected_names_  # noqa: B018 - the look is what is refused
    named = model.fit(pd.DataFrame(X, columns=["a", "b", "c"]), X[:, 0])
    assert len(named.selected_names_) == len(named.selected_features_)


@pytest.mark.parametrize("solver", ["cd", "gcd"])
@pytest.mark.parametrize("kind", SPARSE)
def test_a_plan_for_wide_tables_is_as_short_as_for_narrow_ones(kind, solver):
    model = made(kind, 1.0, solver=solver)
    lengths = [
        len(repr(model.set_params(feature_bounds=[(0, 10)] * p).plan(100_000, p)))
        for p in (6, 60, 600)
    ]
    assert max(lengths) < 1600
    assert max(lengths) - min(lengths) < 100


def test_one_pair_may_be_meant_for_all_columns(seed):
    X = as_generator(seed).uniform(18, 100, (60, 3))
    one, each = (
        made(Lasso, 1.0, feature_bounds=bounds, random_state=0).fit(X, X[:, 0] / 100)
        for bounds in ((18, 100), [(18, 100)] * 3)
    )
    assert np.array_equal(one.coef_, each.coef_)
    assert one.bounds_ == each.bounds_
    with pytest.raises(ValueError, match="may mean one pair or two largest values"):
        made(Lasso, 1.0, feature_bounds=(18, 100)).plan(60, 2)
