from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tacit.ensemble._chunks import chunk_members
from tacit.ensemble._rows import as_rows

KEY = bytes(range(16))
PEOPLE = {"key": KEY, "neighbors": "add_or_remove_one"}
COUNTED = {"key": KEY, "neighbors": "replace_one"}

# few values, so that many rows are equal
CELLS = st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf, 2.0**60])
TEXTS = st.sampled_from(["", "a", "b", "a much longer text", None, 1, 1.0, True])
ROWS = st.lists(st.tuples(CELLS, CELLS, st.integers(0, 1)), max_size=12)
MIXED = st.lists(st.tuples(CELLS, TEXTS, TEXTS), max_size=12)


def dense(rows):
    table = np.array([row[:2] for row in rows], dtype=float).reshape(-1, 2)
    return table, np.array([row[2] for row in rows], dtype=int)


def in_csr(rows):
    X, y = dense(rows)
    return sparse.csr_array(X), y


def objects(rows):
    table = np.empty((len(rows), 2), dtype=object)
    y = np.empty(len(rows), dtype=object)
    for position, row in enumerate(rows):
        table[position], y[position] = row[:2], row[2]
    return table, y


def frame(rows):
    X, y = objects(rows)
    table = pd.DataFrame({"number": X[:, 0].astype(float)}, range(7, 7 + len(rows)))
    # types of columns are the caller's, and not what pandas makes of the rows
    table["text"] = pd.Series(X[:, 1], table.index, dtype=object)
    # strings as wide as the longest, and categories of those there are
    table["kind"] = pd.Series([str(v) for v in X[:, 1]], table.index, dtype="category")
    return table, np.array([str(value) for value in y], dtype=str)


FORMS = [(dense, ROWS), (in_csr, ROWS), (objects, MIXED), (frame, MIXED)]


def shown(table, y, rows):
    """The rows of a chunk in their order, so that what prints the same is the same."""
    if sparse.issparse(table):
        table = table.toarray()
    cells = table.to_numpy() if hasattr(table, "iloc") else table
    return [
        repr(
            (cells[row].tolist(), y[row].item() if hasattr(y[row], "item") else y[row])
        )
        for row in rows
    ]


def chunks_of(form, rows, n_chunks=5, terms=PEOPLE, split=chunk_members):
    X, y = form(rows)
    return [shown(X, y, m) for m in split(X, y, n_chunks, **terms)]


def n_changed(before, after):
    return sum(a != b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("form", "rows"), FORMS, ids=lambda x: getattr(x, "__name__", "")
)
@settings(max_examples=25)
@given(data=st.data())
def test_removing_a_row_changes_one_chunk_and_by_that_row(form, rows, data):
    rows = data.draw(rows.filter(bool))
    gone = data.draw(st.integers(0, len(rows) - 1))
    before = chunks_of(form, rows)
    after = chunks_of(form, rows[:gone] + rows[gone + 1 :])
    assert n_changed(before, after) == 1
    (lost,) = [
        Counter(a) - Counter(b) for a, b in zip(before, after, strict=True) if a != b
    ]
    X, y = form(rows)
    assert list(lost.elements()) == shown(X, y, [gone])


def test_pieces_of_an_order_would_not_pass():
    def in_order(X, y, n_chunks, **_):
        return np.array_split(np.arange(len(y)), n_chunks)

    rows = [(float(position), 0.0, 0) for position in range(20)]
    before = chunks_of(dense, rows, split=in_order)
    assert n_changed(before, chunks_of(dense, rows[1:], split=in_order)) > 1
    assert n_changed(chunks_of(dense, rows), chunks_of(dense, rows[1:])) == 1


def test_copies_in_their_old_order_would_not_pass():
    # equal rows around another: without the first, the second has its place
    rows = [(1.0, 1.0, 0), (2.0, 2.0, 0), (1.0, 1.0, 0)]
    in_one = {"n_chunks": 1}
    assert chunks_of(dense, rows[1:], **in_one) == chunks_of(dense, rows[:2], **in_one)
    assert rows[1:] != rows[:2]


@settings(max_examples=25)
@given(rows=ROWS, data=st.data())
def test_the_order_of_rows_does_not_matter(rows, data):
    other = data.draw(st.permutations(rows))
    assert chunks_of(dense, rows) == chunks_of(dense, other)


