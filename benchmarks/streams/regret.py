"""How regret grows with the number of steps, for each way to learn on a stream.

Streams are made up: five features on the unit sphere, weights in the unit ball, epsilon
8 and delta 1e-5, one row a step. Costs are the logistic loss or the squared residual,
with a ridge of one for learners that need strong convexity and without one for others;
Hedge has ten experts with costs of 0 and 1. The exponent is the slope of the logarithm
of regret against that of the number of steps, from 2^12 on where there are so many,
fitted to each repeat alone; the interval is Student's over repeats. Repeats have rows
and noise of their own.

    python -m benchmarks.streams.regret [--quick]

Iterates that noise is added to do not depend on it. They are walked through once, by
the compiled loop that a step of the learner calls, and noise of the planned scales is
added to all of them; tests hold both against steps one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.streams.common import RESULTS
from benchmarks.tables import arguments, markdown
from scipy.special import expit
from scipy.stats import t as student

from tacit._random import as_generator
from tacit.convex import L2Ball, Logistic, Loss, Objective, Squared, minimize
from tacit.data import RowBounds
from tacit.data.rows import ArrayRows
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.streaming import GradientSums, PerturbedIterates, QuadraticLeader
from tacit.streaming._model import StreamTerms
from tacit.streaming.online._hedge import Hedge
from tacit.streaming.online._hedge_learners import Experts
from tacit.streaming.online._iterates import ImplicitGradient, Leader, ProjectedGradient

BUDGET = Budget(8.0, 1e-5)
N_FEATURES, N_EXPERTS = 5, 10
LOSSES: dict[str, Loss] = {"logistic": Logistic(), "squared": Squared()}
# exponents of the bounds: smooth losses for the three schedules, see the page on
# perturbed iterates; 0 stands for powers of a logarithm, and averages have no bound
BOUNDS = {"root": 0.0, "two_thirds": 1 / 3, "published": 1 / 2, "averaged": None}
WALKED = {"implicit": ImplicitGradient, "gradient": ProjectedGradient}
# first number of steps that exponents are fitted from
FIT_FROM = 2**12


@dataclass(frozen=True)
class Extent:
    """How long streams are and how many of them: exponents of two, and repeats."""

    visited: tuple[int, ...]
    stepped: tuple[int, ...]
    fitted: tuple[int, ...]
    repeats: int
    few: int


FULL = Extent(
    visited=tuple(range(8, 17)),
    stepped=(8, 10, 12, 13, 14, 15),
    fitted=(8, 9, 10, 11),
    repeats=20,
    few=4,
)
QUICK = Extent(
    visited=(8, 10, 12, 14), stepped=(8, 10), fitted=(6, 8), repeats=4, few=2
)


def rows_of(kind: str, n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return rows of a stream whose law does not change."""
    rng = as_generator(seed)
    X = rng.normal(size=(n_rows, N_FEATURES))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)
    margins = 3 * X[:, 0] - X[:, 1]
    if kind == "logistic":
        return X, np.where(rng.uniform(size=n_rows) < expit(margins), 1.0, -1.0)
    return X, np.clip(margins / 3 + 0.3 * rng.normal(size=n_rows), -1, 1)


@dataclass(frozen=True)
class Costs:
    """A loss, with a ridge of this strength on every row."""

    kind: str
    strength: float

    @property
    def name(self) -> str:
        return f"{self.kind} + ridge" if self.strength else self.kind

    def problem(self, horizon: int) -> Problem:
        """Return the public facts of a stream of them."""
        ridge, ball = self.strength * horizon, L2Ball(1.0)
        return Problem(
            LOSSES[self.kind], RowBounds(1.0), horizon, N_FEATURES, ridge, ball
        )

    def of(self, X: Any, y: Any, W: Any) -> Any:
        """Return the cost of each row at the weights played before it was seen."""
        margins = np.einsum("tp,tp->t", X, W)[:, None]
        ridge = self.strength / 2 * np.einsum("tp,tp->t", W, W)
        return LOSSES[self.kind].value(y, margins) + ridge

    def least(self, X: Any, y: Any) -> float:
        """Return what the best weights in the ball cost."""
        n_rows = len(y)
        # a ridge that matters little keeps the minimum unique
        objective = Objective(LOSSES[self.kind], max(self.strength, 1e-6) * n_rows)
        best = minimize(
            objective,
            ArrayRows(X, y),
            tolerance=1e-6 * n_rows,
            x_norm=1.0,
            y_range=(-1.0, 1.0),
            regularizer=L2Ball(1.0),
        ).W[:, 0]
        return float(self.of(X, y, np.broadcast_to(best, X.shape)).sum())

    def regret(self, X: Any, y: Any, W: Any) -> float:
        """Return what the weights played cost beyond the best ones in the ball."""
        return float(self.of(X, y, W).sum()) - self.least(X, y)


