"""The estimator that follows the best of several predictors."""

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.public import excused_without_rows

from tacit import Budget, Ledger
from tacit._random import as_generator
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.streaming import DurableStream, HedgeAggregator

ESTIMATORS = [
    HedgeAggregator(horizon=40, play="weights", random_state=0),
    HedgeAggregator(horizon=40, loss="absolute", cost_range=(0, 5), random_state=0),
    HedgeAggregator(horizon=40, play="sample", loss="cost", random_state=0),
]
PLAYS = ("sample", "weights", "auto")


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=excused_without_rows)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def said(n, p=4, seed=0, labels=(0, 1, 2)):
    """Return what experts say, the one in column 2 mostly right, and the truth."""
    rng, labels = as_generator(seed), np.array(labels)
    y = rng.integers(0, len(labels), n)
    X = rng.integers(0, len(labels), (n, p))
    X[:, 2] = np.where(rng.random(n) < 0.7, y, X[:, 2])
    return labels[X], labels[y]


def learned(X, y, steps=20, **given):
    model = HedgeAggregator(
        **{
            "epsilon": 3.0,
            "delta": 1e-6,
            "horizon": steps,
            "rows_per_step": X.shape[0] // steps,
            "random_state": 0,
            **given,
        }
    )
    for rows in np.array_split(np.arange(X.shape[0]), steps):
        model.partial_fit(X[rows], None if y is None else y[rows])
    return model


@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("labels", [(0, 1, 2), ("no", "perhaps", "yes")])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_the_expert_that_is_right_is_followed(play, labels, neighbors):
    X, y = said(2000, labels=labels)
    model = learned(X, y, play=play, neighbors=neighbors)
    assert model.weights_.argmax() == 2
    assert np.mean(model.predict(X) == y) > 0.7
    assert model.n_steps_ == 20


def test_text_in_objects_is_compared_as_text_in_arrays():
    X, y = said(400, labels=("a", "bb", "c"))
    plain = learned(X, y, play="weights")
    as_objects = learned(X.astype(object), y.astype(object), play="weights")
    frame = pd.DataFrame(X)
    listed = HedgeAggregator(
        3.0, 1e-6, horizon=20, rows_per_step=20, random_state=0, play="weights"
    )
    for rows in np.array_split(np.arange(400), 20):
        listed.partial_fit(frame.iloc[rows].values.tolist(), y[rows].tolist())
    assert (plain.weights_ == as_objects.weights_).all()
    assert (plain.weights_ == listed.weights_).all()


def test_tables_of_text_are_replayed():
    X, y = said(400, labels=("a", "bb", "c"))
    for table in (X, pd.DataFrame(X, columns=list("pqrs")), X.astype(object)):
        model = HedgeAggregator(
            3.0, 1e-6, horizon=20, rows_per_step=20, random_state=0
        ).fit(table, y)
        assert model.weights_.argmax() == 2
        assert set(model.predict(table)) == {"a", "bb", "c"}
        assert hasattr(model, "feature_names_in_") == hasattr(table, "iloc")


def test_numbers_are_followed_by_what_they_err():
    rng = as_generator(1)
    y = rng.uniform(40, 60, 2000)
    X = y[:, None] + rng.normal(0, (1.0, 8.0, 8.0), (2000, 3))
    for loss, most in (("absolute", 20.0), ("squared", 400.0)):
        model = learned(X, y, loss=loss, cost_range=(0.0, most))
        assert model.weights_.argmax() == 0
        assert np.mean(np.abs(model.predict(X) - y)) < 4.0


def test_costs_are_taken_as_they_are():
    costs = as_generator(2).uniform([0.0, 0.5, 0.5], [1.0, 1.5, 1.5], (1000, 3))
    for X in (costs, pd.DataFrame(costs, columns=list("abc"))):
        take = X.iloc if hasattr(X, "iloc") else X
        model = HedgeAggregator(
            5.0, 1e-6, horizon=10, loss="cost", cost_range=(0, 1.5), random_state=0
        )
        for rows in np.array_split(np.arange(1000), 10):
            model.partial_fit(take[rows])
        assert model.weights_.argmax() == 0
    assert HedgeAggregator(loss="cost", horizon=50).fit(costs).n_steps_ == 50


def test_a_vote_counts_weights_and_a_mean_weighs_numbers():
    model = learned(*said(200), play="weights")
    model.weights_ = np.array([0.3, 0.25, 0.25, 0.2])
    X = np.array([["a", "b", "b", "a"], ["a", "b", "c", "c"], ["x", "b", "b", "y"]])
    assert model.predict(X).tolist() == ["a", "c", "b"]
    mixed = np.array([[None, 1.0, float("nan"), None]], dtype=object)
    assert model.predict(mixed).tolist() == [1.0]
    model.set_params(loss="absolute")
    assert model.predict(np.array([[1.0, 2.0, 3.0, 4.0]])) == pytest.approx([2.35])


