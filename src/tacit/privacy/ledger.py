"""Ledgers: privacy accountants of data sets, and the filter that admits charges."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, log, log10
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tacit._validate import plain
from tacit.exceptions import BudgetExceeded
from tacit.privacy.budget import Budget, exactly, spent_up
from tacit.privacy.curve import ORDERS, GaussianProfile, PrivacyCurve, renyi_log_delta
from tacit.privacy.events import Event
from tacit.privacy.report import Entry, PrivacyReport

if TYPE_CHECKING:
    from tacit.privacy._store import StoredLedger

__all__ = ["NOTHING", "Filter", "Ledger", "Shares", "Total", "full_label", "labelled"]

# Orders the Renyi rule is fixed to, as multiples of the order that is best for a
# Gaussian at the budget, and the part of its delta each of them gets.
ORDER_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
ORDER_WEIGHTS = (0.1, 0.15, 0.5, 0.15, 0.1)


_exactly = lru_cache(maxsize=1024)(exactly)  # long series repeat few guarantees


@dataclass(frozen=True)
class Shares:
    """Division of the delta of a ledger between the rules that may admit a charge.

    Fixed before the first charge, because that is what makes the union of the rules
    valid for charges chosen after seeing outputs. ``Shares(basic=1, gaussian=0,
    renyi=0, slack=0)`` is basic composition.
    """

    basic: float = 0.4
    gaussian: float = 0.25
    renyi: float = 0.25
    slack: float = 0.1

    def __post_init__(self) -> None:
        plain(self)
        parts = (self.basic, self.gaussian, self.renyi, self.slack)
        # compared this way around, NaN is rejected too
        if not all(0 <= part <= 1 for part in parts) or sum(map(exactly, parts)) > 1:
            raise ValueError(
                f"shares must be >= 0 and add up to at most 1, got {self}."
            )


@dataclass(frozen=True)
class Total:
    """Everything charged so far."""

    curve: PrivacyCurve
    basic_epsilon: Fraction | None = Fraction(0)  # None: some charge had no guarantee
    basic_delta: Fraction = Fraction(0)
    count: int = 0

    def plus(self, curve: PrivacyCurve, guarantee: Budget | None) -> Total:
        """Return the total with one charge more."""
        known = self.basic_epsilon is not None and guarantee is not None
        return Total(
            self.curve + curve if self.count else curve,
            self.basic_epsilon + _exactly(guarantee.epsilon) if known else None,  # type: ignore[operator, union-attr]
            self.basic_delta + _exactly(guarantee.delta) if known else Fraction(0),  # type: ignore[union-attr]
            self.count + 1,
        )


NOTHING = Total(PrivacyCurve(np.zeros_like(ORDERS), pure=0.0))


@dataclass(frozen=True)
class Filter:
    """Privacy filter: the budget of a ledger and the rules that admit charges.

    Notes
    -----
    **Guarantee.** Whatever was admitted is (epsilon, delta)-private together, also
    when each charge was chosen after seeing all earlier outputs; see the ledger page
    of the guarantees.
    """

    budget: Budget
    shares: Shares = field(default_factory=Shares)

    def checked(
        self, curve: PrivacyCurve, guarantee: Budget | None
    ) -> tuple[PrivacyCurve, Budget | None]:
        """Return the curve, and the guarantee after checking that it is true."""
        if guarantee is None:
            if curve.pure == inf:
                return curve, None
            return curve, Budget(curve.pure, curve.slack, self.budget.neighbors)
        if guarantee.neighbors is not self.budget.neighbors:
            raise ValueError(
                f"guarantee is for neighbors={guarantee.neighbors.value!r}, but this "
                f"ledger is for {self.budget.neighbors.value!r}; plan for the latter."
            )
        if not curve.fits(guarantee):
            raise ValueError(
                "guarantee is smaller than what the event spends; plan it again."
            )
        return curve, guarantee

    def alone(self, curve: PrivacyCurve, guarantee: Budget | None) -> float:
        """Return the epsilon that one charge guarantees by itself."""
        if guarantee is not None:
            return guarantee.epsilon
        return curve.epsilon(self.budget.delta)

    def admits(self, total: Total, epsilon: float | None = None) -> bool:
        """Whether a rule fixed in advance admits what would then be charged."""
        delta, shares, curve = self.budget.delta, self.shares, total.curve
        if epsilon is None:
            epsilon = self.budget.epsilon
        # [ledger:first] one charge is fixed before any output: its own curve decides
        if total.count == 1 and curve.fits(
            Budget(epsilon, delta, self.budget.neighbors)
        ):
            return True
        # [ledger:basic] guarantees add up
        if (
            total.basic_epsilon is not None
            and total.basic_epsilon <= exactly(epsilon)
            and total.basic_delta <= exactly(shares.basic) * exactly(delta)
        ):
            return True
        if curve.slack > shares.slack * delta or delta == 0:
            return False
        # [ledger:gaussian] squared Gaussian parameters add up
        if isinstance(curve.exact, GaussianProfile) and (
            curve.exact.delta(epsilon) <= shares.gaussian * delta
        ):
            return True
        # [ledger:renyi] so do Renyi divergences, at orders fixed in advance
        if shares.renyi == 0:
            return False
        best = 1 + 2 * log(1 / delta) / epsilon
        for factor, weight in zip(ORDER_FACTORS, ORDER_WEIGHTS, strict=True):
            at = int(np.argmin(np.abs(np.log(ORDERS / (best * factor)))))
            spent = float(
                renyi_log_delta(curve.renyi[at : at + 1], epsilon, ORDERS[at : at + 1])[
                    0
                ]
            )
            if spent <= log(weight * shares.renyi * delta):
                return True
        return False

    def spent(self, total: Total) -> float:
        """Return the least epsilon, at the budget's delta, that admits the total."""
        if total.count == 0:
            return 0.0
        low, high = 0.0, self.budget.epsilon
        # below a billionth of the budget it counts as nothing
        while high - low > 1e-6 * high and high > 1e-9 * self.budget.epsilon:
            middle = (low + high) / 2
            low, high = (low, middle) if self.admits(total, middle) else (middle, high)
        return high

    def _enough_delta(self, guarantee: Budget, total: Total) -> float | None:
        """Return a delta at which guarantees add up, or None where epsilons do not."""
        share, spent = exactly(self.shares.basic), total.basic_epsilon
        if spent is None or share == 0:
            return None
        if spent + exactly(guarantee.epsilon) > exactly(self.budget.epsilon):
            return None
        least = (total.basic_delta + exactly(guarantee.delta)) / share
        if not 0 < least < 1:
            return None
        # as it is printed, in two digits that are not below it
        step = 10.0 ** (floor(log10(least)) - 1)
        return ceil(least / exactly(step)) * step

    def rejection(
        self,
        label: str,
        guarantee: Budget | None,
        total: Total,
        limit: str = "the budget",
        also: str = "",
    ) -> str:
        """Return the message for a charge that does not fit on top of ``total``."""
        budget = self.budget
        planned = ""
        if guarantee is not None:
            planned = f" (epsilon={guarantee.epsilon:g} at delta={guarantee.delta:.3g})"
            if guarantee.delta > budget.delta:
                planned += ", whose delta is already above the ledger's,"
        spent = self.spent(total)
        cure = ""
        if guarantee is not None and spent + guarantee.epsilon <= budget.epsilon:
            cure = "; the deltas do not fit: give smaller ones to the fits"
            enough = self._enough_delta(guarantee, total)
            if enough is not None:
                cure += f", or a delta of {enough:.2g} to the ledger"
        return (
            f"Charging {label!r}{planned} would exceed {limit} of "
            f"epsilon={budget.epsilon:g} at delta={budget.delta:g}, of which "
            f"{spent_up(spent)} is spent{also}{cure}; nothing was charged or released."
        )


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
        return PrivacyReport(
            self.budget, self.spent(), self._entries, assumptions, heading="budget"
        )

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
    >>> from tacit.privacy import Budget, Ledger, PureDP
    >>> from tacit.privacy.ledger import labelled
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
