"""Learning on streams: a model after every step, all of them under one charge."""

from tacit.online._gradient_sums import GradientSums
from tacit.online._hedge import Hedge
from tacit.online._hedge_aggregator import HedgeAggregator
from tacit.online._hedge_plays import Experts
from tacit.online._linear import OnlineLinearRegression
from tacit.online._logistic import OnlineLogisticRegression
from tacit.online._perturbed import PerturbedIterates
from tacit.online._perturbed_bases import (
    ImplicitGradient,
    Leader,
    ProjectedGradient,
)
from tacit.online._quadratic_leader import QuadraticLeader

__all__ = [
    "Experts",
    "GradientSums",
    "Hedge",
    "HedgeAggregator",
    "ImplicitGradient",
    "Leader",
    "OnlineLinearRegression",
    "OnlineLogisticRegression",
    "PerturbedIterates",
    "ProjectedGradient",
    "QuadraticLeader",
]
