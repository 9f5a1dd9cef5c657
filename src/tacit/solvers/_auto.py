"""The choice of a solver by name, or from public facts."""

from __future__ import annotations

from math import inf, isfinite, log, sqrt
from typing import Any

from tacit import solvers
from tacit._discovery import class_by, classes_by
from tacit.convex import Free, L1Ball, L2Ball, Simplex, Squared
from tacit.convex.losses import has_residuals
from tacit.convex.regularizers import CoordinatePenalty
from tacit.exceptions import PlanError
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS
from tacit.privacy import Budget, GaussianNoise, calibrate
from tacit.solvers._base import Problem, solver_fact
from tacit.solvers._gradients.descent import noise_fraction, noise_level

__all__ = [
    "SPARSE_ENTRY",
    "auto_norm",
    "auto_solver",
    "chosen_solver",
    "named_fact",
    "named_solver",
    "solver_names",
    "solvers_by_name",
    "sparse_radius",
]

# Noise, as a fraction of the largest gradient, up to which AMP is the more accurate, by
# the descent it competes with
MAX_AMP_NOISE = {"preconditioned_gd": 0.0001, "noisy_gd": 0.01}
MAX_AMP_NOISE_RESIDUALS = 0.003
# The same for several outputs, up to so many weights; for more it is lower in
# proportion, as AMP's time grows with their square. Measured on synthetic softmax
# problems of 3 to 10 classes
MAX_AMP_NOISE_OUTPUTS, SMALL_SIZE = 6e-4, 20

# Derivatives of the squared loss are clipped here, in units of the largest target:
# residuals are rarely larger, and the noise of descent is in proportion
SQUARED_CLIP = 0.25

# Least squares come from noisy moments as they are where the noise of those is at most
# this, in a ball or without any penalty or set,
MAX_MOMENT_NOISE_BALL, MAX_MOMENT_NOISE_FREE = 0.004, 3e-5
# and with another penalty or set, which descents reach in a limited number of steps
MAX_MOMENT_NOISE_PENALTY = 5e-4
# Features up to which moments are inverted, as its time grows with the cube
MAX_MOMENT_FEATURES = 500

# Entries of sparse rows are bounded by this part of the bound on a row, where a choice
# of columns is at least so clear, in an L1 ball whose radius grows with that. From
# there on, on synthetic texts with a few informative words or a little information in
# all of them, at most one in ten lost 0.15 of what can be learned. Fitted by
# benchmarks/erm/fit_sparse_rule.py
SPARSE_ENTRY, LEAST_CLEAR = 1 / 8, 500.0
CLEAR_PER_RADIUS, LARGEST_SPARSE_RADIUS = 100.0, 10.0
# Below this noise, as a part of the gradient of rows that all agree, a descent learns
# from the small L2 norms of sparse rows as well
LEAST_SPARSE_NOISE = 0.2

# A penalty of each weight is for a greedy descent where noise on all of them moves a
# prediction by more than the first, and noise on one by less than the second: beyond,
# no choice stands out from the noise. Fitted by benchmarks/cd/fit_auto.py
CROWDED_TARGETS, CROWDED_LABELS = (0.01, 0.025), (0.3, 0.05)


def solvers_by_name() -> dict[str, type[Any]]:
    """Return the solvers of the library by name."""
    return classes_by("name", "tacit.solvers")


def solver_names() -> tuple[str, ...]:
    """Return the values of ``solver=``, ``"auto"`` first."""
    return ("auto", *solvers_by_name())


def _of_name(name: str) -> type[Any] | None:
    return class_by("name", name, "tacit.solvers")


def named_fact(solver: Any, fact: str) -> Any:
    """Return a declaration of a solver, given as an object or by name."""
    if isinstance(solver, str):
        solver = _of_name(solver) if solver != "auto" else None
    return solver_fact(solver, fact)


