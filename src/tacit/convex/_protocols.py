"""Protocols of losses, regularizers and sets."""

from typing import Any, Protocol, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Certified", "ConvexSet", "Loss", "Regularizer", "is_set"]

Array = NDArray[np.float64]


class Loss(Protocol):
    """A convex function of the margins of a row, with the constants privacy needs.

    Weights ``W`` have shape (p, k), margins ``Z = X @ W`` shape (n, k) and targets
    ``y`` shape (n,): numbers, labels -1 and 1, or class codes, as the loss says. A
    class that also declares ``saved = True`` is saved with models, if it is in this
    library.

    Notes
    -----
    **Bound.** Noise is computed from ``max_derivative`` and ``max_curvature``: one that
    is too small breaks privacy. They hold at all margins, also far beyond those of
    useful models, and are the least such bounds: the shared tests want them reached
    within 1% at margins up to 6 and targets in [-1, 2]. The curvature may jump.

    A result for a row depends on that row alone, in new arrays of float64. There is no
    error, warning or NaN at any finite margin, and the derivative is finite and within
    ``DERIVATIVE_UNITS`` roundings, relative to the largest.
    """

    @property
    def targets(self) -> str:
        """What it takes: ``"numbers"``, ``"labels"`` -1 and 1, or ``"codes"``."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number k of margins of a row."""
        ...

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        """Return the loss of each row, shape (n,)."""
        ...

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        """Return the gradient in the margins, shape (n, k)."""
        ...

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        """Return the diagonal of the Hessian in the margins, shape (n, k)."""
        ...

    def curvature_product(self, y: NDArray[Any], Z: Array, V: Array) -> Array:
        """Return each row's Hessian in the margins times that row of ``V``."""
        ...

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        """Return the largest L2 norm of a row's gradient over ``|z| <= reach``."""
        ...

    def max_curvature(self) -> float:
        """Return the largest eigenvalue that a row's Hessian can have."""
        ...

    def max_trace(self) -> float:
        """Return the largest trace that a row's Hessian can have."""
        ...

    def derivative_rank(self) -> int:
        """Return the dimension of the span of the gradients in the margins."""
        ...


class Regularizer(Protocol):
    """A closed convex function of the weights with a cheap proximal map."""

    @property
    def radius(self) -> float:
        """Largest Frobenius norm of weights of finite value; inf when unbounded."""
        ...

    def value(self, W: Array) -> float:
        """Return the value, inf outside the domain."""
        ...

    def prox(self, W: Array, step: float) -> Array:
        """Return the minimizer of ``|V - W|^2 / 2 + step * value(V)`` over V."""
        ...


class ConvexSet(Regularizer, Protocol):
    """An indicator: ``prox`` is the projection, whatever the step.

    ``dim`` and ``k`` are the shape of the weights.
    """

    def lmo(self, G: Array) -> Array:
        """Return a member S that minimizes ``<G, S>``."""
        ...

    def contains(self, W: Array, tol: float = 1e-9) -> bool:
        """Return whether ``W`` is a member up to ``tol``."""
        ...

    def diameter(self, dim: int, k: int = 1) -> float:
        """Return the largest Frobenius distance between two members."""
        ...

    def width(self, dim: int, k: int = 1) -> float:
        """Return an upper bound on the Gaussian width E sup <G, W>."""
        ...


def is_set(regularizer: Regularizer) -> TypeGuard[ConvexSet]:
    """Return whether a regularizer is the indicator of a set, not a penalty."""
    return hasattr(regularizer, "lmo")


class Certified(Regularizer, Protocol):
    """A regularizer with a bound on the rounding of its proximal map.

    `minimize` certifies minima with it, and estimators take it as a penalty. What tends
    to set weights to zero declares ``makes_zeros = True``.
    """

    def prox_roundoff(self, U: Array, V: Array) -> float:
        """Return a bound on the distance of ``V = prox(U, step)`` from the exact point.

        It holds for any step.
        """
        ...

    def prox_jacobian(
        self, U: Array, V: Array, step: float
    ) -> tuple[NDArray[np.bool_], Array]:
        """Return where ``V = prox(U, step)`` moves with U, and its derivative there.

        The first is a mask of entries of ``U.ravel()``, the second a matrix over them.
        At corners any one-sided derivative will do: it only serves to find a good step.
        """
        ...

    def scaled(self, factor: float) -> Self:
        """Return the regularizer times a positive factor."""
        ...

    def rescaled(self, unit: float) -> Self:
        """Return it for weights divided by ``unit``, itself over the squared unit."""
        ...
