"""Charged certificates, attacked at the person who moves their counts most."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.audits.quiet import quieter
from tests.audits.verdict import bound_of_runs, check
from tests.cases import Cases
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit.bounds import clopper_pearson_bound, gaussian_bound
from tacit.fairness import plan_certificate, private_certificate
from tacit.privacy import Neighbors

SHARED_CASES = Cases(audits="private_certificate")

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE
RIGHT_IF_POSITIVE = SimpleNamespace(
    classes_=np.array([0, 1]), coef_=np.ones((1, 1)), intercept_=np.zeros(1)
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

    def scores(plan, counts, rng):
        # many releases by one call, whose grid is finer by nothing to speak of
        released = plan.run(np.broadcast_to(counts, (n_runs, 4, 4)), rng)
        if delta:
            return (released * (first - second)).sum(axis=(1, 2))
        # beyond the two values of a count, Laplace noise tells no more
        shown = np.clip(released, np.minimum(first, second), np.maximum(first, second))
        return (shown * (first - second)).sum(axis=(1, 2))

    def bound(noise):
        quieter = replace(plan, multiplier=noise * plan.multiplier)
        rng = as_generator(seed)
        judge = gaussian_bound if delta else clopper_pearson_bound
        return judge(
            scores(quieter, first, rng),
            scores(quieter, second, rng),
            delta=delta,
            confidence=1 - P_FAIL,
        )

    return bound


@pytest.mark.statistical
@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("delta", [0.0, 1e-5], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_half_the_noise_of_a_certificate_is_caught(epsilon, delta, neighbors, seed):
    """The attack shows most of the claim, and more than it of half the noise."""
    attack = counts_attack(epsilon, delta, neighbors, 20_000, seed)
    check("counts of a certificate", epsilon, attack, least=0.5, subjects=())


def certified_accuracy(margin, seed):
    """One person is as surely right, or as surely wrong, as others are."""
    X = np.array([[margin], *[[1.0]] * 100, *[[-1.0]] * 100])
    found = private_certificate(
        RIGHT_IF_POSITIVE,
        X,
        np.ones(len(X), dtype=int),
        sensitive_features=np.zeros(len(X), dtype=int),
        epsilon=8.0,
        delta=1e-4,
        groups=[0],
        notion="accuracy",
        distance=0.5,
        random_state=seed,
    )
    return found.values


@pytest.mark.slow
@pytest.mark.statistical
def test_a_certificate_as_users_call_it_keeps_its_claim(seed):
    """Margins, counts, the charge and the figure: less noise anywhere is caught."""

    def bound(noise):
        with quieter(noise):
            return bound_of_runs(certified_accuracy, (1.0, -1.0), 400, 1e-4, seed)

    check("private_certificate", 8.0, bound, broken=0.25)
