"""How far composed epsilons are above the exact ones, over 240 mixtures.

Each mixture is accounted twice: by `PrivacyCurve`, and by a reference that shares no
code with it. References are dp_accounting's loss distributions on a fine grid, whose
error is estimated from a grid twice as coarse and subtracted; the closed form of
Kairouz, Oh and Viswanath (2017) for pure and approximate privacy; and for bounded-range
mechanisms a search over a fine grid of the adversary's choices, whose answer is a lower
estimate. A ratio is epsilon over that; "below" counts mixtures under 1 - 1e-6. The
mixtures with the largest and the smallest ratio are printed last.

    python benchmarks/composition.py [mixtures of a family, 20 unless given]
"""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import chain
from math import ceil, expm1, inf, lgamma, log1p, sqrt
from time import perf_counter

import numpy as np
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from tacit._random import as_generator
from tacit.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    PoissonSampled,
    PureDP,
    Repeated,
)
from tacit.privacy.combined import FixedSizeSampled

ADD, REPLACE = Neighbors.ADD_OR_REMOVE_ONE, Neighbors.REPLACE_ONE


# ---- references


def loss_of(event, count, step):
    """Return dp_accounting's loss distribution of an event, ``count`` times."""
    given = {"value_discretization_interval": step}
    match event:
        case LaplaceNoise():
            one = pld.from_laplace_mechanism(event.multiplier, **given)
        case GaussianNoise():
            one = pld.from_gaussian_mechanism(
                event.multiplier, log_mass_truncation_bound=-60, **given
            )
        case PoissonSampled():
            one = pld.from_gaussian_mechanism(
                event.event.multiplier,
                sampling_prob=event.rate,
                log_mass_truncation_bound=-60,
                **given,
            )
        case PureDP() | ApproxDP():
            delta = getattr(event, "delta", 0.0)
            one = pld.from_privacy_parameters(
                common.DifferentialPrivacyParameters(event.epsilon, delta),
                value_discretization_interval=step,
            )
        case FixedSizeSampled():
            one = fixed_size_loss(event, step)
    return one if count == 1 else one.self_compose(count)


def fixed_size_loss(event, step):
    """Return the loss of a fixed-size sample, from integrated densities."""
    q, scale = event.size / event.n_rows, event.event.multiplier
    # delta of (1 - q) N(0) + q N(1) against N(0), where the first is more likely
    end = log1p(q * expm1(min(600.0, (0.5 / scale + 10) / scale)))
    n = ceil(end / step)
    epsilons = step * np.arange(-n, n + 1)
    above = np.abs(epsilons)
    cut = (
        scale**2 * np.log1p(np.expm1(above) / q) + 0.5
    )  # where the ratio is exp(above)
    tail = stats.norm.sf(cut, scale=scale)
    shifted = stats.norm.sf(cut, 1.0, scale)
    deltas = q * shifted + (1 - q) * tail - np.exp(above) * tail
    # the other direction holds as well
    deltas = np.where(
        epsilons < 0, -np.expm1(epsilons) + np.exp(epsilons) * deltas, deltas
    )
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(
        step, np.arange(-n, n + 1), deltas
    )
    return pld.PrivacyLossDistribution(pmf)


def composed_reference(parts, delta):
    """Return a lower estimate of epsilon by dp_accounting."""
    scale = sqrt(sum(n * spread_of(event) ** 2 for event, n in parts))
    # rounding errors of a step add up over the steps
    step = max(1e-5, scale / 400 / sqrt(sum(n for _, n in parts)))
    for event, _ in parts:
        if isinstance(event, PureDP):  # whose losses are rounded, so on both grids
            step = event.epsilon / 2 / ceil(event.epsilon / 2 / step)
    coarse, fine = (epsilon_on_grid(parts, delta, h) for h in (2 * step, step))
    return fine - abs(coarse - fine)


def epsilon_on_grid(parts, delta, step):
    total = None
    for event, count in parts:
        one = loss_of(event, count, step)
        total = one if total is None else total.compose(one)
    return total.get_epsilon_for_delta(delta)