def in_ball(W: Any) -> Any:
    """Return each line moved into the unit ball."""
    return W / np.maximum(1.0, np.linalg.norm(W, axis=1, keepdims=True))


def played(exact: Any, learner: Any, rng: Any) -> Any:
    """Return what is played: zero first, then iterates with noise, but the last."""
    noise = learner.std()[:, None] * rng.normal(size=exact.shape)
    shown = in_ball(exact + noise)
    if learner.average:
        t = np.arange(1, len(exact) + 1)[:, None]
        shown = np.cumsum(t * shown, axis=0) / (t * (t + 1) / 2)
    return np.vstack([np.zeros((1, N_FEATURES)), shown[:-1]])


def perturbed(costs: Costs, name: str, horizon: int, learner: Any) -> Any:
    """Return the planned learner of a stream."""
    average = name == "averaged"
    schedule = "root" if average else name
    method = PerturbedIterates(
        learner(costs.strength), schedule, average=average, noise="float"
    )
    return method.plan(costs.problem(horizon), BUDGET, StreamTerms(horizon))


def walked_regrets(
    costs: Costs, name: str, exponents: Sequence[int], seed: int
) -> Iterator[tuple[str, int, float]]:
    """Yield schedule, steps and regret of one repeat, all from one walk."""
    longest = 2 ** max(exponents)
    X, y = rows_of(costs.kind, longest, seed)
    base = perturbed(costs, "root", longest, WALKED[name]).iterates
    exact = base.path(base.init(), 1, X, y, np.arange(1, longest + 1))[:, 0]
    rng = as_generator(seed + 10**6)
    for exponent in exponents:
        n = 2**exponent
        least = costs.least(X[:n], y[:n])
        for schedule in BOUNDS:
            learner = perturbed(costs, schedule, n, WALKED[name])
            W = played(exact[:n], learner, rng)
            yield schedule, n, float(costs.of(X[:n], y[:n], W).sum()) - least


def stepped_weights(learner: Any, X: Any, y: Any, rng: Any) -> Any:
    """Return what a learner plays, one step after another."""
    state = learner.init()
    W = []
    for t in range(len(y)):
        W.append(learner.weights(state)[:, 0])
        state = learner.step(state, X[t : t + 1], y[t : t + 1], rng)
    return np.array(W)


def stepped_regrets(
    costs: Costs, method: Any, exponents: Sequence[int], seed: int
) -> Iterator[tuple[int, float]]:
    """Yield steps and regret of one repeat of any learner."""
    X, y = rows_of(costs.kind, 2 ** max(exponents), seed)
    for exponent in exponents:
        n = 2**exponent
        learner = method.plan(costs.problem(n), BUDGET, StreamTerms(n))
        W = stepped_weights(learner, X[:n], y[:n], as_generator(seed + exponent))
        yield n, costs.regret(X[:n], y[:n], in_ball(W))


