"""A lower bound on epsilon from one training, by guesses on many canaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from tacit._validate import fraction
from tacit.audit.bounds import (
    clopper_pearson_lower,
    gaussian_delta,
    gaussian_epsilon,
)

__all__ = [
    "Judged",
    "OneRunBound",
    "OneRunMethod",
    "bound_of_guesses",
    "chosen_and_judged",
    "guesses_from_scores",
    "most_in_one_run",
    "one_run_bound",
    "one_run_p_value",
]

OneRunMethod = Literal["any", "gaussian"]
Floats = NDArray[np.float64]

# No number of canaries shows a larger epsilon or mu
MOST_EPSILON = 60.0
MOST_MU = 20.0
# Smaller tail probabilities are inaccurate, or zero
LEAST_TAIL = 1e-290
# Fractions of the canaries that may be guessed, tried on those that choose
FRACTIONS = 0.5 ** np.arange(0, 6, 0.5)


@dataclass(frozen=True)
class Judged:
    """The bound of a chosen score, and that score on the canaries that judged it.

    Parameters
    ----------
    bound
        The bound and the counts behind it.
    position
        Which of the scores was chosen.
    scores
        Its values, turned so that higher speaks for in.
    truth
        The coins of the same canaries.
    """

    bound: OneRunBound
    position: int
    scores: Floats
    truth: NDArray[np.int64]


@dataclass(frozen=True)
class OneRunBound:
    """A lower confidence bound on epsilon from the guesses on one training.

    Parameters
    ----------
    epsilon_lower
        With probability at least ``confidence``, epsilon at ``delta`` is no smaller.
    delta, confidence, method
        As given.
    n_canaries, n_guesses, n_correct
        Canaries that were judged, guesses on them, and those that were right.
    mu_lower
        Lower confidence bound on the Gaussian-DP parameter; None for ``"any"``.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    method: str
    n_canaries: int
    n_guesses: int
    n_correct: int
    mu_lower: float | None = None

    def refutes(self, epsilon: float) -> bool:
        """Whether the claim of ``epsilon`` at this delta is below the bound."""
        return self.epsilon_lower > epsilon

    def to_dict(self) -> dict[str, Any]:
        """Return the bound as plain data."""
        return {
            "epsilon_lower": self.epsilon_lower,
            "delta": self.delta,
            "confidence": self.confidence,
            "method": self.method,
            "canaries": self.n_canaries,
            "guesses": self.n_guesses,
            "correct": self.n_correct,
            "mu_lower": self.mu_lower,
        }

    def __str__(self) -> str:
        caveat = ", assuming a Gaussian trade-off" if self.method == "gaussian" else ""
        return (
            f"epsilon >= {self.epsilon_lower:.4g} at delta={self.delta:g} with "
            f"confidence 1 - {1 - self.confidence:.2g} (one run{caveat}; "
            f"{self.n_correct} of {self.n_guesses} guesses right, "
            f"{self.n_canaries} canaries judged)"
        )


def one_run_p_value(
    n_correct: int,
    n_guesses: int,
    n_canaries: int,
    *,
    epsilon: ArrayLike,
    delta: ArrayLike = 0.0,
) -> Floats:
    """Return the largest chance of so many right guesses under a guarantee.

    Parameters
    ----------
    n_correct, n_guesses, n_canaries
        Right guesses, guesses and canaries; no more of each than of the next.
    epsilon, delta
        The guarantee, for data sets in which one canary is the other way. They are
        broadcast.

    Notes
    -----
    **Bound.** Let each of m canaries be in or out by a fair coin of its own, and let
    at most r be guessed, a number fixed beforehand. With W binomial of r trials and
    success ``e^epsilon / (1 + e^epsilon)``, and ``beta = P(W >= v)``,

        P(at least v right) <= beta + m delta beta (1 - beta) / (v P(W = v)),

    and some (epsilon, delta)-private mechanism attains it [1]_. Steinke, Nasr and
    Jagielski [2]_ have the same ``beta`` and another term for delta, which is larger
    where ``beta`` is small and too small for some guesses that are mostly right. With
    ``delta = 0`` the number of guesses may depend on the run.

    References
    ----------
    .. [1] The page *Audits* of the guarantees, section *One run*.
    .. [2] Steinke, Nasr, Jagielski. Privacy auditing with one (1) training run.
       NeurIPS 2023.
    """
    v, r, m = int(n_correct), int(n_guesses), int(n_canaries)
    if not 0 <= v <= r <= m:
        raise ValueError(
            "n_correct, n_guesses and n_canaries must be >= 0 and in this order, got "
            f"{n_correct!r}, {n_guesses!r} and {n_canaries!r}."
        )
    epsilon, delta = np.broadcast_arrays(
        np.asarray(epsilon, float), np.asarray(delta, float)
    )
    if v == 0:
        return np.ones(epsilon.shape)
    # [one-run:binomial]
    beta = special.betainc(v, r - v + 1, special.expit(epsilon))
    # in logarithms, as the point may be too small for a float
    log_choose = -np.log(r + 1) - special.betaln(v + 1, r - v + 1)
    log_point = (
        log_choose
        + v * special.log_expit(epsilon)
        + (r - v) * special.log_expit(-epsilon)
    )
    log_beta = np.log(np.maximum(beta, LEAST_TAIL))
    # the tail has its first point in it, so the ratio is never below one
    ratio = np.exp(np.clip(log_beta - log_point, 0.0, 700.0))
    # where the tail is too small too, each point is at most this multiple of the last
    decay = np.exp(np.minimum(epsilon, 700.0)) * (r - v) / (v + 1)
    geometric = 1 / np.maximum(1 - decay, 1 / (r - v + 1))
    ratio = np.where(beta < LEAST_TAIL, geometric, ratio)
    # [one-run:slack]
    return np.asarray(np.minimum(beta + m * delta * (1 - beta) * ratio / v, 1.0))


