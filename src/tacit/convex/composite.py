"""The certified minimizer of a smooth objective plus a convex regularizer."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from tacit.convex._protocols import Array, Certified
from tacit.convex.certificate import (
    NEWTON_STEPS,
    Certificate,
    Minimum,
    NotCertified,
    line_search,
    worth_reusing,
)
from tacit.convex.objective import UNIT, norm_roundoff

__all__ = [
    "Composite",
    "Step",
    "Verdict",
    "accelerate",
    "descend",
    "newton_composite",
    "power",
]

# Rounds of the quadratic model, and the most accelerated steps in one of them
MODEL_ROUNDS = 80
MODEL_BURST = 640
# Evaluations of the derivative along one Newton step in the model
DERIVATIVES = 20
POWER_STEPS = 30


@dataclass(frozen=True, eq=False)
class Step:
    """A proximal step: ``V`` is the computed proximal point of ``U``."""

    V: Array
    U: Array
    size: float


@dataclass(frozen=True, eq=False)
class Verdict:
    """A computed subgradient at V, its norm, and bounds on what is exact."""

    V: Array
    R: Array
    norm: float
    roundoff: float
    bound: float
    G: Array


@dataclass(frozen=True, eq=False)
class Composite:
    """A smooth objective with its certificate, and the regularizer r."""

    smooth: Certificate
    regularizer: Certified

    def step(self, W: Array, G: Array, size: float) -> Step:
        """Return the proximal step from W along the gradient G."""
        U = W - size * G
        return Step(self.regularizer.prox(U, size), U, size)

    def judge(self, step: Step) -> Verdict:
        """Return a subgradient at the end of a proximal step, and its exact bound.

        Let V be the exact proximal point of U, which need not be the gradient step
        of any point: ``(U - V) / size`` is in the subdifferential of r at V, by the
        conditions of optimality of the proximal map, and with the gradient of F at V
        it is a subgradient R of ``F + r``. What is computed, at the rounded point
        V', differs from it by at most

        - the round-off of the gradient at V';
        - ``(1 / size + M) |V - V'|``, with M the Lipschitz constant of the gradient
          that `Objective` states, from public bounds, and the distance as bounded by
          `prox_roundoff`;
        - three roundings, of ``U - V'``, its quotient, and the sum.

        To this ``ridge |V - V'|`` is added, so that V' as well as V is within the
        bound over the ridge of the minimizer.

        The step is first reduced to ``1 / M``, from V' along ``U - V'``, which in
        exact numbers leads back to V': rounding grows with U, hence with the step.
        """
        smooth, most_curved = self.smooth, self.most_curved()
        size = min(step.size, 1 / most_curved)
        U = step.V + (step.U - step.V) * (size / step.size)
        step = Step(self.regularizer.prox(U, size), U, size)
        G, _, roundoff = smooth.gradient(step.V)
        pull = (step.U - step.V) / step.size
        R = pull + G
        norm = float(np.linalg.norm(R))
        apart = self.regularizer.prox_roundoff(step.U, step.V)
        roundoff += 4 * UNIT * (float(np.linalg.norm(pull)) + norm)
        roundoff += 1.01 * apart * (1 / step.size + most_curved + smooth.ridge)
        bound = norm_roundoff(norm, R.size) + roundoff
        return Verdict(step.V, R, norm, roundoff, bound, G)

    def most_curved(self) -> float:
        """Return the public bound on the Lipschitz constant of the gradient."""
        smooth, loss = self.smooth, self.smooth.objective.loss
        rows = smooth.rows.n_rows * smooth.x_norm**2 * loss.max_curvature()
        return smooth.ridge + rows


@dataclass(frozen=True, eq=False)
class _Model:
    """The quadratic ``<G, Y - W> + <Y - W, H (Y - W)> / 2`` plus the regularizer."""

    problem: Composite
    W: Array
    G: Array
    H: Array
    size: float

    def apply(self, D: Array) -> Array:
        product: Array = (self.H @ D.ravel()).reshape(D.shape)
        return product

    def gradient(self, Y: Array) -> Array:
        return self.G + self.apply(Y - self.W)

    def step(self, Y: Array) -> Step:
        return self.problem.step(Y, self.gradient(Y), self.size)

    def solve(self, Y: Array, fraction: float, least: float) -> tuple[Step, float]:
        """Minimize until the subgradient is a fraction of its first norm, or ``least``.

        Also returns the norm of ``Y - prox(Y - size * gradient(Y))`` over the size at
        the start. For a step below the inverse of the largest curvature that is,
        times a positive matrix, the gradient of a convex function with the same
        minimizer, the envelope of [1]_, quadratic as long as the same entries are at
        corners of r. Newton's method finds its minimum, with a line search on the
        sign of the derivative.

        References
        ----------
        .. [1] L. Stella, A. Themelis, P. Patrinos, "Forward-backward quasi-Newton
           methods for nonsmooth optimization problems", Computational Optimization
           and Applications 67, 2017.
        """
        burst = 20
        F, step = self._miss(Y)
        miss = float(np.linalg.norm(F))
        first = miss / self.size
        goal = max(fraction * first, least)
        floor = 4 * UNIT * float(np.linalg.norm(step.U))
        for _ in range(MODEL_ROUNDS):
            if np.linalg.norm(F / self.size - self.apply(F)) <= goal or miss <= floor:
                break
            D = self._newton(step, F)
            t = self._along(
                Y, D, float(np.vdot(F - self.size * self.apply(F), D)), miss
            )
            if t > 0:
                Y = Y + t * D
            else:  # rounding has spoiled the direction; these steps always converge
                ridge = self.problem.smooth.ridge
                Y = accelerate(self.step, step.V, self.size, ridge, burst, goal).V
                burst = min(2 * burst, MODEL_BURST)
            F, step = self._miss(Y)
            miss = float(np.linalg.norm(F))
        return step, first

    def _miss(self, Y: Array) -> tuple[Array, Step]:
        step = self.step(Y)
        return Y - step.V, step

    def _along(self, Y: Array, D: Array, derivative: float, miss: float) -> float:
        """Return nearly the best step size along D, from derivatives of the envelope.

        They are increasing and piecewise linear along the step: false position, halving
        the derivative at an end that stays (the Illinois rule). Zero where D is not a
        descent direction.
        """
        if not derivative < 0:
            return 0.0
        low, low_derivative, high, high_derivative = 0.0, derivative, 1.0, derivative
        t, stayed = 1.0, 0
        for _ in range(DERIVATIVES):
            F = self._miss(Y + t * D)[0]
            here = float(np.vdot(F - self.size * self.apply(F), D))
            if t == 1.0 and (here <= 0 or np.linalg.norm(F) <= miss / 2):
                return 1.0
            if abs(here) <= 0.1 * abs(derivative):
                break
            if here > 0:
                high, high_derivative = t, here
                low_derivative, stayed = low_derivative / (2 if stayed > 0 else 1), 1
            else:
                low, low_derivative = t, here
                high_derivative, stayed = high_derivative / (2 if stayed < 0 else 1), -1
            t = low - low_derivative * (high - low) / (high_derivative - low_derivative)
        return t

    def _newton(self, step: Step, F: Array) -> Array:
        """Return Newton's direction; zero if rounding made its system singular."""
        regularizer = self.problem.regularizer
        moves, J = regularizer.prox_jacobian(step.U, step.V, step.size)
        D = -F.ravel()
        rest = np.where(moves, 0.0, D)
        H = self.H[moves]
        scaled = step.size * J
        try:
            system = np.eye(J.shape[0]) - J + scaled @ H[:, moves]
            D[moves] = np.linalg.solve(system, D[moves] - scaled @ (H @ rest))
        except np.linalg.LinAlgError:
            return np.zeros_like(F)
        return D.reshape(F.shape)


