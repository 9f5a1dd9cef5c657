"""Private transformers as a person uses them."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tacit._random import as_generator
from tacit.audit import assert_replays
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.preprocessing import PrivateQuantileBounds, PrivateStandardScaler
from tacit.preprocessing._quantiles import apart
from tacit.privacy import Budget, Ledger, Neighbors, PureDP

KINDS = [PrivateStandardScaler, PrivateQuantileBounds]
N = 400
RANGES = {"age": (18, 98), "income": (0, 1e6)}
LEARNED = {
    PrivateStandardScaler: {"mean_", "scale_", "feature_bounds_"},
    PrivateQuantileBounds: {"lower_", "upper_"},
}

each_kind = pytest.mark.parametrize("kind", KINDS)
each_relation = pytest.mark.parametrize("neighbors", [n.value for n in Neighbors])


def people(n=N, seed=0):
    rng = as_generator(seed)
    income = np.exp(rng.normal(10.0, 1.0, n))
    return pd.DataFrame({"age": rng.normal(50, 12, n), "income": income})


def learned(model):
    return {name: getattr(model, name) for name in sorted(LEARNED[type(model)])}


@each_kind
@each_relation
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("noise", ["grid", "float"])
def test_fits_every_budget_and_reports_it(kind, neighbors, delta, noise, seed):
    model = kind(
        1.0, delta, ranges=RANGES, neighbors=neighbors, noise=noise, random_state=seed
    ).fit(people())
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted == LEARNED[kind] | {
        "ranges_",
        "x_norm_",
        "x_max_",
        "privacy_",
        "n_features_in_",
        "feature_names_in_",
    }
    report = model.privacy_
    assert report.guarantee == Budget(1.0, delta, neighbors)
    assert report.spent <= 1.0
    assert report.seeded
    data = json.loads(report.to_json())
    assert "no shared ledger was charged" in data["notes"]
    said = " ".join(data["assumptions"])
    assert ("number of rows is public" in said) == (neighbors == "replace_one")
    assert ("floating-point" in said) == (noise == "float")


@each_kind
def test_same_seed_same_bits_and_no_seed_other_bits(kind):
    one, two = (kind(ranges=RANGES, random_state=3).fit(people()) for _ in range(2))
    assert_array_equal(one.transform(people()), two.transform(people()))
    fresh = [kind(0.01, ranges=RANGES).fit(people()) for _ in range(2)]
    first, second = (np.concatenate(list(learned(m).values())) for m in fresh)
    assert np.any(first != second)
    assert not fresh[0].privacy_.seeded


@each_kind
def test_rows_outside_the_range_count_as_its_ends(kind, seed):
    X = people().to_numpy()
    far = np.where(X > 60, 1e300, X)
    cut = np.clip(far, *np.array(list(RANGES.values())).T)
    first, second = (
        kind(ranges=list(RANGES.values()), random_state=seed).fit(Z) for Z in (far, cut)
    )
    for name, value in learned(first).items():
        assert_array_equal(value, learned(second)[name])
    assert_array_equal(first.transform(far), first.transform(cut))


@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transformed_rows_are_within_the_public_norm(kind, dtype, seed):
    X = people().to_numpy().astype(dtype)
    model = kind(ranges=list(RANGES.values()), random_state=seed)
    found = model.fit_transform(
        np.vstack([X, [[0, -1e30], [1e30, 1e30]]]).astype(dtype)
    )
    assert found.dtype == dtype
    norms = np.linalg.norm(found.astype(np.float64), axis=1)
    assert norms.max() <= model.x_norm_


def test_scaler_centers_scales_and_cuts(seed):
    X = people(20_000)
    model = PrivateStandardScaler(10.0, ranges=RANGES, limit=2.5, random_state=seed)
    found = model.set_output(transform="pandas").fit_transform(X)
    assert list(found.columns) == ["age", "income"]
    assert abs(found["age"].mean()) < 0.05
    assert abs(found["age"].std() - 1) < 0.05
    assert found.to_numpy().max() <= 2.5
    assert model.x_norm_ == pytest.approx(2.5 * np.sqrt(2))


def test_bounds_hold_the_bulk_of_the_rows(seed):
    X = people(20_000)
    model = PrivateQuantileBounds(
        2.0, quantiles=(0.05, 0.95), ranges=RANGES, n_cells=4096, target=(0.0, 1.0)
    )
    found = model.set_params(random_state=seed).fit_transform(X)
    inside = (X.to_numpy() > model.lower_) & (X.to_numpy() < model.upper_)
    assert_allclose(inside.mean(axis=0), 0.9, atol=0.01)
    assert found.min() == 0.0
    assert found.max() == 1.0


def test_bounds_too_close_are_moved_apart_by_a_public_rule():
    close = np.array([[0.5, 0.0, 1.0, 0.2], [0.5, 0.01, 1.0, 0.9]])
    low, high = apart(close, 0.1, ((0.0, 1.0),) * 4)
    assert_allclose(low, [0.45, 0.0, 0.9, 0.2])
    assert_allclose(high, [0.55, 0.1, 1.0, 0.9])
    constant = np.full((50, 1), 7.0)
    model = PrivateQuantileBounds(100.0, ranges=(0, 10), random_state=0).fit(constant)
    assert model.upper_ - model.lower_ >= 0.1 * (1 - 1e-9)
    for s in range(20):
        wild = PrivateQuantileBounds(1e-3, ranges=(0, 10), random_state=s).fit(constant)
        assert 0 <= wild.lower_ < wild.upper_ <= 10
        assert np.isfinite(wild.transform(constant)).all()


@each_kind
def test_a_model_is_copied_without_its_fit_and_pickled_with_it(kind, seed):
    model = kind(ranges=RANGES, random_state=seed).fit(people())
    with pytest.raises(NotFittedError):
        clone(model).transform(people())
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.transform(people()), model.transform(people()))
    model.set_params(**dict.fromkeys(model.get_params()))
    assert_array_equal(model.transform(people()), again.transform(people()))


@each_kind
@each_relation
def test_fit_shows_nothing_but_the_release(kind, neighbors, seed):
    X = people(6).to_numpy()
    other = X.copy()
    other[2] = [-1e9, 1e9]
    second = other if neighbors == "replace_one" else np.delete(X, 2, axis=0)

    def train(rows):
        return kind(
            1.0,
            1e-5,
            ranges=list(RANGES.values()),
            neighbors=neighbors,
            random_state=seed,
        ).fit(rows)

    assert_replays(train, [X], [second])


X = people(20).to_numpy()


def with_entry(value, dtype=np.float64):
    rows = X.astype(dtype)
    rows[3, 1] = value
    return rows


def case(name, error, match, X=X, ledger=None, kinds=KINDS, **parameters):
    return [
        pytest.param(
            kind, X, ledger, parameters, error, match, id=f"{kind.__name__} {name}"
        )
        for kind in kinds
    ]


def each(name, values, match, kinds=KINDS):
    return [
        found
        for v in values
        for found in case(f"{name}={v!r}", ValueError, match, kinds=kinds, **{name: v})
    ]


NUMBERS = (-1.0, 0.0, np.nan, np.inf, "1", True, None)
SCALER, BOUNDS = KINDS[:1], KINDS[1:]
CASES = [
    *case("NaN", ValueError, "X contains NaN", X=with_entry(np.nan)),
    *case("inf", ValueError, "X contains infinity", X=with_entry(-np.inf)),
    *case("text", ValueError, "X must hold numbers", X=with_entry("secret", str)),
    *case("complex", ValueError, "real numbers", X=X + 1j),
    *case("sparse", TypeError, "call X.toarray()", X=sparse.csr_array(X)),
    *case("flat", ValueError, "X must have 2 dimensions", X=X[:, 0]),
    *case("one row", ValueError, "1 sample", X=X[:1]),
    *case("no rows", ValueError, "0 sample", X=X[:0]),
    *case("no columns", ValueError, "0 feature", X=X[:, :0]),
    *case("range missing", ValueError, "no entry for column 1", ranges={0: (0, 1)}),
    *case("range inverted", ValueError, "the lower first", ranges=(1, 0)),
    *each("epsilon", NUMBERS, "epsilon must be"),
    *each("delta", (1, 1.5, -1e-9, np.nan, "1", True), "delta must be"),
    *case("no delta", ValueError, "delta must be given", neighbors="add_or_remove_one"),
    *each("random_state", (-1, 1.5, "1", True), "random_state must be"),
    *each("neighbors", ("swap", None), "neighbors must be"),
    *each("noise", ("laplace", None), "noise must be"),
    *case("sparse centered", TypeError, "with_mean=False", X=sparse.csr_array(X),
          kinds=SCALER),
    *case("no zero", ValueError, "ranges must hold 0", X=sparse.csr_array(X),
          kinds=SCALER, with_mean=False, ranges=[(0, 1), (1, 2)]),
    *case("sparse NaN", ValueError, "X contains NaN", kinds=SCALER, with_mean=False,
          X=sparse.csc_array(with_entry(np.nan))),
    *each("with_mean", (1, 0, None, "yes", np.nan, [True]), "with_mean must", SCALER),
    *each("limit", NUMBERS, "limit must be", SCALER),
    *each("least_scale", (0, 1, np.nan, "1"), "least_scale must be", SCALER),
    *each("least_width", (0, 1, np.nan, "1"), "least_width must be", BOUNDS),
    *each("quantiles", ((0, 1), (0.9, 0.1), 0.5, (0.5,)), "quantiles must", BOUNDS),
    *each("n_cells", (1, 2.5, 2**16 + 1, None), "n_cells must be", BOUNDS),
    *each("target", ((1, 0), None), "target must be", BOUNDS),
    *case("epsilon tiny", PlanError, "raise epsilon", epsilon=1e-11, delta=0.0),
    *case("ledger is text", TypeError, "ledger must be a Ledger", ledger="mine"),
    *case("relation", ValueError, "plan for the latter", ledger=Ledger(
        Budget(9.0, 1e-2, "add_or_remove_one"))),
    *case("exhausted", BudgetExceeded, "nothing was charged", epsilon=50.0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "X", "ledger", "parameters", "error", "match"), CASES)
def test_bad_input_is_refused_by_name_and_costs_nothing(
    kind, X, ledger, parameters, error, match
):
    account = Ledger(Budget(5.0, 1e-2))
    account.charge(PureDP(1.0), "earlier")
    spent = account.spent()
    model = kind(**{"ranges": (0, 1e6), **parameters})
    before = vars(model).copy()
    with pytest.raises(Exception, match=re.escape(match)) as rejection:
        model.fit(X, ledger=account if ledger is None else ledger)
    assert type(rejection.value) is error
    assert "\n" not in str(rejection.value)
    assert "secret" not in str(rejection.value)
    assert len(account.report().entries) == 1
    assert account.spent() == spent
    assert vars(model).keys() == before.keys()


@each_kind
def test_a_refused_fit_leaves_an_earlier_one_as_it_was(kind, seed):
    model = kind(ranges=(0, 1e6), random_state=seed).fit(X)
    before = model.transform(X)
    with pytest.raises(ValueError, match="X contains NaN"):
        model.fit(with_entry(np.nan)[:, 1:])
    assert_array_equal(model.transform(X), before)


@each_kind
def test_an_overspend_is_refused_before_any_value_is_read(kind):
    account = Ledger(Budget(1.0, 1e-2))
    unreadable = with_entry(np.nan)  # whoever reads it says so
    with pytest.raises(BudgetExceeded, match="nothing was charged"):
        kind(2.0, ranges=(0, 1e6)).fit(unreadable, ledger=account)
    assert account.spent() == 0
    with pytest.raises(ValueError, match="NaN"):
        kind(1.0, ranges=(0, 1e6)).fit(unreadable, ledger=account)
    assert account.spent() == 0


@each_kind
def test_the_charge_stays_when_the_release_fails(kind, monkeypatch):
    account = Ledger(Budget(5.0, 1e-2))

    def fail(*args):
        raise MemoryError

    monkeypatch.setattr(kind, "_learn", fail)
    model = kind(ranges=(0, 1e6))
    with pytest.raises(MemoryError):
        model.fit(X, ledger=account)
    assert len(account.report().entries) == 1
    assert not [name for name in vars(model) if name.endswith("_")]
