"""One-vs-rest losses: several classes as one problem of binary losses."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, plain
from tacit.convex._protocols import Array
from tacit.convex.losses import HuberizedHinge, Logistic

__all__ = ["OneVsRest"]


@dataclass(frozen=True)
class OneVsRest:
    """Sum over classes of the binary loss of "this class against the rest".

    Targets are class codes 0 to k - 1; margin c is that of class c.

    Parameters
    ----------
    loss
        Loss of labels -1 and 1 and one margin: `Logistic` or `HuberizedHinge`.
    n_classes
        Number k of classes, public, at least 2.

    Notes
    -----
    **Bound.** Each margin has its own term, so the Hessian in the margins is diagonal:
    its eigenvalues are those of the binary loss and its trace at most k times theirs.
    The gradient has k entries, each bounded, hence a norm of at most ``sqrt(k)`` times
    that bound: the noise on all weights grows with ``sqrt(k)``, where k fits that split
    a budget would each take k times the noise [1]_, Section 3.

    References
    ----------
    .. [1] R. Rifkin, A. Klautau, "In defense of one-vs-all classification", JMLR 5,
       2004.
    """

    targets = "codes"
    saved = True

    loss: Logistic | HuberizedHinge
    n_classes: int

    def __post_init__(self) -> None:
        plain(self)
        if not isinstance(self.loss, Logistic | HuberizedHinge):
            raise ValueError(
                "loss must be Logistic() or HuberizedHinge(), got "
                f"{type(self.loss).__name__}."
            )
        at_least(2, n_classes=self.n_classes)

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    def _labels(self, y: NDArray[Any]) -> Array:
        """Return label 1 for the class of each row and -1 for others, margin by margin.

        The order is that of ``Z.ravel()``.
        """
        labels = np.full((len(y), self.n_classes), -1.0)
        labels[np.arange(len(y)), y.astype(np.intp, copy=False)] = 1.0
        return labels.ravel()

    def value(self, y: NDArray[Any], Z: Array) -> Array:
        each = self.loss.value(self._labels(y), Z.reshape(-1, 1))
        total: Array = each.reshape(Z.shape).sum(axis=1)
        return total

    def derivative(self, y: NDArray[Any], Z: Array) -> Array:
        return self.loss.derivative(self._labels(y), Z.reshape(-1, 1)).reshape(Z.shape)

    def curvature(self, y: NDArray[Any], Z: Array) -> Array:
        each = self.loss.curvature(self._labels(y), Z.reshape(-1, 1))
        return each.reshape(Z.shape)

    def curvature_product(self, y: NDArray[Any], Z: Array, V: Array) -> Array:
        C = self.curvature(y, Z)
        C *= V
        return C

    def probability(self, Z: Array) -> Array:
        """Return class probabilities: those of the binary problems, normalized.

        Only the logistic loss has them.
        """
        if not isinstance(self.loss, Logistic):
            raise ValueError("loss must be Logistic() to give probabilities.")
        P = self.loss.probability(Z)
        # far from every class all of them vanish, and no class is the likelier
        P = np.maximum(P, np.finfo(np.float64).tiny)
        P /= P.sum(axis=1, keepdims=True)
        return P

    def max_derivative(self, reach: float, y_range: tuple[float, float]) -> float:
        return sqrt(self.n_classes) * self.loss.max_derivative(reach, y_range)

    def max_curvature(self) -> float:
        return self.loss.max_curvature()

    def max_trace(self) -> float:
        return self.n_classes * self.loss.max_curvature()

    def derivative_rank(self) -> int:
        return self.n_classes
