"""The suite gives every method the same facts, and resumes where it was stopped."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from benchmarks.additive import accuracy, methods, results
from benchmarks.additive.accuracy import PUBLISHED, USUAL, grid, run
from benchmarks.additive.data import split
from benchmarks.additive.methods import METHODS, Spend, n_runs, offered
from benchmarks.peers import client

LOCAL = ("additive", "linear", "plain_linear", "plain_trees")


class StandIn:
    """An additive model that predicts the most frequent target, and keeps its facts."""

    made: list = []  # noqa: RUF012 - reset by each test

    def __init__(self, epsilon, delta=None, *, ranges, categories, **given):
        self.facts = SimpleNamespace(
            epsilon=epsilon, delta=delta, ranges=ranges, categories=categories, **given
        )
        StandIn.made.append(self)

    def fit(self, X, y):
        self.columns, (values, counts) = list(X), np.unique(y, return_counts=True)
        self.usual = values[counts.argmax()]
        return self

    def predict(self, X):
        assert list(X) == self.columns
        return np.full(len(X), self.usual)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(StandIn, "made", [])
    monkeypatch.setattr(methods, "additive_classes", lambda: (StandIn, StandIn))


@pytest.fixture
def peer(monkeypatch):
    """Calls of a peer that scores one half, and what they were sent."""
    sent = []

    def stream(environment, script, arrays, given):
        sent.append((arrays, given))
        for position in range(len(given["jobs"])):
            yield {
                "job": position,
                "score": 0.5,
                "cpu_s": 2.0,
                "status": "ok",
                "note": "",
            }

    monkeypatch.setattr(accuracy, "stream", stream)
    return sent


@pytest.mark.parametrize("name", ["adult", "abalone"])
@pytest.mark.parametrize("method", LOCAL)
def test_every_method_of_this_process_fits_both_kinds_of_tables(name, method, tables):
    rows = split(name, 0)
    fitted = METHODS[method].fit(rows.train, Spend(5.0, 1e-4, 0))
    assert np.isfinite(rows.score(fitted.predict(rows.test)))


def test_additive_models_get_the_public_facts(tables):
    spend = Spend(2.0, 1e-5, 3)
    for name in ("adult", "abalone"):
        METHODS["additive_pairs"].fit(split(name, 0).train, spend)
    of_labels, of_numbers = (model.facts for model in StandIn.made)
    for facts in (of_labels, of_numbers):
        assert (facts.epsilon, facts.delta) == (2.0, 1e-5)
        assert facts.ranges == {"size": (0.0, 5.0)}
        assert facts.categories == {"kind": ["red", "white", "rose"]}
        assert facts.interactions == methods.PAIRS
        assert not hasattr(facts, "neighbors")
    assert of_labels.classes == [0, 1]
    assert of_numbers.y_range == (0.0, 10.0)


def test_the_published_protocol_has_its_own_relation_delta_and_rows(tables):
    jobs = grid(PUBLISHED, ["adult"], ["additive"], None, 1)
    assert [job.epsilon for job in jobs] == [0.07, 0.54]
    spend = jobs[0].spend(180)
    assert spend.delta == pytest.approx(180**-1.5)
    METHODS["additive"].fit(split("adult", 0, PUBLISHED.share).train, spend)
    facts = StandIn.made[0].facts
    assert (facts.neighbors, facts.expected_rows) == ("add_or_remove_one", 180)
    assert grid(PUBLISHED, ["california"], ["additive"], None, 1) == []
    usual = grid(USUAL, ["adult"], ["additive"], [1.0], 1)[0].spend(160)
    assert (usual.delta, usual.neighbors) == (160**-2.0, "replace_one")


def test_fits_have_noise_of_their_own():
    jobs = grid(USUAL, ["adult"], ["additive", "linear"], None, 3)
    jobs += grid(PUBLISHED, ["adult"], ["additive"], None, 3)
    assert len({job.spend(100).seed for job in jobs}) == len(jobs)


def test_the_peer_gets_the_same_rows_as_the_methods_here(tables, peer):
    jobs = grid(USUAL, ["adult"], ["dp_ebm"], [0.5], 2)
    assert len(list(accuracy.at_the_peer("adult", jobs))) == 2
    ((arrays, given),) = peer
    for run_, job in enumerate(given["jobs"]):
        expected = split("adult", run_)
        train = arrays["orders"][job["run"]][: job["n_train"]]
        kinds = np.array(given["categories"]["kind"])[arrays["codes"][train, 0]]
        frame = pd.DataFrame({"size": arrays["numbers"][train, 0], "kind": kinds})
        pd.testing.assert_frame_equal(
            frame.astype({"kind": object}), expected.train.frame, check_dtype=False
        )
        np.testing.assert_array_equal(arrays["y"][train], expected.train.y)
        assert job["delta"] == len(expected.train.y) ** -2.0
    assert (given["ranges"], given["y_range"]) == ({"size": (0.0, 5.0)}, None)


def test_a_failure_stops_nothing_and_is_tried_again(tables, tmp_path, monkeypatch):
    file = tmp_path / "fits.jsonl"

    def broken(train, spend):
        raise RuntimeError("no luck")

    with monkeypatch.context() as patched:
        method = methods.Method("linear", "linear", broken)
        patched.setitem(METHODS, "linear", method)
        run(grid(USUAL, ["adult"], ["linear"], [1.0], 2), file)
    lines = results.read(file)
    assert [line.status for line in lines] == ["failed"] * 2
    assert "no luck" in lines[0].note
    run(grid(USUAL, ["adult"], ["linear"], [1.0], 2), file)
    assert [line.status for line in results.read(file)] == ["ok"] * 2


def test_what_was_measured_is_not_measured_again(tables, peer, tmp_path, monkeypatch):
    file = tmp_path / "fits.jsonl"
    jobs = grid(USUAL, ["adult", "abalone"], ["additive", "ebm"], [1.0], 2)
    run(jobs[:3], file)
    n_before = len(StandIn.made)
    run(jobs, file)
    lines = results.read(file)
    assert {line.key for line in lines} == {job.key for job in jobs}
    assert all(line.status == "ok" for line in lines)
    assert len(file.read_text().splitlines()) == len(jobs)
    assert {line.code for line in lines if line.method == "ebm"} == {methods.INTERPRET}
    n_fits, n_calls = len(StandIn.made), len(peer)
    assert n_fits > n_before
    run(jobs, file)
    assert (len(StandIn.made), len(peer)) == (n_fits, n_calls)
    # another state of the library, of which only its own fits are measured again
    monkeypatch.setattr(results, "code_digest", lambda: "later")
    run(jobs, file, same_code=True)
    assert len(StandIn.made) > n_fits
    assert len(peer) == n_calls


def test_a_line_that_was_cut_short_is_measured_again(tmp_path):
    file = tmp_path / "fits.jsonl"
    line = results.Line("usual", "adult", "linear", 1.0, 0, 0.8, 0.1)
    results.append(line, file)
    with file.open("a") as text:
        text.write('{"protocol": "usual", "name": "adu')
    assert results.read(file) == [line]
    assert results.finished(file) == {line.key}


def test_several_classes_are_not_sent_to_dp_ebm(tmp_path, peer):
    assert offered("covertype", METHODS["dp_ebm"])
    assert not offered("covertype", METHODS["ebm"])
    assert not offered("covertype", METHODS["linear"])
    run(grid(USUAL, ["covertype"], ["dp_ebm"], [1.0], 1), tmp_path / "fits.jsonl")
    (line,) = results.read(tmp_path / "fits.jsonl")
    assert (line.status, line.score) == ("rejected", None)
    assert not peer


def test_slow_methods_have_fewer_splits():
    assert n_runs("adult", METHODS["linear"], 10) == 10
    assert n_runs("adult", METHODS["ebm"], 10) == 3
    assert n_runs("covertype", METHODS["ebm"], 10) == 1
    assert n_runs("covertype", METHODS["linear"], 2) == 2


def test_results_of_a_peer_arrive_before_it_ends(tmp_path, monkeypatch):
    (tmp_path / "peer.py").write_text(
        "import json, sys\n"
        "import numpy as np\n"
        "rows = np.load(sys.argv[1])['X']\n"
        "given = json.load(open(sys.argv[2]))\n"
        "print(json.dumps({'sum': float(rows.sum()) + given['more']}), flush=True)\n"
        "sys.exit('out of luck')\n"
    )
    monkeypatch.setattr(client, "interpreter", lambda environment: sys.executable)
    monkeypatch.setattr(client, "HERE", tmp_path)
    answers = client.stream("any", "peer.py", {"X": np.ones(3)}, {"more": 1})
    assert next(answers) == {"sum": 4.0}
    with pytest.raises(client.PeerFailed, match="out of luck"):
        next(answers)
