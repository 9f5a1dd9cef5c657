"""What is public about ratings before a fit."""

from __future__ import annotations

from dataclasses import dataclass

from tacit._validate import at_least, plain

__all__ = ["RatingFacts"]


@dataclass(frozen=True)
class RatingFacts:
    """Everything public about a table of ratings.

    Parameters
    ----------
    n_items
        Number of items in the public catalogue.
    low, high
        Ends of the range of ratings, into which all are clipped.
    n_users
        Number of users to plan for: the true number when neighbors replace a user, a
        guess when they add or remove one. Only accuracy depends on it.
    max_ratings
        Most ratings of a user that are used for what is published.
    """

    n_items: int
    low: float
    high: float
    n_users: int
    max_ratings: int

    def __post_init__(self) -> None:
        plain(self)
        at_least(
            1, n_items=self.n_items, n_users=self.n_users, max_ratings=self.max_ratings
        )

    @property
    def middle(self) -> float:
        """Middle of the range, which stands for a rating nobody knows."""
        return self.low / 2 + self.high / 2

    @property
    def half_width(self) -> float:
        """Half the width of the range: no rating is further from the middle."""
        return self.high / 2 - self.low / 2

    @property
    def width(self) -> float:
        """Width of the range: no centered rating is larger."""
        return self.high - self.low
