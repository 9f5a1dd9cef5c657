"""In a CSV file a line is a row: what is in one of its cells changes no other row."""

from time import perf_counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.data._files import csv_file
from tacit.tables import Column, Schema, TableError, draft, read_rows
from tacit.tables._text import NUMBER

SCHEMA = Schema(
    (
        Column("age", "number", (0, 100), missing=50),
        Column("note", "ignore"),
        Column("ill", "category", categories=("no", "yes"), unseen="other"),
    )
)
HEADER = "age,note,ill"
MANY = "1" * 100_000
LINES = [f"{i % 90},x{i},{'no' if i % 3 else 'yes'}" for i in range(40)]


def read(path, lines, end="\n", last="\n", **options):
    path.write_bytes((end.join([HEADER, *lines]) + last).encode(errors="surrogatepass"))
    return read_rows(path, SCHEMA, with_target=False, **options).X


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("lines") / "t.csv"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('5,x,"', "a quote in it is not closed"),
        ('5,"x,no', "a quote in it is not closed"),
        ('5,x"y,no', "a quote in a cell is written twice, within quotes"),
        ('5,x""y,no', "does not enclose a whole cell"),
        ('5,"x"y,no', "does not enclose a whole cell"),
        ('5, "x",no', "does not enclose a whole cell"),
        ('5,"x" ,no', "does not enclose a whole cell"),
        ('5,"x""y,no', "a quote in it"),
        ("5,x\r7,1,no", "carriage return alone"),
        ('5,"x\r7,1",no', "carriage return alone"),
        ("5,x,no\r\r", "carriage return alone"),
        ('5,"x\n7,1",no', "a quote in it is not closed"),
        ("", "an empty line"),
        ("\r", "an empty line"),
        ("5,x", "as many fields as the header"),
        ("5,x,no,7", "as many fields as the header"),
        ("5,x\0y,no", "not text in utf8"),
    ],
)
@pytest.mark.parametrize("position", [0, 5, 38, 39])
def test_a_line_that_could_reach_others_is_refused(path, line, words, position):
    lines = [*LINES[:position], line, *LINES[position + 1 :]]
    with pytest.raises(TableError, match=words) as error:
        read(path, lines, end="\n" if "\r" in line else "\r\n")
    assert str(error.value).startswith(f"{path}: ")
    if "field" not in words and "empty" not in words:  # a draft is read as strictly
        with pytest.raises(TableError, match=words):
            draft(path)


def test_a_quote_that_a_later_cell_would_close_is_refused(path):
    lines = [*LINES[:5], '5,"x,no', *LINES[6:20], '7,x",no', *LINES[21:]]
    with pytest.raises(TableError, match="a quote in it is not closed"):
        read(path, lines)


@pytest.mark.parametrize(
    "cell",
    ['"x,y"', '""', '""""', '"""x"""', '","', "x\x85y", "x\u2028y", "\ufeffx", "x'y"],
)
@pytest.mark.parametrize("block", [40, 2**20])
def test_cells_that_stay_in_their_line_are_read(path, monkeypatch, cell, block):
    monkeypatch.setattr(csv_file, "BLOCK", block)
    whole = read(path, LINES)
    lines = [*LINES[:5], f"{5},{cell},{'no'}", *LINES[6:]]
    assert np.array_equal(read(path, lines), whole)
    assert np.array_equal(read(path, lines, "\r\n", "\r\n"), whole)


@pytest.mark.parametrize("block", [40, 2**20])
@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("", r"does not end in a line feed.* such as by `echo >> FILE`"),
        ("\n\n", "an empty line"),
        ("\n\r\n", "an empty line"),
        ("\n\n\n", "an empty line"),
        ("\r", "does not end in a line feed"),
    ],
)
def test_the_end_of_a_file_cannot_hide_a_row(path, monkeypatch, last, words, block):
    monkeypatch.setattr(csv_file, "BLOCK", block)
    with pytest.raises(TableError, match=words):
        read(path, LINES, last=last)


