"""``tacit label``: labels for public rows, a student, one charge, and going on."""

import json
import stat

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.labeling import (
    LABELS,
    N_PRIVATE,
    N_PUBLIC,
    arguments,
    charges,
    hash_of,
    options,
    people,
    place,
    read_csv,
    write_csv,
)
from tests.cli.streaming import AGE, ILL, PAY, SEX, head_of

from tacit.tables import Schema

# So much that noise hardly matters
RICH = {"epsilon": 100}


@pytest.fixture
def ward(tmp_path, run):
    place(tmp_path)
    account = ("--ledger", f"sqlite:///{tmp_path / 'rich.db'}", "--dataset", "ward")
    assert run("ledger", "init", *account, "--epsilon", 500, "--delta", 1e-4).code == 0
    return tmp_path


def rich(ward, *more, **given):
    """Return a command that can spend a lot."""
    url = f"sqlite:///{ward / 'rich.db'}"
    return arguments(ward, "--ledger", url, *more, **{**RICH, **given})


def labels_of(ward, name="labels.csv"):
    return [row["ill"] for row in read_csv(ward / name)]


def right(ward, found):
    truth = [row["ill"] for row in people(N_PUBLIC, 1)]
    return np.mean([a == b for a, b in zip(found, truth, strict=True)])


def test_public_rows_get_labels_and_stay_as_they_were(ward, run):
    answer = run(*rich(ward, out=LABELS))
    assert answer.code == 0, answer.err
    before, after = read_csv(ward / "public.csv"), read_csv(ward / "labels.csv")
    assert [{k: v for k, v in row.items() if k != "ill"} for row in after] == before
    assert right(ward, labels_of(ward)) > 0.9


def test_the_student_predicts_and_is_as_private_as_its_labels(ward, run):
    data = run(*rich(ward, "--json")).data
    given = ("predict", ward / "student", ward / "public.csv")
    answer = run(*given, "--out", ward / "p.csv", "--keep", "who", "--probabilities")
    assert answer.code == 0, answer.err
    rows = read_csv(ward / "p.csv")
    assert right(ward, [row["ill"] for row in rows]) > 0.8
    assert {"who", "ill", "ill=no", "ill=yes"} == set(rows[0])
    privacy = json.loads((ward / "student" / "privacy.json").read_text())
    assert privacy == data["privacy"]


def test_a_report_and_a_card_lie_beside_the_student(ward, run):
    assert run(*rich(ward)).code == 0
    report = (ward / "student" / "report.html").read_text()
    assert "learnt from the answers of 20 teachers" in report
    assert "learnt from" in (ward / "student" / "card.md").read_text()
    (ward / "student" / "report.html").unlink()
    account = ("--ledger", f"sqlite:///{ward / 'rich.db'}")
    assert run("report", ward / "student", *account).code == 0
    assert "ward" in (ward / "student" / "report.html").read_text()


def test_one_charge_pays_for_all(ward, run):
    data = run(*arguments(ward, "--label", "the ward", "--json", out=LABELS)).data
    (charged,) = charges(ward)
    assert charged.startswith("the ward: ")
    assert data["ledger"]["spent"] <= 2
    assert data["asked"] == data["answered"] == data["rows"] == N_PUBLIC
    assert data["asked_before"] == 0


def test_the_same_command_again_changes_and_charges_nothing(ward, run):
    assert run(*arguments(ward)).code == 0
    head, table = head_of(ward), (ward / "labels.csv").read_bytes()
    student = hash_of(ward / "student")
    answer = run(*arguments(ward))
    assert answer.code == 0, answer.err
    assert "charged nothing" in answer.out
    assert head_of(ward) == head
    assert (ward / "labels.csv").read_bytes() == table
    assert hash_of(ward / "student") == student


def test_another_student_of_the_same_answers_costs_nothing(ward, run):
    assert run(*arguments(ward)).code == 0
    head = head_of(ward)
    given = options(ward, "--student", "tree", "--out", ward / "second", out=())
    tables = (ward / "private.csv", ward / "public.csv")
    assert run("label", *tables, *given).code == 0
    assert head_of(ward) == head
    said = json.loads((ward / "second" / "student.json").read_text())
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
    assert right(ward, labels_of(ward)) > 0.9


