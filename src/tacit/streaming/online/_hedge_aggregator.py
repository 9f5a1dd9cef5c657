"""An estimator that follows the best of several predictors, privately."""

from __future__ import annotations

import numpy as np
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
from tacit._stream_values import (
    NUMBERS,
    dense_values,
    float_targets,
    labels_of,
    numeric_labels,
)
from tacit._validate import one_of
from tacit.streaming._model import StreamModel
from tacit.streaming._terms import PlannedStream
from tacit.streaming.online._hedge import Hedge
from tacit.streaming.online._hedge_learners import Experts, SampledHedge

__all__ = ["HedgeAggregator"]

LOSSES = ("zero_one", "absolute", "squared", "cost")


class HedgeAggregator(StreamModel):
    """Follow the best of several experts on a stream, privately.

    Experts are public predictors: models trained elsewhere, forecasts, rules. Columns
    of X are what they say of each row. After each step the experts that erred least
    are favored, by one expert drawn for all or by weights.

    Parameters
    ----------
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail. None for one over the squared number
        of rows to expect, at most 1e-6; must be given when neighbors add or remove a
        row. 0.0 asks for pure privacy, which ``play="sample"`` has.
    horizon
        Steps that are paid for at the first.
    rows_per_step
        Rows that a step usually takes: a public guess on which accuracy depends.
    rows_per_person
        Most rows that one person has in the stream.
    loss
        What a prediction costs: ``"zero_one"`` for labels, texts or numbers below
        2**53 in size, where a wrong one costs the upper end of ``cost_range`` and a
        right one the lower; ``"absolute"`` or
        ``"squared"`` for numbers; ``"cost"`` where X holds the costs themselves.
    cost_range
        Lowest and highest cost of an expert on a row, public. Others are cut to it.
    play
        ``"sample"`` for one expert, ``"weights"`` for weights of all, ``"auto"`` for
        the one with the smaller bound on the regret.
    hold
        Steps for which a drawn expert stays; None for the best number.
    temperature
        Costs by which the odds of an expert fall by a factor of e. None for what suits
        any sequence where a step has one row, and rows that are alike at all times
        where it has more. A budget that allows less is then left unspent by draws.
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
        Promise, spend and assumptions.
    n_steps_ : int
        Steps that were released.

    Notes
    -----
    **Guarantee.** All releases of the stream together are (epsilon, delta)-private for
    the stated neighbors, by the theorem of `Hedge`. An expert that says nothing of a
    row, or no number, pays the most; a row without a truth counts as not there.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.streaming import HedgeAggregator
    >>> truth = np.arange(4000) % 3
    >>> said = np.column_stack([np.zeros(4000), truth, np.ones(4000)])
    >>> model = HedgeAggregator(epsilon=1.0, delta=1e-6, horizon=40, rows_per_step=100)
    >>> for step in np.split(np.arange(4000), 40):
    ...     model = model.partial_fit(said[step], truth[step])
    >>> int(model.weights_.argmax())
    1
    """

    saved = Saved("experts", ("steps", "play", "expert"), ("weights",))

    def __init__(
        self,
        epsilon=1.0,
        delta=None,
        *,
        horizon=1000,
        rows_per_step=1,
        rows_per_person=1,
        loss="zero_one",
        cost_range=(0.0, 1.0),
        play="auto",
        hold=None,
        temperature=None,
        neighbors="replace_one",
        noise="grid",
        random_state=None,
    ):
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

    def partial_fit(self, X, y=None, *, ledger=None):
        """Take what the experts said of the rows of one step, and the truth.

        The first step charges the whole horizon.

        Parameters
        ----------
        X
            Predictions, one column an expert; or costs, for ``loss="cost"``.
        y
            What was true; None for ``loss="cost"`` alone.
        ledger
            Account to charge at the first step; None opens one for this stream alone.
        """
        return super().partial_fit(X, y, ledger=ledger)

    def fit(self, X, y=None, *, ledger=None):
        """Start a new stream and replay a table through it, in the order of its rows.

        Parameters
        ----------
        X, y, ledger
            As in `partial_fit`.
        """
        y = self._truth(X, y)
        if self.loss == "zero_one":
            # numpy would read a list with one text in it as texts
            X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
            y = y if hasattr(y, "shape") else np.asarray(y, dtype=object)
        return super().fit(X, y, ledger=ledger)

    def predict(self, X):
        """Return what the drawn expert says, or a vote or mean of all.

        Parameters
        ----------
        X
            Predictions, one column an expert.
        """
        check_is_fitted(self)
        X = listed(X)
        checked_shape(self, X, fitting=False, accept_sparse=True)
        X = dense(X)
        if self.loss != "zero_one" or X.dtype.kind in NUMBERS:
            X = checked_values(X)
        if self.expert_ is not None:
            return X[:, self.expert_]
        return _vote(X, self.weights_) if self.loss == "zero_one" else X @ self.weights_

    def _next(self, X, y, *others, **named):
        return super()._next(X, self._truth(X, y), *others, **named)

    def _truth(self, X, y):
        """Return the truth as it was given, or anything where costs need none."""
        if y is not None:
            return y
        if self.loss != "cost":
            raise ValueError(
                f"loss={self.loss!r} requires y to be passed, but the target y is "
                "None; give y."
            )
        return np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))

    def _integer_targets(self, X, y):
        labels = self.loss == "zero_one"
        if not labels or dense(X).dtype.kind in NUMBERS:
            checked_values(X, accept_sparse=True)
        y = checked_targets(y, X.shape[0], labels=labels)
        return y if labels else numeric(y)

    def _planned(self, n_features):
        one_of(LOSSES, loss=self.loss)
        terms = self._terms()
        budget = self._budget(terms)
        experts = self._experts(n_features)
        method = Hedge(self.play, self.hold, self.temperature, self.noise)
        cut = "costs of a row are cut to [{:g}, {:g}]".format(*experts.cost_range)
        learner = method.plan(experts, budget, terms)
        return PlannedStream(budget, terms, learner, (cut,))

    def _experts(self, n_features):
        return Experts(n_features, self.cost_range)

    def _leaf(self, X, y):
        """Return costs from -1 to 1; zeros for rows without a truth."""
        if self.loss == "zero_one":
            X = dense(X)
            if self._is_first() and {X.dtype.kind, y.dtype.kind} & set("mM"):
                raise ValueError(
                    "X and y must hold labels: texts or numbers, no dates."
                )
            right, usable = _right(X, y)
            costs = np.where(right, -1.0, 1.0)
        else:
            costs, usable = self._errors(dense_values(X, first=self._is_first()), y)
            costs = self._experts(costs.shape[1]).centered(costs)
        costs = np.where(usable[:, None], costs, 0.0)
        return np.ascontiguousarray(costs), np.zeros(len(costs))

    def _errors(self, X, y):
        """Return the costs of numbers, and which rows have a truth."""
        if self.loss == "cost":
            return X, np.ones(len(X), dtype=bool)
        truth = float_targets(y, first=self._is_first())
        with np.errstate(all="ignore"):  # a warning would tell of the rows
            errors = np.abs(X - truth[:, None])
            if self.loss == "squared":
                errors = errors**2
        return errors, np.isfinite(truth)

    def _publish(self, weights):
        learner = self._private_stream.planned.learner
        drawn = isinstance(learner, SampledHedge)
        self.weights_ = weights[:, 0]
        self.play_ = "sample" if drawn else "weights"
        # before a draw weights are equal, and one for one expert in any case
        certain = drawn and self.weights_.max() == 1.0
        self.expert_ = int(self.weights_.argmax()) if certain else None

    def __sklearn_tags__(self):
        """Tell scikit-learn what X and y may be."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = self.loss == "zero_one"
        tags.target_tags.required = self.loss != "cost"
        return tags


def dense(X):
    """Return a table as an array."""
    return dense_values(X) if sparse.issparse(X) else array_of(X)


def _right(X, y):
    """Return which predictions are the truth, and which rows have one."""
    kinds = {X.dtype.kind, y.dtype.kind}
    # all ways agree: a text in one row, which turns all into objects, moves no other
    if kinds <= set(NUMBERS):
        X, y = numeric_labels(X), numeric_labels(y)
        usable = y == y  # not so for NaN
    elif kinds == {"U"}:
        usable = np.ones(len(y), dtype=bool)
    else:
        known = {}
        X, y = _codes(X, known), _codes(y, known)
        usable = y >= 0
    return y[:, None] == X, usable


def _codes(values, known):
    """Return one number for each label, the same for equal ones; -1 for none."""
    codes = [_code(label, known) for label in labels_of(values)]
    return np.array(codes, dtype=np.int64).reshape(values.shape)


def _code(label, known):
    try:
        if label is None or label != label:
            return -1
        return known.setdefault(label, len(known))
    except Exception:  # an object that cannot be compared with others
        return -1


def _vote(X, weights):
    """Return the label of each row with the largest sum of weights."""
    known = {}
    codes = _codes(X, known) + 1  # zero for none
    # labels of different rows are told apart by the row
    rows = np.arange(len(X))[:, None] * (len(known) + 1)
    _, positions = np.unique((rows + codes).ravel(), return_inverse=True)
    votes = np.bincount(positions, weights=np.tile(weights, len(X)))
    behind = votes[positions].reshape(X.shape)
    best = np.where(codes > 0, behind, -1.0).argmax(axis=1)
    return X[np.arange(len(X)), best]
