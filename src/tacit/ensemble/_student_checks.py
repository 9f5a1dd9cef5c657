"""Checks of a student and its public rows, from public facts, before the charge."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from tacit._estimators import checked_values
from tacit._random import global_states_kept
from tacit._validate import LARGEST, public_range
from tacit.data.rows import row_indexer
from tacit.ensemble._answers import Labels
from tacit.ensemble._labeler_plan import (
    auto_mechanism,
    check_learner,
    public_classes,
)
from tacit.ensemble._rows import check_declared_input
from tacit.mechanisms._votes._plans import VOTES

__all__ = ["check_pool_values", "check_student", "dry_run", "not_taken"]

# Rows of a dry run; all of them only where these are not enough
DRY_RUN_ROWS = 100


def check_student(student: Any, labeler: Any, targets: str, unanswered: str) -> None:
    """Raise where a student cannot learn from the answers of a labeler."""
    if student is not None:
        check_learner("student", student)
    numbers = is_regressor(labeler.estimator)
    regressor = student is not None and is_regressor(student)
    releases = _releases_votes(labeler)
    wanted = targets == "votes"
    if numbers and student is not None and not regressor:
        raise ValueError(
            "student must be a regressor where the labeler answers with numbers."
        )
    if wanted and not releases:
        raise ValueError(
            "targets='votes' needs a labeler that releases votes; give it "
            "mechanism='gnmax' or 'confident_gnmax', 'mean' for numbers, or "
            "targets='auto'."
        )
    if wanted and student is not None and not regressor:
        raise ValueError(
            "targets='votes' needs a student that is a regressor of several "
            "targets, such as Ridge(), or None; give one, or targets='labels'."
        )
    if regressor and not numbers and (targets == "labels" or not releases):
        raise ValueError(
            "student must be a classifier where it learns labels; a regressor learns "
            "votes, of a labeler that releases them."
        )
    if unanswered == "self_train" and (
        numbers or student is None or not hasattr(student, "predict_proba")
    ):
        raise ValueError(
            "unanswered='self_train' needs a student that is a classifier with "
            "predict_proba."
        )


def _releases_votes(labeler: Any) -> bool:
    name = auto_mechanism(labeler.mechanism, numbers=is_regressor(labeler.estimator))
    return name in VOTES and VOTES[name].mechanism.releases_votes


def not_taken(error: Exception, by: str) -> Exception:
    """Return an error about public rows, of the type that scikit-learn raises."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"X_public must be rows that the {by} takes: {error}")


def check_pool_values(student: Any, pool: Any) -> None:
    """Raise where public rows have values that a student does not take."""
    if student is not None:
        try:
            check_declared_input(student, pool)
        except (TypeError, ValueError) as error:
            raise not_taken(error, "student") from None
        return
    try:
        fits = bool((np.abs(checked_values(pool)) <= LARGEST).all())
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            "X_public must be dense and hold finite numbers of at most "
            f"{LARGEST:g} for the student that is used by default; give a student for "
            "other rows, such as a Pipeline."
        )


def dry_run(learn: Callable[[Any, Labels, Any], Any], labeler: Any, pool: Any) -> None:
    """Raise where a student fails on public rows, whatever the answers are.

    Parameters
    ----------
    learn
        Fits a student to public rows, labels and classes, and returns it.
    labeler
        The labeler.
    pool
        Public rows.
    """
    rows = row_indexer(pool)
    failed: Exception | None = None
    for n_rows in sorted({min(DRY_RUN_ROWS, pool.shape[0]), pool.shape[0]}):
        # a dry run leaves no state behind, and prints nothing
        with warnings.catch_warnings(), global_states_kept(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                student = learn(rows[:n_rows], *_synthetic(labeler, n_rows))
                # meets values of further rows, such as missing ones, in less time than
                # a fit
                if n_rows < pool.shape[0]:
                    student.predict(rows[n_rows:])
            except Exception as error:  # of any learner
                failed = error
            else:
                return
    raise ValueError(
        "student must be able to learn from X_public, and fails on it with synthetic "
        f"answers: {type(failed).__name__}: {failed}"
    )


def _synthetic(labeler: Any, n_rows: int) -> tuple[Labels, Any]:
    """Return synthetic answers for so many rows, and the classes."""
    releases, all_rows = _releases_votes(labeler), np.ones(n_rows, dtype=bool)
    if is_regressor(labeler.estimator):
        low, high = public_range(labeler.y_range)
        values = np.resize([low, high], n_rows)
        votes = values[:, None] if releases else None
        return Labels(values, all_rows, votes, n_rows, low / 2 + high / 2), None
    known = getattr(labeler, "classes_", None)
    if known is None:
        given = labeler.classes is not None
        known = public_classes(labeler) if given else np.array([0, 1])
    values = np.resize(known, n_rows)
    votes = (values[:, None] == known).astype(np.float64) if releases else None
    return Labels(values, all_rows, votes, n_rows, known[0]), known
