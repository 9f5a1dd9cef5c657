"""Regret of private Hedge against the number of steps and of experts.

One expert errs on a quarter of the rows and all others on half of them; or, against
draws that stay too long, the best expert changes in the middle of the stream. One row a
step, epsilon 1 and delta 1e-6. Beside the regret of draws and of weights, over repeats
with costs and noise of their own, stand their bounds and the regret of Hedge without
privacy. The exponent is the slope of the logarithm of regret against that of the number
of steps, fitted to each repeat alone; the interval is Student's over repeats.

    python -m benchmarks.streams.hedge [--quick]

Sums of costs with noise are released in blocks, which has the law of single steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from benchmarks.streams.common import RESULTS
from benchmarks.tables import arguments, markdown
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import t as student

from tacit._random import as_generator
from tacit.privacy import Budget
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._hedge import Hedge
from tacit.streaming.online._hedge_learners import (
    MOST_SUM,
    UNITS,
    Experts,
    SampledHedge,
)

BUDGET = Budget(1.0, 1e-6)
PLAYS = ("sample", "weights", "without privacy")
# Steps taken at once
BLOCK = 2048
# First number of steps that exponents are fitted from
FIT_FROM = 2**11

Costs = NDArray[np.float64]


def alike(start: int, n: int, T: int, p: int, rng: Generator) -> Costs:
    """Return costs of 0 and 1, the same odds at all times."""
    chances = np.full(p, 0.5)
    chances[p // 2] = 0.25
    return (rng.random((n, p)) < chances).astype(np.float64)


def turned(start: int, n: int, T: int, p: int, rng: Generator) -> Costs:
    """Return costs of 0 and 1 whose best expert changes in the middle."""
    chances = np.full((n, p), 0.5)
    early = np.arange(start, start + n) < T // 2
    chances[:, 0] = np.where(early, 0.25, 0.5)
    chances[:, p // 2] = np.where(early, 0.5, 0.125)
    return (rng.random((n, p)) < chances).astype(np.float64)


SEQUENCES: dict[str, Callable[..., Costs]] = {"alike": alike, "turned": turned}


def hedge_regret(play: str, sequence: str, T: int, p: int, seed: int) -> float:
    """Return the cost of all plays less that of the best single expert."""
    rows, rng = as_generator(seed), as_generator(seed + 1)
    player = _player(play, T, p)
    total, paid = np.zeros(p), 0.0
    for start in range(0, T, BLOCK):
        n = min(BLOCK, T - start)
        costs = SEQUENCES[sequence](start, n, T, p, rows)
        paid += player(costs, rng)
        total += costs.sum(axis=0)
    return float(paid - total.min())


def bound(play: str, T: int, p: int) -> float:
    """Return the bound on the expected regret."""
    if play == "without privacy":
        return float(np.sqrt(T * np.log(p) / 2))
    return Hedge(play).plan(Experts(p), BUDGET, StreamTerms(T)).regret_bound


def _player(play: str, T: int, p: int) -> Any:
    """Return what takes a block of costs and pays for plays made before each."""
    if play == "without privacy":
        return Weights(None, np.sqrt(T / (8 * np.log(p))), p)
    learner = Hedge(play).plan(Experts(p), BUDGET, StreamTerms(T))
    if isinstance(learner, SampledHedge):
        return Draws(learner, p)
    return Weights(learner.mechanism, learner.temperature, p)


class Weights:
    """Weights after each step, from sums with noise or without."""

    def __init__(self, mechanism: Any, temperature: float, p: int) -> None:
        self.mechanism, self.temperature = mechanism, temperature
        self.state = None if mechanism is None else mechanism.init((p,))
        self.last = np.zeros(p)

    def __call__(self, costs: Costs, rng: Generator) -> float:
        if self.mechanism is None:
            sums = self.last + costs.cumsum(axis=0)
        else:
            units = (2 * costs - 1) * UNITS
            self.state, sums = self.mechanism.steps(self.state, units, rng)
            sums = sums / (2 * UNITS)
        known = np.vstack([self.last, sums[:-1]])
        self.last = sums[-1]
        weights = softmax(-known / self.temperature, axis=1)
        return float((weights * costs).sum())


class Draws:
    """An expert drawn at times, as `SampledHedge` draws it."""

    def __init__(self, learner: SampledHedge, p: int) -> None:
        self.learner, self.total, self.t = learner, np.zeros(p), 0
        self.expert: int | None = None

    def __call__(self, costs: Costs, rng: Generator) -> float:
        hold, paid, start = self.learner.hold, 0.0, 0
        first = (self.learner.horizon - self.t - 1) % hold
        for end in [*range(first + 1, len(costs) + 1, hold), None]:
            part = costs[start:end]
            paid += float(
                part.mean(axis=1).sum()
                if self.expert is None
                else part[:, self.expert].sum()
            )
            if end is None:
                self.total += ((2 * part - 1) * UNITS).sum(axis=0)
                break
            self.total += ((2 * part - 1) * UNITS).sum(axis=0)
            scores = -np.clip(self.total, -MOST_SUM, MOST_SUM)
            self.expert, start = self.learner.mechanism(scores, rng), end
        self.t += len(costs)
        return paid


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and how far to each side of it Student's interval goes."""
    spread = np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(student.ppf(0.975, len(values) - 1) * spread)


def measured(
    exponents: Sequence[int], experts: Sequence[int], repeats: int
) -> Iterator[dict[str, Any]]:
    """Yield one row for each number of steps, the last with the exponent."""
    for sequence in SEQUENCES:
        for p in experts:
            for play in PLAYS:
                yield from _measured(sequence, p, play, exponents, repeats)


def _measured(
    sequence: str, p: int, play: str, exponents: Sequence[int], repeats: int
) -> Iterator[dict[str, Any]]:
    steps = [2**exponent for exponent in exponents]
    found = np.array(
        [
            [hedge_regret(play, sequence, T, p, 1000 * s + T) for T in steps]
            for s in range(repeats)
        ]
    )
    exponent, exponent_half = exponent_of(steps, found)
    for T, regrets in zip(steps, found.T, strict=True):
        mean, half = interval(regrets)
        last = steps[-1] == T
        yield {
            "costs": sequence,
            "experts": p,
            "play": play,
            "steps": T,
            "regret": mean,
            "half_interval": half,
            "bound": bound(play, T, p),
            "exponent": exponent if last else None,
            "exponent_half_interval": exponent_half if last else None,
        }


def exponent_of(steps: Sequence[int], found: Costs) -> tuple[float | str, float | None]:
    """Return the exponent of regrets, one row a repeat, and half of its interval."""
    fitted = np.array(steps) >= min(FIT_FROM, steps[-2])
    # a stream that turns can be followed better than any one expert
    if not (found[:, fitted] > 0).all():
        return "none", None
    logs = np.log(np.array(steps)[fitted])
    return interval([np.polyfit(logs, np.log(row[fitted]), 1)[0] for row in found])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print a table and write it."""
    quick = arguments(argv, __doc__).quick
    exponents = range(8, 13, 2) if quick else range(8, 17, 2)
    rows = list(measured(exponents, (10, 100) if quick else (10, 100, 1000), 5))
    print(markdown(rows))
    RESULTS.save("hedge", rows, quick=quick)


if __name__ == "__main__":
    main()
