"""Noise that budgets ask for, and how long it takes to find out."""

from __future__ import annotations

from functools import partial
from math import log1p
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
    TiltedMinimum,
    calibrate,
)


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

    print("calibrating sampled Gaussians, rate 0.0128, 1562 steps, against bisection")
    delta = 6.25e-10
    for epsilon in (0.5, 1.0, 4.0):
        budget = Budget(epsilon, delta, Neighbors.ADD_OR_REMOVE_ONE)
        start = perf_counter()
        ours = calibrate(
            lambda m: Repeated(PoissonSampled(GaussianNoise(m), 0.0128), 1562), budget
        )
        took = perf_counter() - start
        start = perf_counter()
        theirs = mechanism_calibration.calibrate_dp_mechanism(
            lambda: PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE),
            lambda m: dp_event.SelfComposedDpEvent(
                dp_event.PoissonSampledDpEvent(0.0128, dp_event.GaussianDpEvent(m)),
                1562,
            ),
            epsilon,
            delta,
            tol=1e-4,
        )
        plain = perf_counter() - start
        print(
            f"  epsilon {epsilon:g}: {ours:.4f} in {took:.1f} s, bisection "
            f"{theirs:.4f} in {plain:.1f} s, {plain / took:.1f} times as long (bar 3)",
            flush=True,
        )


if __name__ == "__main__":
    main()