def test_a_drawn_expert_alone_is_asked():
    X, y = said(400)
    model = learned(X, y, play="sample", loss="absolute", cost_range=(0, 2))
    assert isinstance(model.expert_, int)
    assert model.weights_[model.expert_] == 1.0
    assert (model.predict(X) == X[:, model.expert_]).all()
    assert model.play_ == "sample"
    assert learned(X, y, play="weights").expert_ is None


@pytest.mark.parametrize("loss", ["zero_one", "absolute", "squared", "cost"])
@pytest.mark.parametrize("play", ["sample", "weights"])
def test_rows_that_cannot_be_used_raise_nothing_and_tell_nothing(loss, play):
    X, y = said(40)
    X = X.astype(float)
    bad = X.copy()
    bad[3], bad[5, 1] = np.nan, np.inf
    bad[7] = 1e308
    truth = y.astype(float)
    truth[11], truth[12] = np.nan, -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = learned(bad, truth, steps=2, loss=loss, play=play)
    assert np.isfinite(model.weights_).all()


def test_one_strange_label_does_not_change_how_others_are_read():
    X, y = said(60)

    def costs(last):
        model = HedgeAggregator(play="sample", horizon=1, rows_per_step=60)
        model.partial_fit(X.tolist(), [*y[:-1].tolist(), last])
        return model._private_stream._private_state._private_costs / 2**20

    for strange in ("text", None, [1], {"a": 1}, pd.NA, float("nan"), 10**400):
        assert np.abs(costs(strange) - costs(0)).max() <= 2.0
    assert (costs(None) == costs(pd.NA)).all()


def costs_of(X, y, **given):
    """Return what each expert pays for each row of a later step."""
    model = HedgeAggregator(1.0, 1e-6, horizon=3, **given)
    model.partial_fit(np.ones((1, np.shape(X)[1])), [1])
    y = y if hasattr(y, "dtype") else np.array(y, dtype=object)
    return model._private_stream.planned.reader.read(X, y, first=False)[0]


def test_stray_entries_of_a_sparse_table_are_refused():
    X, y = said(20)
    table = sparse.csr_matrix(X.astype(float))
    table.indices[3] = 10**7
    for loss in ("zero_one", "cost"):
        model = HedgeAggregator(1.0, 1e-6, horizon=3, loss=loss).partial_fit(X, y)
        for ask in (model.partial_fit, model.fit, lambda X, _, m=model: m.predict(X)):
            with pytest.raises(ValueError, match="build the sparse matrix anew"):
                ask(table, y)
        assert model.n_steps_ == 1


LARGE = 2**53 + 1  # not a float


@pytest.mark.parametrize("kind", ["frame", "integers and floats", "signs"])
def test_a_text_in_one_row_changes_no_other_row_of_long_integers(kind):
    says, truth = np.array([LARGE, LARGE - 1, LARGE]), np.array([LARGE] * 3)
    X = np.column_stack([says, truth])
    if kind == "signs":
        truth = truth.astype(np.uint64)
    if kind == "integers and floats":
        truth = truth.astype(np.float64)
    if kind == "frame":
        X = pd.DataFrame({"a": says, "b": [0.5] * 3})
    odd = X.astype(object)
    take = odd.iloc if kind == "frame" else odd
    take[2, 1] = "text"
    plain, mixed = costs_of(X, truth), costs_of(odd, truth)
    np.testing.assert_array_equal(plain[:2], mixed[:2])
    # labels that a column of floats could not tell apart are none
    assert (plain[:2] == 0.0).all()


@pytest.mark.parametrize("loss", ["absolute", "squared", "cost", "zero_one"])
def test_a_text_in_a_list_costs_its_row_or_its_expert_alone(loss):
    X, y = said(20)
    truth = None if loss == "cost" else y.tolist()
    listed = X.astype(float).tolist()
    listed[3][1] = "text"
    found, nothing = (
        HedgeAggregator(
            1.0, 1e-6, horizon=3, loss=loss, play="weights", random_state=0
        ).partial_fit(X, y)
        for _ in range(2)
    )
    empty = X.astype(float)
    empty[3, 1] = np.nan
    found.partial_fit(listed, truth)
    nothing.partial_fit(empty, None if truth is None else y)
    assert (found.weights_ == nothing.weights_).all()


@pytest.mark.parametrize("play", ["sample", "weights"])
def test_empty_steps_are_steps(play):
    X, y = said(30)
    model = learned(X, y, steps=4, play=play, horizon=6)
    model.partial_fit(X[:0], y[:0])
    assert model.n_steps_ == 5


def test_sparse_tables_are_taken():
    X, y = said(200)
    dense = learned(X.astype(float), y)
    assert (
        learned(sparse.csr_matrix(X.astype(float)), y).weights_ == dense.weights_
    ).all()


