"""Solvers of matrix completion attacked by a user whose whole row is the worst.

Whole runs, many times: epsilon is bounded from below by all that was released, with the
best test there is, and by the published item side alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.audits.recommending import (
    ADDED,
    REPLACED,
    remembered_means,
    row,
    table_of,
    walk,
    with_noise,
)
from tests.audits.verdict import assert_refutes_the_control, bound_of_runs
from tests.cases import Cases
from tests.recommend.doubles import MeansSolver
from tests.stat import P_FAIL
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.audit.bounds import gaussian_bound
from tacit.mechanisms.noise import GRID
from tacit.privacy import Budget
from tacit.recommend.ratings.table import RatingFacts
from tacit.recommend.solvers.als import PrivateALS
from tacit.recommend.solvers.gradient import ProjectedGradientCompletion
from tacit.recommend.solvers.svd import CleansedSVD, SVDCompletion

SHARED_CASES = Cases(
    audits="CleansedSVD FrankWolfeCompletion ItemMeans PrivateALS "
    "ProjectedGradientCompletion SVDCompletion"
)


@dataclass(frozen=True)
class Case:
    """A solver, a user, what she is replaced by, and all others, whom we know."""

    solver: Any
    facts: RatingFacts
    user: Any
    other: Any
    others: tuple[Any, ...] = ()
    told: Any = None  # what the item side says of her
    n_runs: int = 600

    def pair(self, neighbors):
        """Return the table with her and its neighbor."""
        instead = (self.other,) if neighbors is REPLACED else ()
        tables = (*self.others, self.user), (*self.others, *instead)
        return [table_of(rows, self.facts.n_items) for rows in tables]

    def named(self, name):
        """Return the public name of the solver, and what of it."""
        kind = type(self.solver).__name__.replace("MeansSolver", "ItemMeans")
        return ", ".join([kind, *name.split(", ")[1:]])

    def plan(self, budget, part):
        return with_noise(self.solver.plan(self.facts, budget), part)


def facts_of(n_items, max_ratings, n_users=2):
    return RatingFacts(n_items, -1.0, 1.0, n_users, max_ratings)


def evidence(solver, plan, tables, side, seed):
    """Return the log-likelihood ratio of all that one run released.

    No test does better. A replay says what would have been summed on the other table.
    """
    with remembered_means():
        with recording() as tape:
            solver.run(plan, tables[side], as_generator(seed))
        with replaying(tape, redraw=True) as again:
            solver.run(plan, tables[1 - side], as_generator(seed))
    total = 0.0
    for own, other in zip(tape.releases, again.releases, strict=True):
        moved = np.ravel(own.value - other.value) / GRID
        noise = np.ravel(own.output - own.value) / GRID
        total += float(moved @ noise + moved @ moved / 2)
    return (1 - 2 * side) * total


def lower_bound(case, budget, part, seed):
    """Return the bound on epsilon from all that is released."""
    plan, tables = case.plan(budget, part), case.pair(budget.neighbors)
    scores = [
        [
            evidence(case.solver, plan, tables, side, seed + 2 * run + side)
            for run in range(case.n_runs)
        ]
        for side in (0, 1)
    ]
    return gaussian_bound(*scores, delta=budget.delta, confidence=1 - P_FAIL)


# one user and nobody else, who rates as much as she may at both ends of the range, or
# does so for other items
FOUR, TWO = facts_of(4, 2), facts_of(2, 1)
APART = FOUR, row([0, 1], [1, -1]), row([2, 3], [1, -1])
# counts and means move most where two users disagree about one of many items
ELSEWHERE = row([0, *range(15, 29)], [-1] + [1] * 14)
FAR = facts_of(29, 15), row(range(15), [1] + [-1] * 14), ELSEWHERE
# products with any vector move most where there are no other items
SINGLE = TWO, row([0], [1]), row([1], [1])
ONLY = facts_of(1, 1), row([0], [1]), row([], [])

# a walk is that of FrankWolfeCompletion
RELEASED = {
    "item means": Case(MeansSolver(), *FAR),
    # more runs where her row moves some releases by less than their sensitivity
    "als": Case(PrivateALS(rank=2, n_iter=1), *FAR, n_runs=900),
    # planned for more users, so that candidates are compared too
    "als, choice": Case(PrivateALS(n_iter=0), facts_of(29, 15, 5000), *FAR[1:]),
    "svd": Case(SVDCompletion(), *APART),
    "gradient": Case(ProjectedGradientCompletion(n_iter=2), *APART, n_runs=900),
    "cleansed": Case(CleansedSVD(), *APART),
    "walk": Case(walk(), *APART),
    "walk, standard": Case(walk(step="standard", nuclear_norm=2.0), *APART),
    "walk, oja": Case(walk(n_iter=1, eigenvector="oja", n_products=5), *SINGLE),
    "walk, power": Case(walk(n_iter=1, eigenvector="power", n_products=5), *SINGLE),
}


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
@pytest.mark.parametrize("name", RELEASED)
def test_what_is_released_keeps_the_claim(name, neighbors, seed):
    case = RELEASED[name]
    if case.facts is TWO and neighbors is ADDED:
        case = Case(case.solver, *ONLY)
    budget = Budget(8.0, 1e-3, neighbors)
    found = [lower_bound(case, budget, part, seed) for part in (1.0, 0.5)]
    told = f"{case.named(name)}, {neighbors.name.lower()}, released"
    assert_refutes_the_control(told, budget.epsilon, *found, least=0.25)


def lean(side):
    """Return how far the first direction leans from one item to the other."""
    vectors = getattr(side, "projections", side.vectors)
    return [vectors[0, 0] * vectors[1, 0] if vectors.shape[1] else 0.0]


def strength(side):
    """Return the strength of the first direction, with the sign of its lean."""
    if not len(side.strengths):
        return [0.0]
    return [np.sign(side.vectors[0, 0] * side.vectors[-1, 0]) * side.strengths[0]]


def preference(side):
    return [side.offsets[0] - side.offsets[1]]


def third(side):
    """Return vector and offset of the third item, seen from the first two."""
    vector = side.vectors[:, 0] if side.vectors.shape[1] else np.zeros(3)
    return [vector[2] * (vector[0] - vector[1]), side.offsets[2]]


BOTH, FIRST, SECOND = (row([0, 1], ends) for ends in ([1, 1], [1, -1], [-1, 1]))
ONE = row([0], [1])
PAIR = facts_of(2, 2, 40)
# others settle what the first direction is, so that it leans as one user wants
LEANS = PAIR, BOTH, FIRST, (ONE,) * 40, lean, 1500
# and offsets are far enough from zero not to be shrunk to it
MOST = (FIRST,) * 40 + (SECOND,) * 10
PREFERS = facts_of(2, 2, 50), SECOND, FIRST, MOST, preference, 800
GROWS = PAIR, BOTH, FIRST, (BOTH,) * 40, strength, 1500
COUNTS = facts_of(1, 1, 40), ONE, row([], []), (ONE,) * 40, strength, 1500
THIRD = (
    facts_of(3, 3, 40),
    row([0, 1, 2], [1, -1, 1]),
    row([0, 1, 2], [1, -1, -1]),
    (FIRST, SECOND) * 20,
    third,
    800,
)
ONE_STEP = {"n_iter": 1, "step": "standard", "nuclear_norm": 1.0}

PUBLISHED = {
    "item means": Case(MeansSolver(), *PREFERS),
    "als": Case(PrivateALS(), *PREFERS),
    "als, one round": Case(PrivateALS(rank=1, n_iter=1), *PREFERS),
    "svd": Case(SVDCompletion(), *LEANS),
    "gradient": Case(ProjectedGradientCompletion(n_iter=1), *LEANS),
    "cleansed": Case(CleansedSVD(), *THIRD),
    "walk": Case(walk(n_iter=1), *GROWS),
    "walk, standard": Case(walk(**ONE_STEP), *LEANS),
    "walk, oja": Case(walk(eigenvector="oja", n_products=1, **ONE_STEP), *COUNTS),
    "walk, power": Case(walk(eigenvector="power", n_products=1, **ONE_STEP), *COUNTS),
}
# where the item side tells much less than was released, half the noise goes unseen; so
# it does where a user of two items moves means by less than one of many can
SEEN = {"item means": 0.35, "als": 0.2, "als, one round": 0.2, "cleansed": 0.2}


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_item_side_keeps_the_claim(name, neighbors, seed):
    case, budget = PUBLISHED[name], Budget(8.0, 1e-3, neighbors)

    def bound(part):
        plan = case.plan(budget, part)
        return bound_of_runs(
            lambda table, seed: case.told(
                case.solver.run(plan, table, as_generator(seed))
            ),
            case.pair(neighbors),
            case.n_runs,
            budget.delta,
            seed,
        )

    part = SEEN.get(name, 0.5)
    assert_refutes_the_control(
        f"{case.named(name)}, {neighbors.name.lower()}, published",
        budget.epsilon,
        bound(1.0),
        bound(part),
        part,
    )
