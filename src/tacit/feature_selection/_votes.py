"""Private selection of columns by the votes of blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._estimators import numeric
from tacit._random import RandomSource
from tacit._validate import at_least, if_given, one_of, public_range
from tacit.data import RowBounds
from tacit.data.features import FeatureBounds, columns_with_bounds
from tacit.feature_selection._base import (
    LABELED,
    RANGED,
    PrivateSelector,
    SelectionPlan,
    two_labels,
)
from tacit.feature_selection._block_selectors import BlockSelection
from tacit.mechanisms import NO_ANSWER, NoAnswer
from tacit.privacy import Budget, Neighbors
from tacit.stability import BlockVote, SubsampleVote
from tacit.stability._base import check_function
from tacit.stability._rows import ListedRows
from tacit.stability._votes import FeatureVote

__all__ = ["BlockVoteSelector"]

METHODS = ("blocks", "subsamples", "features")


class BlockVoteSelector(PrivateSelector):
    """Selection of columns by the votes of disjoint blocks of rows, with any selector.

    No range of features or targets is needed: what a row can do is bounded by the one
    vote of its block.

    Parameters
    ----------
    epsilon
        Privacy budget of one fit.
    delta
        Probability with which the bound may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 for a pure guarantee, with ``"features"``.
    n_features_to_select
        Number of columns of the default selector, and of the result with
        ``"features"``. With the other methods your own ``selector`` determines it.
    selector
        Selector of scikit-learn with ``fit`` and ``get_support``, which is cloned for
        each block, or a function of features and targets that returns indices of
        columns or a mask. None for the columns that enter the lasso path first. A
        selector that fails on a block casts no vote there.
    method
        ``"blocks"``: the set of columns that most blocks agree on, or `NoAnswer` where
        one row could change the result. ``"subsamples"``: the same with random
        subsamples, which runs the selector far more often. ``"features"``: blocks vote
        for each column by itself, and the columns with most votes are chosen with
        noise; always answers.
    n_blocks
        Number of blocks; None to plan it from the budget. Not for ``"subsamples"``.
    feature_bounds
        Ranges to clip entries to, as in `PeelingSelector`; None for no clipping.
    y_range
        Lowest and highest target, to which targets are clipped; None for no clipping.
    classes
        Two public labels, which the selector gets as -1 and 1; None to pass targets
        unchanged.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    expected_rows
        Public guess of the number of rows to plan for; privacy does not rest on it.
    fallback
        Columns for `transform` where there is no answer: ``"all"``, a list of columns,
        or None to raise an error.
    noise
        ``"grid"`` for exact noise, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    selection_ : tuple of int or NoAnswer
        Indices of the selected columns, in order.
    support_ : ndarray of bool or None
        Mask of the selected columns; None without an answer.
    released_ : bool
        Whether there is an answer, which is itself a private release.
    n_features_in_ : int
        Number of columns.
    privacy_ : PrivacyReport
        Guarantee, charge and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the stated neighbors and any
    selector that keeps nothing from block to block, by the theorem of
    `tacit.stability.BlockVote` [1]_, of `tacit.stability.SubsampleVote`, or of noisy
    counts of votes [2]_; see the page on votes for columns among the guarantees.

    References
    ----------
    .. [1] A. Smith, A. Thakurta, "Differentially private feature selection via
       stability arguments, and the robustness of the lasso", COLT 2013, Section 3.
    .. [2] D. Kifer, A. Smith, A. Thakurta, "Private convex empirical risk minimization
       and high-dimensional regression", COLT 2012, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import Seed
    >>> from tacit.feature_selection import BlockVoteSelector
    >>> X = np.cos(np.outer(np.arange(5000.0), np.sqrt([2, 3, 5, 7, 11, 13])))
    >>> y = 2 * X[:, 0] - X[:, 3]
    >>> selector = BlockVoteSelector(2.0, n_features_to_select=2, random_state=Seed(0))
    >>> selector.fit(X, y).selection_
    (0, 3)
    """

    name = "votes"
    saved = True
    takes_sparse = True
    own_units = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        n_features_to_select: int,
        selector: Any = None,
        method: str = "blocks",
        n_blocks: int | None = None,
        feature_bounds: Any = None,
        y_range: tuple[float, float] | None = None,
        classes: Sequence[Any] | NDArray[Any] | None = None,
        neighbors: str | Neighbors = "replace_one",
        expected_rows: int | None = None,
        fallback: str | Sequence[int | str] | None = None,
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_features_to_select = n_features_to_select
        self.selector = selector
        self.method = method
        self.n_blocks = n_blocks
        self.feature_bounds = feature_bounds
        self.y_range = y_range
        self.classes = classes
        self.neighbors = neighbors
        self.expected_rows = expected_rows
        self.fallback = fallback
        self.noise = noise
        self.random_state = random_state

    def plan_selection(
        self, budget: Budget, n_rows: int, n_features: int
    ) -> SelectionPlan:
        procedure = self._procedure()
        if isinstance(procedure, FeatureVote):
            return procedure.plan(budget, n_rows, n_features)
        return procedure.plan(budget, max(1, n_rows))

    def select(
        self, plan: Any, X: Any, y: Any, rng: Generator
    ) -> tuple[int, ...] | NoAnswer:
        found = self._procedure().run(plan, X, y, rng)
        # where most blocks failed, they agree on nothing
        return NO_ANSWER if found is None else found

    def _procedure(self) -> BlockVote | FeatureVote | SubsampleVote:
        one_of(METHODS, method=self.method)
        if_given(at_least, 1, n_blocks=self.n_blocks)
        selection = BlockSelection(
            self._checked_selector(), int(self.n_features_to_select)
        )
        if self.method == "blocks":
            return BlockVote(selection, self.n_blocks)
        if self.method == "features":
            return FeatureVote(selection, selection.n_select, self.n_blocks, self.noise)
        if self.n_blocks is not None:
            raise ValueError(
                "n_blocks must be None for method='subsamples', which plans their "
                f"number, got {self.n_blocks!r}."
            )
        return SubsampleVote(selection)

    def _checked_selector(self) -> Any:
        selector = self.selector
        wanted = ("fit", "get_support", "get_params")
        fits = all(hasattr(selector, name) for name in wanted)
        usable = selector is None or fits or callable(selector)
        if isinstance(selector, type) or not usable:
            raise ValueError(
                "selector must be None, an object with fit and get_support, or a "
                f"function of X and y, got {type(selector).__name__}."
            )
        if selector is not None and not hasattr(selector, "get_support"):
            check_function("selector", selector)
        return selector

    def _features(self, n_features: int, sparse: bool) -> FeatureBounds | None:
        """Return the ranges that entries are clipped to, where they are given."""
        if self.classes is not None or self.y_range is not None:
            self._public_targets()  # raises where they are invalid
        if self.feature_bounds is None:
            return None
        features = FeatureBounds.of(
            self.feature_bounds, columns_with_bounds(self, n_features)
        )
        if sparse:
            features.require_zero()
        return features

    def _prepared_targets(self, y: NDArray[Any], features: FeatureBounds | None) -> Any:
        """Return targets unchanged, clipped to their range, or as labels -1 and 1."""
        if self.classes is not None:
            bounds = RowBounds(classes=two_labels(self.classes))
            return 2.0 * bounds.codes(y) - 1.0
        if self.selector is None or self.y_range is not None:
            y = numeric(y)
        elif y.dtype.kind == "O":  # each block's targets have a type of their own
            return ListedRows(y.tolist())
        return y if self.y_range is None else np.clip(y, *public_range(self.y_range))

    def _prepared_features(self, X: Any, features: FeatureBounds | None) -> Any:
        """Return entries clipped to their ranges, in their own units."""
        return X if features is None else features.clip(X)

    def _range_assumptions(self, features: FeatureBounds | None) -> tuple[str, ...]:
        """Return assumptions on the ranges that are given."""
        ranged = () if features is None else (RANGED,)
        if self.classes is not None:
            return (*ranged, LABELED)
        if self.y_range is None:
            return ranged
        low, high = public_range(self.y_range)
        return (*ranged, f"targets are clipped to [{low:g}, {high:g}]")
