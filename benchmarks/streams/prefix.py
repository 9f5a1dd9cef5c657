"""Errors, speed and memory of noisy sums of a stream.

    python -m benchmarks.streams.prefix [--quick]

All mechanisms have the same privacy: unit sensitivity, and a multiplier of one for the
whole stream. Errors are in units of both, measured on 100 numbers at once beside what
theory says; the largest that is measured is the largest of many estimates from 100
numbers, hence a little above theory. Errors by theory are then compared with expected
values, to four digits.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from benchmarks.streams.common import RESULTS
from benchmarks.tables import arguments, markdown

from tacit.mechanisms import as_generator
from tacit.mechanisms.continual import BLTSum, GrowingSum, TreeSum, WindowSum
from tacit.mechanisms.continual._square_root import SquareRootSum
from tacit.mechanisms.continual._trees import HonakerTree

SIZE = 100
BLOCK = 2000
HORIZONS = (1000, 10_000, 65_536, 100_000, 1_000_000)
QUICK = (1000, 10_000)
SPEED_STEPS = 40_000

KINDS = {
    "tree": TreeSum,
    "honaker": HonakerTree,
    "square root": SquareRootSum,
    "blt 1": lambda n, m, s: BLTSum(n, m, s, buffers=1),
    "blt 2": lambda n, m, s: BLTSum(n, m, s, buffers=2),
    "blt 3": lambda n, m, s: BLTSum(n, m, s, buffers=3),
    "blt": BLTSum,
    "growing blt": lambda n, m, s: GrowingSum(m, s),
    "growing blt, doubling": lambda n, m, s: GrowingSum(m, s, growth=2),
}
# a million steps of these tell nothing new, and take long
SHORT = ("blt 1", "blt 2", "blt 3", "growing blt, doubling", "honaker")

# Largest error over all steps, and the root mean square, which is left out for buffers:
# their designs make the first least
EXPECTED = {
    "tree": {
        10: (10.49, 7.42),
        14: (14.49, 10.25),
        16: (16.49, 11.66),
        20: (20.49, 14.49),
    },
    "honaker": {
        10: (7.99, 5.65),
        14: (10.82, 7.65),
        16: (12.23, 8.65),
        20: (15.06, 10.65),
    },
    "square root": {
        10: (3.273, 3.110),
        14: (4.155, 3.993),
        16: (4.596, 4.434),
        20: (5.479, 5.317),
    },
    "blt 2": {10: (3.330, 3.084), 14: (4.429, 4.127), 16: (5.081, None)},
    "blt 3": {10: (3.278, 3.059), 14: (4.203, 3.965), 16: (4.697, None)},
    "blt": {10: (3.273, 3.057), 14: (4.163, None), 16: (4.617, None)},
}


def theory(mechanism, horizon):
    """Root mean square and largest deviation over the horizon."""
    if isinstance(mechanism, GrowingSum):
        found = epochs_deviation(mechanism, horizon)
    else:
        found = mechanism.std(SIZE)
    return np.sqrt(np.mean(found**2)), found.max()


def epochs_deviation(mechanism, horizon):
    parts, epoch = [], 0
    while sum(map(len, parts)) < horizon:
        own = mechanism.inner(epoch).std(SIZE)
        carried = epoch * mechanism.total().scale(SIZE) ** 2
        parts.append(np.sqrt(own**2 + carried))
        epoch += 1
    return np.concatenate(parts)[:horizon]


def held_bytes(state):
    """Bytes of the arrays of a state."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    if isinstance(state, tuple):
        return sum(map(held_bytes, state))
    if hasattr(state, "__dict__"):
        return sum(map(held_bytes, vars(state).values()))
    return 0


