"""Least squares and other risks over all rows so far, after each step of a stream."""

from tacit.incremental._erm import IncrementalERM
from tacit.incremental._gradient import GradientRegression
from tacit.incremental._keep import SparseRows
from tacit.incremental._moment_regression import MomentRegression
from tacit.incremental._projected import ProjectedRegression
from tacit.incremental._regression import IncrementalLinearRegression

__all__ = [
    "GradientRegression",
    "IncrementalERM",
    "IncrementalLinearRegression",
    "MomentRegression",
    "ProjectedRegression",
    "SparseRows",
]
