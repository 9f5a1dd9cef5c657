"""What is certified about private models, and what becomes of them.

All figures are means over groups: of the most that a group's figure can change, or of
what it did change. ``printed`` bounds follow the published code; the others are those
of `tacit.fairness`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from benchmarks.fairness.data import Array, Problem
from benchmarks.fairness.models import FAILURE

from tacit.fairness import certify
from tacit.fairness._certificate import FairnessCertificate
from tacit.fairness._groups import NOTIONS, cells_of
from tacit.fairness._notions import FairnessForm, form_of

# what the published code has for one vector of weights, where one is enough
PRINTED_LIPSCHITZ = 2 * sqrt(2)
# by the published order of columns
SHOWN = (
    "equal_opportunity",
    "equalized_odds",
    "demographic_parity",
    "accuracy_parity",
    "accuracy",
)


@dataclass(frozen=True, eq=False)
class Judge:
    """The held-out rows of a problem, by which models are judged."""

    problem: Problem

    @cached_property
    def norms(self) -> Array:
        return np.linalg.norm(self.problem.X_test, axis=1)

    @cached_property
    def _forms(self) -> dict[str, tuple[FairnessForm, Array]]:
        """Each notion, and a matrix that takes means over its cells."""
        y, groups = self.problem.y_test, self.problem.groups
        found = {}
        for notion in NOTIONS:
            form = form_of(cells_of(y, groups, notion))
            rows = [
                np.ones(len(y), dtype=bool)
                & (True if cell.label is None else y == cell.label)
                & (True if cell.sensitive is None else groups == cell.sensitive)
                for cell in form.cells
            ]
            found[notion] = form, np.array(rows) / np.array(form.sizes)[:, None]
        return found

    def margins(self, weights: Array) -> Array:
        """Return the margin of each held-out row: positive iff it is classified."""
        return self.problem.signs * (self.problem.X_test @ weights)

    def right(self, models: Array) -> Array:
        """Return which rows each model, a row of weights, answers rightly."""
        said = self.problem.X_test @ np.atleast_2d(models).T > 0
        return (said == (self.problem.y_test > 0)[:, None]).astype(np.float64)

    def figures(self, notion: str, right: Array) -> Array:
        """Return the figure of each group, a column a model, from right answers."""
        form, means = self._forms[notion]
        return form.C0[:, None] + form.C @ (means @ right)

    def certificate(
        self,
        notion: str,
        margins: Array,
        lipschitz: Array,
        distance: float | Callable[[float], float],
        *,
        bound: str = "one_sided",
        sampling: float | None = None,
    ) -> FairnessCertificate:
        """Return what is certified of models within a distance."""
        return certify(
            self.problem.y_test,
            sensitive_features=self.problem.groups,
            margins=margins,
            lipschitz=lipschitz,
            distance=distance,
            notion=notion,
            failure=FAILURE,
            bound=bound,
            sampling=sampling,
        )

    def printed(self, notion: str, margins: Array, distance: float) -> float:
        """Return the bound of the published code.

        It counts small margins with a constant that is 2.8 times too large, adds the
        share in a group and that among all, and never looks at labels apart for
        equalized odds, which makes them accuracy parity.
        """
        found = self.certificate(
            "accuracy_parity" if notion == "equalized_odds" else notion,
            margins,
            PRINTED_LIPSCHITZ * self.norms,
            distance,
            bound="corollary_count",
        )
        return float(found.change.mean())