def one_run_bound(
    guesses: ArrayLike,
    truth: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    method: OneRunMethod = "any",
) -> OneRunBound:
    """Return a lower bound on epsilon from guesses on the canaries of one training.

    Parameters
    ----------
    guesses
        One number a canary: 1 for in, -1 for out, 0 where nothing is guessed. How
        many are not 0 must be fixed before the run, unless ``delta`` is 0.
    truth
        1 for each canary that was in, -1 for those that were out. Each was settled by
        a fair coin of its own.
    delta
        Delta at which epsilon is bounded.
    confidence
        Probability with which the bound holds.
    method
        ``"any"`` holds for any mechanism. ``"gaussian"`` bounds the parameter of
        Gaussian DP and turns it into epsilon.

    Notes
    -----
    **Bound.** With ``"any"``, the least epsilon at which `one_run_p_value` is more than
    ``1 - confidence``. It is for the relation of the coins: canaries that are present
    or absent bound epsilon for neighbors that add or remove a row, canaries that are
    one row or another bound it for neighbors that replace one.

    With ``"gaussian"``, a mu-Gaussian private mechanism keeps every pair of epsilon and
    `gaussian_delta`, and the smallest of their p-values counts; Mahloujifar, Melis and
    Chaudhuri [1]_ do so by a recursion. The bound on mu holds for every such
    mechanism. The step to epsilon **assumes that the trade-off is Gaussian**, as in
    `gaussian_bound`. Even against exactly Gaussian noise mu stays below the truth,
    as canaries of one run need not be independent of each other.

    References
    ----------
    .. [1] Mahloujifar, Melis, Chaudhuri. Auditing f-differential privacy in one run.
       ICML 2025.

    Examples
    --------
    >>> from tacit.audit import one_run_bound
    >>> truth = [1, -1] * 50
    >>> round(one_run_bound(truth, truth).epsilon_lower, 2)
    3.49
    """
    given, coins = _signs("guesses", guesses), _signs("truth", truth)
    if given.shape != coins.shape:
        raise ValueError(
            f"guesses and truth must have one length, got {given.size} and "
            f"{coins.size}."
        )
    if not coins.all():
        raise ValueError("truth must be 1 or -1 for every canary.")
    correct = int(np.sum(given * coins > 0))
    counts = correct, int(np.count_nonzero(given)), given.size
    return bound_of_guesses(counts, delta=delta, confidence=confidence, method=method)


def most_in_one_run(
    n_canaries: int, *, delta: float, confidence: float, method: OneRunMethod
) -> float:
    """Return the bound when each canary is guessed and right."""
    counts = (n_canaries,) * 3
    found = bound_of_guesses(counts, delta=delta, confidence=confidence, method=method)
    return found.epsilon_lower


def guesses_from_scores(
    scores: ArrayLike, n_guesses: int, center: float | None = None
) -> NDArray[np.int64]:
    """Return 1 for high scores and -1 for low ones, for those furthest from the center.

    Distances are in ranks, so it does not matter whether one tail is longer. From the
    center on, the median unless given, a canary is guessed to be in. If it is infinite,
    only the lowest are guessed, or only the highest.
    """
    values = np.asarray(scores, float)
    if values.ndim != 1 or np.isnan(values).any():
        raise ValueError("scores must be one-dimensional, without NaN.")
    if not 0 <= n_guesses <= values.size:
        raise ValueError(
            f"n_guesses must be >= 0 and at most the number of scores, {values.size}, "
            f"got {n_guesses!r}."
        )
    center = float(np.median(values)) if center is None else center
    order = np.argsort(values, kind="stable")
    n_below = int(np.sum(values < center))
    signed = np.arange(values.size) + 0.5 - n_below
    furthest = np.argsort(-np.abs(signed), kind="stable")[:n_guesses]
    guesses = np.zeros(values.size, dtype=np.int64)
    guesses[order[furthest]] = np.where(signed[furthest] > 0, 1, -1)
    return guesses


