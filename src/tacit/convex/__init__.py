"""Convex analysis: losses, penalties, sets, and a certified minimizer."""

from tacit.convex._protocols import (
    ConvexSet,
    Loss,
    Polytope,
    Regularizer,
    Separable,
    is_set,
)
from tacit.convex.groups import GroupBall
from tacit.convex.implicit import implicit_derivatives, implicit_step
from tacit.convex.losses import (
    Huber,
    HuberizedHinge,
    Logistic,
    Softmax,
    Squared,
    has_residuals,
)
from tacit.convex.minimize import Minimum, minimize
from tacit.convex.objective import Objective
from tacit.convex.one_vs_rest import OneVsRest
from tacit.convex.proximal import CERTIFIED
from tacit.convex.regularizers import (
    L1,
    CoordinatePenalty,
    ElasticNet,
    Entropy,
    Free,
    GroupL1,
    coordinate_parts,
    makes_zeros,
)
from tacit.convex.roundoff import gradient_roundoff
from tacit.convex.sets import Box, L1Ball, L2Ball, NuclearBall, Simplex

__all__ = [
    "CERTIFIED",
    "L1",
    "Box",
    "ConvexSet",
    "CoordinatePenalty",
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
    "Minimum",
    "NuclearBall",
    "Objective",
    "OneVsRest",
    "Polytope",
    "Regularizer",
    "Separable",
    "Simplex",
    "Softmax",
    "Squared",
    "coordinate_parts",
    "gradient_roundoff",
    "has_residuals",
    "implicit_derivatives",
    "implicit_step",
    "is_set",
    "makes_zeros",
    "minimize",
]