@settings(max_examples=25)
@given(rows=ROWS.filter(bool), new=ROWS.filter(bool), data=st.data())
def test_replacing_a_row_changes_one_chunk_where_rows_are_counted(rows, new, data):
    position = data.draw(st.integers(0, len(rows) - 1))
    other = [*rows[:position], new[0], *rows[position + 1 :]]
    before = chunks_of(dense, rows, terms=COUNTED)
    changed = n_changed(before, chunks_of(dense, other, terms=COUNTED))
    X, y = dense([rows[position], new[0]])
    same = shown(X, y, [0]) == shown(X, y, [1])
    assert changed == (0 if same else 1)


def test_chunks_by_contents_would_not_pass_where_a_row_is_replaced():
    rows = [(float(position), 0.0, 0) for position in range(50)]
    changed = {
        n_changed(chunks_of(dense, rows), chunks_of(dense, [*rows[:-1], (v, 9.0, 0)]))
        for v in range(9)
    }
    assert 2 in changed


@pytest.mark.parametrize("n_chunks", [1, 3, 7, 20, 100])
@pytest.mark.parametrize("terms", [PEOPLE, COUNTED], ids=["people", "counted"])
def test_each_row_is_in_one_chunk(n_chunks, terms):
    X = np.arange(80.0).reshape(20, 4) // 8
    chunks = chunk_members(X, np.zeros(20), n_chunks, **terms)
    assert len(chunks) == n_chunks
    assert all(rows.dtype == np.intp for rows in chunks)
    assert sorted(np.concatenate(chunks).tolist()) == list(range(20))
    sizes = [len(rows) for rows in chunks]
    assert terms is PEOPLE or max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("terms", [PEOPLE, COUNTED], ids=["people", "counted"])
def test_the_key_decides(terms):
    X, y = np.arange(200.0).reshape(100, 2), np.zeros(100)
    first, again = (chunk_members(X, y, 5, **terms) for _ in range(2))
    other = chunk_members(X, y, 5, **{**terms, "key": bytes(32)})
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert [c.tolist() for c in first] != [c.tolist() for c in other]


def test_chunks_are_of_even_sizes_on_average():
    X = np.arange(20_000.0).reshape(-1, 2)
    sizes = [len(c) for c in chunk_members(X, np.zeros(10_000), 10, **PEOPLE)]
    # eight standard deviations of a binomial law with mean 1000
    assert all(abs(size - 1000) < 240 for size in sizes)
    assert min(len(c) for c in chunk_members(X[:1], np.zeros(1), 10, **PEOPLE)) == 0


def test_the_target_is_part_of_a_row():
    X = np.zeros((2, 3))
    groups = {
        tuple(map(tuple, chunk_members(X, np.array([0, y]), 50, **PEOPLE)))
        for y in range(1, 8)
    }
    assert len(groups) > 1


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.uint64])
def test_a_number_is_the_same_in_each_type_that_holds_it(dtype):
    X = np.arange(120).reshape(60, 2)
    of = [chunk_members(X.astype(t), X[:, 0], 5, **PEOPLE) for t in (float, dtype)]
    assert [c.tolist() for c in of[0]] == [c.tolist() for c in of[1]]


@pytest.mark.parametrize("largest", [2**53, 2**60, 2**63 - 3, -(2**63)])
def test_integers_that_floats_round_are_distinguished(largest):
    X = np.array([[largest], [largest + 1]], dtype=np.int64)
    parts = [
        {
            c: set(rows.tolist())
            for c, rows in enumerate(
                chunk_members(X[order], np.zeros(2), 1000, **PEOPLE)
            )
            if len(rows)
        }
        for order in ([0, 1], [1, 0])
    ]
    # were they the same, the first of them would always be in the same chunk
    assert {c: {1 - r for r in rows} for c, rows in parts[0].items()} == parts[1]


def test_a_longer_string_or_a_new_category_moves_no_other_row():
    strings = [f"t{position}" for position in range(30)]
    y = np.zeros(31)
    for kind in (np.array, pd.Series, lambda v: pd.Series(v, dtype="category")):
        before = chunk_members(_column(kind(strings)), y[:30], 5, **PEOPLE)
        after = chunk_members(_column(kind([*strings, "a" * 99])), y, 5, **PEOPLE)
        rest = [rows[rows < 30].tolist() for rows in after]
        assert rest == [rows.tolist() for rows in before]


def _column(values):
    return values.to_frame() if hasattr(values, "to_frame") else values[:, None]


def test_sparse_rows_are_read_as_they_stand_for():
    once = sparse.csr_array(([3.0, 1.0], [0, 1], [0, 2]), shape=(1, 2))
    twice = sparse.csr_array(([1.0, 1.0, 2.0], [1, 0, 0], [0, 3]), shape=(1, 2))
    found = [
        [len(c) for c in chunk_members(X, np.zeros(1), 1000, **PEOPLE)]
        for X in (once, twice)
    ]
    assert found[0] == found[1]


