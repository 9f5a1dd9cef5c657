"""Incremental empirical risk minimization: private batch fits on a growing table."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import Saved, numeric
from tacit._random import RandomSource
from tacit._validate import one_of
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Event, Neighbors
from tacit.solvers import Problem
from tacit.solvers._base import solver_fact
from tacit.streaming._linear import checked_table
from tacit.streaming._model import PlannedStream, StreamModel, StreamTerms
from tacit.streaming.incremental._refit_learner import (
    RefitLearner,
    RefitReader,
    described,
    fit_parameters,
    prepared_estimator,
)
from tacit.streaming.incremental._refit_plan import (
    MOST_REFITS,
    Refit,
    balanced_interval,
    doubling_steps,
    paper_refits,
    planned_refits,
    refit_steps,
    split_fractions,
    useful_step,
)

__all__ = ["IncrementalERM"]

Array = NDArray[np.float64]


def _offers(method: str) -> Any:
    """Return whether the estimator has a method, for scikit-learn."""

    def check(self: Any) -> bool:
        getattr(self.estimator, method)
        return True

    return check


class IncrementalERM(StreamModel):
    """Incremental empirical risk minimization by private refits on a growing table.

    After some of the steps the estimator is fitted to all rows so far with a fraction
    of one budget; between these steps the last model remains. This works for any loss,
    penalty and solver, but all rows are kept as private state and read again by each
    fit; `IncrementalLinearRegression` only keeps sums.

    Parameters
    ----------
    estimator
        An estimator of `tacit.linear_model`, not fitted. Its epsilon, delta,
        neighbors, expected_rows, random_state and verbose are set by the stream;
        classifiers require ``classes``.
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail. None for one over the squared
        number of expected rows, at most 1e-6, where neighbors replace a row; required
        if they add or remove one. 0.0 is pure privacy, if the estimator supports it.
    horizon
        Number of steps that are charged.
    update_every
        Steps between two fits, or ``"doubling"`` for fits after the last step, half as
        many, a quarter and so on, which divide the budget by a small number of fits
        [2]_ and end with all rows. ``"auto"`` leaves out the first of these, while
        there are too few rows for the budget; for ``accounting="paper"`` it is the
        interval of the published analysis.
    rows_per_step
        Typical number of rows in a step. Fits are planned for it; other numbers only
        affect accuracy.
    rows_per_person
        Maximum number of rows of one person in the whole stream.
    split
        How the budget is divided among fits: ``"even"``, or ``"harmonic"`` for
        fractions proportional to one over the rows of a fit, which keeps the error of
        strongly convex problems even. ``"auto"`` is ``"harmonic"`` for a fixed interval
        and a ridge penalty, else ``"even"``.
    accounting
        ``"exact"`` composes the events of the fits and spends at least 98 percent of
        the budget. ``"paper"`` divides it as published [1]_, which spends less.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    estimator_ : estimator
        The last model, with the guarantee and the report of the whole stream.
    coef_, intercept_ : ndarray or float
        Its weights. Before the first fit they are those nearest to zero.
    classes_ : ndarray
        Labels, for classifiers.
    last_refit_ : int
        Step of the last fit, 0 before the first.
    n_steps_ : int
        Number of steps that were taken.
    privacy_ : PrivacyReport
        Guarantee, spent budget and assumptions: one charge for the whole horizon.

    Notes
    -----
    **Guarantee.** All models together are (epsilon, delta)-private for the stated
    neighbors: the event of each fit is fixed before the first row, and the charge is
    the composition of all of them [1]_. Rows with missing or infinite values or unknown
    labels count as rows of zeros where the number of rows is public, and are left out
    where it is not.

    References
    ----------
    .. [1] S. P. Kasiviswanathan, K. Nissim, H. Jin, "Private incremental regression",
       PODS 2017, Theorem 3.1.
    .. [2] R. Cummings, S. Krehbiel, K. A. Lai, U. Tantipongpipat, "Differential privacy
       for growing databases", NeurIPS 2018.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.streaming import IncrementalERM
    >>> from tacit.linear_model import LogisticRegression
    >>> census = make_census(4000, random_state=0)
    >>> model = IncrementalERM(
    ...     LogisticRegression(
    ...         classes=[0, 1], x_norm=1.0
    ...     ), 1.0, horizon=8, rows_per_step=500
    ... )
    >>> for start in range(0, 4000, 500):
    ...     rows = slice(start, start + 500)
    ...     _ = model.partial_fit(census.X[rows], census.y[rows])
    >>> model.n_steps_, model.last_refit_
    (8, 8)
    >>> model.predict(census.X).shape
    (4000,)
    """

    stream_name = ("incremental", "category")
    saved = Saved(
        "refitted",
        ("steps", "last_refit", "expected_rows", "model"),
        ("coef", "intercept"),
        optional=("low", "high"),
    )

    estimator_: Any
    coef_: Any
    intercept_: Any
    classes_: Any
    last_refit_: int
    feature_names_in_: Any

    def __init__(
        self,
        estimator: Any,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        horizon: int = 1000,
        update_every: int | str = "auto",
        rows_per_step: int = 1,
        rows_per_person: int = 1,
        split: str = "auto",
        accounting: str = "exact",
        neighbors: str | Neighbors = "replace_one",
        random_state: RandomSource = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.update_every = update_every
        self.rows_per_step = rows_per_step
        self.rows_per_person = rows_per_person
        self.split = split
        self.accounting = accounting
        self.neighbors = neighbors
        self.random_state = random_state

    # 42 lines: the plan of a fit, of all fits, and of the stream share their facts
    def _planned(self, n_features: int) -> PlannedStream:
        one_of(("exact", "paper"), accounting=self.accounting)
        one_of(("auto", "even", "harmonic"), split=self.split)
        terms = self._terms()
        budget = self._budget(terms)
        names = getattr(self, "feature_names_in_", None)
        estimator = prepared_estimator(self.estimator, budget.neighbors, names)

        def planned(n_rows: int, part: Budget) -> Any:
            fit = clone(estimator).set_params(**fit_parameters(part, n_rows))
            # with so many expected rows and a delta no number of rows changes the plan
            found = fit.plan(max(n_rows, 2), n_features)
            if solver_fact(found.solver, "rows_are_bounded"):
                raise PlanError(
                    "EntropySampling depends on the number of rows, which a stream "
                    "does not fix; use solver='frank_wolfe'."
                )
            return found

        problem = planned(terms.n_rows, budget).problem
        steps = self._steps(problem, budget, terms)
        refits, event = self._divided(
            lambda n_rows, part: planned(n_rows, part).event,
            steps,
            problem,
            budget,
            terms,
        )
        last = planned(refits[-1].n_rows, refits[-1].budget)
        reader = RefitReader.of(estimator, budget.neighbors)
        learner = RefitLearner(
            described=described(estimator),
            n_features=n_features,
            refits=refits,
            event=event,
            assumptions=(f"the charge is of {len(refits)} fits to all rows so far",),
            unusable=reader.unusable,
            estimator=estimator,
        )
        return PlannedStream(budget, terms, learner, reader, last.assumptions)

    def _steps(
        self, problem: Problem, budget: Budget, terms: StreamTerms
    ) -> tuple[int, ...]:
        """Return the steps of the fits, from public facts."""
        every = self.update_every
        if not isinstance(every, str):
            return refit_steps(every, terms.horizon)
        one_of(("auto", "doubling"), update_every=every)
        if every == "doubling":
            return doubling_steps(terms.horizon)
        if self.accounting == "exact":
            return doubling_steps(terms.horizon, useful_step(problem, budget, terms))
        rows = balanced_interval(problem, terms.n_rows, budget.epsilon)
        rows = max(rows, ceil(terms.n_rows / MOST_REFITS))
        every = min(terms.horizon, ceil(rows / terms.rows_per_step))
        return refit_steps(every, terms.horizon)

    def _divided(
        self,
        event_for: Any,
        steps: tuple[int, ...],
        problem: Problem,
        budget: Budget,
        terms: StreamTerms,
    ) -> tuple[tuple[Refit, ...], Event]:
        """Return the fits with their budgets, and the event of all of them."""
        rows, person = terms.rows_per_step, terms.rows_per_person
        if self.accounting == "paper":
            if self.split == "harmonic":
                raise ValueError(
                    "split='harmonic' requires accounting='exact'; the published "
                    "fractions are even."
                )
            return paper_refits(event_for, steps, rows, budget, rows_per_person=person)
        split = self.split
        if split == "auto":
            fixed = steps[0] * len(steps) == steps[-1]
            split = "harmonic" if fixed and problem.ridge > 0 else "even"
        fractions = split_fractions(split, steps)
        return planned_refits(
            event_for, steps, rows, fractions, budget, rows_per_person=person
        )

    def _table_targets(self, X: Any, y: Any) -> NDArray[Any]:
        targets = checked_table(self.estimator, X, y)
        return targets if is_classifier(self.estimator) else numeric(targets)

    def _publish(self, planned: PlannedStream, weights: Array) -> None:
        learner, n_steps = planned.learner, self._n_steps
        assert isinstance(learner, RefitLearner)
        last = learner.last_refit(n_steps)
        fitted_at = 0 if last is None else last.step
        if n_steps > 1 and fitted_at == getattr(self, "last_refit_", None):
            return  # no fit since the last model
        model = learner.shown(weights, n_steps, planned.budget)
        model.privacy_ = self.privacy_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        self.last_refit_ = fitted_at
        self._show_model(model)

    def _show_model(self, model: Any) -> None:
        """Set the attributes that show the last model of the stream."""
        self.estimator_ = model
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        if is_classifier(model):
            self.classes_ = model.classes_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction of the last model for each row.

        Parameters
        ----------
        X
            Features, clipped to their bounds.
        """
        found: NDArray[Any] = self._last().predict(X)
        return found

    @available_if(_offers("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X
            Features, clipped to their bounds.
        """
        found: NDArray[Any] = self._last().predict_proba(X)
        return found

    @available_if(_offers("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return the margins of each row.

        Parameters
        ----------
        X
            Features, clipped to their bounds.
        """
        found: NDArray[Any] = self._last().decision_function(X)
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the last model.

        Parameters
        ----------
        X, y
            Features, and labels or targets.
        """
        return float(self._last().score(X, y))

    def _last(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def __sklearn_tags__(self) -> Any:
        """Return tags which say that this is of the type of its estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if isinstance(self.estimator, BaseEstimator):  # otherwise a plan rejects it
            of = get_tags(self.estimator)
            tags.estimator_type = of.estimator_type
            tags.classifier_tags = of.classifier_tags
            tags.regressor_tags = of.regressor_tags
        return tags
