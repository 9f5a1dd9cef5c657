"""Renyi curves of sampled mechanisms, by dp_accounting.

The only file that knows dp_accounting, which takes a second to import and is
therefore loaded when a sampled event is first evaluated.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fixed_size_renyi", "poisson_renyi"]

# Above this order the series of sampled mechanisms are slow and never the best.
MAX_ORDER = 256.0


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any]:
    import dp_accounting  # noqa: PLC0415 - one second, and few users need it
    from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415

    return dp_accounting, RdpAccountant


def _renyi(
    orders: NDArray[np.float64], relation: str, event: Any
) -> NDArray[np.float64]:
    events, accountant_of = _library()
    curve = np.full(len(orders), np.inf)
    usable = orders <= MAX_ORDER
    # Renyi divergence grows with its order, so the next whole one bounds it; between
    # integers the series take seconds and may not converge
    whole, positions = np.unique(np.ceil(orders[usable]), return_inverse=True)
    accountant = accountant_of(whole, getattr(events.NeighboringRelation, relation))
    accountant.compose(event)
    # The curve itself has no public accessor; tests pin it to get_epsilon.
    curve[usable] = np.asarray(accountant._rdp)[positions]
    return curve


def poisson_renyi(
    orders: NDArray[np.float64], multiplier: float, rate: float
) -> NDArray[np.float64]:
    """Return the Renyi curve of one Poisson-sampled Gaussian, add or remove one."""
    events, _ = _library()
    event = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(multiplier))
    return _renyi(orders, "ADD_OR_REMOVE_ONE", event)


def fixed_size_renyi(
    orders: NDArray[np.float64], multiplier: float, size: int, n_rows: int
) -> NDArray[np.float64]:
    """Return the Renyi curve of a Gaussian on a fixed-size sample, replace one."""
    events, _ = _library()
    event = events.SampledWithoutReplacementDpEvent(
        n_rows, size, events.GaussianDpEvent(multiplier)
    )
    return _renyi(orders, "REPLACE_ONE", event)
