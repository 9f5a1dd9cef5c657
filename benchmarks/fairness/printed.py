"""A bound as published, for comparison with that of the library, which is smaller."""

from __future__ import annotations

from math import log, sqrt


def printed_distance(scale: float, n_weights: int, *, failure: float = 0.01) -> float:
    """Return the published bound on what Gaussian noise moves weights by.

    It is Mangold 2023, Lemma 6.5.1. That of `output_perturbation_distance` is three to
    four and a half times smaller for 9 to 1,000 weights and a failure of 0.01.
    """
    return scale * sqrt(4 * n_weights * log(2 / failure))
