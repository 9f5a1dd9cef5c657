"""Charged certificates, attacked at the row that moves its counts most."""

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.verdict import check
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit import audit
from tacit.fairness import plan_certificate
from tacit.privacy import Neighbors

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE

each_relation = pytest.mark.parametrize(
    "neighbors", [REPLACE, ADD], ids=["replace", "add"]
)


def counts_attack(epsilon, delta, neighbors, n_runs, seed):
    """One person is surely right in one cell; or surely wrong in another, or away."""
    plan = plan_certificate(
        epsilon, classes=[0, 1], groups=[0, 1], delta=delta, neighbors=neighbors
    )
    first, second = np.full((2, 4, 4), 20.0)
    first[0, 0] += 1
    if neighbors is REPLACE:
        second[3, 3] += 1

    def bound(noise):
        quieter = replace(plan, multiplier=noise * plan.multiplier)
        return audit(
            lambda counts, s: quieter.run(counts, as_generator(s)),
            (first, second),
            n_runs=n_runs,
            delta=delta,
            method="gaussian" if delta else "clopper-pearson",
            score=lambda release: (
                release[0, 0] - release[3, 3] * (neighbors is REPLACE)
            ),
            confidence=1 - P_FAIL,
            random_state=seed,
        ).epsilon_lower

    return bound


@pytest.mark.statistical
@each_relation
@pytest.mark.parametrize(
    ("epsilon", "delta", "n_runs"),
    [(1.0, 0.0, 1500), (10.0, 1e-5, 500)],
    ids=["laplace", "gaussian"],
)
def test_half_the_noise_of_a_certificate_is_caught(
    epsilon, delta, n_runs, neighbors, seed
):
    attack = counts_attack(epsilon, delta, neighbors, n_runs, seed)
    check("private_certificate", epsilon, attack)


@pytest.mark.slow
@pytest.mark.statistical
@each_relation
@pytest.mark.parametrize(
    ("epsilon", "delta", "n_runs"),
    [(0.5, 0.0, 6000), (4.0, 1e-5, 4000)],
    ids=["laplace", "gaussian"],
)
def test_claim_of_a_certificate_survives_many_runs(
    epsilon, delta, n_runs, neighbors, seed
):
    attack = counts_attack(epsilon, delta, neighbors, n_runs, seed)
    check("private_certificate", epsilon, attack)
