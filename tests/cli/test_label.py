"""``tacit label``: labels for public rows, a student, one charge, and going on."""

import json
import shutil
import stat
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.labeling import (
    LABELS,
    N_PRIVATE,
    N_PUBLIC,
    WHO,
    arguments,
    charges,
    hash_of,
    options,
    people,
    position,
    read_csv,
    run_once,
    write_csv,
)
from tests.cli.streaming import AGE, ILL, PAY, SEX, head_of

from tacit.mechanisms._votes._plans import VOTES
from tacit.persistence import _json
from tacit.privacy import Budget, Ledger
from tacit.tables import Column, Schema

# So much that noise hardly matters
RICH = {"epsilon": 100}


def with_rich_ledger(folder):
    url = f"sqlite:///{folder / 'rich.db'}"
    Ledger.open(url, dataset="ward", budget=Budget(500.0, 1e-4)).close()
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return with_rich_ledger(position(tmp_path_factory.mktemp("tables")))


@pytest.fixture
def ward(tables, tmp_path):
    return shutil.copytree(tables, tmp_path / "ward")


def rich(ward, *more, **given):
    """Return a command that can spend a lot."""
    url = f"sqlite:///{ward / 'rich.db'}"
    return arguments(ward, "--ledger", url, *more, **{**RICH, **given})


def labels_of(ward, name="labels.csv"):
    return [row["ill"] for row in read_csv(ward / name)]


def right(ward, found):
    truth = [row["ill"] for row in people(N_PUBLIC, 1)]
    return np.mean([a == b for a, b in zip(found, truth, strict=True)])


@pytest.fixture(scope="module")
def done(tables, tmp_path_factory):
    """A folder in which all was answered once, with votes, and what was said."""
    folder = shutil.copytree(tables, tmp_path_factory.mktemp("done") / "ward")
    said = run_once(rich(folder, "--votes", "--label", "the ward", "--json"))
    return folder, json.loads(said)


@pytest.fixture
def after(done, tmp_path):
    """A copy of that folder, in which anything may happen."""
    return shutil.copytree(done[0], tmp_path / "after")


def test_public_rows_get_labels_and_stay_as_they_were(done):
    ward, _ = done
    before, found = read_csv(ward / "public.csv"), read_csv(ward / "labels.csv")
    assert [{name: row[name] for name in before[0]} for row in found] == before
    assert right(ward, labels_of(ward)) > 0.9


def test_noisy_votes_are_released_where_requested(done):
    for row in read_csv(done[0] / "labels.csv"):
        votes = {name: float(row[f"ill={name}"]) for name in ("no", "yes")}
        assert row["ill"] == max(votes, key=votes.get)
        assert abs(sum(votes.values()) - 20) < 15


def test_the_student_predicts_and_is_as_private_as_its_labels(after, done, run):
    given = ("predict", after / "student", after / "public.csv")
    answer = run(*given, "--out", after / "p.csv", "--keep", "who", "--probabilities")
    assert answer.code == 0, answer.err
    rows = read_csv(after / "p.csv")
    assert right(after, [row["ill"] for row in rows]) > 0.8
    assert {"who", "ill", "ill=no", "ill=yes"} == set(rows[0])
    privacy = json.loads((after / "student" / "privacy.json").read_text())
    assert privacy == done[1]["privacy"]


def test_a_report_and_a_card_lie_beside_the_student(after, run):
    report = (after / "student" / "report.html").read_text()
    assert "labels from 20 teachers" in report
    assert (
        "trained on public rows with labels from"
        in (after / "student" / "card.md").read_text()
    )
    (after / "student" / "report.html").unlink()
    account = ("--ledger", f"sqlite:///{after / 'rich.db'}")
    assert run("report", after / "student", *account).code == 0
    assert "ward" in (after / "student" / "report.html").read_text()


def test_one_charge_pays_for_all(done):
    ward, data = done
    (charged,) = charges(ward, "rich.db")
    assert charged.startswith("the ward: ")
    assert data["ledger"]["spent"] <= 100
    assert data["asked"] == data["answered"] == data["rows"] == N_PUBLIC
    assert data["asked_before"] == 0


