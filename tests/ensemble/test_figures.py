"""The page of figures is made from whole runs alone."""

import pytest
from benchmarks import tables
from benchmarks.ensemble import accuracy, common, report
from benchmarks.ensemble.replays import GROUPS, line
from tests.figures import saving


class Made:
    """A problem of the benchmark of accuracy, by its name and size."""

    name, n_rows = "made", 1000


def replayed(epsilon, accuracy, seed, **given):
    fields = {
        "epsilon": epsilon,
        "columns": "plain",
        "student": "default",
        "targets": "votes",
        "accuracy": accuracy,
        "validation": accuracy,
        "seed": seed,
        "n_answered": 90,
        "n_queries": 100,
        "chosen": "yes",
        "way": "replayed",
    }
    return line(Made, "trees", "gnmax", **{**fields, **given})


def linear(columns, accuracy):
    fields = {"epsilon": 1.0, "columns": columns, "accuracy": accuracy}
    return line(Made, "private linear", "linear", **fields)


ROWS = [
    line(Made, "trees", "none", columns="plain", accuracy=0.9),
    line(Made, "linear", "none", columns="plain", accuracy=0.95),
    linear("plain", 0.7),
    linear("public map", 0.6),
    replayed(1.0, 0.8, 0),
    replayed(1.0, 0.7, 1),
    replayed(1.0, 0.5, 0, chosen=None),
    replayed(8.0, 0.85, 0),
    replayed(1.0, 0.3, 0, student="ridge"),
    replayed(1.0, 0.2, 1, student="ridge"),
    replayed(1.0, 0.74, None, way="end to end", chosen=None),
    replayed(1.0, 0.24, None, way="end to end", chosen=None, student="ridge"),
]


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PICTURE", tmp_path / "picture.png")
    monkeypatch.setattr(report.factor, "draw", lambda rows: None)
    monkeypatch.setattr(report, "SUMMARY", tmp_path / "guide.md")
    report.SUMMARY.write_text(f"Before\n\n{tables.START}\n{tables.END}\n")
    return saving(report, common, ROWS, "accuracy", tmp_path, monkeypatch)


def test_chosen_students_are_shown_by_epsilon_as_means_over_seeds(results, capsys):
    results(quick=True)
    report.main([])
    shown = capsys.readouterr().out
    assert "### Made, 1,000 private rows" in shown
    names = "learner | columns | mechanism | student | targets"
    assert f"| {names} | 1 | 8 | none |" in shown
    assert "| trees | plain | none |  |  |  |  | 0.9 |" in shown
    assert "| private linear | plain | linear |  |  | 0.7 |  |  |" in shown
    assert "| private linear | public map | linear |  |  | 0.6 |  |  |" in shown


def test_each_student_has_lines_of_its_own(results, capsys):
    results(quick=True)
    report.main([])
    shown = capsys.readouterr().out
    assert "| trees | plain | gnmax | default | votes | 0.75 | 0.85 |  |" in shown
    assert "| trees | plain | gnmax | ridge | votes | 0.25 |  |  |" in shown
    assert "| made | 1 | trees | gnmax | default | votes | 0.75 | 0.74 |" in shown
    assert "| made | 1 | trees | gnmax | ridge | votes | 0.25 | 0.24 |" in shown


def test_lines_are_shown_together_by_what_the_report_takes_them_apart_by():
    table = accuracy.shown(ROWS)
    ridge = [row for row in table if row["student"] == "ridge"]
    assert [row["accuracy"] for row in ridge] == [0.25, 0.24]
    assert len(table) == len({tuple(row[n] for n in GROUPS) for row in table})
    assert len(table) == 9


def test_runs_from_end_to_end_have_to_agree_with_replayed_votes():
    accuracy.refuse_apart(ROWS)
    far = replayed(1.0, 0.6, None, way="end to end", chosen=None)
    with pytest.raises(AssertionError, match="end to end"):
        accuracy.refuse_apart([*ROWS[:-2], far])


def test_whole_runs_go_to_the_page_and_quick_ones_do_not(results):
    results(quick=True)
    with pytest.raises(SystemExit, match="is of a quick run"):
        report.main(["--docs"])
    assert report.PAGE.read_text().startswith("Before")
    results(quick=False)
    report.main(["--docs"])
    assert "| size | error |" in report.PAGE.read_text()
    assert report.PICTURE.is_file()
    head = "| data set | model | epsilon 1 | epsilon 8 | not private |\n"
    assert head in report.SUMMARY.read_text()
    summary = report.SUMMARY.read_text()
    assert "| default student, trees teachers | 0.75 | 0.85 | 0.9 |" in summary
    assert "| ridge student, trees teachers | 0.25 |  | 0.9 |" in summary
    # each by its name: the better of the two on test rows is not taken for both
    assert "| private linear, plain columns | 0.7 |  | 0.95 |" in summary
    assert "| private linear, public map | 0.6 |  |  |" in summary
