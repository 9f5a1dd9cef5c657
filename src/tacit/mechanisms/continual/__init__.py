"""Noisy sums of a stream, one after each element, for one fixed privacy."""

from tacit.mechanisms.continual._base import PrefixSums
from tacit.mechanisms.continual._blt import BLTState, BLTSum
from tacit.mechanisms.continual._growing import (
    GrowingState,
    GrowingSum,
    prefix_sums,
)
from tacit.mechanisms.continual._honaker import HonakerState, HonakerTree
from tacit.mechanisms.continual._square_root import SquareRootState, SquareRootSum
from tacit.mechanisms.continual._symmetric import to_matrix, to_vector
from tacit.mechanisms.continual._tree import TreeState, TreeSum
from tacit.mechanisms.continual._window import WindowState, WindowSum

__all__ = [
    "BLTState",
    "BLTSum",
    "GrowingState",
    "GrowingSum",
    "HonakerState",
    "HonakerTree",
    "PrefixSums",
    "SquareRootState",
    "SquareRootSum",
    "TreeState",
    "TreeSum",
    "WindowState",
    "WindowSum",
    "prefix_sums",
    "to_matrix",
    "to_vector",
]
