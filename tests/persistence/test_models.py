"""What is read is what was written, to the bit."""

import json
from copy import deepcopy
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.persistence.subjects import (
    NAMES,
    additive_models,
    cells,
    fitted,
    linear_models,
    rows,
    steps,
    stream_models,
    table,
    targets,
)

from tacit._random import Seed, as_generator
from tacit.additive import AdditiveRegressor
from tacit.additive._bins import Bins
from tacit.additive._shapes import Edit, PairShape, Shape
from tacit.convex import L1
from tacit.evaluation import noise_intervals
from tacit.feature_selection._base import PrivateSelector
from tacit.linear_model import LogisticRegression, Ridge, SelectionPath
from tacit.linear_model._base import PrivateLinearModel
from tacit.linear_model._saved import CoefficientNoise
from tacit.persistence import (
    ModelFileError,
    SavedModel,
    digest,
    load_model,
    read,
    save_model,
    write,
)
from tacit.persistence._kinds import saved_kinds
from tacit.solvers import SampleAndAggregate

MODELS, STEPS, STREAMS = linear_models(), steps(), stream_models()
ADDITIVE = additive_models()


# Parts of fitted models that are not compared by their own equality
ARRAYS_INSIDE = (CoefficientNoise, SelectionPath, Bins, Shape, PairShape)


def same(first, second):
    """Whether two values are equal, arrays to the bit and with their types."""
    if isinstance(first, np.ndarray):
        return (
            isinstance(second, np.ndarray)
            and first.dtype == second.dtype
            and first.shape == second.shape
            and first.tolist() == second.tolist()
        )
    if isinstance(first, ARRAYS_INSIDE):
        parts = [
            (getattr(first, f.name), getattr(second, f.name)) for f in fields(first)
        ]
        return type(first) is type(second) and all(same(*pair) for pair in parts)
    if type(first) is type(second) and isinstance(first, list | Edit):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, PrivateSelector):
        one, other = (part.get_params(deep=False) for part in (first, second))
        one.pop("random_state"), other.pop("random_state")
        return type(first) is type(second) and all(same(one[k], other[k]) for k in one)
    if isinstance(first, PrivateLinearModel):
        one, other = (dict(vars(part)) for part in (first, second))
        one.pop("random_state"), other.pop("random_state")
        return (type(first), set(one)) == (type(second), set(other)) and all(
            same(one[k], other[k]) for k in one
        )
    return type(first) is type(second) and first == second


# How a fit came about is not saved, as its plan is no plain data, nor what a stream
# goes on from
NOT_SAVED = {"_facts", "_private_stream", "_first_parameters"}


def assert_same_model(model, again, *, but=()):
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys() - NOT_SAVED
    for name, value in vars(model).items():
        if name in NOT_SAVED:
            continue
        if name in model.get_params() and isinstance(value, np.generic):
            value = value.item()
        if name not in but:
            assert same(value, vars(again)[name]), name


def test_every_kind_is_here():
    subjects = (MODELS, ADDITIVE, STEPS, STREAMS)
    every = [model for kind in subjects for model in kind.values()]
    assert {type(model).__name__ for model in every} == set(saved_kinds())


@pytest.mark.parametrize("name", MODELS)
def test_a_linear_model_comes_back_to_the_bit(name, tmp_path):
    model = MODELS[name]
    again = load_model(save_model(model, tmp_path / "model"))
    assert_same_model(model, again)
    X = table(model, rows(1) * 5)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            first, second = (getattr(m, method)(X) for m in (model, again))
            assert first.dtype == second.dtype
            assert_array_equal(first, second)


def rows_for(model):
    """Return rows that an additive model was fitted to, as it was given them."""
    if hasattr(model, "feature_names_in_"):
        return cells()
    return rows(1) if model.categories is None else cells().to_numpy(dtype=object)


