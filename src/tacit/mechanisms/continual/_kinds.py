"""Prefix sums by name."""

from __future__ import annotations

from tacit._validate import one_of
from tacit.mechanisms.continual._base import PrefixSums
from tacit.mechanisms.continual._growing import KINDS, GrowingSum

__all__ = ["prefix_sums"]


def prefix_sums(
    name: str,
    horizon: int | None,
    multiplier: float,
    sensitivity: float,
    noise: str = "grid",
    largest: float | None = None,
) -> PrefixSums | GrowingSum:
    """Return the mechanism of that name, for a stream of a known or unknown length.

    Parameters
    ----------
    name
        ``"blt"``, the best in little memory; ``"square_root"``, a little better in the
        memory of the whole stream; ``"tree"``; or ``"honaker"``, a better tree.
    horizon
        Longest stream planned for; None for a `GrowingSum` of that kind.
    multiplier
        Privacy of the whole stream, as the multiplier of one Gaussian mechanism.
    sensitivity
        How far neighbors can move one element of the stream, in L2.
    noise
        ``"grid"`` or ``"float"``.
    largest
        Largest size of a number in an element, beyond which it is cut.

    Examples
    --------
    >>> from tacit.mechanisms.continual import prefix_sums
    >>> for name in ("tree", "honaker", "square_root", "blt"):
    ...     mechanism = prefix_sums(name, 65_536, 1.0, 1.0)
    ...     print(name, round(mechanism.deviation(size=1).max(), 2))
    tree 16.49
    honaker 12.23
    square_root 4.6
    blt 4.62
    """
    one_of(KINDS, name=name)
    if horizon is None:
        return GrowingSum(multiplier, sensitivity, noise, largest, kind=name)
    return KINDS[name](horizon, multiplier, sensitivity, noise, largest)
