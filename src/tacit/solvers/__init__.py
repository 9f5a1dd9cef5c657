"""Solvers: private algorithms, each with a plan and a run."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.solvers._base import Plan, Problem, Result, Solver
    from tacit.solvers.ada_ssp import AdaSSP
    from tacit.solvers.adaptive_moments import AdaptiveMoments
    from tacit.solvers.adaptive_ridge import AdaptiveRidge
    from tacit.solvers.amp import AMP
    from tacit.solvers.coordinate_descent import CoordinateDescent
    from tacit.solvers.entropy_sampling import EntropySampling
    from tacit.solvers.frank_wolfe import FrankWolfe
    from tacit.solvers.greedy_coordinate_descent import GreedyCoordinateDescent
    from tacit.solvers.noisy_gd import NoisyGD
    from tacit.solvers.noisy_sgd import NoisySGD
    from tacit.solvers.objective_perturbation import ObjectivePerturbation
    from tacit.solvers.online_to_batch import OnlineToBatch
    from tacit.solvers.output_perturbation import OutputPerturbation
    from tacit.solvers.permuted_sgd import PermutedSGD
    from tacit.solvers.preconditioned_gd import PreconditionedGD
    from tacit.solvers.quadratic_perturbation import QuadraticPerturbation
    from tacit.solvers.sample_and_aggregate import SampleAndAggregate
    from tacit.solvers.tukey_regression import TukeyRegression
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AMP",
    "AdaSSP",
    "AdaptiveMoments",
    "AdaptiveRidge",
    "CoordinateDescent",
    "EntropySampling",
    "FrankWolfe",
    "GreedyCoordinateDescent",
    "NoisyGD",
    "NoisySGD",
    "ObjectivePerturbation",
    "OnlineToBatch",
    "OutputPerturbation",
    "PermutedSGD",
    "Plan",
    "PreconditionedGD",
    "Problem",
    "QuadraticPerturbation",
    "Result",
    "SampleAndAggregate",
    "Solver",
    "TukeyRegression",
]
