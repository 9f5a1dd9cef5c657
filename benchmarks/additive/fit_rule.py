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
from benchmarks.additive.synthetic_tables import (
    drawn,
    measurements,
    survey,
    wide,
)

from tacit import Seed
from tacit.additive import (
    AdditiveClassifier,
    AdditiveRegressor,
    _bins,
    _plan,
    _shrink,
    _sums,
    _terms,
)
from tacit.additive._terms import Waves

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


def around(waves):
    """Return 0.7 and 1.4 times the cosines, and their decay 0.2 lower and higher."""
    counts = [Waves(round(waves.count * by), waves.decay) for by in (0.7, 1.4)]
    return (
        *counts,
        *(Waves(waves.count, round(waves.decay + by, 1)) for by in (-0.2, 0.2)),
    )


# Module, constant and the values around the shipped one
VARIED = (
    (_bins, "POWER", (0.5, 0.75)),
    (_bins, "UNSEEN", (0.005, 0.08)),
    (_bins, "CROWDED", (1 / 256, 1 / 32)),
    (_plan, "BINS_FRACTION", (0.05, 0.2)),
    (_plan, "STEPS", (18, 32)),
    (_shrink, "UPDATES", (4, 16)),
    (_plan, "BY_MOMENTS", (0.5, 1.2)),
    (_sums, "MARGIN_NORM", (1.0, 1.5)),
    (_terms, "ROOM", (0.65, 1.0)),
    (_terms, "SPREAD_POWER", (0.0, 0.4)),
    (_terms, "WAVES_POWER", (0.2, 0.4)),
    (_terms, "MANY_COLUMNS", (8, 1000)),
)
CLASSES = ((_terms, "CLASSIFIER_WAVES", around(_terms.CLASSIFIER_WAVES)),)
RESIDUALS = (
    (_terms, "REGRESSOR_WAVES", around(_terms.REGRESSOR_WAVES)),
    (_plan, "RESIDUAL_CLIP", (0.25, 1.0)),
    (_plan, "TARGETS_FRACTION", (0.04, 0.1)),
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
        ("accuracy", (*CLASSES, *PAIRS), drawn),
        ("accuracy of surveys", CLASSES, survey),
        ("accuracy of wide tables", CLASSES, wide),
        ("variance", RESIDUALS, partial(drawn, regression=True)),
        ("variance of measurements", RESIDUALS, measurements),
    ):
        tables = list(map(draw, seeds))
        line(f"points of {what} lost at eps", EPSILONS)
        line("as shipped", losses(tables))
        line("with 3 pairs", losses(tables, 3))
        for module, constant, values in (*VARIED, *extra):
            for value in values:
                pairs = 3 if (module, constant, values) in PAIRS else 0
                with mock.patch.object(module, constant, value):
                    line(f"{constant} = {value}", losses(tables, pairs))


if __name__ == "__main__":
    main()
