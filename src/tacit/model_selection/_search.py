"""Private random search over candidates."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tacit._estimators import (
    ExplicitSeed,
    all_or_nothing,
    checked_shape,
    checked_targets,
    guaranteed_budget,
    listed,
    numeric,
    planning_rows,
)
from tacit._random import (
    RandomSource,
    is_seeded,
    noise_generator,
    public_generator,
    spawn,
)
from tacit._release import Release, charged_run
from tacit._validate import at_least, one_of
from tacit.data.bounds import canonical
from tacit.evaluation import hold_out
from tacit.evaluation._measures import ACCURACY, ROOT, Measure, without_warnings
from tacit.evaluation._score import assumptions_of
from tacit.evaluation._split import test_size_of
from tacit.linear_model._classifiers import LABELS_FROM_ROWS
from tacit.mechanisms import NO_ANSWER, NoAnswer
from tacit.mechanisms.subsets import random_blocks
from tacit.model_selection._candidates import (
    candidates_of,
    checked_rows,
    common_neighbors,
    event_of_fit,
    labels_of,
    private_parts,
    published,
    require_private_parts,
    with_budget,
    with_params,
)
from tacit.model_selection._plan import (
    Fit,
    SearchPlan,
    plan_search,
    planned_holdout,
    planned_runs,
)
from tacit.model_selection._runs import Prepared, Run, best_run
from tacit.privacy import Budget, Ledger, Neighbors

__all__ = ["PrivateSearchCV"]

MEASURES = {None: None, "accuracy": ACCURACY, "rmse": ROOT}
# Errors are clipped to this fraction of the range of targets, which few exceed, so that
# the others are larger relative to the noise
LARGEST_ERROR = 0.25


class PrivateSearchCV(MetaEstimatorMixin, ExplicitSeed, BaseEstimator):
    """Differentially private search of hyperparameters.

    Candidates are drawn at random, fitted on a part of the rows and scored on the other
    with noise, a secret random number of times. The best noisy score and its model are
    released. One charge covers all of it, and is little more than that of one run.

    Parameters
    ----------
    estimator
        A private classifier or regressor, or a Pipeline whose steps are private or
        public ones that have an answer for every row; see the guide. Its private parts
        share the budget of a run in proportion to their own ``epsilon``.
    param_grid
        Names of parameters and lists of values, all of which are crossed, or several
        such mappings. Values may be distributions, if ``n_candidates`` is given. Must
        not be made from the data, nor list ``epsilon`` or ``delta``.
    epsilon
        Privacy budget of the whole search.
    delta
        Probability with which the guarantee may fail. None for one over the squared
        number of rows, which is public when neighbors replace a row; must be given
        when they add or remove one. 0.0 gives pure privacy, which costs more here.
    mean_repeats
        Expected number of runs. None for three per candidate, and at least 20. More
        runs are more likely to try the best candidate, and each gets less budget.
    n_candidates
        Number of candidates to draw from distributions or from a larger grid. None for
        the whole grid.
    holdout
        Fraction of the rows that candidates are scored on; no model is fitted on them.
        None for one that follows from the noise of a score, between 0.1 and 0.3.
    scoring
        ``"accuracy"``, ``"rmse"``, or None for the one that suits the estimator. Errors
        are clipped to a quarter of the width of ``y_range``.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Attributes
    ----------
    best_estimator_ : estimator or NoAnswer
        The model, fitted on all rows but those held out. Its ``privacy_``, ``epsilon``
        and ``delta`` are those of the search. `NoAnswer` if no run gave a model.
    best_params_ : dict or None
        Its parameters.
    best_index_ : int or None
        Its index among the candidates.
    best_score_ : float
        Its noisy score, which is biased upwards as the best of several.
    candidates_ : list of dict
        Parameters of all candidates.
    n_candidates_ : int
        Number of candidates.
    plan_ : SearchPlan
        Plan: the budget of one run, the distribution of the number of runs.
    classes_ : ndarray of shape (n_classes,)
        Labels, for classifiers.
    privacy_ : PrivacyReport
        Guarantee, spend and assumptions.

    Notes
    -----
    **Guarantee.** ``fit`` is (epsilon, delta)-private for the neighbors of the
    estimator. A run is a fit on some rows and a score on the others, of which
    neighbors differ in one; the best of a truncated negative binomial number of runs
    is charged by Papernot and Steinke (2022), Theorem 2, and by profiles as in Koskela,
    Redberg and Wang (2024). See the page on private search among the guarantees.

    The number of runs must stay secret. No attribute has it, but the time that ``fit``
    takes reveals it: keep that from everyone who may not see the rows.

    References
    ----------
    .. [1] N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential
       privacy", ICLR 2022.
    .. [2] A. Koskela, R. Redberg, Y.-X. Wang, "Privacy profiles for private
       selection", ICML 2024.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.model_selection import PrivateSearchCV
    >>> census = make_census(4000, random_state=0)
    >>> search = PrivateSearchCV(
    ...     LogisticRegression(classes=[0, 1], x_norm=1.0),
    ...     {"x_norm": [0.5, 1.0, 2.0], "ridge": [0.0, 10.0]},
    ...     epsilon=2.0,
    ... )
    >>> search.fit(census.X, census.y).best_estimator_.privacy_.guarantee.epsilon
    2.0
    >>> sorted(search.best_params_)
    ['ridge', 'x_norm']
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        mean_repeats: float | None = None,
        n_candidates: int | None = None,
        holdout: float | None = None,
        scoring: str | None = None,
        random_state: RandomSource = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.mean_repeats = mean_repeats
        self.n_candidates = n_candidates
        self.holdout = holdout
        self.scoring = scoring
        self.random_state = random_state

    @property
    def neighbors(self) -> str:
        """Relation between data sets, which is that of the estimator."""
        return common_neighbors(self.estimator).value

    def fit(self, X: Any, y: Any, *, ledger: Ledger | None = None) -> Self:
        """Search, charging the ledger first, once for all of it.

        Parameters
        ----------
        X
            Features, one row a person.
        y
            Labels or targets.
        ledger
            Ledger to charge; None creates one for this fit.
        """
        with all_or_nothing(self):
            return self._fit(X, y, ledger)

    def plan(self, n_rows: int, n_features: int) -> SearchPlan:
        """Return what `fit` will do and spend on rows of this shape; reads no row.

        Parameters
        ----------
        n_rows
            Number of rows, which is public or a guess.
        n_features
            Number of columns.
        """
        at_least(1, n_features=n_features)
        at_least(3, n_rows=n_rows)
        models = self._candidates()[1]
        return self._prepared(models, np.zeros((1, n_features)), int(n_rows), None).plan

    def _fit(self, X: Any, y: Any, ledger: Ledger | None) -> Self:
        # long: check and run, before and after the charge, share what was found
        X = listed(X)
        if sparse.issparse(X):
            X = canonical(X)  # rows of most sparse formats cannot be indexed
        params, models = self._candidates()
        measure = self._measure(models)
        counted = Neighbors.of(self.neighbors) is Neighbors.REPLACE_ONE
        n_rows, _ = checked_shape(
            self, X, fitting=True, least_rows=3 if counted else 1, accept_sparse=True
        )
        y = checked_targets(y, n_rows, labels=measure.labels)
        labels, taken = labels_of(models, y) if measure.labels else (None, False)
        if not measure.labels:
            y = numeric(y)
        prepared = self._prepared(models, X, n_rows, labels)
        plan = prepared.plan
        # noise too large for the grid is rejected here, not after the charge
        plan.noise.scale(1 if counted else 2)
        rng = noise_generator(self.random_state, type(self).__name__, plan)

        def check() -> Any:
            with without_warnings():
                checked_rows(prepared.models, X)
            return X

        def run(X: Any) -> Run | None:
            # the number of rows must not change the draws of the runs
            coins, runs = spawn(rng, 2)
            # [search:split] one split for all runs, by position only
            split = hold_out(
                n_rows, plan.holdout, neighbors=self.neighbors, random_state=coins
            )
            train, test = ((_safe_indexing(X, rows), y[rows]) for rows in split)
            return best_run(prepared, train, test, measure, runs)

        assumptions = (
            *plan.assumptions,
            *(a for model in models for a in assumptions_of(model, measure)),
            *((LABELS_FROM_ROWS,) if taken else ()),
        )
        release = Release(
            plan.event,
            plan.budget,
            type(self).__name__,
            tuple(dict.fromkeys(assumptions)),
            seeded=is_seeded(self.random_state),
        )
        best, self.privacy_ = charged_run(release, ledger, run, check=check)
        self.plan_ = plan
        self.candidates_, self.n_candidates_ = params, len(params)
        self._keep(best, models)
        if measure.labels:
            self.classes_ = self._labels(models, labels)
        return self

    def _candidates(self) -> tuple[list[dict[str, Any]], list[Any]]:
        """Return the parameters of all candidates and the candidates themselves."""
        seed = public_generator(self.random_state, "candidates")
        require_private_parts(self.estimator)  # an error names it, not a candidate
        params = candidates_of(
            self.param_grid, self.n_candidates, int(random_blocks(1, 2**31, seed)[0])
        )
        models = [with_params(self.estimator, given) for given in params]
        relation = common_neighbors(self.estimator)
        if any(common_neighbors(model) is not relation for model in models):
            raise ValueError("neighbors must be the same in all candidates.")
        return params, models

    def _measure(self, models: list[Any]) -> Measure:
        """Return the one measure by which candidates are compared."""
        one_of(MEASURES, scoring=self.scoring)
        name = MEASURES[self.scoring]
        if name is None:
            name = ACCURACY if is_classifier(self.estimator) else ROOT
        measures = {Measure.of(model, name, LARGEST_ERROR) for model in models}
        if len(measures) > 1:
            raise ValueError("y_range must be the same in all candidates.")
        return measures.pop()

    def _prepared(
        self, models: list[Any], X: Any, n_rows: int, labels: Any
    ) -> Prepared:
        """Return the plan of the search, and its candidates with their budgets."""
        budget = guaranteed_budget(self.epsilon, self.delta, self.neighbors, n_rows)
        guess = getattr(private_parts(models[0])[-1][1], "expected_rows", None)
        n_public = planning_rows(budget, n_rows, guess)
        runs = planned_runs(budget, len(models), self.mean_repeats)
        holdout = planned_holdout(runs[1], n_public, self.holdout)
        n_train, expected = n_rows - test_size_of(n_rows, holdout), None
        if budget.neighbors is not Neighbors.REPLACE_ONE:
            # plans, and what they reject, must not depend on the number of rows
            n_train = expected = max(1, round(n_public * (1 - holdout)))
        sample = _safe_indexing(X, [0])

        def fits(per_run: Budget) -> list[Fit]:
            funded = [with_budget(clone(m), per_run, labels, expected) for m in models]
            with without_warnings():
                return [(m, *event_of_fit(m, sample, n_train, per_run)) for m in funded]

        plan, found = plan_search(budget, runs, holdout, fits)
        given, events, _ = zip(*found, strict=True)
        return Prepared(plan, given, events, sample)

    def _keep(self, best: Run | None, models: list[Any]) -> None:
        """Set the released attributes, under the guarantee of the whole search."""
        self.best_estimator_, self.best_score_ = NO_ANSWER, np.nan
        self.best_index_ = self.best_params_ = None
        if best is None:
            return
        self.best_estimator_ = published(best.model, models[best.index], self.privacy_)
        self.best_score_, self.best_index_ = best.score, best.index
        self.best_params_ = self.candidates_[best.index]

    def _labels(self, models: list[Any], labels: Any) -> NDArray[Any]:
        if not isinstance(self.best_estimator_, NoAnswer):
            return self.best_estimator_.classes_
        given = private_parts(models[0])[-1][1].classes
        return np.unique(np.asarray(labels if given is None else given))

    def _model(self) -> Any:
        check_is_fitted(self)
        if isinstance(self.best_estimator_, NoAnswer):
            raise ValueError(
                "best_estimator_ is NoAnswer: no candidate could be fitted; check the "
                "candidates one by one, and search again."
            )
        return self.best_estimator_

    def predict(self, X: Any) -> Any:
        """Return the predictions of the best model."""
        return self._model().predict(X)

    def score(self, X: Any, y: Any) -> Any:
        """Return the plain score of the best model, which must not be published."""
        return self._model().score(X, y)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the margins of the best model."""
        return self._model().decision_function(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of labels by the best model."""
        return self._model().predict_proba(X)

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of the estimator."""
        tags: Tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.required = True
        return tags
