"""Models on streams, which learn step by step and release a model at each step."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.streaming._durable import DurableStream
    from tacit.streaming.incremental._erm import IncrementalERM
    from tacit.streaming.incremental._gradient import GradientRegression
    from tacit.streaming.incremental._moment_regression import MomentRegression
    from tacit.streaming.incremental._projected import ProjectedRegression
    from tacit.streaming.incremental._regression import (
        IncrementalLinearRegression,
        SparseRows,
    )
    from tacit.streaming.online._gradient_sums import GradientSums
    from tacit.streaming.online._hedge_aggregator import HedgeAggregator
    from tacit.streaming.online._logistic import OnlineLogisticRegression
    from tacit.streaming.online._perturbed import PerturbedIterates
    from tacit.streaming.online._quadratic_leader import QuadraticLeader
    from tacit.streaming.online._regression import OnlineLinearRegression
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DurableStream",
    "GradientRegression",
    "GradientSums",
    "HedgeAggregator",
    "IncrementalERM",
    "IncrementalLinearRegression",
    "MomentRegression",
    "OnlineLinearRegression",
    "OnlineLogisticRegression",
    "PerturbedIterates",
    "ProjectedRegression",
    "QuadraticLeader",
    "SparseRows",
]
