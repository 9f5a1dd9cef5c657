"""What each repair of the published bound is worth, on the real faces.

``python -m benchmarks.fairness.ladder`` bounds the accuracy that privacy can cost on
``celeba_attributes``, at epsilon one and delta one over the squared number of rows,
with probability 0.99: first as published, then with one repair after the other. A
column is a model: with the ridge that the published code really has, with the one that
it names and that its noise is for, and with a loss whose derivative is capped at one
half, which halves the sensitivity. Noise calibrated for the second says nothing about
the privacy of the first, whose bounds are there only for comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.fairness import common
from benchmarks.fairness.bounds import PRINTED_LIPSCHITZ, Judge
from benchmarks.fairness.data import SETS, Array, load
from benchmarks.fairness.models import (
    FAILURE,
    N_MODELS,
    STRONG_CONVEXITY,
    Fits,
    classical_scale,
    exact_scale,
)
from benchmarks.fairness.printed import printed_distance
from benchmarks.tables import arguments, markdown

from tacit._random import as_generator
from tacit.fairness._distances import expected_flips, output_perturbation_distance
from tacit.mechanisms import Gaussian

EPSILON, SEED = 1.0, 0


@dataclass(frozen=True, eq=False)
class Model:
    """Weights without noise, and the largest gradient of a row's loss."""

    words: str
    weights: Array
    lipschitz: float


def models(fits: Fits) -> Iterator[Model]:
    """Yield the models of the columns."""
    problem, n = fits.problem, fits.problem.n_rows
    mu, x_norm = STRONG_CONVEXITY, fits.problem.x_norm
    yield Model("ridge as in the code", fits.plain(n, n / mu), x_norm)
    yield Model("ridge as stated", fits.plain(n, 1 / (n * mu)), x_norm)
    capped = fits.reference("corrected", n, EPSILON).weights
    yield Model("as stated, with capped derivative", capped, problem.x_norm / 2)


def steps(judge: Judge, model: Model) -> Iterator[tuple[str, float]]:
    """Yield what each repair makes of the bound on accuracy."""
    n, p = judge.problem.n_rows, len(model.weights)
    margins, norms = judge.margins(model.weights), judge.norms
    noise = exact_scale(model.lipschitz, n, EPSILON)
    printed = printed_distance(
        classical_scale(model.lipschitz, n, EPSILON), p, failure=FAILURE
    )
    exact = output_perturbation_distance(noise, p, failure=FAILURE)

    def most(lipschitz: Array, distance: float, bound: str) -> float:
        found = judge.certificate("accuracy", margins, lipschitz, distance, bound=bound)
        return float(found.change.mean())

    yield "Markov, L = 2 &#124;x&#124;", most(2 * norms, printed, "markov")
    name = "count, L = 2.83 &#124;x&#124; (the published recipe)"
    yield name, most(PRINTED_LIPSCHITZ * norms, printed, "count")
    yield "count, L = 2 &#124;x&#124;", most(2 * norms, printed, "count")
    yield "count, L = &#124;x&#124;", most(norms, printed, "count")
    yield "and exact quantile and calibration", most(norms, exact, "count")
    yield "and one-sided (the library)", most(norms, exact, "one_sided")
    yield "predictions changed, by formula", expected_flips(margins, norms, noise)
    turned = simulated_flips(judge, model.weights, noise)
    yield f"predictions changed, mean of {N_MODELS}", float(turned.mean())
    yield f"predictions changed, most of {N_MODELS}", float(turned.max())
    yield "accuracy of the model", float(judge.right(model.weights).mean())
    yield "norm of the weights", float(np.linalg.norm(model.weights))
    yield "median margin", float(np.median(np.abs(margins)))


def simulated_flips(judge: Judge, weights: Array, scale: float) -> Array:
    """Return the share of answers that each of many draws of noise turns."""
    rng, law = as_generator(SEED), Gaussian(scale, 1.0, "float")
    models = np.array([law(weights, rng) for _ in range(N_MODELS)])
    return np.abs(judge.right(models) - judge.right(weights)).mean(axis=0)


def lines(judge: Judge, fits: Fits) -> list[dict[str, Any]]:
    """Return a line for each repair, a column for each model."""
    found: dict[str, dict[str, Any]] = {}
    for model in models(fits):
        for step, value in steps(judge, model):
            found.setdefault(step, {"bound": step})[model.words] = value
    return list(found.values())


def main(argv: Sequence[str] | None = None) -> None:
    """Climb, print and save."""
    quick = arguments(argv, __doc__).quick
    problem = load(SETS[0], quick=quick)
    rows = lines(Judge(problem), Fits(problem))
    common.RESULTS.save("ladder", rows, quick=quick)
    print(markdown(rows))


if __name__ == "__main__":
    main()