def run(mechanism, horizon, seed):
    """Feed a stream in blocks; return squared errors of each step, seconds, bytes."""
    rng, data = as_generator(seed), as_generator(1)
    state, exact = mechanism.init((SIZE,)), np.zeros(SIZE)
    squares, seconds, most = [], 0.0, 0
    for start in range(0, horizon, BLOCK):
        n = min(BLOCK, horizon - start)
        values = data.uniform(-1, 1, (n, SIZE)) / np.sqrt(SIZE)
        began = time.perf_counter()
        state, sums = mechanism.steps(state, values, rng)
        seconds += time.perf_counter() - began
        most = max(most, held_bytes(state))
        exact_sums = exact + np.cumsum(values, axis=0)
        squares.append(np.mean((sums - exact_sums) ** 2, axis=1))
        exact = exact_sums[-1]
    return np.concatenate(squares), seconds, most


def errors(horizons):
    """One row a mechanism and horizon."""
    for horizon in horizons:
        tree = None
        for name, make in KINDS.items():
            if name in SHORT and horizon > 100_000:
                continue
            mechanism = make(horizon, 1.0, 1.0)
            run(mechanism, 2, 0)  # compiles
            squares, seconds, most = run(mechanism, horizon, 0)
            rms, largest = theory(mechanism, horizon)
            tree = tree or (rms, largest)
            yield {
                "part": "errors",
                "mechanism": name,
                "horizon": horizon,
                "rms": float(np.sqrt(squares.mean())),
                "rms_theory": rms,
                "largest": float(np.sqrt(squares.max())),
                "largest_theory": largest,
                "rms_to_tree": rms / tree[0],
                "largest_to_tree": largest / tree[1],
                "microseconds_a_step": 1e6 * seconds / horizon,
                "state_bytes": most,
            }


def comparisons(exponents):
    """Errors by theory beside the expected values."""
    for name, table in EXPECTED.items():
        for exponent, (largest, rms) in table.items():
            if exponent not in exponents:
                continue
            found = KINDS[name](2**exponent, 1.0, 1.0).std(1)
            mean = float(np.sqrt(np.mean(found**2)))
            yield {
                "part": "comparison",
                "mechanism": name,
                "horizon": 2**exponent,
                "largest": float(found.max()),
                "largest_expected": largest,
                "off": float(found.max() / largest - 1),
                "rms": mean,
                "rms_expected": rms,
                "rms_off": None if rms is None else mean / rms - 1,
            }


def speeds():
    """Steps a second on blocks and one by one, and processor time a step."""
    values = as_generator(1).uniform(-1, 1, (SPEED_STEPS, SIZE)) / np.sqrt(SIZE)
    kinds = {**KINDS, "window": lambda n, m, s: WindowSum(1000, m, s)}
    for name, make in kinds.items():
        mechanism, rng = make(100_000, 1.0, 1.0), as_generator(0)
        state, _ = mechanism.steps(mechanism.init((SIZE,)), values[:BLOCK], rng)
        began, worked = time.perf_counter(), time.process_time()
        for start in range(BLOCK, SPEED_STEPS, BLOCK):
            state, _ = mechanism.steps(state, values[start : start + BLOCK], rng)
        n = SPEED_STEPS - BLOCK
        wall = time.perf_counter() - began
        worked = time.process_time() - worked
        began = time.perf_counter()
        for value in values[:500]:
            state, _ = mechanism.step(state, value, rng)
        single = (time.perf_counter() - began) / 500
        yield {
            "part": "speed",
            "mechanism": name,
            "steps_a_second": n / wall,
            "processor_microseconds_a_step": 1e6 * worked / n,
            "single_steps_a_second": 1 / single,
        }


def main(argv=None):
    quick = arguments(argv, __doc__).quick
    parts = {
        "errors": list(errors(QUICK if quick else HORIZONS)),
        "comparison": list(comparisons((10, 14) if quick else (10, 14, 16, 20))),
        "speed": list(speeds()),
    }
    for rows in parts.values():
        print(markdown([{k: v for k, v in row.items() if k != "part"} for row in rows]))
        print()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"Peak memory of the process: {peak:.2f} GiB.")
    fields = dict.fromkeys(k for rows in parts.values() for row in rows for k in row)
    rows = [{**dict.fromkeys(fields), **r} for rs in parts.values() for r in rs]
    RESULTS.save("prefix", rows, quick=quick)


if __name__ == "__main__":
    main(sys.argv[1:])