@pytest.mark.parametrize("name", ADDITIVE)
def test_an_additive_model_comes_back_to_the_bit(name, tmp_path):
    model = ADDITIVE[name]
    again = load_model(save_model(model, tmp_path / "model"))
    assert_same_model(model, again)
    X = rows_for(model)
    for method in ("predict", "predict_proba", "decision_function", "contributions"):
        if hasattr(model, method):
            first, second = (getattr(m, method)(X) for m in (model, again))
            assert first.dtype == second.dtype
            assert_array_equal(first, second)
    assert digest(tmp_path / "model") == digest(save_model(again, tmp_path / "again"))


@pytest.mark.parametrize("name", ADDITIVE)
def test_an_additive_model_that_was_read_can_be_fitted_again(name, tmp_path):
    model = ADDITIVE[name]
    again = load_model(save_model(model, tmp_path / "model"))
    X, y = rows_for(model), model.predict(rows_for(model))
    ours, theirs = (
        clone(m).set_params(random_state=Seed(3)).fit(X, y).predict(X)
        for m in (model, again)
    )
    assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "change",
    [{"ranges": {"age": (-3, 4)}}, {"categories": {"Größe": ["a"], "y = x": [0, 1]}}],
)
def test_columns_changed_after_the_fit_are_refused(change, tmp_path):
    model = deepcopy(ADDITIVE["additive"]).set_params(**change)
    with pytest.raises(ModelFileError, match="not those of the fit; set them back"):
        save_model(model, tmp_path / "model")


@pytest.mark.parametrize("cell", [b"a", 10**400, np.datetime64("2020")])
def test_categories_that_are_not_plain_are_refused(cell, tmp_path):
    X = cells()[["age"]]
    model = AdditiveRegressor(1.0, categories={"age": [cell]}, y_range=(0, 1))
    with pytest.raises(ModelFileError, match=r"^categories") as found:
        save_model(model.fit(X, np.zeros(len(X))), tmp_path / "model")
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", STEPS)
def test_a_step_comes_back_to_the_bit(name, tmp_path):
    step = STEPS[name]
    again = load_model(save_model(step, tmp_path / "step"))
    assert_same_model(step, again, but=("random_state",))
    X = np.array([["a", 1, True], ["?", 2, None]], dtype=object)
    X = X if name == "one hot" else table(step, rows(1) * 5)
    assert_array_equal(step.transform(X), again.transform(X))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_was_read_can_be_fitted_again(name, tmp_path):
    model = load_model(save_model(MODELS[name], tmp_path / "model"))
    X = rows()
    y = targets(model, X, getattr(model, "classes_", None))
    X = table(model, X)
    # with the same seed the same parameters give the same weights
    ours, theirs = (
        clone(m).set_params(random_state=3).fit(X, y) for m in (model, MODELS[name])
    )
    assert_array_equal(ours.coef_, theirs.coef_)


@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_a_model_is_written_the_same_again(name, tmp_path):
    first = save_model(MODELS[name], tmp_path / "first")
    second = save_model(load_model(first), tmp_path / "second")
    assert digest(first) == digest(second)
    assert len(digest(first)) == 64


def test_noise_bars_come_back(tmp_path):
    assert {name for name, model in MODELS.items() if model.noise_ is not None} >= {
        "output",
        "moments",
    }
    for name in ("output", "moments"):
        model = MODELS[name]
        again = load_model(save_model(model, tmp_path / name))
        assert_array_equal(noise_intervals(again).low, noise_intervals(model).low)


def test_schema_and_facts_come_back(tmp_path):
    model = MODELS["logistic"]
    schema = {"columns": [{"name": "Größe", "low": 0.0}], "deep": {"a": [1, None]}}
    facts = {"title": "Umfrage", "rows": 60, "score": {"value": 0.5, "ok": True}}
    saved = read(
        write(tmp_path / "m", SavedModel(model, model.privacy_, schema, facts))
    )
    assert saved.schema == schema
    assert saved.facts == facts
    assert saved.privacy == model.privacy_ == saved.estimator.privacy_


