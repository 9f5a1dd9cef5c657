"""Transformers that learn from the rows, charged to a ledger."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Tags

from tacit._estimators import Saved
from tacit.preprocessing._columns import (
    LARGEST,
    Ranges,
    checked_pair,
    reach_after,
    standardized,
    stretched,
)
from tacit.preprocessing._moments import MomentsPlan, plan_moments
from tacit.preprocessing._parameters import (
    checked_integer,
    checked_number,
    checked_part,
    checked_truth,
    shown,
)
from tacit.preprocessing._quantiles import QuantilesPlan, apart, plan_quantiles
from tacit.preprocessing._squares import SquaresPlan, plan_squares
from tacit.preprocessing._transformer import PrivateTransformer
from tacit.privacy import Budget, Neighbors

__all__ = ["PrivateQuantileBounds", "PrivateStandardScaler"]

Floats = NDArray[np.float64]

MOST_CELLS = 2**16


class PrivateStandardScaler(PrivateTransformer[MomentsPlan | SquaresPlan]):
    """Standardization of columns by a private mean and standard deviation.

    With ``with_mean=False`` columns are only scaled, by their private root mean square
    about zero. That takes half as many released numbers, and sparse rows stay sparse.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit, for all columns together.
    delta
        Probability with which the bound may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. Zero for Laplace noise and a pure guarantee.
    ranges
        Lowest and highest value of each column: a mapping from the name of a column
        to a pair, a sequence of one pair a column, or one pair for all columns. Values
        outside are clipped to it. Must not be read off the data, and be wider than 1e-9
        of the larger end.
    with_mean
        Whether to center. Sparse rows need False, and ranges that hold zero.
    limit
        Public number of standard deviations to which results are clipped.
    least_scale
        Smallest standard deviation, as a part of half the range, at least 1e-9. Where
        columns are not centered, a part of the largest absolute value.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``. Under the latter the number of
        rows is private, and one more number with noise is released for it.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Private means, within the ranges; zeros where columns are not centered.
    scale_ : ndarray of shape (n_features,)
        Private standard deviations, or root mean squares about zero.
    ranges_ : tuple of pairs
        Range of each column.
    x_norm_ : float
        Public bound on the Euclidean norm of a transformed row.
    x_max_ : float
        Public bound on the absolute value of an entry of a transformed row.
    feature_bounds_ : ndarray of shape (n_features,)
        Bounds on the absolute values of transformed columns, which follow from the
        ranges, ``limit`` and what was released: ready for the ``feature_bounds`` of a
        sparse linear model.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors: one
    Gaussian or Laplace mechanism on the sums of values and squares of all columns, in
    units of half a range, or on the sums of squares alone; see its page among the
    guarantees. Missing or infinite values are rejected before anything is charged. A
    model fitted on the transformed rows is charged on top.

    Without centering, the noise of a mean square of p columns and n rows, relative to
    the squared largest value, is the root of p over n times the multiplier of the
    noise. Columns whose mean square is below that are hardly distinguished from noise,
    and ``least_scale`` is well chosen near its root.

    References
    ----------
    .. [1] C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating noise to
       sensitivity in private data analysis", TCC 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import Seed
    >>> from tacit.preprocessing import PrivateStandardScaler
    >>> X = np.linspace(20.0, 60.0, 2000).reshape(-1, 1)
    >>> scaler = PrivateStandardScaler(1.0, ranges=(0, 100), random_state=Seed(0))
    >>> scaler = scaler.fit(X)
    >>> print(scaler.mean_.round(), scaler.scale_.round())
    [40.] [11.]
    >>> round(scaler.x_norm_, 3)
    4.0
    >>> scaler.set_params(with_mean=False).fit(X).scale_.round()
    array([41.])
    """

    saved = Saved("private_step", arrays=("mean", "scale"))

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        ranges: Any,
        with_mean: bool = True,
        limit: float = 4.0,
        least_scale: float = 0.01,
        neighbors: str | Neighbors = "replace_one",
        noise: str = "grid",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.ranges = ranges
        self.with_mean = with_mean
        self.limit = limit
        self.least_scale = least_scale
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def _plan(
        self, ranges: Ranges, budget: Budget, n_rows: int
    ) -> MomentsPlan | SquaresPlan:
        self._limit = checked_number(
            self.limit,
            "limit",
            f"a number > 0 and at most {LARGEST:g}",
            lambda limit: 0 < limit <= LARGEST,
        )
        self._least_scale = checked_part(self.least_scale, "least_scale")
        self._with_mean = checked_truth(self.with_mean, "with_mean")
        plan = plan_moments if self._with_mean else plan_squares
        return plan(ranges, budget, n_rows=n_rows, noise=self.noise)

    def _learn(self, plan: MomentsPlan | SquaresPlan, X: Any, rng: Generator) -> None:
        mean, scale = plan.run(X, rng, self._least_scale)
        self._keep(mean, scale, plan.ranges)

    def _largest_entry(self) -> float:
        return float(self.limit)

    def _keep(self, mean: Floats, scale: Floats, ranges: Ranges) -> None:
        """Keep what was released, and the bounds that follow from it."""
        self.mean_, self.scale_ = mean, scale
        self._bound_entries(len(mean), self._largest_entry())
        self.feature_bounds_ = reach_after(ranges, mean, scale, self._limit)

    def _takes_sparse(self, X: Any, *, fitting: bool) -> bool:
        centered = self._with_mean if not fitting else self.with_mean
        if checked_truth(centered, "with_mean") and sparse.issparse(X):
            raise TypeError(
                "PrivateStandardScaler takes no sparse X with with_mean=True, as zeros "
                "would not stay zeros; use with_mean=False, or call X.toarray() first."
            )
        return not centered

    def transform(self, X: Any) -> Any:
        """Return values in standard deviations from the mean, clipped to ``limit``.

        Without centering they are in root mean squares. Sparse rows come back as CSR.
        """
        X = self._checked(X)
        return standardized(
            X, self.ranges_, self.mean_, self.scale_, self.feature_bounds_
        )

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn that sparse rows are taken where zeros stay zeros."""
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.with_mean is False
        return tags


