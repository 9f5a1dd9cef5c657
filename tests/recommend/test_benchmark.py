"""The accuracy benchmark, which reports what is not worth its privacy."""

import numpy as np
import pytest
from benchmarks.recommend import accuracy, baselines, common
from benchmarks.recommend.data import RUNS, Problem

REPLACE = accuracy.REPLACE


@pytest.fixture
def problem():
    """Ratings of rank one around three, and a few users without any."""
    rng = np.random.Generator(np.random.PCG64(3))
    n_users, n_items = 60, 20
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.7)
    signs = rng.choice([-1.0, 1.0], n_users), rng.choice([-1.0, 1.0], n_items)
    values = (3 + signs[0][users] * signs[1][items]).astype(np.float32)
    kept = users > 2
    pairs = users[kept], items[kept]
    return Problem("made", *pairs, values[kept], n_users, n_items, (1.0, 5.0), rank=1)


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(common.RESULTS, "folder", tmp_path)

    def opened(quick=False):
        return common.RESULTS.log(
            "accuracy", accuracy.FIELDS, lambda row: row["code"] == "now", quick=quick
        )

    return opened


def pairs_of(split):
    rows = split.train.tocoo()
    return set(zip(rows.row.tolist(), rows.col.tolist(), strict=True))


def held_out(split):
    return set(zip(split.users.tolist(), split.items.tolist(), strict=True))


def test_no_rating_is_fitted_and_scored_and_no_tuning_sees_a_test_rating(problem):
    tests = [held_out(problem.split(run)) for run in range(RUNS)]
    for run, test in enumerate(tests):
        split = problem.split(run)
        assert not test & pairs_of(split)
        assert len(test) + split.train.nnz == problem.n_ratings
    together = set.union(*tests)
    assert len(together) == sum(map(len, tests)) > 0
    tuning = problem.tuning()
    assert not together & (pairs_of(tuning) | held_out(tuning))
    # the check sees a rating that is in both
    assert held_out(problem.split(0)) & pairs_of(problem.split(1))


def test_means_are_those_of_the_fitted_ratings(problem):
    split = problem.split(0)
    dense = np.full(split.train.shape, np.nan)
    rows = split.train.tocoo()
    dense[rows.row, rows.col] = rows.data
    level = np.nanmean(dense)
    means = np.array([np.nanmean(r) if np.isfinite(r).any() else level for r in dense])
    np.testing.assert_allclose(baselines.user_means(split), means, rtol=1e-12)
    offsets = np.nanmean(dense - means[:, None], axis=0)
    np.testing.assert_allclose(baselines.item_offsets(split), offsets, atol=1e-12)
    found = baselines.by_both_means(split)
    expected = means[split.users] + offsets[split.items]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_plain_least_squares_find_ratings_of_rank_one_and_means_do_not(problem):
    split = problem.split(0)
    found = split.rmse(baselines.of_known_rank(1).predict(split))
    assert found < 0.05
    for means in baselines.BY_MEANS.values():
        assert split.rmse(means(split)) > 0.5


def test_settings_are_chosen_by_ratings_that_the_split_holds_out(problem, monkeypatch):
    tried = []

    class Double(baselines.PlainALS):
        def predict(self, split):
            tried.append(self)
            # the best of these is rank two with a ridge of 0.08, and a power of one
            off = abs(np.log2(self.rank / 2)) + abs(np.log2(self.ridge / 0.08))
            return split.values + (off + abs(self.power - 1.0)) / 100

    monkeypatch.setattr(baselines, "PlainALS", Double)
    chosen = baselines.tuned(problem.tuning())
    assert (chosen.rank, chosen.ridge, chosen.power) == (2, 0.08, 1.0)
    assert len(tried) == len(set(tried))
    assert {case.power for case in tried} == set(baselines.FIRST_RIDGES)


