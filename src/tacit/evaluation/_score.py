"""Private scores of models on rows they were not fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, xlogy

from tacit._estimators import (
    checked_targets,
    guaranteed_neighbors,
)
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import PlainNumbers, fraction
from tacit.additive._model import AdditiveModel
from tacit.evaluation._measures import (
    PARTS,
    Measure,
    answering,
    last_step,
    number_of_rows,
    predictions,
    without_warnings,
)
from tacit.linear_model._base import PrivateLinearModel
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy import (
    Budget,
    Event,
    LaplaceNoise,
    Ledger,
    Neighbors,
    PrivacyReport,
    calibrate,
)

__all__ = [
    "PrivateScore",
    "ScorePlan",
    "assumptions_of",
    "noisy_sums",
    "private_score",
    "scored",
    "weights_of",
]

LABEL = "private score"
# Fraction of the failure probability for the noise; the rest is for sampling
NOISE_FRACTION = 0.1


@dataclass(frozen=True)
class PrivateScore:
    """A private score, with an interval for noise and sampling.

    Compare an accuracy with the frequency of the most common label, and an error with
    that of a constant prediction. Take these from public sources, or charge for them:
    they are not part of the score.

    Parameters
    ----------
    value
        The noisy score.
    low, high
        Ends of an interval for the score on the whole population.
    measure
        ``"accuracy"``, or ``"mean absolute error"`` or ``"root mean squared error"``
        in units of the targets.
    privacy
        The charge for it.
    level
        Probability with which the interval covers the score of the population.
    """

    value: float
    low: float
    high: float
    measure: str
    privacy: PrivacyReport
    level: float = 0.95

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain data."""
        return {
            "measure": self.measure,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "epsilon": self.privacy.guarantee.epsilon,
        }


def noisy_sums(
    mechanism: Laplace | Gaussian,
    parts: NDArray[np.int64],
    counted: bool,
    rng: Generator,
) -> NDArray[np.float64]:
    """Return the noisy sum of the scores of rows.

    Where the number of rows is private, the sum of one less each score comes second.
    """
    total = float(parts.sum()) / PARTS
    # [score:rest] a row adds one in total to both sums
    rest = [] if counted else [len(parts) - total]
    return mechanism(np.array([total, *rest]), rng)


@dataclass(frozen=True)
class ScorePlan(PlainNumbers):
    """Noise of the sums, fixed without data; ``n_rows`` is None where it is private."""

    n_rows: int | None
    multiplier: float

    @property
    def mechanism(self) -> Laplace:
        """What draws the noise."""
        # [score:sensitivity] a row counts one in all, and a replaced one moves by one
        return Laplace(self.multiplier, 1.0)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def size(self) -> int:
        """How many sums are released."""
        return 1 if self.n_rows is not None else 2

    def run(self, parts: NDArray[np.int64], rng: Generator) -> NDArray[np.float64]:
        """Return the noisy sum, and that of one less each score, if any."""
        return noisy_sums(self.mechanism, parts, self.n_rows is not None, rng)

    def bounds(self, noisy: NDArray[np.float64], alpha: float) -> tuple[float, ...]:
        """Return bounds on the sum, then on the rest, that fail with ``alpha``."""
        scale = self.mechanism.scale(self.size)
        # a little more, for rounding to the grid
        reach = scale * (log(self.size / alpha) + 1e-6)
        low = max(float(noisy[0]) - reach, 0.0)
        high = max(float(noisy[0]) + reach, 0.0)
        if self.n_rows is not None:
            low, high = min(low, self.n_rows), min(high, self.n_rows)
            return low, high, self.n_rows - high, self.n_rows - low
        rest = float(noisy[1])
        return low, high, max(rest - reach, 0.0), max(rest + reach, 0.0)


def private_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    level: float = 0.95,
    neighbors: str | Neighbors | None = None,
    ledger: Ledger | None = None,
    random_state: RandomSource = None,
) -> PrivateScore:
    """Release a private score of a model.

    Parameters
    ----------
    model
        A fitted classifier or regressor. One that is not of this library must predict
        each row by itself; a regressor must have a public ``y_range``.
    X, y
        Rows that the model was not fitted on, as from `hold_out`. On rows that it was
        fitted on, the score is as private, but too good.
    epsilon
        Privacy budget of the score, without a delta.
    level
        Probability with which the interval covers the score of the population.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``; None for that of the model.
    ledger
        Ledger to charge; None creates one for this call.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Notes
    -----
    **Guarantee.** Pure with epsilon (Dwork, McSherry, Nissim and Smith 2006). A row
    counts between zero and one: whether its label is right, or the distance of its
    prediction to its target, both clipped to ``y_range``, over the width of that range.
    Where rows are replaced their sum has Laplace noise of scale ``1 / epsilon``. Where
    they are added or removed, the number of rows less the sum has noise too; see the
    page on the private score among the guarantees.

    **Bound.** The interval joins the exact quantile of the noise with that of
    Clopper and Pearson (1934) for the accuracy, and of Hoeffding (1963), Theorem 1, for
    the error: for independent rows it holds for any number of them. How wide it can be
    is known beforehand: for n rows, noise moves an error by up to
    ``width log(10 / (1 - level)) / (epsilon n)`` with the width of ``y_range``, and an
    accuracy by as much with a width of one. Where that is no less than what you expect
    of the error, the interval is not worth its epsilon.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.evaluation import hold_out, private_score
    >>> from tacit.linear_model import LogisticRegression
    >>> X, y = (census := make_census(5000, random_state=0)).X, census.y
    >>> train, test = hold_out(5000, 0.2, random_state=0)
    >>> model = LogisticRegression(
    ...     1.0, classes=[0, 1], x_norm=1.0
    ... ).fit(X[train], y[train])
    >>> score = private_score(model, X[test], y[test], epsilon=0.5)
    >>> score.low <= score.value <= score.high
    True
    """
    return scored(
        model,
        X,
        y,
        None,
        epsilon=epsilon,
        level=level,
        neighbors=neighbors,
        ledger=ledger,
        random_state=random_state,
    )


