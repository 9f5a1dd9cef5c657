"""The audits of other libraries: exact densities, neighbors, answers and pages."""

import numpy as np
import pytest
from benchmarks import tables
from benchmarks.audit_peers import attack, common, of_tacit, report
from benchmarks.audit_peers.densities import TiltedLaw, vector_mechanism_law
from benchmarks.audit_peers.settings import LINEAR, LOGISTIC, LogisticSetting
from scipy.optimize import brentq
from scipy.special import expit

from tacit._random import as_generator

FIRST = np.array([[3.0], [0.0]]), np.array([1.0, -1.0])
SECOND = np.zeros((2, 1)), np.array([1.0, -1.0])


def total(law, data):
    """Return the integral of a density over one weight, by the trapezoidal rule."""
    w = np.linspace(-400, 400, 400_001)
    return np.trapezoid(np.exp(law.log_density(w[:, None], *data)), w)


def test_densities_have_the_same_total_on_all_data_sets():
    law = TiltedLaw((0.5,), 2.0)
    # that of the tilt, which is Laplace noise of this scale
    assert total(law, FIRST) == pytest.approx(4.0, rel=1e-4)
    assert total(law, SECOND) == pytest.approx(4.0, rel=1e-4)
    # a derivative that stops short has a jump in its density, which the rule blurs
    capped = TiltedLaw((0.5,), 2.0, cap=0.5)
    assert total(capped, FIRST) == pytest.approx(4.0, rel=1e-3)


@pytest.mark.statistical
def test_minimizers_follow_the_density(seed):
    law, n = TiltedLaw((0.5,), 2.0), 4000
    tilts = as_generator(seed).laplace(scale=law.scale, size=n)

    def minimizer(tilt):
        return brentq(lambda w: -3 * expit(-3 * w) + 0.5 * w + tilt, -1e3, 1e3)

    found = np.array([minimizer(tilt) for tilt in tilts])
    edges = np.quantile(found, [0.1, 0.5, 0.9])
    w = np.linspace(-400, 400, 400_001)
    below = np.cumsum(np.exp(law.log_density(w[:, None], *FIRST))) * (w[1] - w[0]) / 4
    share = np.interp(edges, w, below)
    # five standard deviations of a share of n draws: one in a million, three times
    assert np.all(np.abs(share - [0.1, 0.5, 0.9]) < 5 * np.sqrt(0.25 / n))
    # rows of zeros have another distribution, which these draws do not follow
    other = np.cumsum(np.exp(law.log_density(w[:, None], *SECOND))) * (w[1] - w[0]) / 4
    assert np.any(
        np.abs(np.interp(edges, w, other) - [0.1, 0.5, 0.9]) > 5 * np.sqrt(0.25 / n)
    )


def test_where_no_density_can_be_told_the_ratio_says_nothing():
    law = TiltedLaw((1.0, 0.0), 1.0)
    X = np.array([[1.0, 1.0], [0.0, 1.0]])
    far = np.array([[0.0, 1e300], [np.nan, 0.0]])
    with_row, without = (X, FIRST[1]), (X * [0, 1], FIRST[1])
    np.testing.assert_array_equal(law.log_ratio(far, with_row, without), 0.0)


@pytest.mark.parametrize(("norm", "broken"), [(1.0, False), (100.0, True)])
def test_the_vector_mechanism_holds_at_norm_one_and_not_at_a_hundred(norm, broken):
    law = vector_mechanism_law(2.0, norm, 1.0, 1, fit_intercept=False)
    first = np.array([[norm], [0.0]]), FIRST[1]
    w = np.linspace(-1, 1, 20_001)[:, None]
    most = np.abs(law.log_ratio(w, first, SECOND)).max()
    assert bool(most > 2.0) is broken


def test_an_intercept_without_a_penalty_has_no_ridge():
    law = vector_mechanism_law(2.0, 1.0, 3.0, 2, fit_intercept=True)
    assert law.ridge == (pytest.approx(1 / 3), pytest.approx(1 / 3), 0.0)


@pytest.mark.parametrize("setting", [*LOGISTIC, *LINEAR], ids=lambda s: s.name)
def test_neighbors_differ_in_one_row_and_have_both_labels(setting):
    (X, y), (other, labels) = setting.pair()
    np.testing.assert_array_equal(y, labels)
    assert np.flatnonzero((other != X).any(axis=1)).tolist() == [0]
    assert isinstance(setting, type(LINEAR[0])) or set(y) == {0, 1}


@pytest.mark.statistical
def test_this_library_keeps_its_promise_and_more_epsilon_shows():
    setting = LogisticSetting("norm 1", 1.0, epsilon=0.5)
    # wrong with a chance of one in a thousand, and the seed is fixed
    found = attack.attack_logistic(of_tacit, setting, 1.0, 100)
    assert not found.refutes(setting.epsilon)
    control = attack.attack_logistic(of_tacit, setting, 200.0, 100)
    assert control.refutes(setting.epsilon)


SLOW = {of_tacit.workers_and_noise}


@pytest.mark.parametrize(
    "probe",
    [
        pytest.param(p, marks=pytest.mark.slow if p in SLOW else ())
        for p in of_tacit.PROBES
    ],
    ids=lambda probe: probe.__name__,
)
def test_this_library_keeps_its_word(probe):
    assert probe().kept


def test_a_missing_environment_is_told(monkeypatch, tmp_path):
    monkeypatch.setitem(common.LIBRARIES, "diffprivlib", tmp_path / "python")
    with pytest.raises(common.PeerFailed, match=r"benchmarks\.peers"):
        common.ask("diffprivlib", {"kind": "names"})


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(common.RESULTS, "folder", tmp_path)
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    report.PAGE.write_text(f"Before\n\n{tables.START}\n{tables.END}\n")


def test_answers_are_kept_and_not_asked_twice(results, monkeypatch):
    asked = []

    def ask(library, given):
        asked.append((library, given["name"]))
        return {"library": library, "found": {"at_least": 2.5}}

    monkeypatch.setattr(common, "ask", ask)
    questions = [{"library": "tacit", "name": "a"}, {"library": "tacit", "name": "b"}]
    common.answered("chosen", questions[:1], ("at_least",), quick=False)
    common.answered("chosen", questions, ("at_least",), quick=False)
    assert asked == [("tacit", "a"), ("tacit", "b")]
    rows = common.RESULTS.measured("chosen", whole=True)
    assert [row["at_least"] for row in rows] == ["2.5", "2.5"]


def test_the_page_shows_whole_runs_alone(results, monkeypatch, capsys):
    monkeypatch.setattr(report, "SECTIONS", (report.Section("chosen", "A", "Words."),))
    monkeypatch.setattr(
        common, "ask", lambda *_: {"library": "tacit", "found": {"at_least": 2.5}}
    )
    for quick in (True, False):
        common.answered("chosen", [{"library": "tacit"}], ("at_least",), quick=quick)
        if quick:
            with pytest.raises(SystemExit, match="is of a quick run"):
                report.main(["--docs"])
    report.main(["--docs"])
    assert "| tacit | 2.5 |" in report.PAGE.read_text()
    assert "question" not in capsys.readouterr().out.splitlines()[-4]
