"""Messages about parameters: they repeat what was written, and never a table."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from tacit._validate import (
    at_least,
    fraction,
    moderate,
    nonnegative,
    one_of,
    positive,
    shown,
)
from tacit.linear_model import LinearRegression
from tacit.privacy import Neighbors

CHECKS = [
    positive,
    moderate,
    nonnegative,
    fraction,
    lambda value: at_least(1, value=value),
    lambda value: one_of(("a", "b"), value=value),
]


def rejection(check, value):
    with pytest.raises(ValueError, match="value") as caught:
        check(value) if check.__name__ == "<lambda>" else check(value=value)
    return str(caught.value)


@pytest.mark.parametrize("check", CHECKS)
def test_what_was_written_is_repeated(check):
    for value in (-0.5, "many", np.float32(-0.5), Decimal("-0.5"), (-0.5, "b"), -0.5j):
        assert rejection(check, value).endswith(f"got {value!r}.")


@pytest.mark.parametrize("check", CHECKS)
def test_values_that_may_be_private_are_told_of_by_their_type_alone(check):
    column = pd.Series([4.123] * 9)
    for value in (
        column,
        column.to_frame(),
        column.to_numpy(),
        column.tolist(),
        {"rating": 4.123},
        [column],
        "4.123," * 50,
    ):
        words = rejection(check, value)
        assert "4.123" not in words
        assert words.endswith(f"got a value of type {type(value).__name__}.")


def test_a_column_in_the_place_of_a_range_or_a_relation_is_not_repeated():
    X, y = np.zeros((9, 1)), np.full(9, 4.123)
    for parameters in ({"y_range": y}, {"y_range": (0, 1), "random_state": y}):
        with pytest.raises(ValueError, match=list(parameters)[-1]) as caught:
            LinearRegression(1.0, **parameters, x_norm=1.0).fit(X, y)
        assert "4.123" not in str(caught.value)
    with pytest.raises(ValueError, match="neighbors") as caught:
        Neighbors.of(pd.Series(y))
    assert "4.123" not in str(caught.value)


def test_a_number_of_thousands_of_digits_is_not_written():
    assert shown(10**5000) == "a value of type int"
    assert shown(-(10**5)) == "-100000"