def test_a_mark_at_the_beginning_of_a_line_is_read_alike_anywhere(path, monkeypatch):
    # pyarrow drops the mark where a block begins, which other lines decide
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    for before in range(0, 56, 4):
        lines = [f"5,{'x' * before},no", "\ufeff7,x,no", *LINES[:3]]
        with pytest.raises(TableError, match="holds text"):
            read(path, lines)


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-7", b"+AAo-"),
        ("unicode_escape", b"\\n"),
        ("raw_unicode_escape", b"\\u000a"),
        ("hz", b"~{"),
        ("iso2022_jp_2", b"\x1b.A"),
        ("iso2022_kr", b"\x0e"),
        ("idna", b"x"),
        ("punycode", b"x"),
    ],
)
def test_encodings_in_which_a_cell_reaches_other_lines_are_refused(
    path, encoding, note
):
    path.write_bytes(b"age,note,ill\n1,x,no\n5," + note + b",no\n6,x,no\n")
    with pytest.raises(TableError, match="reads each line by itself"):
        read_rows(path, SCHEMA, with_target=False, encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("block", [60, 2**20])
def test_lines_in_other_encodings_are_as_strict(path, monkeypatch, encoding, block):
    monkeypatch.setattr(csv_file, "BLOCK", block)
    lines = ['"age",note,ill', *LINES, '3,"é, é",no']
    path.write_bytes("\n".join([*lines, ""]).encode(encoding))
    X = read_rows(path, SCHEMA, with_target=False, encoding=encoding).X
    assert len(X) == 41
    path.write_bytes("\n".join([*lines, '3,"é,no', *LINES]).encode(encoding))
    with pytest.raises(TableError, match="a quote in it is not closed"):
        read_rows(path, SCHEMA, with_target=False, encoding=encoding)


def test_a_line_that_is_too_long_is_refused(path):
    long = "x" * (csv_file.BLOCK - 100)
    assert len(read(path, [*LINES, f"3,{long},no"])) == 41
    for text in (long, f'"{long}"'):
        with pytest.raises(TableError, match="a line of it is too long"):
            read(path, [*LINES, f"3,{text * 2},no", *LINES])


def test_which_lines_are_too_long_does_not_depend_on_others(path, monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    for before in range(0, 50, 3):
        lines = [HEADER, f"5,{'x' * before},no", f"5,{'é' * 40},no", *LINES[:3], ""]
        path.write_bytes("\n".join(lines).encode("cp1252"))
        with pytest.raises(TableError, match="a line of it is too long"):
            read_rows(path, SCHEMA, with_target=False, encoding="cp1252")


nasty = st.text(
    alphabet=st.sampled_from(" \",;\r\t\0\\'a1é\x85\u2028\ufeff"), max_size=8
)
cells = nasty | nasty.map(lambda text: '"' + text.replace('"', '""') + '"')
changed = cells | st.builds(
    lambda number, note, ill: f"{number},{note},{ill}",
    st.integers(0, 100) | cells,
    cells,
    st.sampled_from(["no", "yes", ""]) | cells,
)


@settings(max_examples=60)
@given(changed, st.integers(0, 11), st.sampled_from([40, 90, 2**20]))
@example('7,x,"', 5, 2**20)
@example("7,x,x\r7,1,y", 5, 40)
@example('7,"x,no', 11, 40)
@example("", 11, 2**20)
def test_another_line_changes_no_other_row(path, line, position, block):
    lines = LINES[:12]
    whole = read(path, lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv_file, "BLOCK", block)
        try:
            X = read(path, [*lines[:position], line, *lines[position + 1 :]])
        except TableError:
            return
    others = np.arange(12) != position
    assert X.shape == whole.shape
    assert np.array_equal(X[others], whole[others])


def test_a_row_more_than_lines_would_be_noticed(path, monkeypatch):
    read_csv = csv_file.csv.read_csv
    read(path, LINES)

    def one_less(*given):
        return read_csv(*given).slice(1)

    file = csv_file.CSVFile.open(path, "utf-8", None)
    monkeypatch.setattr(csv_file.csv, "read_csv", one_less)
    with pytest.raises(TableError, match="cannot be read as CSV"):
        list(file.read({"age": "number"}, 10))


@pytest.mark.parametrize("text", [MANY + "x", f"{MANY}.{MANY}e"])
def test_long_digits_are_no_number_in_linear_time(text):
    start = perf_counter()
    assert NUMBER.fullmatch(text) is None
    assert NUMBER.fullmatch(text[:-1]) is not None
    # tens of seconds where the time grows with the square
    assert perf_counter() - start < 1.0


@pytest.mark.parametrize("text", ["1", "+1.", "-.5", "1.5e3", ".5E-07", "007", "1e+9"])
def test_numbers_are_numbers(text):
    assert NUMBER.fullmatch(text) is not None


@pytest.mark.parametrize(
    "text", ["", ".", "1.2.3", "e5", "+", "1e", "1_0", "0x1", " 1"]
)
def test_other_texts_are_no_numbers(text):
    assert NUMBER.fullmatch(text) is None
