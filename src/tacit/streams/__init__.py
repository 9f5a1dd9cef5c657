"""What every learner on a stream shares: one charge, one clock, one secret state."""

from tacit._state import StateDamaged
from tacit.streams._durable import DurableStream
from tacit.streams._linear import (
    StreamClassifierMixin,
    StreamLinearModel,
    StreamRegressorMixin,
)
from tacit.streams._model import StreamModel
from tacit.streams._terms import (
    PlannedStream,
    StreamLearner,
    StreamMethod,
    StreamTerms,
)

__all__ = [
    "DurableStream",
    "PlannedStream",
    "StateDamaged",
    "StreamClassifierMixin",
    "StreamLearner",
    "StreamLinearModel",
    "StreamMethod",
    "StreamModel",
    "StreamRegressorMixin",
    "StreamTerms",
]
