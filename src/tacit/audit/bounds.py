"""Lower bounds on epsilon from the scores of many trainings on two neighbors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from tacit._validate import fraction

__all__ = [
    "EpsilonBound",
    "bound_of_counts",
    "clopper_pearson_bound",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "gaussian_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "largest_bound",
]

Floats = NDArray[np.float64]

# hits and trials of the event under the favored side, then under the other one
Objective = Callable[[Any, int, Any, int], Floats]

N_THRESHOLDS = 200


@dataclass(frozen=True)
class EpsilonBound:
    """A lower confidence bound on epsilon and the event that gave it.

    Parameters
    ----------
    epsilon_lower
        With probability at least ``confidence``, epsilon at ``delta`` is no smaller.
    delta, confidence, method
        As given.
    threshold, above
        The event is ``score >= threshold`` when ``above``, else ``score <= threshold``.
    favors_first
        Whether the event speaks for the first data set.
    hits, trials
        Counts on the first and second data set, in the runs that were judged.
    mu_lower
        Lower confidence bound on the Gaussian-DP parameter; None for other methods.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    method: str
    threshold: float
    above: bool
    favors_first: bool
    hits: tuple[int, int]
    trials: tuple[int, int]
    mu_lower: float | None = None


def clopper_pearson_lower(hits: ArrayLike, trials: ArrayLike, p_fail: float) -> Floats:
    """Return a lower bound on a probability that is wrong with chance ``p_fail``.

    Notes
    -----
    **Bound.** Exact for every probability and every count, zero included [1]_.

    References
    ----------
    .. [1] Clopper, Pearson. The use of confidence or fiducial limits illustrated in
       the case of the binomial. Biometrika 26 (1934).
    """
    k, n = np.broadcast_arrays(np.asarray(hits, float), np.asarray(trials, float))
    inner = special.betaincinv(np.maximum(k, 1), n - k + 1, p_fail)
    return np.where(k > 0, inner, 0.0)


def clopper_pearson_upper(hits: ArrayLike, trials: ArrayLike, p_fail: float) -> Floats:
    """Return an upper bound on a probability that is wrong with chance ``p_fail``.

    Notes
    -----
    **Bound.** One minus `clopper_pearson_lower` of the misses.
    """
    k, n = np.broadcast_arrays(np.asarray(hits, float), np.asarray(trials, float))
    # the complement keeps tiny p_fail, which 1 - p_fail would round
    inner = special.betainccinv(k + 1, np.maximum(n - k, 1), p_fail)
    return np.where(k < n, inner, 1.0)


def gaussian_delta(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    """Return the least delta at which mu-Gaussian DP is (epsilon, delta)-DP.

    Notes
    -----
    **Bound.** ``Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``, exact
    [1]_, Corollary 2.13.

    References
    ----------
    .. [1] Dong, Roth, Su. Gaussian differential privacy. JRSS B 84 (2022).
    """
    return np.exp(_log_gaussian_delta(epsilon, mu))


def gaussian_epsilon(delta: ArrayLike, mu: ArrayLike) -> Floats:
    """Return the least epsilon at which mu-Gaussian DP is (epsilon, delta)-DP.

    Rounded down, as befits a lower bound. ``delta`` and ``mu`` are broadcast.
    """
    delta, mu = np.broadcast_arrays(np.asarray(delta, float), np.asarray(mu, float))
    if not np.all((delta > 0) & (delta < 1)):
        raise ValueError("delta must be > 0 and < 1 for a Gaussian trade-off.")
    if not np.all(np.isfinite(mu)):
        raise ValueError("mu must be finite.")
    positive = mu > 0
    mu = np.where(positive, mu, 1.0)
    # Phi(-x) <= exp(-x^2 / 2) closes the bracket from above
    low, high = np.zeros(mu.shape), mu * (mu / 2 + np.sqrt(-2 * np.log(delta)))
    for _ in range(100):
        middle = (low + high) / 2
        beyond = _log_gaussian_delta(middle, mu) > np.log(delta)
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.where(positive, low, 0.0)


def _log_gaussian_delta(epsilon: ArrayLike, mu: ArrayLike) -> Floats:
    epsilon, mu = np.asarray(epsilon, float), np.asarray(mu, float)
    log_hit = special.log_ndtr(mu / 2 - epsilon / mu)
    log_miss = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
    with np.errstate(divide="ignore"):
        ratio = -np.expm1(np.minimum(log_miss - log_hit, 0.0))
        return np.asarray(log_hit + np.log(ratio))


def clopper_pearson_bound(
    first: ArrayLike, second: ArrayLike, *, delta: float, confidence: float
) -> EpsilonBound:
    """Return a lower bound on epsilon from threshold events, for any mechanism.

    Scores are of independent trainings on the two data sets, in any order that does not
    depend on the scores. The first half of each chooses the event.

    Notes
    -----
    **Bound.** An (epsilon, delta)-DP mechanism has ``P(E) <= exp(epsilon) Q(E) +
    delta`` for every event E and both orders of the neighbors. Tail, threshold and
    direction are chosen on the first halves, so the second halves judge one event
    only and no union over the choices is due: the failure probability is split
    evenly between a Clopper-Pearson lower bound on P(E) and an upper bound on Q(E)
    [1]_. The answer is never negative.

    References
    ----------
    .. [1] Jagielski, Ullman, Oprea. Auditing differentially private machine learning:
       how private is private SGD? NeurIPS 2020, Section 3.
    """
    fraction(closed=False, confidence=confidence)
    fraction(delta=delta)
    value, event = _select_then_judge(first, second, _log_ratio(delta, confidence))
    return EpsilonBound(max(value, 0.0), delta, confidence, "clopper-pearson", *event)


def gaussian_bound(
    first: ArrayLike, second: ArrayLike, *, delta: float, confidence: float
) -> EpsilonBound:
    """Return a lower bound on epsilon for a mechanism with a Gaussian trade-off.

    Scores are as in `clopper_pearson_bound`, and ``delta`` must be positive.

    Notes
    -----
    **Bound.** A test with error rates ``fpr`` and ``fnr`` shows ``mu >= Phi^-1(1 -
    fpr) - Phi^-1(fnr)`` for mu-Gaussian DP [1]_. Both rates enter by their
    Clopper-Pearson upper bounds, with the threshold chosen on other runs, and mu is
    turned into epsilon by the exact profile of `gaussian_delta`.

    The statement about mu holds for every mechanism that is mu-Gaussian DP. The step
    from mu to epsilon **assumes that the trade-off of the mechanism is Gaussian**, as
    for one or several Gaussian releases. For others, such as Laplace noise or sampled
    batches, the figure is a heuristic and can exceed the true epsilon.

    References
    ----------
    .. [1] Nasr et al. Tight auditing of differentially private machine learning.
       USENIX Security 2023, Section 4.
    """
    fraction(closed=False, confidence=confidence, delta=delta)
    value, event = _select_then_judge(first, second, _separation(confidence))
    mu = max(value, 0.0)
    epsilon = float(gaussian_epsilon(delta, mu))
    return EpsilonBound(epsilon, delta, confidence, "gaussian", *event, mu_lower=mu)


def largest_bound(
    n_runs: int, *, delta: float, confidence: float, method: str
) -> float:
    """Return the bound of an attack that is never wrong: the most that can be shown."""
    miss = clopper_pearson_upper(0, n_runs - n_runs // 2, (1 - confidence) / 2)
    if method == "gaussian":
        mu = max(float(-2 * special.ndtri(miss)), 0.0)
        return float(gaussian_epsilon(delta, mu))
    return float(np.log(np.maximum(1 - miss - delta, miss) / miss))


def bound_of_counts(
    hits: tuple[int, int],
    trials: tuple[int, int],
    favors_first: bool,
    *,
    delta: float,
    confidence: float,
    method: str,
) -> float:
    """Return the lower bound on epsilon that these counts of an event give."""
    p, q = (0, 1) if favors_first else (1, 0)
    counts = hits[p], trials[p], hits[q], trials[q]
    if method == "gaussian":
        mu = max(float(_separation(confidence)(*counts)), 0.0)
        return float(gaussian_epsilon(delta, mu))
    return max(float(_log_ratio(delta, confidence)(*counts)), 0.0)


def _log_ratio(delta: float, confidence: float) -> Objective:
    p_fail = (1 - confidence) / 2

    def log_ratio(k: Any, n: int, other_k: Any, other_n: int) -> Floats:
        hit = clopper_pearson_lower(k, n, p_fail) - delta
        miss = clopper_pearson_upper(other_k, other_n, p_fail)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(hit, 0.0)) - np.log(miss))

    return log_ratio


