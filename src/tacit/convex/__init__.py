"""Convex analysis: losses, penalties, sets, and a certified minimizer."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.convex._protocols import Loss
    from tacit.convex.groups import GroupBall
    from tacit.convex.losses import Huber, HuberizedHinge, Logistic, Softmax, Squared
    from tacit.convex.minimizer import minimize
    from tacit.convex.objective import Objective
    from tacit.convex.one_vs_rest import OneVsRest
    from tacit.convex.regularizers import L1, ElasticNet, Entropy, GroupL1
    from tacit.convex.sets import Box, Free, L1Ball, L2Ball, NuclearBall, Simplex
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "L1",
    "Box",
    "ElasticNet",
    "Entropy",
    "Free",
    "GroupBall",
    "GroupL1",
    "Huber",
    "HuberizedHinge",
    "L1Ball",
    "L2Ball",
    "Logistic",
    "Loss",
    "NuclearBall",
    "Objective",
    "OneVsRest",
    "Simplex",
    "Softmax",
    "Squared",
    "minimize",
]
