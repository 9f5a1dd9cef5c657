"""Least squares on a stream, with a model after every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._estimators import Saved, public_range
from tacit._suppress_output import attempt
from tacit._validate import at_least, one_of, plain
from tacit.convex import Free, GroupBall, L1Ball, L2Ball, Simplex, Squared
from tacit.streaming._linear import StreamLinearModel, StreamRegressorMixin
from tacit.streaming._terms import PlannedStream, is_method
from tacit.streaming.incremental._gradient import GradientRegression
from tacit.streaming.incremental._moment_regression import MomentRegression
from tacit.streaming.incremental._projected import ProjectedRegression
from tacit.streaming.incremental._sets import WithConstant, stretched

__all__ = ["IncrementalLinearRegression", "SparseRows", "kept_rows"]


@dataclass(frozen=True)
class SparseRows:
    """Rows with at most ``k`` entries other than zero, for ``keep``.

    Parameters
    ----------
    k
        Most entries other than zero, the constant feature left out.

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


def kept_rows(keep: Any, X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each row whether the rule keeps it; not if the rule fails."""

    def answer(row: NDArray[np.float64]) -> bool:
        # a copy, as a rule that writes into one row must not reach another
        kept = attempt(keep, row.copy())
        return isinstance(kept, bool | np.bool_) and bool(kept)

    return np.array([answer(row) for row in X], dtype=bool)


METHODS = ("auto", "moments", "gradient", "projection")
SETS = (L2Ball, L1Ball, GroupBall, Simplex)


class IncrementalLinearRegression(StreamRegressorMixin, StreamLinearModel):
    """Least squares over all rows so far, released after each step of a stream.

    Each call of ``partial_fit`` is a step: it takes new rows and releases the weights
    that fit all rows since the first. All steps of the horizon are paid for at the
    first one.

    Parameters
    ----------
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail, above zero. None for one over the
        squared number of rows that are expected, at most 1e-6, where neighbors replace
        a row.
    horizon
        Steps that are paid for; more are refused.
    rows_per_step
        Rows that a step usually takes, a guess that accuracy alone depends on.
    rows_per_person
        Most rows that one person has in the stream. The noise is in proportion.
    y_range
        Lowest and highest target, public and required. Targets beyond are cut to it.
    x_norm
        Bound on the norm of a row. Longer rows are shortened to it.
    fit_intercept
        Whether to add a constant feature, which is inside the private bound.
    constraint
        None, or the set that ``coef_`` is in: `~tacit.convex.L2Ball`,
        `~tacit.convex.L1Ball`, `~tacit.convex.GroupBall` or `~tacit.convex.Simplex`.
        A radius is in units of the targets over those of the features, as ``coef_`` is.
        The intercept is not bound by it.
    method
        ``"auto"`` and ``"moments"`` for `MomentRegression`, ``"gradient"`` for
        `GradientRegression`, ``"projection"`` for `ProjectedRegression`, or one of
        these as an object, which brings its own ``sums`` and ``noise``.
    sums
        How sums over the stream are released: ``"blt"``, ``"tree"``, ``"honaker"`` or
        ``"square_root"``. ``"gradient"`` has trees.
    keep
        Which rows count: None for all, `SparseRows`, or a function of the features of
        one row that says True or False. Others count as zero rows, as do those for
        which it fails. It must not depend on anything but the row.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only. Otherwise noise comes from the
        operating system.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights in units of the targets, for rows shortened to ``x_norm``.
    intercept_ : float
        Intercept.
    expected_excess_risk_ : float
        Bound on the mean of how much larger the sum of squared residuals over all rows
        so far is than the least in the set. From public facts alone, for
        ``rows_per_step`` rows in each step. Without a constraint it is that of weights
        that turn no row into more than the largest target.
    residual_sum_ : float or None
        Released sum of squared residuals over all rows so far, with
        ``MomentRegression(squares=True)``.
    privacy_ : PrivacyReport
        Promise, spend and assumptions.

    Notes
    -----
    **Guarantee.** All releases together are (epsilon, delta)-private for the stated
    neighbors, also where rows are chosen after earlier releases were seen, by the
    theorem of the method; the rest is post-processing.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.streaming import IncrementalLinearRegression
    >>> from tacit.mechanisms import as_generator
    >>> rng = as_generator(0)  # makes up rows
    >>> model = IncrementalLinearRegression(
    ...     1.0, 1e-6, horizon=20, rows_per_step=500, y_range=(-1, 1)
    ... )
    >>> for _ in range(20):
    ...     X = rng.uniform(-0.5, 0.5, (500, 3))
    ...     _ = model.partial_fit(X, X @ [1.0, -0.5, 0.0])
    >>> model.n_steps_, model.coef_.shape
    (20, (3,))
    """

    stream_name = ("incremental", "number")
    saved = Saved("summed", ("steps", "risk"), ("coef", "intercept"))

    def __init__(
        self,
        epsilon=1.0,
        delta=None,
        *,
        horizon=1000,
        rows_per_step=1,
        rows_per_person=1,
        y_range=None,
        x_norm=1.0,
        fit_intercept=True,
        constraint=None,
        method="auto",
        sums="blt",
        keep=None,
        neighbors="replace_one",
        noise="grid",
        random_state=None,
    ):
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

    def _planned(self, n_features):
        terms = self._terms()
        budget = self._budget(terms)
        low, high = public_range(self.y_range)
        domain = self._domain(n_features)
        if self.keep is not None and not callable(self.keep):
            raise ValueError(
                "keep must be None, SparseRows() or a function of one row, got "
                f"{self.keep!r}."
            )
        problem = self._problem(Squared(), terms, n_features)
        problem = replace(problem, regularizer=domain)
        return PlannedStream(
            budget,
            terms,
            self._method(n_features).plan(problem, budget, terms),
            (
                *self._row_assumptions(),
                f"targets are cut to [{low:g}, {high:g}]",
                *self._kept_in_words(),
            ),
        )

    def _method(self, n_features):
        if is_method(self.method):
            return self.method
        one_of(METHODS, method=self.method)
        if self.method == "gradient":
            return GradientRegression(noise=self.noise)
        shared = {"sums": self.sums, "noise": self.noise}
        if self.method == "projection":
            sparse = isinstance(self.keep, SparseRows)
            width = self.keep.width(n_features) if sparse else None
            return ProjectedRegression(row_width=width, **shared)
        return MomentRegression(**shared)

    def _domain(self, n_features):
        """Return the set of all weights, in units of the targets inside."""
        if self.constraint is None:
            return Free()
        if not isinstance(self.constraint, SETS):
            names = ", ".join(kind.__name__ for kind in SETS)
            raise ValueError(
                f"constraint must be None or one of {names} from tacit.convex, got "
                f"{type(self.constraint).__name__}."
            )
        # refuses groups of another number of features
        self.constraint.prox(np.zeros((n_features, 1)), 1.0)
        _, scale = self.target_unit()
        domain, constant = stretched(self.constraint, 1 / scale), self._constant()
        if constant is None:
            return domain
        # the best intercept is a mean of residuals, which are no larger than this
        return WithConstant(domain, (1 + domain.radius * self.x_norm) / constant)

    def _kept_in_words(self):
        if self.keep is None:
            return ()
        name = getattr(self.keep, "__qualname__", repr(self.keep))
        return (
            f"rows for which {name} is not true count as zero, and it depends on "
            "nothing but the row",
        )

    def _leaf(self, X, y):
        X, y = super()._leaf(X, y)
        if self.keep is None:
            return X, y
        # [incremental:keep] row by row, so that one row decides about itself alone
        end = X.shape[1] - (self._constant() is not None)
        kept = kept_rows(self.keep, X[:, :end])
        return np.where(kept[:, None], X, 0.0), np.where(kept, y, 0.0)

    def _show(self, progress):
        super()._show(progress)
        learner, step = progress.planned.learner, progress.n_steps
        unit = self.target_unit()[1] ** 2
        expected = learner.expected_excess_risk(step)
        self.expected_excess_risk_ = unit * expected
        residual = learner.residual_sum(progress._private_state)
        self.residual_sum_ = None if residual is None else unit * residual
