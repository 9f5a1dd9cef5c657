"""Bounds on the round-off of computed gradients and second moments."""

__all__ = ["gradient_roundoff", "moment_roundoff", "norm_roundoff"]

# Unit round-off of float64
UNIT = 2.0**-53
# Operations in the derivatives of one row, each of relative error within four units:
# exp, a division and a few sums, for softmax a sum over the outputs as well
DERIVATIVE_UNITS = 32


def _gamma(operations: float) -> float:
    """Return a bound on the relative error of a chain of rounded operations.

    Higham's ``m u / (1 - m u)`` is at most this while ``m u <= 0.009``, and this,
    unlike that, is linear, so it may be averaged over rows.
    """
    return 1.01 * operations * UNIT


def norm_roundoff(norm: float, size: int) -> float:
    """Return an upper bound on a norm of ``size`` entries from its computed value."""
    return norm * (1 + _gamma(size + 4))


def moment_roundoff(n_rows: int, additions: float, row: float) -> float:
    """Return a bound on the error of computed second moments, in Frobenius norm.

    ``row`` bounds the norm of the matrix of absolute terms of one row.
    """
    # each entry goes through two scalings, a product, the target's division by the
    # root of two and the additions
    return _gamma(additions + 16) * row * n_rows


def gradient_roundoff(
    *,
    n_rows: int,
    shape: tuple[int, int],
    additions: float,
    x_norm: float,
    derivative: float,
    curvature: float,
    w_norm: float,
    ridge: float = 0.0,
    tilt_norm: float = 0.0,
    products: float | None = None,
) -> float:
    """Return a bound on the Frobenius norm of the error of a computed gradient.

    The gradient is ``sum_i x_i s(x_i W)^T + ridge W + tilt``, in float64. No argument
    depends on a row, once W is given, but for `products` where it is not left out.

    Parameters
    ----------
    n_rows
        Number of rows.
    shape
        Shape (p, k) of the weights.
    additions
        Number of additions that a row's term goes through in the sum, on average over
        rows; at most ``n_rows``. For sums over blocks of m rows done in chunks of c it
        is ``c + m / c + n_rows / m``.
    x_norm
        Bound on the L2 norm of a row.
    derivative
        Bound on the L2 norm of a row's derivative.
    curvature
        Bound on the curvature of the loss.
    w_norm
        Frobenius norm of W.
    ridge
        Ridge penalty.
    tilt_norm
        Frobenius norm of the tilt.
    products
        Number of products in a row's margins, on average over rows; None for p. Less
        for sparse rows.

    Notes
    -----
    **Bound.** Higham's model of floating point [1]_, Sections 3.1 and 3.5, for sums
    in any order, with or without fused operations. Underflow adds less than 1e-290
    for fewer than 1e15 entries and is left out.

    References
    ----------
    .. [1] N. Higham, "Accuracy and stability of numerical algorithms", 2002.
    """
    p, k = shape
    # Margins: p products and their sum, so |fl(x W) - x W| <= gamma_p |x| |W|
    # (Cauchy-Schwarz in each column). The derivative there differs by the curvature
    # times that, and its own evaluation adds a few units of the largest derivative. In
    # softmax, exp(z - max) has a relative error of |z - max| units, but is itself
    # exp(-|z - max|), and t exp(-t) < 1: the constant covers it.
    products = p if products is None else products
    derivative_error_bound = curvature * _gamma(products) * x_norm * w_norm
    derivative_error_bound += _gamma(DERIVATIVE_UNITS + 4 * k) * derivative
    # Each computed term is x_i times a derivative of at most this norm.
    terms = n_rows * x_norm * (derivative + derivative_error_bound)
    # Sum: one product, the additions, then ridge * W (a product, an addition) and the
    # tilt (an addition). Entry by entry the error is gamma times the sum of absolute
    # terms, whose matrix has at most the sum of the terms' norms as its norm.
    summed = _gamma(additions + 5) * (terms + ridge * w_norm + tilt_norm)
    # The computed norms of W and the tilt, and this formula, round as well.
    return (n_rows * x_norm * derivative_error_bound + summed) * (
        1 + _gamma(4 * p * k + 64)
    )