def test_the_state_is_for_its_owner_alone(done):
    ward, _ = done
    for path in (ward / "state", *(ward / "state").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_the_same_command_again_changes_and_charges_nothing(after, run):
    head, table = head_of(after, "rich.db"), (after / "labels.csv").read_bytes()
    student = hash_of(after / "student")
    answer = run(*rich(after, "--votes", "--label", "the ward"))
    assert answer.code == 0, answer.err
    assert "charged nothing" in answer.out
    assert head_of(after, "rich.db") == head
    assert (after / "labels.csv").read_bytes() == table
    assert hash_of(after / "student") == student


def test_another_student_of_the_same_answers_costs_nothing(after, run):
    head = head_of(after, "rich.db")
    second = ("--student", "tree", "--out", after / "second")
    assert run(*rich(after, "--label", "the ward", *second, out=())).code == 0
    assert head_of(after, "rich.db") == head
    said = json.loads((after / "second" / "student.json").read_text())
    assert "Tree" in json.dumps(said)


def test_a_seed_gives_the_same_labels_and_none_gives_others(ward, run):
    found = []
    for state in ("one", "two"):
        given = rich(ward, "--force", state=state, epsilon=2, out=LABELS)
        assert run(*given).code == 0
        found.append(labels_of(ward))
    assert found[0] == found[1]
    assert run(*rich(ward, "--force", state="three", epsilon=1.9, out=LABELS)).code == 0
    assert labels_of(ward) != found[0]


def test_a_plan_reads_no_row_and_charges_nothing(ward, run):
    for name in ("private.csv", "public.csv"):
        (ward / name).unlink()
    head = head_of(ward)
    given = ("--plan", "--expected-rows", 5000, "--queries", 300)
    answer = run(*arguments(ward, *given, "--json", teachers="auto"))
    assert answer.code == 0, answer.out
    plan = answer.data["plan"]
    assert plan["n_queries"] == 300
    assert 1 < plan["n_teachers"] <= 500
    assert answer.data["ledger"]["fits"]
    assert head_of(ward) == head
    assert not (ward / "state").exists()
    assert "teachers     " in run(*arguments(ward, *given)).out
    assert "--expected-rows" in run(*arguments(ward, "--plan")).err


@pytest.mark.parametrize(
    ("teacher", "teachers"),
    [(("boosting", "--set-teacher", "max_iter=3"), 20), (("knn",), 100)],
    ids=["boosting", "knn"],
)
def test_teachers_of_few_rows_learn_from_them(ward, run, teacher, teachers):
    answer = run(*rich(ward, "--teacher", *teacher, teachers=teachers, out=LABELS))
    assert answer.code == 0, answer.err
    assert right(ward, labels_of(ward)) > 0.8


@pytest.mark.parametrize("target", ["ill", "pay"])
def test_a_plan_does_a_dry_run_and_prints_the_rows_of_a_teacher(ward, run, target):
    planned = ("--plan", "--expected-rows", 400, "--queries", 60, "--target", target)
    boosting = ("--teacher", "boosting")
    answer = run(*arguments(ward, *planned, *boosting, teachers=40))
    assert answer.code == 0, answer.err
    assert "a teacher learns from 10 synthetic rows" in answer.out
    # with its own limit it could not split so few
    fixed = ("--set-teacher", "min_samples_leaf=20")
    answer = run(*arguments(ward, *planned, *boosting, *fixed, teachers=40))
    assert answer.code == 2
    assert "use fewer --teachers, or another --teacher" in answer.err


def test_rows_that_are_not_queried_stay_empty(ward, run):
    data = run(*rich(ward, "--queries", 20, "--json", out=LABELS)).data
    found = labels_of(ward)
    assert data["asked"] == 20
    assert sum(label != "" for label in found) == 20
    text = run(*rich(ward, "--queries", 20, out=LABELS)).out
    assert ("unlabelled   40 rows: 0 withheld by the mechanism, 40 not queried") in text
    # not the first ones alone
    assert any(label != "" for label in found[30:])


def test_withheld_answers_leave_rows_empty(ward, run):
    given = ("--mechanism", "stable", "--max-refusals", 2, "--student", "none")
    tables = (ward / "private.csv", ward / "public.csv")
    written = ("--labels", ward / "labels.csv", "--json")
    data = run("label", *tables, *options(ward, *given, *written, out=())).data
    assert data["answered"] == sum(label != "" for label in labels_of(ward))
    assert data["ended"] == (data["asked"] < N_PUBLIC or data["asked"] == 3)
    assert not (ward / "student").exists()


def test_a_student_of_no_answers_is_still_written(ward, run):
    given = ("--mechanism", "stable", "--max-refusals", 0)
    data = run(*arguments(ward, *given, "--json", epsilon=0.01)).data
    assert data["answered"] == 0
    given = ("predict", ward / "student", ward / "public.csv", "--out", ward / "p.csv")
    assert run(*given).code == 0
    assert {row["ill"] for row in read_csv(ward / "p.csv")} == {"no"}


def test_numbers_are_labelled_by_their_mean(ward, run):
    answer = run(*rich(ward, "--target", "pay", "--student", "linear", "--votes"))
    assert answer.code == 0, answer.err
    rows = read_csv(ward / "labels.csv")
    pairs = [(float(row["pay"]), float(row["pay=uncut"])) for row in rows]
    low, high = min(pay for pay, _ in pairs), max(pay for pay, _ in pairs)
    assert all(pay == np.clip(uncut, low, high) for pay, uncut in pairs)
    errors = [abs(float(row["pay"]) - float(row["age"]) / 10) for row in rows]
    assert np.mean(errors) < 1


def test_tables_may_be_parquet_and_a_target_in_the_public_one_is_left_out(ward, run):
    (ward / "parts").mkdir()
    rows = people(N_PUBLIC, 1)
    for part in (0, 1):
        half = pa.Table.from_pylist(rows[part::2])
        parquet.write_table(half, ward / "parts" / f"{part}.parquet")
    parquet.write_table(
        pa.Table.from_pylist(people(N_PRIVATE, 0)), ward / "private.parquet"
    )
    tables = (ward / "private.parquet", ward / "parts")
    given = options(ward, *("--labels", ward / "labels.parquet"), out=())
    assert run("label", *tables, *given).code == 0
    found = parquet.read_table(ward / "labels.parquet")
    assert found.column_names == ["who", "age", "sex", "pay", "ill"]
    assert found["age"].to_pylist() == [row["age"] for row in rows[::2] + rows[1::2]]


def test_rows_of_a_person_stay_together(ward, run):
    given = ("--neighbors", "add_or_remove_one", "--ids", "who")
    answer = run(*rich(ward, *given, "--no-ledger", "--json"))
    assert answer.code == 0, answer.out
    told = " ".join(answer.data["privacy"]["assumptions"])
    assert "same id" in told
    assert str(N_PRIVATE) not in answer.out
    report = (ward / "student" / "report.html").read_text()
    assert "all rows of a person together" in report


def test_labels_alone_can_be_what_is_private(ward, run):
    # what a schema ignores may tell the label, and nobody said that it is public
    columns = (WHO, Column("diagnosis", "ignore"), AGE, SEX, PAY)
    Schema(columns, target=ILL).save(ward / "t.toml")
    rows = [{**row, "diagnosis": row["ill"]} for row in people(N_PRIVATE, 0)]
    write_csv(ward / "private.csv", rows)
    given = options(ward, "--labels-only", "--json")
    answer = run("label", ward / "private.csv", *given)
    assert answer.code == 0, answer.out
    found = read_csv(ward / "labels.csv")
    assert len(found) == N_PRIVATE
    assert list(found[0]) == ["age", "sex", "pay", "ill"]
    assert any(
        "labels alone" in words for words in answer.data["privacy"]["assumptions"]
    )
    assert "Only the labels are protected" in (ward / "student" / "card.md").read_text()
    assert "labels only" in charges(ward)[0]


@pytest.mark.parametrize("name", ["boosting", "forest", "knn", "tree"])
def test_teachers_and_students_have_names(ward, run, name):
    given = {
        "boosting": ("--set-teacher", "max_iter=3", "--set-student", "max_iter=3"),
        "forest": ("--set-teacher", "n_estimators=3", "--set-student=n_estimators=3"),
    }.get(name, ())
    both = ("--teacher", name, "--student", name)
    assert run(*arguments(ward, *both, *given, teachers=4)).code == 0


def test_what_is_said_shows_public_counts_alone(ward, run):
    given = ("--neighbors", "add_or_remove_one", "--no-ledger")
    answer = run(*arguments(ward, *given, out=LABELS))
    assert answer.code == 0, answer.err
    assert str(N_PRIVATE) not in answer.out + answer.err


def test_delta_above_one_over_the_rows_is_warned_of(ward, run):
    given = arguments(ward, "--delta", 1e-2, "--no-ledger", out=LABELS)
    assert "is above one over the number of rows" in run(*given).err
    answer = run(*arguments(ward, "--force", state="other", out=LABELS))
    assert answer.code == 0
    assert "delta" not in answer.err


def test_columns_that_the_schema_has_not_may_be_public(ward, run):
    Schema((AGE, SEX, PAY), target=ILL).save(ward / "t.toml")
    write_csv(ward / "private.csv", people(N_PRIVATE, 0), leave_out=["who"])
    assert run(*arguments(ward, out=LABELS)).code == 0
    assert read_csv(ward / "labels.csv")[3]["who"] == "p1"


def left_behind(after, labeler):
    """Make what a kill leaves while the student of a labeler is written."""
    position = after / f".tacit-{labeler}.partial"
    position.mkdir()
    header = json.loads((after / "student" / "student.json").read_text())
    header["facts"]["labeler"] = labeler
    header["sha256"] = _json.checksum(header)
    (position / "student.json").write_text(json.dumps(header))
    return position


def test_what_a_kill_left_of_this_student_is_removed_and_nothing_else(after, run):
    header = json.loads((after / "student" / "student.json").read_text())
    ours = left_behind(after, header["facts"]["labeler"])
    other = left_behind(after, "0" * 32)
    foreign = after / ".tacit-notes.partial"
    foreign.mkdir()
    assert run(*rich(after, "--label", "the ward", "--votes")).code == 0
    assert not ours.exists()
    assert other.exists()
    assert foreign.exists()


def test_the_mechanisms_to_choose_from_are_all_there_are(run):
    assert f"[auto|{'|'.join(VOTES)}]" in run("label", "--help").out


def test_a_student_of_other_answers_is_kept(after, run):
    given = rich(after, state="other")
    (after / "labels.csv").unlink()
    assert "give another --output, or --force" in run(*given).err


LOADED = """
import sys
from contextlib import suppress
from tacit.cli import main

for given in (["--help"], ["label", "--help"]):
    with suppress(SystemExit):
        main(given)
assert not {"sklearn", "joblib", "skops"} & set(sys.modules)
import tacit.persistence
assert "skops" not in sys.modules
"""


def test_help_loads_no_learners_and_models_of_this_library_no_skops():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
