"""Released answers to public queries, and the state of a labeler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._random import keyed_generator
from tacit.data.rows import row_indexer
from tacit.ensemble._chunks import row_digests
from tacit.ensemble._labeler_plan import LabelerPlan
from tacit.mechanisms import NO_ANSWER, NoAnswer
from tacit.mechanisms._votes._base import Remaining, VoteAnswer
from tacit.privacy.report import Entry

__all__ = [
    "FitStart",
    "LabelerState",
    "Labels",
    "answer_queries",
    "collect_labels",
    "initial_state",
]


@dataclass(frozen=True, eq=False)
class Labels:
    """Released labels of public rows, one entry for each row.

    All of it is public, as the charge was made before the first query. The length is
    the number of rows; an entry is a label or number, or `tacit.mechanisms.NO_ANSWER`.

    Parameters
    ----------
    values
        Labels or numbers. Rows without an answer are NaN where labels are floats, and
        None in an array of objects otherwise, whatever was given there.
    answered
        Whether there is an answer. There is none where the mechanism withheld it, and
        none for rows that were not queried.
    votes
        Noisy vote counts, one column per class, where the mechanism releases them; or,
        in one column, noisy means before clipping to the range. Rows without an answer
        are NaN. None where no votes are released.
    n_queried
        Number of rows that were queried; no queries were left for those after them.
    default
        A public value for rows without an answer, which `filled` puts there: the first
        class, or the middle of the range.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.ensemble import Labels
    >>> labels = Labels(np.array(["no", "yes"]), np.array([False, True]), None, 2, "no")
    >>> len(labels), labels[1], labels[0]
    (2, 'yes', NoAnswer())
    >>> labels.values.tolist(), labels.missing.tolist()
    ([None, 'yes'], [True, False])
    >>> [bool(label) for label in labels]
    [False, True]
    """

    values: NDArray[Any]
    answered: NDArray[np.bool_]
    votes: NDArray[np.float64] | None
    n_queried: int
    default: Any
    _dtype: np.dtype[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_dtype", self.values.dtype)
        if self.answered.all():
            return
        # no placeholder label: it could be mistaken for an answer
        floats = self._dtype.kind == "f"
        values = self.values.astype(self._dtype if floats else object)
        values[self.missing] = np.nan if floats else None
        object.__setattr__(self, "values", values)
        if self.votes is not None:
            votes = np.where(self.answered[:, None], self.votes, np.nan)
            object.__setattr__(self, "votes", votes)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether there is no answer: the opposite of ``answered``."""
        return ~self.answered

    def filled(self) -> NDArray[Any]:
        """Return all labels in their own type, with ``default`` for missing answers.

        For post-processing that needs a value for each row; defaults are not answers.
        """
        values = np.full(len(self), self.default, dtype=self._dtype)
        values[self.answered] = self.values[self.answered]
        return values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, position: int) -> Any:
        """Return one label, as a value of Python, or `NO_ANSWER`."""
        if not self.answered[position]:
            return NO_ANSWER
        value = self.values[position]
        return value.item() if isinstance(value, np.generic) else value

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))

    def at_rows(self, positions: NDArray[np.intp], n_rows: int) -> Labels:
        """Return the labels of a larger table, whose other rows have no answer.

        Parameters
        ----------
        positions
            Rows of the table that these labels are of, one for each.
        n_rows
            Rows of the table.
        """
        values = np.full(n_rows, self.default, dtype=self._dtype)
        values[positions] = self.filled()
        answered = np.zeros(n_rows, dtype=bool)
        answered[positions] = self.answered
        votes = None
        if self.votes is not None:
            votes = np.zeros((n_rows, self.votes.shape[1]))
            votes[positions] = self.votes
        return Labels(values, answered, votes, self.n_queried, self.default)


