"""Least squares on a stream, with a model after every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._discovery import classes_by
from tacit._estimators import Saved
from tacit._execution import attempt
from tacit._random import RandomSource
from tacit._validate import at_least, one_of, plain
from tacit.convex import Free, GroupBall, L1Ball, L2Ball, Simplex, Squared
from tacit.convex._protocols import Regularizer, is_set
from tacit.convex.foreign import check_base
from tacit.data.declared import given_norm
from tacit.privacy import Neighbors
from tacit.streaming._linear import StreamMethod, StreamRegressor, is_method
from tacit.streaming._model import PlannedStream, StreamModel
from tacit.streaming._reader import LinearReader
from tacit.streaming.incremental._moment_regression import MomentRegression
from tacit.streaming.incremental._sets import WithConstant, stretched

__all__ = ["IncrementalLinearRegression", "RowFilter", "SparseRows"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SparseRows:
    """Row filter for rows with at most ``k`` nonzero entries.

    Parameters
    ----------
    k
        Maximum number of nonzero entries, without the constant feature.

    Notes
    -----
    **Bound.** The Gaussian width of such rows of norm one is at most
    ``sqrt(2 k log(e p / k)) + sqrt(k)``: the largest norm of k out of p normals, over
    at most ``(e p / k)^k`` choices [1]_, Theorems 2.5 and 5.6.

    References
    ----------
    .. [1] S. Boucheron, G. Lugosi, P. Massart, "Concentration inequalities", 2013.

    Examples
    --------
    >>> from tacit.streaming import SparseRows
    >>> rule = SparseRows(2)
    >>> rule([0.0, 1.0, 0.0, 3.0]), rule([1.0, 1.0, 1.0, 0.0])
    (True, False)
    """

    saved = True

    k: int

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, k=self.k)

    def __call__(self, row: Any) -> bool:
        return int(np.count_nonzero(row)) <= self.k

    def width(self, n_features: int) -> float:
        """Return a bound on the Gaussian width of such rows of norm one.

        Parameters
        ----------
        n_features
            Number of columns.
        """
        k = min(self.k, n_features)
        width = sqrt(2 * k * log(e * n_features / k)) + sqrt(k)
        return min(width, sqrt(n_features))


@dataclass(frozen=True)
class RowFilter:
    """Filter that applies a rule to each row; a row on which it fails is dropped."""

    keep: Any

    def __call__(self, X: Array) -> NDArray[np.bool_]:
        def kept(row: Array) -> bool:
            # a copy, as a rule that writes into one row must not reach another
            answer = attempt(self.keep, row.copy())
            return isinstance(answer, bool | np.bool_) and bool(answer)

        return np.array([kept(row) for row in X], dtype=bool)


SETS = (L2Ball, L1Ball, GroupBall, Simplex)


class IncrementalLinearRegression(StreamRegressor, StreamModel):
    """Differentially private least squares over all rows of a growing table.

    Each call of ``partial_fit`` is a step: it takes new rows and releases the weights
    that fit all rows since the first. The first step charges the whole horizon.

    Parameters
    ----------
    epsilon, delta, horizon, rows_per_step, rows_per_person
        As in `OnlineLogisticRegression`.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped.
    x_norm, fit_intercept
        As in `OnlineLogisticRegression`.
    constraint
        None, or the set that ``coef_`` is in: `~tacit.convex.L2Ball`,
        `~tacit.convex.L1Ball`, `~tacit.convex.GroupBall` or `~tacit.convex.Simplex`.
        A radius is in units of the targets over those of the features, as ``coef_`` is.
        The intercept is not constrained.
    method
        ``"auto"`` and ``"moments"`` for `MomentRegression`, ``"gradient"`` for
        `GradientRegression`, ``"projection"`` for `ProjectedRegression`, or one of
        these as an object, which has its own ``sums`` and ``noise``.
    sums
        How sums over the stream are released: ``"blt"``, ``"tree"``, ``"honaker"`` or
        ``"square_root"``. ``"gradient"`` has trees.
    keep
        Which rows count: None for all, `SparseRows`, or a function of the features of
        one row that returns True or False. Others count as zero rows, as do those for
        which it fails. It must not depend on anything but the row.
    neighbors, noise, random_state
        As in `OnlineLogisticRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights in units of the targets, for rows clipped to ``x_norm``.
    intercept_ : float
        Intercept.
    expected_excess_risk_ : float
        Bound on the mean excess of the sum of squared residuals over all rows so far
        above its minimum in the set. It is from public facts only, for
        ``rows_per_step`` rows in each step. Without a constraint the minimum is over
        weights that turn no row into more than the largest target.
    residual_sum_ : float or None
        Released sum of squared residuals over all rows so far, with
        ``MomentRegression(squares=True)``.
    privacy_ : PrivacyReport
        Guarantee, spent budget and assumptions.

    Notes
    -----
    **Guarantee.** As in `OnlineLogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.streaming import IncrementalLinearRegression
    >>> from tacit.mechanisms import as_generator
    >>> rng = as_generator(0)  # for synthetic rows
    >>> model = IncrementalLinearRegression(
    ...     1.0, 1e-6, horizon=20, rows_per_step=500, y_range=(-1, 1), x_norm=1.0
    ... )
    >>> for _ in range(20):
    ...     X = rng.uniform(-0.5, 0.5, (500, 3))
    ...     _ = model.partial_fit(X, X @ [1.0, -0.5, 0.0])
    >>> model.n_steps_, model.coef_.shape
    (20, (3,))
    """

    stream_name = ("incremental", "number")
    saved = Saved("summed", ("steps", "risk"), ("coef", "intercept"))

    expected_excess_risk_: float
    residual_sum_: float | None

    # 15 parameters: those of every online estimator, and of the set, sums and filter
    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        horizon: int = 1000,
        rows_per_step: int = 1,
        rows_per_person: int = 1,
        y_range: Any = None,
        x_norm: float | None = None,
        fit_intercept: bool = True,
        constraint: Any = None,
        method: str | StreamMethod = "auto",
        sums: str = "blt",
        keep: Any = None,
        neighbors: str | Neighbors = "replace_one",
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.rows_per_step = rows_per_step
        self.rows_per_person = rows_per_person
        self.y_range = y_range
        self.x_norm = x_norm
        self.fit_intercept = fit_intercept
        self.constraint = constraint
        self.method = method
        self.sums = sums
        self.keep = keep
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def _planned(self, n_features: int) -> PlannedStream:
        terms = self._terms()
        budget = self._budget(terms)
        reader = self._reader()
        problem = reader.problem(Squared(), terms.n_rows, n_features)
        domain = self._domain(n_features, reader.constant)
        problem = replace(problem, regularizer=domain)
        learner = self._method(n_features).plan(problem, budget, terms)
        assumptions = (*reader.assumptions, *self._keep_assumptions())
        return PlannedStream(budget, terms, learner, reader, assumptions)

    def _reader(self) -> LinearReader:
        reader = super()._reader()
        if self.keep is None:
            return reader
        if not callable(self.keep):
            raise ValueError(
                "keep must be None, SparseRows() or a function of one row, got "
                f"{self.keep!r}."
            )
        return replace(reader, keep=RowFilter(self.keep))

    def _method(self, n_features: int) -> StreamMethod:
        if is_method(self.method):
            return self.method
        known = classes_by("name", "tacit.streaming.incremental")
        one_of(("auto", *known), method=self.method)
        kind: Any = known.get(self.method, MomentRegression)
        width = None
        if isinstance(self.keep, SparseRows):
            width = self.keep.width(n_features)
        method: StreamMethod = kind.of(self.sums, self.noise, width)
        return method

    def _domain(self, n_features: int, constant: float | None) -> Regularizer:
        """Return the set of all weights, in internal units of the targets."""
        if self.constraint is None:
            return Free()
        if not isinstance(self.constraint, SETS):
            names = ", ".join(kind.__name__ for kind in SETS)
            raise ValueError(
                f"constraint must be None or one of {names} from tacit.convex, got "
                f"{type(self.constraint).__name__}."
            )
        # the sets below are built for the class itself
        check_base(self.constraint, "constraint")
        # rejects groups of another number of features
        self.constraint.prox(np.zeros((n_features, 1)), 1.0)
        _, scale = self.target_unit()
        domain = stretched(self.constraint, 1 / scale)
        if constant is None:
            return domain
        assert is_set(domain)
        # the best intercept is a mean of residuals, which are no larger than this
        return WithConstant(
            domain, (1 + domain.radius * given_norm(self.x_norm)) / constant
        )

    def _keep_assumptions(self) -> tuple[str, ...]:
        if self.keep is None:
            return ()
        name = getattr(self.keep, "__qualname__", repr(self.keep))
        return (
            f"rows for which {name} is not true count as zero, and it depends on "
            "nothing but the row",
        )

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        super()._publish(planned, weights)
        progress = self._private_stream
        learner: Any = planned.learner
        unit = self.target_unit()[1] ** 2
        expected = learner.expected_excess_risk(progress.n_steps)
        self.expected_excess_risk_ = unit * expected
        residual = learner.residual_sum(progress._private_state)
        self.residual_sum_ = None if residual is None else unit * residual
