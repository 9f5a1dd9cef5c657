"""The noise of every release of peeling, fixed without data."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from tacit.feature_selection._sums import UNIT
from tacit.mechanisms import Exponential, Gaussian, Laplace
from tacit.mechanisms.grid import noise_assumptions
from tacit.mechanisms.integer_noise import FEW_ROWS
from tacit.mechanisms.ranks import PARTS, rank_sensitivity
from tacit.privacy import (
    BoundedRange,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Neighbors,
    Repeated,
)

__all__ = ["LEVELS", "SHARES", "PeelPlan", "Shares"]

# Quantiles of the targets from which their middle and width are taken
LEVELS = (PARTS // 5, PARTS - PARTS // 5)


@dataclass(frozen=True)
class Shares:
    """Parts of the budget, by what they are spent on."""

    targets: float = 0.12
    center: float = 0.05
    spread: float = 0.1
    fits: float = 0.2

    def choices(self, *names: str) -> float:
        """Return what is left for the choices after the parts named."""
        return 1.0 - sum(getattr(self, name) for name in names)


SHARES = Shares()


@dataclass(frozen=True)
class PeelPlan:
    """Noise of every release, fixed without data.

    Parameters
    ----------
    n_select
        Number of columns to choose.
    neighbors
        Relation between data sets.
    pure
        Whether noise is Laplace and the guarantee pure.
    center_multiplier
        Noise multiplier of the sums of targets and their squares.
    choice_epsilon
        Privacy of one choice of a column.
    quantile_epsilon
        Privacy of one quantile of the targets; None where they are labels.
    spread_multiplier
        Noise multiplier of the sums of features and their squares; None where they
        would be mostly noise.
    fit_multiplier
        Noise multiplier of each row of the normal equations of chosen columns; None
        where columns are chosen by their correlations alone.
    noise
        ``"grid"`` or ``"float"``.
    """

    n_select: int
    neighbors: Neighbors
    pure: bool
    center_multiplier: float
    choice_epsilon: float
    quantile_epsilon: float | None = None
    spread_multiplier: float | None = None
    fit_multiplier: float | None = None
    noise: str = "grid"

    @property
    def event(self) -> Event:
        additive = LaplaceNoise if self.pure else GaussianNoise
        events: list[Event] = [additive(self.center_multiplier)]
        if self.quantile_epsilon is not None:
            events.append(Repeated(BoundedRange(self.quantile_epsilon), len(LEVELS)))
        if self.spread_multiplier is not None:
            events.append(additive(self.spread_multiplier))
        if self.fit_multiplier is not None:
            events.append(Repeated(additive(self.fit_multiplier), self.n_select - 1))
        # [peel:choice] each choice is of bounded range
        events.append(Repeated(BoundedRange(self.choice_epsilon), self.n_select))
        return Composed(tuple(events))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (FEW_ROWS, *noise_assumptions(self.noise))

    @property
    def rows_changed(self) -> int:
        """Rows in which neighbors differ."""
        return self.neighbors.rows_changed

    def moments(self, count: int, multiplier: float) -> Gaussian | Laplace:
        """Return the noise of sums of ``count`` values from -1 to 1 and squares."""
        # [peel:moments] a replaced value moves by two, or its square along with it; one
        # that is added brings the number of rows with it
        if self.neighbors is Neighbors.REPLACE_ONE:
            size = 2.25 * count if self.pure else 2 * sqrt(count)
        else:
            size = 2 * count + 1.0 if self.pure else sqrt(2 * count + 1)
        return self._additive(multiplier, size)

    def products(self, count: int) -> Gaussian | Laplace:
        """Return the noise of sums of a square and ``count - 1`` other products."""
        # [peel:fits] a square stays between zero and one
        assert self.fit_multiplier is not None
        h, others = self.rows_changed, count - 1
        size = h * others + 1.0 if self.pure else sqrt(h**2 * others + 1)
        return self._additive(self.fit_multiplier, size)

    def _additive(self, multiplier: float, size: float) -> Gaussian | Laplace:
        kind = Laplace if self.pure else Gaussian
        # roots may have been rounded down, by less than this
        return kind(multiplier, size * UNIT * (1 + 1e-12), self.noise)

    def column(self) -> Exponential:
        """Return what chooses a column."""
        # [peel:score] the products of a row are at most one, of either sign
        return Exponential(self.choice_epsilon, self.rows_changed * UNIT, self.noise)

    def quantile(self, level: int) -> Exponential:
        """Return what chooses a quantile of the targets."""
        assert self.quantile_epsilon is not None
        sensitivity = rank_sensitivity(level, self.neighbors)
        return Exponential(self.quantile_epsilon, sensitivity, self.noise)
