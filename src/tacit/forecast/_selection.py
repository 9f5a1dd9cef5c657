"""How many rows it takes to find the columns that matter, before any row is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, comb, exp, inf, log, sqrt

from tacit._validate import at_least, fraction, one_of, positive
from tacit.exceptions import PlanError
from tacit.feature_selection._peel import RESIDUAL_WIDTH, Peel
from tacit.feature_selection._votes import votes_needed
from tacit.privacy import BoundedRange, Budget, Neighbors, Repeated, calibrate
from tacit.stability import blocks_needed, distance_needed

__all__ = ["SUPPORT_METHODS", "rows_for_support"]

# More rows than anyone has
MOST_ROWS = 2**40
# Share of the blocks that must find the columns
AGREEMENT = 0.75
# The sum of absolute weights that is allowed, over the sum there is
BOUND = 1.5
# Bound on the weights with which columns that matter explain another
INCOHERENCE = 1.5
# Deviations of the target in half of its public range
REACH = 4.0


@dataclass(frozen=True)
class _Setting:
    """Columns of equal deviation, some of which have weights of one size."""

    n_features: int
    n_relevant: int
    budget: Budget
    signal: float
    noise: float
    spread: float
    failure: float

    @property
    def pull(self) -> float:
        """What a column that matters adds to the target, in deviations of it."""
        return self.signal * self.spread

    @property
    def deviation(self) -> float:
        """Deviation of the target."""
        return sqrt(self.n_relevant * self.pull**2 + self.noise**2)

    @property
    def others(self) -> int:
        """Columns that do not matter, at least one."""
        return max(1, self.n_features - self.n_relevant)

    @property
    def chance(self) -> float:
        """Deviations that the luckiest of the columns that do not matter reaches."""
        return sqrt(2 * log(self.others + 1))

    @property
    def rows_changed(self) -> int:
        return self.budget.neighbors.rows_changed


def rows_for_support(
    n_features: int,
    n_relevant: int,
    *,
    method: str,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    signal: float = 0.5,
    noise: float = 0.25,
    spread: float = 0.5,
    neighbors: str = "replace_one",
    failure: float = 0.1,
) -> int:
    """Return the rows with which a selector should find just the columns that matter.

    Rows are taken to have independent features of mean zero and one deviation, and a
    target that is the sum of ``n_relevant`` features with weights of plus or minus
    ``signal`` and normal noise. Correlated features take more.

    Parameters
    ----------
    n_features
        Number of columns.
    n_relevant
        Number of columns that matter, all of which are to be found.
    method
        ``"lasso"`` for the lasso without privacy; ``"blocks"``, ``"subsamples"`` or
        ``"features"`` for `~tacit.feature_selection.BlockVoteSelector`;
        ``"correlation"`` or ``"pursuit"`` for
        `~tacit.feature_selection.PeelingSelector`; ``"stability"`` for the lasso with
        a test of its stability; ``"exponential"`` for the exponential mechanism on all
        sets of columns.
    epsilon
        Privacy budget.
    delta
        Probability with which the bound may fail; 0.0 for pure privacy, where the
        method has it.
    signal
        Absolute weight of a column that matters, for features from -1 to 1.
    noise
        Deviation of the noise in the target, in the same unit.
    spread
        Deviation of a feature, as a part of half of its public range.
    neighbors
        ``"replace_one"`` or ``"add_or_remove_one"``.
    failure
        Probability with which a column may be missed.

    Notes
    -----
    **Bound.** None: these are the leading terms of the theorems with the constants of
    this library, a guide to orders of magnitude. The lasso takes about ``2 r log p``
    rows with ``r = s + (noise / (signal spread))^2`` (Wainwright 2009, Theorem 3).
    Votes take that many a block, times the blocks (Thakurta 2013, Corollary 6.37). The
    lasso with a test must pass the threshold of `tacit.stability.distance_needed` in
    each of its tests at the best penalty. The others follow from a union bound on the
    exponential mechanism: over columns, and over sets that lack some of the columns.

    Examples
    --------
    >>> from tacit.forecast import rows_for_support
    >>> least = rows_for_support(1000, 5, method="pursuit", epsilon=1.0)
    >>> 500 < least < 10_000
    True
    """
    at_least(1, n_relevant=n_relevant)
    at_least(n_relevant, n_features=n_features)
    one_of(SUPPORT_METHODS, method=method)
    positive(signal=signal, noise=noise, spread=spread)
    fraction(failure=failure, closed=False)
    if spread > 1:
        raise ValueError(f"spread must be at most 1, got {spread!r}.")
    setting = _Setting(
        int(n_features),
        int(n_relevant),
        Budget(epsilon, delta, Neighbors.of(neighbors)),
        float(signal),
        float(noise),
        float(spread),
        float(failure),
    )
    return _METHODS[method](setting)


def _lasso(at: _Setting) -> int:
    """Return the rows with which the lasso path starts with the right columns."""
    weight = at.n_relevant + (at.noise / at.pull) ** 2
    return at.n_relevant + ceil(2 * weight * log(at.others + 1)) + 1


def _blocks(at: _Setting) -> int:
    budget = _with_delta(at)
    failure = at.failure / 2
    blocks = blocks_needed(
        budget.epsilon, budget.delta, agreement=AGREEMENT, failure=failure
    )
    return blocks * _lasso(at)


def _subsamples(at: _Setting) -> int:
    budget = _with_delta(at)
    # a lead of a quarter of the votes, as the procedure plans for
    return 16 * (distance_needed(budget.epsilon, budget.delta) + 1) * _lasso(at)


def _features(at: _Setting) -> int:
    count = at.n_relevant
    epsilon = 1 / calibrate(
        lambda unit: Repeated(BoundedRange(1 / unit), count), at.budget
    )
    return votes_needed(epsilon, count, at.n_features) * _lasso(at)


def _peeling(at: _Setting, pursuit: bool) -> int:
    solver = Peel(at.n_relevant, pursuit=pursuit)

    def found(n_rows: int) -> bool:
        plan = solver.plan(at.budget, n_rows, at.n_features)
        odds = log(at.n_features * at.n_relevant / at.failure)
        for left in range(at.n_relevant, 0, -1):
            rest = left if pursuit else at.n_relevant
            deviation = sqrt(rest * at.pull**2 + at.noise**2)
            # targets are cut at so many deviations, which then is one
            unit = RESIDUAL_WIDTH * deviation
            lead = n_rows * at.spread * at.pull / unit
            lead -= at.chance * sqrt(n_rows) * at.spread / RESIDUAL_WIDTH
            # any of those left will do, so that the last choice is the hardest, unless
            # the target is clearer by then
            noise = 2 * at.rows_changed / plan.choice * max(1.0, odds - log(left))
            if lead < noise:
                return False
        return True

    return _least(found, _lasso(at))


def _stability(at: _Setting) -> int:
    """Return the rows at which all tests of the lasso pass with room for the noise."""
    budget = _with_delta(at)
    needed = distance_needed(budget.epsilon, budget.delta, failure=at.failure) + 1
    h, g, s = at.rows_changed, at.n_relevant + 1, at.n_relevant
    scale = REACH * at.deviation
    weight, error = at.signal / scale, at.noise / scale
    bound = BOUND * s * weight
    pull = h * sqrt(g) * (1 + bound)
    slack = h * (1 + bound) * (1 + INCOHERENCE)

    def found(n: int) -> bool:
        least = n * at.spread**2 * max(0.0, 1 - sqrt(g / n)) ** 2
        if least <= g:
            return False
        # slopes outside the support come from noise and from what the penalty leaves
        left = at.chance * sqrt(s / n)
        if left >= 1:
            return False
        slope = error * at.spread * at.chance * sqrt(n)
        penalty = (slope + needed * slack) / (1 - left)
        smallest = weight - penalty / (n * at.spread**2)
        coherence = sqrt(s / n) * (sqrt(s) + at.chance)
        curved = least - g / 2
        tests = (
            least / g - 1,
            (bound - s * weight) * curved / (sqrt(g) * pull + g * bound),
            (INCOHERENCE - coherence)
            * (least - g)
            / (g * (h * (1 + INCOHERENCE) + INCOHERENCE)),
            smallest * curved / (pull + bound * g / s),
        )
        return min(tests) >= needed

    return _least(found, _lasso(at))


def _exponential(at: _Setting) -> int:
    """Return the rows at which the right set outweighs all others together."""
    s, scale = at.n_relevant, REACH * at.deviation
    bound = BOUND * s * at.signal / scale
    loss = (1 + bound) ** 2 / 2
    gap = (at.pull / scale) ** 2 / 2
    monotone = at.budget.neighbors is Neighbors.ADD_OR_REMOVE_ONE
    rate = at.budget.epsilon / (loss if monotone else 2 * loss)

    def found(n: int) -> bool:
        # sets that lack some of the columns, by how many
        odds = 0.0
        for lack in range(1, min(s, at.n_features - s) + 1):
            sets = log(comb(s, lack)) + log(comb(at.n_features - s, lack))
            exponent = sets - rate * n * lack * gap
            odds += inf if exponent > 0 else exp(exponent)
        return odds <= at.failure

    return _least(found, _lasso(at))


def _with_delta(at: _Setting) -> Budget:
    if at.budget.delta == 0:
        raise PlanError(
            "delta must be above 0 for this method, which may give no answer; give a "
            "delta, or use 'features', 'correlation', 'pursuit' or 'exponential'."
        )
    return at.budget


def _least(found: Callable[[int], bool], start: int) -> int:
    """Return the least number of rows from ``start`` on, within a hundredth."""
    high = max(2, start)
    if found(high):
        return high
    while not found(high):
        high *= 2
        if high > MOST_ROWS:
            raise PlanError("No number of rows suffices; raise epsilon or signal.")
    low = high // 2
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


_METHODS: dict[str, Callable[[_Setting], int]] = {
    "lasso": _lasso,
    "blocks": _blocks,
    "subsamples": _subsamples,
    "features": _features,
    "correlation": lambda at: _peeling(at, pursuit=False),
    "pursuit": lambda at: _peeling(at, pursuit=True),
    "stability": _stability,
    "exponential": _exponential,
}
SUPPORT_METHODS = tuple(_METHODS)
