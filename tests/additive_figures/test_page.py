"""The page of figures says where an additive model is below a rival or a bar."""

import re

import pytest
from benchmarks.additive import report, results
from benchmarks.additive.report import Found, below, cpu, halves, markdown_page
from benchmarks.additive.results import Line


def lines_of(name, method, epsilon, scores, cpu_s=1.0, protocol="usual"):
    code = "interpret-core 0.7.8" if "ebm" in method else "abc"
    return [
        Line(protocol, name, method, epsilon, run, score, cpu_s, code=code)
        for run, score in enumerate(scores)
    ]


@pytest.fixture
def lines():
    return [
        *lines_of("adult", "additive", 1.0, [0.85, 0.86], 2.0),
        *lines_of("adult", "additive", 0.1, [0.80, 0.81]),
        *lines_of("adult", "linear", 1.0, [0.856, 0.856]),
        *lines_of("adult", "linear", 0.1, [0.83, 0.83]),
        *lines_of("adult", "dp_ebm", 1.0, [0.70, 0.72, 0.99], 4.0),
        *lines_of("adult", "plain_linear", None, [0.84, 0.84]),
        *lines_of("adult", "ebm", None, [0.88]),
        *lines_of("california", "additive", 1.0, [0.60]),
        *lines_of("abalone", "additive", 0.15, [0.4], protocol="s_gbdt"),
    ]


def test_cells_are_listed_where_they_are_below_by_more_than_their_spread(lines):
    (row,) = below(Found(lines))
    assert (row["ε"], row["below"]) == (0.1, "linear")
    assert (row["score"], row["score of that"]) == ("80.50", "83.00")
    # at epsilon 1 the third split of DP-EBM is not one of the additive model's
    assert "DP-EBM" not in {row["below"] for row in below(Found(lines))}


def test_bars_are_reached_or_not(lines):
    rows = {(row["table"], row["ε"]): row for row in report.bars(Found(lines))}
    assert rows["Adult", 1.0]["additive: reached"] == "yes"
    assert rows["Adult", 0.1]["additive: reached"] == "no"
    assert rows["California housing", 1.0]["additive: reached"] == "no"
    assert rows["Electricity", 1.0]["additive: reached"] == "not run"
    assert len(rows) == 8


def test_half_of_the_way_is_between_both_models_without_privacy(lines):
    (row,) = halves(Found(lines))
    assert row["half of the way"] == "86.00"
    assert (row["score"], row["reached"]) == ("85.50", "no")


def test_seconds_are_compared_with_those_of_dp_ebm(lines):
    (adult, _) = cpu(Found(lines), ratio=True)
    assert float(adult["additive"]) == pytest.approx(1.5 / 4)
    assert "EBM" not in adult
    assert "DP-EBM" not in adult
    assert cpu(Found(lines), ratio=False)[0]["DP-EBM"] == "4"


def test_published_boosting_is_compared_under_its_own_protocol(lines):
    rows = report.published(Found(lines))
    assert [row["S-GBDT, published"] for row in rows] == [
        "0.390", "0.470", "81.30", "82.90",
    ]  # fmt: skip
    assert rows[0]["additive"] == "0.400"


def test_every_cell_of_the_page_holds_one_number(lines):
    page = markdown_page(lines)
    rows = [line for line in page if line.startswith("|")]
    cells = [cell.strip() for row in rows for cell in row.strip("|").split("|")]
    assert any(re.fullmatch(r"\d+\.\d+", cell) for cell in cells)
    assert not any("±" in cell or "(" in cell for cell in cells)
    assert "abc" in page[-2]


def test_a_part_that_was_measured_makes_a_page(lines):
    assert "None." in markdown_page(lines[:2])
    assert "Additive models were not run." in markdown_page(lines[4:6])
    assert "not measured" in markdown_page(lines_of("adult", "ebm", None, [0.9]))[-2]


def test_only_a_full_run_is_written_to_the_page(lines, tmp_path, monkeypatch):
    page = tmp_path / "additive.md"
    page.write_text("Before\n<!-- measured -->\n<!-- /measured -->\n")
    monkeypatch.setattr(report, "PAGE", page)
    for name in ("FILE", "QUICK_FILE"):
        file = tmp_path / f"{name}.jsonl"
        monkeypatch.setattr(results, name, file)
        for line in lines:
            results.append(line, file)
    monkeypatch.setattr("sys.argv", ["report", "--docs", "--quick"])
    report.main()
    assert "Adult" not in page.read_text()
    monkeypatch.setattr("sys.argv", ["report", "--docs"])
    report.main()
    assert "Adult" in page.read_text()
    assert page.read_text().startswith("Before")
