"""What ``tacit recommend`` refuses: in one sentence, and nothing is charged for it."""

import json
import shutil

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from tests.cli.labeling import run_once
from tests.cli.recommending import (
    FILMS,
    as_table,
    charges,
    fit,
    head_of,
    position,
    ratings,
    write_csv,
)

from tacit.cli._small_files import columns_of

# A value that no message may quote
SECRET = "48151623.42x"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return position(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def films(tables, tmp_path, monkeypatch):
    copy = shutil.copytree(tables, tmp_path / "films")
    monkeypatch.chdir(copy)
    return copy


def snapshot(folder):
    """Return every file with its contents, and how the ledger ends."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    kept = {p: p.read_bytes() for p in files if "budget" not in p.name}
    return kept, head_of(folder)


def one_sentence(answer, words):
    assert answer.code == 2, answer.err
    # a weak budget is a warning of its own line, whatever comes after it
    said = [line for line in answer.err.splitlines() if "tacit: warning: " not in line]
    assert len(said) == 1
    assert words in said[0]
    assert SECRET[:6] not in answer.err
    assert "Unexpected" not in answer.err


def nothing(films):
    pass


def rating_of_text(films):
    write_csv(films / "ratings.csv", [*ratings()[:50], ("user 1", "film 1", SECRET)])


def rating_of_nan(films):
    rows = [*ratings()[:50], ("user 1", "film 1", float("nan"))]
    parquet.write_table(as_table(rows), films / "ratings.csv")
    shutil.move(films / "ratings.csv", films / "nan.parquet")


def no_user(films):
    write_csv(films / "ratings.csv", [*ratings()[:50], ("", "film 1", 3)])


def other_columns(films):
    write_csv(films / "ratings.csv", ratings()[:50], ("who", "what", "stars"))


def no_ratings(films):
    write_csv(films / "ratings.csv", [])


def damaged(films):
    (films / "x.parquet").write_bytes(b"PAR1" + SECRET.encode())


def films_twice(films):
    (films / "films.txt").write_text("a\nb\na\n")


def empty_label(films):
    (films / "films.txt").write_text("a\n\nb\n")


def no_films(films):
    (films / "films.txt").write_text("")


def a_side_that_is_none(films):
    (films / "side").mkdir()
    (films / "side" / "letter").write_text("precious")


def a_file(films):
    (films / "side").write_text("precious")


CASES = {
    "no file": (nothing, {"source": "no.csv"}, "no such file"),
    "another kind of file": (nothing, {"source": "films.txt"}, "public list"),
    "a damaged file": (damaged, {"source": "x.parquet"}, "damaged"),
    "text for a rating": (rating_of_text, {}, "no number"),
    "a rating that is none": (rating_of_nan, {"source": "nan.parquet"}, "finite"),
    "a rating of nobody": (no_user, {}, "user in each row"),
    "other columns": (other_columns, {}, "one column 'user'"),
    "no ratings": (no_ratings, {}, "at least one user is needed"),
    "items twice": (films_twice, {}, "without duplicates"),
    "an item without a name": (empty_label, {}, "without duplicates"),
    "no items": (no_films, {}, "at least one item"),
    "no place": (nothing, {"out": None}, "--out must name"),
    "no folder around it": (nothing, {"out": "a/b/side"}, "is not a folder"),
    "over the ratings": (nothing, {"out": "."}, "is inside --out"),
    "something else there": (a_side_that_is_none, {}, "already exists"),
    "a file there": (a_file, {}, "already exists"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_or_folder_is_rejected(case, films, run):
    spoil, given, words = CASES[case]
    spoil(films)
    before = snapshot(films)
    one_sentence(run(*fit(films, **given)), words)
    assert snapshot(films) == before


OPTIONS = {
    "no delta": (("--delta", 0), "delta"),
    "a negative epsilon": (("--epsilon", -1), "epsilon"),
    "a range upside down": (("--range", 5, 1), "rating_range"),
    "an endless range": (("--range", 0, "inf"), "rating_range"),
    "no items": (("--items", 0), "items"),
    "the ratings as items": (("--items", "ratings.csv"), "which of them were rated"),
    "more items than are counted": (("--items", "7" * 5000), "--items must"),
    "a folder of items": (("--items", "parts"), "is a folder"),
    "no rank": (("--rank", 0), "--rank"),
    "no ratings of a user": (("--max-ratings", 0), "--max-ratings"),
    "no users": (("--expected-users", 0), "expected_users"),
    "an unknown solver": (("--solver", "oracle"), "--solver"),
    "a parameter it has not": (("--set", "depth=3"), "parameter 'depth'"),
    "a parameter with an option": (("--set", "epsilon=3"), "use --epsilon"),
    "half a parameter": (("--set", "rank"), "--set must have the form"),
    "text for a number": (("--solver", "svd", "--set", "row_norm=x"), "row_norm"),
    "no seed": (("--set", "random_state=-3"), "random_state"),
    "no kind of noise": (("--set", "noise=loud"), "noise"),
    "the same column twice": (("--columns", "user", "user", "rating"), "columns"),
    "a label that cannot be shown": (("--label", "a\nb"), "--label"),
    "a plan for nobody": (("--plan",), "--expected-users"),
    "an account that is not there": (("--dataset", "other"), "other"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_bad_option_is_rejected(case, films, run):
    more, words = OPTIONS[case]
    before = snapshot(films)
    one_sentence(run(*fit(films, *more)), words)
    assert snapshot(films) == before


def test_no_account_is_kept_only_where_requested(films, run):
    given = [x for x in fit(films) if "sqlite" not in str(x) and x != "--ledger"]
    one_sentence(run(*given), "--no-ledger")
    assert run(*given, "--no-ledger").code == 0
    assert charges(films) == []


def test_what_the_budget_cannot_afford_is_rejected(films, run):
    before = snapshot(films)
    answer = run(*fit(films, epsilon=200))
    assert answer.code == 3
    assert snapshot(films) == before


def test_a_ledger_of_other_neighbors_is_rejected(films, run):
    before = snapshot(films)
    assert run(*fit(films, "--neighbors", "add_or_remove_one")).code != 0
    assert snapshot(films) == before


def test_a_folder_of_something_else_is_not_replaced_by_force(films, run):
    a_side_that_is_none(films)
    one_sentence(run(*fit(films, "--force")), "no side")
    assert charges(films) == []


def test_a_folder_that_cannot_be_written_to_is_rejected(films, run, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.cli._output_files.TemporaryFile", full)
    before = snapshot(films)
    one_sentence(run(*fit(films)), "No space left")
    assert snapshot(films) == before


def test_a_fit_that_fails_stays_charged_and_leaves_nothing(films, run, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.cli._recommending.write_side", fail)
    one_sentence(run(*fit(films)), "No space left")
    assert len(charges(films)) == 1
    assert not (films / "side").exists()


@pytest.fixture(scope="module")
def done(tables, tmp_path_factory):
    folder = shutil.copytree(tables, tmp_path_factory.mktemp("done") / "films")
    run_once(fit(folder))
    return folder


OWN = {
    "text for a rating": f"item,rating\nfilm 1,{SECRET}\n",
    "no number": "item,rating\nfilm 1,nan\n",
    "an endless rating": "item,rating\nfilm 1,inf\n",
    "no rating": "item,rating\nfilm 1,\n",
    "ragged lines": f"item,rating\nfilm 1,2,{SECRET}\n",
    "no columns": "film 1,3\n",
    "the same column twice": "item,rating,item\nfilm 1,3,film 2\n",
    "nothing": "",
    "half an object": '{"film 1": 3',
    "a list of numbers": "[1, 2, 3]",
    "text in an object": json.dumps({"film 1": SECRET}),
    "truth in an object": '{"film 1": true}',
    "nothing in an object": '{"film 1": null}',
    "no number in an object": '{"film 1": NaN}',
    "lists as items": '[[["film 1"], 3]]',
    "other names": '[{"film": "film 1", "stars": 3}]',
    "a deep nest": "[" * 100_000,
    "half a Parquet file": "PAR1" + SECRET,
}


@pytest.mark.parametrize("case", OWN)
@pytest.mark.parametrize("command", ["row", "top"])
def test_bad_ratings_of_ones_own_are_rejected(command, case, done, tmp_path, run):
    (tmp_path / "mine").write_text(OWN[case])
    answer = run("recommend", command, done / "side", tmp_path / "mine")
    one_sentence(answer, "MINE must")


def test_files_of_rows_are_rejected_before_anything_is_read(done, tmp_path, run):
    mine = done / "mine.csv"

    def row(side, mine, *more):
        return run("recommend", "row", side, mine, *more)

    one_sentence(row(done / "side", tmp_path / "no.csv"), "No such file")
    one_sentence(row(done / "side", tmp_path), "is a folder")
    one_sentence(row(tmp_path, mine), "side.json is missing")
    one_sentence(row(tmp_path / "no", mine), "no such folder")
    there = ("--out", tmp_path / "r.txt")
    one_sentence(row(tmp_path / "no", mine, *there), "--out must end in")
    there = ("--out", done / "side" / "r.csv")
    one_sentence(row(done / "side", mine, *there), "already used by this command")
    one_sentence(row(done / "side", mine, "--out", mine, "--force"), "already used")
    one_sentence(row(done / "side", mine, "--out", tmp_path / "a" / "r.csv"), "--out")


def test_too_much_of_ones_own_is_rejected(done, run, monkeypatch):
    monkeypatch.setattr("tacit.cli._small_files.MOST_BYTES", 10)
    answer = run("recommend", "top", done / "side", done / "mine.csv")
    one_sentence(answer, "at most 10 bytes")


def test_a_forged_side_is_rejected_in_one_sentence(done, tmp_path, run):
    side = shutil.copytree(done / "side", tmp_path / "side")
    (side / "weights.npz").write_bytes(b"x")
    for given in (("recommend", "top", side, done / "mine.csv"), ("report", side)):
        one_sentence(run(*given), "weights.npz")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "[1, 2.5]"),
        ("a.json", "[[1]]"),
        ("a.json", "[1,"),
        ("a.csv", "film\na\n"),
        ("a.json", '["a", "b", "c", "\\ud800"]'),  # half a character
        ("a.json", '["a", "b\\u0000"]'),
        ("a.json", "[" + "7" * 5000 + "]"),
        ("a.txt", b"\xff\xfe\x00"),
        ("a.parquet", "PAR1"),
    ],
)
def test_a_bad_list_of_items_is_rejected(name, content, films, run):
    path = films / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    one_sentence(run(*fit(films, "--items", path)), "--items must")
    assert charges(films) == []


def test_missing_labels_in_a_list_of_items_are_rejected(films, run):
    table = pa.table({"item": pa.array([*FILMS, None])})
    parquet.write_table(table, films / "f.parquet")
    one_sentence(run(*fit(films, "--items", films / "f.parquet")), "--items must")


def test_a_part_of_the_ratings_is_not_a_list_of_items(films, run):
    (films / "link.parquet").symlink_to(films / "parts" / "part-1.parquet")
    (films / "name.parquet").hardlink_to(films / "parts" / "part-1.parquet")
    for name in ("parts/part-1.parquet", "link.parquet", "name.parquet"):
        answer = run(*fit(films, "--items", films / name, source="parts"))
        one_sentence(answer, "which of them were rated")
    assert charges(films) == []


def test_labels_of_too_many_digits_are_strings(films, run):
    (films / "long.txt").write_text("7" * 5000 + "\n" + "8" * 30 + "\n")
    side = run(*fit(films, "--items", films / "long.txt"))
    assert side.code == 0, side.err
    told = json.loads((films / "side" / "items.json").read_text())
    assert told == {"items": ["7" * 5000, "8" * 30]}


def test_items_whose_list_could_not_be_saved_are_rejected(films, run, monkeypatch):
    monkeypatch.setattr("tacit.persistence._sides.MOST_JSON", 100)
    one_sentence(run(*fit(films)), "--items must be fewer")
    assert charges(films) == []


def test_invalid_text_in_a_list_of_items_is_rejected(films, run):
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")
    )
    parquet.write_table(pa.table({"item": broken}), films / "f.parquet")
    one_sentence(run(*fit(films, "--items", films / "f.parquet")), "--items must")
    assert charges(films) == []


def test_small_files_are_read_from_memory_that_threads_may_free_late(monkeypatch):
    # bytes of Python need its lock, and abort a process that ends meanwhile
    given = []
    for module, name in ((csv, "read_csv"), (parquet, "read_table")):
        whole = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda held, *rest, whole=whole, **more: (
                given.append(held) or whole(held, *rest, **more)
            ),
        )
    held = pa.BufferOutputStream()
    parquet.write_table(pa.table({"item": ["a"]}), held)
    for content in (b"item\na\n", held.getvalue().to_pybytes()):
        assert columns_of(content, ".csv", ["item"], "--items") == [["a"]]
    assert [type(buffer) for buffer in given] == [pa.Buffer] * 2