IDS = [
    list(range(40)),
    [f"person {position}" for position in range(40)],
    [b"%d" % position for position in range(40)],
    np.arange(40, dtype=np.uint16),
    pd.Series([f"p{position}" for position in range(40)]),
    [2**200 + position for position in range(40)],
    [2**63 - 20 + position for position in range(40)],
    [10**5000 + position for position in range(40)],
    ["\udcff" * (position + 1) for position in range(40)],
]


@pytest.mark.parametrize("ids", IDS, ids=lambda ids: type(ids[0]).__name__)
def test_all_rows_of_an_id_are_in_one_chunk(ids):
    each = [ids[position % 40] for position in range(100)]
    X = np.arange(200.0).reshape(100, 2)
    chunks = chunk_members(X, np.zeros(100), 7, ids=each, **PEOPLE)
    where = {row: chunk for chunk, rows in enumerate(chunks) for row in rows.tolist()}
    assert all(where[row] == where[row % 40] for row in range(100))
    assert len(set(where.values())) > 1
    # rows of other people stay, in their order, when a person goes
    kept = [row for row in range(100) if row % 40 != 3]
    after = chunk_members(
        X[kept], np.zeros(len(kept)), 7, ids=[each[row] for row in kept], **PEOPLE
    )
    before = [[row for row in rows.tolist() if row % 40 != 3] for rows in chunks]
    assert [[kept[row] for row in rows] for rows in after] == before


@pytest.mark.parametrize(
    "ids",
    [
        [1, 2],
        [1, 2, 3, 4],
        [1.0, 2.0, 3.0],
        [1, 2, None],
        [1, "a", b"c"],
        ["a", "b", np.nan],
        [True, False, True],
        [(1,), (2,), (3,)],
        5,
        np.array([1.0, np.nan, 2.0]),
        [[1], [2], [3]],
    ],
    ids=repr,
)
def test_ids_that_are_not_one_for_each_row_are_rejected(ids):
    with pytest.raises(ValueError, match="ids must be one for each row") as rejection:
        chunk_members(np.zeros((3, 1)), np.zeros(3), 2, ids=ids, **PEOPLE)
    assert not any(letter.isdigit() for letter in str(rejection.value))


def test_ids_are_rejected_where_a_row_is_replaced():
    with pytest.raises(ValueError, match="ids must be None where neighbors replace"):
        chunk_members(np.zeros((3, 1)), np.zeros(3), 2, ids=[1, 2, 3], **COUNTED)


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(65), "a" * 16, None])
def test_invalid_keys_are_rejected(key):
    with pytest.raises(ValueError, match="key must be"):
        chunk_members(
            np.zeros((3, 1)), np.zeros(3), 2, key=key, neighbors="replace_one"
        )


def test_targets_that_are_not_one_for_each_row_are_rejected():
    with pytest.raises(ValueError, match="X and y must have as many rows"):
        chunk_members(np.zeros((3, 1)), np.zeros(4), 2, **PEOPLE)


@pytest.mark.parametrize("form", [dense, in_csr, objects, frame])
def test_no_rows_are_empty_chunks(form):
    assert chunks_of(form, []) == [[]] * 5


def homes(table):
    rows = as_rows(table)
    chunks = chunk_members(rows, np.zeros(rows.shape[0]), 20, **PEOPLE)
    return {row: chunk for chunk, members in enumerate(chunks) for row in members}


def in_categories(cells):
    return pd.Series(cells, dtype=object).astype("category").to_frame("c")


@pytest.mark.parametrize(
    ("make", "cells", "odd"),
    [
        (lambda v: pa.table({"a": v, "b": ["x"] * len(v)}), [*range(40)], None),
        (lambda v: pa.record_batch({"a": v}), [2**53 + 1 + k for k in range(40)], None),
        (in_categories, [2**53 + 1, 3] * 20, 2.5),
        (in_categories, [1, 2] * 20, "x"),
    ],
    ids=["table", "batch", "large", "text"],
)
def test_a_cell_of_another_type_moves_no_other_row(make, cells, odd):
    before, after = homes(make(cells)), homes(make([*cells, odd]))
    assert {row: after[row] for row in before} == before


def test_a_table_of_arrow_keeps_the_types_of_its_columns():
    table = pa.table({"a": [1, None], "s": ["x", "y"]})
    found = as_rows(table)
    assert [kind.name for kind in found.dtypes] == ["int64[pyarrow]", "string[pyarrow]"]
    assert found["a"][0] == 1
