"""Assertions about laws, each with a stated chance of failing wrongly.

Every use has a positive control: `assert_detects` or `assert_counts_detect` with a law
that is wrong by a stated factor, on the same samples.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

P_FAIL = 1e-6


def assert_follows(
    samples: ArrayLike, cdf: Callable[..., ArrayLike], *, p_fail: float = P_FAIL
) -> None:
    """Kolmogorov-Smirnov; fails wrongly with probability at most ``p_fail``."""
    p = stats.kstest(samples, cdf).pvalue
    assert p > p_fail, f"p-value {p:.2g} <= {p_fail:.0e}: samples do not follow the law"


def assert_detects(
    samples: ArrayLike, cdf: Callable[..., ArrayLike], *, p_fail: float = P_FAIL
) -> None:
    """Control of `assert_follows`: the wrong law must be rejected."""
    p = stats.kstest(samples, cdf).pvalue
    assert p <= p_fail, f"p-value {p:.2g} > {p_fail:.0e}: the wrong law went unnoticed"


def assert_counts_follow(
    counts: ArrayLike, probabilities: ArrayLike, *, p_fail: float = P_FAIL
) -> None:
    """Chi-square on counts of all cells, in the order of ``probabilities``."""
    p = _chi_square(counts, probabilities)
    assert p > p_fail, f"p-value {p:.2g} <= {p_fail:.0e}: counts do not follow the law"


def assert_counts_detect(
    counts: ArrayLike, probabilities: ArrayLike, *, p_fail: float = P_FAIL
) -> None:
    """Control of `assert_counts_follow`: the wrong law must be rejected."""
    p = _chi_square(counts, probabilities)
    assert p <= p_fail, f"p-value {p:.2g} > {p_fail:.0e}: the wrong law went unnoticed"


def assert_probability(
    successes: int, trials: int, probability: float, *, p_fail: float = P_FAIL
) -> None:
    """Exact binomial test of a stated probability."""
    p = stats.binomtest(successes, trials, probability).pvalue
    assert p > p_fail, f"{successes} of {trials} is not probability {probability:.3g}"


def assert_probability_at_most(
    successes: int, trials: int, bound: float, *, p_fail: float = P_FAIL
) -> None:
    """Exact binomial test of an upper bound on a probability."""
    p = stats.binomtest(successes, trials, bound, alternative="greater").pvalue
    assert p > p_fail, f"{successes} of {trials} is over probability {bound:.3g}"


def _chi_square(counts: ArrayLike, probabilities: ArrayLike) -> float:
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    expected = counts.sum() * probabilities
    # the chi-square limit needs some tens in a cell at p-values as small as P_FAIL
    small = expected < 50
    observed = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], counts.sum() - expected[~small].sum())
    if not small.any():
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected, sum_check=False).pvalue)