def collect_labels(
    answers: Sequence[VoteAnswer], choices: Any, n_rows: int, n_votes: int | None
) -> Labels:
    """Collect released answers as the labels of a table.

    Parameters
    ----------
    answers
        Released answers, in order.
    choices
        Classes, which answers are indices of; or the default number.
    n_rows
        Number of rows; those beyond the answers were not queried.
    n_votes
        Number of noisy votes that come with each answer; None where there are none.
    """
    n_queried = len(answers)
    answered = np.array(
        [not isinstance(answer.value, NoAnswer) for answer in answers], dtype=bool
    )
    released = [a for a, there in zip(answers, answered, strict=True) if there]
    if isinstance(choices, np.ndarray):
        default = choices[0]
        values = np.full(n_queried, default, dtype=choices.dtype)
        values[answered] = choices[np.array([a.value for a in released], dtype=np.intp)]
    else:
        default = float(choices)
        values = np.full(n_queried, default)
        values[answered] = [a.value for a in released]
    votes = None
    if n_votes is not None:
        votes = np.zeros((n_queried, n_votes))
        if released:
            votes[answered] = [a.votes for a in released]
    labels = Labels(values, answered, votes, n_queried, default)
    return labels.at_rows(np.arange(n_queried), n_rows)


# Most votes that are in memory at once
MOST_VOTES = 2**27


@dataclass(frozen=True)
class LabelerState:
    """State of a labeler. All but the plan and the number of queries is private."""

    planned: LabelerPlan
    n_queried: int
    _private_key: bytes = field(repr=False)
    _private_digest: bytes = field(repr=False)
    _private_state: Any = field(repr=False)
    _private_teachers: Any = field(repr=False)
    process: int = field(default_factory=os.getpid, repr=False)

    @property
    def remaining(self) -> Remaining:
        """Remaining queries, a function of released answers."""
        return self.planned.mechanism.remaining(self._private_state)


def _nothing(*_: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class FitStart:
    """Circumstances of a fit: its charge, its key, and where teachers are stored.

    Parameters
    ----------
    label
        Label of the charge.
    folder
        Folder of the teachers; None for memory.
    entry
        A charge that was made already.
    begin
        Called right before the charge, after all checks.
    reject
        Called with the plan and the rows before the charge; may raise.
    keep
        Called with the state and the rows before anything is released.
    """

    label: str
    _private_key: bytes = field(repr=False)
    folder: Any = None
    entry: Entry | None = None
    begin: Callable[[], None] = _nothing
    reject: Callable[[LabelerPlan, Any], None] = _nothing
    keep: Callable[[LabelerState, Any], None] = _nothing


def initial_state(
    planned: LabelerPlan, key: bytes, digest: bytes, teachers: Any
) -> LabelerState:
    """Return the state of a labeler before its first query."""
    state = planned.mechanism.init(keyed_generator(key, "first", digest.hex()))
    return LabelerState(planned, 0, key, digest, state, teachers)


def answer_queries(
    before: LabelerState, X: Any
) -> tuple[LabelerState, list[VoteAnswer]]:
    """Return the state of a labeler after public queries, and their answers.

    There is one answer per row, or fewer where no more queries are left.
    """
    mechanism, state = before.planned.mechanism, before._private_state
    digest, n_queried = before._private_digest, before.n_queried
    answers: list[VoteAnswer] = []
    rows = row_indexer(X)
    # a query has no target
    digests = row_digests(X, np.zeros(X.shape[0]), before._private_key)
    left = before.remaining
    end = X.shape[0] if left.queries is None else min(X.shape[0], left.queries)
    piece = max(1, MOST_VOTES // before.planned.n_teachers)
    while len(answers) < end and not left.ended:
        start = len(answers)
        votes = before._private_teachers.votes(rows[start : min(start + piece, end)])
        for own in np.ascontiguousarray(votes.T):
            # [ensemble:key] of all queries and votes so far, and of the rows
            digest = sha256(digest + next(digests) + own.tobytes()).digest()
            rng = keyed_generator(before._private_key, n_queried, digest.hex())
            state, answer = mechanism.step(state, own, rng)
            answers.append(answer)
            n_queried += 1
            left = mechanism.remaining(state)
            if left.ended:
                break
    after = replace(
        before, n_queried=n_queried, _private_digest=digest, _private_state=state
    )
    return after, answers