def chosen_solver(solver: Any, noise: str, problem: Problem, budget: Budget) -> Any:
    """Return the solver of this name, or the object itself."""
    if isinstance(solver, str):
        return named_solver(solver, problem, budget, noise)
    usable = hasattr(solver, "plan") and hasattr(solver, "run")
    if isinstance(solver, type) or not usable:
        names = ", ".join(repr(name) for name in solver_names())
        raise ValueError(
            f"solver must be one of {names}, or an object with plan and run, got "
            f"{type(solver).__name__}."
        )
    if noise != "grid":
        raise ValueError(
            f"noise={noise!r} is for solvers given by name; set it on the solver."
        )
    return solver


def named_solver(name: str, problem: Problem, budget: Budget, noise: str) -> Any:
    """Return the solver of this name, with a clip where the problem needs one."""
    if name == "auto":
        return auto_solver(problem, budget, noise)
    kind = _of_name(name)
    if kind is None:
        names = ", ".join(repr(known) for known in solver_names())
        raise ValueError(f"solver must be one of {names}, got {name!r}.")
    if kind.clips:
        return kind(noise=noise, clip=_clip(problem))
    return kind(noise=noise)


def auto_solver(problem: Problem, budget: Budget, noise: str = "grid") -> Any:
    """Return the solver that the first matching rule names.

    In this order:

    - A penalty for each weight, as the sparse models have it: `CoordinateDescent`, or
      `GreedyCoordinateDescent` where features are many for the budget, or `AdaSSP` for
      least squares and low noise.
    - Rows bounded entry by entry: `FrankWolfe`, whose noise hardly grows with the
      number of features, for weights in L1Ball or Simplex, or `AdaSSP` for least
      squares and low noise; no solver for others.
    - No delta: `AMP`, whose noise is then Laplace's.
    - Least squares: `AdaptiveMoments`, which learns the units of the rows first;
      `AdaSSP` where noise is negligible, or low and there is a penalty or a set;
      `NoisyGD` for penalties and sets otherwise.
    - Low noise: `AMP`, which has no other error.
    - Labels, no penalty, and up to `MOST_FEATURES` features: `PreconditionedGD`, which
      tolerates features that are far from centered or of unequal spread.
    - All else: `NoisyGD`.
    """
    if isinstance(problem.regularizer, CoordinatePenalty):
        return _by_coordinates(problem, budget, noise)
    if problem.bounds.norm == "linf":
        if not isinstance(problem.regularizer, L1Ball | Simplex):
            raise PlanError(
                "Rows bounded in the largest entry need a set with few corners, got "
                f"{problem.regularizer!r}; pass penalty=L1Ball() or Simplex(), or "
                "bound_norm='l2'."
            )
        squared = isinstance(problem.loss, Squared) and budget.delta > 0
        if squared and _exact_moments(problem, budget, MAX_MOMENT_NOISE_PENALTY):
            return solvers.AdaSSP(noise=noise)
        return solvers.FrankWolfe(noise=noise)
    if budget.delta == 0:
        return solvers.AMP(noise=noise)
    if isinstance(problem.loss, Squared):
        return _least_squares(problem, budget, noise)
    residuals = has_residuals(problem.loss)
    plain = isinstance(problem.regularizer, Free) and not residuals
    from tacit.solvers.preconditioned_gd import (  # noqa: PLC0415 - loads for this only
        MOST_FEATURES,
        PreconditionedGD,
    )

    narrow = problem.n_columns <= MOST_FEATURES
    descent: Any = PreconditionedGD if plain and narrow else solvers.NoisyGD
    limit = MAX_AMP_NOISE_RESIDUALS if residuals else MAX_AMP_NOISE[descent.name]
    if problem.loss.n_outputs > 1:
        limit = MAX_AMP_NOISE_OUTPUTS * min(1.0, SMALL_SIZE / problem.size)
    low_noise = noise_fraction(problem, budget) < limit
    return solvers.AMP(noise=noise) if low_noise else descent(noise=noise)


