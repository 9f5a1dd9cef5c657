"""The life of a stream: one charge, one clock, noise that belongs to the rows."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from tests.streaming.streams.tiny import Tiny

from tacit._random import as_generator
from tacit.exceptions import BudgetExceeded
from tacit.linear_model import LogisticRegression
from tacit.privacy import Budget, Ledger
from tacit.streaming import (
    HedgeAggregator,
    IncrementalERM,
    IncrementalLinearRegression,
    OnlineLinearRegression,
    OnlineLogisticRegression,
)
from tacit.streaming._model import StreamModel, StreamTerms

STEPS, ROWS, WIDTH = 4, 5, 3


def rows(seed, n_rows=ROWS):
    rng = as_generator(seed)
    X = rng.uniform(-0.5, 0.5, (n_rows, WIDTH))
    return X, rng.uniform(0.0, 1.0, n_rows)


def linear(**parameters):
    parameters = {"horizon": STEPS, "rows_per_step": ROWS, **parameters}
    return OnlineLinearRegression(
        1.0, 1e-6, y_range=(0.0, 1.0), **parameters, x_norm=1.0
    )


def state_of(model):
    return {name: repr(part) for name, part in vars(model).items()}


def test_the_first_step_charges_the_whole_horizon_and_later_ones_nothing(seed):
    ledger = Ledger(Budget(2.0, 1e-5))
    model = linear()
    for step in range(STEPS):
        model.partial_fit(*rows(step), ledger=ledger)
        assert len(ledger.report().entries) == 1
    (entry,) = model.privacy_.entries
    assert entry.event == model.plan(WIDTH).event
    assert model.privacy_.spent <= 1.0
    assert any("4 steps" in words for words in model.privacy_.assumptions)
    assert model.n_steps_ == STEPS


def test_a_step_beyond_the_horizon_is_refused_and_changes_nothing():
    ledger = Ledger(Budget(2.0, 1e-5))
    model = linear()
    for step in range(STEPS):
        model.partial_fit(*rows(step), ledger=ledger)
    before = state_of(model)
    with pytest.raises(ValueError, match="horizon=4 steps, got step 5"):
        model.partial_fit(*rows(9))
    assert state_of(model) == before
    assert len(ledger.report().entries) == 1


@pytest.mark.parametrize("horizon", [1, 2])
def test_short_horizons_are_streams_as_well(horizon):
    model = linear(horizon=horizon)
    for step in range(horizon):
        model.partial_fit(*rows(step))
    assert np.isfinite(model.coef_).all()


def test_what_the_ledger_cannot_pay_is_refused_before_any_row_counts():
    ledger = Ledger(Budget(0.5, 1e-5))
    model = linear()
    with pytest.raises(BudgetExceeded):
        model.partial_fit(*rows(0), ledger=ledger)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "n_features_in_")
    assert ledger.report().entries == ()


def test_another_ledger_in_mid_stream_is_refused():
    model, ledger = linear(), Ledger(Budget(2.0, 1e-5))
    model.partial_fit(*rows(0), ledger=ledger)
    model.partial_fit(*rows(1), ledger=ledger)
    before = state_of(model)
    with pytest.raises(ValueError, match="ledger must be the one"):
        model.partial_fit(*rows(2), ledger=Ledger(Budget(2.0, 1e-5)))
    assert state_of(model) == before


class Failing(Tiny):
    """Fails in the middle of a step."""

    fails = False

    def _publish(self, planned, weights):
        super()._publish(planned, weights)
        if self.fails:
            raise KeyboardInterrupt


def test_a_step_that_fails_leaves_the_stream_where_it_was():
    model, steady = Failing(random_state=1), Tiny(random_state=1)
    model.partial_fit(*rows(0))
    before = state_of(model)
    model.fails = True
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*rows(1))
    del model.fails
    assert state_of(model) == before
    # the same rows, tried again, release the same numbers
    for step in (0, 1):
        steady.partial_fit(*rows(step))
    np.testing.assert_array_equal(model.partial_fit(*rows(1)).coef_, steady.coef_)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_predict_and_cannot_go_on(copied):
    model = linear().partial_fit(*rows(0))
    twin = copied(model)
    X, _ = rows(1)
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert twin.n_steps_ == 1
    with pytest.raises(ValueError, match="cannot continue"):
        twin.partial_fit(*rows(1))
    assert not [name for name in vars(twin) if "private" in name]
    model.partial_fit(*rows(1))


def test_a_pickle_holds_neither_sums_nor_the_key():
    model = linear(random_state=7).partial_fit(*rows(0))
    progress = model._private_stream
    content = pickle.dumps(model)
    assert progress._private_key not in content
    assert progress._private_digest not in content
    assert b"_private_sums" not in content
    # the control: they are where a plain pickle would put them
    whole = pickle.dumps(progress._private_key)
    assert progress._private_key in whole


def test_a_clone_is_a_new_stream_with_a_charge_of_its_own():
    ledger = Ledger(Budget(10.0, 1e-5))
    model = linear().partial_fit(*rows(0), ledger=ledger)
    clone(model).partial_fit(*rows(0), ledger=ledger)
    assert len(ledger.report().entries) == 2


def visited(seeds, random_state=3):
    model = linear(random_state=random_state)
    return [model.partial_fit(*rows(seed)).coef_ for seed in seeds]


def test_the_same_rows_meet_the_same_noise():
    np.testing.assert_array_equal(visited([1, 2, 3]), visited([1, 2, 3]))
    assert not np.array_equal(visited([1, 2, 3]), visited([1, 2, 3], random_state=4))


def noises(seeds):
    """Return what noise did to the weights of each step, if it moves nothing else."""
    model = Tiny(random_state=3, fit_intercept=False)
    total, found = np.zeros(WIDTH), []
    for seed in seeds:
        X, y = rows(seed)
        model.partial_fit(X, y)
        total = total + X.T @ y
        found.append(model.coef_ - total)
    return np.array(found)


def test_other_rows_meet_other_noise_also_after_equal_later_rows():
    here, there = noises([1, 2, 3, 4]), noises([5, 2, 3, 4])
    # a difference of two runs is free of noise at no step
    assert (np.abs(here - there) > 1e-6).all()
    # the control: with the same first rows it would be
    np.testing.assert_array_equal(here, noises([1, 2, 3, 4]))


def test_rows_cut_differently_into_steps_meet_other_noise():
    X, y = rows(1, 6)

    def first(cut):
        model = Tiny(random_state=3, fit_intercept=False)
        model.partial_fit(X[:cut], y[:cut])
        return model.coef_ - X[:cut].T @ y[:cut]

    # a sum of no rows is as private as any other
    assert (np.abs(first(0)) > 1e-6).all()
    assert (np.abs(first(3) - first(6)) > 1e-6).all()


def test_rows_of_another_shape_meet_other_noise_even_with_the_same_bytes():
    def noise(n_rows, n_features):
        model = Tiny(random_state=3, fit_intercept=False)
        model.partial_fit(np.zeros((n_rows, n_features)), np.zeros(n_rows))
        return model.coef_[0]

    # six zeros each, features and targets together
    assert noise(2, 2) != noise(3, 1)
    assert noise(2, 2) == noise(2, 2)


def test_no_seed_means_fresh_noise_for_every_stream():
    assert not np.array_equal(visited([1], None), visited([1], None))


def test_fit_is_a_replay_in_order_and_can_be_repeated(seed):
    X, y = rows(1, STEPS * ROWS)
    model = linear(random_state=5)
    for start in range(0, len(X), ROWS):
        model.partial_fit(X[start : start + ROWS], y[start : start + ROWS])
    again = linear(random_state=5).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.fit(X, y).coef_, model.coef_)
    # after a fit the stream may be full; a copy may be fitted anew
    assert copy.deepcopy(again).fit(X, y).n_steps_ == STEPS
    with pytest.raises(ValueError, match="horizon"):
        again.partial_fit(*rows(2))


def test_fit_has_one_row_a_step_where_there_are_few():
    assert linear(horizon=50).fit(*rows(1, 7)).n_steps_ == 7


def test_fit_refuses_neighbors_that_move_rows_to_other_steps():
    model = linear(neighbors="add_or_remove_one")
    with pytest.raises(ValueError, match="replace_one"):
        model.fit(*rows(1))
    assert not hasattr(model, "_n_steps")
    assert model.partial_fit(*rows(1)).n_steps_ == 1


def test_other_columns_than_at_the_first_step_are_refused():
    model = linear().partial_fit(*rows(0))
    X, y = rows(1)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y)
    assert model.n_steps_ == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("x_norm", 100.0), ("y_range", (0.0, 9.0)), ("fit_intercept", False)],
)
def test_bounds_changed_in_mid_stream_are_refused(name, value):
    model = linear().partial_fit(*rows(0))
    model.set_params(**{name: value})
    with pytest.raises(ValueError, match=f"{name} was changed"):
        model.partial_fit(*rows(1))
    assert model.n_steps_ == 1
    assert model.fit(*rows(1)).n_steps_ == STEPS


def test_the_row_of_a_person_with_k_rows_is_hidden_k_times_as_well():
    one, three = (linear(rows_per_person=k).plan(WIDTH).learner for k in (1, 3))
    assert three.mechanism.sensitivity == 3 * one.mechanism.sensitivity
    assert three.event == one.event


def test_plan_reads_no_row_and_says_what_will_be_spent():
    planned = linear().plan(WIDTH)
    assert planned.budget == Budget(1.0, 1e-6)
    assert planned.terms == StreamTerms(STEPS, ROWS)
    assert planned.event.curve(planned.budget.neighbors).epsilon(1e-6) <= 1.0
    model = linear().partial_fit(*rows(0))
    assert model._private_stream.planned == planned


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2**27}, "horizon"),
        ({"rows_per_step": 0}, "rows_per_step"),
        ({"rows_per_person": 0}, "rows_per_person"),
        ({"x_norm": -1.0}, "x_norm"),
        ({"y_range": None}, "y_range"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"delta": 0.0}, "delta"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"method": "magic"}, "method"),
        ({"noise": "loud"}, "noise"),
        ({"neighbors": "friends"}, "neighbors"),
    ],
)
def test_bad_parameters_are_rejected_before_the_charge(parameters, words):
    ledger = Ledger(Budget(5.0, 1e-5))
    model = linear().set_params(**parameters)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(*rows(0), ledger=ledger)
    assert ledger.report().entries == ()
    assert not hasattr(model, "privacy_")


def test_delta_must_be_given_where_the_number_of_rows_is_private():
    model = OnlineLogisticRegression(
        classes=(0, 1), neighbors="add_or_remove_one", x_norm=1.0
    )
    with pytest.raises(ValueError, match="delta must be given"):
        model.plan(3)


EVERY_MODEL = [
    OnlineLinearRegression(y_range=(0.0, 1.0), x_norm=1.0),
    OnlineLogisticRegression(classes=(0, 1), x_norm=1.0),
    HedgeAggregator(),
    IncrementalLinearRegression(y_range=(0.0, 1.0), x_norm=1.0),
    IncrementalERM(LogisticRegression(classes=(0, 1), x_norm=1.0)),
]


@pytest.mark.parametrize("model", EVERY_MODEL, ids=lambda m: type(m).__name__)
def test_the_default_delta_is_one_over_squared_rows_and_small_for_few(model):
    def delta(horizon, rows_per_step):
        given = {"horizon": horizon, "rows_per_step": rows_per_step}
        return clone(model).set_params(**given).plan(WIDTH).budget.delta

    assert delta(1, 1) == delta(10, 1) == delta(2, 500) == 1e-6
    assert delta(2, 1000) == 1 / 2000**2


def test_no_released_attribute_but_the_stream_is_private():
    model = linear().partial_fit(*rows(0))
    private = [name for name in vars(model) if name.startswith("_private")]
    assert private == ["_private_stream"]
    words = repr(model._private_stream)
    assert "_private" not in words
    assert str(model._private_stream._private_key) not in words


def test_a_learner_is_told_from_another_by_its_words():
    planned = linear().plan(WIDTH)
    other = replace(planned.learner, recent=0.5)
    assert repr(planned.learner) != repr(other)
    assert "array" not in repr(planned)
    assert " at 0x" not in repr(planned)
    assert isinstance(linear(), StreamModel)
