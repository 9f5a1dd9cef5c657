"""What a ridge costs in accuracy and brings in certainty.

``python -m benchmarks.fairness.ridge`` fits every data set with ridges from the one
that the published experiment names down to a ten-thousandth of it. Noise is
proportional to one over the ridge. The ridge is public here: one that is chosen by
looking at this table was chosen by looking at the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.fairness import common
from benchmarks.fairness.bounds import Judge
from benchmarks.fairness.data import SETS, load
from benchmarks.fairness.models import N_MODELS, Fits
from benchmarks.fairness.sweeps import QUICK_MODELS, outcomes
from benchmarks.tables import arguments, markdown

EPSILON = 1.0
RIDGES = (1.0, 0.1, 0.01, 0.001, 0.0001)
NOTION = "equalized_odds"


def lines(name: str, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield a line for each ridge of one data set."""
    problem = load(name, quick=quick)
    judge, fits = Judge(problem), Fits(problem)
    n_models = QUICK_MODELS if quick else N_MODELS
    for ridge in RIDGES:
        reference = fits.private(problem.n_rows, EPSILON, ridge * problem.n_rows)
        found = outcomes(judge, "corrected", reference, n_models)
        rows = {row["notion"]: row for row in found}
        row, right = rows[NOTION], rows["accuracy"]
        yield {
            "part": f"{name}, n = {problem.n_rows:,}",
            "ridge on the mean loss": ridge,
            "accuracy without noise": row["accuracy"],
            "accuracy with noise": row["private_accuracy"],
            "distance": reference.distance,
            "bound on accuracy": right["bound"],
            "largest change of accuracy": right["most"],
            "bound on equalized odds": row["bound"],
            "largest change of equalized odds": row["most"],
            "models outside": max(row["outside"], right["outside"]),
        }


def main(argv: Sequence[str] | None = None) -> None:
    """Fit, bound, print and save."""
    quick = arguments(argv, __doc__).quick
    rows = [row for name in SETS for row in lines(name, quick=quick)]
    common.RESULTS.save("ridge", rows, quick=quick)
    print(markdown(rows))


if __name__ == "__main__":
    main()
