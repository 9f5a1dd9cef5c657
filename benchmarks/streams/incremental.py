"""How the excess risk of private incremental regression grows with columns and rows.

Excess is how much larger the sum of squared residuals over all rows so far is than the
least in the set, for rows of norm one and targets up to one. Three parts:

* noise on moments of every strength of signal along one column, with the released
  moments left as they are: the most that noise of deviation one can do, by columns. The
  descent has the step size of the corrected proof.
* streams with a release after each row, by their length.
* streams of 64 steps, by columns.

Streams are looked at when three quarters are over, as far as refits at doubled numbers
of rows are ever behind. Refits have few releases, hence less noise; rows here do
not change over time, which is the best that can happen to them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from time import process_time
from typing import Any

import numpy as np
from benchmarks.streams.common import RESULTS
from benchmarks.tables import arguments, markdown
from numpy.random import Generator
from numpy.typing import NDArray

from tacit import Seed
from tacit._random import as_generator, spawn
from tacit.convex import L1Ball, L2Ball, Squared
from tacit.data import RowBounds
from tacit.linear_model import LinearRegression
from tacit.mechanisms.continual._base import to_matrix, to_vector
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.streaming import (
    GradientRegression,
    IncrementalERM,
    MomentRegression,
    ProjectedRegression,
)
from tacit.streaming._model import StreamTerms
from tacit.streaming.incremental._moments import row_moments
from tacit.streaming.incremental._solve import NoisyQuadratic, accelerated, weights_of

Array = NDArray[Any]

BUDGET = Budget(4.0, 1e-6)
STEPS = 64
SIGNALS = np.geomspace(1.0, 300.0, 9)
BOOTSTRAPS = 2000
Row = dict[str, Any]


def derivative_of(
    positions: Sequence[float], samples: Sequence[Array], rng: Generator
) -> tuple[float, float, float]:
    """Return the slope of logarithms with the ends of an interval of 95 percent.

    A sample has a row for each draw and a column for each signal, of which the worst
    mean counts. The interval is from draws with replacement.
    """
    x = np.log(np.asarray(positions, dtype=float))
    x = x - x.mean()

    def derivative(parts: Sequence[Array]) -> float:
        y = np.log([max(part.mean(axis=0).max(), 1e-9) for part in parts])
        return float(x @ y / (x @ x))

    again = [
        derivative([part[rng.integers(0, len(part), len(part))] for part in samples])
        for _ in range(BOOTSTRAPS)
    ]
    return derivative(samples), *(float(q) for q in np.quantile(again, [0.025, 0.975]))


def worst(sample: Array) -> tuple[float, float]:
    """Return the largest mean over signals, and its standard error."""
    means = sample.mean(axis=0)
    position = int(means.argmax())
    return float(means[position]), float(
        sample[:, position].std() / np.sqrt(len(sample))
    )


def symmetric_noise(d: int, rng: Generator) -> Array:
    """Noise of moments: deviation one on the diagonal, half the variance off it."""
    noise = rng.standard_normal((d, d), dtype=np.float32)
    noise += noise.T
    noise /= 2.0
    np.fill_diagonal(noise, rng.standard_normal(d, dtype=np.float32))
    return noise


def onto_l1(W: Array) -> Array:
    """Project each row on the L1 ball of radius one, all at once."""
    size = np.abs(W)
    falling = -np.sort(-size, axis=1)
    excess = np.cumsum(falling, axis=1) - 1.0
    counts = np.arange(1, W.shape[1] + 1, dtype=W.dtype)
    last = (falling * counts > excess).sum(axis=1) - 1
    level = excess[np.arange(len(W)), last] / (last + 1)
    outside = size.sum(axis=1) > 1.0
    level = np.where(outside, np.maximum(level, 0.0), 0.0).astype(W.dtype)
    kept: Array = np.copysign(np.maximum(size - level[:, None], 0.0), W)
    return kept


def onto_l2(W: Array) -> Array:
    """Project each row on the L2 ball of radius one."""
    norm_clipped: Array = W / np.maximum(1.0, np.linalg.norm(W, axis=1, keepdims=True))
    return norm_clipped


def raw_excess(d: int, n_iterations: int, rng: Generator) -> tuple[Array, Array]:
    """Return the excess in an L1 and an L2 ball for each signal, for one draw.

    The moments are ``signal e e^T`` and ``signal e`` for the first column e, whose best
    weights are e, both with noise. All signals and both sets descend together.
    """
    noise, pull = symmetric_noise(d, rng), rng.standard_normal(d, dtype=np.float32)
    signals = SIGNALS.astype(np.float32)
    k = len(signals)
    error = 2 * (np.sqrt(2 * d) + np.sqrt(d))
    steps = 2.0 / (np.sqrt(n_iterations) * (error + 4 * signals))
    steps = np.tile(steps.astype(np.float32), 2)[:, None]
    both = np.tile(signals, 2)
    W = np.zeros((2 * k, d), dtype=np.float32)
    total = np.zeros_like(W)
    for _ in range(n_iterations):
        total += W
        gradient = W @ noise
        gradient[:, 0] += both * (W[:, 0] - 1.0)
        gradient -= pull
        W -= 2 * steps * gradient
        W[:k], W[k:] = onto_l1(W[:k]), onto_l2(W[k:])
    first = total[:, 0].astype(float) / n_iterations
    excess = np.tile(SIGNALS, 2) * (1 - first) ** 2
    return excess[:k], excess[k:]


def clipped_excess(d: int, rng: Generator) -> Array:
    """Return the excess in an L1 ball for each signal, negative moments set to zero."""
    noise = symmetric_noise(d, rng).astype(float)
    pull = rng.standard_normal(d)
    found = []
    for signal in SIGNALS:
        second, first = noise.copy(), pull.copy()
        second[0, 0] += signal
        first[0] += signal
        quadratic = NoisyQuadratic(second, first, 1.0, 1.0)
        W = accelerated(quadratic, L1Ball(1.0), np.zeros((d, 1)))
        found.append(signal * (1 - W[0, 0]) ** 2)
    return np.array(found)


def noise_study(quick: bool, rng: Generator) -> Iterator[Row]:
    """Measure the worst excess by columns, over deviations of the noise."""
    columns = (32, 64, 128, 256) if quick else (32, 64, 128, 256, 512, 1024, 2048)
    n_iterations = 300 if quick else 2000
    kinds: dict[str, dict[int, Array]] = {
        "L1 ball, raw moments": {},
        "L2 ball, raw moments": {},
        "L1 ball, clipped moments": {},
    }
    for d in columns:
        draws = 16 if quick else {2048: 32, 1024: 32, 512: 48}.get(d, 64)
        pairs = [raw_excess(d, n_iterations, part) for part in spawn(rng, draws)]
        for kind, sample in zip(kinds, zip(*pairs, strict=True), strict=False):
            kinds[kind][d] = np.array(sample)
        if d <= (64 if quick else 512):
            draws = 8 if quick else {512: 12, 256: 24}.get(d, 48)
            kinds["L1 ball, clipped moments"][d] = np.array(
                [clipped_excess(d, part) for part in spawn(rng, draws)]
            )
    for kind, samples in kinds.items():
        yield from rows_of("noise only, by columns", kind, "columns", samples, rng)


def rows_of(
    part: str, kind: str, over: str, samples: dict[int, Array], rng: Generator
) -> Iterator[Row]:
    """Return a line for each place of a study, the last with the exponent."""
    derivative = derivative_of(list(samples), list(samples.values()), rng)
    for position, sample in samples.items():
        mean, error = worst(sample)
        last = position == max(samples)
        yield {
            "part": part,
            "method": kind,
            "over": over,
            "size": position,
            "excess": round(mean, 4),
            "standard_error": round(error, 4),
            "draws": len(sample),
            "exponent": round(derivative[0], 3) if last else "",
            "from": round(derivative[1], 3) if last else "",
            "to": round(derivative[2], 3) if last else "",
        }


def table(kind: str, n: int, d: int, rng: Generator) -> tuple[Array, Array]:
    """Rows of norm one with signal in two columns: few entries, or all of them."""
    if kind == "sparse":
        X = np.zeros((n, d))
        positions = np.argsort(rng.random((n, d)), axis=1)[:, :5]
        # half of the rows have the columns that matter
        positions[: n // 2, 0] = rng.integers(0, 2, n // 2)
        np.put_along_axis(X, positions, rng.standard_normal((n, 5)), axis=1)
        X = X[rng.permutation(n)]
    else:
        X = rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = 0.6 * X[:, 0] - 0.4 * X[:, 1] + 0.1 * rng.standard_normal(n)
    return X, np.clip(y, -1, 1)


def risk(X: Array, y: Array, w: Array) -> float:
    return float(((y - X @ w) ** 2).sum())


def least_risk(X: Array, y: Array, domain: Any) -> float:
    quadratic = NoisyQuadratic(X.T @ X, X.T @ y, 1e-9, 1e-9)
    return risk(X, y, weights_of(quadratic, domain, solver="clipped")[:, 0])


def stepped(learner: Any, X: Array, y: Array, steps: int, rng: Generator) -> Array:
    """Return the last weights of a stream of so many steps, solving at the last alone.

    Weights are post-processing, so that those between change nothing.
    """
    parts = np.array_split(np.arange(len(X)), steps)
    if getattr(learner, "projection", None) is not None:
        matrix = learner.projection.matrix()
        X = learner.projection.rows(X, matrix, RowBounds())
    domain = learner.domain
    if hasattr(learner, "sums"):
        mechanism = learner.sums.mechanism
        state = mechanism.init((learner.sums.size,))
        for block in np.array_split(np.arange(steps), -(-steps // 256)):
            leaves = np.array(
                [learner.sums.leaf(X[parts[t]], y[parts[t]]) for t in block]
            )
            state, released = mechanism.steps(state, leaves, rng)
        moments = learner.sums.moments(released[-1])
        lift = matrix if learner.projection is not None else None
        quadratic = NoisyQuadratic(
            moments.second, moments.first, *learner.sums.stds(steps), lift
        )
        return weights_of(quadratic, domain, solver=learner.solver)[:, 0]
    return gradient_weights(learner, X, y, parts, rng)


def gradient_weights(
    learner: Any, X: Array, y: Array, parts: list[Array], rng: Generator
) -> Array:
    d = X.shape[1]
    sums = learner.second_sums, learner.first_sums
    sizes = d * (d + 1) // 2, d
    states = [
        mechanism.init((size,)) for mechanism, size in zip(sums, sizes, strict=True)
    ]
    for block in np.array_split(np.arange(len(parts)), -(-len(parts) // 256)):
        moments = [row_moments(X[parts[t]], y[parts[t]], 1.0, 1.0) for t in block]
        leaves = (
            np.array([to_vector(m.second) for m in moments]),
            np.array([m.first for m in moments]),
        )
        released = []
        for position, mechanism in enumerate(sums):
            states[position], sums_so_far = mechanism.steps(
                states[position], leaves[position], rng
            )
            released.append(sums_so_far[-1])
    return learner.descended(to_matrix(released[0]), released[1], len(parts))[:, 0]


def stream_methods(d: int) -> dict[str, Any]:
    return {
        "moments": MomentRegression(),
        "gradient, exact": GradientRegression(),
        "gradient, published noise": GradientRegression("paper"),
        "projection to a quarter": ProjectedRegression(max(4, d // 4)),
    }


def one_stream(
    method: Any, domain: Any, X: Array, y: Array, horizon: int, seed: int
) -> Array:
    """Return the weights of a method when three quarters of its steps are over."""
    seen, d = X.shape
    n = 4 * seen // 3
    if method is None:
        model = IncrementalERM(
            LinearRegression(
                y_range=(-1, 1), fit_intercept=False, penalty=domain, x_norm=1.0
            ),
            BUDGET.epsilon,
            BUDGET.delta,
            horizon=STEPS,
            rows_per_step=max(1, n // STEPS),
            random_state=Seed(seed),
        )
        for part in np.array_split(np.arange(seen), 3 * STEPS // 4):
            model.partial_fit(X[part], y[part])
        return np.asarray(model.coef_)
    problem = Problem(Squared(), RowBounds(), n, d, regularizer=domain)
    learner = method.plan(problem, BUDGET, StreamTerms(horizon, n // horizon))
    return stepped(learner, X, y, 3 * horizon // 4, as_generator(seed))


def stream_study(
    part: str,
    over: str,
    cases: Sequence[tuple[int, int, int, int]],
    runs: int,
    rng: Generator,
) -> Iterator[Row]:
    """Measure the excess of streams; a case is size, rows, columns and steps."""
    for kind, domain in (("sparse", L1Ball(1.0)), ("dense", L2Ball(1.0))):
        found: dict[str, dict[int, Array]] = {}
        for size, n, d, steps in cases:
            methods = {**stream_methods(d), "refits (IncrementalERM)": None}
            samples: dict[str, list[float]] = {name: [] for name in methods}
            samples["no weights at all"] = []
            for run in range(runs):
                X, y = table(kind, n, d, rng)
                seen = 3 * n // 4
                X, y = X[:seen], y[:seen]
                least = least_risk(X, y, domain)
                for name, method in methods.items():
                    w = one_stream(method, domain, X, y, steps, run)
                    samples[name].append(risk(X, y, w) - least)
                samples["no weights at all"].append(risk(X, y, np.zeros(d)) - least)
            for name, values in samples.items():
                found.setdefault(name, {})[size] = np.array(values)[:, None]
        label = f"{'L1' if kind == 'sparse' else 'L2'} ball, {kind} rows"
        for name, sizes in found.items():
            yield from rows_of(part, f"{label}: {name}", over, sizes, rng)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table and write the rows."""
    quick = arguments(argv, __doc__).quick
    start, rng = process_time(), as_generator(0)
    rows = list(noise_study(quick, rng))
    lengths = (256, 1024) if quick else (256, 1024, 4096, 16384)
    by_rows = [(n, n, 16, n) for n in lengths]
    rows += stream_study("by rows, 16 columns", "rows", by_rows, 2 if quick else 6, rng)
    widths = (16, 64) if quick else (16, 32, 64, 128, 256, 512)
    n_rows = 1024 if quick else 16384
    by_columns = [(d, n_rows, d, STEPS) for d in widths]
    part = f"by columns, {n_rows} rows in {STEPS} steps"
    rows += stream_study(part, "columns", by_columns, 2 if quick else 4, rng)
    print(markdown(rows))
    print(f"\n{process_time() - start:.0f} s of processor time.")
    RESULTS.save("incremental", rows, quick=quick)


if __name__ == "__main__":
    main(sys.argv[1:])
