"""The buffers of BLTSum: parameters of least error, for each horizon and number.

    python -m benchmarks.streams.design_blt

writes ``src/tacit/mechanisms/continual/_designs.py``. The objective is the product of
the column norm of C and the largest row norm of B, by sums of geometric series, after
K. Dvijotham, H. B. McMahan, K. Pillutla, T. Steinke and A. Thakurta, "Efficient and
near-optimal noise generation for streaming differential privacy", FOCS 2024. C is a
product of factors ``(1 - th' x) / (1 - th x)`` with poles and zeros in turns, so that
all weights are positive. The library runs the recurrence and trusts none of this.
"""

from math import log, sqrt
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

LONGEST = 26
MOST_BUFFERS = 4
DIGITS = 10
TARGET = Path(__file__).parents[2] / "src/tacit/mechanisms/continual/_designs.py"

HEAD = '''"""Buffers of `BLTSum`, made by ``benchmarks/streams/design_blt.py``.

One entry for each number of buffers, with one design for each horizon 2**0, 2**1, ...:
gaps, which are one minus the decay of each buffer, and weights.
"""

__all__ = ["DESIGNS"]

Design = tuple[tuple[float, ...], tuple[float, ...]]

# fmt: off
DESIGNS: dict[int, tuple[Design, ...]] = {
'''


def poles_and_zeros(parameters):
    """Gaps of poles and zeros, from logits that rise by exponentials."""
    rises = np.concatenate([[0.0], np.cumsum(np.exp(parameters[1:]))])
    gaps = 1 / (1 + np.exp(-parameters[0] - rises))
    return gaps[0::2], gaps[1::2]


def others(gaps, j):
    return np.delete(gaps, j) - gaps[j]


def weights_of(poles, zeros):
    return np.array(
        [
            (zeros[j] - poles[j])
            * np.prod((np.delete(zeros, j) - poles[j]) / others(poles, j))
            for j in range(len(poles))
        ]
    )


def geometric(log_ratio, n):
    return np.expm1(n * log_ratio) / np.expm1(log_ratio)


def error(parameters, n):
    """Column norm of C times the largest row norm of B, at the horizon n."""
    if np.abs(parameters).max() > 40:
        return 1e3
    poles, zeros = poles_and_zeros(parameters)
    weights = weights_of(poles, zeros)
    logs = np.log1p(-poles)
    columns = 1 + weights @ geometric(logs[:, None] + logs, n - 1) @ weights
    # B(x) = prod (1 - pole x) / (1 - zero x) / (1 - x) in partial fractions
    level = np.prod(poles / zeros)
    parts = np.array(
        [
            np.prod(poles - zeros[j]) / np.prod(others(zeros, j)) / -zeros[j]
            for j in range(len(zeros))
        ]
    )
    logs = np.log1p(-zeros)
    rows = level**2 * n + 2 * level * parts @ geometric(logs, n)
    rows += parts @ geometric(logs[:, None] + logs, n) @ parts
    return sqrt(columns * rows)


def designed(n, n_buffers, start):
    def objective(parameters):
        with np.errstate(all="ignore"):
            value = error(parameters, n)
        return value if np.isfinite(value) else 1e3

    spread = np.full(2 * n_buffers - 1, log(log(n) / (2 * n_buffers)))
    starts = [np.concatenate([[-log(n)], spread])]
    best = None
    for point in [*starts, *start]:
        for _ in range(4):
            options = {
                "maxfev": 20_000,
                "xatol": 1e-9,
                "fatol": 1e-13,
                "adaptive": True,
            }
            found = minimize(objective, point, method="Nelder-Mead", options=options)
            point = found.x
        if best is None or found.fun < best.fun:
            best = found
    return best


def main():
    lines = [HEAD]
    for n_buffers in range(1, MOST_BUFFERS + 1):
        # a horizon too short to tell so many buffers apart borrows from a longer one
        shortest = 2 + n_buffers
        start, designs = [], {}
        for exponent in range(shortest, LONGEST + 1):
            found = designed(2**exponent, n_buffers, start)
            start = [found.x]
            poles, zeros = poles_and_zeros(found.x)
            designs[exponent] = poles, weights_of(poles, zeros)
            print(n_buffers, exponent, f"{found.fun:.4f}", flush=True)
        lines.append(f"    {n_buffers}: (\n")
        for exponent in range(LONGEST + 1):
            parts = designs[max(exponent, shortest)]
            texts = [", ".join(f"{x:.{DIGITS}g}" for x in part) for part in parts]
            lines.append(f"        (({texts[0]},),\n         ({texts[1]},)),\n")
        lines.append("    ),\n")
    lines.append("}\n")
    TARGET.write_text("".join(lines))


if __name__ == "__main__":
    main()
