"""Votes of blocks for columns: any selector, at most one vote a row, exact laws."""

from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.special import log_softmax
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression
from sklearn.linear_model import lars_path
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit.audit import replay
from tacit.exceptions import PlanError
from tacit.feature_selection import BlockVoteSelector
from tacit.feature_selection._block_selectors import BlockSelection, first_columns
from tacit.mechanisms import NO_ANSWER
from tacit.privacy import Budget, Neighbors
from tacit.stability import blocks_needed
from tacit.stability._votes import FeatureVote, votes_needed

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
N, P = 3000, 8
RELEVANT = (1, 4)
each_relation = pytest.mark.parametrize(
    "neighbors", [REPLACE, ADD], ids=["replace", "add"]
)


def rows(seed=0, n=N):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, (n, P))
    return X, X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(n)


def voting(**given):
    common = {"epsilon": 2.0, "delta": 1e-6, "n_features_to_select": 2}
    return BlockVoteSelector(**{**common, **given})


@each_relation
@pytest.mark.parametrize("method", ["blocks", "features"])
def test_the_columns_that_matter_are_found(method, neighbors, seed):
    X, y = rows(seed)
    selector = voting(method=method, neighbors=neighbors.value, random_state=seed)
    assert selector.fit(X, y).selection_ == RELEVANT


def test_subsamples_vote_too(seed):
    X, y = rows(seed, 2000)
    selector = voting(
        epsilon=20.0,
        delta=1e-3,
        method="subsamples",
        selector=lambda X, y: [1, 4],
        random_state=seed,
    )
    assert selector.fit(X, y).selection_ == RELEVANT
    with pytest.raises(ValueError, match="n_blocks"):
        voting(method="subsamples", n_blocks=3).fit(X, y)


@pytest.mark.parametrize(
    "selector",
    [
        SelectKBest(f_regression, k=2),
        SelectFromModel(
            RandomForestRegressor(3, max_depth=3), max_features=2, threshold=-np.inf
        ),
        lambda X, y: np.argsort(-np.abs((X - X.mean(0)).T @ (y - y.mean())))[:2],
        lambda X, y: np.abs(X.T @ y) > 0.25 * len(y) / 3,
    ],
    ids=["k best", "forest", "places", "mask"],
)
def test_any_selector_can_be_queried(selector, seed):
    X, y = rows(seed)
    found = voting(epsilon=5.0, n_blocks=15, selector=selector, random_state=seed)
    assert found.fit(X, y).selection_ == RELEVANT


def test_a_selector_that_fails_votes_for_nothing(seed, recwarn):
    X, y = rows(seed)

    def failing(X, y):
        raise RuntimeError(f"row {X[0]}")

    for bad in (failing, lambda X, y: "text", lambda X, y: [P], lambda X, y: [0.5]):
        selector = voting(selector=bad, random_state=seed).fit(X, y)
        assert selector.selection_ == NO_ANSWER
        by_column = voting(selector=bad, method="features", random_state=seed)
        assert len(by_column.fit(X, y).selection_) == 2
    assert len(recwarn) == 0


def test_blocks_that_disagree_give_no_answer(seed):
    X, y = rows(seed)
    selector = voting(selector=lambda X, y: [int(1000 * abs(X[0, 0])) % P])
    assert selector.set_params(random_state=seed).fit(X, y).selection_ == NO_ANSWER


def test_selectors_draw_from_seeds_of_their_own(seed):
    X, y = rows(seed, 300)
    forest = SelectFromModel(RandomForestRegressor(2), max_features=1)
    ask = BlockSelection(forest, 1)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    found = [ask(X, y, random_state=7) for _ in range(2)]
    assert found[0] == found[1]
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert not hasattr(forest, "estimator_")


