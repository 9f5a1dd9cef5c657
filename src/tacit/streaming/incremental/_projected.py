"""Least squares on a stream of rows projected by a public random matrix."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt

from tacit._validate import at_least, plain, positive
from tacit.convex import Free
from tacit.exceptions import PlanError
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.streaming._model import StreamTerms
from tacit.streaming.incremental._moment_regression import (
    MomentLearner,
    MomentRegression,
    bounded,
    checked_domain,
)
from tacit.streaming.incremental._moments import Projection
from tacit.streaming.incremental._sets import absolute_width, stretched

__all__ = ["ProjectedRegression", "published_components"]

# Probability with which the published number of components may be too low
FAILURE = 0.05


@dataclass(frozen=True)
class ProjectedRegression:
    """Least squares on a stream of wide rows by random projection, to save memory.

    Rows are multiplied by a public random matrix and scaled back to the norm that they
    had. `MomentRegression` then works on the products, and weights are in the set of
    the wide ones. Sums have m (m + 1) / 2 numbers instead of p (p + 1) / 2. Predictions
    are less accurate where there is little noise.

    Parameters
    ----------
    n_components
        Columns m of the products; None for the published number, which depends on the
        Gaussian widths of the rows and of the set and on the length of the stream.
        Rows are not projected if it is not below the number of features, as for most
        streams.
    key
        Public key from which the matrix is generated at each step.
    row_width
        Gaussian width of the set of rows, in units of their bound; None for that of all
        rows within it. `SparseRows` has that of sparse rows.
    sums, weight, solver, noise
        As in `MomentRegression`.

    Notes
    -----
    **Guarantee.** That of `MomentRegression`, for every matrix and every row: a product
    has the norm that its row had. Without this scaling, which [1]_ calls a convenience,
    a row along the longest direction of the matrix would not be protected.

    The published number of components follows [1]_, Algorithm 3. The matrix depends on
    the length of the stream, so that the horizon is fixed.

    References
    ----------
    .. [1] S. P. Kasiviswanathan, K. Nissim, H. Jin, "Private incremental regression",
       PODS 2017, Algorithm 3 and footnote 15.

    Examples
    --------
    >>> from tacit.convex import L1Ball
    >>> from tacit.streaming import IncrementalLinearRegression, ProjectedRegression
    >>> model = IncrementalLinearRegression(
    ...     1.0,
    ...     horizon=50,
    ...     y_range=(0, 1),
    ...     constraint=L1Ball(1.0),
    ...     method=ProjectedRegression(n_components=20),x_norm=1.0
    ... )
    >>> model.plan(500).learner.sums.size  # 20 components and the constant
    252
    """

    saved = True
    name = "projection"

    n_components: int | None = None
    key: int = 0
    row_width: float | None = None
    sums: str = "blt"
    weight: float | str = "auto"
    solver: str = "auto"
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        if self.n_components is not None:
            at_least(1, n_components=self.n_components)
        at_least(0, key=self.key)
        if self.row_width is not None:
            positive(row_width=self.row_width)
        self._moments()

    @classmethod
    def of(cls, sums: str, noise: str, row_width: float | None) -> ProjectedRegression:
        """Return the method with the parameters of an estimator."""
        return cls(row_width=row_width, sums=sums, noise=noise)

    def plan(
        self, problem: Problem, budget: Budget, terms: StreamTerms
    ) -> MomentLearner:
        """Return the learner with the number of components and the least noise."""
        checked_domain(problem, budget, "ProjectedRegression")
        constant = problem.constant is not None
        row_width = sqrt(problem.n_columns)
        if self.row_width is not None:
            row_width = min(self.row_width, row_width)
        components = self.n_components
        if components is None:
            unit = problem.largest_target / problem.bounds.x_norm
            domain = bounded(stretched(problem.regularizer, 1 / unit))
            width = row_width + absolute_width(domain, problem.n_features)
            components = published_components(width, terms.n_rows)
        projection = None
        if components < problem.n_columns:
            if isinstance(problem.regularizer, Free):
                raise PlanError(
                    "ProjectedRegression requires weights in a set, such as "
                    "L1Ball(1.0): many weights have the same projection; pass one, or "
                    "use MomentRegression."
                )
            projection = Projection(
                self.key, components, problem.n_columns, constant, row_width
            )
        return self._moments().planned(problem, budget, terms, projection)

    def _moments(self) -> MomentRegression:
        return MomentRegression(
            sums=self.sums, weight=self.weight, solver=self.solver, noise=self.noise
        )


def published_components(width: float, n_rows: int) -> int:
    """Return the published number of components, with a constant of one.

    ``width`` is that of the rows and of the set together.
    """
    distortion = (width / n_rows) ** (1 / 3)
    components: int = ceil(max(width**2, log(n_rows / FAILURE)) / distortion**2)
    return components
