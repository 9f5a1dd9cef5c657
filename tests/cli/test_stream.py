"""Learning from tables that grow: charged once, gone on with after any end."""

import json
import os
import signal
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.cli.streaming import (
    HEADER,
    arguments,
    forked,
    head_of,
    objects,
    position,
    releases,
    rows,
)

from tacit.cli import _streaming
from tacit.persistence import read
from tacit.privacy import Ledger


@pytest.fixture
def ward(tmp_path):
    return position(tmp_path)


def history(folder):
    ledger = Ledger.open(f"sqlite:///{folder / 'budget.db'}", dataset="ward")
    found = ledger.history()
    assert ledger.verify().ok
    ledger.close()
    return found


def test_a_stream_is_charged_once_and_each_step_is_released(ward, run):
    more = ("--releases", ward / "r.jsonl", "--output", ward / "model")
    answer = run(*arguments(ward, *more, "--json"))
    assert answer.code == 0, answer.err
    data = answer.data
    assert (data["step"], data["horizon"], data["rows"]) == (10, 12, 100)
    assert (data["waiting"], data["done"], data["steps_before"]) == (0, False, 0)
    assert data["privacy"]["promise"]["epsilon"] == 1
    assert data["ledger"]["dataset"] == "ward"
    lines = releases(ward / "r.jsonl")
    assert [line["step"] for line in lines] == list(range(1, 11))
    assert [line["rows"] for line in lines] == list(range(10, 101, 10))
    saved = read(ward / "model")
    assert saved.facts["step"] == 10
    assert saved.estimator.coef_.tolist() == lines[-1]["coef"]
    assert saved.estimator.intercept_.tolist() == lines[-1]["intercept"]
    assert saved.facts["ledger"]["head"] == list(head_of(ward))
    charge = history(ward)[-1]
    assert charge.kind == "charge"
    assert charge.seq == saved.facts["charge"]
    assert charge.label.startswith("ill: OnlineLogisticRegression stream ")
    assert data["stream"] in charge.label
    out = run("predict", ward / "model", ward / "t.csv", "--out", ward / "p.csv")
    assert out.code == 0, out.err
    assert run("report", ward / "model").code == 0


def test_a_stream_for_people_prints_counts_and_the_promise(ward, run):
    answer = run(*arguments(ward, "--label", "illness"))
    assert answer.code == 0, answer.err
    assert "guarantee    epsilon 1" in answer.out
    assert "charge       illness: OnlineLogisticRegression stream" in answer.out
    assert "step         10 of 12, 100 rows used, 0 waiting" in answer.out


def test_later_runs_take_what_is_new_and_charge_nothing(ward, run):
    more = ("--releases", ward / "r.jsonl", "--output", ward / "model", "--json")
    whole = HEADER + "".join(rows(130))
    (ward / "t.csv").write_text(whole[:-1])
    assert run(*arguments(ward, *more, state="whole")).data["waiting"] is None
    expected = releases(ward / "r.jsonl")
    (ward / "r.jsonl").unlink()
    head, position = head_of(ward), len(HEADER)
    for end in (9, 31, 55, 120):
        text = whole[: position + sum(map(len, rows(130)[:end]))]
        (ward / "t.csv").write_text(text + rows(130)[end][:3])
        answer = run(*arguments(ward, *more[:2], "--output", ward / "m2", "--json"))
        assert answer.code == 0, answer.err
        steps = min(end // 10, 12)
        assert answer.data["step"] == steps
        if steps == 0:
            assert answer.data["privacy"] is None
            assert head_of(ward) == head
            assert not (ward / "m2").exists()
            continue
        assert len(releases(ward / "r.jsonl")) == steps
        assert answer.data["waiting"] == (end % 10 if steps < 12 else None)
    assert releases(ward / "r.jsonl") == expected
    assert [record.kind for record in history(ward)].count("charge") == 2


def test_the_horizon_ends_a_stream_and_a_further_start_does_nothing(ward, run):
    given = arguments(ward, "--releases", ward / "r.jsonl", horizon=4)
    answer = run(*given)
    assert answer.code == 0
    assert "all 4 steps of the horizon are done" in answer.out
    before = (ward / "state" / "private-state").read_bytes(), head_of(ward)
    answer = run(*given, "--follow")
    assert answer.code == 0
    assert "all 4 steps of the horizon are done" in answer.out
    assert ((ward / "state" / "private-state").read_bytes(), head_of(ward)) == before
    assert len(releases(ward / "r.jsonl")) == 4


def test_json_lines_and_parquet_give_the_same_releases(ward, run):
    lines = rows(100)
    (ward / "t.jsonl").write_text("".join(objects(lines)))
    (ward / "parts").mkdir()
    table = pa.Table.from_pylist([json.loads(line) for line in objects(lines)])
    found = []
    for source in ("t.csv", "t.jsonl"):
        more = ("--releases", ward / f"{source}.r", "--no-ledger")
        assert (
            run(*arguments(ward, *more, source=source, state=source + ".s")).code == 0
        )
        found.append(releases(ward / f"{source}.r"))
    for part, (start, end) in enumerate([(0, 33), (33, 34), (34, 77), (77, 100)]):
        path = ward / "parts" / f"{part:03}.parquet"
        pyarrow.parquet.write_table(table.slice(start, end - start), path)
        more = ("--releases", ward / "p.r", "--no-ledger")
        answer = run(*arguments(ward, *more, source="parts"))
        assert answer.code == 0, answer.err
    found.append(releases(ward / "p.r"))
    assert len(found[0]) == 10
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "more",
    [
        ("--target", "pay"),
        ("--target", "pay", "--model", "incremental"),
        ("--target", "pay", "--model", "incremental", "--method", "moments"),
        ("--model", "incremental"),
        ("--model", "online", "--method", "gradient_sums"),
        ("--rows-per-person", "2"),
        ("--set", "fit_intercept=false"),
    ],
)
def test_every_model_learns_and_is_written(ward, run, more):
    given = (*more, "--output", ward / "m", "--releases", ward / "r.jsonl", "--json")
    answer = run(*arguments(ward, *given))
    assert answer.code == 0, answer.err
    assert answer.data["step"] == 10
    saved = read(ward / "m")
    np.testing.assert_array_equal(
        saved.estimator.coef_, releases(ward / "r.jsonl")[-1]["coef"]
    )
    assert saved.privacy.guarantee.epsilon == 1
    out = run("predict", ward / "m", ward / "t.csv", "--out", ward / "p.csv")
    assert out.code == 0, out.err
    assert run(*arguments(ward, *given)).data["steps_before"] == 10