def chosen_and_judged(
    candidates: Floats,
    truth: NDArray[np.int64],
    *,
    delta: float,
    confidence: float,
    method: OneRunMethod,
) -> Judged:
    """Return the bound of the best of several scores, and how it was judged.

    Every other canary chooses the score, its direction, its tails and the number of
    guesses; the others judge. They are canaries of a mechanism in which the coins of
    the former are fixed, so the theorem holds for them alone. ``candidates`` has a row
    for each score.
    """
    chosen, coins = candidates[:, 0::2], truth[0::2]
    # by ranks, so that one huge number does not decide
    leans = stats.rankdata(chosen, axis=1) @ (coins - coins.mean())
    position = int(np.argmax(np.abs(leans)))
    direction = -1.0 if leans[position] < 0 else 1.0
    choosing = chosen[position] * direction
    judging, judges = candidates[position, 1::2] * direction, truth[1::2]
    middle = np.mean([np.median(choosing[coins == s]) for s in set(coins.tolist())])

    # both tails, or one of them
    ways = list(product(FRACTIONS.tolist(), (float(middle), np.inf, -np.inf)))
    terms: dict[str, Any] = {"delta": delta, "method": method}

    def guessed(way: tuple[float, float], scores: Floats) -> NDArray[np.int64]:
        share, center = way
        return guesses_from_scores(scores, max(round(share * scores.size), 1), center)

    # with little room for luck, as the best of many is chosen
    strict = 1 - (1 - confidence) / len(ways)

    def tried(way: tuple[float, float]) -> tuple[float, float]:
        guesses = guessed(way, choosing)
        found = one_run_bound(guesses, coins, confidence=strict, **terms)
        # where nothing can be shown yet, what would be with more canaries
        sure = clopper_pearson_lower(found.n_correct, found.n_guesses, 0.05)
        return found.epsilon_lower, float(sure)

    guesses = guessed(max(ways, key=tried), judging)
    bound = one_run_bound(guesses, judges, confidence=confidence, **terms)
    return Judged(bound, position, judging, judges)


def bound_of_guesses(
    counts: tuple[int, int, int],
    *,
    delta: float,
    confidence: float,
    method: OneRunMethod,
) -> OneRunBound:
    """Return the bound of so many right guesses, guesses and judged canaries."""
    if method not in get_args(OneRunMethod):
        raise ValueError(
            f"method must be one of {get_args(OneRunMethod)}, got {method!r}."
        )
    fraction(closed=False, confidence=confidence)
    fraction(closed=method == "any", delta=delta)
    correct, guesses, canaries = counts
    stated = delta, confidence, method, canaries, guesses, correct
    if method == "any" and delta == 0:
        # the success at which the binomial tail is as small, without a search
        success = clopper_pearson_lower(correct, guesses, 1 - confidence)
        return OneRunBound(float(max(special.logit(success), 0.0)), *stated)
    if method == "any":

        def chance(epsilon: float) -> float:
            return float(one_run_p_value(*counts, epsilon=epsilon, delta=delta))

        return OneRunBound(_largest(chance, MOST_EPSILON, 1 - confidence), *stated)

    def chance_of_mu(mu: float) -> float:
        # [one-run:gaussian] any grid of epsilons will do, as each of them holds
        grid = np.linspace(0.0, mu * (mu / 2 + 6.0), 200)
        deltas = gaussian_delta(grid, mu)
        return float(one_run_p_value(*counts, epsilon=grid, delta=deltas).min())

    mu = _largest(chance_of_mu, MOST_MU, 1 - confidence)
    return OneRunBound(float(gaussian_epsilon(delta, mu)), *stated, mu_lower=mu)


def _largest(chance: Callable[[float], float], most: float, p_fail: float) -> float:
    """Return a parameter, as large as can be found, with a chance of at most p_fail."""
    low, high = 0.0, most
    for _ in range(36):
        middle = (low + high) / 2
        if chance(middle) <= p_fail:
            low = middle
        else:
            high = middle
    return low


def _signs(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype == bool:  # False would pass for no guess
        raise ValueError(f"{name} must be 1 and -1, not True and False.")
    if array.ndim != 1 or array.size < 1 or not np.isin(array, (-1, 0, 1)).all():
        raise ValueError(f"{name} must be a one-dimensional array of 1, -1 and 0.")
    return array.astype(np.int64)
