"""Estimators, transformers, selectors and searches that are fitted once."""

from functools import cache, partial

import numpy as np
from sklearn.base import clone, is_classifier
from tests.cases import Cases
from tests.sensitivity.judging import Planned, Subject, charged
from tests.sensitivity.pairs import ADD, pairs_of, sampled_rows

from tacit.convex import Huber
from tacit.evaluation import coefficient_intervals, private_score
from tacit.fairness import private_certificate
from tacit.feature_selection import (
    BlockVoteSelector,
    ExponentialSelector,
    LassoStabilitySelector,
    PeelingSelector,
)
from tacit.linear_model import (
    ElasticNet,
    GeneralizedLinearModel,
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
from tacit.model_selection import (
    PrivateSearchCV,
    private_accuracy,
    private_choice,
    private_rmse,
)
from tacit.preprocessing import PrivateQuantileBounds, PrivateStandardScaler

SEED = 0
N = 12
Y_RANGE = (-4.0, 6.0)
PROMISE = {"epsilon": 2.0, "delta": 1e-4, "random_state": SEED}
ENTRIES = {"feature_bounds": 1.0}


def plain_rows(n_rows, n_features, model):
    """Return rows that are nobody's, on which a plan can be read off."""
    X = np.eye(n_features)[np.arange(n_rows) % n_features] / 2
    return X, np.arange(n_rows) % 2 if is_classifier(model) else np.arange(n_rows) % 2.0


def fitted(model, neighbors, n_rows, n_features):
    """Return a trainer of a model, and what its fit is charged as."""
    terms = PROMISE | {"neighbors": neighbors.value}
    known = model.get_params(deep=False)
    if "expected_rows" in known and neighbors is ADD:
        terms["expected_rows"] = n_rows
    if "classes" in known and known["classes"] is None and is_classifier(model):
        terms["classes"] = [0, 1]
    ready = model.set_params(**{k: v for k, v in terms.items() if k in known})

    def train(X, y):
        return clone(ready).fit(X, y)

    report = train(*plain_rows(n_rows, n_features, ready)).privacy_
    return Planned(train, charged(*(entry.event for entry in report.entries)))


def of_model(model, name="", *, module="linear_model", n_rows=N, n_features=2, **more):
    """Return an estimator as a subject."""
    kind = type(model).__name__
    many = len(getattr(model, "classes", None) or (0, 1))
    pairs = partial(
        pairs_of,
        n_rows=n_rows,
        n_features=n_features,
        y_range=more.pop("y_range", Y_RANGE),
        n_classes=many if is_classifier(model) else 0,
        sparse_too=more.pop("sparse_too", False),
        last=more.pop("last", False),
        kinds=more.pop("kinds", ()),
    )
    return Subject(
        f"{kind} {name}".strip(),
        (f"{module}.{kind}", *more.pop("covers", ())),
        lambda neighbors: fitted(clone(model), neighbors, n_rows, n_features),
        pairs,
        **more,
    )


def linear_models():
    """Return the estimators of `tacit.linear_model`, with solvers of all kinds."""
    given = {"y_range": Y_RANGE}
    return [
        of_model(LogisticRegression(x_norm=1.0), sparse_too=True),
        of_model(LogisticRegression(classes=range(3), x_norm=1.0), "of three"),
        of_model(
            LogisticRegression(classes=range(3), multi_class="one_vs_rest", x_norm=1.0),
            "one against the rest",
        ),
        of_model(
            LogisticRegression(solver="output_perturbation", x_norm=1.0),
            "output",
            reach=0.5,
        ),
        of_model(LinearSVC(x_norm=1.0)),
        of_model(GeneralizedLinearModel(loss=Huber(0.5), x_norm=1.0, **given)),
        of_model(GeneralizedLinearModel(x_norm=1.0), "of labels"),
        of_model(LinearRegression(x_norm=1.0, **given), sparse_too=True),
        of_model(LinearRegression(x_norm=1.0, **given, solver="ada_ssp"), "ada_ssp"),
        of_model(Ridge(x_norm=1.0, **given)),
        of_model(HuberRegressor(x_norm=1.0, **given)),
        of_model(SimplexRegressor(x_max=1.0, **given), reach=0.5),
        of_model(Lasso(**given, **ENTRIES, alpha=0.01), sparse_too=True),
        of_model(ElasticNet(**given, **ENTRIES, alpha=0.01)),
        of_model(
            Lasso(**given, **ENTRIES, solver="frank_wolfe", l1_radius=1.0),
            "frank_wolfe",
            reach=0.8,
        ),
        of_model(SparseLogisticRegression(**ENTRIES), sparse_too=True),
        of_model(
            SparseLinearRegression(**given, **ENTRIES, n_features_to_select=2),
            n_features=3,
        ),
    ]


def transformers():
    """Return the transformers that read rows."""
    ranges, position = [(-1.0, 1.0), (0.0, 2.0)], {"module": "preprocessing"}
    return [
        of_model(PrivateStandardScaler(ranges=ranges), **position, reach=0.7),
        of_model(
            PrivateStandardScaler(ranges=ranges, with_mean=False),
            "squares",
            **position,
            reach=0.7,
        ),
        of_model(PrivateQuantileBounds(ranges=ranges, n_cells=16), **position),
    ]


def largest(X, y):
    """Return the column of the largest number."""
    return [int(np.argmax(np.abs(X).max(axis=0)))]


def selectors():
    """Return the selectors of columns."""
    given = {"y_range": Y_RANGE, **ENTRIES, "n_features_to_select": 1}
    position = {"module": "feature_selection", "n_features": 3}
    votes = {**given, "selector": largest, "n_blocks": 4}
    return [
        of_model(PeelingSelector(**given), **position),
        of_model(
            PeelingSelector(**given, method="correlation"), "one by one", **position
        ),
        of_model(ExponentialSelector(**given), **position, reach=0.7),
        of_model(BlockVoteSelector(**votes), **position, last=True),
        of_model(
            BlockVoteSelector(**votes, method="features"),
            "by column",
            **position,
            last=True,
        ),
        of_model(
            LassoStabilitySelector(
                n_features_to_select=2, feature_bounds=1.0, y_range=(-2.0, 2.0)
            ),
            **position,
            n_rows=2000,
            kinds=sampled_rows(2000, 3),
            # how far all rows are from another answer, of which one is a small part
            reach=0.0,
            y_range=(-2.0, 2.0),
        ),
    ]


@cache
def models():
    """Return two classifiers and a regressor, fitted on rows that are nobody's."""
    X, y = plain_rows(40, 2, LogisticRegression(x_norm=1.0))
    kinds = (
        LogisticRegression(x_norm=1.0, **PROMISE, classes=[0, 1]),
        Ridge(x_norm=1.0, **PROMISE, y_range=(-1.0, 1.0), solver="ada_ssp"),
    )
    classifier, regressor = (kind.fit(X, y) for kind in kinds)
    other = clone(classifier).set_params(random_state=1).fit(X, y)
    return [classifier, other], regressor


def asked(question, name, *covers, **more):
    """Return a question to held-out rows as a subject."""

    def planned(neighbors):
        models()  # fitted before anything is recorded
        terms = {"epsilon": 1.0, "random_state": SEED, "neighbors": neighbors.value}
        return Planned(lambda X, y: question(X, y, terms), 1)

    return Subject(name, covers, planned, partial(pairs_of, **more))


def chosen(X, y, terms):
    choice = private_choice(models()[0], X, y, **terms)
    return choice.index, choice.privacy


def certified(X, codes, terms, delta=0.0):
    """Return what a certificate tells of rows whose code is a label and a group."""
    return private_certificate(
        models()[0][0],
        X,
        codes % 2,
        sensitive_features=codes // 2,
        groups=[0, 1],
        delta=delta,
        distance=0.1,
        **terms,
    )


def questions():
    """Return scores, choices and intervals, which read held-out rows."""
    certificate = "fairness.private_certificate"
    return [
        asked(certified, "private_certificate", certificate, n_classes=4),
        asked(
            partial(certified, delta=1e-5),
            "private_certificate with delta",
            certificate,
            n_classes=4,
        ),
        asked(
            lambda X, y, terms: private_accuracy(models()[0][0], X, y, **terms),
            "private_accuracy",
            "model_selection.private_accuracy",
            n_classes=2,
        ),
        asked(
            lambda X, y, terms: private_score(models()[1], X, y, **terms),
            "private_score",
            "evaluation.private_score",
        ),
        asked(
            lambda X, y, terms: private_rmse(models()[1], X, y, **terms),
            "private_rmse",
            "model_selection.private_rmse",
        ),
        asked(chosen, "private_choice", "model_selection.private_choice", n_classes=2),
        Subject(
            "coefficient_intervals",
            ("evaluation.coefficient_intervals",),
            intervals,
            partial(pairs_of, n_classes=2, n_rows=N),
        ),
        Subject(
            "PrivateSearchCV",
            ("model_selection.PrivateSearchCV",),
            searched,
            partial(pairs_of, n_rows=60, last=True),
        ),
    ]


def intervals(neighbors):
    X, y = plain_rows(N, 2, LogisticRegression(x_norm=1.0))
    model = LogisticRegression(
        x_norm=1.0, **PROMISE, classes=[0, 1], solver="amp", neighbors=neighbors.value
    ).fit(X, y)
    terms = {"epsilon": 1.0, "random_state": SEED}
    (entry,) = coefficient_intervals(model, X, y, **terms).privacy.entries

    def train(X, y):
        return coefficient_intervals(model, X, y, **terms)

    return Planned(train, charged(entry.event))


def searched(neighbors):
    estimator = Ridge(
        y_range=(-1.0, 1.0),
        solver="ada_ssp",
        neighbors=neighbors.value,
        expected_rows=60 if neighbors is ADD else None,
        x_norm=1.0,
    )

    def train(X, y):
        found = PrivateSearchCV(
            estimator, {"x_norm": [0.5, 1.0]}, 4.0, 1e-5, random_state=SEED
        ).fit(X, y)
        return found.best_estimator_.coef_, found.best_score_, found.best_params_

    return Planned(train)


SHARED_CASES = Cases(
    searches=lambda: linear_models() + questions() + selectors() + transformers()
)
