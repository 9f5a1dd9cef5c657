"""Continual release: noisy sums after each element of a stream, at one budget."""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.mechanisms.continual._base import PrefixSums
    from tacit.mechanisms.continual._blt import BLTSum
    from tacit.mechanisms.continual._growing import GrowingSum, prefix_sums
    from tacit.mechanisms.continual._trees import TreeSum
    from tacit.mechanisms.continual._window import WindowSum
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BLTSum",
    "GrowingSum",
    "PrefixSums",
    "TreeSum",
    "WindowSum",
    "prefix_sums",
]
