"""Of a stream the last release is written, and nothing by which it could go on."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from tests.persistence.subjects import rows, stream_models, streamed, table, targets
from tests.persistence.test_hostile import forge, put, rejected
from tests.persistence.test_models import assert_same_model

from tacit.linear_model import ElasticNet, LogisticRegression
from tacit.persistence import digest, load_model, save_model
from tacit.persistence._arrays import packed
from tacit.streaming import IncrementalERM

STREAMS = stream_models()


@pytest.fixture(params=STREAMS)
def model(request):
    return STREAMS[request.param]


def test_a_released_model_comes_back_to_the_bit(model, tmp_path):
    again = load_model(save_model(model, tmp_path / "model"))
    assert_same_model(model, again)
    assert again.n_steps_ == model.n_steps_
    X = table(model, rows(1) * 5)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            first, second = (getattr(m, method)(X) for m in (model, again))
            assert first.dtype == second.dtype
            assert_array_equal(first, second)


def test_a_model_that_was_read_predicts_and_cannot_go_on(model, tmp_path):
    again = load_model(save_model(model, tmp_path / "model"))
    X = rows()
    y = targets(again, X, getattr(again, "classes_", None))
    with pytest.raises(ValueError, match="has its last model and cannot continue"):
        again.partial_fit(table(again, X), y)
    # a new stream with its parameters is another matter
    fresh = clone(again)
    if getattr(fresh, "classes", 0) is None:
        fresh.set_params(classes=again.classes_)
    assert fresh.partial_fit(table(again, X), y).n_steps_ == 1


def test_a_model_that_was_read_is_written_the_same_again(model, tmp_path):
    first = save_model(model, tmp_path / "first")
    assert digest(first) == digest(save_model(load_model(first), tmp_path / "second"))


def test_neither_state_nor_key_nor_seed_is_written(tmp_path):
    seed = 123454321
    subject = IncrementalERM(
        LogisticRegression(classes=[0, 1], random_state=seed + 1, x_norm=1.0),
        horizon=3,
        update_every=2,
        rows_per_step=20,
        random_state=seed,
    )
    streamed(subject, [0, 1])
    private = subject._private_stream
    (block,) = private._private_state._private_X
    secrets = [
        str(seed).encode(),
        str(seed + 1).encode(),
        private._private_key,
        private._private_key.hex().encode(),
        private._private_digest,
        block[7].tobytes(),
        repr(float(block[7, 0])).encode(),
    ]
    folder = save_model(subject, tmp_path / "model")
    written = b"".join(path.read_bytes() for path in folder.iterdir())
    assert not [secret for secret in secrets if secret in written]
    # what is released is there, by the same search
    assert subject.coef_.tobytes() in written
    assert load_model(folder).privacy_.seeded


def test_an_estimator_is_told_from_a_penalty_of_its_name(tmp_path):
    subject = STREAMS["refitted net"]
    folder = save_model(subject, tmp_path / "model")
    told = json.loads((folder / "model.json").read_text("utf-8"))["parameters"]
    assert told["estimator"]["type"] == "estimator"
    assert told["estimator"]["of"] == "ElasticNet"
    assert isinstance(load_model(folder).estimator, ElasticNet)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("online linear", put("fitted", "steps", value=4), "'steps' must be"),
        ("online linear", put("fitted", "steps", value=True), "'steps' must be"),
        ("online linear", put("parameters", "horizon", value=0), "horizon"),
        ("online linear", put("parameters", "y_range", value=None), "y_range"),
        ("online logistic", put("fitted", "loss", value={"type": "Squared"}), "'loss'"),
        (
            "online softmax",
            put("fitted", "loss", value={"type": "Logistic", "cap": None}),
            "loss",
        ),
        (
            "moments of a stream",
            put("fitted", "risk", "expected_excess_risk", value=-1.0),
            "'risk'",
        ),
        (
            "moments of a stream",
            put("fitted", "risk", "residual_sum", value="much"),
            "'risk'",
        ),
        ("refitted", put("fitted", "last_refit", value=3), "'last_refit'"),
        ("refitted", put("fitted", "expected_rows", value=0), "'expected_rows'"),
        ("refitted", put("fitted", "model", "extra", value=1), "'model' has 'extra'"),
        (
            "refitted",
            put("parameters", "estimator", "of", value="Mine"),
            "a type that this version does not know",
        ),
        (
            "refitted",
            put("parameters", "estimator", "of", value=["Lasso"]),
            "a type that this version does not know",
        ),
        (
            "refitted",
            put("parameters", "estimator", "parameters", "classes", value=None),
            "classes of the estimator must be given",
        ),
        ("refitted", put("parameters", "estimator", value=3), "estimator must be"),
        ("drawn expert", put("fitted", "expert", value=7), "'expert'"),
        ("drawn expert", put("fitted", "play", value="all"), "'play'"),
    ],
)
def test_what_no_stream_can_have_released_is_refused(name, change, words, tmp_path):
    folder = save_model(STREAMS[name], tmp_path / "model")
    forge(folder, change)
    rejected(folder, words)


@pytest.mark.parametrize("weights", [[-1.0, 1.0, 1.0], [0.5, 0.5]])
def test_weights_of_no_experts_are_refused(weights, tmp_path):
    folder = save_model(STREAMS["weighted experts"], tmp_path / "model")
    change = put("arrays", "weights", "shape", value=[len(weights)])
    forge(folder, change, weights_npz=packed({"weights": np.array(weights)}))
    rejected(folder, "does not fit the experts")
