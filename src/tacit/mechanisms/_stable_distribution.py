"""How likely a stable value is released, by the best rule there is.

One bit depends on the distance: released or not. The largest probabilities that keep
neighboring distances (epsilon, delta)-close are those of a recursion, which has a
closed form. It is evaluated in decimal numbers of many digits, so that probabilities
come out as whole numbers of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, frexp, log10

__all__ = ["BestRelease"]

# Beyond this epsilon no more is released: e^700 is about the largest double
MOST_EPSILON = 700.0
# Share of delta, as bits, that is kept back for rounding
KEPT_BITS = 40
# Decimal digits beyond those of the numbers that enter
GUARD_DIGITS = 40
# Distances from here on count as this one
MOST_DISTANCE = 2**60


@dataclass(frozen=True)
class BestRelease:
    """The release probabilities of the optimal rule, for one epsilon and delta.

    Notes
    -----
    **Guarantee.** With p(0) = delta and ``p(d + 1) = min(e^epsilon p(d) + delta, 1 -
    e^-epsilon (1 - p(d) - delta), 1)``, no rule that is (epsilon, delta)-private
    releases more often at any distance (Desfontaines, Voss, Gipson and Mandayam 2022,
    Theorem 1).
    """

    epsilon: float
    delta: float

    @property
    def n_words(self) -> int:
        """Words of 64 bits in a uniform draw: cells are that fine."""
        # [stable:cells] an error of two cells, times e^epsilon + 1, is within what is
        # kept back of delta
        bits = KEPT_BITS + 3 + ceil(1.4427 * self._epsilon + 1) - frexp(self.delta)[1]
        return -(-(bits + 2) // 64)

    @property
    def _epsilon(self) -> float:
        return min(self.epsilon, MOST_EPSILON)

    def cells(self, distance: int) -> int:
        """Return the probability at a distance, in cells of ``2**(-64 n_words)``."""
        whole = 1 << (64 * self.n_words)
        with localcontext(self._context()):
            return min(whole, int(self._probability(distance) * whole))

    def __call__(self, distance: int) -> float:
        """Return the probability of release at a distance."""
        return float(Fraction(self.cells(distance), 1 << (64 * self.n_words)))

    def _context(self) -> Context:
        # exponents are large enough for any power that is met
        digits = 20 * self.n_words + GUARD_DIGITS
        digits += 2 * ceil(max(0.0, -log10(self._epsilon)))
        return Context(prec=digits, Emax=10**15, Emin=-(10**15))

    def _probability(self, distance: int) -> Decimal:
        one, epsilon = Decimal(1), Decimal(self._epsilon)
        # [stable:recursion] what is kept back of delta pays for rounding
        delta = Decimal(self.delta) * (1 - Decimal(2) ** -KEPT_BITS)
        growth = epsilon.exp()

        def rising(d: int) -> Decimal:
            # p(d + 1) = growth p(d) + delta, from p(0) = delta
            return delta * (((d + 1) * epsilon).exp() - 1) / (growth - 1)

        # the second term is the least of the three once p passes this
        bend = (1 - delta) / (1 + growth)
        last = (bend * (growth - 1) / delta + 1).ln() / epsilon - 1
        last_rising = max(0, int(last.to_integral_value(rounding="ROUND_FLOOR")) + 1)
        if distance <= last_rising:
            return min(one, rising(distance))
        steps = distance - last_rising
        shrunk = (-steps * epsilon).exp()
        rejected = shrunk * (1 - rising(last_rising))
        rejected -= delta * (1 - shrunk) / (growth - 1)
        return min(one, one - rejected)
