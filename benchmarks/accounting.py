"""Noise that budgets ask for, and how long it takes to find out."""

from __future__ import annotations

from functools import partial
from math import ceil, log1p
from statistics import median
from time import perf_counter

from dp_accounting import dp_event, mechanism_calibration
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation

from tacit.privacy import (
    Budget,
    GaussianNoise,
    Neighbors,
    PoissonSampled,
    Repeated,
    calibrate,
)
from tacit.privacy.events import TiltedMinimum
from tacit.solvers.noisy_sgd import HIDDEN, Sampling, least_noise


def main():
    print("objective perturbation, logistic rows of norm one, replace one, n = 36,176")
    for epsilon, ridge, known in ((0.1, 50.0, 116.0), (1.0, 4.9, 12.6)):
        budget = Budget(epsilon, 36_176**-2)
        offset = log1p(0.25 / ridge)
        scale = 2 * calibrate(partial(TiltedMinimum, offset), budget)
        print(f"  epsilon {epsilon:g}, ridge {ridge:g}: {scale:.2f} (known {known})")

    hundred = Repeated(GaussianNoise(20.0), 100).curve(Neighbors.REPLACE_ONE)
    one = GaussianNoise(2.0).curve(Neighbors.REPLACE_ONE)
    error = abs(hundred.epsilon(1e-6) / one.epsilon(1e-6) - 1)
    print(f"100 composed Gaussians against one: relative difference {error:.1e}")

    times = []
    for _ in range(50):
        start = perf_counter()
        calibrate(GaussianNoise, Budget(1.0, 1e-9))
        times.append(perf_counter() - start)
    print(f"calibrating a Gaussian: {1e3 * median(times):.2f} ms (bar 10)")

    print("calibrating sampled Gaussians, rate 0.0128, 1562 steps, to 1e-4, seconds")
    print("   eps   noise    ours  bisection  ratio (bar 3)   Brent of dp_accounting")
    delta = 6.25e-10
    calibrate(steps_of, Budget(2.0, delta, Neighbors.ADD_OR_REMOVE_ONE))  # load once
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        budget = Budget(epsilon, delta, Neighbors.ADD_OR_REMOVE_ONE)
        found, ours = timed(lambda: calibrate(steps_of, budget))  # noqa: B023
        _, plain = timed(lambda: bisection(epsilon, delta))  # noqa: B023
        _, brent = timed(lambda: brent_of_theirs(epsilon, delta))  # noqa: B023
        print(
            f"{epsilon:6g} {found:7.4f} {ours:7.2f} {plain:10.2f} "
            f"{plain / ours:6.1f} {brent:14.2f} ({brent / ours:.1f} times)",
            flush=True,
        )

    print(
        "noise of an estimate from samples, over that from all rows; samples at which"
    )
    print("the rule of NoisySGD stops, delta 1e-8, 100,000 rows")
    print("   eps  steps  add_or_remove_one  replace_one")
    for epsilon in (0.1, 1.0, 8.0):
        for n_steps in (30, 100, 300, 1000):
            budgets = [Budget(epsilon, 1e-8, neighbors) for neighbors in RELATIONS]
            added, replaced = (sample_cost(n_steps, budget) for budget in budgets)
            print(f"{epsilon:6g} {n_steps:6} {added:18.2f} {replaced:12.2f}")


RELATIONS = (Neighbors.ADD_OR_REMOVE_ONE, Neighbors.REPLACE_ONE)


def sample_cost(n_steps, budget, n_rows=100_000):
    all_rows = Sampling(n_rows, n_rows, n_steps, poisson=False)
    least = calibrate(all_rows.event, budget, rtol=1e-3)
    batch = ceil(HIDDEN * n_rows / least)
    poisson = budget.neighbors is Neighbors.ADD_OR_REMOVE_ONE
    noise = least_noise(Sampling(n_rows, batch, n_steps, poisson), budget)
    return noise * n_rows / batch / least


def timed(action):
    start = perf_counter()
    result = action()
    return result, perf_counter() - start


def steps_of(noise):
    return Repeated(PoissonSampled(GaussianNoise(noise), 0.0128), 1562)


def theirs(noise):
    inner = dp_event.PoissonSampledDpEvent(0.0128, dp_event.GaussianDpEvent(noise))
    return dp_event.SelfComposedDpEvent(inner, 1562)


def fits(noise, epsilon, delta):
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    return accountant.compose(theirs(noise)).get_epsilon(delta) <= epsilon


def bisection(epsilon, delta):
    high = 1.0
    while not fits(high, epsilon, delta):
        high *= 2
    low = high / 2
    while high > low * (1 + 1e-4):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fits(middle, epsilon, delta) else (middle, high)
    return high


def brent_of_theirs(epsilon, delta):
    return mechanism_calibration.calibrate_dp_mechanism(
        lambda: PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE),
        theirs,
        epsilon,
        delta,
        tol=1e-4,
    )


if __name__ == "__main__":
    main()