def test_a_plan_reads_and_charges_nothing(ward, run):
    (ward / "t.csv").unlink()
    head = head_of(ward)
    answer = run(*arguments(ward, "--plan", "--json"))
    assert answer.code == 0, answer.err
    assert answer.data["horizon"] == 12
    assert "Gaussian mechanism" in answer.data["noise"]
    assert answer.data["ledger"]["fits"] is True
    text = run(*arguments(ward, "--plan", epsilon=5)).out
    assert "the charge DOES NOT FIT" in text
    assert not (ward / "state").exists()
    assert head_of(ward) == head


def test_rows_that_cannot_be_used_neither_stop_nor_tell(ward, run):
    lines = rows(100)
    given = ("--no-ledger", "--json", "--releases")
    for name, bad in (("a", "?\n"), ("b", '9,"f\n'), ("c", "1,2,3,4,5\n"), ("d", "\n")):
        spoiled = [*lines[:7], bad, *lines[8:]]
        (ward / "t.csv").write_text(HEADER + "".join(spoiled))
        answer = run(*arguments(ward, *given, ward / f"{name}.r", state=name))
        assert answer.code == 0, answer.err
        assert answer.data["step"] == 10
    texts = {(ward / f"{name}.r").read_text().count("\n") for name in "abcd"}
    assert texts == {10}
    first = releases(ward / "a.r")
    assert all(releases(ward / f"{name}.r") == first for name in "bcd")


def test_a_budget_that_is_too_small_leaves_nothing(ward, run):
    head = head_of(ward)
    more = ("--releases", ward / "r.jsonl", "--output", ward / "m")
    answer = run(*arguments(ward, *more, epsilon=4))
    assert answer.code == 3
    assert "would exceed the budget" in answer.err
    assert head_of(ward) == head
    left = {path.name for path in ward.iterdir()}
    assert left - {"budget.db-journal"} == {"budget.db", "t.csv", "t.toml"}


def test_a_stream_needs_a_ledger_or_a_word_that_there_is_none(ward, run):
    given = arguments(ward)
    answer = run(*given[: given.index("--ledger")])
    assert answer.code == 2
    assert "--no-ledger" in answer.err


def test_one_process_at_a_time_holds_a_stream(ward, run):
    child = forked(arguments(ward, "--follow", "--poll", 5))
    try:
        until = time.monotonic() + 20
        while not (ward / "state" / "private-state").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        answer = run(*arguments(ward))
        assert answer.code == 2
        assert "open in another process" in answer.err
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert run(*arguments(ward)).code == 0


def test_following_goes_on_until_it_is_interrupted(ward, run, monkeypatch):
    lines, slept = rows(130), []
    text = HEADER + "".join(lines[:15])
    (ward / "t.csv").write_text(text)

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) > 3:
            raise KeyboardInterrupt
        with open(ward / "t.csv", "a") as file:
            file.write("".join(lines[15 * len(slept) : 15 * len(slept) + 15]))

    monkeypatch.setattr(_streaming.time, "sleep", sleep)
    answer = run(*arguments(ward, "--follow", "--poll", 0.25))
    assert answer.code == 0, answer.err
    assert slept == [0.25] * 4
    assert "step         6 of 12, 60 rows used" in answer.out
    # one line a step, and one at the end
    assert answer.out.count("step         ") == 7


@pytest.mark.parametrize("torn", ["half a line", "a line without an end", "nothing"])
def test_a_torn_release_is_mended(ward, run, torn):
    given = arguments(ward, "--releases", ward / "r.jsonl")
    assert run(*given).code == 0
    whole = (ward / "r.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    rest = {
        "half a line": lines[-1][:20],
        "a line without an end": lines[-1][:-1],
        "nothing": "",
    }
    (ward / "r.jsonl").write_text("".join(lines[:-1]) + rest[torn])
    assert run(*given).code == 0
    assert (ward / "r.jsonl").read_text() == whole
    for other in (
        "".join(lines[:-2]),
        "".join(lines[:-1]) + "dear",
        "".join(lines[:-2]) + lines[-1][:20],
        whole + lines[-1][:20],
        lines[-1][:20] + "dear",
        "dear",
    ):
        (ward / "r.jsonl").write_text(other)
        answer = run(*given)
        assert answer.code == 2
        assert "does not end with" in answer.err
        assert (ward / "r.jsonl").read_text() == other


def test_a_long_last_line_of_releases_is_found(tmp_path):
    path = tmp_path / "r"
    first, second = (
        {"stream": "a", "step": step, "coef": [0.123456789] * 60_000} for step in (1, 2)
    )
    _streaming._append(path, first)
    _streaming._append(path, first)
    with open(path, "ab") as file:
        file.write(json.dumps(second).encode()[:300_000])
    _streaming._append(path, second)
    assert path.read_text() == json.dumps(first) + "\n" + json.dumps(second) + "\n"
