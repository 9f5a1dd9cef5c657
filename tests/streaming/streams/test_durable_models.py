"""Every estimator on streams goes on after a restart, to the last bit."""

import os

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.convex import L2Ball
from tacit.linear_model import LogisticRegression, Ridge
from tacit.streaming import (
    DurableStream,
    HedgeAggregator,
    IncrementalERM,
    IncrementalLinearRegression,
    OnlineLinearRegression,
    OnlineLogisticRegression,
)
from tacit.streaming.online._logistic import methods

STEPS = 5
TERMS = {"horizon": 6, "rows_per_step": 40, "random_state": 3}


def classifier(**parameters):
    return OnlineLogisticRegression(1.0, 1e-5, **parameters, **TERMS, x_norm=1.0)


def regressor(make, **parameters):
    return make(1.0, 1e-5, y_range=(-1.0, 1.0), **parameters, **TERMS, x_norm=1.0)


MAKERS = {
    "three labels": lambda: classifier(classes=["a", "b", "c"]),
    **{
        f"labels, {method}": lambda m=method: classifier(classes=["a", "b"], method=m)
        for method in methods()
    },
    **{
        f"numbers, {method}": lambda m=method: regressor(
            OnlineLinearRegression, method=m
        )
        for method in methods()
    },
    **{
        f"incremental, {method}": lambda m=method: regressor(
            IncrementalLinearRegression, method=m
        )
        for method in ("moments", "projection")
    },
    "incremental, gradient": lambda: regressor(
        IncrementalLinearRegression, method="gradient", constraint=L2Ball(1.0)
    ),
    **{
        f"incremental, {sums}": lambda s=sums: regressor(
            IncrementalLinearRegression, sums=s
        )
        for sums in ("blt", "tree", "honaker", "square_root")
    },
    "refits": lambda: IncrementalERM(
        LogisticRegression(classes=["a", "b"], x_norm=1.0), 1.0, 1e-5, **TERMS
    ),
    "refits of numbers": lambda: IncrementalERM(
        Ridge(y_range=(-1.0, 1.0), x_norm=1.0), 1.0, 1e-5, **TERMS
    ),
    "experts": lambda: HedgeAggregator(1.0, 1e-5, **TERMS),
}


def steps_for(name, seed):
    rng = as_generator(seed)
    X = rng.uniform(-0.5, 0.5, (STEPS, 40, 3))
    if name == "experts":
        truth = rng.integers(0, 2, (STEPS, 40))
        return list(zip((X > 0).astype(float), truth, strict=True))
    score = X[..., 0] - X[..., 1]
    if "label" in name or name == "refits":
        labels = np.array(["a", "b", "c" if "three" in name else "b"])
        return list(
            zip(X, labels[(score > 0).astype(int) + (score > 0.4)], strict=True)
        )
    return list(zip(X, score, strict=True))


def shown(model):
    """Return every public attribute that a step sets, as bytes or as it is."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and name != "estimator_":
            array = isinstance(value, np.ndarray)
            found[name] = (value.dtype, value.tobytes()) if array else value
    found.pop("privacy_")  # the label of the charge has an identity
    return found, model.n_steps_


@pytest.mark.parametrize("name", MAKERS)
def test_a_restart_before_each_step_changes_no_bit(tmp_path, seed, name, monkeypatch):
    rows = steps_for(name, seed)
    plain, report = MAKERS[name](), None
    for t, (X, y) in enumerate(rows, 1):
        plain.partial_fit(X, y)
        model = MAKERS[name]()
        with DurableStream(model, tmp_path / "s") as stream:
            if report is not None:
                assert model.privacy_ == report
            assert stream.n_steps == t - 1
            with monkeypatch.context() as patch:  # and a try that fails on the way
                patch.setattr(os, "replace", _full)
                with pytest.raises(OSError, match="full"):
                    stream.partial_fit(X, y)
            stream.partial_fit(X, y)
            assert shown(model) == shown(plain), t
            report = model.privacy_
    assert plain.n_steps_ == STEPS


def _full(*_):
    raise OSError("full")