def test_a_run_goes_on_where_it_stopped_unless_the_code_is_another(log):
    row = dict.fromkeys(accuracy.FIELDS, "x") | {"code": "now"}
    with log() as first:
        first.append(row | {"epsilon": None, "run": 0})
        first.append(row | {"code": "before"})
    with log() as second:
        assert [(r["epsilon"], r["run"], r["code"]) for r in second.rows] == [
            ("", "0", "now")
        ]
        second.append(row)
    with log() as third:
        assert len(third.rows) == 2
    with log(quick=True) as quick:
        assert quick.rows == []


@pytest.fixture
def measuring(problem, log, monkeypatch):
    measured = []

    def double(split, case, epsilon, run):
        measured.append((case, epsilon, run))
        return split.values + 1 / epsilon

    monkeypatch.setattr(accuracy, "private_predictions", double)
    monkeypatch.setattr(accuracy, "PRIVATE_CODE", "now")
    monkeypatch.setattr(accuracy, "OPEN_CODE", "now")
    with log() as opened:
        yield accuracy.Measuring(problem, opened, quick=False), measured


def test_each_case_is_measured_once_and_not_again(measuring):
    among, (measure, measured) = accuracy.cases(["als", "svd"]), measuring
    measure.measure(0, among)
    fits = 3 * len(accuracy.EPSILONS)
    assert len(measured) == len(set(measured)) == fits
    assert {case.neighbors for case, *_ in measured if case.method == "als"} == {
        accuracy.REPLACE,
        accuracy.ADD,
    }
    assert len(measure.log.rows) == fits + len(baselines.BY_MEANS) + 1
    measure.measure(0, among)
    assert len(measured) == fits


def test_a_slow_solver_begins_no_further_run(measuring, monkeypatch):
    measure, measured = measuring
    case = accuracy.Case("svd", REPLACE)
    monkeypatch.setattr(accuracy, "ALLOWANCE", -1.0)
    measure.measure(0, [case])
    measure.measure(1, [case])
    assert {run for *_, run in measured} == {0}
    monkeypatch.setattr(accuracy, "ALLOWANCE", 60.0)
    measure.measure(1, [case])
    assert {run for *_, run in measured} == {0, 1}


def row(method, epsilon, run, rmse, neighbors=""):
    found = dict.fromkeys(accuracy.FIELDS, "")
    return found | {
        "dataset": "made",
        "n_users": "60",
        "n_items": "20",
        "method": method,
        "neighbors": neighbors,
        "epsilon": epsilon,
        "run": str(run),
        "rmse": str(rmse),
    }


def test_the_table_reports_what_is_no_better_than_means():
    means = [row("user means", "", run, 1.0) for run in (0, 1)]
    both = [row("user and item means", "", run, 0.8) for run in (0, 1)]
    curve = [
        row("als", epsilon, run, rmse + 0.01 * run, REPLACE)
        for epsilon, rmse in (("0.1", 1.1), ("1.0", 0.9), ("5.0", 0.7))
        for run in (0, 1)
    ]
    bad = [row("svd", e, 0, 1.2, REPLACE) for e in ("0.1", "1.0", "5.0")]
    lines = {
        line["method"]: line for line in accuracy.table(means + both + curve + bad)
    }
    assert lines["als"]["better than user means"] == "from 1 on"
    assert lines["als"]["better than user and item means"] == "from 5 on"
    assert lines["svd"]["better than user means"] == "nowhere"
    assert lines["als"]["epsilon 1.0"] == "0.9050 ± 0.0050"
    assert (lines["als"]["runs"], lines["svd"]["runs"]) == (2, 1)
    assert lines["user means"]["no epsilon"] == "1.0000 ± 0.0000"


def test_a_lead_within_two_standard_errors_is_not_a_win():
    beside = {0: 1.0, 1: 1.0, 2: 1.0}
    assert not accuracy.is_better({0: 0.8, 1: 1.05, 2: 0.95}, beside)
    assert accuracy.is_better({0: 0.8, 1: 0.85, 2: 0.9}, beside)
    # on the runs that both have
    assert not accuracy.is_better({0: 1.2}, beside | {1: 9.0})
