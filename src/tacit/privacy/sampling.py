"""Sampled mechanisms, accounted by dp_accounting.

The only file that knows dp_accounting, which takes a second to import and is
therefore loaded when a sampled event is first evaluated.
"""

from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fixed_size_renyi", "pld_delta", "pld_epsilon", "poisson_renyi"]

# Above this order the series of sampled mechanisms are slow and never the best.
MAX_ORDER = 256.0

# Grids of losses: the second is ten times faster, and good for a search
FINE, COARSE = 1e-4, 1e-3

Steps = tuple[tuple[float, float, int], ...]


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any, Any]:
    import dp_accounting  # noqa: PLC0415 - one second, and few users need it
    from dp_accounting.pld import PLDAccountant  # noqa: PLC0415
    from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415

    return dp_accounting, PLDAccountant, RdpAccountant


@lru_cache(maxsize=32)
def _composed(steps: Steps, extra: float, interval: float = FINE) -> Any:
    """Return a loss-distribution accountant holding all the steps."""
    events, accountant_of, _ = _library()
    accountant = accountant_of(
        events.NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval=interval,
    )
    for multiplier, rate, count in steps:
        event = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(multiplier))
        accountant.compose(event, count)
    if extra > 0:
        accountant.compose(events.GaussianDpEvent(1 / sqrt(extra)))
    return accountant


def pld_delta(steps: Steps, extra: float, epsilon: float) -> float:
    """Return delta at ``epsilon``, never below the truth."""
    return float(_composed(steps, extra).get_delta(epsilon))


def pld_epsilon(
    steps: Steps, extra: float, delta: float, interval: float = FINE
) -> float:
    """Return epsilon at ``delta``, never below the truth."""
    return float(_composed(steps, extra, interval).get_epsilon(delta))


def _renyi(
    orders: NDArray[np.float64], relation: str, event: Any
) -> NDArray[np.float64]:
    events, _, accountant_of = _library()
    curve = np.full(len(orders), np.inf)
    usable = orders <= MAX_ORDER
    # Renyi divergence grows with its order, so the next whole one bounds it; between
    # whole numbers the series take seconds and may not converge
    whole, places = np.unique(np.ceil(orders[usable]), return_inverse=True)
    accountant = accountant_of(whole, getattr(events.NeighboringRelation, relation))
    accountant.compose(event)
    # The curve itself has no public accessor; tests pin it to get_epsilon.
    curve[usable] = np.asarray(accountant._rdp)[places]
    return curve


def poisson_renyi(
    orders: NDArray[np.float64], multiplier: float, rate: float
) -> NDArray[np.float64]:
    """Return the Renyi curve of one Poisson-sampled Gaussian, add or remove one."""
    events, _, _ = _library()
    event = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(multiplier))
    return _renyi(orders, "ADD_OR_REMOVE_ONE", event)


def fixed_size_renyi(
    orders: NDArray[np.float64], multiplier: float, size: int, n_rows: int
) -> NDArray[np.float64]:
    """Return the Renyi curve of a Gaussian on a fixed-size sample, replace one."""
    events, _, _ = _library()
    event = events.SampledWithoutReplacementDpEvent(
        n_rows, size, events.GaussianDpEvent(multiplier)
    )
    return _renyi(orders, "REPLACE_ONE", event)
