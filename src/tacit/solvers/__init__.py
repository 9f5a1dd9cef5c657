"""Private algorithms: one file each, with a plan and a run."""

from tacit.solvers._auto import auto_solver
from tacit.solvers._base import Plan, Problem, Solver
from tacit.solvers._rules import INTERCEPT_SHARE, capped_where_noisy
from tacit.solvers.amp import AMP, AMPPlan
from tacit.solvers.noisy_gd import NoisyGD, NoisyGDPlan
from tacit.solvers.objective_perturbation import (
    ObjectivePerturbation,
    ObjectivePerturbationPlan,
)

__all__ = [
    "AMP",
    "INTERCEPT_SHARE",
    "AMPPlan",
    "NoisyGD",
    "NoisyGDPlan",
    "ObjectivePerturbation",
    "ObjectivePerturbationPlan",
    "Plan",
    "Problem",
    "Solver",
    "auto_solver",
    "capped_where_noisy",
]
