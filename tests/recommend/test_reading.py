import os
import stat
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from tacit.recommend import MatrixCompletion
from tacit.recommend.ratings import columns, reading
from tacit.recommend.ratings.reading import checked_range, read_ratings

ROWS = [
    ("ann", "tea", 4),
    ("bob", "tea", 9),
    ("ann", "rum", 2),
    ("eve", "gin", 3),
    ("ann", "tea", 2),
]
TERMS = {"items": ["rum", "tea"], "rating_range": (1, 5)}
FRAME = pd.DataFrame(ROWS, columns=["user", "item", "rating"])
# ann's two teas by their mean, bob's nine clipped, eve's gin unknown
EXPECTED = {"ann": [(0, 2.0), (1, 3.0)], "bob": [(1, 5.0)], "eve": []}


def as_rows(table):
    return {
        user: list(zip(*(part.tolist() for part in table.row(i)), strict=True))
        for i, user in enumerate(table._private_users)
    }


class Stream:
    """A frame of another library: all it can do is give Arrow batches."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def views(frame):
    table = pa.Table.from_pandas(frame)
    return Stream(table.set_column(0, "user", table["user"].cast(pa.string_view())))


SOURCES = {
    "list": ROWS,
    "objects": np.array(ROWS, dtype=object),
    "pandas": FRAME,
    "categories": FRAME.astype({"user": "category", "item": "category"}),
    "unused categories": FRAME.assign(
        user=pd.Categorical(FRAME["user"], ["zoe", "ann", "bob", "eve"])
    ),
    "mixed": FRAME.astype(object),
    "arrow": pa.Table.from_pandas(FRAME),
    "stream": views(FRAME),
    "decimals": FRAME.assign(rating=[Decimal(r) for r in FRAME["rating"]]),
    "narrow": FRAME.astype({"rating": "float32"}),
    "other columns": FRAME.assign(time=0)[["time", "rating", "item", "user"]],
}


@pytest.mark.parametrize("batch", [2, 2**19])
@pytest.mark.parametrize("name", SOURCES)
def test_all_kinds_of_tables_are_read_alike(name, batch, monkeypatch):
    monkeypatch.setattr(columns, "BATCH", batch)
    assert as_rows(read_ratings(SOURCES[name], **TERMS)) == EXPECTED


@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_files_are_read_as_frames_are(suffix, scratch, tmp_path):
    path = tmp_path / f"ratings{suffix}"
    if suffix == ".parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    table = read_ratings(path, scratch=tmp_path if scratch else None, **TERMS)
    assert as_rows(table) == EXPECTED
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_folder_is_read_in_the_order_of_names_each_file_once(tmp_path, monkeypatch):
    for name, part in {"b": FRAME[:3], "a": FRAME[3:], "_marks": FRAME}.items():
        part.to_parquet(tmp_path / f"{name}.parquet")
    read, open_file = [], parquet.ParquetFile

    class Watched(open_file):
        def __init__(self, path, **options):
            super().__init__(path, **options)
            self.name = path.name

        def iter_batches(self, *given, **options):
            read.append(self.name)
            return super().iter_batches(*given, **options)

    monkeypatch.setattr(parquet, "ParquetFile", Watched)
    table = read_ratings(str(tmp_path), **TERMS)
    assert table._private_users == ["eve", "ann", "bob"]
    assert as_rows(table) == EXPECTED
    assert read == ["a.parquet", "b.parquet"]


def test_a_folder_of_parquet_files_may_be_called_like_a_csv_file(tmp_path):
    folder = tmp_path / "ratings.csv"
    folder.mkdir()
    FRAME.to_parquet(folder / "a.parquet")
    assert as_rows(read_ratings(folder, **TERMS)) == EXPECTED
    numbered = FRAME.assign(item=[0, 0, 1, 7, 0])
    numbered.to_parquet(folder / "a.parquet")
    table = read_ratings(folder, items=2, rating_range=(1, 5))
    assert as_rows(table)["ann"] == [(0, 3.0), (1, 2.0)]


def test_labels_in_a_csv_file_are_strings_and_found_by_number_too(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n7,1,3\n007,0,2\nx,1,1\n", encoding="utf-8")
    table = read_ratings(path, items=2, rating_range=(1, 5))
    assert as_rows(table) == {"7": [(1, 3.0)], "007": [(0, 2.0)], "x": [(1, 1.0)]}
    assert [table.position(u) for u in (7, "7", "007", "x", 8, [])] == [
        0,
        0,
        1,
        2,
        -1,
        -1,
    ]


def test_users_are_distinguished_by_any_label():
    rows = [(1, 0, True), ("1", 1, np.float16(2)), (1.0, 1.0, Decimal("3.5"))]
    table = read_ratings(rows, items=2, rating_range=(1, 5))
    assert as_rows(table) == {1: [(0, 1.0), (1, 3.5)], "1": [(1, 2.0)]}


def entries(kind):
    """Return three users and two items, with an entry that is stored twice."""
    if kind == "coo":
        return sparse.coo_array(([3.0, 9.0, 1.0], ([0, 0, 2], [1, 1, 0])), (3, 2))
    if kind == "csr":
        return sparse.csr_array(([3.0, 9.0, 1.0], [1, 1, 0], [0, 2, 2, 3]), (3, 2))
    return sparse.csc_array(([1.0, 3.0, 9.0], [2, 0, 0], [0, 1, 3]), (3, 2))


@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_stored_entries_of_a_matrix_are_ratings_and_count_by_their_mean(
    kind, scratch, tmp_path
):
    table = read_ratings(
        entries(kind),
        items=2,
        rating_range=(1, 5),
        scratch=tmp_path if scratch else None,
    )
    assert as_rows(table) == {0: [(1, 4.0)], 1: [], 2: [(0, 1.0)]}
    assert [table.position(user) for user in (2, 3, -1, "a")] == [2, -1, -1, -1]


def test_rows_of_a_matrix_that_are_unsorted_are_sorted_and_zeros_are_ratings():
    matrix = sparse.csr_array(([0.0, 2.0, -0.0], [2, 0, 1], [0, 3]), (1, 3))
    table = read_ratings(matrix, items=3, rating_range=(-1, 5))
    assert as_rows(table) == {0: [(0, 2.0), (1, 0.0), (2, 0.0)]}


def test_groups_of_users_make_no_difference(seed, monkeypatch, tmp_path):
    rng = np.random.Generator(np.random.PCG64(seed))
    rows = np.column_stack(
        [rng.integers(0, 300, 4000), rng.integers(0, 50, 4000), rng.normal(size=4000)]
    )
    matrix = sparse.coo_array((rows[:, 2], rows[:, :2].astype(int).T), (300, 50))
    terms = {"items": 40, "rating_range": (-1.5, 1.5)}
    whole = read_ratings(rows, **terms)
    by_matrix = as_rows(read_ratings(matrix, items=50, rating_range=(-1.5, 1.5)))
    monkeypatch.setattr(reading, "GROUP_USERS", 7)
    monkeypatch.setattr(columns, "BATCH", 333)
    for scratch in (None, tmp_path):
        few = read_ratings(rows, scratch=scratch, **terms)
        for name in ("indptr", "items", "values"):
            np.testing.assert_array_equal(getattr(few, name), getattr(whole, name))
        few = read_ratings(matrix, items=50, rating_range=(-1.5, 1.5), scratch=scratch)
        assert as_rows(few) == by_matrix


def test_the_order_of_rows_moves_users_and_nothing_else(seed):
    rng = np.random.Generator(np.random.PCG64(seed))
    rows = np.column_stack(
        [rng.integers(0, 30, 900), rng.integers(0, 20, 900), rng.normal(size=900)]
    )
    terms = {"items": 20, "rating_range": (-1.5, 1.5)}
    one = as_rows(read_ratings(rows, **terms))
    assert as_rows(read_ratings(rng.permutation(rows), **terms)) == one
    rows[rows[:, 0] == 4, 2] += 0.1
    moved = as_rows(read_ratings(rows, **terms))
    assert [user for user in one if moved[user] != one[user]] == [4]


def test_no_rating_is_beyond_the_range_after_rounding():
    # 0.1 in 32 bits is above 0.1, and 0.7 in 32 bits below 0.7
    rows = [(0, 0, 9.0), (0, 1, -9.0)]
    values = read_ratings(rows, items=2, rating_range=(-0.1, 0.1)).values
    assert np.abs(values.astype(np.float64)).max() <= 0.1
    assert np.float64(np.float32(0.1)) > 0.1
    values = read_ratings(rows, items=2, rating_range=(0.7, 0.9)).values
    assert values.astype(np.float64).min() >= 0.7


def test_nothing_is_read_from_nothing(tmp_path):
    path = tmp_path / "none.csv"
    path.write_text("user,item,rating\n", encoding="utf-8")
    unended = tmp_path / "unended.csv"
    unended.write_text("user,item,rating", encoding="utf-8")
    for source in ([], path, unended, FRAME[:0], sparse.csr_array((0, 2))):
        table = read_ratings(source, items=2, rating_range=(1, 5), scratch=tmp_path)
        assert (table.n_users, table.n_ratings) == (0, 0)
        assert list(table.blocks()) == []


SECRET = "Rosebud"


@pytest.mark.parametrize("rating", [SECRET, "3", None, np.nan, np.inf, 10**400, 3j])
def test_a_rating_that_is_not_finite_is_rejected_without_quoting_it(rating):
    rows = [("ann", 0, 3), ("bob", 1, rating)]
    for source in (rows, np.array(rows, dtype=object)):
        with pytest.raises(
            ValueError, match=r"^ratings must be finite numbers"
        ) as error:
            read_ratings(source, items=2, rating_range=(1, 5))
        assert SECRET not in str(error.value)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__


@pytest.mark.parametrize("user", [None, np.nan, [1], pd.NA, {}])
def test_a_missing_user_is_rejected(user):
    with pytest.raises(ValueError, match=r"^ratings must have a user in each row"):
        read_ratings([("ann", 0, 3), (user, 1, 2)], items=2, rating_range=(1, 5))


@pytest.mark.parametrize(
    "source",
    [
        FRAME.assign(rating=SECRET),
        FRAME.assign(rating=np.nan),
        pa.table({"user": [1], "item": [0], "rating": [SECRET]}),
        sparse.csr_array(np.array([[np.nan, 0.0]])),
        sparse.coo_array(np.array([[np.inf, 0.0]])),
        np.array([[1.0, 0.0, np.nan]]),
        np.array([["1", "0", "3"]]),
        np.ones((1, 3), dtype=complex),
        sparse.csr_array(np.array([[1j, 0]])),
    ],
)
def test_columns_with_such_ratings_are_rejected(source):
    with pytest.raises(ValueError, match=r"^ratings must be finite numbers"):
        read_ratings(source, items=2, rating_range=(1, 5))


@pytest.mark.parametrize(
    "lines",
    [f"ann,0,{SECRET}", "ann,0,", ",0,3", f"ann,0,3,{SECRET}", "ann,0,nan"],
)
def test_damaged_files_are_rejected_without_quoting_them(lines, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(f"user,item,rating\nbob,1,2\n{lines}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="ratings") as error:
        read_ratings(path, items=2, rating_range=(1, 5))
    assert SECRET not in str(error.value)
    assert error.value.__suppress_context__


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "ratings must be a sparse matrix"),
        (None, "ratings must be a sparse matrix"),
        (["abc"], "ratings must be a sparse matrix"),
        ([b"abc"], "ratings must be a sparse matrix"),
        ([(1, 2)], "ratings must be a sparse matrix"),
        (np.zeros((3, 4)), "ratings must be a sparse matrix"),
        (FRAME[["user", "item"]], "one column 'rating'"),
        (pa.table({"user": [1]}), "one column 'item'"),
        ("nowhere.csv", "no such file"),
        ("nowhere", "no such file"),
        (sparse.csr_array((2, 5)), "a column for each of 2 items"),
        (sparse.dia_array((2, 2)), "not be a sparse matrix in the format 'dia'"),
        (sparse.bsr_array((2, 2)), "not be a sparse matrix in the format 'bsr'"),
        (np.ma.masked_array(np.ones((2, 3))), "not be a masked array"),
        (FRAME["user"], "ratings must be a sparse matrix"),
        (pa.chunked_array([[1, 2]]), "ratings must be a sparse matrix"),
    ],
)
def test_what_has_no_ratings_is_rejected(source, message):
    with pytest.raises(ValueError, match=message):
        read_ratings(source, items=2, rating_range=(1, 5))


def test_other_files_are_rejected(tmp_path):
    with pytest.raises(ValueError, match=r"holds no .parquet files"):
        read_ratings(tmp_path, **TERMS)
    long = "user," + "x" * 200_000
    for name, content, message in (
        ("r.xlsx", "user", "save it"),
        ("r.parquet", "user", "damaged"),
        ("r.csv", long, "one column 'item'"),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_ratings(tmp_path / name, **TERMS)


def test_entries_outside_a_matrix_are_rejected():
    outside = entries("csr")
    outside.indices[0] = 7
    with pytest.raises(ValueError, match="within its shape"):
        read_ratings(outside, items=2, rating_range=(1, 5))
    outside = entries("coo")
    outside.coords[0][0] = 7
    with pytest.raises(ValueError, match="within its shape"):
        read_ratings(outside, items=2, rating_range=(1, 5))


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, 5, "ab", (1,), (5, 1), (1, np.inf), (np.nan, 1), (0, 10**5000)),
        *((1e9, 1e9 + 5), (1e6, 1e6 + 5), (0, 1e-35), (0, 1e31)),
    ],
)
def test_an_invalid_range_is_rejected_and_by_a_plan_too(wrong):
    with pytest.raises(ValueError, match=r"^rating_range must be"):
        read_ratings(ROWS, items=["tea"], rating_range=wrong)
    with pytest.raises(ValueError, match=r"^rating_range must be"):
        MatrixCompletion("svd", 1.0, 1e-6, items=3, rating_range=wrong).plan(100)


def test_a_matrix_of_numpy_and_wide_floats_are_read_as_arrays_are():
    rows = [[7.0, 0.0, 3.0], [8.0, 1.0, 2.0]]
    for source in (np.array(rows).view(np.matrix), np.longdouble(rows)):
        table = read_ratings(source, items=2, rating_range=(1, 5))
        assert as_rows(table) == {7: [(0, 3.0)], 8: [(1, 2.0)]}
    wide = sparse.csr_array(np.array([[3.0, 0.0]], dtype=np.longdouble))
    assert as_rows(read_ratings(wide, items=2, rating_range=(1, 5))) == {0: [(0, 3.0)]}


def test_a_range_far_off_zero_is_kept():
    assert checked_range((1000, np.float32(1005))) == (1000.0, 1005.0)


@pytest.mark.parametrize("columns", ["abc", ("a", "b"), ("a", "a", "b"), (1, 2, 3)])
def test_columns_are_three_names(columns):
    with pytest.raises(ValueError, match=r"^columns must be three names"):
        read_ratings(FRAME, columns=columns, **TERMS)


def test_scratch_files_have_no_name_and_are_the_owners(tmp_path, monkeypatch):
    seen = []
    make = reading._unnamed_file

    def watched(scratch):
        file = make(scratch)
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        return file

    monkeypatch.setattr(reading, "_unnamed_file", watched)
    table = read_ratings(ROWS, scratch=tmp_path, **TERMS)
    assert seen == [0o600] * 3
    assert list(tmp_path.iterdir()) == []
    assert as_rows(table) == EXPECTED
    assert isinstance(table.items.base, np.memmap)


def test_an_invalid_scratch_folder_is_rejected(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"^scratch must be an existing folder"):
        read_ratings(ROWS, scratch=tmp_path / "nowhere", **TERMS)

    def full(**terms):
        raise OSError

    monkeypatch.setattr(reading.tempfile, "TemporaryFile", full)
    with pytest.raises(ValueError, match=r"^scratch must be a writable folder"):
        read_ratings(ROWS, scratch=tmp_path, **TERMS)


@pytest.mark.parametrize("odd", [np.timedelta64(3, "s"), np.timedelta64(3)])
@pytest.mark.parametrize("items", [3, ["a", "b"]])
def test_a_span_of_time_is_no_item_user_or_rating(odd, items):
    first = items[0] if isinstance(items, list) else 0
    table = read_ratings(
        [("ann", first, 3), ("bob", odd, 3)], items=items, rating_range=(1, 5)
    )
    assert [len(table.row(user)[0]) for user in (0, 1)] == [1, 0]
    with pytest.raises(ValueError, match="finite numbers"):
        read_ratings([("ann", first, odd)], items=items, rating_range=(1, 5))


def test_a_number_finds_no_user_called_like_it_outside_of_csv_files():
    table = read_ratings([("7", 0, 3), (8, 0, 2)], items=1, rating_range=(1, 5))
    assert [table.position(user) for user in (7, "7", 8, "8")] == [-1, 0, 1, -1]
