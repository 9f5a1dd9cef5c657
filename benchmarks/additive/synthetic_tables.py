"""Random tables that the rules of additive models are fitted on; no real row is read.

Of `drawn`, numbers are uniform, normal, skewed, far from the end of their range, zero
in most rows or integers; columns are correlated; shapes are straight, monotone, bumps,
jumps and waves; some pairs of columns interact. `survey` has tables as offices of
statistics keep them: ages, grades, a value that half of the rows share, amounts that
most rows lack, codes with effects of their own, and categories of very unequal size.
`wide` has 25 to 44 counts and rates that most rows lack, a few of which nearly give the
label. `measurements` has sizes and weights that all grow together, where the target
depends on how they differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import norm, rankdata

from tacit._random import as_generator

TEST_ROWS = 6000
KINDS = ("uniform", "normal", "skewed", "wide", "zeros", "integer")
ANSWERS = ("age", "grade", "usual", "amount", "code", "code", "other")
SHAPES = ("linear", "monotone", "monotone", "bump", "jump", "wave")


@dataclass(frozen=True)
class Table:
    """Rows, public facts and what is to be learned; the first ``n`` rows are to fit."""

    X: np.ndarray
    ranges: dict
    categories: dict
    signal: np.ndarray  # log-odds of the second class, or the mean of the target
    y: np.ndarray
    n: int
    y_range: tuple | None

    def excess(self, model):
        """Return points of accuracy, or of variance, lost to the best prediction."""
        X, signal = self.X[self.n :], self.signal[self.n :]
        if self.y_range is None:
            up = expit(signal)
            right = np.where(model.decision_function(X) > 0, up, 1 - up)
            return 100 * float(np.mean(np.maximum(up, 1 - up) - right))
        off = model.predict(X) - signal
        return 100 * float(np.mean(off**2) / self.y.var())


def drawn(seed, *, regression=False, most=60_000):
    """Return a random table."""
    rng = as_generator(seed)
    n = int(np.exp(rng.uniform(np.log(1500), np.log(most))))
    rows, d = n + TEST_ROWS, int(rng.integers(4, 16))
    factors = rng.standard_normal((rows, 3))
    cells, ranges, categories = np.empty((rows, d), dtype=object), {}, {}
    signal, numbers = np.zeros(rows), []
    for k in range(d):
        common, direction = rng.uniform(0, 0.9), rng.standard_normal(3)
        latent = factors @ direction / np.linalg.norm(direction)
        latent = np.sqrt(common) * latent
        latent += np.sqrt(1 - common) * rng.standard_normal(rows)
        weight = np.exp(rng.normal()) * (rng.random() < 0.8)
        if rng.random() < 0.25:
            size = int(rng.integers(2, 20))
            odds = 1.2 * rng.standard_normal(size)
            odds = odds + 0.5 * latent[:, None] * rng.standard_normal(size)
            chosen = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
            cells[:, k], categories[k] = chosen, list(range(size))
            signal += weight * standard(rng.standard_normal(size)[chosen])
        else:
            values, ranges[k] = column(rng.choice(KINDS), latent, rng)
            cells[:, k] = values
            numbers.append((values, ranges[k]))
            signal += weight * shape(values, ranges[k], rng.choice(SHAPES), rng)
    for _ in range(int(rng.integers(0, 4)) if len(numbers) > 1 else 0):
        first, second = rng.choice(len(numbers), 2, replace=False)
        product = shape(*numbers[first], "monotone", rng)
        signal += 0.5 * product * shape(*numbers[second], "monotone", rng)
    signal = standard(signal)
    if not regression:
        signal = signal * np.exp(rng.uniform(np.log(0.8), np.log(4)))
        signal = signal + rng.uniform(-1.5, 1.5)
        y = (rng.random(rows) < expit(signal)).astype(int)
        return Table(cells, ranges, categories, signal, y, n, None)
    return regression_table(cells, ranges, categories, signal, n, rng, (0.3, 1.2))


def survey(seed):
    """Return a random table of 30,000 to 50,000 rows, as a census has them."""
    rng = as_generator(seed)
    n = int(rng.integers(30_000, 50_000))
    rows = n + TEST_ROWS
    n_numbers = int(rng.integers(4, 11))
    n_lists = int(rng.integers(0, 9 if n_numbers < 7 else 4))
    factors = rng.standard_normal((rows, 3))
    cells = np.empty((rows, n_numbers + n_lists), dtype=object)
    ranges, categories, signal = {}, {}, np.zeros(rows)
    for k in range(n_numbers + n_lists):
        common, direction = rng.uniform(0, 0.7), rng.standard_normal(3)
        latent = np.sqrt(common) * (factors @ direction) / np.linalg.norm(direction)
        latent += np.sqrt(1 - common) * rng.standard_normal(rows)
        weight = np.exp(0.7 * rng.normal()) * (rng.random() < 0.85)
        if k < n_numbers:
            values, ranges[k], effect = answers(rng.choice(ANSWERS), latent, rng)
        else:
            size = int(rng.choice([2, 5, 7, 14, 16, 40]))
            odds = -rng.uniform(0.5, 1.8) * np.log(np.arange(1, size + 1))
            odds = odds + 0.6 * latent[:, None] * rng.standard_normal(size)
            values = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
            categories[k] = list(range(size))
            effect = rng.standard_normal(size)[values]
        cells[:, k] = values
        signal += weight * standard(effect)
    signal = standard(signal) * rng.uniform(1, 3) + rng.uniform(-1.8, 0.3)
    y = (rng.random(rows) < expit(signal)).astype(int)
    return Table(cells, ranges, categories, signal, y, n, None)


def wide(seed):
    """Return a random table of 20,000 to 60,000 rows of many columns, mostly zero."""
    rng = as_generator(seed)
    n, d = int(rng.integers(20_000, 60_000)), int(rng.integers(25, 45))
    rows = n + TEST_ROWS
    kind = rng.choice(6, rows, p=rng.dirichlet(np.full(6, 0.7)))
    cells, signal = np.empty((rows, d), dtype=object), np.zeros(rows)
    for k in range(d):
        present = rng.random(rows) < (rng.random(6) ** rng.uniform(1, 8))[kind]
        middle = rng.uniform(0.2, 0.8) + 0.2 * rng.standard_normal(6)[kind]
        spread = rng.uniform(0.02, 0.2) * rng.standard_normal(rows)
        values = np.where(present, np.clip(middle + spread, 0.01, 1), 0.0)
        if rng.random() < 0.3:
            values = np.round(values * rng.integers(2, 20)) / 20
        cells[:, k] = values
        if rng.random() < 0.3:
            signal += rng.normal() * standard(values)
            signal += 0.5 * rng.normal() * standard((values > 0) * 1.0)
    signal = standard(signal + 2 * rng.standard_normal(6)[kind])
    signal = rng.uniform(3, 7) * signal + rng.uniform(-2, 2)
    y = (rng.random(rows) < expit(signal)).astype(int)
    ranges = dict.fromkeys(range(d), (0.0, 1.0))
    return Table(cells, ranges, {}, signal, y, n, None)


def measurements(seed):
    """Return a random table of 1,500 to 12,000 measured bodies, and a target."""
    rng = as_generator(seed)
    n = int(np.exp(rng.uniform(np.log(1500), np.log(12_000))))
    rows, d = n + TEST_ROWS, int(rng.integers(5, 12))
    # the part of each size that all sizes share
    common, factors = rng.uniform(0.85, 0.97), rng.standard_normal((rows, 2))
    cells, ranges, sizes = np.empty((rows, d), dtype=object), {}, []
    for k in range(d):
        own = factors[:, 1] * rng.choice([-1, 1]) + rng.standard_normal(rows)
        latent = np.sqrt(common) * factors[:, 0] + np.sqrt((1 - common) / 2) * own
        values = np.maximum(1 + 0.25 * latent, 0.05) ** rng.choice([1, 1, 3])
        high = float(np.quantile(values, 0.999) * rng.uniform(1, 2))
        cells[:, k], ranges[k] = np.minimum(values, high), (0.0, high)
        sizes.append(standard(values))
    weights = rng.standard_normal(d) * (rng.random(d) < 0.7)
    signal = np.array(sizes).T @ (weights - weights.mean() * rng.random())
    signal = standard(signal + 0.2 * rng.standard_normal() * standard(sizes[0] ** 2))
    return regression_table(cells, ranges, {}, signal, n, rng, (0.5, 1.5))


def regression_table(cells, ranges, categories, signal, n, rng, noise_range):
    """Return a table whose target is the signal with noise of a random size."""
    y = signal + rng.uniform(*noise_range) * rng.standard_normal(len(signal))
    low, high = np.quantile(y, [0.001, 0.999])
    wide = rng.uniform(0, 0.5, size=2) * (high - low)
    ends = (float(low - wide[0]), float(high + wide[1]))
    return Table(cells, ranges, categories, signal, np.clip(y, low, high), n, ends)


def answers(kind, latent, rng):
    """Return numbers of a kind, their public range and their effect."""
    if kind == "age":
        values = np.clip(np.round(38 + 13 * latent), 17, 90)
        ends = (0.0, 100.0) if rng.random() < 0.5 else (17.0, 90.0)
        bend = ((values - rng.uniform(40, 60)) / 15) ** 2
        return values, ends, -bend / (1 + ((values - 50) / 30) ** 2)
    if kind == "grade":
        most = int(rng.integers(6, 20))
        values = np.clip(np.round(most / 2 + 0.2 * most * latent), 0, most)
        steps = rng.exponential(size=most + 1) * (rng.random(most + 1) < 0.5)
        return values, (0.0, float(most)), np.cumsum(steps)[values.astype(int)]
    if kind == "usual":
        usual = rng.random(len(latent)) < 0.5
        values = np.where(usual, 40, np.clip(np.round(40 + 12 * latent), 1, 99))
        effect = np.tanh((values - rng.uniform(30, 50)) / 10)
        return values, (1.0, 99.0), effect + 0.5 * rng.normal() * (values == 40)
    if kind == "amount":
        start, some = rng.uniform(1, 1.8), rng.standard_normal(len(latent))
        amounts = np.clip(4 + 3 * (latent - start) + some, 0.5, 11.5)
        values = np.where(latent > start, amounts, 0.0)
        effect = np.where(values > rng.uniform(4, 9), 4.0, -0.5)
        return values, (0.0, 11.6), np.where(values > 0, effect, 0.0)
    if kind == "code":
        most = int(rng.choice([300, 1000, 9999]))
        values = np.floor(norm.cdf(latent) ** rng.uniform(0.6, 2) * most)
        groups = int(rng.integers(8, 40))
        group = np.searchsorted(np.sort(rng.uniform(0, most, groups)), values)
        return values, (0.0, float(most)), rng.standard_normal(groups + 1)[group]
    values, ends = column(rng.choice(("uniform", "normal")), latent, rng)
    return values, ends, shape(values, ends, rng.choice(SHAPES), rng)


def standard(values):
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else 0.0 * values


def column(kind, latent, rng):
    """Return numbers of a kind, and their public range."""
    if kind == "uniform":
        return norm.cdf(latent), (0.0, 1.0)
    if kind == "normal":
        center, spread = rng.uniform(0.3, 0.7), rng.uniform(0.05, 0.25)
        return np.clip(center + spread * latent, 0, 1), (0.0, 1.0)
    if kind == "skewed":
        spread = rng.uniform(0.5, 1.5)
        high = float(np.exp(spread * rng.uniform(3, 5)))
        return np.minimum(np.exp(spread * latent), high), (0.0, high)
    if kind == "wide":
        high = float(np.exp(rng.uniform(3, 7)))
        return np.minimum(np.exp(rng.uniform(0.3, 1.0) * latent), high), (0.0, high)
    if kind == "zeros":
        start = rng.uniform(-1, 1.5)
        rest = np.exp(rng.uniform(0.5, 1.0) * (latent - start) + 1)
        return np.minimum(np.where(latent > start, rest, 0.0), 100.0), (0.0, 100.0)
    most = int(rng.integers(4, 60))
    values = np.round(most / 2 + latent * most * rng.uniform(0.1, 0.3))
    return np.clip(values, 0, most), (0.0, float(most))


def shape(values, ends, kind, rng):
    """Return a random function of a column, in its ranks or in its range."""
    if rng.random() < 0.5:
        t = rankdata(values) / len(values)
    else:
        t = (values - ends[0]) / (ends[1] - ends[0])
    if kind == "monotone":
        t = np.tanh((t - rng.uniform(0.2, 0.8)) * rng.uniform(2, 10))
    elif kind == "bump":
        t = np.exp(-(((t - rng.uniform(0.1, 0.9)) / rng.uniform(0.05, 0.3)) ** 2))
    elif kind == "jump":
        steps = range(int(rng.integers(1, 4)))
        t = sum(rng.normal() * (t > rng.uniform()) for _ in steps)
    elif kind == "wave":
        t = np.sin(2 * np.pi * (rng.uniform(0.5, 3) * t + rng.uniform()))
    return standard(t)
