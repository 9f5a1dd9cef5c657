"""The admission rule of a ledger: a privacy filter."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, log, log10

import numpy as np

from tacit._validate import plain
from tacit.privacy.budget import Budget, exactly
from tacit.privacy.curve import ORDERS, PrivacyCurve, renyi_log_delta
from tacit.privacy.profiles import GaussianProfile

__all__ = ["NOTHING", "Filter", "Shares", "Total"]

# Orders the Renyi rule is fixed to, as multiples of the order that is best for a
# Gaussian at the budget, and the part of its delta each of them gets.
ORDER_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
ORDER_WEIGHTS = (0.1, 0.15, 0.5, 0.15, 0.1)


_exactly = lru_cache(maxsize=1024)(exactly)  # long series repeat few guarantees


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
            f"{spent:.4g} is spent{also}{cure}; nothing was charged or released."
        )
