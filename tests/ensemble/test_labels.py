"""Labels: what was released of each row, and no answer where there is none."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tacit.ensemble import Labels
from tacit.ensemble._answers import collect_labels
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms._votes._base import VoteAnswer

ANSWERS = [
    VoteAnswer(1, np.array([2.0, 9.0])),
    VoteAnswer(NO_ANSWER),
    VoteAnswer(0, np.array([7.0, 1.0])),
]


def test_labels_are_read_one_by_one_and_as_arrays():
    labels = collect_labels(ANSWERS, np.array(["no", "yes"]), 3, 2)
    assert len(labels) == 3
    assert list(labels) == ["yes", NO_ANSWER, "no"]
    assert labels[-1] == "no"
    assert type(labels[0]) is str
    assert labels.values.tolist() == ["yes", None, "no"]
    assert labels.filled().tolist() == ["yes", "no", "no"]
    assert labels.answered.tolist() == [True, False, True]
    nan = np.nan
    np.testing.assert_array_equal(labels.votes, [[2, 9], [nan, nan], [7, 1]])
    assert labels.n_queried == 3
    with pytest.raises(IndexError):
        labels[3]


def test_rows_that_were_not_queried_have_no_answer():
    labels = collect_labels(ANSWERS[:1], np.array([4, 5]), 3, 2)
    assert list(labels) == [5, NO_ANSWER, NO_ANSWER]
    assert labels.n_queried == 1
    assert labels.values.tolist() == [5, None, None]
    assert labels.filled().tolist() == [5, 4, 4]
    assert type(labels[0]) is int


def test_numbers_have_the_middle_as_their_default():
    labels = collect_labels([VoteAnswer(0.25), VoteAnswer(NO_ANSWER)], 0.5, 3, None)
    np.testing.assert_array_equal(labels.values, [0.25, np.nan, np.nan])
    assert labels.filled().tolist() == [0.25, 0.5, 0.5]
    assert list(labels) == [0.25, NO_ANSWER, NO_ANSWER]
    assert labels.votes is None


@pytest.mark.parametrize("choices", [np.array(["no", "yes"]), 0.5])
def test_labels_take_their_positions_in_a_table(choices):
    numbers = not isinstance(choices, np.ndarray)
    votes = np.array([1.5]) if numbers else np.array([1.5, 2.5])
    answers = [VoteAnswer(1, votes), VoteAnswer(NO_ANSWER), VoteAnswer(1, votes)]
    labels = collect_labels(answers, choices, 3, len(votes)).at_rows(
        np.array([4, 0, 2]), 6
    )
    told, default = (1, 0.5) if numbers else ("yes", "no")
    assert labels.default == default
    filled = [default, default, told, default, told, default]
    assert labels.filled().tolist() == filled
    assert labels.missing.tolist() == [True, True, False, True, False, True]
    none = np.nan if isinstance(default, float) else None
    np.testing.assert_array_equal(labels.values, [none, none, told, none, told, none])
    assert labels.answered.tolist() == [False, False, True, False, True, False]
    assert (labels.votes[[2, 4]] == votes).all()
    assert np.isnan(labels.votes[[0, 1, 3, 5]]).all()
    assert labels.n_queried == 3


@pytest.mark.parametrize(
    ("choices", "none"),
    [
        (np.array([0, 1]), None),
        (np.array([False, True]), None),
        (np.array(["no", "yes"]), None),
        (np.array([0.0, 1.0]), np.nan),
        (0.5, np.nan),
    ],
    ids=str,
)
def test_withheld_and_unqueried_rows_look_missing_for_labels_of_any_type(choices, none):
    labels = collect_labels([VoteAnswer(1), VoteAnswer(NO_ANSWER)], choices, 3, None)
    told = choices[1] if isinstance(choices, np.ndarray) else 1.0
    np.testing.assert_array_equal(labels.values, np.array([told, none, none]))
    assert labels.missing.tolist() == [False, True, True]
    # a label of its own type wherever there is one, and in no case a synthetic one
    full = collect_labels([VoteAnswer(1)] * 2, choices, 2, None)
    assert full.values.dtype == full.filled().dtype == labels.filled().dtype
    for other in (copy.deepcopy(labels), pickle.loads(pickle.dumps(labels))):
        assert other.filled().tolist() == labels.filled().tolist()


def test_no_rows_have_no_labels():
    labels = collect_labels([], np.array([True, False]), 0, 2)
    assert list(labels) == []
    assert labels.votes.shape == (0, 2)
    assert labels.values.dtype == bool


def test_labels_are_public_values_that_do_not_change():
    labels = collect_labels(ANSWERS, np.array(["no", "yes"]), 3, None)
    with pytest.raises(FrozenInstanceError):
        labels.n_queried = 4
    for other in (copy.deepcopy(labels), pickle.loads(pickle.dumps(labels))):
        assert isinstance(other, Labels)
        assert list(other) == list(labels)


def test_objects_as_labels_come_back_as_they_are():
    classes = np.array(["a", "bb"], dtype=object)
    assert list(collect_labels(ANSWERS, classes, 3, None)) == ["bb", NO_ANSWER, "a"]
