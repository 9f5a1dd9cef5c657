"""Draws per second on one core: exact integer noise against floats.

Run as ``python benchmarks/noise_speed.py``. Medians of five timings after a warm-up.
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter

from numpy.random import PCG64, Generator

from tacit._random import as_generator
from tacit.mechanisms import noise

N_DRAWS = 1_000_000
N_TIMINGS = 5
BAR = 2e6  # rounded_normal draws a second that the library holds itself to


def rate(draw: Callable[[], object]) -> float:
    """Draws per second of wall-clock time, as a median."""
    draw()
    seconds = []
    for _ in range(N_TIMINGS):
        start = perf_counter()
        draw()
        seconds.append(perf_counter() - start)
    return N_DRAWS / median(seconds)


def main() -> None:
    """Print one line a sampler, with its ratio to NumPy's normal."""
    exact, plain = as_generator(0), Generator(PCG64(0))
    rates = {
        "numpy PCG64 normal": rate(lambda: plain.standard_normal(N_DRAWS)),
        "rounded_normal": rate(lambda: noise.rounded_normal(N_DRAWS, exact)),
        "discrete_laplace": rate(lambda: noise.discrete_laplace(N_DRAWS, exact)),
    }
    reference = rates["numpy PCG64 normal"]
    for name, value in rates.items():
        print(f"{name:20s} {value / 1e6:8.2f} M/s   {value / reference:.3f} of numpy")
    verdict = "above" if rates["rounded_normal"] >= BAR else "BELOW"
    print(f"rounded_normal is {verdict} the bar of {BAR / 1e6:.0f} M/s")


if __name__ == "__main__":
    main()