def test_a_person_can_read_the_folder(tmp_path):
    folder = save_model(MODELS["svc"], tmp_path / "model")
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.json",
        "privacy.json",
        "weights.npz",
    ]
    told = json.loads((folder / "model.json").read_text("utf-8"))
    assert told["estimator"] == "LinearSVC"
    assert told["parameters"]["penalty"] == {"type": "L1", "weight": 0.5}
    assert told["fitted"]["classes"]["values"] == ["no", "yes"]
    report = json.loads((folder / "privacy.json").read_text("utf-8"))
    assert report["promise"]["epsilon"] == 1.0
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
        assert_array_equal(arrays["coef"], MODELS["svc"].coef_)
    named = save_model(MODELS["logistic"], tmp_path / "named")
    assert NAMES[1] in (named / "model.json").read_text("utf-8")


def test_the_seed_of_a_fit_is_not_written(tmp_path):
    seed = 123454321
    model = fitted(LogisticRegression(1.0, random_state=seed, x_norm=1.0), [0, 1])
    folder = save_model(model, tmp_path / "model")
    assert all(str(seed).encode() not in path.read_bytes() for path in folder.iterdir())
    again = load_model(folder)
    assert again.random_state is None
    assert again.privacy_.seeded
    assert_same_model(model, again, but=("random_state",))


def test_a_generator_given_as_seed_is_no_hindrance(tmp_path):
    model = fitted(
        LogisticRegression(1.0, random_state=as_generator(0), x_norm=1.0), [0, 1]
    )
    assert load_model(save_model(model, tmp_path / "model")).random_state is None


class Mine(LogisticRegression):
    pass


class OwnSolver:
    def plan(self, problem, budget): ...

    def run(self, plan, rows, rng): ...


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("solver", OwnSolver()),
        ("solver", SampleAndAggregate(estimate=np.mean)),
        ("classes", {0, 1}),
        ("classes", np.array(["2020-01-01"], "M8[D]")),
        ("classes", np.zeros((2, 2))),
        ("x_norm", float("inf")),
        ("ridge", 1j),
        ("ridge", 10**100),
        ("bound_norm", "\ud800"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(parameter, value, tmp_path):
    model = fitted(LogisticRegression(1.0, x_norm=1.0), [0, 1]).set_params(
        **{parameter: value}
    )
    with pytest.raises(ModelFileError, match=f"^{parameter}"):
        save_model(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_fitted_model_of_ours_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(Ridge(x_norm=1.0), tmp_path / "model")
    with pytest.raises(ModelFileError, match="Mine cannot be saved"):
        save_model(fitted(Mine(1.0, x_norm=1.0), [0, 1]), tmp_path / "model")
    with pytest.raises(ModelFileError, match="L1 cannot be saved"):
        save_model(L1(), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_promise_changed_after_the_fit_is_refused(tmp_path):
    model = fitted(LogisticRegression(1.0, x_norm=1.0), [0, 1]).set_params(epsilon=0.1)
    with pytest.raises(ModelFileError, match="epsilon, delta and neighbors"):
        save_model(model, tmp_path / "model")


def test_a_report_of_something_else_is_refused(tmp_path):
    saved = SavedModel(MODELS["logistic"], MODELS["ridge"].privacy_)
    with pytest.raises(ModelFileError, match="privacy must be the report"):
        write(tmp_path / "model", saved)


@pytest.mark.parametrize(
    "facts", [{"a": float("nan")}, {"a": {1: 2}}, {"a": object()}, {"a": "\ud800"}, []]
)
def test_facts_that_are_not_plain_are_refused(facts, tmp_path):
    model = MODELS["logistic"]
    with pytest.raises(ModelFileError, match=r"^facts"):
        write(tmp_path / "model", SavedModel(model, model.privacy_, None, facts))
    assert list(tmp_path.iterdir()) == []
