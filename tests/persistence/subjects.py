"""Fitted models that the tests of model folders share."""

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from tests.cases import other_estimators

from tacit._random import as_generator
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.convex import L1, Box, ElasticNet, L1Ball, L2Ball
from tacit.feature_selection import BlockVoteSelector, PeelingSelector
from tacit.linear_model import ElasticNet as SparseElasticNet
from tacit.linear_model import (
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Ridge,
    SimplexRegressor,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from tacit.preprocessing import (
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PublicOneHot,
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)
from tacit.privacy import Neighbors
from tacit.solvers import AMP, AdaSSP, CoordinateDescent, NoisyGD
from tacit.streaming import (
    GradientSums,
    HedgeAggregator,
    IncrementalERM,
    IncrementalLinearRegression,
    MomentRegression,
    OnlineLinearRegression,
    OnlineLogisticRegression,
    PerturbedIterates,
    SparseRows,
)
from tacit.streaming.online._iterates import Leader

N, P = 60, 3
NAMES = ["age", "Größe", "y = x"]
Y_RANGE = (-4.0, 6.0)


def rows(seed=0):
    rng = as_generator(seed)
    return rng.normal(size=(N, P)) / 3


def targets(model, X, labels=None):
    scores = X @ [[3.0, -1.0, 0.0], [1.0, 0.0, 0.5], [-2.0, 1.0, 0.0]]
    if not is_classifier(model):
        return scores[:, 0] + 1.0
    labels = np.arange(3) if labels is None else np.asarray(labels)
    if len(labels) == 2:
        return labels[(scores[:, 0] > 0).astype(int)]
    return labels[scores.argmax(axis=1)]


def fitted(model, labels=None, *, names=False):
    X = rows()
    given = pd.DataFrame(X, columns=NAMES) if names else X
    return model.fit(given, targets(model, X, labels))


def table(model, X):
    """Return rows with names where the model was fitted on such."""
    named = hasattr(model, "feature_names_in_")
    return pd.DataFrame(X, columns=model.feature_names_in_) if named else X


def linear_models():
    """Return fitted models of all kinds, with all sorts of parameters and labels."""
    text, numbers, truth = ["no", "yes"], np.array([1, 5, 9], np.int16), [False, True]
    found = {
        "logistic": fitted(LogisticRegression(1.0, x_norm=1.0), [0, 1], names=True),
        "softmax": fitted(
            LogisticRegression(2.0, classes=range(3), x_norm=1.0), [0, 1, 2]
        ),
        "rest": fitted(
            LogisticRegression(
                np.float32(0.7),
                1e-5,
                classes=numbers,
                multi_class="one_vs_rest",
                neighbors=Neighbors.ADD_OR_REMOVE_ONE,
                x_norm=1.0,
            ),
            numbers,
        ),
        "svc": fitted(
            LinearSVC(1.0, penalty=L1(np.float64(0.5)), classes=text, x_norm=1.0), text
        ),
        "svc of three": fitted(
            LinearSVC(1.0, ridge=2, x_norm=1.0), list("abc"), names=True
        ),
        "objects": fitted(
            LogisticRegression(1.0, x_norm=1.0), np.array(text, dtype=object)
        ),
        "truth": fitted(
            LogisticRegression(1.0, solver=AMP(ridge=3.0), x_norm=1.0), truth
        ),
        "linear": fitted(
            LinearRegression(1.0, y_range=Y_RANGE, x_norm=1.0), names=True
        ),
        "ridge": fitted(
            Ridge(
                1,
                alpha=np.int64(2),
                y_range=list(Y_RANGE),
                penalty=L2Ball(9.0),
                x_norm=1.0,
            )
        ),
        "huber": fitted(
            HuberRegressor(
                1.0,
                y_range=np.array(Y_RANGE),
                solver=NoisyGD(n_steps=5),
                penalty=Box(-3.0, 3.0),
                fit_intercept=False,
                x_norm=1.0,
            )
        ),
        "pure huber": fitted(
            HuberRegressor(
                1.0, 0.0, y_range=Y_RANGE, penalty=ElasticNet(0.1, 0.2), x_norm=1.0
            )
        ),
        "output": fitted(
            LogisticRegression(1.0, solver="output_perturbation", x_norm=1.0), [0, 1, 2]
        ),
        "moments": fitted(Ridge(1.0, y_range=Y_RANGE, solver="ada_ssp", x_norm=1.0)),
        "simplex": fitted(SimplexRegressor(1.0, y_range=Y_RANGE, radius=2, x_max=1.0)),
        "lasso": fitted(
            Lasso(
                1.0,
                alpha=0.01,
                feature_bounds=dict.fromkeys(NAMES, (-1.0, 2.0)),
                y_range=Y_RANGE,
            ),
            names=True,
        ),
        "lasso in a ball": fitted(
            Lasso(
                1.0,
                feature_bounds=np.array([[-1.0, 1.0], [-2.0, 1.0], [0.0, 3.0]]),
                y_range=Y_RANGE,
                solver="frank_wolfe",
                l1_radius=3,
            ),
        ),
        "elastic net": fitted(
            SparseElasticNet(
                np.float64(2.0),
                alpha=0.01,
                feature_bounds=np.array([1.0, 2.0, 3.0]),
                y_range=Y_RANGE,
                solver=CoordinateDescent(n_passes=3),
                fit_intercept=False,
            ),
        ),
        "greedy": fitted(
            SparseElasticNet(
                1.0, feature_bounds=1.0, y_range=Y_RANGE, solver="gcd", positive=True
            )
        ),
        "selected": fitted(
            SparseLinearRegression(
                2.0,
                n_features_to_select=np.int64(2),
                feature_bounds=dict.fromkeys(NAMES, (-1.0, 2.0)),
                y_range=Y_RANGE,
            ),
            names=True,
        ),
        "selected by an object": fitted(
            SparseLinearRegression(
                2.0,
                1e-4,
                n_features_to_select=1,
                selector=PeelingSelector(
                    n_features_to_select=3,
                    method="correlation",
                    feature_bounds=np.array([[-1.0, 1.0]] * P),
                    random_state=3,
                ),
                feature_bounds=1.0,
                y_range=Y_RANGE,
                solver=AdaSSP(ridge=2.0),
            )
        ),
        "no answer": fitted(
            SparseLinearRegression(
                0.5,
                1e-6,
                n_features_to_select=2,
                selector=BlockVoteSelector(n_features_to_select=2, n_blocks=3),
                selection_share=0.5,
                feature_bounds=1,
                y_range=Y_RANGE,
                fit_intercept=False,
            )
        ),
        "all kept": fitted(
            SparseLinearRegression(
                1.0, n_features_to_select=9, feature_bounds=1.0, y_range=Y_RANGE
            )
        ),
        "sparse logistic": fitted(
            SparseLogisticRegression(
                1.0, 1e-4, feature_bounds=1, classes=text, solver="cd"
            ),
            text,
        ),
        "entries": fitted(
            LogisticRegression(1.0, penalty=L1Ball(2.0), bound_norm="linf", x_norm=1.0),
            [0, 1],
        ),
    }
    others = {repr(m): fitted(clone(m)) for m in other_estimators(found.values())}
    return {**found, **others}


def cells(n=400):
    """Return rows with a number, some of them missing, and two kinds of categories."""
    rng = as_generator(1)
    age, size, group = (
        rng.normal(size=n),
        rng.integers(3, size=n),
        rng.integers(4, size=n),
    )
    age[7] = np.nan
    sizes, groups = np.array(["a", "b", "?"]), np.array([0, 1, 2.5, None], dtype=object)
    return pd.DataFrame({"age": age, "Größe": sizes[size], "y = x": groups[group]})


def additive_models():
    """Return fitted additive models, with all sorts of columns, labels and pairs."""
    X = cells()
    label = (X["age"] > 0).to_numpy().astype(int) + (X["y = x"] == 1).to_numpy()
    named = {
        "ranges": {"age": (-3, 3)},
        "categories": {"Größe": ["a", "b"], "y = x": (0, True, 2.5)},
    }
    listed = {"ranges": [(-1, 1.0), None, None], "categories": [None, ["a"], [0, 1]]}
    text = np.array(["no", "yes"])
    return {
        "additive": AdditiveClassifier(8.0, interactions=2, **named).fit(X, label > 0),
        "additive of three": AdditiveClassifier(
            np.float32(1.5), classes=range(3), interactions=[("age", "y = x")], **named
        ).fit(X, label),
        "additive by position": AdditiveClassifier(
            1.0, 1e-5, classes=text, neighbors=Neighbors.ADD_OR_REMOVE_ONE, **listed
        ).fit(X.to_numpy(dtype=object), text[(label > 0).astype(int)]),
        "additive numbers": AdditiveRegressor(
            8.0,
            ranges=np.array([[-1, 1], [-2, 2], [0, 1]]),
            y_range=(-1, np.int64(3)),
            interactions=3,
        ).fit(rows(2), rows(2)[:, 0]),
        "additive edited": AdditiveClassifier(4.0, monotone={"age": -1}, **named)
        .fit(X, label > 0)
        .set_shape("Größe", [0.5, -0.25, 0.0, 1.0])
        .set_shape("age", np.negative)
        .set_shape("age", np.sign),
        "additive categories": AdditiveRegressor(
            0.3,
            categories={"age": ["a", 2], "Größe": ["b", -0.5, False], "y = x": [1]},
            y_range=(0, 9),
            interactions=[("y = x", "age")],
        ).fit(X, label),
    }


def steps():
    """Return fitted steps of preprocessing."""
    ranges = dict.fromkeys(NAMES, (-1, 1))
    named = pd.DataFrame(rows(), columns=NAMES)
    return {
        "scaler": PublicScaler([(-1, 1), (-2.0, 2.0), (0, 3)], missing=0).fit(rows()),
        "named scaler": PublicScaler(ranges, target=(0, 1)).fit(named),
        "one hot": PublicOneHot([["a", "b"], [1, 2], [True, False]]).fit(
            np.zeros((1, P))
        ),
        "fourier": RandomFourierFeatures(ranges, 3, random_state=3).fit(named),
        "trees": RandomPartitionTrees((-1, 1), 4, 3, missing=0, random_state=3).fit(
            rows()
        ),
        "standard": PrivateStandardScaler(1.0, ranges=ranges).fit(named),
        "squares": PrivateStandardScaler(1.0, ranges=(-1, 1), with_mean=False).fit(
            rows()
        ),
        "quantiles": PrivateQuantileBounds(1.0, 0.0, ranges=(-1, 1)).fit(rows()),
    }


def streamed(model, labels=None, *, names=False, n_steps=2):
    """Return a model on a stream after some of its steps."""
    for start in range(0, n_steps * 20, 20):
        X = rows()[start : start + 20]
        given = pd.DataFrame(X, columns=NAMES) if names else X
        model.partial_fit(given, targets(model, X, labels))
    return model


def stream_models():
    """Return released models of streams, of all kinds."""
    text, shared = ["no", "yes"], {"horizon": 3, "rows_per_step": 20}
    bounded = {"x_norm": 1.0, **shared}
    ranged = {"y_range": Y_RANGE, **bounded}
    return {
        "online logistic": streamed(
            OnlineLogisticRegression(1.0, classes=text, **bounded), text, names=True
        ),
        "online softmax": streamed(
            OnlineLogisticRegression(
                2.0, 1e-5, classes=np.arange(3), method=GradientSums("tree"), **bounded
            )
        ),
        "online leader": streamed(
            OnlineLogisticRegression(
                1.0,
                classes=text,
                method=PerturbedIterates(Leader(0.1)),
                rows_per_person=2,
                **bounded,
            ),
            text,
        ),
        "online linear": streamed(OnlineLinearRegression(1.0, **ranged)),
        "told classes": OnlineLogisticRegression(1.0, horizon=3, x_norm=1.0).fit(
            rows()[:20], np.arange(20) % 2
        ),
        "moments of a stream": streamed(
            IncrementalLinearRegression(
                1.0,
                method=MomentRegression(squares=True),
                constraint=L2Ball(4.0),
                **ranged,
            )
        ),
        "kept rows": streamed(
            IncrementalLinearRegression(
                1.0,
                1e-6,
                keep=SparseRows(2),
                fit_intercept=False,
                neighbors="add_or_remove_one",
                **ranged,
            ),
            names=True,
        ),
        "refitted": streamed(
            IncrementalERM(
                LogisticRegression(classes=text, ridge=1, random_state=7, x_norm=1.0),
                **shared,
            ),
            text,
            names=True,
        ),
        "refitted net": streamed(
            IncrementalERM(
                SparseElasticNet(
                    alpha=0.01,
                    feature_bounds=dict.fromkeys(NAMES, (-1.0, 2.0)),
                    y_range=Y_RANGE,
                    solver=CoordinateDescent(n_passes=2),
                ),
                2.0,
                1e-6,
                neighbors=Neighbors.ADD_OR_REMOVE_ONE,
                **shared,
            ),
            names=True,
        ),
        "refitted selection": streamed(
            IncrementalERM(
                SparseLinearRegression(
                    n_features_to_select=1, feature_bounds=1.0, y_range=Y_RANGE
                ),
                update_every=2,
                **shared,
            )
        ),
        "not yet fitted": streamed(
            IncrementalERM(
                SimplexRegressor(y_range=Y_RANGE, radius=2, x_max=1.0),
                update_every=3,
                **shared,
            )
        ),
        "drawn expert": HedgeAggregator(4.0, 0.0, horizon=4, play="sample", hold=1).fit(
            rows()[:20] > 0, np.arange(20) % 2
        ),
        "weighted experts": HedgeAggregator(
            1.0, 1e-6, horizon=4, loss="absolute", play="weights"
        ).fit(rows()[:20], rows()[:20, 0]),
    }
