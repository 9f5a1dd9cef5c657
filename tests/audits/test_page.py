"""The page of audits reports what audits recorded, and no more."""

import json

import pytest
from benchmarks import selfaudit
from tests.audits.verdict import (
    LOG_FILE,
    assert_refutes_the_control,
    event_bound,
    less_noise,
)
from tests.cases import audited


def verdict(name="Laplace, at one", **changes):
    given = {
        "subjects": name.split(",")[0].split(" with "),
        "name": name,
        "claim": 1.0,
        "delta": 0.0,
        "bound": 0.9,
        "broken": "half the noise",
        "control": 1.8,
        "runs": 1000,
        "control_runs": 1000,
        "method": "event",
        "test": "tests/audits/test_tightness.py::test_some",
    }
    return {**given, **changes}


@pytest.fixture
def page(tmp_path, monkeypatch):
    page = tmp_path / "audit.md"
    page.write_text(
        "Before.\n<!-- measured -->\nLast year.\n<!-- /measured -->\nAfter.\n"
    )
    monkeypatch.setattr(selfaudit, "PAGE", page)
    monkeypatch.setattr(selfaudit, "ROOT", tmp_path)
    test = tmp_path / "tests" / "audits" / "test_tightness.py"
    test.parent.mkdir(parents=True)
    test.write_text('"""An attack."""\n')
    return page


def made(tmp_path, *verdicts, partial=True):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(v) + "\n" for v in verdicts))
    return selfaudit.main([str(log), *(["--partial"] if partial else [])])


def everything():
    return [verdict(name) for name in audited()]


def test_a_whole_run_gives_a_page_of_all_names(page, tmp_path, capsys):
    assert made(tmp_path, *everything(), partial=False) == 0
    text = page.read_text()
    assert "Before." in text
    assert "After." in text
    assert "Last year" not in text
    assert "| `Laplace` | 1 | 0 | 0.9 | 90 % | 1,000 | event | half the noise" in text
    assert "* `tightness`: An attack." in text
    assert "not whole" not in text
    assert "No verdict" not in capsys.readouterr().out


def test_a_run_that_lacks_names_says_so_and_fails(page, tmp_path, capsys):
    assert made(tmp_path, verdict(), partial=False) == 1
    assert "**This run was not whole.**" in page.read_text()
    assert "No verdict on AMP" in capsys.readouterr().out
    assert made(tmp_path, verdict()) == 0


@pytest.mark.parametrize("wrong", [{"bound": 1.1}, {"control": 0.9}])
def test_a_claim_that_is_refuted_or_a_control_that_is_not_fails(page, tmp_path, wrong):
    assert made(tmp_path, *everything(), verdict("AMP", **wrong), partial=False) == 1
    assert "not detected: 1." in " ".join(page.read_text().split())


def test_a_later_verdict_of_a_test_stands_for_an_earlier_one(tmp_path):
    log = tmp_path / "log.jsonl"
    lines = verdict(bound=0.5), verdict(bound=0.6), verdict("AMP")
    log.write_text("".join(json.dumps(v) + "\n" for v in lines))
    assert [v["bound"] for v in selfaudit.read(log)] == [0.6, 0.9]


def test_verdicts_that_share_a_name_say_their_case(page, tmp_path):
    test = "tests/audits/test_tightness.py::test_some"
    cases = (verdict(test=f"{test}[{case}]") for case in ("replace", "add"))
    made(tmp_path, *cases, verdict("AMP", test=f"{test}[amp]"))
    text = page.read_text()
    assert "| Laplace, at one (replace) |" in text
    assert "| Laplace, at one (add) |" in text
    assert "| AMP |" in text


def test_a_verdict_on_a_part_counts_for_no_public_name(page, tmp_path):
    made(tmp_path, verdict("final noise of AMP", subjects=[]))
    text = page.read_text()
    assert "| final noise of AMP |" in text
    assert "| `AMP` |" not in text


@pytest.mark.parametrize(
    ("part", "words"), [(0.5, "half the noise"), (1 / 3, "0.33 of the noise")]
)
def test_a_part_of_the_noise_has_one_name(part, words):
    assert less_noise(part) == words


def test_verdicts_are_of_what_their_module_declares(monkeypatch):
    monkeypatch.delenv(LOG_FILE, raising=False)
    found = event_bound(600, 400, 1000), event_bound(900, 10, 1000)
    with pytest.raises(AssertionError, match="declares no audits='Laplace'"):
        assert_refutes_the_control("Laplace", 1.0, *found)


def test_verdicts_are_written_down_before_they_are_judged(tmp_path, monkeypatch):
    log = tmp_path / "log.jsonl"
    monkeypatch.setenv(LOG_FILE, str(log))
    monkeypatch.setenv(
        "PYTEST_CURRENT_TEST", "tests/audits/test_mechanisms.py::a (call)"
    )
    found = event_bound(600, 400, 1000), event_bound(400, 600, 1000)
    with pytest.raises(AssertionError, match="within the claim"):
        assert_refutes_the_control("Laplace, one", 1.0, *found)
    (line,) = log.read_text().splitlines()
    told = json.loads(line)
    assert told["subjects"] == ["Laplace"]
    assert told["control"] == 0.0
    assert told["test"] == "tests/audits/test_mechanisms.py::a"
