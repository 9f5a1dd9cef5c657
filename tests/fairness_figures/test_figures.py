"""The page of figures is made from whole runs alone."""

import pytest
from benchmarks.fairness import common, report
from benchmarks.fairness.bounds import SHOWN
from benchmarks.fairness.models import RECIPES
from tests.figures import saving

ROWS = [
    {
        "dataset": "made",
        "sweep": sweep,
        "recipe": recipe,
        "n": n,
        "epsilon": epsilon,
        "notion": notion,
        "bound": bound if recipe == "corrected" else 2 * bound,
        "empirical": bound / 2,
        "refined": bound / 3,
        "least": 0.001,
        "most": 0.01,
        "outside": 1,
        "models": 100,
    }
    for sweep, n, epsilon, bound in (
        ("n", 10, 1.0, 0.9),
        ("n", 100, 1.0, 0.08),
        ("n", 1000, 1.0, 0.07),
        ("epsilon", 1000, 0.1, 0.2),
        ("epsilon", 1000, 1.0, 0.07),
    )
    for recipe in RECIPES
    for notion in SHOWN
]


@pytest.fixture
def results(tmp_path, monkeypatch):
    return saving(report, common, ROWS, "sweeps", tmp_path, monkeypatch)


def test_the_page_says_from_where_on_a_bound_is_useful(results, capsys):
    results(quick=True)
    report.main([])
    shown = capsys.readouterr().out
    assert "### Made" in shown
    assert "| corrected | accuracy | 100 | 1 | 5 of 500 |" in shown
    assert "| printed | accuracy | nowhere | nowhere | 5 of 500 |" in shown


def test_a_bound_that_rises_again_is_useful_from_after_that_only():
    rows = [
        {"sweep": "n", "n": str(n), "bound": str(bound)}
        for n, bound in ((1000, 0.01), (10, 0.05), (100, 0.3))
    ]
    assert report.useful_from(rows, "n") == 1000.0
    assert report.useful_from(rows[1:], "n") == "nowhere"


def test_whole_runs_go_to_the_page_and_quick_ones_do_not(results):
    results(quick=True)
    with pytest.raises(SystemExit, match="is of a quick run"):
        report.main(["--docs"])
    assert report.PAGE.read_text().startswith("Before")
    results(quick=False)
    report.main(["--docs"])
    page = report.PAGE.read_text()
    assert "| size | error |" in page
    assert "](fairness_made.png)" in page
    assert report.picture("made").is_file()
