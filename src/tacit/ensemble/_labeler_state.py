"""Where a labeler stands, and how one question after another moves it on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np

from tacit._random import keyed_generator
from tacit.ensemble._row_digests import row_digests
from tacit.ensemble._terms import LabelerPlan
from tacit.mechanisms.votes import Remaining, VoteAnswer
from tacit.privacy import Entry

__all__ = ["FitStart", "LabelerState", "asked", "started"]

# Votes that are in memory together
MOST_VOTES = 2**27


@dataclass(frozen=True)
class LabelerState:
    """Where a labeler stands. Private, but for the plan and the number of questions."""

    planned: LabelerPlan
    n_asked: int
    _private_key: bytes = field(repr=False)
    _private_digest: bytes = field(repr=False)
    _private_state: Any = field(repr=False)
    _private_teachers: Any = field(repr=False)
    process: int = field(default_factory=os.getpid, repr=False)

    @property
    def remaining(self) -> Remaining:
        """What may still be asked, from released answers alone."""
        return self.planned.mechanism.remaining(self._private_state)


def _nothing(*_: Any) -> None:
    """Keep nothing."""


@dataclass(frozen=True)
class FitStart:
    """What is there before a fit: how it is charged, its key, where teachers are kept.

    Parameters
    ----------
    label
        Of the charge.
    folder
        Where teachers are kept; None for memory.
    entry
        A charge that stands already.
    begin
        Called right before the charge, when nothing is left to refuse.
    reject
        Called with the plan and the rows, before the charge.
    keep
        Called with the standing and the rows before anything is shown.
    """

    label: str
    _private_key: bytes = field(repr=False)
    folder: Any = None
    entry: Entry | None = None
    begin: Callable[[], None] = _nothing
    reject: Callable[[LabelerPlan, Any], None] = _nothing
    keep: Callable[[LabelerState, Any], None] = _nothing


def started(
    planned: LabelerPlan, key: bytes, digest: bytes, teachers: Any
) -> LabelerState:
    """Return where a labeler stands before the first question."""
    state = planned.mechanism.init(keyed_generator(key, "first", digest.hex()))
    return LabelerState(planned, 0, key, digest, state, teachers)


def asked(before: LabelerState, X: Any) -> tuple[LabelerState, list[VoteAnswer]]:
    """Return where a labeler stands after public questions, and their answers.

    The answers are as many as the rows, or fewer where nothing is left.
    """
    mechanism, state = before.planned.mechanism, before._private_state
    digest, n_asked = before._private_digest, before.n_asked
    answers: list[VoteAnswer] = []
    rows = X.iloc if hasattr(X, "iloc") else X
    # a question has no target
    held = row_digests(X, np.zeros(X.shape[0]), before._private_key)
    left = before.remaining
    end = X.shape[0] if left.queries is None else min(X.shape[0], left.queries)
    piece = max(1, MOST_VOTES // before.planned.n_teachers)
    while len(answers) < end and not left.ended:
        start = len(answers)
        votes = before._private_teachers.votes(rows[start : min(start + piece, end)])
        for own in np.ascontiguousarray(votes.T):
            # [ensemble:key] of all questions and votes so far, and of the rows
            digest = sha256(digest + next(held) + own.tobytes()).digest()
            rng = keyed_generator(before._private_key, n_asked, digest.hex())
            state, answer = mechanism.step(state, own, rng)
            answers.append(answer)
            n_asked += 1
            left = mechanism.remaining(state)
            if left.ended:
                break
    after = replace(
        before, n_asked=n_asked, _private_digest=digest, _private_state=state
    )
    return after, answers
