"""Models on streams for river, one row at a time.

Needs river: ``pip install 'tacit[river]'``. Rows are gathered until there are as many
as ``rows_per_step`` of the model, which then takes one step. What river does before a
row comes here, as its scalers do, reads rows and is seen by no ledger.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit._exclusive import alone
from tacit._stream_values import number
from tacit._validate import at_least, one_of
from tacit.privacy import Neighbors

try:
    from river import base
except ImportError as error:
    raise ImportError(
        "tacit.streaming.river needs river; "
        "install it with: pip install 'tacit[river]'."
    ) from error

__all__ = ["RiverClassifier", "RiverRegressor"]


class _RowByRow:
    """Gather rows for the steps of a stream."""

    def __init__(self, model, features, *, after_horizon="raise", ledger=None):
        names = () if isinstance(features, str) else tuple(features)
        if not names or len(set(names)) < len(names):
            raise ValueError(
                "features must be different names, at least one, in the order of the "
                f"columns, got {features!r}."
            )
        one_of(("raise", "stop"), after_horizon=after_horizon)
        if Neighbors.of(model.neighbors) is not Neighbors.REPLACE_ONE:
            raise ValueError(
                "model must have neighbors='replace_one', as a row more or less would "
                "move others to another step; call partial_fit once for each step."
            )
        at_least(1, rows_per_step=model.rows_per_step)
        self.model = model
        self.features = features
        self.after_horizon = after_horizon
        self.ledger = ledger
        # the model that was given stays as it is: river makes new ones from it
        self.stream = clone(model)
        self._private_rows: list[tuple[list[float], Any]] = []
        # features that the rows of the first step have
        self._private_named: set[Hashable] = set()

    @property
    def n_steps(self):
        """Steps that were taken."""
        return getattr(self.stream, "_n_steps", 0)

    def learn_one(self, x, y):
        """Keep a row, and take a step where there are enough of them.

        A row that lacks a feature, or has something else than a number in it, counts
        as not there, whatever the others are. A feature that no row of the first step
        has is refused, before the charge: its name may be misspelt.

        Parameters
        ----------
        x
            Features by name; others than those of ``features`` are not read.
        y
            Label or target.
        """
        with alone(self):
            over = self.n_steps >= self.model.horizon
            if over and self.after_horizon == "stop":
                return
            if not self.n_steps and isinstance(x, Mapping):
                self._private_named.update(name for name in self.features if name in x)
            self._private_rows.append((self._numbers(x), self._target(y)))
            if not over and len(self._private_rows) < self.model.rows_per_step:
                return
            rows, targets = zip(*self._private_rows, strict=True)
            try:
                if not self.n_steps:
                    self._refuse_unnamed()
                self.stream.partial_fit(
                    np.array(rows),
                    self._targets(targets),
                    # later steps are paid for
                    ledger=None if self.n_steps else self.ledger,
                )
            except BaseException:
                # a row that could not be taken was never there
                self._private_rows.pop()
                raise
            self._private_rows = []

    def _given(self, name):
        """Return a public parameter of the model, or of the estimator that it refits.

        None where neither has it.
        """
        inner = getattr(self.model, "estimator", None)
        return getattr(self.model, name, getattr(inner, name, None))

    def _refuse_unnamed(self):
        """Refuse features that no row of the first step has; nothing is charged."""
        unnamed = [name for name in self.features if name not in self._private_named]
        if unnamed:
            raise ValueError(
                "features must be named as in the rows; no row of the first step has "
                f"{unnamed[0]!r}."
            )

    def _numbers(self, x):
        x = x if isinstance(x, Mapping) else {}
        return [number(x.get(name)) for name in self.features]

    def _row(self, x):
        """Return one row to predict for; what is missing counts as zero."""
        return np.nan_to_num(
            np.array([self._numbers(x)]), nan=0.0, posinf=0.0, neginf=0.0
        )

    @classmethod
    def _unit_test_params(cls):
        """Tell river that there is no model to test by default."""
        return iter(())

    def __getstate__(self):
        """Leave rows that wait for a step out of copies and pickles."""
        return {**vars(self), "_private_rows": [], "_private_named": set()}


class RiverClassifier(_RowByRow, base.Classifier):
    """A private classifier on a stream, as river has them.

    Parameters
    ----------
    model
        A classifier of `tacit.streaming` that was not fitted. It stays as it is; the
        attribute ``stream`` is the copy that learns.
    features
        Names of the features, in the order of the columns.
    after_horizon
        What a row does that comes when the horizon is over: ``"raise"``, or ``"stop"``
        to let it pass unread.
    ledger
        Account to charge at the first step; None opens one for this stream alone. With
        one, river cannot clone this: a clone is another stream.

    Notes
    -----
    **Guarantee.** That of the model for neighbors that replace one row, as steps come
    by the count of rows. Rows that wait for a step are private: they are in no copy
    and no pickle.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from tacit.streaming import OnlineLogisticRegression
    >>> from tacit.streaming.river import RiverClassifier
    >>> rows = [({"a": (-1) ** i / 2, "b": 0.5}, i % 2 == 0) for i in range(400)]
    >>> model = OnlineLogisticRegression(
    ...     5.0, 1e-6, horizon=40, rows_per_step=10, classes=[False, True]
    ... )
    >>> private = RiverClassifier(model, ["a", "b"])
    >>> found = evaluate.progressive_val_score(rows, private, metrics.Accuracy())
    >>> private.n_steps
    40
    """

    @property
    def _multiclass(self):
        classes = self._given("classes")
        return classes is None or len(classes) > 2

    def predict_one(self, x):
        """Return the likeliest label, or None before the first step.

        Parameters
        ----------
        x
            Features by name; what is missing counts as zero.
        """
        if self.n_steps == 0:
            return None
        return self.stream.predict(self._row(x)).tolist()[0]

    def predict_proba_one(self, x):
        """Return the probability of each label; equal ones before the first step.

        Parameters
        ----------
        x
            Features by name; what is missing counts as zero.
        """
        if not hasattr(self.stream, "predict_proba"):
            raise NotImplementedError(
                f"{type(self.model).__name__} has no probabilities."
            )
        if self.n_steps == 0:
            classes = self._given("classes")
            labels = [] if classes is None else list(classes)
            return dict.fromkeys(labels, 1 / max(1, len(labels)))
        found = self.stream.predict_proba(self._row(x))[0]
        return dict(zip(self.stream.classes_.tolist(), found.tolist(), strict=True))

    @staticmethod
    def _target(y):
        # several values are no label
        return y if isinstance(y, Hashable) and not isinstance(y, tuple) else None

    @staticmethod
    def _targets(labels):
        # as objects, so that no label changes how numpy reads another
        array = np.empty(len(labels), dtype=object)
        for position, label in enumerate(labels):
            array[position] = label
        return array


class RiverRegressor(_RowByRow, base.Regressor):
    """A private regression on a stream, as river has them.

    Parameters
    ----------
    model
        A regressor of `tacit.streaming` or `tacit.streaming` that was not fitted. It
        stays as it is; the attribute ``stream`` is the copy that learns.
    features, after_horizon, ledger
        As in `RiverClassifier`.

    Notes
    -----
    **Guarantee.** As in `RiverClassifier`.

    Examples
    --------
    >>> from tacit.streaming import OnlineLinearRegression
    >>> from tacit.streaming.river import RiverRegressor
    >>> model = OnlineLinearRegression(1.0, 1e-6, horizon=5, y_range=(0.0, 10.0))
    >>> private = RiverRegressor(model, ["size"], after_horizon="stop")
    >>> private.predict_one({"size": 0.3})
    5.0
    >>> for i in range(9):
    ...     private.learn_one({"size": i / 9}, i)
    >>> private.n_steps
    5
    """

    def predict_one(self, x):
        """Return the predicted target; before the first step the middle of its range.

        Parameters
        ----------
        x
            Features by name; what is missing counts as zero.
        """
        if self.n_steps == 0:
            ends = self._given("y_range")
            low, high = (0.0, 0.0) if ends is None else ends
            return float(low + (high - low) / 2)
        return float(self.stream.predict(self._row(x))[0])

    @staticmethod
    def _target(y):
        return number(y)

    @staticmethod
    def _targets(numbers):
        return np.array(numbers)
