"""Bad files at the command line: one clear message each, and the ledger untouched."""

import os
import signal
import subprocess
import sys
from io import BytesIO

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.cli.story import fit_arguments, ledger_of


def text(path):
    return path.read_text("utf-8")


def truncated_parquet(folder):
    path = folder / "census.parquet"
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(folder / "census.csv"), path)
    path.write_bytes(path.read_bytes()[:-200])
    return path


def no_parquet_at_all(folder):
    path = folder / "census.parquet"
    path.write_text("age,female\n30,no\n")
    return path


def changed(change):
    """Return a maker of a CSV file whose text was changed."""

    def make(folder):
        path = folder / "changed.csv"
        path.write_text(change(text(folder / "census.csv")), "utf-8")
        return path

    return make


def of_line(number, change):
    def apply(whole):
        lines = whole.splitlines()
        lines[number] = change(lines[number])
        return "\n".join(lines) + "\n"

    return changed(apply)


def first_cell(value):
    return of_line(7, lambda line: ",".join([value, *line.split(",")[1:]]))


def encoded(encoding):
    def make(folder):
        path = folder / "encoded.csv"
        whole = text(folder / "census.csv").replace("bachelor", "bachelür", 40)
        path.write_bytes(whole.encode(encoding))
        return path

    return make


def nothing(folder):
    return folder / "nowhere.csv"


CASES = {
    "missing file": (nothing, "nowhere.csv"),
    "truncated parquet": (truncated_parquet, "census.parquet"),
    "no parquet at all": (no_parquet_at_all, "census.parquet"),
    "empty file": (changed(lambda whole: ""), "changed.csv"),
    "header only": (changed(lambda whole: whole.splitlines()[0] + "\n"), "no rows"),
    "a column is missing": (
        changed(lambda whole: whole.replace('"age"', '"years"', 1)),
        "age",
    ),
    "a column too many": (of_line(0, lambda line: line + ',"extra"'), "changed.csv"),
    "a column twice": (
        changed(lambda whole: whole.replace('"region"', '"age"', 1)),
        "age",
    ),
    "a row too long": (of_line(9, lambda line: line + ",3"), "changed.csv"),
    "latin-1": (encoded("latin-1"), "encoding"),
    "utf-16": (encoded("utf-16"), "encod"),
    "text for a number": (first_cell("ancient"), "'age'"),
    "a formula for a number": (first_cell("=1+1"), "'age'"),
    "a formula for a category": (
        changed(lambda whole: whole.replace('"owner"', '"=HYPERLINK()"', 3)),
        "'housing'",
    ),
    "an unseen category": (
        changed(lambda whole: whole.replace('"owner"', '"squatter"', 3)),
        "'housing'",
    ),
    "NaN": (first_cell("NaN"), "'age'"),
    "a missing number": (first_cell(""), "'age'"),
    "infinity": (first_cell("inf"), "'age'"),
    "a label outside": (
        of_line(7, lambda line: line.rsplit(",", 1)[0] + ',"maybe"'),
        "'high_income'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_gets_one_message_and_charges_nothing(census, run, case):
    make, words = CASES[case]
    data = make(census)
    arguments = list(fit_arguments(census))
    arguments[1] = data
    before = ledger_of(census).head
    answer = run(*arguments)
    assert answer.code == 2, answer.out + answer.err
    assert words in answer.err
    assert answer.err.count("\n") == 1
    for value in ("ancient", "squatter", "HYPERLINK", "=1+1", "maybe"):
        assert value not in answer.err.replace(str(data), "")
    assert ledger_of(census).head == before
    assert not (census / "model").exists()


def test_the_file_is_fine_before_it_is_made_bad(census, run):
    arguments = list(fit_arguments(census))
    arguments[1] = changed(lambda whole: whole)(census)
    assert run(*arguments).code == 0


def test_a_full_disk_for_the_model_is_said_before_the_charge(census, run, monkeypatch):
    class Full(BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        "tacit.cli._output_files.TemporaryFile", lambda **position: Full()
    )
    before = ledger_of(census).head
    answer = run(*fit_arguments(census))
    assert answer.code == 2
    assert "No space left" in answer.err
    assert ledger_of(census).head == before


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX systems")
def test_an_interrupted_fit_leaves_a_sound_ledger_and_no_half_model(census):
    arguments = map(str, fit_arguments(census, "--solver", "noisy_gd"))
    before = ledger_of(census).head
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_FIT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "charged\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Charges made before the interrupt still count" in said
    ledger = ledger_of(census)
    assert ledger.verify().findings == ()
    assert ledger.head[0] == before[0] + 1
    assert [path.name for path in census.iterdir() if path.is_dir()] == []


# the charge comes first; the run then takes a minute
SLOW_FIT = """
import signal, sys, time
# whoever runs the tests in the background has children ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
from tacit.cli import main
from tacit.solvers import NoisyGD
def run(self, plan, rows, rng):
    print("charged", flush=True)
    time.sleep(60)
NoisyGD.run = run
main(sys.argv[1:])
"""
