"""Fit boosting machines of interpret; run inside its own environment.

Usage: ``fit_interpret.py table.npz given.json``. The file has columns ``numbers`` and
``codes``, the target ``y`` and one order of the rows per split. ``given`` has
``ranges`` and ``categories`` by name, ``y_range`` (None for classes), and ``jobs``,
each with a method, epsilon, delta, split, number of fitted rows and seed. Public facts
are passed on; everything else is the library's default, but for the methods in
`SETTINGS`. Prints one JSON object as soon as a job is done.
"""

import json
import sys
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from interpret.glassbox import (
    ExplainableBoostingClassifier,
    ExplainableBoostingRegressor,
)
from interpret.privacy import (
    DPExplainableBoostingClassifier,
    DPExplainableBoostingRegressor,
)

# Bags of the models without privacy: the default is 14
BAGS = 4
SETTINGS = {
    "dp_ebm": {},
    "dp_ebm_rate": {"learning_rate": 0.1},
    "ebm": {"interactions": 0, "outer_bags": BAGS},
    "ebm_pairs": {"outer_bags": BAGS},
}


def frame(arrays, given):
    columns = dict(zip(given["ranges"], arrays["numbers"].T, strict=True))
    for name, codes in zip(given["categories"], arrays["codes"].T, strict=True):
        columns[name] = np.array(given["categories"][name], dtype=object)[codes]
    return pd.DataFrame(columns)


def model(given, job):
    numbers, categories = given["ranges"], given["categories"]
    private = job["method"].startswith("dp_")
    common = {
        "feature_names": [*numbers, *categories],
        "n_jobs": 1,
        "random_state": job["seed"],
        **SETTINGS[job["method"]],
    }
    if not private:
        types = ["continuous"] * len(numbers) + ["nominal"] * len(categories)
        kind = (
            ExplainableBoostingClassifier
            if given["y_range"] is None
            else ExplainableBoostingRegressor
        )
        return kind(feature_types=types, **common)
    common |= {
        # with a list, no category is read from the rows
        "feature_types": ["continuous"] * len(numbers) + list(categories.values()),
        "privacy_bounds": {name: tuple(ends) for name, ends in numbers.items()},
        "epsilon": job["epsilon"],
        "delta": job["delta"],
    }
    if given["y_range"] is None:
        return DPExplainableBoostingClassifier(**common)
    low, high = given["y_range"]
    return DPExplainableBoostingRegressor(
        privacy_target_min=low, privacy_target_max=high, **common
    )


def fit(X, y, order, given, job):
    train, test = np.split(order, [job["n_train"]])
    rows, targets = X.iloc[train], y[train]
    fitted = model(given, job)
    start = process_time()
    fitted.fit(rows, targets)
    cpu = process_time() - start
    found = fitted.predict(X.iloc[test])
    if given["y_range"] is None:
        return float(np.mean(found == y[test])), cpu
    off = y[test] - np.clip(found, *given["y_range"])
    return float(1 - np.mean(off**2) / np.var(y[test])), cpu


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arrays = dict(np.load(sys.argv[1]))
    given = json.loads(Path(sys.argv[2]).read_text())
    X = frame(arrays, given)
    for position, job in enumerate(given["jobs"]):
        try:
            score, cpu = fit(X, arrays["y"], arrays["orders"][job["run"]], given, job)
            found = {"score": score, "cpu_s": cpu, "status": "ok", "note": ""}
        except Exception as error:  # one fit must not stop the others
            note = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            found = {"score": None, "cpu_s": 0.0, "status": "failed", "note": note}
        print(json.dumps({"job": position, **found}), flush=True)