def hedge_regrets(exponents: Sequence[int], seed: int) -> Iterator[tuple[int, float]]:
    """Yield steps and regret of Hedge: one expert is a little better than others."""
    rng = as_generator(seed)
    chances = np.full(N_EXPERTS, 0.5)
    for exponent in exponents:
        n = 2**exponent
        # as far ahead as makes finding it hardest
        chances[0] = 0.5 - min(0.4, 2 / np.sqrt(n))
        losses = (rng.uniform(size=(n, N_EXPERTS)) < chances).astype(np.float64)
        experts = Experts(N_EXPERTS)
        method = Hedge(noise="float")
        learner = method.plan(experts, BUDGET, StreamTerms(n))
        X = experts.centered(losses)
        W = stepped_weights(learner, X, np.zeros(n), as_generator(seed + exponent))
        cost = float(np.einsum("te,te->", W, losses))
        yield n, cost - float(losses.sum(axis=0).min())


@dataclass(frozen=True)
class Stepped:
    """A learner that is stepped through, with the exponent of its bound."""

    costs: Costs
    name: str
    method: Any
    bound: float
    extent: str = "stepped"


def others() -> Iterator[Stepped]:
    """Yield the learners that are stepped through."""
    for kind in LOSSES:
        leader = PerturbedIterates(Leader(1.0), noise="float")
        yield Stepped(Costs(kind, 1.0), "leader, root", leader, 0.0, "fitted")
        sums = GradientSums(noise="float")
        yield Stepped(Costs(kind, 0.0), "GradientSums", sums, 0.5)
    quadratic = QuadraticLeader(noise="float")
    yield Stepped(Costs("squared", 0.0), "QuadraticLeader", quadratic, 0.0)


def exponent_of(measured: Sequence[tuple[int, int, float]]) -> tuple[float, float]:
    """Return the exponent and half of its interval, from (repeat, steps, regret)."""
    steps = sorted({n for _, n, _ in measured})
    long = [n for n in steps if n >= FIT_FROM]
    kept = long if len(long) >= 2 else steps[-3:]
    derivatives = []
    for repeat in sorted({r for r, _, _ in measured}):
        points = [(n, v) for r, n, v in measured if r == repeat and n in kept]
        logs = np.log([(n, max(v, 1e-3)) for n, v in points])
        derivatives.append(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    half = student.ppf(0.975, len(derivatives) - 1) * np.std(derivatives, ddof=1)
    return float(np.mean(derivatives)), float(half / np.sqrt(len(derivatives)))


def row(
    costs: str, name: str, bound: float | None, measured: list[tuple[int, int, float]]
) -> dict[str, Any]:
    """Return one line of the table."""
    mean, half = exponent_of(measured)
    steps = sorted({n for _, n, _ in measured})
    last = [v for _, n, v in measured if n == steps[-1]]
    return {
        "costs": costs,
        "learner": name,
        "steps": steps[-1],
        "repeats": len(last),
        "regret": float(np.mean(last)),
        "exponent": round(mean, 3),
        "low": round(mean - half, 3),
        "high": round(mean + half, 3),
        "bound": None if bound is None else round(bound, 3),
    }


def measure(extent: Extent) -> Iterator[dict[str, Any]]:
    """Yield one line for each learner and kind of costs."""
    for kind in LOSSES:
        costs = Costs(kind, 1.0)
        for name in WALKED:
            found: dict[str, list[tuple[int, int, float]]] = {s: [] for s in BOUNDS}
            for repeat in range(extent.repeats):
                for schedule, n, value in walked_regrets(
                    costs, name, extent.visited, repeat
                ):
                    found[schedule].append((repeat, n, value))
            for schedule, bound in BOUNDS.items():
                yield row(costs.name, f"{name}, {schedule}", bound, found[schedule])
    for one in others():
        measured = [
            (repeat, n, value)
            for repeat in range(extent.few)
            for n, value in stepped_regrets(
                one.costs, one.method, getattr(extent, one.extent), repeat
            )
        ]
        yield row(one.costs.name, one.name, one.bound, measured)
    measured = [
        (repeat, n, value)
        for repeat in range(extent.few)
        for n, value in hedge_regrets(extent.stepped, repeat)
    ]
    yield row("experts", "Hedge", 0.5, measured)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and save."""
    quick = arguments(argv, __doc__).quick
    extent = QUICK if quick else FULL
    rows = list(measure(extent))
    RESULTS.save("regret", rows, quick=quick)
    print(markdown(rows))


if __name__ == "__main__":
    main()
