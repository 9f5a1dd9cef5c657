"""Fit diffprivlib's linear regression; run inside its own environment.

Usage: ``fit_diffprivlib_regression.py split.npz '{"epsilons": [1], "seed": 0, ...}'``
with ``low`` and ``high`` of the columns and ``y_range``. All else is the library's
default, but that predictions are cut to ``y_range``. Prints one JSON list.
"""

import json
import sys
import warnings
from time import perf_counter

import numpy as np
from diffprivlib.models import LinearRegression


def fit(split, epsilon, given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LinearRegression(
            epsilon=epsilon,
            bounds_X=(np.array(given["low"]), np.array(given["high"])),
            bounds_y=tuple(given["y_range"]),
            random_state=given["seed"],
        )
        start = perf_counter()
        model.fit(split["X"], split["y"])
        wall = perf_counter() - start
        found = np.clip(model.predict(split["X_test"]), *given["y_range"])
        off = split["y_test"] - found
    return {
        "epsilon": epsilon,
        "r2": float(1 - np.mean(off**2) / np.var(split["y_test"])),
        "wall_s": wall,
        "warnings": sorted({w.category.__name__ for w in caught}),
    }


if __name__ == "__main__":
    rows = dict(np.load(sys.argv[1]))
    asked = json.loads(sys.argv[2])
    print(json.dumps([fit(rows, epsilon, asked) for epsilon in asked["epsilons"]]))
