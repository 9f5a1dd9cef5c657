"""Continual release: noisy sums after each element of a stream, at one budget."""

from tacit.mechanisms.continual._base import PrefixSums
from tacit.mechanisms.continual._blt import BLTSum
from tacit.mechanisms.continual._growing import GrowingSum, prefix_sums
from tacit.mechanisms.continual._trees import TreeSum
from tacit.mechanisms.continual._window import WindowSum

__all__ = [
    "BLTSum",
    "GrowingSum",
    "PrefixSums",
    "TreeSum",
    "WindowSum",
    "prefix_sums",
]
