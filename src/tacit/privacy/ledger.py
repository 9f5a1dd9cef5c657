"""The account of one data set."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from tacit.exceptions import BudgetExceeded
from tacit.privacy.budget import Budget, exactly
from tacit.privacy.curve import ORDERS, PrivacyCurve, renyi_log_delta
from tacit.privacy.events import Event
from tacit.privacy.profiles import GaussianProfile
from tacit.privacy.report import Entry, PrivacyReport

__all__ = ["Ledger", "Shares"]

# Orders the Renyi rule commits to, as multiples of the order that is best for a
# Gaussian at the budget, and the part of its delta each of them gets.
ORDER_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
ORDER_WEIGHTS = (0.1, 0.15, 0.5, 0.15, 0.1)


@dataclass(frozen=True)
class Shares:
    """How a ledger divides its delta between the rules that may admit a charge.

    Fixed before the first charge, because that is what makes the union of the rules
    valid for charges chosen after seeing outputs. ``Shares(basic=1, gaussian=0,
    renyi=0, slack=0)`` is basic composition.
    """

    basic: float = 0.4
    gaussian: float = 0.25
    renyi: float = 0.25
    slack: float = 0.1

    def __post_init__(self) -> None:
        parts = (self.basic, self.gaussian, self.renyi, self.slack)
        if min(parts) < 0 or sum(map(exactly, parts)) > 1:
            raise ValueError(
                f"shares must be >= 0 and add up to at most 1, got {self}."
            )


@dataclass(frozen=True)
class _Total:
    """Everything charged so far."""

    curve: PrivacyCurve
    basic_epsilon: Fraction | None = Fraction(0)  # None: some charge promised nothing
    basic_delta: Fraction = Fraction(0)
    count: int = 0

    def plus(self, curve: PrivacyCurve, promise: Budget | None) -> _Total:
        known = self.basic_epsilon is not None and promise is not None
        return _Total(
            self.curve + curve if self.count else curve,
            self.basic_epsilon + exactly(promise.epsilon) if known else None,  # type: ignore[operator, union-attr]
            self.basic_delta + exactly(promise.delta) if known else Fraction(0),  # type: ignore[union-attr]
            self.count + 1,
        )


class Ledger:
    """The account of one data set: charges come before results, and may be refused.

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

    A ledger can be neither copied nor pickled: charges on a copy would be lost.

    Examples
    --------
    >>> from tacit.privacy import Budget, GaussianNoise, Ledger
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> entry = ledger.charge(GaussianNoise(multiplier=10.0), "mean age")
    >>> ledger.charge(GaussianNoise(multiplier=1.0), "mean income")
    Traceback (most recent call last):
        ...
    tacit.exceptions.BudgetExceeded: Charging 'mean income' would pass the budget of \
