"""Private completion by the leading directions of noisy second moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tacit._validate import (
    LARGEST,
    at_least,
    at_most,
    moderate,
    nonnegative,
    one_of,
    plain,
)
from tacit.mechanisms.grid import check_noise, noise_assumptions
from tacit.privacy import Budget, Event, GaussianNoise, calibrate
from tacit.recommend._facts import RatingFacts
from tacit.recommend._ratings.used import UsedRatings, public_key
from tacit.recommend._sides.base import check_size
from tacit.recommend._sides.linear import LOCAL_STEPS, LinearItems
from tacit.recommend._sides.unit_rows import unit_rows, usual_row_norm
from tacit.recommend._spectrum import directions
from tacit.recommend._sums.noisy_moments import NoisyMoments
from tacit.solvers._base import require_delta

if TYPE_CHECKING:
    from tacit.recommend._ratings.table import Ratings

__all__ = ["SVDCompletion", "SVDCompletionPlan"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SVDCompletionPlan:
    """Noise on the second moments, fixed without data."""

    facts: RatingFacts
    row_norm: float
    moments: NoisyMoments

    @property
    def event(self) -> Event:
        """What the release costs."""
        return self.moments.event

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on besides the bounds."""
        return noise_assumptions(self.moments.noise)


@dataclass(frozen=True)
class SVDCompletion:
    """Complete ratings along the leading directions of all users' rows.

    Each user takes her mean off her ratings and clips the row to ``row_norm``. One
    noisy sum of outer products of such rows is released; item vectors are its leading
    eigenvectors. At home each user fits her ratings to them.

    Parameters
    ----------
    rank
        Most directions. Those that are not stronger than the known noise are left out.
    row_norm
        Norm that rows are clipped to. None is half the half-width of the range for
        each of the most ratings of a user.
    local
        ``"ridge"``, least squares at home on a constant and the vectors of the items
        that the user rated; ``"projection"`` for the published step, products with the
        vectors times the number of all items over that of the user's.
    ridge
        Ridge at home, in ratings a direction. None is the sum of all strengths over
        that of the direction, as if directions explained half of what ratings differ
        by.
    noise
        ``"grid"`` or ``"float"``.

    Notes
    -----
    **Guarantee.** The item side is one Gaussian mechanism, exactly calibrated, for all
    ratings of a user; users' rows together are jointly private (Kearns, Pai, Roth and
    Ullman 2014). After [1]_, Algorithm 15, with noise for the sensitivity that rows
    have under each relation, a symmetric noise matrix, and the projection scaled by a
    user's own number of ratings.

    References
    ----------
    .. [1] O. Thakkar, PhD thesis, Boston University 2019, chapter 6; P. Jain, O.
       Thakkar and A. Thakurta, "Differentially private matrix completion revisited",
       ICML 2018.
    """

    rank: int = 10
    row_norm: float | None = None
    local: str = "ridge"
    ridge: float | None = None
    noise: str = "grid"

    def __post_init__(self) -> None:
        plain(self)
        at_least(1, rank=self.rank)
        if self.row_norm is not None:
            moderate(row_norm=self.row_norm)
        one_of(LOCAL_STEPS, local=self.local)
        if self.ridge is not None:
            nonnegative(ridge=self.ridge)
            at_most(LARGEST, ridge=self.ridge)  # or it could not be saved
        check_noise(self.noise)

    def plan(self, facts: RatingFacts, budget: Budget) -> SVDCompletionPlan:
        """Find the least noise that fits; reads no rating."""
        require_delta(budget, "SVDCompletion", "a delta of 1 / users^2, which is usual")
        check_size(facts.n_items, min(self.rank, facts.n_items) + 2, "a lower rank")
        return SVDCompletionPlan(
            facts,
            usual_row_norm(facts) if self.row_norm is None else self.row_norm,
            NoisyMoments(
                facts.n_items,
                calibrate(GaussianNoise, budget),
                budget.neighbors,
                self.noise,
            ),
        )

    def run(
        self, plan: SVDCompletionPlan, ratings: Ratings, rng: Generator
    ) -> LinearItems:
        """Release the second moments, and return their leading directions."""
        facts = plan.facts
        used = UsedRatings(ratings, facts.max_ratings, public_key(rng))
        rows = used.each(lambda of: unit_rows(of, facts.middle, plan.row_norm)[0])
        noisy = plan.moments.run(rows, rng)
        # from here on nothing but what was released
        strong, vectors = directions(noisy, self.rank, plan.moments.scale)
        return LinearItems(
            vectors,
            np.zeros(facts.n_items),
            facts.low,
            facts.high,
            self._penalties(strong, facts.n_items),
            facts.middle,
            step=self.local,
        )

    def _penalties(self, strong: Array, n_items: int) -> Array:
        """Return the ridge of directions whose vectors are of length one."""
        ridge = strong.sum() / strong if self.ridge is None else self.ridge
        return np.broadcast_to(ridge / n_items, strong.shape).copy()
