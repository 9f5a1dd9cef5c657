"""Private aggregation of experts on a stream by Hedge."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    Saved,
    array_of,
    checked_shape,
    checked_targets,
    checked_values,
    listed,
    numeric,
)
from tacit._random import RandomSource
from tacit._validate import one_of
from tacit.data.bounds import NUMBERS, labels_of, numeric_labels
from tacit.privacy import Ledger, Neighbors
from tacit.streaming._model import PlannedStream, StreamModel
from tacit.streaming._reader import dense_values, float_targets
from tacit.streaming.online._hedge import Hedge
from tacit.streaming.online._hedge_learners import Experts, SampledHedge

__all__ = ["CostReader", "HedgeAggregator"]

Array = NDArray[np.float64]

LOSSES = ("zero_one", "absolute", "squared", "cost")


class HedgeAggregator(StreamModel):
    """Differentially private Hedge over experts on a stream.

    Experts are public predictors: models trained elsewhere, forecasts, rules. Columns
    of X are their predictions for each row. After each step the experts with the lowest
    cost are favored, by one expert drawn for all rows or by weights.

    Parameters
    ----------
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail. None for one over the squared number
        of expected rows, at most 1e-6; required if neighbors add or remove a row. 0.0
        is pure privacy, which ``play="sample"`` supports.
    horizon
        Number of steps that are charged at the first.
    rows_per_step
        Typical number of rows in a step: a public guess that only affects accuracy.
    rows_per_person
        Maximum number of rows of one person in the stream.
    loss
        Cost of a prediction: ``"zero_one"`` for labels, strings or numbers below 2**53
        in size, where a wrong one costs the upper end of ``cost_range`` and a right one
        the lower; ``"absolute"`` or ``"squared"`` for numbers; ``"cost"`` if X contains
        the costs themselves.
    cost_range
        Lowest and highest cost of an expert on a row, public. Others are clipped to it.
    play
        ``"sample"`` for one expert, ``"weights"`` for weights of all, ``"auto"`` for
        the one with the smaller bound on the regret.
    hold
        Steps for which a drawn expert remains; None for the best number.
    temperature
        Cost at which the odds of an expert fall by a factor of e. None for the best one
        for any sequence if a step has one row, and for identically distributed rows if
        it has more. A budget that allows less is then left unspent by draws.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    noise
        ``"grid"`` for exact noise on a public grid, ``"float"`` for research.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    weights_ : ndarray of shape (n_features,)
        Weights of the experts: one for the drawn expert, and equal before a draw.
    expert_ : int or None
        Column of the expert drawn last; None where all are weighted.
    play_ : str
        ``"sample"`` or ``"weights"``.
    privacy_ : PrivacyReport
        Guarantee, spent budget and assumptions.
    n_steps_ : int
        Number of steps that were released.

    Notes
    -----
    **Guarantee.** All releases of the stream together are (epsilon, delta)-private for
    the stated neighbors, by the theorem of `Hedge`. An expert without a prediction for
    a row, or without a number, has the highest cost; a row without a truth counts as
    absent.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.streaming import HedgeAggregator
    >>> truth = np.arange(4000) % 3
    >>> predictions = np.column_stack([np.zeros(4000), truth, np.ones(4000)])
    >>> model = HedgeAggregator(epsilon=1.0, delta=1e-6, horizon=40, rows_per_step=100)
    >>> for step in np.split(np.arange(4000), 40):
    ...     model = model.partial_fit(predictions[step], truth[step])
    >>> int(model.weights_.argmax())
    1
    """

    saved = Saved("experts", ("steps", "play", "expert"), ("weights",))

    weights_: Array
    expert_: int | None
    play_: str

    # 13 parameters: those of every stream, of the costs, and of `Hedge`
    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        horizon: int = 1000,
        rows_per_step: int = 1,
        rows_per_person: int = 1,
        loss: str = "zero_one",
        cost_range: tuple[float, float] = (0.0, 1.0),
        play: str = "auto",
        hold: int | None = None,
        temperature: float | None = None,
        neighbors: str | Neighbors = "replace_one",
        noise: str = "grid",
        random_state: RandomSource = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.rows_per_step = rows_per_step
        self.rows_per_person = rows_per_person
        self.loss = loss
        self.cost_range = cost_range
        self.play = play
        self.hold = hold
        self.temperature = temperature
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def partial_fit(
        self, X: Any, y: Any = None, *, ledger: Ledger | None = None
    ) -> Self:
        """Take the predictions of the experts for the rows of one step, and the truth.

        The first step charges the whole horizon.

        Parameters
        ----------
        X
            Predictions, one column per expert; or costs, for ``loss="cost"``.
        y
            The truth; None is for ``loss="cost"`` only.
        ledger
            Ledger to charge at the first step; None creates one for this stream.
        """
        return super().partial_fit(X, y, ledger=ledger)

    def fit(self, X: Any, y: Any = None, *, ledger: Ledger | None = None) -> Self:
        """Start a new stream and replay a table through it, in the order of its rows.

        Parameters
        ----------
        X, y, ledger
            As in `partial_fit`.
        """
        y = self._step_targets(X, y)
        if self.loss == "zero_one":
            # numpy would convert a list with one string in it to strings
            X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
            y = y if hasattr(y, "shape") else np.asarray(y, dtype=object)
        return super().fit(X, y, ledger=ledger)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction of the drawn expert, or a vote or mean of all.

        Parameters
        ----------
        X
            Predictions, one column per expert.
        """
        check_is_fitted(self)
        X = listed(X)
        checked_shape(self, X, fitting=False, accept_sparse=True)
        X = dense(X)
        if self.loss != "zero_one" or X.dtype.kind in NUMBERS:
            X = checked_values(X)
        found: NDArray[Any]
        if self.expert_ is not None:
            found = X[:, self.expert_]
        elif self.loss == "zero_one":
            found = _vote(X, self.weights_)
        else:
            found = X @ self.weights_
        return found

    def _step_targets(self, X: Any, y: Any) -> Any:
        """Return the truth as it was given, or zeros where costs need none."""
        if y is not None:
            return y
        if self.loss != "cost":
            raise ValueError(
                f"loss={self.loss!r} requires y to be passed, but the target y is "
                "None; give y."
            )
        return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))

    def _table_targets(self, X: Any, y: Any) -> NDArray[Any]:
        labels = self.loss == "zero_one"
        if not labels or dense(X).dtype.kind in NUMBERS:
            checked_values(X, accept_sparse=True)
        y = checked_targets(y, X.shape[0], labels=labels)
        return y if labels else numeric(y)

    def _planned(self, n_features: int) -> PlannedStream:
        one_of(LOSSES, loss=self.loss)
        terms = self._terms()
        budget = self._budget(terms)
        experts = Experts(n_features, self.cost_range)
        method = Hedge(self.play, self.hold, self.temperature, self.noise)
        clipped = "costs of a row are clipped to [{:g}, {:g}]"
        return PlannedStream(
            budget,
            terms,
            method.plan(experts, budget, terms),
            CostReader(experts, self.loss),
            (clipped.format(*experts.cost_range),),
        )

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        drawn = isinstance(planned.learner, SampledHedge)
        self.weights_ = weights[:, 0]
        self.play_ = "sample" if drawn else "weights"
        # before a draw weights are equal, and one for one expert in any case
        certain = drawn and self.weights_.max() == 1.0
        self.expert_ = int(self.weights_.argmax()) if certain else None

    def __sklearn_tags__(self) -> Any:
        """Return tags which say what X and y may be."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = self.loss == "zero_one"
        tags.target_tags.required = self.loss != "cost"
        return tags


@dataclass(frozen=True)
class CostReader:
    """Costs of experts, from -1 to 1, by their predictions and the truth.

    Parameters
    ----------
    experts
        Number of experts, and range of their costs.
    loss
        Cost of a prediction.
    """

    experts: Experts
    loss: str

    def read(self, X: Any, y: Any, *, first: bool) -> tuple[Array, NDArray[Any]]:
        """Return costs; zeros for rows without a truth."""
        if self.loss == "zero_one":
            X = dense(X)
            if first and {X.dtype.kind, y.dtype.kind} & set("mM"):
                raise ValueError(
                    "X and y must contain labels: strings or numbers, no dates."
                )
            right, usable = _right(X, y)
            costs = np.where(right, -1.0, 1.0)
        else:
            costs, usable = self._errors(dense_values(X, first=first), y, first)
            costs = self.experts.centered(costs)
        costs = np.where(usable[:, None], costs, 0.0)
        return np.ascontiguousarray(costs), np.zeros(len(costs))

    def _errors(
        self, X: Array, y: NDArray[Any], first: bool
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return the errors of numbers, and which rows have a truth."""
        if self.loss == "cost":
            return X, np.ones(len(X), dtype=bool)
        truth = float_targets(y, first=first)
        with np.errstate(all="ignore"):  # a warning would leak information about rows
            errors = np.abs(X - truth[:, None])
            if self.loss == "squared":
                errors = errors**2
        return errors, np.isfinite(truth)