epsilon=1 at delta=1e-06, of which 0.3969 is spent; nothing was charged or released.
    """

    def __init__(self, budget: Budget, *, shares: Shares | None = None) -> None:
        if not isinstance(budget, Budget):
            raise TypeError(f"budget must be a Budget, got {type(budget).__name__}.")
        self._budget = budget
        self._shares = Shares() if shares is None else shares
        self._total = _Total(PrivacyCurve(np.zeros_like(ORDERS), pure=0.0))
        self._entries: tuple[Entry, ...] = ()
        self._lock = Lock()
        self._process = os.getpid()

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._budget

    def charge(
        self,
        event: Event,
        label: str,
        promise: Budget | None = None,
        *,
        seeded: bool = False,
    ) -> Entry:
        """Record ``event``, or refuse and record nothing.

        Parameters
        ----------
        event
            What is about to be done to the data.
        label
            Name under which the report lists it.
        promise
            Budget the event was planned for, if any: lets epsilons simply add up.
        seeded
            Whether the randomness comes from a fixed seed, for the report.

        Raises
        ------
        BudgetExceeded
            When the budget would be passed.
        """
        curve, promise = self._checked(event, promise)
        if os.getpid() != self._process:
            self._refuse()  # a forked copy, whose charges the original would not see
        with self._lock:
            total = self._total.plus(curve, promise)
            if not self._admits(total, self._budget.epsilon):
                raise BudgetExceeded(self._why_not(label, promise))
            alone = promise or curve
            epsilon = (
                alone.epsilon
                if isinstance(alone, Budget)
                else alone.epsilon(self._budget.delta)
            )
            entry = Entry(label, event, epsilon, seeded)
            self._total = total
            self._entries = (*self._entries, entry)
        return entry

    def admits(self, event: Event, promise: Budget | None = None) -> bool:
        """Whether `charge` would take this; charges nothing."""
        curve, promise = self._checked(event, promise)
        return self._admits(self._total.plus(curve, promise), self._budget.epsilon)

    def _checked(
        self, event: Event, promise: Budget | None
    ) -> tuple[PrivacyCurve, Budget | None]:
        """Return the curve, and the promise after checking that it is true."""
        curve = event.curve(self._budget.neighbors)
        if promise is None:
            if curve.pure == inf:
                return curve, None
            return curve, Budget(curve.pure, curve.slack, self._budget.neighbors)
        if promise.neighbors is not self._budget.neighbors:
            raise ValueError(
                f"promise is for neighbors={promise.neighbors.value!r}, but this "
                f"ledger is for {self._budget.neighbors.value!r}; plan for the latter."
            )
        if not curve.fits(promise):
            raise ValueError(
                "promise is smaller than what the event spends; plan it again."
            )
        return curve, promise

    def _why_not(self, label: str, promise: Budget | None) -> str:
        budget = self._budget
        asked = ""
        if promise is not None:
            asked = f" (epsilon={promise.epsilon:g} at delta={promise.delta:.3g})"
            if promise.delta > budget.delta:
                asked += ", whose delta alone is above the ledger's,"
        spent = self.spent()
        cure = ""
        if promise is not None and spent + promise.epsilon <= budget.epsilon:
            cure = "; the deltas are what does not fit: give smaller ones to the fits"
        return (
            f"Charging {label!r}{asked} would pass the budget of "
            f"epsilon={budget.epsilon:g} at delta={budget.delta:g}, of which "
            f"{spent:.4g} is spent{cure}; nothing was charged or released."
        )

    def _admits(self, total: _Total, epsilon: float) -> bool:
        """Whether a rule fixed in advance admits what would then be charged."""
        delta, shares, curve = self._budget.delta, self._shares, total.curve
        # [ledger:first] one charge is fixed before any output: its own curve decides
        if total.count == 1 and curve.fits(
            Budget(epsilon, delta, self._budget.neighbors)
        ):
            return True
        # [ledger:basic] promises add up
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

    def spent(self) -> float:
        """Return the least epsilon, at the budget's delta, that admits the charges.

        The promise for charges chosen after seeing outputs is the budget, which was
        fixed before; this says how much of it they would have needed.
        """
        total = self._total
        if total.count == 0:
            return 0.0
        low, high = 0.0, self._budget.epsilon
        # below a billionth of the budget it counts as nothing
        while high - low > 1e-6 * high and high > 1e-9 * self._budget.epsilon:
            middle = (low + high) / 2
            low, high = (low, middle) if self._admits(total, middle) else (middle, high)
        return high

    def report(self, assumptions: tuple[str, ...] = ()) -> PrivacyReport:
        """Return promise, spend and entries so far."""
        return PrivacyReport(self._budget, self.spent(), self._entries, assumptions)

    def __repr__(self) -> str:
        return f"Ledger({self._budget!r}, charges={len(self._entries)})"

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(
            "A Ledger cannot be copied or pickled: charges made on the copy would be "
            "lost. Pass the ledger itself, in the process that holds it."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse
