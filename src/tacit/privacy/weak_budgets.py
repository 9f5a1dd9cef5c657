"""Budgets that are valid and protect little, from public thresholds."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import ceil, exp, floor, log

from tacit.privacy.budget import Budget

__all__ = ["LARGEST_DELTA", "LARGEST_EPSILON", "budget_warnings"]

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
    >>> from tacit.privacy.weak_budgets import budget_warnings
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
