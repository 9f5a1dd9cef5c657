"""Private fairness certificates, from noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from tacit._estimators import guaranteed_neighbors
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit._validate import PlainNumbers, fraction, one_of
from tacit.fairness._bounds import Fragile, fragile_rows
from tacit.fairness._certificate import FairnessCertificate, checked_distance
from tacit.fairness._distances import Distance
from tacit.fairness._groups import NOTIONS, Cells, Layout, public_values
from tacit.fairness._margins import linear_margins, read_model
from tacit.fairness._models import distance_and_constant
from tacit.fairness._noisy import (
    LOSABLE,
    SURELY_RIGHT,
    SURELY_WRONG,
    WINNABLE,
    noisy_figures,
)
from tacit.fairness._notions import comparisons
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy import (
    Budget,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Ledger,
    Neighbors,
    PrivacyReport,
    calibrate,
)

__all__ = ["CertificatePlan", "plan_certificate", "private_certificate"]

Floats = NDArray[np.float64]

LABEL = "fairness certificate"
# Fraction of the failure probability for the noise of the counts; the rest is for the
# distance
NOISE_FRACTION = 0.1

ASSUMPTIONS = (
    "the model is public, or was charged: it depends on these rows in no other way",
    "labels and groups are public",
)


@dataclass(frozen=True)
class CertificatePlan(PlainNumbers):
    """Counts that will be released, and their noise, fixed without data.

    Parameters
    ----------
    layout
        Cells of the notion.
    budget
        What the release guarantees.
    multiplier
        Ratio of the noise to the sensitivity.
    failure
        Chance with which the certificate fails, over all noise.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** Laplace noise where delta is zero, pure with epsilon, and else
    Gaussian. Each row is in one of four counts of one cell, so that a row more moves
    the counts by one in L1 and L2, and a replaced row by two and by the root of two.
    """

    layout: Layout
    budget: Budget
    multiplier: float
    failure: float = 0.01
    noise: str = "grid"

    @property
    def size(self) -> int:
        """How many counts are released."""
        return 4 * len(self.layout.cells)

    @property
    def mechanism(self) -> Laplace | Gaussian:
        """What draws the noise."""
        rows = self.budget.neighbors.rows_changed
        if self.budget.delta == 0:
            # [fairness:l1] one count loses a row, and where one is replaced one gains
            return Laplace(self.multiplier, float(rows), self.noise)
        # [fairness:l2] two counts that move by one; the root is rounded up
        sensitivity = 1.0 if rows == 1 else nextafter(sqrt(2.0), inf)
        return Gaussian(self.multiplier, sensitivity, self.noise)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    @property
    def scale(self) -> float:
        """Scale of the noise on each count."""
        return self.mechanism.scale(self.size)

    def counts(self, cells: Cells, fragile: Fragile) -> Floats:
        """Return the number of rows of each kind in each cell, shape (cells, 4).

        A tie counts by the answer of the reference; another model may change it.
        """
        # [fairness:one-count] each row is in one count, by its own margin only
        kinds = np.where(
            fragile.right,
            np.where(fragile.losable, LOSABLE, SURELY_RIGHT),
            np.where(fragile.winnable, WINNABLE, SURELY_WRONG),
        )
        flat = np.bincount(4 * cells.codes + kinds, minlength=self.size)
        return flat.reshape(-1, 4).astype(np.float64)

    def run(self, counts: Floats, rng: Generator) -> Floats:
        """Return the counts with noise."""
        return self.mechanism(counts, rng)

    def reach(self, n_counts: int, chance: float) -> float:
        """Return a bound on the noise of a sum, passed with at most this chance."""
        if n_counts == 0:
            return 0.0
        if self.budget.delta > 0:
            return self.scale * (-float(ndtri(chance)) * sqrt(n_counts) + 1e-6)

        # [fairness:laplace-sum] Chernoff's bound on a sum of Laplace variables
        def stds(s: float) -> float:
            return float((-n_counts * np.log1p(-(s**2)) + log(1 / chance)) / s)

        found = minimize_scalar(stds, bounds=(1e-6, 1 - 1e-9), method="bounded")
        # a little more, for rounding to the grid
        return self.scale * (float(found.fun) + 1e-6)


def plan_certificate(
    epsilon: float,
    *,
    classes: Any,
    groups: Any,
    delta: float = 0.0,
    neighbors: str | Neighbors = Neighbors.REPLACE_ONE,
    notion: str = "equalized_odds",
    desirable: Any = None,
    failure: float = 0.01,
) -> CertificatePlan:
    """Return the plan of a private certificate, without reading a row.

    Parameters
    ----------
    epsilon, delta
        Privacy budget; without a delta the noise is Laplace's.
    classes
        Public labels.
    groups
        Public values of the sensitive feature, or tuples of values for several.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    notion, desirable, failure
        As in `certify`.

    Examples
    --------
    >>> from tacit.fairness import plan_certificate
    >>> plan = plan_certificate(0.5, classes=[0, 1], groups=["a", "b"])
    >>> plan.size, round(plan.scale, 3)
    (16, 4.0)
    """
    one_of(NOTIONS, notion=notion)
    fraction(closed=False, failure=failure)
    budget = Budget(epsilon, delta, Neighbors.of(neighbors))
    labels = public_values("classes", classes)
    layout = Layout.of(notion, labels, public_values("groups", groups), desirable)
    kind = GaussianNoise if budget.delta > 0 else LaplaceNoise
    plan = CertificatePlan(layout, budget, calibrate(kind, budget), failure)
    # noise too large for the grid is rejected here, not after the charge
    plan.mechanism.scale(plan.size)
    return plan


def private_certificate(
    model: Any,
    X: Any,
    y_true: Any,
    *,
    sensitive_features: Any,
    epsilon: float,
    groups: Any,
    delta: float = 0.0,
    notion: str = "equalized_odds",
    desirable: Any = None,
    distance: Distance | None = None,
    failure: float = 0.01,
    neighbors: str | Neighbors | None = None,
    ledger: Ledger | None = None,
    random_state: RandomSource = None,
) -> FairnessCertificate:
    """Release a fairness certificate from noisy counts of rows.

    Parameters
    ----------
    model
        As in `certify_model`; public, or private with its fit charged.
    X, y_true, sensitive_features
        Rows to measure on, their labels and groups.
    epsilon, delta
        Privacy budget of the certificate; without a delta the noise is Laplace's.
    groups
        Public values of the sensitive feature, or tuples of values for several.
    notion, desirable
        As in `group_fairness`.
    distance
        As in `certify`, holding except with nine tenths of ``failure``.
    failure
        Chance with which the certificate fails, over the noise of the model and of the
        counts.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``; None for that of the model.
    ledger
        Ledger to charge; None creates one for this call.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Notes
    -----
    **Guarantee.** That of `CertificatePlan`: the Laplace mechanism (Dwork, McSherry,
    Nissim and Smith 2006) or the Gaussian one on counts of which a row enters one.
    Margins and norms are computed from a row only, bit for bit.

    **Bound.** All noise is within its bounds at once except with a tenth of
    ``failure``, and fractions of counts are monotone in them. The intervals are for
    these rows; those for a group of few rows are wide.
    """
    # long: checks, charge and certificate, in the order of every release
    read = read_model(model)
    plan = plan_certificate(
        epsilon,
        classes=read.classes,
        groups=groups,
        delta=delta,
        neighbors=guaranteed_neighbors(model) if neighbors is None else neighbors,
        notion=notion,
        desirable=desirable,
        failure=failure,
    )
    moved, constant = distance_and_constant(model, distance)
    within = checked_distance(moved, failure, NOISE_FRACTION * failure)
    weights = [part.tobytes() for part in (read.weights, read.intercepts)]
    rng = noise_generator(random_state, LABEL, plan, within, *weights)
    seeded = is_seeded(random_state)

    def counted() -> Floats:
        cells = plan.layout.sort(y_true, sensitive_features)
        found = linear_margins(model, X, y_true, constant=constant)
        margins = found.margins, found.lipschitz
        n_rows = len(cells.codes)
        return plan.counts(cells, fragile_rows(*margins, within, n_rows, found.right))

    noisy, report = charged_run(
        Release(plan.event, plan.budget, LABEL, ASSUMPTIONS, seeded=seeded),
        ledger,
        lambda counts: plan.run(counts, rng),
        check=counted,
    )
    return _certificate(plan, noisy, within, report, getattr(moved, "other", None))


def _certificate(
    plan: CertificatePlan,
    noisy: Floats,
    distance: float,
    report: PrivacyReport,
    other: str | None,
) -> FairnessCertificate:
    values, ends, change = noisy_figures(
        plan.layout, noisy, plan.reach, NOISE_FRACTION * plan.failure
    )
    return FairnessCertificate(
        notion=plan.layout.notion,
        groups=comparisons(plan.layout)[0],
        sizes=None,
        values=values,
        lower=ends.low,
        upper=ends.high,
        change=change,
        distance=distance,
        failure=plan.failure,
        privacy=report,
        other=other,
    )