def test_targets_are_passed_as_they_are_or_cut_or_mapped(seed):
    X, y = rows(seed, 100)
    seen = []

    def keep(X, y):
        seen.append((X, y))
        return [0]

    common = {"selector": keep, "n_blocks": 1, "n_features_to_select": 1}
    text = np.where(y > 0, "b", "a")
    BlockVoteSelector(**common).fit(X, text)
    BlockVoteSelector(y_range=(-0.1, 0.1), feature_bounds=0.5, **common).fit(X, y)
    BlockVoteSelector(classes=["a", "b"], **common).fit(X, text)
    assert set(seen[0][1]) == {"a", "b"}
    assert_array_equal(np.sort(seen[1][1]), np.sort(np.clip(y, -0.1, 0.1)))
    assert np.abs(seen[1][0]).max() == 0.5
    assert set(seen[2][1]) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="y must hold numbers"):
        BlockVoteSelector(n_features_to_select=1).fit(X, text)
    for wrong in ({"y_range": (1, 0)}, {"classes": [1]}, {"feature_bounds": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            BlockVoteSelector(**common, **wrong).fit(X, y)


@pytest.mark.parametrize("selector", [3, "lasso", SelectKBest, object()])
def test_what_is_no_selector_is_rejected(selector):
    with pytest.raises(ValueError, match="selector"):
        voting(selector=selector).plan(100, 5)


def test_unknown_methods_and_bad_blocks_are_rejected():
    for wrong in ({"method": "rows"}, {"n_blocks": 0}, {"n_blocks": 2.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            voting(**wrong).plan(100, 5)


def test_blocks_need_a_delta_and_columns_do_not():
    with pytest.raises(PlanError, match="delta"):
        voting(delta=0.0).plan(100, 5)
    budget = voting(delta=0.0, method="features").plan(100, 5)
    assert budget.event.curve(REPLACE).pure <= 2.0


def test_blocks_are_planned_from_public_facts():
    plan = voting(epsilon=1.0).plan(10_000, 20).plan
    assert plan.n_blocks == blocks_needed(1.0, 1e-6)
    assert voting(epsilon=1.0).plan(50, 20).plan.n_blocks == 50
    assert voting(n_blocks=7).plan(10_000, 20).plan.n_blocks == 7
    few, many = (
        voting(method="features", epsilon=e).plan(10**6, 20).plan.n_blocks
        for e in (4.0, 0.5)
    )
    assert few < many


@pytest.mark.parametrize("n_features", [10, 1000])
def test_that_many_votes_are_not_hidden_by_noise(n_features):
    epsilon, n_select = 0.3, 3
    blocks = votes_needed(epsilon, n_select, n_features)
    scores = np.zeros(n_features)
    scores[:n_select] = 0.75 * blocks
    # the exact probability that the last choice, which is the hardest, is right
    right = np.exp(log_softmax(scores[n_select - 1 :] * epsilon / 2))[0]
    assert 1 - right < 0.05 / n_select
    fewer = np.exp(log_softmax(scores[n_select - 1 :] * epsilon / 4))[0]
    assert 1 - fewer > 0.05 / n_select


def test_the_default_selector_is_the_start_of_the_lasso_path(seed):
    X, y = rows(seed, 200)
    X = X * np.geomspace(0.1, 10, P)  # scaled alike before
    Z = X - X.mean(axis=0)
    Z /= np.sqrt((Z**2).sum(axis=0))
    _, active, _ = lars_path(Z, y - y.mean(), method="lasso", max_iter=3)
    assert sorted(first_columns(X, y, 3)) == sorted(active[:3])
    found = first_columns(sparse.csr_array(X), y, 3)
    assert sorted(found) == sorted(active[:3])


def test_the_default_selector_wants_columns_that_vary():
    X, y = np.ones((20, 3)), np.arange(20.0)
    X[:, 1] = y
    assert_array_equal(first_columns(X, y, 1), [1])
    with pytest.raises(ValueError, match="vary"):
        first_columns(X, y, 2)


@each_relation
@pytest.mark.parametrize("method", ["blocks", "features"])
def test_neighbors_differ_in_one_vote(method, neighbors, seed):
    X, y = rows(seed, 120)
    rng = as_generator(seed)
    selector = voting(
        method=method,
        n_blocks=10,
        neighbors=neighbors.value,
        expected_rows=100,
        random_state=seed,
    )
    for trial in range(10):
        if neighbors is REPLACE:
            position = int(rng.integers(120))
            other, z = X.copy(), y.copy()
            other[position], z[position] = 1e6 * rng.standard_normal(P), 1e9
        else:
            # a row at the end leaves the blocks of all others as they are
            other, z = np.vstack([X, 1e6 * np.ones(P)]), np.append(y, 1e9)
        pair = ((X, y), (other, z)) if trial % 2 else ((other, z), (X, y))
        report = replay(lambda X, y: selector.fit(X, y).selection_, *pair)
        assert report.ok, str(report)
        assert len(report.entries) == (1 if method == "blocks" else 2)


def test_a_row_in_two_blocks_would_be_seen(seed):
    """Positive control: a selector that remembers moves more than one vote."""
    X, y = rows(seed, 100)
    other = X.copy()
    other[0] = 0.0
    memory = []

    def remembering(X, y):
        memory.extend(X[:, 0] == 0.0)
        return [3, 5] if any(memory) else [1, 4]

    def select(X, y):
        memory.clear()
        selector = voting(
            method="features", n_blocks=10, selector=remembering, random_state=seed
        )
        return selector.fit(X, y).selection_

    assert not replay(select, (X, y), (other, y)).ok


@pytest.mark.statistical
def test_columns_are_chosen_by_the_distribution_of_their_votes(seed):
    votes = np.array([3.0, 1.0, 4.0, 0.0])
    blocks = iter(())

    def said(X, y):
        return next(blocks)

    ballots = [[k for k in range(4) if votes[k] > b] for b in range(4)]
    procedure = FeatureVote(BlockSelection(said, 2), 2, 4)
    plan = procedure.plan(Budget(3.0), 40, 4)
    X, y = np.zeros((40, 4)), np.zeros(40)
    rng = as_generator(seed)
    sets = list(combinations(range(4), 2))
    counts = np.zeros(len(sets))
    for _ in range(2000):
        blocks = iter(ballots)
        counts[sets.index(procedure.run(plan, X, y, rng))] += 1

    def law(epsilon):
        odds = dict.fromkeys(sets, 0.0)
        for first, second in permutations(range(4), 2):
            logits = votes * epsilon / 2
            left = np.delete(logits, first)
            p = np.exp(log_softmax(logits))[first]
            position = second - (second > first)
            odds[tuple(sorted((first, second)))] += (
                p * np.exp(log_softmax(left))[position]
            )
        return list(odds.values())

    assert_counts_follow(counts, law(1.5))
    assert_counts_detect(counts, law(2.4))
