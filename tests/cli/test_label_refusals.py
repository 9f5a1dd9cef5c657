"""What ``tacit label`` refuses: in one sentence, charged nothing, changed nothing."""

import shutil
from contextlib import chdir

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.labeling import N_PUBLIC, people, position, run_once, write_csv
from tests.cli.streaming import AGE, ILL, PAY, SEX, head_of

from tacit.tables import Column, Schema

STUDENT = ("--labels", "labels.csv", "--out", "student")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return position(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def ward(tables, tmp_path, monkeypatch):
    copy = shutil.copytree(tables, tmp_path / "ward")
    monkeypatch.chdir(copy)
    return copy


def label(*more, state="state", outputs=STUDENT, tables=("private.csv", "public.csv")):
    """Return a command whose budget, account and outputs can be given otherwise."""
    return (
        *("label", *tables, "--schema", "t.toml", "--state", state, *outputs),
        *("--epsilon", 2, "--delta", 1e-6, "--teachers", 20, "--quiet"),
        *("--ledger", "sqlite:///budget.db", *more),
    )


def snapshot(folder):
    """Return every file with its contents, and how the ledger ends."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    kept = {p: p.read_bytes() for p in files if "budget" not in p.name}
    return kept, head_of(folder)


def notes(ward):
    (ward / "notes").mkdir()
    (ward / "notes" / "todo").write_text("x")


def no_labels(ward):
    write_csv(ward / "private.csv", people(50, 0), leave_out=["ill"])


def other_labels(ward):
    rows = people(50, 0)
    rows[3]["ill"] = "perhaps"
    write_csv(ward / "private.csv", rows)


def no_rows(ward):
    (ward / "private.csv").write_text("who,age,sex,pay,ill\n")


def half_a_public_table(ward):
    write_csv(ward / "public.csv", people(9, 1), leave_out=["ill", "pay"])


def text_in_public(ward):
    rows = people(9, 1)
    rows[3]["age"] = "old"
    write_csv(ward / "public.csv", rows, leave_out=["ill"])


def votes_there(ward):
    rows = [{**row, "ill=yes": 3} for row in people(9, 1)]
    write_csv(ward / "public.csv", rows, leave_out=["ill"])


def one_public_row(ward):
    write_csv(ward / "public.csv", people(1, 1), leave_out=["ill"])


def lists_in_public(ward):
    rows = [{**row, "who": [1]} for row in people(9, 1)]
    parquet.write_table(pa.Table.from_pylist(rows), ward / "public.parquet")


LISTS = ("private.csv", "public.parquet")


def unconfirmed(ward):
    age = Column("age", "number", range=(0, 100), source="data")
    Schema((age, SEX, PAY), target=ILL).save(ward / "t.toml")


def unknown_column(ward):
    Schema((AGE, SEX, PAY), target=ILL).save(ward / "t.toml")


def there_already(ward):
    (ward / "labels.csv").write_text("precious")


def nothing(ward):
    pass


CASES = {
    "no private file": (nothing, {"tables": ("no.csv", "public.csv")}, "no such file"),
    "no public file": (nothing, {"tables": ("private.csv", "no.csv")}, "no such file"),
    "no public table": (nothing, {"tables": ("private.csv",)}, "PUBLIC is missing"),
    "private without labels": (no_labels, {}, "no column 'ill'"),
    "labels of another kind": (other_labels, {}, "'ill'"),
    "no private rows": (no_rows, {}, "no rows"),
    "public without a column": (half_a_public_table, {}, "no column 'pay'"),
    "text in a public number": (text_in_public, {}, "'age'"),
    "one row for a student": (one_public_row, {}, "at least 2 rows"),
    "lists in a text file": (lists_in_public, {"tables": LISTS}, "file cannot contain"),
    "a schema nobody confirmed": (unconfirmed, {}, "not confirmed"),
    "a column without a schema": (unknown_column, {}, "'who'"),
    "no outputs": (nothing, {"outputs": ()}, "--labels or --output"),
    "state among other files": (notes, {"state": "notes"}, "--state"),
    "state in a file": (nothing, {"state": "t.toml"}, "--state"),
    "labels there already": (there_already, {}, "already exists"),
}
OPTIONS = {
    "no delta": (("--delta", 0), "delta"),
    "a negative epsilon": (("--epsilon", -1), "epsilon"),
    "no teachers": (("--teachers", 0), "teachers"),
    "half a teacher": (("--teachers", "0.5"), "--teachers"),
    "too many questions": (("--queries", N_PUBLIC + 1), "--queries"),
    "a teacher of numbers": (
        ("--teacher", "linear"),
        "--teacher linear cannot predict",
    ),
    "a student of numbers": (
        ("--student", "linear"),
        "--student linear cannot predict",
    ),
    "an unknown teacher": (("--teacher", "oracle"), "--teacher"),
    "a parameter it has not": (("--set-teacher", "depth=3"), "no parameter 'depth'"),
    "a bad parameter": (("--set-teacher", "C=-3"), "--set-teacher"),
    "a seed of teachers": (("--set-teacher", "random_state=3"), "random_state"),
    "half a parameter": (("--set-teacher", "C"), "--set-teacher must have the form"),
    "a bad student": (
        ("--student", "tree", "--set-student", "depth=3"),
        "no parameter 'depth'",
    ),
    "settings of no student": (("--set-student", "depth=3"), "needs --student"),
    "a teacher that cannot learn": (
        ("--teacher", "knn", "--set-teacher", "n_neighbors=50"),
        "synthetic rows",
    ),
    "a teacher that cannot split": (
        ("--teacher", "boosting", "--set-teacher", "min_samples_leaf=15"),
        "use fewer --teachers, or another --teacher",
    ),
    "a student that cannot split": (
        ("--student", "boosting", "--set-student", "min_samples_leaf=40"),
        "use more --queries, or another --student",
    ),
    "a parameter with an option": (("--set", "n_queries=3"), "use --queries"),
    "an unknown parameter": (("--set", "magic=3"), "no parameter 'magic'"),
    "no seed": (("--set", "random_state=abc"), "random_state"),
    "an unknown mechanism": (("--mechanism", "magic"), "'confident_gnmax'"),
    "votes on numbers": (("--mechanism", "median"), "mechanism"),
    "votes that are not told": (("--votes", "--mechanism", "stable"), "--votes"),
    "ids with replaced rows": (("--ids", "who"), "--ids"),
    "ids of nobody": (
        ("--ids", "name", "--neighbors", "add_or_remove_one"),
        "no column 'name'",
    ),
    "labels only with a table": (("--labels-only",), "leave PUBLIC out"),
    "an unknown account": (("--dataset", "elsewhere"), "elsewhere"),
    "a bad label": (("--label", ""), "--label"),
    "a bad encoding": (("--encoding", "utf-16"), ".csv"),
    "a bad delimiter": (("--delimiter", "|"), "no column"),
    "no jobs": (("--jobs", 0), "jobs"),
    "labels as text": (("--labels", "labels.txt"), "--labels must end in"),
    "labels in no folder": (("--labels", "no/labels.csv"), "--labels"),
    "labels over the rows": (("--labels", "private.csv"), "--labels"),
    "labels over the public": (("--labels", "public.csv"), "--labels"),
    "labels in the state": (("--labels", "state/labels.csv"), "--state"),
    "a student in the state": (("--out", "state/student"), "--state"),
    "a student around the state": (("--out", ".", "--force"), "--out"),
    "a student over a folder": (
        ("--out", "notes", "--force"),
        "notes contains no student",
    ),
    "a student for nobody": (("--student", "none"), "--student none"),
}


def rejected(run, ward, given, words):
    before = snapshot(ward)
    answer = run(*given)
    assert answer.code == 2, answer.out + answer.err
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert snapshot(ward) == before
    assert not (ward / "state").exists()


@pytest.mark.parametrize("case", CASES)
def test_files_that_cannot_be_used_are_rejected_before_the_charge(ward, run, case):
    change, given, words = CASES[case]
    change(ward)
    rejected(run, ward, label(**given), words)


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_cannot_be_used_are_rejected_before_the_charge(ward, run, case):
    notes(ward)
    more, words = OPTIONS[case]
    rejected(run, ward, label(*more), words)


def test_votes_that_are_there_already_are_rejected(ward, run):
    votes_there(ward)
    rejected(run, ward, label("--votes"), "'ill=yes'")


def test_what_the_ledger_cannot_pay_is_rejected(ward, run):
    before = snapshot(ward)
    answer = run(*label("--epsilon", 50))
    assert answer.code == 3
    assert snapshot(ward) == before
    assert not (ward / "state").exists()


def test_a_ledger_must_be_named_or_left_out(ward, run):
    given = [g for g in label() if g not in ("--ledger", "sqlite:///budget.db")]
    assert "--no-ledger" in run(*given).err


def other_public(ward):
    write_csv(ward / "public.csv", people(N_PUBLIC, 2), leave_out=["ill"])


def other_private(ward):
    write_csv(ward / "private.csv", people(400, 3))


def damaged_pool(ward):
    (ward / "state" / "pool.json").write_text("{")


def pool_gone(ward):
    (ward / "state" / "pool.json").unlink()


def damaged_state(ward):
    path = ward / "state" / "labeler" / "private-state"
    path.write_bytes(path.read_bytes()[:-1])


def other_table(ward):
    (ward / "labels.csv").write_text("precious")


BEGUN = {
    "another epsilon": (nothing, ("--epsilon", 1), "--epsilon must be unchanged"),
    "other teachers": (nothing, ("--teachers", 10), "--teachers must be unchanged"),
    "another teacher": (nothing, ("--teacher", "tree"), "--teacher must be unchanged"),
    "other parameters": (
        nothing,
        ("--set-teacher", "C=2"),
        "--teacher must be unchanged",
    ),
    "a seed": (nothing, ("--set", "random_state=1"), "--set random_state"),
    "fewer questions": (nothing, ("--queries", 10), "--queries must be unchanged"),
    "other public rows": (other_public, (), "other public rows"),
    "other private rows": (other_private, (), "trained on"),
    "a damaged pool": (damaged_pool, (), "damaged"),
    "no pool": (pool_gone, (), "damaged or missing"),
    "a damaged state": (damaged_state, (), "damaged"),
    "another table of labels": (other_table, (), "with other content"),
}


OUTPUTS = ("--labels", "labels.csv", "--student", "none")


@pytest.fixture(scope="module")
def first_run(tables, tmp_path_factory):
    """A folder in which all was answered once."""
    folder = shutil.copytree(tables, tmp_path_factory.mktemp("begun") / "ward")
    with chdir(folder):
        run_once(label(outputs=OUTPUTS))
    return folder


@pytest.fixture
def begun(first_run, tmp_path, monkeypatch):
    copy = shutil.copytree(first_run, tmp_path / "begun")
    monkeypatch.chdir(copy)
    return copy


@pytest.mark.parametrize("case", BEGUN)
def test_what_does_not_fit_what_was_begun_is_one_sentence(begun, run, case):
    change, more, words = BEGUN[case]
    change(begun)
    before = snapshot(begun)
    answer = run(*label(*more, outputs=OUTPUTS))
    assert answer.code == 2, answer.out + answer.err
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert snapshot(begun) == before
