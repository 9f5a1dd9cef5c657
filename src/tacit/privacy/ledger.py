"""Ledgers: the privacy accountants of data sets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from tacit.exceptions import BudgetExceeded
from tacit.privacy._filter import NOTHING, Filter, Shares
from tacit.privacy.budget import Budget
from tacit.privacy.curve import PrivacyCurve
from tacit.privacy.events import Event
from tacit.privacy.report import Entry, PrivacyReport

__all__ = [
    "full_label",
    "labelled",
]

if TYPE_CHECKING:
    from tacit.privacy._store import StoredLedger

__all__ = ["Ledger", "Shares"]


class Ledger:
    """Privacy accountant of one data set.

    Every release is charged before it is computed. A charge that would exceed the
    budget is rejected, and then nothing is computed or released.

    Parameters
    ----------
    budget
        What may be spent on this data set in all.
    shares
        How delta is divided between the admission rules.

    Notes
    -----
    **Guarantee.** Whatever was admitted is (epsilon, delta)-private together, also
    when each charge was chosen after seeing all earlier outputs. The rule is a
    privacy filter: see the ledger page of the guarantees, which rests on Feldman and
    Zrnic (2021) for a Renyi order fixed in advance, Smith and Thakurta (2022) for
    Gaussian parameters, and Rogers, Roth, Ullman and Vadhan (2016) for basic
    composition, joined by dividing delta in advance.

    A ledger lives in this process and can be neither copied nor pickled: charges on a
    copy would be lost. `Ledger.open` gives one that lives in a database.

    Examples
    --------
    >>> from tacit.privacy import Budget, GaussianNoise, Ledger
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> entry = ledger.charge(GaussianNoise(multiplier=10.0), "mean age")
    >>> ledger.charge(GaussianNoise(multiplier=1.0), "mean income")
    Traceback (most recent call last):
        ...
    tacit.exceptions.BudgetExceeded: Charging 'mean income' would exceed the budget of \
