"""What a private model is worth: noise in its coefficients, intervals and a score.

`noise_intervals` costs nothing, as it uses what the fit released. The others read rows
and are charged like any fit.
"""

from tacit.inference._intervals import coefficient_intervals, require_theory
from tacit.inference._noise import Intervals, noise_intervals
from tacit.inference._score import PrivateScore, private_score
from tacit.inference._split import hold_out
from tacit.linear_model._base import CoefficientNoise

__all__ = [
    "CoefficientNoise",
    "Intervals",
    "PrivateScore",
    "coefficient_intervals",
    "hold_out",
    "noise_intervals",
    "private_score",
    "require_theory",
]