def spread_of(event):
    """Return roughly the standard deviation of the loss of an event."""
    match event:
        case LaplaceNoise() | GaussianNoise():
            return min(1 / event.multiplier, 3.0)
        case PoissonSampled():
            return min(1.0, event.rate * 1.5) / event.event.multiplier
        case FixedSizeSampled():
            return min(1.0, 1.5 * event.size / event.n_rows) / event.event.multiplier
    return min(event.epsilon, 3.0)


def response_epsilon(epsilon, delta_each, count, delta):
    """Return epsilon of Kairouz, Oh and Viswanath (2017), Theorem 3.3, by bisection."""
    wins = np.arange(count + 1)
    choose = np.array(
        [lgamma(count + 1) - lgamma(i + 1) - lgamma(count - i + 1) for i in wins]
    )
    losses = (2 * wins - count) * epsilon
    masses = np.exp(choose + wins * epsilon - count * np.log1p(np.exp(epsilon)))
    lost = -expm1(count * log1p(-delta_each))

    def delta_at(e):
        inside = masses @ np.maximum(-np.expm1(np.minimum(e - losses, 0.0)), 0.0)
        return lost + (1 - lost) * inside

    low, high = 0.0, count * epsilon
    if delta_at(high) > delta:
        return inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


@lru_cache(maxsize=64)
def range_deltas(epsilon, count):
    """Return epsilons and a lower estimate of delta, with choices t on a grid."""
    n = max(24, min(120, ceil(1200 / count)))
    step = epsilon / n
    t = step * np.arange(n + 1)
    up = np.expm1(epsilon - t) / (np.expm1(epsilon - t) - np.expm1(-t))
    size = min(count * n, ceil(n * (6 * sqrt(count) + count * epsilon / 8 + 2)))
    epsilons = step * np.arange(-size - n, size + n + 1)
    delta = np.maximum(-np.expm1(epsilons), 0.0)
    inside = slice(n, -n)
    for _ in range(count):
        new = np.zeros(2 * size + 1)
        for i in range(n + 1):
            lose = delta[n - i : len(delta) - n - i]
            win = delta[2 * n - i : len(delta) - i or None]
            np.maximum(new, up[i] * lose + (1 - up[i]) * win, out=new)
        delta[inside] = new
    return epsilons[inside], delta[inside]


def range_epsilon(epsilon, count, delta, mu=0.0):
    """Return a lower estimate for bounded-range events and a Gaussian one before."""
    epsilons, deltas = range_deltas(epsilon, count)
    z = np.linspace(-9, 9, 1801)
    weights = stats.norm.pdf(z) * (z[1] - z[0])
    grown = np.exp(epsilons)

    def delta_at(e):
        if mu == 0:
            return below(e)
        return weights @ below(e - mu * mu / 2 - mu * z)

    def below(e):
        # straight in exp(epsilon) between points, less what that adds
        found = np.interp(np.exp(e), grown, deltas)
        return np.where(e < epsilons[0], -np.expm1(np.minimum(e, 0.0)), found)

    low, high = 0.0, count * epsilon + 40 * mu + 40 * mu**2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


# ---- mixtures