def accelerate(
    proximal_step: Callable[[Array], Step],
    W: Array,
    size: float,
    ridge: float,
    n_steps: int,
    goal: float,
) -> Step:
    """Take accelerated proximal steps until one is shorter than ``size * goal / 4``.

    Momentum starts afresh when it points uphill [1]_, and is never more than strong
    convexity calls for.

    References
    ----------
    .. [1] B. O'Donoghue, E. Candes, "Adaptive restart for accelerated gradient
       schemes", Foundations of Computational Mathematics 15, 2015.
    """
    root = sqrt(min(1.0, size * ridge))
    most = (1 - root) / (1 + root)
    V, Y, t = W, W, 1.0
    for _ in range(n_steps):
        step = proximal_step(Y)
        if np.linalg.norm(Y - step.V) <= size * goal / 4:
            break
        move = step.V - V
        if np.vdot(Y - step.V, move) > 0:
            t = 1.0
        grown = (1 + sqrt(1 + 4 * t * t)) / 2
        V, Y = step.V, step.V + min((t - 1) / grown, most) * move
        t = grown
    return step


def newton_composite(
    certify: Certificate,
    regularizer: Certified,
    W: Array,
    tolerance: float,
    chords: int,
) -> Minimum:
    """Return the certified minimum by steps to the minimizers of quadratic models."""
    found = descend(Composite(certify, regularizer), W, tolerance, chords)
    if found.gradient_norm > tolerance:
        raise NotCertified(found)
    return found


