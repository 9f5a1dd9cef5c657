"""The page of figures is made from whole runs only."""

import pytest
from benchmarks.recommend import accuracy, common, plateau, report
from tests.figures import saving

ROWS = [
    dict.fromkeys(accuracy.FIELDS)
    | {
        "dataset": "made",
        "n_users": 60,
        "n_items": 20,
        "method": method,
        "neighbors": neighbors,
        "epsilon": epsilon,
        "run": 0,
        "rmse": rmse,
    }
    for method, neighbors, epsilon, rmse in (
        ("user means", "", "", 1.0),
        ("user and item means", "", "", 0.9),
        (accuracy.PLAIN, "", "", 0.8),
        ("als", accuracy.REPLACE, 1.0, 0.85),
        ("als", accuracy.REPLACE, 5.0, 0.82),
        ("svd", accuracy.REPLACE, 1.0, 1.1),
    )
]


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "PICTURE", tmp_path / "picture.png")
    monkeypatch.setattr(report, "PLATEAU", tmp_path / "plateau.png")
    monkeypatch.setattr(plateau, "PICTURE", tmp_path / "drawn.png")
    plateau.PICTURE.write_bytes(b"a picture")
    return saving(report, common, ROWS, "accuracy", tmp_path, monkeypatch)


def test_errors_are_shown_by_epsilon_with_words_beside_them(results, capsys):
    results(quick=True)
    report.main([])
    shown = capsys.readouterr().out
    assert "### Made, 60 x 20" in shown
    assert "| epsilon 1.0 | epsilon 5.0 | no epsilon | runs |" in shown
    assert "| als | replace_one | 0.8500 (one run) | 0.8200 (one run) |  | 1 |" in shown
    assert (
        "| svd | replace_one | 1.1000 (one run) |  |  | 1 | nowhere | nowhere |"
        in shown
    )


def test_whole_runs_go_to_the_page_and_quick_ones_do_not(results):
    results(quick=True)
    with pytest.raises(SystemExit, match="is of a quick run"):
        report.main(["--docs"])
    assert report.PAGE.read_text().startswith("Before")
    results(quick=False)
    report.main(["--docs"])
    page = report.PAGE.read_text()
    assert "| size | error |" in page
    assert "als without privacy" in page
    assert report.PICTURE.is_file()
    assert report.PLATEAU.read_bytes() == b"a picture"
