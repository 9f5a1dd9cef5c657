"""The claims of private transformers attacked, by exact distributions and by fits."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax
from tests.audits.verdict import bound_of_runs, check, event_bound
from tests.cases import Cases
from tests.stat import assert_counts_detect, assert_counts_follow

from tacit._random import as_generator
from tacit.mechanisms.noise import GRID
from tacit.preprocessing._moments import plan_moments
from tacit.preprocessing._quantiles import plan_quantiles, rank_scores
from tacit.preprocessing._squares import plan_squares
from tacit.privacy import Budget, Neighbors

SHARED_CASES = Cases(audits="PrivateQuantileBounds PrivateStandardScaler")

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
CELLS = 3  # hence four candidates
LEVEL = 0.3

each_relation = pytest.mark.parametrize(
    "neighbors", [REPLACE, ADD], ids=["replace", "add"]
)


def moments_attack(budget, n_runs, seed, method, plan_of=plan_moments):
    """One column; the changed row moves from end to end, or comes in at an end."""
    rows = np.zeros((200, 1))
    rows[0] = 1.0
    other = rows.copy()
    # squares about zero are farthest apart between an end and zero
    other[0] = -1.0 if plan_of is plan_moments else 0.0
    pair = (rows, other if budget.neighbors is REPLACE else rows[1:])
    plan = plan_of(((-1.0, 1.0),), budget, n_rows=len(rows), noise="grid")

    def epsilon(noise):
        quieter = replace(plan, multiplier=plan.multiplier * noise)
        return bound_of_runs(
            lambda sums, s: quieter.mechanism(sums, as_generator(s)),
            [quieter.sums(X) for X in pair],
            n_runs,
            budget.delta,
            seed,
            method,
        )

    return epsilon


@pytest.mark.statistical
@each_relation
def test_half_the_noise_of_moments_is_caught(neighbors, seed):
    budget = Budget(10.0, 1e-5, neighbors)
    check("PrivateStandardScaler", 10.0, moments_attack(budget, 800, seed, "gaussian"))


@pytest.mark.statistical
def test_half_the_laplace_noise_of_moments_is_caught(seed):
    budget = Budget(1.0, 0.0, REPLACE)
    attack = moments_attack(budget, 2000, seed, "clopper-pearson")
    check("PrivateStandardScaler, pure", 1.0, attack)


@pytest.mark.statistical
@each_relation
def test_half_the_noise_of_squares_is_caught(neighbors, seed):
    budget = Budget(10.0, 1e-5, neighbors)
    attack = moments_attack(budget, 800, seed, "gaussian", plan_squares)
    check("PrivateStandardScaler, squares", 10.0, attack)


@pytest.mark.statistical
def test_half_the_laplace_noise_of_squares_is_caught(seed):
    budget = Budget(1.0, 0.0, REPLACE)
    attack = moments_attack(budget, 2000, seed, "clopper-pearson", plan_squares)
    check("PrivateStandardScaler, pure squares", 1.0, attack)


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_claim_of_squares_survives_at_a_usual_budget(neighbors, seed):
    budget = Budget(3.0, 1e-3, neighbors)
    check(
        "PrivateStandardScaler, squares",
        3.0,
        moments_attack(budget, 5000, seed, "gaussian", plan_squares),
    )


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
def test_claim_of_moments_survives_at_a_usual_budget(neighbors, seed):
    budget = Budget(3.0, 1e-3, neighbors)
    check("PrivateStandardScaler", 3.0, moments_attack(budget, 5000, seed, "gaussian"))


def quantile_plan(epsilon, neighbors):
    budget = Budget(epsilon, 0.0, neighbors)
    return plan_quantiles(
        ((0.0, float(CELLS)),), (LEVEL,), budget, n_cells=CELLS, noise="grid"
    )


def log_law(plan, counts):
    """Logarithms of the probabilities of the candidates, as they are drawn."""
    scores = rank_scores(np.array(counts), plan.levels[0])
    return log_softmax(plan.mechanism(0)._exponents(scores) / GRID)


def small_neighbors(neighbors, most=4):
    """Yield all pairs of neighbors with up to ``most`` rows at a point."""
    eye = np.eye(CELLS + 1, dtype=np.int64)
    for counts in product(range(most), repeat=CELLS + 1):
        first = np.array(counts)
        for i in range(CELLS + 1):
            for j in range(CELLS + 1) if neighbors is REPLACE else [None]:
                second = first - eye[i] + (0 if j is None else eye[j])
                if second.min() >= 0 and second.any():
                    yield first, second


def worst_loss(plan, neighbors):
    """Return the largest loss and the largest range of losses, with its pair."""
    laws = {}

    def law(counts):
        key = tuple(counts)
        if key not in laws:
            laws[key] = log_law(plan, counts)
        return laws[key]

    pairs = list(small_neighbors(neighbors))
    losses = [law(first) - law(second) for first, second in pairs]
    ranges = [np.ptp(loss) for loss in losses]
    worst = int(np.argmax(ranges))
    return max(np.abs(loss).max() for loss in losses), ranges[worst], pairs[worst]


@each_relation
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_exact_law_of_quantiles_keeps_its_range_on_a_whole_small_domain(
    epsilon, neighbors
):
    plan = quantile_plan(epsilon, neighbors)
    loss, spread, _ = worst_loss(plan, neighbors)
    assert loss <= epsilon
    assert spread <= epsilon
    if neighbors is REPLACE:
        # one row that moves past both candidates: nothing is wasted
        assert spread > 0.99 * epsilon
    half = replace(plan, sensitivities=(plan.sensitivities[0] / 2,))
    assert worst_loss(half, neighbors)[1] > epsilon


def rows_of(counts):
    return np.repeat(np.arange(CELLS + 1.0), counts)[:, None]


def drawn(plan, counts, n, seed):
    rng = as_generator(seed)
    X = rows_of(counts)
    return np.array([plan.run(X, rng)[0, 0] * CELLS for _ in range(n)]).round()


@pytest.mark.statistical
def test_quantiles_are_drawn_by_that_law(seed):
    plan, counts = quantile_plan(3.0, REPLACE), [2, 3, 1, 4]
    found = np.bincount(drawn(plan, counts, 3000, seed).astype(int), minlength=4)
    assert_counts_follow(found, np.exp(log_law(plan, counts)))
    half = replace(plan, epsilon=plan.epsilon / 2)
    assert_counts_detect(found, np.exp(log_law(half, counts)))


# The changed row passes all other points: those below the row that stays get worse and
# those above it better. Cells are such that an event of about one half becomes rare.
WORST = {
    REPLACE: (84, 10.0, ([0.0, 10.0], [10.0, 84.0])),
    ADD: (80, 40.0, ([40.0], [40.0, 80.0])),
}


@pytest.mark.statistical
@each_relation
def test_half_the_noise_of_quantiles_is_caught(neighbors, seed):
    claim, n = 2.0, 2000
    cells, edge, pair = WORST[neighbors]
    budget = Budget(claim, 0.0, neighbors)
    plan = plan_quantiles(
        ((0.0, float(cells)),), (0.5,), budget, n_cells=cells, noise="grid"
    )

    def epsilon(noise):
        sharper = replace(plan, epsilon=plan.epsilon / noise)
        hits = []
        for side, rows in enumerate(pair):
            X, rng = np.array(rows)[:, None], as_generator(seed + side)
            chosen = [sharper.run(X, rng)[0, 0] * cells for _ in range(n)]
            hits.append(int((np.round(chosen) < edge).sum()))
        return event_bound(hits[0], hits[1], n)

    check("PrivateQuantileBounds", claim, epsilon)
