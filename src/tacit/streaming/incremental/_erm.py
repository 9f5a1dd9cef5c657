"""Any private batch fit made incremental."""

from __future__ import annotations

from math import ceil

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    Saved,
    checked_targets,
    checked_values,
    numeric,
)
from tacit._stream_values import class_positions, dense_values, float_targets
from tacit._validate import one_of
from tacit.exceptions import PlanError
from tacit.privacy import Neighbors
from tacit.solvers._base import solver_fact
from tacit.streaming._model import StreamModel
from tacit.streaming._terms import PlannedStream
from tacit.streaming.incremental._refit_learner import (
    NO_LABEL,
    RefitLearner,
    described,
    prepared_estimator,
    spending,
    unusable_target,
)
from tacit.streaming.incremental._refit_plan import (
    MOST_REFITS,
    balanced_interval,
    doubling_steps,
    paper_refits,
    planned_refits,
    refit_steps,
    split_fractions,
    useful_step,
)

__all__ = ["IncrementalERM"]


def _offers(method):
    """Return whether the estimator has a method, for scikit-learn."""

    def check(self):
        getattr(self.estimator, method)
        return True

    return check


class IncrementalERM(StreamModel):
    """A model of `tacit.linear_model` that is fitted again as rows come.

    After some of the steps the estimator is fitted to all rows so far with its share of
    one budget; between these steps the last model stands. This works for any loss,
    penalty and solver. Its price is that all rows are kept, as private state, and read
    again by each fit; `IncrementalLinearRegression` keeps sums alone.

    Parameters
    ----------
    estimator
        An estimator of `tacit.linear_model`, not fitted. Its epsilon, delta,
        neighbors, expected_rows, random_state and verbose are set by this one;
        classifiers need ``classes``.
    epsilon
        Privacy budget of the whole stream.
    delta
        Probability with which the bound may fail. None for one over the squared
        number of rows to expect, at most 1e-6, where neighbors replace a row; must be
        given when they add or remove one. 0.0 asks for pure privacy, where the
        estimator has it.
    horizon
        Steps that are paid for.
    update_every
        Steps between two fits, or ``"doubling"`` for fits after the last step, half as
        many, a quarter and so on, which take few shares of the budget [2]_ and end with
        all rows. ``"auto"`` leaves out of these the first ones, while rows are too few
        for the budget; for ``accounting="paper"`` it is the interval of the published
        analysis.
    rows_per_step
        Rows that a step usually takes. Fits are planned for as many; other numbers
        cost accuracy alone.
    rows_per_person
        Most rows that one person has in the whole stream.
    split
        How fits share the budget: ``"even"``, or ``"harmonic"`` for less to later fits,
        in proportion to one over their rows, which keeps the error of strongly convex
        problems even. ``"auto"`` is ``"harmonic"`` for a fixed interval and a ridge
        penalty, else ``"even"``.
    accounting
        ``"exact"`` composes what the fits do and spends at least 98 percent of the
        budget. ``"paper"`` divides it as published [1]_, which spends less.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    estimator_ : estimator
        The last model, with the promise and the report of the whole stream.
    coef_, intercept_ : ndarray or float
        Its weights. Before the first fit they are those nearest to zero.
    classes_ : ndarray
        Labels, for classifiers alone.
    last_refit_ : int
        Step of the last fit, 0 before the first.
    n_steps_ : int
        Steps that were taken.
    privacy_ : PrivacyReport
        Promise, spend and assumptions: one charge for the whole horizon.

    Notes
    -----
    **Guarantee.** All models together are (epsilon, delta)-private for the stated
    neighbors: what each fit will do is fixed before the first row, and the charge is
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
    ...     LogisticRegression(classes=[0, 1]), 1.0, horizon=8, rows_per_step=500
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

    def __init__(
        self,
        estimator,
        epsilon=1.0,
        delta=None,
        *,
        horizon=1000,
        update_every="auto",
        rows_per_step=1,
        rows_per_person=1,
        split="auto",
        accounting="exact",
        neighbors="replace_one",
        random_state=None,
    ):
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

    def _planned(self, n_features):
        one_of(("exact", "paper"), accounting=self.accounting)
        one_of(("auto", "even", "harmonic"), split=self.split)
        terms = self._terms()
        budget = self._budget(terms)
        names = getattr(self, "feature_names_in_", None)
        estimator = prepared_estimator(self.estimator, budget.neighbors, names)

        def planned(n_rows, part):
            fit = clone(estimator).set_params(**spending(part, n_rows))
            # with so many expected rows and a delta no number of rows changes the plan
            found = fit.plan(max(n_rows, 2), n_features)
            if solver_fact(found.solver, "rows_are_bounded"):
                raise PlanError(
                    "EntropySampling rests on the number of rows, which a stream does "
                    "not fix; use solver='frank_wolfe'."
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
        learner = RefitLearner(
            described=described(estimator),
            n_features=n_features,
            refits=refits,
            event=event,
            assumptions=(f"the charge is of {len(refits)} fits to all rows so far",),
            unusable=unusable_target(estimator),
            estimator=estimator,
        )
        return PlannedStream(budget, terms, learner, last.assumptions)

    def _steps(self, problem, budget, terms):
        """Return after which steps to fit, from public facts."""
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

    def _divided(self, event_for, steps, problem, budget, terms):
        """Return the fits with their shares, and the event of all of them."""
        per_person = terms.rows_per_person
        if self.accounting == "paper":
            if self.split == "harmonic":
                raise ValueError(
                    "split='harmonic' is for accounting='exact'; the published shares "
                    "are even."
                )
            return paper_refits(
                event_for,
                steps,
                terms.rows_per_step,
                budget,
                rows_per_person=per_person,
            )
        split = self.split
        if split == "auto":
            fixed = steps[0] * len(steps) == steps[-1]
            split = "harmonic" if fixed and problem.ridge > 0 else "even"
        return planned_refits(
            event_for,
            steps,
            terms.rows_per_step,
            split_fractions(split, steps),
            budget,
            rows_per_person=per_person,
        )

    def _integer_targets(self, X, y):
        # a table is all there before the charge, so that bad values can be refused
        labels = is_classifier(self.estimator)
        y = checked_targets(y, X.shape[0], labels=labels)
        checked_values(X, accept_sparse=True)
        return y if labels else numeric(y)

    def _leaf(self, X, y):
        """Return features and targets or codes; zeros for rows that cannot be used."""
        first = self._is_first()
        estimator = self.estimator
        if not first:  # as it was at the first step
            estimator = self._private_stream.planned.learner.estimator
        X = dense_values(X, first=first)
        if is_classifier(estimator):
            targets = class_positions(estimator._public_classes(), y)
            usable = targets != NO_LABEL
        else:
            targets = float_targets(y, first=first)
            usable = np.isfinite(targets)
        usable = usable & np.isfinite(X).all(axis=1)
        if Neighbors.of(self.neighbors) is not Neighbors.REPLACE_ONE:
            # [incremental-erm:left-out] one row of the stream is one row less
            return np.ascontiguousarray(X[usable]), targets[usable]
        # [incremental-erm:unusable] what cannot be used is the same whatever it holds
        X = np.where(usable[:, None], X, 0.0)
        return X, np.where(usable, targets, unusable_target(estimator))

    def _publish(self, weights):
        progress = self._private_stream
        learner, n_steps = progress.planned.learner, progress.n_steps
        last = learner.last_refit(n_steps)
        fitted_at = 0 if last is None else last.step
        if n_steps > 1 and fitted_at == getattr(self, "last_refit_", None):
            return  # the last model stands
        model = learner.shown(weights, n_steps, progress.planned.budget)
        model.privacy_ = self.privacy_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        self.last_refit_ = fitted_at
        self._hold(model)

    def _hold(self, model):
        """Show a fitted model as the last of the stream."""
        self.estimator_ = model
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        if is_classifier(model):
            self.classes_ = model.classes_

    def predict(self, X):
        """Return what the last model predicts for each row.

        Parameters
        ----------
        X
            Features, within their bounds or cut to them.
        """
        return self._last().predict(X)

    @available_if(_offers("predict_proba"))
    def predict_proba(self, X):
        """Return the probability of each class for each row.

        Parameters
        ----------
        X
            Features, within their bounds or cut to them.
        """
        return self._last().predict_proba(X)

    @available_if(_offers("decision_function"))
    def decision_function(self, X):
        """Return the margins of each row.

        Parameters
        ----------
        X
            Features, within their bounds or cut to them.
        """
        return self._last().decision_function(X)

    def score(self, X, y):
        """Return what the score of the estimator says of the last model.

        Parameters
        ----------
        X, y
            Features, and labels or targets.
        """
        return self._last().score(X, y)

    def _last(self):
        check_is_fitted(self)
        return self.estimator_

    def __sklearn_tags__(self):
        """Tell scikit-learn that this is what its estimator is."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if isinstance(self.estimator, BaseEstimator):  # else a plan refuses it
            of = get_tags(self.estimator)
            tags.estimator_type = of.estimator_type
            tags.classifier_tags = of.classifier_tags
            tags.regressor_tags = of.regressor_tags
        return tags
