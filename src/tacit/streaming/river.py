"""Stream models for river, one row at a time.

Requires river: ``pip install 'tacit[river]'``. Rows are collected until there are as
many as ``rows_per_step`` of the model, which then takes one step. Steps of river before
it, such as its scalers, read rows and are not charged to any ledger.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tacit._estimators import exclusive_step
from tacit._validate import at_least, one_of
from tacit.data.bounds import number
from tacit.privacy import Ledger, Neighbors

try:
    from river import base
except ImportError as error:
    raise ImportError(
        "tacit.streaming.river requires river; "
        "install it with: pip install 'tacit[river]'."
    ) from error

__all__ = ["RiverClassifier", "RiverRegressor"]


class _RowByRow:
    """Collector of rows for the steps of a stream."""

    def __init__(
        self,
        model: Any,
        features: Iterable[Hashable],
        *,
        after_horizon: str = "raise",
        ledger: Ledger | None = None,
    ) -> None:
        names = () if isinstance(features, str) else tuple(features)
        if not names or len(set(names)) < len(names):
            raise ValueError(
                "features must be distinct names, at least one, in the order of the "
                f"columns, got {features!r}."
            )
        one_of(("raise", "stop"), after_horizon=after_horizon)
        if Neighbors.of(model.neighbors) is not Neighbors.REPLACE_ONE:
            raise ValueError(
                "model must have neighbors='replace_one', as an added or removed row "
                "would move others to another step; call partial_fit once for each "
                "step."
            )
        at_least(1, rows_per_step=model.rows_per_step)
        self.model = model
        self.features = features
        self.after_horizon = after_horizon
        self.ledger = ledger
        # the given model remains unchanged: river makes new ones from it
        self.stream = clone(model)
        self._private_rows: list[tuple[list[float], Any]] = []
        # features of the rows of the first step
        self._private_named: set[Hashable] = set()

    @property
    def n_steps(self) -> int:
        """Number of steps that were taken."""
        return int(getattr(self.stream, "_n_steps", 0))

    def learn_one(self, x: Any, y: Any) -> None:
        """Add a row, and take a step if there are enough of them.

        A row without a feature, or with a value that is not a number, counts as absent,
        whatever the others are. A feature that no row of the first step has is
        rejected before the charge: its name may be misspelt.

        Parameters
        ----------
        x
            Features by name; those not in ``features`` are ignored.
        y
            Label or target.
        """
        with exclusive_step(self):
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
                    self._check_names()
                self.stream.partial_fit(
                    np.array(rows),
                    self._targets(targets),
                    # later steps are charged already
                    ledger=None if self.n_steps else self.ledger,
                )
            except BaseException:
                # a row that could not be taken is dropped
                self._private_rows.pop()
                raise
            self._private_rows = []

    @staticmethod
    def _target(y: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def _targets(values: Sequence[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def _given(self, name: str) -> Any:
        """Return a public parameter of the model or its inner estimator, or None."""
        inner = getattr(self.model, "estimator", None)
        return getattr(self.model, name, getattr(inner, name, None))

    def _check_names(self) -> None:
        """Reject features that no row of the first step has, before the charge."""
        unnamed = [name for name in self.features if name not in self._private_named]
        if unnamed:
            raise ValueError(
                "features must be named as in the rows; no row of the first step has "
                f"{unnamed[0]!r}."
            )

    def _numbers(self, x: Any) -> list[float]:
        x = x if isinstance(x, Mapping) else {}
        return [number(x.get(name)) for name in self.features]

    def _row(self, x: Any) -> NDArray[np.float64]:
        """Return one row to predict; missing values are zero."""
        row: NDArray[np.float64] = np.array([self._numbers(x)])
        return np.where(np.isfinite(row), row, 0.0)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Return no parameters for tests of river: there is no default model."""
        return iter(())

    def __getstate__(self) -> dict[str, Any]:
        """Leave rows that wait for a step out of copies and pickles."""
        return {**vars(self), "_private_rows": [], "_private_named": set()}


