"""Certificates from simulated private models that are not released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._validate import at_least, fraction
from tacit.fairness._certificate import FairnessCertificate
from tacit.fairness._notions import group_fairness

__all__ = ["certify_by_simulation"]

Floats = NDArray[np.float64]


def certify_by_simulation(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    simulate: Callable[[int], Any],
    n_runs: int = 400,
    notion: str = "equalized_odds",
    desirable: Any = None,
    failure: float = 0.01,
) -> FairnessCertificate:
    """Return intervals for the figures of a private model, from simulated ones.

    The model without noise is the reference; the private model that is or will be
    released is the other one.

    Parameters
    ----------
    y_true
        Label of each row.
    y_pred
        Predictions of the model without noise.
    sensitive_features
        Group of each row; with several columns, groups are their combinations.
    simulate
        Called with the number of a run; returns the predictions of a private model
        with fresh noise. The models and their noise must not be released.
    n_runs
        Runs, of which half find the unit of each figure.
    notion, desirable, failure
        As in `certify`.

    Notes
    -----
    **Bound.** The other half of the runs and the released model are exchangeable, so
    its largest standard deviation, in those units, is among the ``1 - failure``
    smallest with at least that probability (Vovk, Gammerman and Shafer 2005,
    Proposition 2.3). No norm of the noise enters, nor the number of weights. It needs
    the model without noise as the reference: noise is not independent of the private
    one.
    """
    # long: one field of the certificate after another
    fraction(closed=False, failure=failure)
    at_least(2 * ceil(1 / failure), n_runs=n_runs)

    def figures(predicted: Any) -> Any:
        return group_fairness(
            y_true,
            predicted,
            sensitive_features=sensitive_features,
            notion=notion,
            desirable=desirable,
        )

    reference = figures(y_pred)
    runs = np.array([figures(simulate(run)).values for run in range(n_runs)])
    change = _change(np.abs(runs - reference.values), reference.sizes, failure)
    least = 0.0 if notion == "accuracy" else -1.0
    return FairnessCertificate(
        notion=notion,
        groups=reference.groups,
        sizes=reference.sizes,
        values=reference.values,
        lower=np.clip(reference.values - change, least, 1.0),
        upper=np.clip(reference.values + change, least, 1.0),
        change=change,
        distance=None,
        failure=failure,
        bound="simulated",
    )


def _change(moved: Floats, sizes: Sequence[int], failure: float) -> Floats:
    """Return a bound on the change of each figure, from changes in simulated runs."""
    half = len(moved) // 2
    # never finer than one row, as all runs of the first half may agree
    unit = np.maximum(moved[:half].mean(axis=0), 1 / np.asarray(sizes))
    largest = np.sort((moved[half:] / unit).max(axis=1))
    # [fairness:rank] among the runs that judge and the released model
    rank = ceil((1 - failure) * (len(largest) + 1))
    return np.asarray(unit * largest[rank - 1])