def mixtures(n, rng):
    """Yield family, parts, neighbors, delta; the parts with their counts."""
    for _ in range(n):
        delta = 10.0 ** rng.uniform(-9, -3)
        count = round(10 ** rng.uniform(0.3, 2.3))
        target = rng.uniform(0.2, 3.0)  # epsilon that it comes to, roughly
        each = target / 5 / sqrt(count)
        laplace, gaussian = LaplaceNoise(1 / each), GaussianNoise(5 / target)
        rate = 10.0 ** rng.uniform(-2.5, -0.7)
        noise = GaussianNoise(rng.uniform(0.8, 3.0))
        size = round(1000 * rate)
        yield "Laplace x k", [(laplace, count)], ADD, delta
        yield "pure x k", [(PureDP(each), count)], ADD, delta
        yield (
            "approximate x k",
            [(ApproxDP(each, delta / 3 / count), count)],
            ADD,
            delta,
        )
        yield "bounded range x k", [(BoundedRange(2 * each), count)], ADD, delta
        yield (
            "Gaussian + Laplace",
            [(gaussian, 1), (LaplaceNoise(5 / target), 1)],
            ADD,
            delta,
        )
        parts = [(gaussian, 1), (laplace, count), (PureDP(1.7 * each), 3)]
        yield "Gaussian + Laplace x k + pure x 3", parts, ADD, delta
        yield "Poisson x k", [(PoissonSampled(noise, rate), count)], ADD, delta
        parts = [(PoissonSampled(noise, rate), count), (LaplaceNoise(5 / target), 1)]
        yield "Poisson x k + Laplace", parts, ADD, delta
        steps = 1 if rng.random() < 0.5 else count
        yield (
            "fixed size x k",
            [(FixedSizeSampled(noise, size, 1000), steps)],
            REPLACE,
            delta,
        )
        parts = [(BoundedRange(2 * each), min(count, 60)), (gaussian, 1)]
        yield "bounded range x k + Gaussian", parts, ADD, delta


def small_samples(n, rng):
    """Yield sampled steps of many shapes, in the form of `mixtures`.

    Where rates and noise are small, rare steps with large losses decide.
    """
    for _ in range(n):
        delta = 10.0 ** rng.uniform(-9, -3)
        count = round(10 ** rng.uniform(1, 3))
        noise = GaussianNoise(rng.uniform(0.7, 2.5))
        size = round(10.0 ** rng.uniform(2, 4.5))
        poisson = PoissonSampled(noise, size / 100_000)
        yield "Poisson x k, any shape", [(poisson, count)], ADD, delta
        fixed = FixedSizeSampled(noise, size, 100_000)
        yield "fixed size x k, any shape", [(fixed, count)], REPLACE, delta


def reference(parts, delta):
    """Return a lower estimate of the exact epsilon."""
    (event, count), *others = parts
    match event:
        case PureDP() | ApproxDP() if not others:
            each = getattr(event, "delta", 0.0)
            return response_epsilon(event.epsilon, each, count, delta)
        case BoundedRange():
            mu = 1 / others[0][0].multiplier if others else 0.0
            return range_epsilon(event.epsilon, count, delta, mu)
    return composed_reference(parts, delta)


def compare(parts, neighbors, delta):
    """Return epsilon, its ratio to the lower reference, and seconds."""
    event = Composed(tuple(Repeated(event, count) for event, count in parts))
    curve = event.curve(neighbors)
    start = perf_counter()
    found = curve.epsilon(delta)
    taken = perf_counter() - start
    low = reference(parts, delta)
    return found, (found / low if low > 0 else 1.0), taken


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rows, cells = {}, []
    cases = chain(mixtures(n, as_generator(20)), small_samples(n, as_generator(21)))
    for family, parts, neighbors, delta in cases:
        found, ratio, taken = compare(parts, neighbors, delta)
        if found > 1e-3:
            rows.setdefault(family, []).append((ratio, taken))
            cells.append((ratio, f"delta {delta:.3g}: {parts}"))
    print(f"{'family':34} mixtures  largest  smallest  below   ms each (largest)")
    for family, found in rows.items():
        ratios, seconds = np.array(found).T
        print(
            f"{family:34} {len(ratios):8} {ratios.max():8.4f} {ratios.min():9.6f} "
            f"{np.sum(ratios < 1 - 1e-6):6} {1e3 * seconds.max():10.1f}"
        )
    every = np.array([ratio for found in rows.values() for ratio, _ in found])
    print(
        f"all {len(every)}: ratios from {every.min():.6f} to {every.max():.4f} "
        "(bar 1.01)"
    )
    cells.sort()
    for ratio, mixture in (cells[0], *cells[:-4:-1]):
        print(f"{ratio:.6f}  {mixture}")


if __name__ == "__main__":
    main()
