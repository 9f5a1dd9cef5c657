"""Which clips and steps are tried, and how the best of them is found.

The papers try 50 or 100 clips and 10 steps, five runs each. Here clips are three a
decade, and those that cut nothing or nearly all are left out. Each setting is run once
(greedy ones, which are fast and chancy, twice), the best few five times together with
clips between them, and the best of these is run again with fresh noise. As in the
papers, this tuning looks at the objective and is not paid for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from benchmarks.cd import sgd
from benchmarks.cd.algorithms import ALL_ROWS, Algorithm, Prepared
from benchmarks.cd.optimum import Optimum, derivatives
from benchmarks.cd.problems import Case
from scipy import sparse

from tacit._random import as_generator

# decades of the papers' clips, and ours
LOW, HIGH, A_DECADE = -4, 6, 3
FINE = 10 ** (1 / 9)
FINALISTS, TUNING_RUNS, FRESH_RUNS = 12, 5, 10
# seeds of the three stages are apart
SCREEN_SEED, TUNING_SEED, FRESH_SEED = 10_000, 20_000, 30_000


@dataclass(frozen=True)
class Effort:
    """How much of the grid is run."""

    every: int = 1  # of clips and steps
    finalists: int = FINALISTS
    tuning_runs: int = TUNING_RUNS
    fresh_runs: int = FRESH_RUNS


FULL = Effort()
QUICK = Effort(every=3, finalists=3, tuning_runs=2, fresh_runs=3)
# where a run takes a second and more
COARSE = Effort(every=2, finalists=4)


@dataclass(frozen=True)
class Run:
    """One fresh run of the best setting."""

    error: float
    hits: int
    misses: int


def gradient_sizes(found: Case, algorithm: Algorithm) -> np.ndarray:
    """Return in which range of clips the gradients of rows at zero weights lie.

    In the papers' unit: the norm of a row's gradient, or of its largest scaled entry.
    """
    s = np.abs(derivatives(found, np.zeros(found.n_rows)))
    if algorithm.name.startswith(("dp_sgd", "dp_gd")):
        norms = np.sqrt(np.asarray((found.X * found.X).sum(axis=1)).ravel())
        return s * norms
    squares = np.maximum(found.mean_squares, found.mean_squares.max() / found.n_rows)
    per = np.sqrt(squares.sum() / squares)
    if sparse.issparse(found.X):
        entries = found.X.tocoo()
        return s[entries.row] * np.abs(entries.data) * per[entries.col]
    return (s[:, None] * np.abs(found.X) * per).ravel()


def clips(found: Case, algorithm: Algorithm, effort: Effort) -> np.ndarray:
    sizes = gradient_sizes(found, algorithm)
    sizes = sizes[sizes > 0]
    count = (HIGH - LOW) * A_DECADE + 1
    all_clips = np.logspace(LOW, HIGH, count)
    # far below the usual gradient only signs count, and steps make up for the clip
    low, high = 1e-3 * np.median(sizes), 3 * sizes.max()
    return all_clips[(all_clips >= low) & (all_clips <= high)][:: effort.every]


def passes(found: Case, algorithm: Algorithm) -> list[float]:
    """Return the numbers of passes that differ in the number of updates."""
    if not algorithm.tuned:
        return list(algorithm.passes(found))
    kept, seen = [], set()
    for number in algorithm.passes(found):
        if algorithm.greedy:
            count = number
        elif algorithm.name.startswith("dp_cd"):
            count = max(1, round(number * found.n_features))
        else:
            batch = algorithm.name.removeprefix("dp_sgd_")
            batch = ALL_ROWS if algorithm.name == "dp_gd" else int(batch)
            count = sgd.n_steps(found, batch, number)
        if count not in seen:
            seen.add(count)
            kept.append(number)
    return kept


def error(found: Case, best: Optimum, w: np.ndarray) -> float:
    value = found.objective(w) / best.value - 1
    return value if np.isfinite(value) else np.inf


def tune(
    found: Case, best: Optimum, algorithm: Algorithm, prepared: Prepared, effort: Effort
) -> tuple[float, float, float]:
    """Return the clip and the step of the least mean error, and that error."""
    if not algorithm.tuned:
        return 1.0, 1.0, np.nan

    def mean_error(setting, seed, runs):
        errors = [
            error(found, best, prepared.run(*setting, as_generator(seed + k)))
            for k in range(runs)
        ]
        return float(np.mean(errors))

    steps = algorithm.steps[:: effort.every]
    settings = [(c, s) for c in clips(found, algorithm, effort) for s in steps]
    runs = 2 if algorithm.greedy else 1
    screened = sorted(settings, key=lambda s: mean_error(s, SCREEN_SEED, runs))
    finalists = screened[: effort.finalists]
    finalists += [
        (clip * FINE**k, step) for clip, step in screened[:2] for k in (-2, -1, 1, 2)
    ]
    judged = [(mean_error(s, TUNING_SEED, effort.tuning_runs), s) for s in finalists]
    least, (clip, step) = min(judged)
    return float(clip), float(step), least


def fresh(found: Case, best: Optimum, prepared: Prepared, clip, step, effort: Effort):
    """Return new runs of one setting."""
    for k in range(effort.fresh_runs):
        w = prepared.run(clip, step, as_generator(FRESH_SEED + k))
        chosen = w != 0
        hits = int((chosen & best.support).sum())
        yield Run(error(found, best, w), hits, int((chosen & ~best.support).sum()))
