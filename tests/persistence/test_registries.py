"""Whatever can be part of a model declares it, and a file is read by nothing else.

A part need not be exported to be found.
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
from tacit.persistence._kinds import saved_kinds
from tacit.persistence._values import saved_models, saved_parts
from tacit.privacy import combined, event_data, events

# Parts that estimators make of their own parameters, and packages do not export
MADE = {"CoordinatePenalty", "ImplicitGradient", "Leader", "ProjectedGradient"}


def test_every_loss_penalty_solver_selector_and_method_can_be_a_parameter():
    losses, penalties = public(convex, "max_derivative"), public(convex, "prox")
    algorithms = public(solvers, "plan", "run") - {"Solver"}
    selectors = public(feature_selection, "fit")
    methods = {*streaming.__all__} - public(streaming, "fit") - {"DurableStream"}
    assert {"Logistic", "OneVsRest"} <= losses
    assert {"L1", "Simplex"} <= penalties
    assert {"AMP", "NoisyGD"} <= algorithms
    assert "PeelingSelector" in selectors
    assert {"GradientSums", "MomentRegression"} <= methods
    parts = losses | penalties | algorithms | selectors | methods
    assert set(saved_parts()) >= parts | MADE


def test_every_event_can_be_read_back():
    assert {kind.__name__ for kind in event_data.event_classes().values()} == (
        public(events, "curve") | public(combined, "curve")
    )


def test_every_estimator_can_be_saved():
    models = public(linear_model, "fit")
    assert {"Lasso", "Ridge"} <= models
    streams = public(streaming, "fit")
    assert {"IncrementalERM", "HedgeAggregator"} <= streams
    assert set(saved_kinds()) >= {*models, *preprocessing.__all__, *streams}
    assert set(saved_models()) >= models
    assert set(saved_models()) <= set(saved_kinds())


def test_no_class_of_a_user_is_found():
    class Mine(linear_model.Lasso):
        saved = linear_model.Lasso.saved

    found = {*saved_parts().values(), *(kind.make for kind in saved_kinds().values())}
    assert Mine not in found
    assert all(kind.__module__.startswith("tacit.") for kind in found)
