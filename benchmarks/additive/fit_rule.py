"""The synthetic experiments behind the constants of additive models.

Draws random tables, changes one constant at a time, and prints the mean points of
accuracy (or of variance) lost to the best prediction there is. No real row is read.

    python -m benchmarks.additive.fit_rule [--tables 10]
"""

from __future__ import annotations

import argparse
from functools import partial
from unittest import mock

import numpy as np
from benchmarks.additive.synthetic_tables import drawn, survey

from tacit import Seed
from tacit.additive import AdditiveClassifier, AdditiveRegressor, _bins, _plan, _terms

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Module, constant and the values around the shipped one
VARIED = (
    (_bins, "POWER", (0.5, 0.75)),
    (_bins, "UNSEEN", (0.005, 0.08)),
    (_bins, "CROWDED", (1 / 256, 1 / 32)),
    (_plan, "BINS_FRACTION", (0.05, 0.2)),
    (_terms, "ROOM", (0.7, 1.1)),
    (_terms, "WAVES", (12, 27)),
    (_terms, "WAVES_POWER", (0.1, 0.3)),
    (_terms, "DECAY", (0.4, 0.8)),
)
RESIDUALS = (
    (_plan, "RESIDUAL_CLIP", (0.25, 1.0)),
    (_plan, "TARGETS_FRACTION", (0.01, 0.05)),
)
PAIRS = ((_plan, "PAIRS_FRACTION", (0.1, 0.3)),)


def losses(tables, interactions=0):
    """Return the mean loss at each epsilon."""
    found = []
    for epsilon in EPSILONS:
        lost = []
        for table in tables:
            given = {
                "ranges": table.ranges,
                "categories": table.categories,
                "random_state": Seed(len(lost)),
                "interactions": min(interactions, table.X.shape[1]),
            }
            if table.y_range is None:
                model = AdditiveClassifier(epsilon, classes=[0, 1], **given)
            else:
                model = AdditiveRegressor(epsilon, y_range=table.y_range, **given)
            lost.append(table.excess(model.fit(table.X[: table.n], table.y[: table.n])))
        found.append(np.mean(lost))
    return found


def line(name, found):
    print(f"{name:40}" + " ".join(f"{value:7.2f}" for value in found), flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=10)
    given = parser.parse_args(arguments)
    seeds = range(1000, 1000 + given.tables)
    for what, extra, draw in (
        ("accuracy", PAIRS, drawn),
        ("accuracy of surveys", (), survey),
        ("variance", RESIDUALS, partial(drawn, regression=True)),
    ):
        tables = list(map(draw, seeds))
        line(f"points of {what} lost at eps", EPSILONS)
        line("as shipped", losses(tables))
        line("with 3 pairs", losses(tables, 3))
        for module, constant, values in (*VARIED, *extra):
            for value in values:
                pairs = 3 if (module, constant, values) in PAIRS else 0
                with mock.patch.object(module, constant, value):
                    line(f"{constant} = {value:.4g}", losses(tables, pairs))


if __name__ == "__main__":
    main()
