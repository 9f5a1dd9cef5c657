"""Which students learn what, from public facts alone."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_regressor

from tacit.ensemble._plan import auto_mechanism
from tacit.ensemble._terms import refuse_no_learner
from tacit.mechanisms.votes import VOTES

__all__ = ["refuse_student"]


def refuse_student(student: Any, labeler: Any, targets: str, unanswered: str) -> None:
    """Refuse a student that cannot learn what a labeler will say."""
    if student is not None:
        refuse_no_learner("student", student)
    numbers = is_regressor(labeler.estimator)
    regressor = student is not None and is_regressor(student)
    name = auto_mechanism(labeler.mechanism, numbers=numbers)
    tells = name in VOTES and VOTES[name].mechanism.tells_votes
    wanted = targets == "votes"
    if numbers and student is not None and not regressor:
        raise ValueError(
            "student must be a regressor where the labeler answers with numbers."
        )
    if wanted and not tells:
        raise ValueError(
            "targets='votes' needs a labeler that tells votes; give it "
            "mechanism='gnmax' or 'confident_gnmax', 'mean' for numbers, or "
            "targets='auto'."
        )
    if wanted and student is not None and not regressor:
        raise ValueError(
            "targets='votes' needs a student that is a regressor of several "
            "targets, such as Ridge(), or None; give one, or targets='labels'."
        )
    if regressor and not numbers and (targets == "labels" or not tells):
        raise ValueError(
            "student must be a classifier where it learns labels; a regressor "
            "learns votes, of a labeler that tells them."
        )
    if unanswered == "self_train" and (
        numbers or student is None or not hasattr(student, "predict_proba")
    ):
        raise ValueError(
            "unanswered='self_train' needs a student that is a classifier with "
            "predict_proba."
        )
