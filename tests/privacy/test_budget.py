import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy import Budget, Neighbors


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_epsilon_must_be_a_positive_number(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan, "0"])
def test_delta_must_be_a_probability_below_one(delta):
    with pytest.raises(ValueError, match="delta must be"):
        Budget(1.0, delta)


def test_relation_is_taken_by_name_and_refused_when_unknown():
    budget = Budget(1.0, 0.0, "add_or_remove_one")
    assert budget.neighbors is Neighbors.ADD_OR_REMOVE_ONE
    assert [member.rows_changed for member in Neighbors] == [2, 1]
    with pytest.raises(ValueError, match="neighbors must be 'replace_one'"):
        Budget(1.0, 0.0, "swap")


@given(
    st.floats(1e-6, 1e3),
    st.floats(0, 0.5),
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9),
)
def test_parts_never_add_up_to_more_than_the_whole(epsilon, delta, shares):
    budget = Budget(epsilon, delta)
    parts = budget.split(*shares)
    assert math.fsum(part.epsilon for part in parts) <= epsilon
    assert math.fsum(part.delta for part in parts) <= delta
    whole = math.fsum(shares)
    for part, share in zip(parts, shares, strict=True):
        assert part.epsilon == pytest.approx(epsilon * share / whole, rel=1e-12)


@pytest.mark.parametrize("shares", [(), (1.0, 0.0), (1.0, -1.0)])
def test_shares_must_be_positive(shares):
    with pytest.raises(ValueError, match="shares must"):
        Budget(1.0).split(*shares)


def test_a_replacement_takes_one_row_out_and_puts_one_in():
    assert Neighbors.REPLACE_ONE.rows_changed == 2
    assert Neighbors.ADD_OR_REMOVE_ONE.rows_changed == 1
