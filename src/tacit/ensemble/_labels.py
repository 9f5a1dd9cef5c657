"""Answers to public questions: a label, a number, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import NO_ANSWER, NoAnswer
from tacit.mechanisms.votes import VoteAnswer

__all__ = ["Labels", "gathered"]


@dataclass(frozen=True, eq=False)
class Labels:
    """What was released of public rows, one entry for each of them.

    All of it is public: it was paid for before the first question. The length is the
    number of rows; an entry is a label or number, or `tacit.mechanisms.NO_ANSWER`.

    Parameters
    ----------
    values
        Labels or numbers. Rows without an answer are NaN where labels are floats; else
        they are None, in an array of objects. What is given there is overwritten.
    answered
        Whether there is an answer: not where the mechanism refused one, and not where a
        row was not asked.
    votes
        Noisy numbers of votes, one column a class, where the mechanism releases them;
        or, in one column, noisy means before they were clipped to the range. Rows
        without an answer are NaN. Else None.
    n_asked
        Rows that were asked. Those after it came when nothing was left.
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
    n_asked: int
    default: Any
    _dtype: np.dtype[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_dtype", self.values.dtype)
        if self.answered.all():
            return
        # no label stands where there is no answer, lest it be taken for one
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
        """Return all labels in their own type, ``default`` where there is no answer.

        Post-processing may need a value for each row; do not take these for answers.
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

    def placed(self, positions: NDArray[np.intp], n_rows: int) -> Labels:
        """Return the labels of a table; its other rows have no answer.

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
        return Labels(values, answered, votes, self.n_asked, self.default)


def gathered(
    answers: Sequence[VoteAnswer], choices: Any, n_rows: int, n_votes: int | None
) -> Labels:
    """Return the answers to the first of so many rows.

    Parameters
    ----------
    answers
        What was released, in order.
    choices
        Classes that answers are places of, or the default number.
    n_rows
        Rows there are; those beyond the answers were not asked.
    n_votes
        Noisy numbers that come with each answer; None for none.
    """
    asked = len(answers)
    answered = np.array(
        [not isinstance(answer.value, NoAnswer) for answer in answers], dtype=bool
    )
    told = [answers[position] for position in np.flatnonzero(answered)]
    if isinstance(choices, np.ndarray):
        default = choices[0]
        values = np.full(asked, default, dtype=choices.dtype)
        values[answered] = choices[np.array([a.value for a in told], dtype=np.intp)]
    else:
        default = float(choices)
        values = np.full(asked, default)
        values[answered] = [a.value for a in told]
    votes = None
    if n_votes is not None:
        votes = np.zeros((asked, n_votes))
        if told:
            votes[answered] = [a.votes for a in told]
    labels = Labels(values, answered, votes, asked, default)
    return labels.placed(np.arange(asked), n_rows)