def _separation(confidence: float) -> Objective:
    p_fail = (1 - confidence) / 2

    def separation(k: Any, n: int, other_k: Any, other_n: int) -> Floats:
        fnr = clopper_pearson_upper(n - np.asarray(k), n, p_fail)
        fpr = clopper_pearson_upper(other_k, other_n, p_fail)
        return np.asarray(-special.ndtri(fpr) - special.ndtri(fnr))

    return separation


def _select_then_judge(
    first: ArrayLike, second: ArrayLike, objective: Objective
) -> tuple[float, tuple[float, bool, bool, tuple[int, int], tuple[int, int]]]:
    """Choose the best event on the first halves; return its value on the others."""
    sides = [_scores("first", first), _scores("second", second)]
    chosen = [np.sort(s[: s.size // 2]) for s in sides]
    judged = [s[s.size // 2 :] for s in sides]
    thresholds = _thresholds(np.concatenate(chosen))
    best = (-np.inf, float(thresholds[0]), True, True)
    for above in (True, False):
        hits = [_hits(s, thresholds, above=above) for s in chosen]
        for favors_first in (True, False):
            p, q = (0, 1) if favors_first else (1, 0)
            values = objective(hits[p], chosen[p].size, hits[q], chosen[q].size)
            i = int(np.argmax(values))
            if values[i] > best[0]:
                best = (float(values[i]), float(thresholds[i]), above, favors_first)
    _, threshold, above, favors_first = best
    k = [int(np.sum(s >= threshold if above else s <= threshold)) for s in judged]
    n = [s.size for s in judged]
    p, q = (0, 1) if favors_first else (1, 0)
    value = float(objective(k[p], n[p], k[q], n[q]))
    return value, (threshold, above, favors_first, (k[0], k[1]), (n[0], n[1]))


def _thresholds(pool: Floats) -> Floats:
    # close together in both tails, where strong events are, and sparse between
    pool, half = np.sort(pool), (pool.size - 1) // 2
    ranks = np.geomspace(1, half + 1, N_THRESHOLDS // 2).astype(int) - 1
    return np.unique(np.concatenate([pool[ranks], pool[pool.size - 1 - ranks]]))


def _hits(ordered: Floats, thresholds: Floats, *, above: bool) -> NDArray[np.intp]:
    if above:
        return ordered.size - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")


def _scores(name: str, scores: ArrayLike) -> Floats:
    array = np.asarray(scores, float)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(
            f"{name} must be a one-dimensional array of at least two scores, got shape "
            f"{array.shape}."
        )
    if np.isnan(array).any():
        raise ValueError(f"{name} must not contain NaN; map such runs to a number.")
    return array
