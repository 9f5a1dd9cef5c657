"""The one path by which anything leaves private rows: check, charge, run, report.

A ledger that cannot afford the release rejects it before features are read; they are
checked before the charge; after the charge no value is rejected, and what is computed
leaves through mechanisms only. Targets are checked earlier, where labels set the loss.
Each mechanism sends its draw through `release`, which an audit can record and replay: a
trainer that runs twice, on neighboring data and with the same draws, must produce the
same.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Budget, Event, Ledger, Neighbors, PrivacyReport
from tacit.privacy.report import Entry

__all__ = [
    "Diverged",
    "Draw",
    "Release",
    "ReleaseLog",
    "charged_run",
    "is_note",
    "noise_note",
    "noise_warning",
    "recording",
    "release",
    "replaying",
    "rows_note",
]

Checked = TypeVar("Checked")
Result = TypeVar("Result")
T = TypeVar("T")

NORMS = ("l1", "l2", "linf")
# Ends of sentences of a plan on which no guarantee relies
_ACCURACY_ONLY = "; another number costs accuracy only"
_DROWNED = (
    ": the noise exceeds any signal, and the model will hardly be better than a "
    "constant; use fewer columns, more rows or a larger epsilon"
)


def rows_note(n_rows: int) -> str:
    """Return the note of a plan for which the number of rows sets accuracy only."""
    return f"planned for {n_rows} rows{_ACCURACY_ONLY}"


def is_note(sentence: str) -> bool:
    """Return whether the guarantee holds even where this sentence is false."""
    return sentence.endswith((_ACCURACY_ONLY, _DROWNED))


def noise_note(reason: str) -> str:
    """Return the note of a plan whose noise exceeds any signal."""
    return reason + _DROWNED


def noise_warning(sentences: Iterable[str]) -> str | None:
    """Return the note of this kind among the sentences of a plan, if there is one."""
    return next((words for words in sentences if words.endswith(_DROWNED)), None)


@dataclass(frozen=True)
class Release:
    """Cost and guarantee of a release, fixed before it is computed.

    Parameters
    ----------
    event
        What is done to the rows.
    budget
        Guarantee that the event was planned for.
    label
        Name under which ledgers list it.
    assumptions
        What the guarantee rests on, in words, and notes of the plan.
    seeded
        Whether the noise comes from a fixed seed.
    unit
        What the public number of rows counts.
    """

    event: Event
    budget: Budget
    label: str
    assumptions: tuple[str, ...] = ()
    seeded: bool = False
    unit: str = "rows"

    def report(self, entry: Entry, *, own_ledger: bool) -> PrivacyReport:
        """Return the report of the charge of this release."""
        replaced = self.budget.neighbors is Neighbors.REPLACE_ONE
        counted = (f"the number of {self.unit} is public",) if replaced else ()
        own = ("no shared ledger was charged",) if own_ledger else ()
        return PrivacyReport(
            guarantee=self.budget,
            spent=entry.event.curve(self.budget.neighbors).epsilon(self.budget.delta),
            entries=(entry,),
            assumptions=(*(a for a in self.assumptions if not is_note(a)), *counted),
            notes=(*filter(is_note, self.assumptions), *own),
        )


def charged_run(
    release: Release,
    ledger: Ledger | None,
    run: Callable[[Checked], Result],
    *,
    check: Callable[[], Checked],
    entry: Entry | None = None,
) -> tuple[Result, PrivacyReport]:
    """Charge a release and compute it; nothing is charged where a check fails.

    Parameters
    ----------
    release
        What is charged.
    ledger
        Ledger to charge; None creates one for this call.
    run
        Computes the result from the checked values. It rejects no value: a charge is
        not taken back.
    check
        Returns the values, or rejects them; what may fail belongs here.
    entry
        The charge that was made for this release before, as for a stream that resumes;
        then none is made.
    """
    if entry is not None:
        values = check()
    else:
        account = _affordable(release, ledger)
        values = check()
        entry = account.charge(
            release.event, release.label, release.budget, seeded=release.seeded
        )
    # errors and warnings that NumPy is set to would depend on rows
    with np.errstate(all="ignore"):
        result = run(values)
    return result, release.report(entry, own_ledger=ledger is None)


def _affordable(release: Release, ledger: Ledger | None) -> Ledger:
    """Return the ledger to charge, or a new one, after rejecting an overspend."""
    if ledger is None:
        return Ledger(release.budget)
    if not isinstance(ledger, Ledger):
        raise TypeError(f"ledger must be a Ledger, got {type(ledger).__name__}.")
    ledger.require(release.event, release.label, guarantee=release.budget)
    return ledger


class Diverged(RuntimeError):
    """A replayed run made a release that the recorded run did not make."""


@dataclass(frozen=True, eq=False)
class Draw:
    """One use of a mechanism: what went in, what was declared, what came out."""

    label: str
    value: NDArray[Any]
    shape: tuple[int, ...]
    sensitivity: float
    norm: str
    output: Any


@dataclass(eq=False)
class ReleaseLog:
    """The releases of one run, in order.

    Parameters
    ----------
    source
        The log whose outputs are replayed; None while recording.
    redraw
        Whether a replayed release still draws, and throws the draw away.
    """

    source: ReleaseLog | None = None
    redraw: bool = False
    releases: list[Draw] = field(default_factory=list)
    diverged: bool = False
    owner: int = field(default_factory=threading.get_ident)

    def take(
        self,
        label: str,
        value: Any,
        sensitivity: float,
        norm: str,
        draw: Callable[[], T],
    ) -> T:
        """Return the draw, or the recorded output instead, and log it."""
        # long: one check after another, each of which ends the recording or the replay
        if threading.get_ident() != self.owner:
            raise RuntimeError(
                "A release log belongs to the thread that opened it; run the trainer "
                "in one thread while it is recorded or replayed."
            )
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {NORMS}, got {norm!r}.")
        if self.source is None:
            # copied first, since a draw may add its noise to the array itself
            before = value if callable(value) else np.array(value)
            output = _draw_unseen(draw)
            self._note(label, before, sensitivity, norm, output)
            return output
        recorded, position = self.source.releases, len(self.releases)
        # a trainer that swallows the first error must not come back into step
        if (
            self.diverged
            or position >= len(recorded)
            or recorded[position].label != label
        ):
            self.diverged = True
            known = () if callable(value) else value
            self._note(label, known, sensitivity, norm, None)
            raise Diverged(f"Release {label!r} has no counterpart in the recording.")
        if self.redraw:
            _draw_unseen(draw)
        # a copy, since the trainer may write into what it gets
        output = copy.deepcopy(recorded[position].output)
        self._note(label, value, sensitivity, norm, output)
        if self.releases[position].shape != recorded[position].shape:
            self.diverged = True
            raise Diverged(f"Release {label!r} has another shape than recorded.")
        return output

    def _note(
        self, label: str, value: Any, sensitivity: float, norm: str, output: Any
    ) -> None:
        array = np.array(value(output) if callable(value) else value)
        self.releases.append(
            Draw(
                label=label,
                value=array,
                shape=array.shape,
                sensitivity=float(sensitivity),
                norm=norm,
                output=copy.deepcopy(output),
            )
        )


_ACTIVE: ContextVar[ReleaseLog | None] = ContextVar("tacit_release_log", default=None)


def _draw_unseen(draw: Callable[[], T]) -> T:
    # releases within a draw are part of it: a replay that skips it skips them too
    token = _ACTIVE.set(None)
    try:
        return draw()
    finally:
        _ACTIVE.reset(token)


def release(
    label: str,
    *,
    value: Any,
    sensitivity: float,
    norm: str,
    draw: Callable[[], T],
) -> T:
    """Return ``draw()``; every output of a mechanism passes here.

    Parameters
    ----------
    label
        Name of the release; depends on public facts only.
    value
        The private array that the mechanism protects, or a function from the output
        to that array where the array is known only afterwards, as the data gradient
        at the released point in objective perturbation. Read by a log only.
    sensitivity
        Declared bound on how far ``value`` moves between neighbors.
    norm
        Norm of that bound: ``"l1"``, ``"l2"`` or ``"linf"``.
    draw
        Produces the output. Releases made inside it count as part of this one.
    """
    log = _ACTIVE.get()
    if log is None:
        return draw()
    return log.take(label, value, sensitivity, norm, draw)


@contextmanager
def _active(log: ReleaseLog) -> Iterator[ReleaseLog]:
    if _ACTIVE.get() is not None:
        raise RuntimeError("A release log is already active; logs cannot be nested.")
    token = _ACTIVE.set(log)
    try:
        yield log
    finally:
        _ACTIVE.reset(token)


@contextmanager
def recording() -> Iterator[ReleaseLog]:
    """Record every release made in the block in a new log."""
    with _active(ReleaseLog()) as log:
        yield log


@contextmanager
def replaying(source: ReleaseLog, *, redraw: bool = False) -> Iterator[ReleaseLog]:
    """Answer every release in the block from ``source``, noting the new values.

    Parameters
    ----------
    source
        A log that was filled under `recording`.
    redraw
        Draw as well and throw the draw away. For trainers that take public
        randomness, such as which rows to sample, from the generator of the noise:
        without it that generator falls out of step.
    """
    with _active(ReleaseLog(source=source, redraw=redraw)) as log:
        yield log
