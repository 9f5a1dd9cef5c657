"""Fit diffprivlib's logistic regression; run inside its own environment.

Usage: ``fit_diffprivlib.py split.npz '{"epsilons": [1], "seed": 0}'``. Rows in the
file are within norm one already, and that bound is given as ``data_norm``. Everything
else is the library's default. Prints one JSON list.
"""

import json
import sys
import warnings
from time import perf_counter, process_time

import numpy as np
from diffprivlib.models import LogisticRegression


def fit(split, epsilon, seed):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed)
        cpu, wall = process_time(), perf_counter()
        model.fit(split["X"], split["y"])
        cpu, wall = process_time() - cpu, perf_counter() - wall
        accuracy = float(np.mean(model.predict(split["X_test"]) == split["y_test"]))
    return {
        "epsilon": epsilon,
        "accuracy": accuracy,
        "cpu_s": cpu,
        "wall_s": wall,
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught}),
    }


if __name__ == "__main__":
    rows = dict(np.load(sys.argv[1]))
    given = json.loads(sys.argv[2])
    fitted = []
    for repeat in range(given.get("repeats", 1)):
        fitted += [fit(rows, e, given["seed"] + repeat) for e in given["epsilons"]]
    print(json.dumps(fitted))
