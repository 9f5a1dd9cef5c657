"""Proximal DP-SGD in Numba, with noise in floating point: for grids of settings.

Draw for draw it is another program than `NoisySGD` with ``clip_norm``, and the same
algorithm: rows come in independently with rate ``batch / n``, gradients are shortened
to ``clip`` in L2, and the proximal step follows. ``python -m benchmarks.cd.sgd`` runs
both without noise and without sampling, and compares them in law with both.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from benchmarks.cd.problems import Case, case
from numba import njit
from scipy import sparse

from tacit._random import as_generator
from tacit.convex import L1, Free
from tacit.data import RowBounds, bounded_rows
from tacit.mechanisms.subsets import RATE_CELLS
from tacit.privacy import Budget, Neighbors
from tacit.solvers import NoisySGD, Problem
from tacit.solvers.noisy_sgd import Sampling, least_noise


def n_steps(found: Case, batch: int, passes: float) -> int:
    return max(1, round(passes * found.n_rows / min(batch, found.n_rows)))


def multiplier(found: Case, batch: int, passes: float) -> float:
    """Return the least noise, exact for all rows, else by numerical composition.

    Adding or removing a row: the relation of the published baseline, and the one that
    is kinder to it.
    """
    budget = Budget(found.epsilon, found.delta, Neighbors.ADD_OR_REMOVE_ONE)
    steps = n_steps(found, batch, passes)
    return least_noise(Sampling(found.n_rows, batch, steps, poisson=True), budget)


@njit(cache=True)
def _derivative(z, y, logistic):
    if not logistic:
        return z - y
    t = y * z
    if t > 0:
        e = np.exp(-t)
        return -y * e / (1.0 + e)
    return -y / (1.0 + np.exp(t))


@njit(cache=True)
def _step(w, G, scale, batch, step, l1, l2, rng):
    shrink = 1.0 / (1.0 + step * l2)
    cut = step * l1
    move = step / batch
    for j in range(len(w)):
        g = G[j]
        if scale > 0.0:
            g += scale * rng.standard_normal()
        u = w[j] - move * g
        if cut > 0.0:
            u = max(u - cut, 0.0) if u > 0 else min(u + cut, 0.0)
        w[j] = u * shrink
        G[j] = 0.0


@njit(cache=True)
def _next(position, rate, rng):
    """Return the next place that comes in, each with the same probability."""
    if rate >= 1.0:
        return position + 1
    return position + 1 + int(-rng.standard_exponential() / np.log1p(-rate) // 1)


@njit(cache=True)
def descend_dense(
    X, y, norms, logistic, rate, count, batch, scale, clip, step, l1, l2, rng
):
    n, p = X.shape
    w, G = np.zeros(p), np.zeros(p)
    position = _next(-1, rate, rng)
    for t in range(count):
        # places are numbered through all steps
        while position < (t + 1) * n:
            i = position - t * n
            z = 0.0
            for j in range(p):
                z += X[i, j] * w[j]
            s = _derivative(z, y[i], logistic)
            length = abs(s) * norms[i]
            if length > clip:
                s *= clip / length
            for j in range(p):
                G[j] += s * X[i, j]
            position = _next(position, rate, rng)
        _step(w, G, scale, batch, step, l1, l2, rng)
    return w


@njit(cache=True)
def descend_csr(
    data, indices, indptr, p, y, norms, logistic, rate, count, batch, scale, clip,
    step, l1, l2, rng,
):  # fmt: skip
    n = len(y)
    w, G = np.zeros(p), np.zeros(p)
    position = _next(-1, rate, rng)
    for t in range(count):
        while position < (t + 1) * n:
            i = position - t * n
            z = 0.0
            for a in range(indptr[i], indptr[i + 1]):
                z += data[a] * w[indices[a]]
            s = _derivative(z, y[i], logistic)
            length = abs(s) * norms[i]
            if length > clip:
                s *= clip / length
            for a in range(indptr[i], indptr[i + 1]):
                G[indices[a]] += s * data[a]
            position = _next(position, rate, rng)
        _step(w, G, scale, batch, step, l1, l2, rng)
    return w


def run(found: Case, batch: int, passes: float, noise: float, clip, step, rng):
    """Return the last weights; ``step`` is in units of one over the smoothness."""
    batch = min(batch, found.n_rows)
    count = n_steps(found, batch, passes)
    rate = max(1, round(batch / found.n_rows * RATE_CELLS)) / RATE_CELLS
    squares = (found.X * found.X).sum(axis=1)
    norms = np.sqrt(np.asarray(squares, dtype=np.float64).ravel())
    given = (found.y.astype(np.float64), norms, found.logistic, rate, count)
    given += (float(batch), noise * clip, clip, step / found.smoothness)
    given += (found.l1, found.l2, rng)
    if sparse.issparse(found.X):
        X = found.X
        return descend_csr(X.data, X.indices, X.indptr, X.shape[1], *given)
    return descend_dense(found.X, *given)


def _library(found, batch, passes, noise, clip, step, rng):
    """Return what the solver of the library makes of the same settings."""
    budget = Budget(found.epsilon, found.delta, Neighbors.ADD_OR_REMOVE_ONE)
    n = found.n_rows
    problem = Problem(
        found.loss,
        RowBounds(1.01 * float(np.linalg.norm(found.X, axis=1).max())),
        n,
        found.n_features,
        ridge=found.l2 * n,
        regularizer=L1(found.l1 * n) if found.l1 else Free(),
    )
    solver = NoisySGD(
        n_steps=n_steps(found, batch, passes),
        batch=batch,
        step=step / found.smoothness / n,
        momentum=0.0,
        clip_norm=clip,
    )
    plan = replace(solver.plan(problem, budget), multiplier=max(noise, 1e-9))
    rows = bounded_rows(found.X, found.y, problem.bounds)
    return solver.run(plan, rows, rng).coefficients[:, 0]


def main() -> int:
    """Compare with the library: without noise, then the law of the objective."""
    # the library has the ridge in the gradient and not in the proximal map
    found = replace(case("log1"), l1=0.01, l2=0.0)
    settings = {"clip": 0.5, "step": 0.3}
    ours = run(found, 1000, 20, 0.0, rng=as_generator(0), **settings)
    theirs = _library(found, 1000, 20, 0.0, rng=as_generator(0), **settings)
    apart = np.abs(ours - theirs).max()
    print(f"without noise, all rows: {apart:.1e} apart")
    if apart > 1e-6:
        return 1
    for batch in (16, 1000):
        values = [], []
        for seed in range(40):
            for list_, one in zip(values, (run, _library), strict=True):
                w = one(found, batch, 2, 3.0, rng=as_generator(seed), **settings)
                list_.append(found.objective(w))
        means = [np.mean(v) for v in values]
        errors = [np.std(v) / np.sqrt(len(v)) for v in values]
        apart = abs(means[0] - means[1]) / np.hypot(*errors)
        print(f"batch {batch}: {means[0]:.5f} and {means[1]:.5f}, {apart:.1f} errors")
        if apart > 5:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
