"""Bounds on attackers: hypothesis tests between two neighboring data sets.

Numbers only; nothing here draws, so that reports can use it without matplotlib.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._validate import fraction, plain_number
from tacit.exceptions import PlanError
from tacit.privacy.budget import Budget, Neighbors
from tacit.privacy.curve import PrivacyCurve
from tacit.privacy.events import whole_budget
from tacit.privacy.report import PrivacyReport

__all__ = ["TradeOff", "curve_grid", "curve_of", "guarantee_of", "rate_grid"]

Floats = NDArray[np.float64]

# Grid on which a curve is evaluated: so many epsilons, down to this delta
N_EPSILONS = 160
SMALLEST_DELTA = 1e-12

# e to this power is still a float; beyond it every bound is trivial anyway
LARGEST_EXPONENT = 700.0


def curve_of(
    subject: Any, neighbors: Neighbors | str = Neighbors.REPLACE_ONE
) -> PrivacyCurve:
    """Return the curve of a report, ledger, budget, event, or of a curve itself.

    A report has its own relation between data sets; an event has none, and uses
    ``neighbors``. A budget or a ledger guarantees one point, and what follows from it.
    """
    if isinstance(subject, PrivacyCurve):
        return subject
    if isinstance(subject, Budget):
        return whole_budget(subject).curve(subject.neighbors)
    if isinstance(subject, PrivacyReport):
        if not subject.entries:
            return curve_of(subject.guarantee)
        first, *others = (
            entry.event.curve(subject.guarantee.neighbors) for entry in subject.entries
        )
        return sum(others, first)
    if isinstance(getattr(subject, "budget", None), Budget):
        return curve_of(subject.budget)
    if not callable(getattr(subject, "curve", None)):
        raise TypeError(
            "the first argument must be a PrivacyReport, an event, a PrivacyCurve, a "
            f"Budget or a Ledger, got {type(subject).__name__}."
        )
    curve = subject.curve(Neighbors.of(neighbors))
    if not isinstance(curve, PrivacyCurve):
        raise PlanError(f"{type(subject).__name__} gives no PrivacyCurve.")
    return curve


def guarantee_of(subject: Any) -> Budget | None:
    """Return what a report, budget or ledger guarantees; None for events and curves."""
    for candidate in (
        subject,
        getattr(subject, "guarantee", None),
        getattr(subject, "budget", None),
    ):
        if isinstance(candidate, Budget):
            return candidate
    return None


def curve_grid(
    subject: Any,
    neighbors: Neighbors | str = Neighbors.REPLACE_ONE,
    n: int = N_EPSILONS,
) -> tuple[Floats, Floats]:
    """Return epsilons and deltas of a curve, to well below the delta guaranteed.

    Points of a delta near zero are left out: a logarithmic axis cannot show them.
    """
    guarantee = guarantee_of(subject)
    smallest = SMALLEST_DELTA
    if guarantee is not None and guarantee.delta > 0:
        smallest = guarantee.delta / 100
    epsilons, deltas = _points(subject, neighbors, smallest, n)
    shown = deltas >= min(smallest, SMALLEST_DELTA)
    return epsilons[shown], deltas[shown]


def _points(
    subject: Any, neighbors: Neighbors | str, smallest: float, n: int
) -> tuple[Floats, Floats]:
    """Return epsilons and the least deltas that hold, by curve or guarantee."""
    curve, stated = curve_of(subject, neighbors), _stated(subject)
    epsilons = _epsilon_grid(curve, smallest, n)
    epsilons = np.union1d(epsilons, [budget.epsilon for budget in stated])
    # a curve may be a looser bound than the guarantees that it is printed with
    curves = [curve, *map(curve_of, stated)]
    deltas = [min(each.delta(float(e)) for each in curves) for e in epsilons]
    return epsilons, np.array(deltas)


def _stated(subject: Any) -> list[Budget]:
    """Return the guarantees that a report states for all its charges together."""
    if not isinstance(subject, PrivacyReport):
        return []
    guarantee, found = subject.guarantee, [subject.guarantee]
    if 0 < subject.spent < guarantee.epsilon:
        found.append(replace(guarantee, epsilon=subject.spent))
    return found


def rate_grid() -> Floats:
    """Return false-positive rates, dense at the small ones that matter."""
    return np.unique(
        np.concatenate([[0.0], np.logspace(-4, -1.3, 25), np.linspace(0.05, 1, 58)])
    )


def _epsilon_grid(curve: PrivacyCurve, smallest: float, n: int) -> Floats:
    """Return epsilons from zero to where delta falls to ``smallest``."""
    # what is slack never goes away, however large epsilon
    least = curve.slack + max(smallest, 1e-6 * curve.slack)
    last = curve.epsilon(least) if least < 1 else 0.0
    last = max(last, 1e-9) if isfinite(last) else 50.0
    # denser near zero, where the middle of the trade-off is decided
    return np.asarray(last * np.linspace(0.0, 1.0, n) ** 1.5)


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Trade-off between the errors of the best attacker of a mechanism.

    The attacker knows every row but one, sees everything released, and guesses which of
    two neighboring data sets was used.

    Parameters
    ----------
    epsilons, deltas
        Points of the privacy curve. Every finite set of them gives valid bounds, and
        more points give sharper ones.

    Notes
    -----
    **Bound.** At false-positive rate ``a`` the rate of misses is at least
    ``max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a))`` for every point of
    the curve [1]_ (Theorem 2.4), [2]_ (Theorem 2.1), and no better bound follows from
    the whole curve [3]_ (Proposition 2.12).

    References
    ----------
    .. [1] Wasserman, Zhou. A statistical framework for differential privacy. JASA 105
       (2010).
    .. [2] Kairouz, Oh, Viswanath. The composition theorem for differential privacy.
       IEEE Transactions on Information Theory 63 (2017).
    .. [3] Dong, Roth, Su. Gaussian differential privacy. JRSS B 84 (2022).

    Examples
    --------
    >>> from tacit.privacy import TradeOff
    >>> from tacit.privacy import GaussianNoise
    >>> bound = TradeOff.of(GaussianNoise(multiplier=2.0))
    >>> print(f"{float(bound.power(0.01)):.4f} {bound.accuracy():.4f}")
    0.0339 0.5987
    """

    epsilons: Floats
    deltas: Floats

    @classmethod
    def of(
        cls, subject: Any, neighbors: Neighbors | str = Neighbors.REPLACE_ONE
    ) -> TradeOff:
        """Return the trade-off of whatever `privacy_curve` draws."""
        return cls(*_points(subject, neighbors, SMALLEST_DELTA, N_EPSILONS))

    def power(self, false_positives: ArrayLike) -> Floats:
        """Return the largest true-positive rate at these false-positive rates."""
        a = np.asarray(false_positives, dtype=np.float64)
        if not np.all((a >= 0) & (a <= 1)):
            raise ValueError("false_positives must lie between 0 and 1.")
        e, d = self.epsilons, self.deltas
        up = np.exp(np.minimum(e, LARGEST_EXPONENT))
        first = 1 - d - up * a[..., None]
        second = (1 - d - a[..., None]) * np.exp(-e)
        misses = np.maximum(np.maximum(first, second).max(axis=-1), 0.0)
        return np.asarray(1 - misses)

    def accuracy(self) -> float:
        """Return the attacker's largest accuracy when both cases are equally likely.

        Notes
        -----
        **Bound.** Where the two errors are equal they are at least
        ``(1 - delta) / (1 + e^epsilon)``, and a symmetric trade-off is lowest there.
        """
        grown = np.exp(np.minimum(self.epsilons, LARGEST_EXPONENT))
        return float(1 - np.max((1 - self.deltas) / (1 + grown)))

    def precision(self, false_positives: ArrayLike, prior: float = 0.5) -> Floats:
        """Return the attacker's largest precision: true among all positive answers.

        This is the posterior probability after a positive test, by Bayes' rule from a
        ``prior`` probability.
        """
        prior = plain_number(prior, "prior")
        fraction(prior=prior, closed=False)
        a = np.asarray(false_positives, dtype=np.float64)
        hits, alarms = prior * self.power(a), (1 - prior) * a
        return np.asarray(hits / np.maximum(hits + alarms, np.finfo(float).tiny))

    def chance_above(self, posterior: float, prior: float = 0.5) -> float:
        """Return the largest probability that the posterior exceeds this one.

        Notes
        -----
        **Bound.** The releases with loss above ``t = logit(posterior) - logit(prior)``
        have probability ``p`` with the row and less than ``e^-t p`` without it, so
        ``p (1 - e^(epsilon - t)) <= delta(epsilon)`` for every ``epsilon < t``.
        """
        posterior = plain_number(posterior, "posterior")
        prior = plain_number(prior, "prior")
        fraction(posterior=posterior, prior=prior, closed=False)
        t = np.log(posterior / (1 - posterior)) - np.log(prior / (1 - prior))
        below = self.epsilons < t
        if not below.any():
            return 1.0
        e, d = self.epsilons[below], self.deltas[below]
        return float(min(1.0, np.min(d / -np.expm1(e - t))))

    def posterior(self, chance: float, prior: float = 0.5) -> float:
        """Return the largest posterior, except with probability ``chance``."""
        chance, prior = plain_number(chance, "chance"), plain_number(prior, "prior")
        fraction(chance=chance, prior=prior, closed=False)
        low, high = np.log(prior / (1 - prior)), inf
        step = 1.0
        while not isfinite(high):
            sure = 1 / (1 + np.exp(-(low + step)))
            if sure >= 1.0:
                return 1.0
            if self.chance_above(sure, prior) <= chance:
                high = low + step
            step *= 2
        for _ in range(60):
            middle = (low + high) / 2
            fits = self.chance_above(1 / (1 + np.exp(-middle)), prior) <= chance
            low, high = (low, middle) if fits else (middle, high)
        return float(1 / (1 + np.exp(-high)))