def descend(problem: Composite, W: Array, tolerance: float, chords: int) -> Minimum:
    """Take proximal Newton steps until certified, or until nothing more can be seen.

    A full step D is taken when the subgradient at its end does not point along D: by
    convexity ``F + r`` is not higher there. Or when it halves the least norm of a
    subgradient so far. See the smooth twin for why that converges.
    """
    smooth, regularizer = problem.smooth, problem.regularizer
    objective, rows = smooth.objective, smooth.rows
    W = regularizer.prox(W, 1 / problem.most_curved())
    G = smooth.gradient(W)[0]
    H: Array | None = None
    size, least, norm = 0.0, inf, inf
    nearest = Minimum(W, inf)
    for _ in range(2 * NEWTON_STEPS):  # corners of r cost steps of their own
        fresh = H is None
        if H is None:
            H = objective.hessian(rows, W)
            size = 0.95 / _largest(H)
        model = _Model(problem, W, G, H, size)
        step, first = model.solve(W, 1e-3, 0.05 * tolerance)
        norm, least = min(norm, first), min(least, first)
        verdict = problem.judge(step)
        if verdict.bound <= tolerance:
            return Minimum(verdict.V, verdict.bound)
        nearest = nearest.better(Minimum(verdict.V, verdict.bound))
        if verdict.roundoff >= tolerance and verdict.norm <= verdict.roundoff:
            break
        D = verdict.V - W
        if np.vdot(verdict.R, D) <= 0 or verdict.norm <= least / 2:
            # an old Hessian contracts about twice as badly as its own first step
            rate = (2.0 if fresh else 1.0) * verdict.norm / norm
            goal = tolerance - verdict.roundoff
            if not worth_reusing(rate, verdict.norm, goal, chords):
                H = None
            W, G, norm = verdict.V, verdict.G, verdict.norm
            least = min(least, norm)
        else:
            H = None
            if fresh:
                rise = regularizer.value(verdict.V) - regularizer.value(W)
                W = W + line_search(smooth, W, D, rise) * D
                G, norm = smooth.gradient(W)[0], inf
    return nearest


def _largest(H: Array) -> float:
    """Return nearly the largest eigenvalue, rather above it than below."""
    most = float(np.abs(H).sum(axis=1).max())
    return min(most, 1.02 * power(lambda v: H @ v, H.shape[0]))


def power(product: Callable[[Array], Array], size: int) -> float:
    """Return an eigenvalue that is nearly the largest, and not above it."""
    v: Array = 1.0 + 0.5 * np.cos(np.arange(1.0, size + 1.0))
    value = 0.0
    for _ in range(POWER_STEPS):
        v /= np.linalg.norm(v)
        v = product(v)
        value = float(np.linalg.norm(v))
        if value == 0.0:
            break
    return value
