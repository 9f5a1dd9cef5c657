"""Private algorithms: one file each, with a plan and a run."""

from tacit.solvers._adaptive_plan import AdaptiveMomentsPlan
from tacit.solvers._auto import (
    auto_norm,
    auto_solver,
    named_solver,
    solver_names,
)
from tacit.solvers._base import Plan, Problem, Result, Solver
from tacit.solvers._rules import INTERCEPT_FRACTION, capped_where_noisy
from tacit.solvers.ada_ssp import AdaSSP, AdaSSPPlan
from tacit.solvers.adaptive_moments import AdaptiveMoments
from tacit.solvers.adaptive_ridge import AdaptiveRidge, AdaptiveRidgePlan
from tacit.solvers.amp import AMP, AMPPlan
from tacit.solvers.coordinate_descent import (
    CoordinateDescent,
    CoordinateDescentPlan,
)
from tacit.solvers.entropy_sampling import EntropySampling, EntropySamplingPlan
from tacit.solvers.frank_wolfe import FrankWolfe, FrankWolfePlan
from tacit.solvers.greedy_coordinate_descent import (
    GreedyCoordinateDescent,
    GreedyCoordinateDescentPlan,
)
from tacit.solvers.noisy_gd import NoisyGD, NoisyGDPlan
from tacit.solvers.noisy_sgd import NoisySGD, NoisySGDPlan
from tacit.solvers.objective_perturbation import (
    ObjectivePerturbation,
    ObjectivePerturbationPlan,
)
from tacit.solvers.online_to_batch import OnlineToBatch, OnlineToBatchPlan
from tacit.solvers.output_perturbation import (
    OutputPerturbation,
    OutputPerturbationPlan,
)
from tacit.solvers.permuted_sgd import PermutedSGD, PermutedSGDPlan
from tacit.solvers.preconditioned_gd import PreconditionedGD, PreconditionedGDPlan
from tacit.solvers.quadratic_perturbation import (
    QuadraticPerturbation,
    QuadraticPerturbationPlan,
)
from tacit.solvers.sample_and_aggregate import (
    SampleAndAggregate,
    SampleAndAggregatePlan,
)
from tacit.solvers.tukey_regression import TukeyRegression, TukeyRegressionPlan

__all__ = [
    "AMP",
    "INTERCEPT_FRACTION",
    "AMPPlan",
    "AdaSSP",
    "AdaSSPPlan",
    "AdaptiveMoments",
    "AdaptiveMomentsPlan",
    "AdaptiveRidge",
    "AdaptiveRidgePlan",
    "CoordinateDescent",
    "CoordinateDescentPlan",
    "EntropySampling",
    "EntropySamplingPlan",
    "FrankWolfe",
    "FrankWolfePlan",
    "GreedyCoordinateDescent",
    "GreedyCoordinateDescentPlan",
    "NoisyGD",
    "NoisyGDPlan",
    "NoisySGD",
    "NoisySGDPlan",
    "ObjectivePerturbation",
    "ObjectivePerturbationPlan",
    "OnlineToBatch",
    "OnlineToBatchPlan",
    "OutputPerturbation",
    "OutputPerturbationPlan",
    "PermutedSGD",
    "PermutedSGDPlan",
    "Plan",
    "PreconditionedGD",
    "PreconditionedGDPlan",
    "Problem",
    "QuadraticPerturbation",
    "QuadraticPerturbationPlan",
    "Result",
    "SampleAndAggregate",
    "SampleAndAggregatePlan",
    "Solver",
    "TukeyRegression",
    "TukeyRegressionPlan",
    "auto_norm",
    "auto_solver",
    "capped_where_noisy",
    "named_solver",
    "solver_names",
]
