"""Streams: all releases together are charged once, whoever comes when."""

from functools import partial

import numpy as np
from sklearn.base import clone, is_classifier
from tests.cases import Cases
from tests.sensitivity.judging import Planned, Subject, charged
from tests.sensitivity.pairs import pairs_of

from tacit.convex import L1Ball, L2Ball
from tacit.linear_model import LinearRegression
from tacit.streaming import (
    GradientSums,
    HedgeAggregator,
    IncrementalERM,
    IncrementalLinearRegression,
    OnlineLinearRegression,
    OnlineLogisticRegression,
    PerturbedIterates,
    QuadraticLeader,
)
from tacit.streaming.online._iterates import ImplicitGradient, Leader, ProjectedGradient

SEED = 0
STEPS, PER_STEP = 4, 3
PROMISE = {
    "epsilon": 2.0,
    "delta": 1e-4,
    "horizon": STEPS,
    "rows_per_step": PER_STEP,
    "random_state": SEED,
}
Y_RANGE = (-4.0, 6.0)


def followed(model, neighbors, n_charged=None):
    """Return a trainer that takes the steps, and what the stream is charged as."""
    on = model.estimator if isinstance(model, IncrementalERM) else model
    on.set_params(neighbors=neighbors.value)
    ready = model.set_params(**PROMISE, neighbors=neighbors.value)

    def train(*steps):
        learner, shown = clone(ready), []
        for X, y in steps:
            learner.partial_fit(X, y)
            shown.append(learner.predict(np.zeros((1, 2))))
        return learner, shown

    return Planned(train, n_charged or charged(ready.plan(n_features=2).event))


def terms_of(model):
    """Return what pairs of a model look like."""
    return {
        "n_rows": STEPS * PER_STEP,
        "n_steps": STEPS,
        "y_range": Y_RANGE,
        # one more than the model knows: such a row counts as if it were not there
        "n_classes": 3 if is_classifier(model) else 0,
        "rows_per_person": getattr(model, "rows_per_person", 1),
    }


def of_stream(model, name="", *, covers=(), n_charged=None, reach=0.7):
    """Return an estimator on a stream as a subject."""
    kind = type(model).__name__
    return Subject(
        f"{kind} {name}".strip(),
        tuple(f"streaming.{one}" for one in (kind, *covers)),
        lambda neighbors: followed(clone(model), neighbors, n_charged),
        partial(pairs_of, **terms_of(model)),
        reach=reach,
    )


def online():
    """Return learners on streams, each method with the estimators that take it."""
    bases = [ImplicitGradient(0.5), ProjectedGradient(0.5), Leader(0.5)]
    numbers = partial(OnlineLinearRegression, x_norm=1.0, y_range=Y_RANGE)
    labels = partial(OnlineLogisticRegression, x_norm=1.0, classes=[0, 1])
    sums = ["blt", "tree", "honaker", "square_root"]
    return [
        *(
            of_stream(labels(method=GradientSums(s)), s, covers=["GradientSums"])
            for s in sums
        ),
        of_stream(
            labels(method=GradientSums(), rows_per_person=2),
            "two rows a person",
            covers=["GradientSums"],
            reach=0.3,
        ),
        of_stream(numbers(method=QuadraticLeader()), covers=["QuadraticLeader"]),
        *(
            of_stream(
                labels(method=PerturbedIterates(base)),
                type(base).__name__,
                covers=["PerturbedIterates", type(base).__name__],
                # the plan composes its steps by itself, into one event
                n_charged=STEPS,
            )
            for base in bases
        ),
        *(
            of_stream(
                HedgeAggregator(loss="absolute", play=play),
                play,
                covers=["Hedge"],
                reach=0.4,
            )
            for play in ("sample", "weights")
        ),
    ]


def incremental():
    """Return regression on all rows so far."""
    fit = partial(IncrementalLinearRegression, x_norm=1.0, y_range=Y_RANGE)
    erm = LinearRegression(y_range=Y_RANGE, solver="ada_ssp", x_norm=1.0)
    return [
        of_stream(fit(method="moments"), "moments", covers=["MomentRegression"]),
        of_stream(
            fit(method="gradient", constraint=L2Ball(1.0)),
            "gradient",
            covers=["GradientRegression"],
        ),
        of_stream(
            fit(method="projection", constraint=L1Ball(1.0)),
            "projection",
            covers=["ProjectedRegression"],
        ),
        # two fits, whose noise is charged as that of one draw
        of_stream(IncrementalERM(erm, update_every=2), n_charged=2),
    ]


SHARED_CASES = Cases(searches=lambda: online() + incremental())
