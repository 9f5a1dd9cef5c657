"""Budgets: epsilon, delta and the neighboring relation, and warnings of weak ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from fractions import Fraction
from math import ceil, exp, floor, fsum, log, nextafter
from typing import Any

from tacit._validate import fraction, plain, plain_number, positive, shown

__all__ = [
    "LARGEST_DELTA",
    "LARGEST_EPSILON",
    "Budget",
    "Neighbors",
    "budget_warnings",
    "exactly",
    "spent_up",
]

# What is spent is computed to about this relative error, and never too small
SPENT_ERROR = 1e-6


def exactly(value: float) -> Fraction:
    """Return a number as the decimal it prints as, so that three times 0.1 is 0.3."""
    return Fraction(repr(float(value)))


def spent_up(epsilon: float) -> str:
    """Return what is spent with four digits, rounded up but for `SPENT_ERROR`.

    Examples
    --------
    >>> spent_up(0.895832), spent_up(1.1000004)
    ('0.8959', '1.1')
    """
    up = Context(prec=4, rounding=ROUND_CEILING)
    return f"{float(up.create_decimal(repr(float(epsilon) * (1 - SPENT_ERROR)))):.4g}"


class Neighbors(Enum):
    """Neighboring relation: the pairs of data sets that must be hard to distinguish.

    ``REPLACE_ONE`` keeps the number of rows and changes one of them, so the number
    of rows is public. ``ADD_OR_REMOVE_ONE`` has one row more or less, so it is not.
    """

    REPLACE_ONE = "replace_one"
    ADD_OR_REMOVE_ONE = "add_or_remove_one"

    @property
    def rows_changed(self) -> int:
        """Rows in which neighbors differ: a replacement is one out and one in."""
        return 2 if self is Neighbors.REPLACE_ONE else 1

    def __reduce__(self) -> tuple[type["Neighbors"], tuple[str]]:
        # skops calls this instead of __reduce_ex__, which enums have
        return Neighbors, (self.value,)

    @classmethod
    def of(cls, value: "Neighbors | str") -> "Neighbors":
        """Return the relation itself, or the one with this name."""
        try:
            return cls(value)
        except ValueError:
            names = " or ".join(repr(member.value) for member in cls)
            raise ValueError(
                f"neighbors must be {names}, got {shown(value)}."
            ) from None


@dataclass(frozen=True)
class Budget:
    """Budget of (epsilon, delta)-differential privacy.

    As the guarantee of a release, it bounds what the output reveals about any one row
    (or user): see the page on definitions.

    Parameters
    ----------
    epsilon
        Bound on the privacy loss, above zero. Smaller is more private.
    delta
        Probability with which the bound may fail, in [0, 1); well below one over the
        number of rows.
    neighbors
        Relation between data sets under which the guarantee holds.
    """

    epsilon: float
    delta: float = 0.0
    neighbors: Neighbors = Neighbors.REPLACE_ONE

    def __post_init__(self) -> None:
        plain(self)
        positive(epsilon=self.epsilon)
        fraction(delta=self.delta)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        object.__setattr__(self, "neighbors", Neighbors.of(self.neighbors))

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as a dictionary, for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbors": self.neighbors.value,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Budget":
        """Return the budget that `to_dict` wrote; KeyError or ValueError if invalid."""
        return cls(data["epsilon"], data["delta"], Neighbors(data["neighbors"]))

    def split(self, *shares: float) -> tuple["Budget", ...]:
        """Return budgets in proportion to ``shares``, which never add up to more.

        Notes
        -----
        **Guarantee.** Spending the parts one after another spends at most the whole,
        by basic composition (Dwork and Roth 2014, Theorem 3.16), as printed numbers
        too: each part is rounded down.
        """
        if not shares:
            raise ValueError("shares must name at least one part, got none.")
        shares = plain_number(shares, "shares")
        for share in shares:
            positive(shares=share)
        total = fsum(shares)

        def parts(whole: float) -> list[float]:
            cut = [whole * (share / total) for share in shares]
            # as binary numbers and as the decimals they print as
            while fsum(cut) > whole or sum(map(exactly, cut)) > exactly(whole):
                cut = [nextafter(part, 0.0) for part in cut]
            return cut

        return tuple(
            Budget(epsilon, delta, self.neighbors)
            for epsilon, delta in zip(
                parts(self.epsilon), parts(self.delta), strict=True
            )
        )


# Above this epsilon the formal guarantee is weak: the upper end of what Ponomareva et
# al. (2023, How to DP-fy ML) call a reasonable guarantee
LARGEST_EPSILON = 10.0
# From this delta on the guarantee is empty for tables of any size worth protecting:
# with a thousand rows, publishing one of them whole would meet it
LARGEST_DELTA = 1e-3


def budget_warnings(budget: Budget, n_rows: int | None = None) -> tuple[str, ...]:
    """Return one sentence for each way in which a guarantee is weak.

    Parameters
    ----------
    budget
        The guarantee.
    n_rows
        Number of rows or users, where it is public or was planned for; None if not.

    Notes
    -----
    A mechanism that publishes each row with probability delta, and nothing else, has
    the guarantee (0, delta). With delta above one over the number of rows it publishes
    more than one row on average (Dwork and Roth 2014, Section 2.3).

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> from tacit.privacy.budget import budget_warnings
    >>> budget_warnings(Budget(epsilon=1.0, delta=1e-6), n_rows=10_000)
    ()
    >>> (warning,) = budget_warnings(Budget(epsilon=50.0, delta=1e-6))
    >>> warning.partition(":")[0]
    'epsilon 50 is a weak guarantee'
    """
    found = []
    if budget.epsilon > LARGEST_EPSILON:
        found.append(
            f"epsilon {budget.epsilon:g} is a weak guarantee: an attacker's odds may "
            f"grow by a factor of up to {_odds_factor(budget.epsilon)}; choose an "
            f"epsilon of at most {LARGEST_EPSILON:g}, near 1 if possible."
        )
    published = 0.0 if n_rows is None else budget.delta * n_rows
    if n_rows is not None and published > 1:
        figure = f"{published:,.0f}" if published >= 10 else f"{published:.2g}"
        found.append(
            f"delta {budget.delta:.3g} is too large: it is above one over the number "
            f"of rows, {n_rows:,}, so that publishing {figure} whole rows on average "
            f"would meet this guarantee; choose a delta well below {_one_over(n_rows)}."
        )
    elif budget.delta >= LARGEST_DELTA:
        found.append(
            f"delta {budget.delta:.3g} is too large: with that probability the "
            "guarantee may fail completely and whole rows be published; choose a delta "
            "well below one over the number of rows."
        )
    return tuple(found)


def _odds_factor(epsilon: float) -> str:
    """Return e to the power epsilon, rounded up, for any size of epsilon."""
    if epsilon < log(1e6):
        return f"{ceil(exp(epsilon)):,}"
    power = epsilon / log(10)  # no float can hold the factor itself
    return f"{_rounded(10 ** (power % 1), 2, ROUND_CEILING)}e+{floor(power)}"


def _one_over(n: int) -> str:
    """Return one over n with one digit, rounded down: a limit to stay below."""
    return f"{float(_rounded(1 / n, 1, ROUND_FLOOR)):g}"


def _rounded(value: float, digits: int, rounding: str) -> Decimal:
    # one over n is rarely a float: without slack, 1 / 100 might round down to 0.009
    exact = Decimal(f"{value:.12e}")
    return Context(prec=digits, rounding=rounding).plus(exact)