epsilon=1 at delta=1e-06, of which 0.3969 is spent; nothing was charged or released.
    """

    def __init__(self, budget: Budget, *, shares: Shares | None = None) -> None:
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, got {type(budget).__name__}.")
        self._filter = Filter(budget, Shares() if shares is None else shares)
        self._total = NOTHING
        self._entries: tuple[Entry, ...] = ()
        self._lock = Lock()
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        dataset: str,
        budget: Budget | None = None,
        shares: Shares | None = None,
        analyst: str | None = None,
    ) -> StoredLedger:
        """Return the ledger of a data set that is stored in a database.

        The first to open it gives the budget, which is then fixed. Later ones may leave
        it out; giving another budget is an error.

        Parameters
        ----------
        url
            ``sqlite:///budget.db`` for a file, or ``postgresql://user@host/db``.
        dataset
            Name of the data set; all its users share the ledger of that name.
        budget
            What may be spent on it in all; needed the first time.
        shares
            How delta is divided between the admission rules.
        analyst
            Name under which charges are listed; by default the user of the system.

        Raises
        ------
        LedgerUnavailable
            When the database cannot be reached, read or written.
        LedgerDamaged
            When it is no ledger, or its records were changed.
        """
        from tacit.privacy._store import open_ledger  # noqa: PLC0415 - SQLAlchemy

        return open_ledger(
            url, dataset=dataset, budget=budget, shares=shares, analyst=analyst
        )

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._filter.budget

    def charge(
        self,
        event: Event,
        label: str,
        guarantee: Budget | None = None,
        *,
        seeded: bool = False,
    ) -> Entry:
        """Charge ``event``, or raise and record nothing.

        Parameters
        ----------
        event
            Event of the release that is about to be computed.
        label
            Name under which the report lists it.
        guarantee
            Budget the event was planned for, if any. Such guarantees are also composed
            by adding their epsilons and deltas.
        seeded
            Whether the randomness comes from a fixed seed, for the report.

        Raises
        ------
        BudgetExceeded
            When the charge would exceed the budget.
        """
        curve, guarantee = self._checked(event, guarantee)
        if os.getpid() != self._process:
            self._reject()  # a forked copy, whose charges the original would not see
        label = full_label(label)
        with self._lock:
            total = self._total.plus(curve, guarantee)
            if not self._filter.admits(total):
                raise BudgetExceeded(
                    self._filter.rejection(label, guarantee, self._total)
                )
            epsilon = self._filter.alone(curve, guarantee)
            entry = Entry(label, event, epsilon, seeded)
            self._total = total
            self._entries = (*self._entries, entry)
        return entry

    def admits(self, event: Event, guarantee: Budget | None = None) -> bool:
        """Whether `charge` would take this; charges nothing."""
        curve, guarantee = self._checked(event, guarantee)
        return self._filter.admits(self._total.plus(curve, guarantee))

    def require(
        self, event: Event, label: str, guarantee: Budget | None = None
    ) -> None:
        """Raise `BudgetExceeded` where `charge` would; charges nothing."""
        self.require_all(((event, label, guarantee),))

    def require_all(self, charges: Iterable[tuple[Event, str, Budget | None]]) -> None:
        """Raise `BudgetExceeded` where one of several charges would; charges none.

        Parameters
        ----------
        charges
            Events, labels and guarantees, as for `charge`, in the order in which they
            would be made.
        """
        total = self._total
        for event, label, guarantee in charges:
            curve, guarantee = self._checked(event, guarantee)
            more = total.plus(curve, guarantee)
            if not self._filter.admits(more):
                raise BudgetExceeded(
                    self._filter.rejection(full_label(label), guarantee, total)
                )
            total = more

    def spent_with(self, event: Event, guarantee: Budget | None = None) -> float:
        """Return what `spent` would return after this charge; charges nothing."""
        curve, guarantee = self._checked(event, guarantee)
        return self._filter.spent(self._total.plus(curve, guarantee))

    def _checked(
        self, event: Event, guarantee: Budget | None
    ) -> tuple[PrivacyCurve, Budget | None]:
        return self._filter.checked(event.curve(self.budget.neighbors), guarantee)

    def spent(self) -> float:
        """Return the least epsilon, at the budget's delta, that admits the charges.

        The guarantee for charges chosen after seeing outputs is the budget, which was
        fixed before; this is how much of it they would have needed.
        """
        return self._filter.spent(self._total)

    def report(self, assumptions: tuple[str, ...] = ()) -> PrivacyReport:
        """Return the privacy report of all charges so far."""
        return PrivacyReport(self.budget, self.spent(), self._entries, assumptions)

    def __repr__(self) -> str:
        return f"Ledger({self.budget!r}, charges={len(self._entries)})"

    def _reject(self, *_: Any) -> NoReturn:
        raise TypeError(
            "A Ledger cannot be copied or pickled: charges made on the copy would be "
            "lost. Pass the ledger itself, in the process that holds it, or use "
            "Ledger.open."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _reject


_PURPOSE: ContextVar[str] = ContextVar("tacit_purpose", default="")


@contextmanager
def labelled(purpose: str) -> Iterator[None]:
    """Put ``purpose`` before the label of every charge made inside.

    Estimators label their charges with their own name; this adds what the fit is for.

    Examples
    --------
    >>> from tacit.privacy import Budget, Ledger, PureDP, labelled
    >>> ledger = Ledger(Budget(epsilon=1.0))
    >>> with labelled("readmissions, spring"):
    ...     ledger.charge(PureDP(0.1), "LogisticRegression").label
    'readmissions, spring: LogisticRegression'
    """
    if not isinstance(purpose, str):
        raise TypeError(f"purpose must be a string, got {type(purpose).__name__}.")
    token = _PURPOSE.set(purpose)
    try:
        yield
    finally:
        _PURPOSE.reset(token)


def full_label(label: str) -> str:
    """Return the label of a charge with what it is for."""
    purpose = _PURPOSE.get()
    return f"{purpose}: {label}" if purpose else label
