"""Implicit gradient steps: the derivative is taken at the end of the step.

A step of length a from ``w`` along one row x solves
``min_v |v - w|^2 / 2 + a loss(y, <x, v>) + a strength / 2 |v|^2``. With
``c = 1 / (1 + a strength)`` it ends at ``c (w - a s x)``, where the number s is the
derivative of the loss there: one equation in one unknown.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import nonnegative, positive
from tacit.convex._protocols import Array, Loss
from tacit.convex.losses import Huber, HuberizedHinge, Logistic, Softmax, Squared
from tacit.convex.objective import UNIT
from tacit.convex.one_vs_rest import OneVsRest

__all__ = [
    "DERIVATIVE_UNITS",
    "derivative_error",
    "implicit_derivatives",
    "implicit_step",
    "kernel_loss",
]

# Units of round-off of a computed derivative, in units of the largest: see
# `implicit_derivatives`
DERIVATIVE_UNITS = 64


def kernel_loss(loss: Any, derivative: float = inf) -> tuple[bool, int, float] | None:
    """Return the code of a loss in the compiled loops, None for other losses.

    It is whether each class has a margin against the rest, the kind of the loss of one
    margin, and its shape parameter. The squared loss is linear where its derivative
    would exceed ``derivative``.
    """
    from tacit.convex import _implicit_kernels as kernels  # noqa: PLC0415 - numba

    # exact types, as a subclass may override the derivative
    if type(loss) is OneVsRest:
        one = kernel_loss(loss.loss)
        return None if one is None else (True, *one[1:])
    if type(loss) is Logistic:
        return False, kernels.LOGISTIC, loss._knee
    if type(loss) is HuberizedHinge:
        return False, kernels.HINGE, loss.h
    if type(loss) is Huber:
        return False, kernels.HUBER, loss.threshold
    if type(loss) is Squared:
        return False, kernels.HUBER, derivative
    if type(loss) is Softmax:
        return False, kernels.SOFTMAX, 0.0
    return None


def implicit_derivatives(
    loss: Loss | str, y: NDArray[Any], z: Array, weight: Array | float
) -> Array:
    """Return the derivative s of each row's loss at the margin ``z - weight * s``.

    Parameters
    ----------
    loss
        `Logistic`, `HuberizedHinge`, `Huber` or `Squared`, or ``"hinge"`` or
        ``"absolute"`` for the losses with a corner, whose derivative there is the one
        that the step ends with.
    y
        Targets or labels, as the loss wants them.
    z
        Margins before the step, shape (n,).
    weight
        Length of the step times the squared norm of each row, at least 0.

    Notes
    -----
    **Bound.** The answer is off by at most 64 units of round-off of the largest
    derivative, plus the curvature of the loss times 8 units of ``1 + |y| + |z|``, for
    all inputs. The equation has one root, as its left side ``s - derivative(z - weight
    s)`` rises by at least one for one; Huber's losses, hinges and absolute values are
    straight in pieces, which gives it in closed form. For the logistic loss an interval
    around it is halved down to a quarter in units of the margin, and six of Newton's
    steps then square the error, as the second derivative is below the first.
    """
    from tacit.convex import _implicit_kernels as kernels  # noqa: PLC0415 - numba

    corners = {
        "hinge": (False, kernels.HINGE, 0.0),
        "absolute": (False, kernels.ABSOLUTE, 0.0),
    }
    known = corners.get(loss) if isinstance(loss, str) else kernel_loss(loss)
    if known is None or known[0] or known[1] == kernels.SOFTMAX:
        raise ValueError(
            "loss must be Logistic(), HuberizedHinge(), Huber(), Squared(), 'hinge' or "
            f"'absolute', got {loss!r}."
        )
    margins = np.ascontiguousarray(z, dtype=np.float64)
    weights = np.ascontiguousarray(np.broadcast_to(weight, margins.shape), np.float64)
    if not (weights >= 0).all():
        raise ValueError("weight must hold numbers >= 0.")
    targets = np.ascontiguousarray(y, dtype=np.float64)
    derivatives = np.empty_like(margins)
    kernels.implicit_derivatives(
        known[1], known[2], targets, margins, weights, derivatives
    )
    return derivatives


def implicit_step(
    loss: Loss | str, w: Array, x: Array, y: float, step: float, strength: float = 0.0
) -> Array:
    """Return the end of one implicit step along a row.

    It is the minimizer over v of
    ``|v - w|^2 / 2 + step (loss(y, <x, v>) + strength / 2 |v|^2)``.

    Parameters
    ----------
    loss
        As in `implicit_derivatives`.
    w
        Weights before the step, shape (p,).
    x
        Features of the row.
    y
        Its target or label.
    step
        Length of the step.
    strength
        Factor of half the squared weights in what is minimized.

    Notes
    -----
    **Bound.** Two steps from different weights end no further apart than they began,
    times ``1 / (1 + step * strength)``, and a step goes no further than its length
    times the gradient: it is the proximal map of a convex function [1]_.

    References
    ----------
    .. [1] N. Parikh, S. Boyd, "Proximal algorithms", Foundations and Trends in
       Optimization 1, 2014, Sections 2.3 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.convex import Squared
    >>> from tacit.convex.implicit import implicit_step
    >>> implicit_step(Squared(), np.zeros(2), np.array([1.0, 0.0]), 1.0, step=1.0)
    array([0.5, 0. ])
    """
    positive(step=step)
    nonnegative(strength=strength)
    shrink = 1.0 / (1.0 + step * strength)
    near, short = shrink * np.asarray(w, dtype=np.float64), shrink * step
    z, weight = float(x @ near), short * float(x @ x)
    s = implicit_derivatives(loss, np.array([y]), np.array([z]), weight)
    moved: Array = near - short * float(s[0]) * x
    return moved


def derivative_error(
    *,
    n_features: int,
    n_outputs: int,
    x_norm: float,
    w_norm: float,
    largest_target: float,
    derivative: float,
    curvature: float,
) -> float:
    """Return a bound on the error of a row's derivatives, as computed in float64.

    All arguments but the shape of the weights are bounds: on the norms of row, weights
    and derivatives, on absolute targets and on the curvature of the loss.

    Notes
    -----
    **Bound.** Margins are off by p + 1 units of ``x_norm * w_norm``, and what is made
    of them and of targets before the derivative by 8 units of their size. An implicit
    derivative moves by at most the curvature times as much. The weight ``step |x|^2``
    has a relative error of p + 2 units, and with it the derivative one of no more. The
    rest is that of `implicit_derivatives`, or of a derivative of softmax.
    """
    sizes = x_norm * w_norm + n_outputs * (largest_target + 1.0)
    margins = (n_features + 10) * sizes * UNIT
    own = (n_features + DERIVATIVE_UNITS + 4 * n_outputs) * UNIT * derivative
    return 1.01 * (curvature * margins + own)
