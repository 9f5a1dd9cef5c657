"""Seeded fits of every estimator on few rows, by public names only.

`FITS` has them by name; each returns what it released. They run with the package of
this tree and with that of an earlier one, whose names may be others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LinearRegression as ExactRegression
from sklearn.naive_bayes import GaussianNB

__all__ = ["FITS", "REJECTED"]

# Where trees keep what is in a package of today, and what they call it
PACKAGES = {
    "streaming": ("streaming", "online", "incremental", "streams"),
    "evaluation": ("evaluation", "inference", "forecast"),
    "model_selection": ("model_selection", "evaluation"),
}
NAMES: dict[str, tuple[str, ...]] = {}

# Result of an estimator that does not take a solver
REJECTED = "rejected"

rng = np.random.default_rng(0)  # noqa: TID251 the rows must not come from a tree
X = rng.uniform(-0.5, 0.5, (240, 4))
TARGETS = np.clip(X @ [1.0, -0.6, 0.0, 0.2] + rng.normal(scale=0.05, size=240), -1, 1)
LABELS = (TARGETS > 0).astype(int)
THREE = np.digitize(TARGETS, [-0.2, 0.2])
POOL = rng.uniform(-0.5, 0.5, (60, 4))
SPARSE = sparse.csr_array(np.where(rng.random((240, 12)) < 0.2, 0.4, 0.0))
STARS = np.where(rng.random((80, 12)) < 0.4, rng.integers(1, 6, (80, 12)), 0)
RATINGS = sparse.csr_array(STARS.astype(float))

BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5}
RANGE: dict[str, Any] = {"y_range": (-1.0, 1.0)}
COLUMNS: dict[str, Any] = {"feature_bounds": 0.5} | RANGE
BOTH: dict[str, Any] = {"classes": [0, 1]}
ALL: dict[str, Any] = {"classes": [0, 1, 2]}

SOLVERS = """
    auto amp preconditioned_gd noisy_gd noisy_sgd permuted_sgd online_to_batch
    frank_wolfe cd gcd output_perturbation sample_and_aggregate tukey entropy_sampling
    ada_ssp adaptive_moments quadratic_perturbation adaptive_ridge
