"""Privacy budgets: epsilon, delta and the neighboring relation."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import fsum, nextafter
from typing import Any

from tacit._validate import fraction, plain, plain_number, positive, shown

__all__ = ["Budget", "Neighbors", "exactly"]


def exactly(value: float) -> Fraction:
    """Return a number as the decimal it prints as, so that three times 0.1 is 0.3."""
    return Fraction(repr(float(value)))


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
