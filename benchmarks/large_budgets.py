"""Distance of linear models from their minimizers without privacy, by epsilon.

``python -m benchmarks.large_budgets`` prints the relative error of the margins of each
model in ``tests/linear_model/test_large_budgets.py``, the median of three draws of the
noise: under a minute on one core. ``--solvers amp noisy_gd`` takes solvers by name in
place of "auto", and leaves out models that reject them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from benchmarks.recommend.common import markdown
from numpy.typing import NDArray
from tests.linear_model import test_large_budgets as subjects

from tacit import Seed

EPSILONS = (1e2, 1e4, 1e6, 1e8)
DRAWS = 3
Minimum = Callable[[Any], NDArray[np.float64]]


def models() -> Iterator[tuple[str, Any, NDArray[Any], Any, Minimum]]:
    """Yield name, model, targets, loss, and the margins of the minimizer of a loss."""
    for name, (model, y, loss, ridge) in subjects.MODELS.items():
        yield (
            name,
            model,
            y,
            loss,
            lambda of, y=y, r=ridge: subjects.predicted(of, y, r),
        )
    for name, (model, y, loss, prox, constant) in subjects.PENALIZED.items():
        unit = max(subjects.Y_RANGE) if y is subjects.TARGETS else 1.0
        yield (
            name,
            model,
            y,
            loss,
            lambda of, y=y / unit if unit > 1 else y, u=unit, p=prox, c=constant: (
                u * subjects.composite(of, y, p, c)
            ),
        )


def table(solvers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a line for each model and solver."""
    for name, model, y, loss, minimum in models():
        for solver in solvers:
            line: dict[str, Any] = {"model": name, "solver": solver}
            try:
                for epsilon in EPSILONS:
                    found = []
                    for seed in range(DRAWS):
                        model.set_params(
                            epsilon=epsilon, random_state=Seed(seed), solver=solver
                        ).fit(subjects.X, y)
                        exact = subjects.centered(
                            minimum(subjects.stated_loss(model, loss))
                        )
                        error = np.linalg.norm(subjects.scores(model) - exact)
                        found.append(error / np.linalg.norm(exact))
                    line[f"epsilon {epsilon:.0e}"] = f"{np.median(found):.1e}"
            except ValueError:  # not for this model
                continue
            yield line


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solvers", nargs="+", default=["auto"], metavar="NAME")
    print(markdown(table(parser.parse_args(argv).solvers)))


if __name__ == "__main__":
    main()