def scored(
    model: Any,
    X: Any,
    y: Any,
    measure: str | None,
    *,
    epsilon: float,
    level: float,
    neighbors: str | Neighbors | None,
    ledger: Ledger | None,
    random_state: RandomSource,
) -> PrivateScore:
    """Return a score by the name of its measure, or the usual one of the model."""
    # long: checks, charge and interval, in the order of every release
    fraction(closed=False, level=level)
    measured = Measure.of(model, measure)
    model = answering(model)
    if neighbors is None:
        neighbors = guaranteed_neighbors(last_step(model))
    budget = Budget(epsilon, 0.0, Neighbors.of(neighbors))
    counted = budget.neighbors is Neighbors.REPLACE_ONE
    n_rows = number_of_rows(model, X, 1 if counted else 0)
    y = checked_targets(y, n_rows, labels=measured.labels)
    plan = ScorePlan(n_rows if counted else None, calibrate(LaplaceNoise, budget))
    # noise too large for the grid is rejected here, not after the charge
    plan.mechanism.scale(plan.size)
    rng = noise_generator(random_state, LABEL, plan, *weights_of(model))

    def parts() -> Any:
        with without_warnings():
            return measured.parts(predictions(model, X, n_rows), y)

    assumptions = assumptions_of(model, measured)
    seeded = is_seeded(random_state)
    release = Release(plan.event, budget, LABEL, assumptions, seeded=seeded)
    noisy, report = charged_run(
        release, ledger, lambda parts: plan.run(parts, rng), check=parts
    )
    return _score(plan, noisy, measured, level, report)


def _score(
    plan: ScorePlan,
    noisy: NDArray[np.float64],
    measure: Measure,
    level: float,
    report: PrivacyReport,
) -> PrivateScore:
    """Return the score that noisy sums give, with its interval."""
    bounds = plan.bounds(noisy, (1 - level) * NOISE_FRACTION)
    low, high = _interval(bounds, level, measure.labels)
    total = max(float(noisy.sum()), 1.0) if plan.n_rows is None else plan.n_rows
    value = min(max(float(noisy[0]) / total, 0.0), 1.0)
    return PrivateScore(
        measure.in_units(value),
        measure.in_units(min(low, value)),
        measure.in_units(max(high, value)),
        measure.name,
        report,
        level,
    )


def weights_of(model: Any) -> list[bytes]:
    """Return the released weights, which distinguish models."""
    model = last_step(model)
    if isinstance(model, AdditiveModel):
        return [part.tobytes() for part in model.released_arrays()]
    if not isinstance(model, PrivateLinearModel):
        return []
    return [np.asarray(part).tobytes() for part in (model.coef_, model.intercept_)]


def assumptions_of(model: Any, measure: Measure) -> tuple[str, ...]:
    """Return the assumptions of the guarantee of a score."""
    assumptions = []
    if not isinstance(model, PrivateLinearModel | AdditiveModel):
        assumptions.append("the model predicts each row from that row alone")
    if measure.ends is not None:
        ends = measure.ends
        clipped = "predictions and targets are clipped to [{:g}, {:g}]"
        assumptions.append(clipped.format(*ends))
    return tuple(assumptions)


def _interval(
    bounds: tuple[float, ...], level: float, right: bool
) -> tuple[float, float]:
    """Return an interval for the mean of the population, in [0, 1].

    Both ends grow with the sum and fall with the rest, so the extreme sums and rests
    give them.
    """
    least, most, rest_least, rest_most = bounds
    side = (1 - level) * (1 - NOISE_FRACTION) / 2
    if right:
        # counts are integers
        k, m = ceil(least), floor(rest_most)
        low = 0.0 if k == 0 else float(betaincinv(k, m + 1, side))
        k, m = floor(most), ceil(rest_least)
        high = 1.0 if m == 0 else float(betaincinv(k + 1, m, 1 - side))
        return low, high
    low = _hoeffding(least, rest_most, side)
    high = 1 - _hoeffding(rest_least, most, side)
    return low, high


def _hoeffding(total: float, rest: float, side: float) -> float:
    """Return the mean that a sum this large has with probability at most ``side``."""
    if total <= 0:
        return 0.0
    n = total + rest

    def excess(mean: float) -> float:
        gone = xlogy(total, total / (n * mean))
        gone += xlogy(rest, rest / (n * (1 - mean))) if rest > 0 else 0.0
        return float(gone - log(1 / side))

    top = total / n
    if excess(1e-300) <= 0:
        return 0.0
    return float(brentq(excess, 1e-300, min(top, 1 - 1e-16), xtol=1e-12))
