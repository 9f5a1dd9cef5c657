"""Lists of rows: one record does not change how the others are read.

NumPy chooses one type for all cells of a list, so that one string among numbers makes
strings of all of them.
"""

from collections import UserList, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.sensitivity.judging import Subject, judged
from tests.sensitivity.pairs import REPLACE
from tests.sensitivity.subjects import SUBJECTS, package_of

from tacit._random import as_generator
from tacit._release import recording
from tacit.fairness._groups import _sensitive, column
from tacit.feature_selection import BlockVoteSelector
from tacit.mechanisms.subsets import block_members
from tacit.stability import StableValue, private_answer
from tacit.stability._rows import as_table, votes_of

# Solvers take rows in arrays only, and ratings are read by `tests.recommend`
ARRAYS = {"solvers", "recommend"}
# These take arrays by hand, or thousands of rows, on a way that others share
OTHERWISE = {
    "SubsampleVote",
    "private_certificate",
    "private_certificate with delta",
    "LassoStabilitySelector",
}
# A function sees all rows together, so that a list is refused as such
WHOLE = {"StableValue", "ProposeTestRelease"}

each_subject = pytest.mark.parametrize(
    "subject",
    [
        pytest.param(subject, id=name)
        for name, subject in SUBJECTS.items()
        if package_of(subject) not in ARRAYS and subject.name not in OTHERWISE
    ],
)


@dataclass(frozen=True)
class ListPair:
    """Neighbors as lists, of one table or one for each step.

    The last row of the second holds strings.
    """

    tables: tuple[Any, ...]
    steps: bool

    @property
    def first(self):
        lists = tuple((mixed(X), mixed(y)) for X, y in self.tables)
        return lists if self.steps else lists[0]

    @property
    def second(self):
        tables = self.first if self.steps else (self.first,)
        X, y = tables[-1]
        X[-1], y[-1] = ["odd"] * len(X[-1]), "odd"
        return tables if self.steps else tables[0]

    @property
    def arrays(self):
        return self.tables if self.steps else self.tables[0]


def mixed(values: np.ndarray) -> list[Any]:
    """Return the same numbers, in kinds that differ from cell to cell."""
    if values.ndim == 2:
        return [mixed(row) for row in values]
    kinds = (float, np.float64, _as_integer)
    return [kinds[i % 3](value) for i, value in enumerate(values.tolist())]


def _as_integer(value: float) -> float:
    return int(value) if value == int(value) else value


def some_pair(subject: Subject) -> ListPair:
    """Return rows of the shapes that the subject takes."""
    found = []

    @settings(
        max_examples=1,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(pair=subject.pairs(REPLACE))
    def draw(pair):
        found.append(pair.first)

    draw()
    steps = isinstance(found[0][0], tuple)
    tables = found[0] if steps else (found[0],)
    return ListPair(tuple(_filled(*table) for table in tables), steps)


def _filled(X, y):
    """Return other rows of these shapes, with whole numbers among them."""
    cells = np.arange(X.shape[0] * X.shape[1], dtype=float).reshape(X.shape)
    labels = np.arange(len(y)) % 2
    return np.round(np.cos(cells), 1), labels if y.dtype.kind == "i" else labels / 1.0


def read(train, tables) -> list[Any]:
    with recording() as tape:
        train(*tables)
    return [(entry.label, entry.value.tolist()) for entry in tape.releases]


@each_subject
def test_lists_of_several_kinds_of_numbers_are_read_as_arrays_are(subject):
    pair, train = some_pair(subject), subject.planned(REPLACE).train
    if subject.name in WHOLE:
        with pytest.raises(TypeError, match="got a list; choose its type"):
            train(*pair.first)
    else:
        assert read(train, pair.first) == read(train, pair.arrays)


@each_subject
def test_strings_in_one_record_change_no_other(subject):
    pair, planned = some_pair(subject), subject.planned(REPLACE)
    with recording() as tape:
        try:
            planned.train(*pair.second)
        except (TypeError, ValueError) as error:
            rejected = error
        else:
            rejected = None
    if rejected is None:
        judged(subject, planned, pair)
    else:  # in words of our own, before anything is drawn
        assert not tape.releases
        assert "odd" not in str(rejected)


def test_one_string_changes_the_vote_of_its_own_block_alone():
    def kind(X, y):
        return f"{X.dtype.kind}{y.dtype.kind}"

    def votes(X, y):
        tables = as_table("X", X), as_table("y", y)
        blocks = block_members(60, 30, True, as_generator(0))
        return votes_of(kind, *tables, blocks, [None] * 30)

    X, y = [[i, 2.5] for i in range(60)], [i % 2 for i in range(60)]
    clean = votes(X, y)
    assert set(clean) == {"fi"}
    odd_X, odd_y = [[*row] for row in X], [*y]
    odd_X[7][0], odd_y[7] = "odd", 0.5
    turned = votes(odd_X, odd_y)
    assert sum(a != b for a, b in zip(clean, turned, strict=True)) == 1
    odd_X[7] = [1.0]  # a row of another length
    assert sum(a != b for a, b in zip(clean, votes(odd_X, y), strict=True)) == 1


@pytest.mark.parametrize("container", [deque, UserList, tuple])
def test_one_string_in_another_container_changes_no_other_cell(container):
    table = as_table("y", container([0, 1, "odd", 1]))
    assert table[np.array([0, 1])].dtype.kind == "i"
    with pytest.raises(TypeError, match=f"got a {container.__name__}"):
        private_answer(
            StableValue(lambda X, y: 0, lambda X, y: 9),
            container([[0.0], [1.0]]),
            epsilon=1.0,
            delta=1e-3,
        )


@pytest.mark.parametrize("method", ["blocks", "subsamples", "features"])
def test_one_string_turns_no_selection_of_columns(method):
    def select(X, y):
        return [0 if y.dtype.kind == "i" else 1]

    def selection(y):
        selector = BlockVoteSelector(
            5.0,
            1e-2,
            n_features_to_select=1,
            selector=select,
            method=method,
            random_state=0,
        )
        return selector.fit(np.ones((200, 2)), y).selection_

    y = [i % 2 for i in range(200)]
    assert selection(y) == selection([*y[:-1], "odd"]) == (0,)


def test_groups_and_labels_of_certificates_are_read_one_by_one():
    assert column("y", [1, 2.5, "1", True]).tolist() == [1, 2.5, "1", True]
    assert _sensitive([["f", 3], ["m", 4]]).tolist() == [("f", 3), ("m", 4)]