def _by_coordinates(problem: Problem, budget: Budget, noise: str) -> Any:
    """Return the coordinate descent for a penalty of each weight."""
    residuals = has_residuals(problem.loss)
    least, most = CROWDED_TARGETS if residuals else CROWDED_LABELS
    if budget.delta > 0:
        # coordinate descents reject a larger number of rows, and it is not a guess
        counted = problem.n_rows <= MAX_INTEGER_ROWS
        moments = isinstance(problem.loss, Squared) and counted
        if moments and _exact_moments(problem, budget, MAX_MOMENT_NOISE_PENALTY):
            return solvers.AdaSSP(noise=noise)
        from tacit.solvers._coordinates import rules  # noqa: PLC0415 - for this only

        ratio = rules.noise_fraction(problem, budget)
        if not (ratio > least and ratio / problem.n_features < most):
            return solvers.CoordinateDescent(noise=noise)
    return solvers.GreedyCoordinateDescent(noise=noise)


def auto_norm(n_rows: int, n_features: int, is_sparse: bool, budget: Budget) -> str:
    """Return the norm in which to bound rows of columns that have one range each.

    With more columns than rows and noise that matters, few columns stand out from
    it: bounding entries and choosing columns one by one finds them. The rows of sparse
    tables have small L2 norms, so that there the choice must stand out clearly.
    """
    if n_features <= n_rows or budget.delta == 0:
        return "l2"
    if is_sparse and clear_choices(n_rows, n_features, budget) < LEAST_CLEAR:
        return "l2"
    multiplier = calibrate(GaussianNoise, budget, rtol=1e-3)
    noise = budget.neighbors.rows_changed * multiplier * sqrt(n_features)
    limit = LEAST_SPARSE_NOISE if is_sparse else MAX_AMP_NOISE["noisy_gd"]
    return "linf" if noise / n_rows > limit else "l2"


def clear_choices(n_rows: int, n_features: int, budget: Budget) -> float:
    """Return the score of a column that all rows agree on, in units of the noise.

    The noise is that of one choice among all columns and both signs, for all of
    epsilon and neighbors that replace a row.
    """
    rows = 2 * n_rows / budget.neighbors.rows_changed
    return rows * budget.epsilon / log(2 * n_features)


def sparse_radius(n_rows: int, n_features: int, budget: Budget) -> float:
    """Return the radius of the L1 ball for sparse rows, by the bound on an entry."""
    clear = clear_choices(n_rows, n_features, budget)
    return min(clear / CLEAR_PER_RADIUS, LARGEST_SPARSE_RADIUS)


def _least_squares(problem: Problem, budget: Budget, noise: str) -> Any:
    """Return the solver for least squares.

    `AdaptiveMoments`, or `AdaSSP` where noise is negligible, as that reads the rows
    once and clips none. With a penalty or in a set, `AdaSSP` where noise is low, and
    otherwise, or with very many features, `NoisyGD`.
    """
    unconstrained = isinstance(problem.regularizer, Free)
    limit = (
        MAX_MOMENT_NOISE_BALL
        if isinstance(problem.regularizer, L2Ball)
        else MAX_MOMENT_NOISE_PENALTY
    )
    if _exact_moments(
        problem, budget, MAX_MOMENT_NOISE_FREE if unconstrained else limit
    ):
        return solvers.AdaSSP(noise=noise)
    from tacit.solvers.preconditioned_gd import (  # noqa: PLC0415 - loads for this only
        MOST_FEATURES,
    )

    if unconstrained and problem.n_columns <= MOST_FEATURES:
        return solvers.AdaptiveMoments(noise=noise)
    return solvers.NoisyGD(noise=noise, clip=_clip(problem))


def _exact_moments(problem: Problem, budget: Budget, limit: float) -> bool:
    """Return whether moments are few and have less noise than ``limit``.

    The noise is relative to the curvature of rows that are spread evenly.
    """
    level = noise_level(problem, budget, derivative=1.0) / problem.bounds.x_norm
    exact = level * problem.n_features / problem.n_rows < limit
    return exact and problem.n_features <= MAX_MOMENT_FEATURES


def _clip(problem: Problem) -> float | None:
    """Return the clip of derivatives that the loss itself does not bound."""
    if isfinite(problem.loss.max_derivative(inf, problem.bounds.y_range)):
        return None
    return SQUARED_CLIP * problem.largest_target