"""
MODELS: dict[str, dict[str, Any]] = {
    "LinearRegression": RANGE,
    "Ridge": RANGE,
    "HuberRegressor": RANGE,
    "LogisticRegression": BOTH,
    "LinearSVC": BOTH,
    "SimplexRegressor": RANGE,
    "Lasso": COLUMNS | {"alpha": 0.01, "l1_radius": 2.0},
    "ElasticNet": COLUMNS | {"alpha": 0.01, "l1_radius": 2.0},
    "SparseLogisticRegression": BOTH | {"feature_bounds": 0.5, "l1_radius": 2.0},
    "SparseLinearRegression": COLUMNS | {"n_features_to_select": 2},
}


class Absent(AttributeError):
    """A tree does not have what a fit needs."""


def make(package: str, name: str, *args: Any, **parameters: Any) -> Any:
    """Call what a public package has, wherever this tree keeps it."""
    for where in PACKAGES.get(package, (package,)):
        try:
            module = import_module(f"tacit.{where}".rstrip("."))
        except ModuleNotFoundError:
            continue
        for known in (name, *NAMES.get(name, ())):
            if hasattr(module, known):
                return getattr(module, known)(*args, **parameters)
    raise Absent(f"{package}.{name} is in no package of this tree.")


def seeded(package: str, name: str, *args: Any, **parameters: Any) -> Any:
    """Call what a public package has, with noise that is fixed."""
    return make(package, name, *args, random_state=make("", "Seed", 7), **parameters)


def shown(model: Any, rows: Any) -> tuple[Any, ...]:
    """Return a fitted estimator and what it makes of some rows."""
    methods = [m for m in ("predict", "transform") if hasattr(model, m)]
    return (model, *(getattr(model, method)(rows[:9]) for method in methods))


def linear(name: str, y: Any = None, *, rows: Any = X, **parameters: Any) -> Any:
    """Return a fitted linear model; its labels or targets are those it takes."""
    if y is None:
        y = LABELS if "classes" in parameters else TARGETS
    model = seeded("linear_model", name, **(BUDGET | parameters))
    return shown(model.fit(rows, y), rows)


def rejectable(name: str, parameters: dict[str, Any], solver: str) -> Any:
    """Return a fitted model, or that it does not take the solver."""
    try:
        return linear(name, **parameters, solver=solver)
    except ValueError:  # PlanError is one
        return REJECTED


logistic = partial(linear, "LogisticRegression", **BOTH)
softmax = partial(linear, "LogisticRegression", THREE, **ALL)
convex = partial(make, "convex")

LINEAR: dict[str, Callable[[], Any]] = {
    f"{name} {solver}": partial(rejectable, name, parameters, solver)
    for name, parameters in MODELS.items()
    for solver in SOLVERS.split()
} | {
    "tukey of a large budget": lambda: linear(
        "LinearRegression", solver="tukey", epsilon=50.0, **RANGE
    ),
    "objective perturbation": lambda: logistic(
        solver=make("solvers", "ObjectivePerturbation")
    ),
    "logistic on sparse rows": lambda: logistic(rows=SPARSE),
    "ridge on sparse rows": lambda: linear("Ridge", rows=SPARSE, **RANGE),
    "lasso on sparse rows": lambda: linear("Lasso", rows=SPARSE, alpha=0.01, **COLUMNS),
    "logistic float noise": lambda: logistic(noise="float"),
    "logistic pure": lambda: logistic(delta=0.0),
    "logistic add or remove": lambda: logistic(
        neighbors="add_or_remove_one", expected_rows=200
    ),
    "logistic L1 ball": lambda: logistic(penalty=convex("L1Ball")),
    "logistic L1": lambda: logistic(penalty=convex("L1", 0.01)),
    "logistic L2 ball": lambda: logistic(penalty=convex("L2Ball", 3.0)),
    "softmax": softmax,
    "softmax amp": lambda: softmax(solver="amp"),
    "softmax noisy_gd": lambda: softmax(solver="noisy_gd"),
    "one vs rest": lambda: softmax(multi_class="one_vs_rest"),
    "svc of three": lambda: linear("LinearSVC", THREE, **ALL),
    "positive net": lambda: linear("ElasticNet", positive=True, alpha=0.01, **COLUMNS),
}


def scaled(name: str, **parameters: Any) -> Any:
    """Return a fitted scaler."""
    facts = BUDGET | {"ranges": (-0.5, 0.5)} | parameters
    return shown(seeded("preprocessing", name, **facts).fit(X), X)


def selected(name: str, y: Any = TARGETS, times: int = 1, **parameters: Any) -> Any:
    """Return a fitted selector of two columns, of rows that are there some times."""
    facts = BUDGET | {"n_features_to_select": 2} | COLUMNS | parameters
    if "classes" in facts:
        del facts["y_range"]
    model = seeded("feature_selection", name, **facts)
    return shown(model.fit(np.tile(X, (times, 1)), np.tile(y, times)), X)


COLUMN_FITS: dict[str, Callable[[], Any]] = {
    "standard scaler": lambda: scaled("PrivateStandardScaler"),
    "squares scaler": lambda: scaled("PrivateStandardScaler", with_mean=False),
    "quantile bounds": lambda: scaled("PrivateQuantileBounds"),
    "public scaler": lambda: shown(
        make("preprocessing", "PublicScaler", (-0.5, 0.5)).fit(X), X
    ),
    "one hot": lambda: make(
        "preprocessing", "PublicOneHot", [[0, 1], [0, 1, 2]]
    ).fit_transform(np.column_stack([LABELS, THREE])),
    "fourier features": lambda: shown(
        make("preprocessing", "RandomFourierFeatures", (-0.5, 0.5)).fit(X), X
    ),
    "partition trees": lambda: shown(
        make("preprocessing", "RandomPartitionTrees", (-0.5, 0.5)).fit(X), X
    ),
    "peeling": lambda: selected("PeelingSelector"),
    "peeling correlation": lambda: selected("PeelingSelector", method="correlation"),
    "peeling labels": lambda: selected("PeelingSelector", LABELS, **BOTH),
    "exponential": lambda: selected("ExponentialSelector", delta=0.0),
    "block votes": lambda: selected("BlockVoteSelector"),
    "subsample votes": lambda: selected(
        "BlockVoteSelector", method="subsamples", epsilon=40.0
    ),
    "feature votes": lambda: selected("BlockVoteSelector", method="features"),
    "lasso stability": lambda: selected("LassoStabilitySelector", times=9, delta=0.01),
    "huber support": lambda: make(
        "feature_selection", "HuberLassoSupport", n_features_to_select=2
    ).fit_transform(X, TARGETS),
}


def votes(mechanism: str, learner: Any, y: Any, **facts: Any) -> Any:
    """Return answers of teachers, and a student that learns from them."""
    parameters = {"epsilon": 30.0, "delta": 1e-5, "mechanism": mechanism} | facts
    labeler = seeded("ensemble", "PrivateLabeler", learner, 20, **parameters)
    student = make("ensemble", "PrivateStudent", labeler).fit(X, y, X_public=POOL)
    answers = labeler.fit(X, y).label(POOL)
    return answers, labeler, shown(student, X)


def durable_votes() -> Any:
    """Return the answers of a labeler in a folder."""
    labeler = seeded("ensemble", "PrivateLabeler", GaussianNB(), 20, 30.0, **BOTH)
    with TemporaryDirectory() as folder:
        durable = make("ensemble", "DurableLabeler", labeler, Path(folder, "labeler"))
        answers = durable.fit(X, LABELS).label(POOL)
        answer = durable.answer(POOL[0])
        durable.close()
    return answers, answer


ENSEMBLE: dict[str, Callable[[], Any]] = {
    **{
        f"votes {name}": partial(votes, name, GaussianNB(), LABELS, **BOTH)
        for name in ("gnmax", "confident_gnmax", "stable")
    },
    **{
        f"votes {name}": partial(votes, name, ExactRegression(), TARGETS, **RANGE)
        for name in ("mean", "median")
    },
    "votes published": lambda: votes(
        "published", GaussianNB(), LABELS, max_refusals=5, epsilon=3.0, **BOTH
    ),
    "durable labeler": durable_votes,
}


def stream(name: str, y: Any = TARGETS, **parameters: Any) -> Any:
    """Return what was shown at each of six steps."""
    facts = BUDGET | {"horizon": 6, "rows_per_step": 40} | parameters
    model, steps = seeded("streaming", name, **facts), []
    rows = X > 0 if name == "HedgeAggregator" else X
    for start in range(0, 240, 40):
        model.partial_fit(rows[start : start + 40], y[start : start + 40])
        steps.append(model.predict(rows))
    return steps, model


def durable_stream() -> Any:
    """Return what a stream in a folder predicts."""
    facts = BUDGET | RANGE | {"horizon": 2, "rows_per_step": 240}
    model = seeded("streaming", "OnlineLinearRegression", **facts)
    with TemporaryDirectory() as folder:
        steps = make("streaming", "DurableStream", model, Path(folder, "stream"))
        predicted = [steps.partial_fit(X, TARGETS).model.predict(X) for _ in range(2)]
        steps.close()
    return predicted


online_logistic = partial(stream, "OnlineLogisticRegression", LABELS, **BOTH)
online_linear = partial(stream, "OnlineLinearRegression", **RANGE)
incremental = partial(stream, "IncrementalLinearRegression", **RANGE)
hedge = partial(stream, "HedgeAggregator", LABELS)


def incremental_erm(**parameters: Any) -> Any:
    """Return what a linear model that is fitted again and again showed."""
    model = make("linear_model", "LogisticRegression", **BOTH)
    return stream("IncrementalERM", LABELS, estimator=model, **parameters)


ONLINE = ("auto", "gradient_sums", "quadratic_leader", "implicit", "gradient", "leader")
STREAMS: dict[str, Callable[[], Any]] = {
    **{f"online logistic {m}": partial(online_logistic, method=m) for m in ONLINE},
    **{f"online linear {m}": partial(online_linear, method=m) for m in ONLINE},
    **{f"incremental {m}": partial(incremental, method=m) for m in ("auto", "moments")},
    **{
        f"incremental sums {sums}": partial(incremental, sums=sums)
        for sums in ("tree", "honaker", "square_root")
    },
    "incremental gradient": lambda: incremental(
        method="gradient", constraint=convex("L2Ball", 2.0)
    ),
    "incremental projection": lambda: incremental(
        method=make("streaming", "ProjectedRegression", n_components=2),
        constraint=convex("L1Ball", 2.0),
    ),
    "incremental constraint": lambda: incremental(constraint=convex("L1Ball", 2.0)),
    "incremental sparse rows": lambda: incremental(
        keep=make("streaming", "SparseRows", 2)
    ),
    "online softmax": lambda: stream("OnlineLogisticRegression", THREE, **ALL),
    "incremental ERM": incremental_erm,
    "incremental ERM doubling": lambda: incremental_erm(update_every="doubling"),
    "hedge sample": lambda: hedge(play="sample", hold=1),
    "hedge weights": lambda: hedge(play="weights", loss="absolute"),
    "durable stream": durable_stream,
}


def completion(solver: str, made: dict[str, Any]) -> Any:
    """Return what matrix completion releases, and what it completes."""
    facts = {"epsilon": 300.0, "delta": 1e-3, "items": 12, "rating_range": (1, 5)}
    solved = make("recommend", solver, **made)
    model = seeded("recommend", "MatrixCompletion", solved, **facts).fit(RATINGS)
    pairs = [(user, item) for user in range(9) for item in range(12)]
    completed = model.complete_row({0: 5.0, 3: 1.0})
    return model, completed, model.recommend(0), model.predict(pairs)


# without rounds, alternating least squares release only the means of items
COMPLETIONS: dict[str, list[dict[str, Any]]] = {
    "PrivateALS": [{}, {"n_iter": 0}, {"rank": 2, "keep": "adaptive"}],
    "FrankWolfeCompletion": [
        {},
        {"step": "published", "n_iter": 3, "nuclear_norm": 2.0},
        {"eigenvector": "oja", "weights": "increasing", "n_iter": 2},
        {"item_means": True, "clip": "row", "row_norm": 2.0, "n_iter": 2},
    ],
    "SVDCompletion": [{"rank": 2}, {"rank": 2, "local": "projection"}],
    "ProjectedGradientCompletion": [{}],
    "CleansedSVD": [{"rank": 2}, {"rank": 2, "local": "neighbors"}],
}


def scored(package: str, name: str, *, ridge: float = 0.0, **parameters: Any) -> Any:
    """Return what is released of a fitted model."""
    model = logistic(ridge=ridge, solver="amp")[0]
    facts = {"epsilon": 1.0} | parameters
    return seeded(package, name, model, X, LABELS, **facts)


def chosen() -> Any:
    """Return a choice between two models."""
    models = [logistic(ridge=ridge)[0] for ridge in (0.0, 5.0)]
    return seeded(
        "model_selection", "private_choice", models, X, LABELS, epsilon=1.0
    ).index


def searched(epsilon: float) -> Any:
    """Return a search for a ridge."""
    model = make("linear_model", "LogisticRegression", **BOTH)
    grid = {"ridge": [0.1, 1.0, 10.0]}
    search = seeded(
        "model_selection",
        "PrivateSearchCV",
        model,
        grid,
        epsilon=epsilon,
        mean_repeats=3,
    )
    return shown(search.fit(X, LABELS), X)


def forecast() -> Any:
    """Return what a model would score."""
    model = make("linear_model", "LogisticRegression", epsilon=1.0)
    found = make("evaluation", "expected_score", model, 500, [3, 2], n_classes=2)
    return [(each.plain, each.low, each.high) for each in found.outlooks]


def best_column(rows: Any, targets: Any) -> int:
    """Return the column with the largest product with the targets."""
    return int(np.argmax(np.abs(rows.T @ targets)))


def answered(name: str, *args: Any) -> Any:
    """Return a private answer of a function."""
    procedure = make("stability", name, *args)
    facts = {"epsilon": 30.0, "delta": 1e-2}
    return seeded("stability", "private_answer", procedure, X, TARGETS, **facts)


CERTIFICATE: dict[str, Any] = {
    "groups": [0, 1],
    "sensitive_features": np.arange(240) % 2,
}
OTHERS: dict[str, Callable[[], Any]] = {
    "search": lambda: searched(4.0),
    "search of a small budget": lambda: searched(1.0),
    "private_score": lambda: scored("evaluation", "private_score"),
    "private_accuracy": lambda: scored("model_selection", "private_accuracy"),
    "private_choice": chosen,
    "coefficient_intervals": lambda: scored("evaluation", "coefficient_intervals"),
    "private_certificate": lambda: scored(
        "fairness", "private_certificate", distance=0.1, **CERTIFICATE
    ),
    "forecast": forecast,
    "block vote": lambda: answered("BlockVote", best_column),
    "subsample vote": lambda: answered("SubsampleVote", best_column),
    "stable value": lambda: answered("StableValue", best_column, lambda X, y: 100),
}

FITS: dict[str, Callable[[], Any]] = {
    **LINEAR,
    **COLUMN_FITS,
    **ENSEMBLE,
    **STREAMS,
    **{
        f"{name} {made}": partial(completion, name, made)
        for name, variants in COMPLETIONS.items()
        for made in variants
    },
    **OTHERS,
}
