"""Private least squares on columns that are selected privately."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tacit._discovery import classes_by
from tacit._random import RandomSource
from tacit._validate import at_least, fraction, one_of
from tacit.convex import Free, Squared
from tacit.data.declared import TableFacts
from tacit.data.features import FeatureBounds
from tacit.data.rows import is_on_disk, require_in_memory
from tacit.exceptions import PlanError
from tacit.feature_selection._base import PrivateSelector
from tacit.linear_model._base import (
    MOST_COPIED,
    FittedFacts,
    PrivateLinearModel,
    Setting,
)
from tacit.linear_model._lasso import SparseRegressor
from tacit.linear_model._saved import saved_linear
from tacit.linear_model._two_stage import TwoStage, Units, second_stage_names
from tacit.mechanisms import NoAnswer
from tacit.mechanisms.noise import check_noise
from tacit.privacy import Composed, Neighbors, PrivacyReport

__all__ = ["SparseLinearRegression"]

Array = NDArray[np.float64]


class SparseLinearRegression(SparseRegressor):
    """Differentially private least squares on privately selected columns.

    A first part of the budget selects columns, the rest fits least squares to these
    columns. The selection is released, and as noisy as the weights. There may be far
    more columns than rows: the second part does not read those that were not selected.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit, for both parts together.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy, with weights in a ball.
    n_features_to_select
        Most columns that get a weight, public and required. With as many as there are,
        or more, all are kept and the selection costs no budget.
    selector
        ``"peeling"``, ``"votes"``, ``"lasso"``, ``"exponential"``, an object of one of
        the selectors in `tacit.feature_selection`, or ``"auto"``, which is the first of
        these and always has an answer. An object keeps its own method and settings,
        but its budget, bounds, neighbors and number of columns are replaced by those of
        this model. If it selects more columns, the first are taken. It sees the same
        numbers as by itself, up to rounding; without an intercept zeros stay zeros
        where it maps ranges to [-1, 1].
    selection_share
        Part of epsilon that the selection gets, between 0 and 1. None for a rule of
        public facts; see the guide.
    feature_bounds
        Range of each feature, public and required: one number, the largest absolute
        value of any feature; a number for each; a pair for each, the lowest value and
        the highest; a tuple of two numbers, which is one pair for all features and is
        rejected where there are just two; or a dict from the names of columns to
        numbers or pairs. Entries beyond are clipped to it, at fit and at prediction
        alike. It must be chosen without looking at the data.
    y_range
        Lowest and highest target, public and required. Targets beyond are clipped to
        it.
    fit_intercept
        Whether to fit an intercept, which is private.
    solver
        How weights are found on the selected columns: ``"auto"``, another name from the
        guide to choosing a solver, or a solver object. Without a delta, and for
        ``"amp"``, ``"output_perturbation"``, ``"online_to_batch"`` and
        ``"permuted_sgd"``, weights are kept in a ball: of radius 1 for features and
        targets from -1 to 1.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows, which sets steps and fractions and never
        the privacy. None for the number of rows where it is public, and otherwise
        one over the root of delta.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research. A solver
        object brings its own.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.
    verbose
        1 for a bar that counts planned steps, where there are any; 0 for silence.

    Attributes
    ----------
    selection_ : tuple of int or NoAnswer
        Indices of the selected columns, in order. Without an answer the model is an
        intercept alone, a private mean charged to the second part of the budget.
    coef_ : ndarray of shape (n_features,)
        Weights in the units of targets and features; zero for all other columns.
    intercept_ : float
        Intercept.
    sparse_coef_ : sparse array of shape (1, n_features)
        The same weights.
    released_ : bool
        Whether there is an answer; its absence is a release too.
    selected_features_ : ndarray
        Indices of the selected columns; empty without an answer.
    selected_names_ : ndarray
        Their names, where ``X`` had names.
    selection_spent_ : float or None
        Epsilon that the selection alone spent, at the delta of the guarantee. None for
        the model that a private search chose, which was charged as a whole.
    bounds_ : FeatureBounds
        Ranges that entries are clipped to, at fit and at prediction.
    loss_ : Squared
        Loss that was minimized, of targets scaled to [-1, 1].
    path_ : None
        Steps are not released.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions: one charge for both parts.
    noise_ : None
        How far noise moves a weight that may be left out is not known.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors: the
    charge is the composition of both parts, made before the first is run, and the
    second is private whatever columns it is given [1]_. Missing or infinite values are
    rejected before anything is charged.

    scikit-learn's ``StackingRegressor`` around this estimator fits a final model on the
    rows, without noise and without a charge: fit it on public rows, see the sharp
    edges.

    References
    ----------
    .. [1] A. Thakurta, "Differentially private convex optimization for empirical risk
       minimization and high-dimensional regression", PhD thesis, Penn State 2013,
       Algorithm 6.2.
    .. [2] A. Smith and A. Thakurta, "Differentially private feature selection via
       stability arguments, and the robustness of the lasso", COLT 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import SparseLinearRegression
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> model = SparseLinearRegression(
    ...     epsilon=2.0, n_features_to_select=2, feature_bounds=1.0, y_range=(-3, 3)
    ... )
    >>> model.fit(X, y).selection_
    (0, 3)
    """

    model_name = "sparse-linear"
    saved = saved_linear(Squared, selected=True)

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        n_features_to_select: int | None = None,
        selector: str | PrivateSelector = "auto",
        selection_share: float | None = None,
        feature_bounds: Any = None,
        y_range: tuple[float, float] | None = None,
        fit_intercept: bool = True,
        solver: Any = "auto",
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.selector = selector
        self.selection_share = selection_share
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.noise = noise
        self.random_state = random_state
        self.verbose = verbose

    @property
    def selected_features_(self) -> NDArray[np.int64]:
        """Indices of the selected columns; empty without an answer."""
        return np.array(self.selection_ if self.released_ else (), dtype=np.int64)

    @property
    def released_(self) -> bool:
        """Whether there is an answer to which columns matter."""
        check_is_fitted(self)
        return not isinstance(self.selection_, NoAnswer)

    @property
    def selection_spent_(self) -> float | None:
        """Epsilon that the selection alone spent, at the delta of the guarantee."""
        check_is_fitted(self)
        if (self.n_features_to_select or 0) >= self.n_features_in_:
            return 0.0
        guarantee, (entry,) = self.privacy_.guarantee, self.privacy_.entries
        own = entry.label.endswith(type(self).__name__)
        # else of the search that chose the model, or of a stream of fits
        if not own or not isinstance(entry.event, Composed):
            return None
        selection, _ = entry.event.events
        return selection.curve(guarantee.neighbors).epsilon(guarantee.delta)

    def _given_solver(self, setting: Setting, n_features: int) -> tuple[Any, str]:
        assert setting.features is not None  # every sparse model has ranges
        # the stages bring their own noise
        return self._stages(setting.features, n_features), "grid"

    def _stages(self, features: FeatureBounds, n_features: int) -> TwoStage:
        """Return both stages as one solver."""
        check_noise(self.noise)
        if self.delta == 0 and not self._counted() and self.expected_rows is None:
            raise PlanError(
                "expected_rows must be given for neighbors='add_or_remove_one' where "
                "delta is 0: a public guess of the rows."
            )
        wanted = self.n_features_to_select
        if wanted is None:
            raise ValueError(
                "n_features_to_select must be given: the most columns that get a "
                "weight, set without the data."
            )
        at_least(1, n_features_to_select=wanted)
        share = self.selection_share
        if share is not None:
            fraction(closed=False, selection_share=share)
        kept = min(int(wanted), n_features)
        selector = self._selector(kept)
        units = Units(features, *self.target_unit()) if selector.own_units else None
        return TwoStage(selector, self.solver, kept, share, self.noise, units)

    def _selector(self, kept: int) -> PrivateSelector:
        """Return the selector with the parameters of this model."""
        if isinstance(self.selector, PrivateSelector):
            selector: PrivateSelector = clone(self.selector)
        else:
            named = classes_by("name", "tacit.feature_selection")
            one_of(("auto", *named), selector=self.selector)
            name = "peeling" if self.selector == "auto" else self.selector
            selector = named[name](n_features_to_select=kept)
        shared = {
            "n_features_to_select": kept,
            "feature_bounds": self.feature_bounds,
            "y_range": self.y_range,
            "classes": None,
            "fit_intercept": self.fit_intercept,
            "neighbors": self.neighbors,
            "expected_rows": self.expected_rows,
            "noise": self.noise,
        }
        known = selector.get_params(deep=False)
        return selector.set_params(
            **{key: value for key, value in shared.items() if key in known}
        )

    def _weight_penalty(
        self, features: FeatureBounds, n_rows: int, with_constant: bool
    ) -> Free:
        return Free()

    def _check_solver(self) -> None:
        if isinstance(self.solver, str):
            one_of(second_stage_names(), solver=self.solver)

    def _setting(self, table: TableFacts, y: NDArray[Any] | None = None) -> Setting:
        if table.is_sparse and not self._selector(1).takes_sparse:
            raise ValueError(
                f"selector={self.selector!r} takes no sparse X; call X.toarray() first."
            )
        return super()._setting(table, y)

    def _rows(self, X: Any) -> Any:
        """Return the rows in memory, as selectors need them."""
        if not is_on_disk(X):
            return X
        if X.nbytes > MOST_COPIED:
            require_in_memory(type(self).__name__)
        return np.array(X)

    def _keep(self, W: Array, facts: FittedFacts, report: PrivacyReport) -> None:
        """Set the fitted attributes, and the selected columns."""
        PrivateLinearModel._keep(self, W, facts, report)
        self.selection_, self.path_ = facts.path, None

    def _synthetic(self, n_features: int) -> dict[str, Any]:
        """Return parameters that do the same for features and targets in -1 to 1."""
        return {"feature_bounds": 1.0}