def test_one_charge_covers_the_stream_and_the_horizon_ends_it():
    X, y = said(40)
    ledger = Ledger(Budget(1.0, 1e-5))
    model = HedgeAggregator(1.0, 1e-6, horizon=2, rows_per_step=20)
    for rows in (slice(0, 20), slice(20, 40)):
        model.partial_fit(X[rows], y[rows], ledger=ledger)
    assert len(ledger.report().entries) == 1
    before = model.weights_.copy()
    with pytest.raises(ValueError, match="horizon=2"):
        model.partial_fit(X, y)
    assert (model.weights_ == before).all()
    with pytest.raises(BudgetExceeded):
        HedgeAggregator(1.0, 1e-6, horizon=2).partial_fit(X, y, ledger=ledger)


def test_bad_parameters_are_rejected_before_the_charge():
    X, y = said(20)
    for given, word in [
        ({"loss": "hinge"}, "loss"),
        ({"cost_range": (1, 0)}, "cost_range"),
        ({"play": "dice"}, "play"),
        ({"hold": 0}, "hold"),
        ({"horizon": 0}, "horizon"),
        ({"delta": 0.0, "play": "weights"}, "delta"),
        ({"neighbors": "add_or_remove_one", "delta": None}, "delta"),
        ({"epsilon": -1.0}, "epsilon"),
    ]:
        ledger = Ledger(Budget(10.0, 1e-2))
        model = HedgeAggregator(**{"delta": 1e-6, "horizon": 5, **given})
        with pytest.raises((ValueError, PlanError), match=word):
            model.partial_fit(X, y, ledger=ledger)
        assert ledger.report().entries == ()
        assert not hasattr(model, "weights_")
    with pytest.raises(ValueError, match="requires y"):
        HedgeAggregator().partial_fit(X)


@pytest.mark.parametrize("given", [{"epsilon": 0.01}, {"epsilon": 1000.0}])
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("play", PLAYS)
def test_extreme_budgets_and_short_streams_run(given, steps, play):
    X, y = said(200)
    model = learned(X, y, steps=steps, play=play, **given)
    assert model.weights_.sum() == pytest.approx(1.0)


def test_one_expert_is_always_followed():
    X, y = said(40)
    for play in PLAYS:
        assert learned(X[:, :1], y, play=play).weights_.tolist() == [1.0]


def test_delta_is_small_by_default_for_short_streams():
    assert HedgeAggregator(horizon=1).plan(3).budget.delta == 1e-6


def test_copies_predict_and_cannot_go_on():
    X, y = said(40)
    model = learned(X, y, steps=2, horizon=4)
    for copy in (deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (copy.predict(X) == model.predict(X)).all()
        with pytest.raises(ValueError, match="cannot continue"):
            copy.partial_fit(X, y)


@pytest.mark.parametrize("play", ["sample", "weights"])
def test_a_durable_stream_goes_on_as_if_nothing_had_happened(play, tmp_path):
    X, y = said(80)

    def fresh():
        return HedgeAggregator(
            3.0, 1e-6, horizon=4, rows_per_step=20, play=play, random_state=0
        )

    whole = fresh()
    for rows in np.split(np.arange(80), 4):
        whole.partial_fit(X[rows], y[rows])
        with DurableStream(fresh(), tmp_path / "stream") as stream:
            stream.partial_fit(X[rows], y[rows])
            assert (stream.model.weights_ == whole.weights_).all()
            assert stream.model.expert_ == whole.expert_


def test_costs_without_a_truth_go_to_a_durable_stream(tmp_path):
    with DurableStream(HedgeAggregator(loss="cost"), tmp_path / "stream") as stream:
        stream.partial_fit(np.ones((3, 2)), None)
        assert stream.n_steps == 1


def choices(epsilon, seed, n_runs=30, T=4, rows=1000):
    """Return how often each of three experts is chosen at last, and a report."""
    rng, chosen = as_generator(seed), np.zeros(3)
    for run in range(n_runs):
        truth = rng.integers(0, 2, T * rows)
        right = rng.random((T * rows, 3)) < (0.44, 0.65, 0.61)
        said = np.where(right, truth[:, None], 1 - truth[:, None])
        model = HedgeAggregator(
            epsilon, 1e-6, horizon=T, rows_per_step=rows, random_state=run
        )
        for step in np.split(np.arange(T * rows), T):
            model.partial_fit(said[step], truth[step])
        chosen += model.weights_
    return chosen / n_runs, model.privacy_


@pytest.mark.statistical
def test_few_steps_of_many_rows_find_the_best(seed):
    words = "more budget would not help: the temperature is that of learning"
    for epsilon in (1.0, 10.0):
        chosen, report = choices(epsilon, seed)
        assert chosen[1] > 0.8
        assert chosen[0] < 0.01
        assert words in str(report)
    # with hardly any budget it is a matter of luck
    chosen, report = choices(0.001, seed)
    assert chosen[0] > 0.05
    assert words not in str(report)
