import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.ensemble._worker import ClassVoting, NumberVoting


class Odd:
    """Something that fails however it is looked at, and says so."""

    def __array__(self, *_, **__):
        print("odd")  # noqa: T201
        warnings.warn("odd", stacklevel=1)
        raise RuntimeError("odd")

    __len__ = __iter__ = __float__ = __array__


LABELS = [
    [0, 1],
    ["no", "yes"],
    [False, True],
    [-1.5, 0.0, 2.5],
    list(range(10)),
    [b"a", b"b"],
]


@pytest.mark.parametrize("classes", LABELS, ids=repr)
@pytest.mark.parametrize("dtype", [None, object])
def test_a_label_is_a_vote_for_its_class(classes, dtype):
    voting = ClassVoting(classes)
    votes = voting.cast(np.array(classes[::-1], dtype=dtype), len(classes))
    assert votes.dtype == np.int16
    assert votes.tolist() == list(range(len(classes)))[::-1]


def test_classes_keep_the_order_in_which_they_are_given():
    voting = ClassVoting(["b", "c", "a"])
    assert voting.classes == ("b", "c", "a")
    assert voting.cast(["a", "b", "c", "d"], 4).tolist() == [2, 0, 1, 0]


@pytest.mark.parametrize(
    "predictions",
    [
        None,
        Odd(),
        [Odd(), Odd()],
        [1],
        [1, 1, 1],
        [[1, 1], [1, 1]],
        1,
        "11",
        [[1], [1, 1]],
        [np.nan, np.inf],
        ["1", "1"],
        [[], {}],
        np.array([[1], 1], dtype=object),
        np.ma.masked_array([7, 7], mask=True),
    ],
    ids=lambda p: f"{type(p).__name__}",
)
def test_what_is_no_label_is_a_vote_for_the_first_class(predictions, capfd):
    votes = ClassVoting([0, 1]).cast(predictions, 2)
    assert votes[0] == 0
    assert votes.shape == (2,)
    assert votes.dtype == np.int16
    assert capfd.readouterr() == ("", "")


def test_odd_predictions_spoil_their_own_votes_alone():
    positions = ClassVoting([1, 2]).cast([2, None, 2, 3, np.nan], 5)
    assert positions.tolist() == [1, 0, 1, 0, 0]
    numbers = NumberVoting(0, 10).cast([2, None, "x", 30, np.nan], 5)
    assert numbers.tolist() == [2, 5, 5, 10, 5]


def test_a_column_of_predictions_counts_as_predictions():
    assert ClassVoting([0, 1]).cast([[1], [0], [1]], 3).tolist() == [1, 0, 1]
    assert NumberVoting(0, 1).cast([[0.5]], 1).tolist() == [0.5]


def test_numbers_and_strings_are_not_the_same_label():
    assert ClassVoting(["0", "1"]).cast([1, 1], 2).tolist() == [0, 0]
    assert ClassVoting([0, 1]).cast(["1", "1"], 2).tolist() == [0, 0]
    # the positive control
    assert ClassVoting([0, 1]).cast([1.0, True], 2).tolist() == [1, 1]


@given(st.lists(st.floats() | st.integers() | st.none() | st.text(), max_size=9))
def test_numbers_are_in_their_range(values):
    predictions = np.array([*values, None], dtype=object)[:-1]
    votes = NumberVoting(-2.0, 4.0).cast(predictions, len(values))
    assert votes.dtype == np.float64
    assert votes.shape == (len(values),)
    assert ((votes >= -2) & (votes <= 4)).all()


@pytest.mark.parametrize("predictions", [None, Odd(), [1.0], [[1, 2], [3, 4]]])
def test_what_is_no_number_is_the_middle(predictions):
    voting = NumberVoting(0, 3)
    assert voting.default == 1.5
    assert voting.cast(predictions, 2).tolist() == [1.5, 1.5]


def test_infinite_numbers_are_the_ends_of_the_range():
    assert NumberVoting(0, 3).cast([np.inf, -np.inf], 2).tolist() == [3, 0]
    assert NumberVoting(-1e308, 1e308).default == 0


@pytest.mark.parametrize("classes", [[], [1, 1], [[1], [2]], 3, ["a", "a", "b"]])
def test_classes_that_are_no_list_of_labels_are_rejected(classes):
    with pytest.raises(ValueError, match="classes must be"):
        ClassVoting(classes)