def dense(X: Any) -> NDArray[Any]:
    """Return a table as an array."""
    return dense_values(X) if sparse.issparse(X) else array_of(X)


def _right(
    X: NDArray[Any], y: NDArray[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which predictions are the truth, and which rows have one."""
    kinds = {X.dtype.kind, y.dtype.kind}
    # all branches agree: a string in one row, which makes all objects, changes no other
    if kinds <= set(NUMBERS):
        X, y = numeric_labels(X), numeric_labels(y)
        usable = y == y  # false for NaN
    elif kinds == {"U"}:
        usable = np.ones(len(y), dtype=bool)
    else:
        known: dict[Hashable, int] = {}
        X, y = _codes(X, known), _codes(y, known)
        usable = y >= 0
    return y[:, None] == X, usable


def _codes(values: NDArray[Any], known: dict[Hashable, int]) -> NDArray[np.int64]:
    """Return an integer for each label, equal for equal ones; -1 for no label."""
    codes = [_code(label, known) for label in labels_of(values)]
    return np.array(codes, dtype=np.int64).reshape(values.shape)


def _code(label: Any, known: dict[Hashable, int]) -> int:
    try:
        if label is None or label != label:
            return -1
        return known.setdefault(label, len(known))
    except Exception:  # an object that cannot be compared with others
        return -1


def _vote(X: NDArray[Any], weights: Array) -> NDArray[Any]:
    """Return the label of each row with the largest sum of weights."""
    known: dict[Hashable, int] = {}
    codes = _codes(X, known) + 1  # zero for no label
    # equal labels of different rows have different codes
    rows = np.arange(len(X))[:, None] * (len(known) + 1)
    _, positions = np.unique((rows + codes).ravel(), return_inverse=True)
    votes = np.bincount(positions, weights=np.tile(weights, len(X)))
    behind = votes[positions].reshape(X.shape)
    best = np.where(codes > 0, behind, -1.0).argmax(axis=1)
    found: NDArray[Any] = X[np.arange(len(X)), best]
    return found
