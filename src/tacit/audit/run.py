"""Train many times on two neighbors and bound epsilon from below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit._seeds import AuditSeed, run_seeds
from tacit.audit.bounds import clopper_pearson_bound, gaussian_bound
from tacit.plots import audit_roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AuditResult", "audit"]

Method = Literal["clopper-pearson", "gaussian"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AuditResult:
    """Result of `audit`.

    Parameters
    ----------
    epsilon_lower
        With probability at least ``confidence``, epsilon at ``delta`` is no smaller.
    delta, confidence, method, n_runs
        As given; ``n_runs`` counts the trainings on each side.
    hits, trials
        How often the chosen event happened on the two sides, in the judged runs.
    mu_lower
        Lower confidence bound on the Gaussian-DP parameter; None for other methods.
    scores_first, scores_second
        Scores of the judged runs on the two sides, for `plot`.
    favors_first
        Whether the event speaks for the first data set.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    method: str
    n_runs: int
    hits: tuple[int, int]
    trials: tuple[int, int]
    mu_lower: float | None = None
    scores_first: Floats | tuple[()] = field(default=(), repr=False, compare=False)
    scores_second: Floats | tuple[()] = field(default=(), repr=False, compare=False)
    favors_first: bool = True

    def refutes(self, epsilon: float) -> bool:
        """Whether the claim of ``epsilon`` at this delta is below the bound."""
        return self.epsilon_lower > epsilon

    def plot(self, epsilon: float | None = None, ax: Axes | None = None) -> Axes:
        """Draw how well the judged runs were distinguished, over what a claim forbids.

        Parameters
        ----------
        epsilon
            The claim, at the delta of the audit; None draws none.
        ax
            Where to draw; None makes new axes.
        """
        scores = self.scores_first, self.scores_second
        name = f"{self.n_runs} runs a side"
        return audit_roc(*scores, epsilon, self.delta, ax=ax, label=name)

    def __str__(self) -> str:
        caveat = ", assuming a Gaussian trade-off" if self.method == "gaussian" else ""
        return (
            f"epsilon >= {self.epsilon_lower:.4g} at delta={self.delta:g} with "
            f"confidence 1 - {1 - self.confidence:.2g} ({self.method}{caveat}; "
            f"{self.n_runs} runs a side; event seen {self.hits[0]} : {self.hits[1]} "
            f"times in {self.trials[0]} : {self.trials[1]} judged runs)"
        )


def audit(
    train: Callable[[Any, int], ArrayLike],
    pair: Sequence[Any],
    *,
    n_runs: int,
    delta: float,
    score: Callable[[Floats], float] | None = None,
    confidence: float = 1 - 1e-6,
    method: Method = "clopper-pearson",
    random_state: AuditSeed = None,
) -> AuditResult:
    """Return a lower confidence bound on the epsilon of a trainer.

    Parameters
    ----------
    train
        Called as ``train(data, seed)``; returns what is released as one array, always
        of one shape. All its randomness must come from the seed, an integer below
        2**32 that differs from run to run.
    pair
        Two neighboring data sets, each in the form that ``train`` takes.
    n_runs
        Trainings on each side. Half choose the attack, half judge it.
    delta
        Delta at which epsilon is bounded.
    score
        Maps one release to a number that distinguishes the sides. It must be fixed
        beforehand. By default the difference of the means over the variances, a
        linear discriminant learned on the first half of the runs.
    confidence
        Probability with which the bound holds.
    method
        ``"clopper-pearson"`` holds for any mechanism; ``"gaussian"`` is sharper and
        assumes a Gaussian trade-off.
    random_state
        Fixes the seeds handed to ``train``.

    Notes
    -----
    **Bound.** That of `clopper_pearson_bound` or `gaussian_bound`. A bound above the
    claimed epsilon refutes the claim with that confidence; a bound below it proves
    nothing, since a better attack or a worse pair may exist.
    """
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}, got {method!r}.")
    if n_runs < 4:
        raise ValueError(f"n_runs must be >= 4, got {n_runs!r}.")
    if len(pair) != 2:
        raise ValueError(f"pair must be two data sets, got {len(pair)}.")
    seeds = run_seeds(random_state, 2 * n_runs)
    first = _train_all(train, pair[0], seeds[:n_runs])
    second = _train_all(train, pair[1], seeds[n_runs:])
    if first.shape != second.shape:
        raise ValueError("train must return arrays of one shape on both data sets.")
    scores = _scores(first, second, score)
    bound = clopper_pearson_bound if method == "clopper-pearson" else gaussian_bound
    found = bound(*scores, delta=delta, confidence=confidence)
    return AuditResult(
        epsilon_lower=found.epsilon_lower,
        delta=delta,
        confidence=confidence,
        method=method,
        n_runs=n_runs,
        hits=found.hits,
        trials=found.trials,
        mu_lower=found.mu_lower,
        scores_first=scores[0][n_runs // 2 :],
        scores_second=scores[1][n_runs // 2 :],
        favors_first=found.favors_first,
    )


def _train_all(
    train: Callable[[Any, int], ArrayLike], data: Any, seeds: list[int]
) -> Floats:
    # a copy of each, as a trainer may hand out one buffer again and again
    releases = [np.array(train(data, seed), dtype=float) for seed in seeds]
    if len({r.shape for r in releases}) != 1:
        raise ValueError("train must return arrays of one shape on every run.")
    return np.stack(releases)


def _scores(
    first: Floats, second: Floats, score: Callable[[Floats], float] | None
) -> list[Floats]:
    if score is not None:
        return [np.array([float(score(r)) for r in side]) for side in (first, second)]
    return _discriminant(first.reshape(len(first), -1), second.reshape(len(second), -1))


def _discriminant(first: Floats, second: Floats) -> list[Floats]:
    """Return scores in the direction that distinguishes the first halves."""
    half = len(first) // 2
    if not (np.isfinite(first[:half]).all() and np.isfinite(second[:half]).all()):
        raise ValueError(
            "train must return finite numbers; give a score that maps the others to "
            "a number."
        )
    gap = first[:half].mean(axis=0) - second[:half].mean(axis=0)
    middle = second[:half].mean(axis=0) + gap / 2
    spread = first[:half].var(axis=0) + second[:half].var(axis=0)
    # a coordinate without noise gets a huge weight, not an infinite one
    floored = spread + (1e-6 * gap) ** 2
    direction = np.divide(gap, floored, out=np.zeros_like(gap), where=floored > 0)
    return [(side - middle) @ direction for side in (first, second)]
