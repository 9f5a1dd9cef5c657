"""The page of figures is made from whole runs alone."""

import pytest
from benchmarks import tables
from benchmarks.ensemble import common, report
from benchmarks.ensemble.replays import line


class Made:
    """A problem of the benchmark of accuracy, by its name and size."""

    name, n_rows = "made", 1000


def replayed(epsilon, accuracy, seed, **given):
    fields = {
        "epsilon": epsilon,
        "targets": "labels",
        "accuracy": accuracy,
        "validation": accuracy,
        "seed": seed,
        "n_answered": 90,
        "n_queries": 100,
        "chosen": "yes",
        "way": "replayed",
    }
    return line(Made, "trees", "gnmax", **{**fields, **given})


ROWS = [
    line(Made, "trees", "none", accuracy=0.9),
    line(Made, "private linear", "linear", epsilon=1.0, accuracy=0.7),
    replayed(1.0, 0.8, 0),
    replayed(1.0, 0.7, 1),
    replayed(1.0, 0.5, 0, chosen=None),
    replayed(8.0, 0.85, 0),
    replayed(1.0, 0.74, None, way="end to end", chosen=None),
]


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(report, "PICTURE", tmp_path / "picture.png")
    monkeypatch.setattr(report.factor, "draw", lambda rows: None)
    monkeypatch.setattr(report, "SUMMARY", tmp_path / "guide.md")
    for page in (report.PAGE, report.SUMMARY):
        page.write_text(f"Before\n\n{tables.START}\n{tables.END}\n")

    def save(quick):
        for section in report.SECTIONS:
            rows = ROWS if section.name == "accuracy" else [{"size": 5, "error": 0.25}]
            common.save(section.name, rows, quick=quick)

    return save


def test_chosen_students_are_shown_by_epsilon_as_means_over_seeds(results, capsys):
    results(quick=True)
    report.main([])
    shown = capsys.readouterr().out
    assert "### Made, 1,000 private rows" in shown
    assert "| learner | mechanism | targets | 1 | 8 | none |" in shown
    assert "| trees | gnmax | labels | 0.75 | 0.85 |  |" in shown
    assert "| private linear | linear |  | 0.7 |  |  |" in shown
    assert "| made | 1 | trees | gnmax | labels | 0.75 |" in shown


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
    assert "| student | 0.75 | 0.85 | 0.9 |" in report.SUMMARY.read_text()
