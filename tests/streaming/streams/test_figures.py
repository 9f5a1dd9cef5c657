"""The page of figures shows whole runs alone."""

import pytest
from benchmarks import tables
from benchmarks.streams import common, report


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(common.RESULTS, "folder", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(report, "SECTIONS", (report.Section("a", "Title", "Words."),))
    monkeypatch.setattr(report, "draw", lambda: None)
    report.PAGE.write_text(f"Before\n\n{tables.START}\n{tables.END}\n")


def test_a_whole_run_goes_to_the_page(results, capsys):
    common.RESULTS.save("a", [{"size": 5, "error": 0.25}], quick=False)
    report.main(["--docs"])
    table = "| size | error |\n| --- | --- |\n| 5 | 0.25 |\n"
    assert table in capsys.readouterr().out
    assert table in report.PAGE.read_text()


def test_a_quick_run_is_printed_and_kept_off_the_page(results, capsys):
    common.RESULTS.save("a", [{"size": 5, "error": 0.25}], quick=True)
    report.main([])
    assert "| 5 | 0.25 | yes |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="is of a quick run"):
        report.main(["--docs"])
    assert report.PAGE.read_text().startswith("Before")
