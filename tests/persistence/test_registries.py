"""Whatever can be part of a model has its place in the tables that files are read by.

They are written out, so that no name from a file is looked up elsewhere. Who adds to
the library is told here what to add to them.
"""

from tests.public import public

from tacit import (
    convex,
    feature_selection,
    linear_model,
    preprocessing,
    solvers,
    streaming,
)
from tacit.persistence._kinds import KINDS
from tacit.persistence._linear import LOSSES
from tacit.persistence._values import MODELS, PARTS, SELECTOR_PARTS, STREAM_PARTS
from tacit.privacy import events


def test_every_loss_penalty_and_solver_can_be_a_parameter():
    losses, penalties = public(convex, "max_derivative"), public(convex, "prox")
    algorithms = public(solvers, "plan", "run")
    assert {"Logistic", "OneVsRest"} <= losses
    assert {"L1", "Simplex"} <= penalties
    assert {"AMP", "NoisyGD"} <= algorithms
    assert set(PARTS) == losses | penalties | algorithms


def test_every_selector_can_be_a_parameter():
    selectors = public(feature_selection, "fit")
    assert "PeelingSelector" in selectors
    assert set(SELECTOR_PARTS) == selectors


def test_every_event_can_be_read_back():
    assert {kind.__name__ for kind in events._KINDS} == public(events, "curve")


def test_every_estimator_can_be_saved():
    models = public(linear_model, "fit")
    assert {"Lasso", "Ridge"} <= models
    streams = public(streaming, "fit")
    assert {"IncrementalERM", "HedgeAggregator"} <= streams
    assert set(KINDS) == {*models, *preprocessing.__all__, *streams}
    assert set(LOSSES) == set(MODELS) == models


# What is public in the packages of streams and no parameter of an estimator: experts
# are columns, and an aggregator has the parameters of its method itself
NO_PARAMETER = {"DurableStream", "Experts", "Hedge", "StateDamaged"}


def test_every_method_on_streams_can_be_a_parameter():
    offered = set(streaming.__all__)
    estimators = public(streaming, "fit")
    assert {"GradientSums", "MomentRegression"} <= set(STREAM_PARTS)
    assert set(STREAM_PARTS) == offered - estimators - NO_PARAMETER