class PrivateQuantileBounds(PrivateTransformer[QuantilesPlan]):
    """Scaling of columns from two private quantiles to a public range.

    Values outside the quantiles are clipped to them.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit, for all columns and both quantiles together.
    delta
        As in `PrivateStandardScaler`; zero for a pure guarantee.
    quantiles
        The lower and the upper one, between 0 and 1.
    ranges
        As in `PrivateStandardScaler`.
    target
        Range of the result.
    n_cells
        Number of equal cells into which each range is divided, from 2 to 65536; bounds
        are ends of cells. A finer grid costs accuracy in ranks, by its logarithm.
    least_width
        Smallest distance between the bounds, as a part of the range, at least 1e-9.
        Bounds that come out closer, or in the wrong order, are sorted and moved apart
        evenly about their middle, within the range.
    neighbors, noise, random_state
        As in `PrivateStandardScaler`. The number of rows is not released.

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_features,)
        Private bounds, within the ranges.
    ranges_ : tuple of pairs
        Range of each column.
    x_norm_ : float
        Public bound on the Euclidean norm of a transformed row.
    x_max_ : float
        Public bound on the absolute value of an entry of a transformed row.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors: two
    exponential mechanisms a column, composed. The score of a grid point is minus the
    number of rows by which it misses being the quantile [1]_; its sensitivity is one
    when a row is replaced and the larger of q and 1 - q when one is added or removed.
    See the page on private quantiles among the guarantees.

    References
    ----------
    .. [1] A. Smith, "Privacy-preserving statistical estimation with optimal
       convergence rates", STOC 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import Seed
    >>> from tacit.preprocessing import PrivateQuantileBounds
    >>> X = np.linspace(20.0, 60.0, 5000).reshape(-1, 1)
    >>> bounds = PrivateQuantileBounds(1.0, ranges=(0, 1000), random_state=Seed(0))
    >>> bounds = bounds.fit(X)
    >>> print(bounds.lower_.round(), bounds.upper_.round())
    [21.] [60.]
    """

    saved = Saved("private_step", arrays=("lower", "upper"))

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        quantiles: Any = (0.01, 0.99),
        ranges: Any,
        target: Any = (-1.0, 1.0),
        n_cells: int = 1024,
        least_width: float = 0.01,
        neighbors: str | Neighbors = "replace_one",
        noise: str = "grid",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.quantiles = quantiles
        self.ranges = ranges
        self.target = target
        self.n_cells = n_cells
        self.least_width = least_width
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def _plan(self, ranges: Ranges, budget: Budget, n_rows: int) -> QuantilesPlan:
        low, high = checked_pair(self.quantiles, "quantiles")
        if not 0 < low < high < 1:
            raise ValueError(
                f"quantiles must be between 0 and 1, got {shown(self.quantiles)}."
            )
        self._target = checked_pair(self.target, "target")
        self._least_width = checked_part(self.least_width, "least_width")
        n_cells = checked_integer(self.n_cells, "n_cells", 2, MOST_CELLS)
        return plan_quantiles(
            ranges, (low, high), budget, n_cells=n_cells, noise=self.noise
        )

    def _largest_entry(self) -> float:
        return max(map(abs, checked_pair(self.target, "target")))

    def _learn(self, plan: QuantilesPlan, X: Any, rng: Generator) -> None:
        parts = np.sort(plan.run(X, rng), axis=0)
        self.lower_, self.upper_ = apart(parts, self._least_width, plan.ranges)
        self._bound_entries(X.shape[1], self._largest_entry())

    def transform(self, X: Any) -> Any:
        """Return the rows in the target range.

        They keep the precision they came in where it can hold that range.
        """
        X = self._checked(X)
        return stretched(X, self.lower_, self.upper_, self._target)
