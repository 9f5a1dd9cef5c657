"""Scores of fitted models, and the choice between several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit._estimators import checked_targets, guaranteed_neighbors
from tacit._random import RandomSource, is_seeded, noise_generator
from tacit._release import Release, charged_run
from tacit.evaluation._measures import (
    ACCURACY,
    PARTS,
    ROOT,
    Measure,
    answering,
    last_step,
    number_of_rows,
    predictions,
    without_warnings,
)
from tacit.evaluation._score import PrivateScore, assumptions_of, scored, weights_of
from tacit.mechanisms import PermuteAndFlip
from tacit.privacy import Budget, Ledger, Neighbors, PrivacyReport

__all__ = ["Choice", "private_accuracy", "private_choice", "private_rmse"]

LABEL = "private choice"


@dataclass(frozen=True)
class Choice:
    """Model chosen by `private_choice`.

    Parameters
    ----------
    index
        Index of the model in the list.
    model
        The chosen model.
    privacy
        Report of the charge.
    """

    index: int
    model: Any
    privacy: PrivacyReport


def private_choice(
    models: Sequence[Any],
    X: Any,
    y: Any,
    *,
    epsilon: float,
    neighbors: str | Neighbors | None = None,
    ledger: Ledger | None = None,
    random_state: RandomSource = None,
) -> Choice:
    """Return one of several fitted models, chosen privately by their scores.

    Parameters
    ----------
    models
        Fitted classifiers, of which the most accurate is best, or fitted regressors
        with one public ``y_range``, of which the one with the least squared error is.
    X, y
        Rows that no model was fitted on, as from `tacit.evaluation.hold_out`.
    epsilon
        Privacy budget of the choice, without a delta.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``; None for that of the models.
    ledger
        Ledger to charge; None creates one for this call.
    random_state
        A `tacit.Seed` fixes the noise, for tests only, and is flagged in the report.
        Otherwise noise comes from the operating system.

    Notes
    -----
    **Guarantee.** Pure with epsilon, by permute-and-flip (McKenna and Sheldon 2020,
    Theorem 1). The score of a model is a sum over rows of values between zero and one,
    on a grid, so one row changes it by at most one. This is the charge for the choice
    alone, besides those for the fits. `PrivateSearchCV` charges the fits and
    the choice together, which is cheaper for many candidates.

    **Bound.** The chosen model is, with probability ``1 - beta``, right for at most
    ``2 log(k / beta) / epsilon`` rows fewer than the best of k, whatever the number of
    rows (their Theorem 2 with that of the exponential mechanism).

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.evaluation import hold_out
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.model_selection import private_choice
    >>> X, y = (census := make_census(5000, random_state=0)).X, census.y
    >>> train, test = hold_out(5000, 0.2, random_state=0)
    >>> models = [
    ...     LogisticRegression(
    ...         2.0, ridge=ridge, classes=[0, 1], x_norm=1.0
    ...     ).fit(X[train], y[train])
    ...     for ridge in (1e4, 1.0)
    ... ]
    >>> private_choice(models, X[test], y[test], epsilon=1.0).index
    1
    """
    # long: checks, charge and choice, in the order of every release
    if isinstance(models, str | Mapping) or not np.iterable(models):
        raise ValueError(
            f"models must be a list of fitted models, got {type(models).__name__}."
        )
    models = list(models)
    if len(models) < 2:
        raise ValueError("models must list two fitted models or more.")
    right = Measure.of(models[0]).labels
    measures = {Measure.of(model, ACCURACY if right else ROOT) for model in models}
    if len(measures) > 1:
        raise ValueError("models must all have the same y_range.")
    (measure,) = measures
    answers = [answering(model) for model in models]
    if neighbors is None:
        relations = {guaranteed_neighbors(last_step(model)) for model in answers}
        if len(relations) > 1:
            raise ValueError("neighbors must be given: those of the models differ.")
        (neighbors,) = relations
    budget = Budget(epsilon, 0.0, Neighbors.of(neighbors))
    counted = budget.neighbors is Neighbors.REPLACE_ONE
    n_rows = {number_of_rows(model, X, 1 if counted else 0) for model in answers}.pop()
    y = checked_targets(y, n_rows, labels=measure.labels)
    # [choice:sensitivity] a row adds at most one to every sum
    mechanism = PermuteAndFlip(budget.epsilon, 1.0)
    weights = [part for model in answers for part in weights_of(model)]
    rng = noise_generator(random_state, LABEL, mechanism, len(answers), *weights)

    def scores() -> Any:
        sign = 1 if measure.labels else -1
        with without_warnings():
            sums = [
                int(measure.parts(predictions(model, X, n_rows), y).sum())
                for model in answers
            ]
        return sign * np.array(sums, dtype=np.float64) / PARTS

    release = Release(
        mechanism.event,
        budget,
        LABEL,
        tuple(dict.fromkeys(a for m in answers for a in assumptions_of(m, measure))),
        seeded=is_seeded(random_state),
    )
    index, report = charged_run(
        release, ledger, lambda scores: mechanism(scores, rng), check=scores
    )
    return Choice(index, models[index], report)


def private_accuracy(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    level: float = 0.95,
    neighbors: str | Neighbors | None = None,
    ledger: Ledger | None = None,
    random_state: RandomSource = None,
) -> PrivateScore:
    """Return the accuracy of a classifier, with noise.

    Parameters
    ----------
    model
        A fitted classifier, for which `tacit.evaluation.private_score` is the same.
    X, y, epsilon, level, neighbors, ledger, random_state
        As in `tacit.evaluation.private_score`.

    Notes
    -----
    **Guarantee.** Pure with epsilon; see the page on the private score.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.model_selection import private_accuracy
    >>> census, others = (make_census(5000, random_state=i) for i in (0, 1))
    >>> model = LogisticRegression(
    ...     1.0, classes=[0, 1], x_norm=1.0
    ... ).fit(census.X, census.y)
    >>> private_accuracy(model, others.X, others.y, epsilon=0.5).measure
    'accuracy'
    """
    return scored(
        model,
        X,
        y,
        ACCURACY,
        epsilon=epsilon,
        level=level,
        neighbors=neighbors,
        ledger=ledger,
        random_state=random_state,
    )


def private_rmse(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    level: float = 0.95,
    neighbors: str | Neighbors | None = None,
    ledger: Ledger | None = None,
    random_state: RandomSource = None,
) -> PrivateScore:
    """Return the root of the mean squared error of a regressor, with noise.

    Parameters
    ----------
    model
        A fitted regressor, for which `tacit.evaluation.private_score` is the mean
        absolute error.
    X, y, epsilon, level, neighbors, ledger, random_state
        As in `tacit.evaluation.private_score`.

    Notes
    -----
    **Guarantee.** Pure with epsilon: predictions and targets are clipped to
    ``y_range``, and a row adds its squared error over the squared width of that
    range, which is between zero and one; see the page on the private score.

    **Bound.** The interval is that of the mean squared error (Hoeffding 1963, Theorem
    1), mapped to the root and the unit of targets. For n rows the noise changes that
    mean by up to ``width^2 log(10 / (1 - level)) / (epsilon n)``. An error below the
    root of this, some ``2.3 width / sqrt(epsilon n)`` at the default level, cannot be
    distinguished from zero: compare before spending.

    Examples
    --------
    >>> from tacit.datasets import make_census
    >>> from tacit.linear_model import LinearRegression
    >>> from tacit.model_selection import private_rmse
    >>> X = make_census(5000, random_state=0).X
    >>> model = LinearRegression(
    ...     1.0, y_range=(0, 1), x_norm=1.0
    ... ).fit(X[:4000, 1:], X[:4000, 0])
    >>> private_rmse(model, X[4000:, 1:], X[4000:, 0], epsilon=0.5).measure
    'root mean squared error'
    """
    return scored(
        model,
        X,
        y,
        ROOT,
        epsilon=epsilon,
        level=level,
        neighbors=neighbors,
        ledger=ledger,
        random_state=random_state,
    )
