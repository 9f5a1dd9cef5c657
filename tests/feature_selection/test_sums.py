"""Sums that are exact, up to a number of rows that plans refuse to pass."""

import pytest

from tacit.exceptions import PlanError
from tacit.feature_selection import (
    ExponentialSelector,
    LassoStabilitySelector,
    PeelingSelector,
)
from tacit.mechanisms.integer_noise import MAX_INTEGER_ROWS, ROW_LIMIT_ASSUMPTION

PUBLIC = {"n_features_to_select": 1, "feature_bounds": 1.0, "y_range": (-1, 1)}


@pytest.mark.parametrize(
    "kind", [ExponentialSelector, LassoStabilitySelector, PeelingSelector]
)
def test_more_rows_than_sums_are_exact_for_are_rejected_where_public(kind):
    selector = kind(1.0, 1e-12, **PUBLIC)
    selector.plan(MAX_INTEGER_ROWS, 3)
    with pytest.raises(PlanError, match=f"{kind.__name__} takes up to"):
        selector.plan(MAX_INTEGER_ROWS + 1, 3)
    plan = selector.set_params(neighbors="add_or_remove_one").plan(2_000, 3)
    assert ROW_LIMIT_ASSUMPTION in plan.assumptions