class RiverClassifier(_RowByRow, base.Classifier):
    """Differentially private classifier on a stream, with the interface of river.

    Parameters
    ----------
    model
        A classifier of `tacit.streaming` that was not fitted. It remains unchanged; the
        attribute ``stream`` is the copy that learns.
    features
        Names of the features, in the order of the columns.
    after_horizon
        Treatment of rows after the horizon: ``"raise"`` an error, or ``"stop"`` to
        ignore them.
    ledger
        Ledger to charge at the first step; None creates one for this stream. With one,
        river cannot clone this: a clone is another stream.

    Notes
    -----
    **Guarantee.** That of the model for neighbors that replace one row, as steps are
    formed by the number of rows. Rows that wait for a step are private: they are in no
    copy and no pickle.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from tacit.streaming import OnlineLogisticRegression
    >>> from tacit.streaming.river import RiverClassifier
    >>> rows = [({"a": (-1) ** i / 2, "b": 0.5}, i % 2 == 0) for i in range(400)]
    >>> model = OnlineLogisticRegression(
    ...     5.0, 1e-6, horizon=40, rows_per_step=10, classes=[False, True], x_norm=1.0
    ... )
    >>> private = RiverClassifier(model, ["a", "b"])
    >>> found = evaluate.progressive_val_score(rows, private, metrics.Accuracy())
    >>> private.n_steps
    40
    """

    @property
    def _multiclass(self) -> bool:
        classes = self._given("classes")
        return classes is None or len(classes) > 2

    def predict_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> Any:
        """Return the most likely label, or None before the first step.

        Parameters
        ----------
        x
            Features by name; missing ones are zero.
        **kwargs
            Ignored, as river passes them.
        """
        if self.n_steps == 0:
            return None
        return self.stream.predict(self._row(x)).tolist()[0]

    def predict_proba_one(
        self, x: Mapping[Hashable, Any], **kwargs: Any
    ) -> dict[Any, float]:
        """Return the probability of each label; uniform before the first step.

        Parameters
        ----------
        x
            Features by name; missing ones are zero.
        **kwargs
            Ignored, as river passes them.
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
    def _target(y: Any) -> Any:
        # a tuple of values is no label
        return y if isinstance(y, Hashable) and not isinstance(y, tuple) else None

    @staticmethod
    def _targets(labels: Sequence[Any]) -> NDArray[Any]:
        # as objects, so that no label changes how numpy reads another
        array = np.empty(len(labels), dtype=object)
        for position, label in enumerate(labels):
            array[position] = label
        return array


class RiverRegressor(_RowByRow, base.Regressor):
    """Differentially private regression on a stream, with the interface of river.

    Parameters
    ----------
    model
        A regressor of `tacit.streaming` that was not fitted. It remains unchanged; the
        attribute ``stream`` is the copy that learns.
    features, after_horizon, ledger
        As in `RiverClassifier`.

    Notes
    -----
    **Guarantee.** As in `RiverClassifier`.

    Examples
    --------
    >>> from tacit.streaming import OnlineLinearRegression
    >>> from tacit.streaming.river import RiverRegressor
    >>> model = OnlineLinearRegression(
    ...     1.0, 1e-6, horizon=5, y_range=(0.0, 10.0), x_norm=1.0
    ... )
    >>> private = RiverRegressor(model, ["size"], after_horizon="stop")
    >>> private.predict_one({"size": 0.3})
    5.0
    >>> for i in range(9):
    ...     private.learn_one({"size": i / 9}, i)
    >>> private.n_steps
    5
    """

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """Return the predicted target; before the first step the middle of its range.

        Parameters
        ----------
        x
            Features by name; missing ones are zero.
        """
        if self.n_steps == 0:
            ends = self._given("y_range")
            low, high = (0.0, 0.0) if ends is None else ends
            return float(low + (high - low) / 2)
        return float(self.stream.predict(self._row(x))[0])

    @staticmethod
    def _target(y: Any) -> float:
        return number(y)

    @staticmethod
    def _targets(numbers: Sequence[Any]) -> NDArray[Any]:
        return np.array(numbers)