@pytest.mark.parametrize("target", ["ill", "pay"])
def test_a_plan_rehearses_and_says_the_rows_of_a_teacher(ward, run, target):
    planned = ("--plan", "--expected-rows", 400, "--queries", 60, "--target", target)
    boosting = ("--teacher", "boosting")
    answer = run(*arguments(ward, *planned, *boosting, teachers=40))
    assert answer.code == 0, answer.err
    assert "a teacher learns from 10 made-up rows" in answer.out
    # with its own limit it could not split so few
    fixed = ("--set-teacher", "min_samples_leaf=20")
    answer = run(*arguments(ward, *planned, *boosting, *fixed, teachers=40))
    assert answer.code == 2
    assert "take fewer --teachers, or another --teacher" in answer.err


def test_noisy_votes_are_told_where_they_are_asked_for(ward, run):
    assert run(*rich(ward, "--votes", out=LABELS)).code == 0
    rows = read_csv(ward / "labels.csv")
    for row in rows:
        votes = {name: float(row[f"ill={name}"]) for name in ("no", "yes")}
        assert row["ill"] == max(votes, key=votes.get)
        assert abs(sum(votes.values()) - 20) < 15


def test_rows_that_are_not_asked_about_stay_empty(ward, run):
    data = run(*rich(ward, "--queries", 20, "--json", out=LABELS)).data
    found = labels_of(ward)
    assert data["asked"] == 20
    assert sum(label != "" for label in found) == 20
    # not the first ones alone
    assert any(label != "" for label in found[30:])


def test_a_mechanism_that_refuses_leaves_rows_empty(ward, run):
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
    given = options(ward, "--labels-only", "--json")
    answer = run("label", ward / "private.csv", *given)
    assert answer.code == 0, answer.out
    assert len(labels_of(ward)) == N_PRIVATE
    assert any(
        "labels alone" in words for words in answer.data["privacy"]["assumptions"]
    )
    assert "Labels alone" in (ward / "student" / "card.md").read_text()
    assert "labels only" in charges(ward)[0]


@pytest.mark.parametrize("name", ["boosting", "forest", "knn", "tree"])
def test_teachers_and_students_have_names(ward, run, name):
    given = {
        "boosting": ("--set-teacher", "max_iter=3", "--set-student", "max_iter=3"),
        "forest": ("--set-teacher", "n_estimators=3", "--set-student", "max_depth=3"),
    }.get(name, ())
    both = ("--teacher", name, "--student", name)
    assert run(*arguments(ward, *both, *given, teachers=4)).code == 0


def test_the_state_is_for_its_owner_alone(ward, run):
    assert run(*arguments(ward, out=LABELS)).code == 0
    for path in (ward / "state", *(ward / "state").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_what_is_said_tells_public_counts_alone(ward, run):
    given = ("--neighbors", "add_or_remove_one", "--no-ledger")
    answer = run(*arguments(ward, *given, out=LABELS))
    assert answer.code == 0, answer.err
    assert str(N_PRIVATE) not in answer.out + answer.err


def test_delta_above_one_over_the_rows_is_warned_of(ward, run):
    given = arguments(ward, "--delta", 1e-2, "--no-ledger", out=LABELS)
    assert "delta is above" in run(*given).out
    answer = run(*arguments(ward, "--force", state="other", out=LABELS))
    assert answer.code == 0
    assert "delta is above" not in answer.out


def test_columns_that_the_schema_has_not_may_be_public(ward, run):
    Schema((AGE, SEX, PAY), target=ILL).save(ward / "t.toml")
    write_csv(ward / "private.csv", people(N_PRIVATE, 0), leave_out=["who"])
    assert run(*arguments(ward, out=LABELS)).code == 0
    assert read_csv(ward / "labels.csv")[3]["who"] == "p1"
