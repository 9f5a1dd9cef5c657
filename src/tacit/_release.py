"""The one path by which anything leaves private rows: check, charge, run, report.

A ledger that cannot afford the release rejects it before features are read; they are
checked before the charge; after the charge no value is rejected, and what is computed
leaves through mechanisms only, which send each draw through `tacit._release_log`.
Targets are checked earlier, where labels set the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tacit.privacy import Budget, Event, Ledger, Neighbors, PrivacyReport
from tacit.privacy.report import Entry, is_note

__all__ = ["Release", "charged_run"]

Checked = TypeVar("Checked")
Result = TypeVar("Result")


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
