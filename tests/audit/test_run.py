"""Audits end to end on toy trainers."""

import dataclasses

import numpy as np
import pytest

from tacit.audit import audit, worst_case_pair
from tacit.audit.bounds import gaussian_epsilon

DELTA = 1e-5


def generator(seed):
    return np.random.Generator(np.random.PCG64(seed))


def noisy_gradient(multiplier):
    """One Gaussian release of the hinge gradient at zero, replacement neighbors."""

    def train(data, seed):
        X, y = data
        gradient = -(X * y[:, None]).sum(axis=0)
        noise = generator(seed).normal(scale=2 * multiplier, size=gradient.shape)
        return (gradient + noise).reshape(1, -1)

    return train


PAIR = worst_case_pair("hinge", 6, 3)


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["clopper-pearson", "gaussian"])
def test_a_true_claim_stands_and_half_the_noise_is_caught(method, seed):
    # a Gaussian with multiplier m is 1/m-Gaussian DP
    multiplier = 0.5
    claim = float(gaussian_epsilon(DELTA, 1 / multiplier))
    options = {"n_runs": 4000, "delta": DELTA, "method": method, "random_state": seed}
    true = audit(noisy_gradient(multiplier), PAIR, **options)
    assert not true.refutes(claim)
    assert true.epsilon_lower > 0.15 * claim
    if method == "gaussian":
        assert true.epsilon_lower > 0.6 * claim
        assert audit(noisy_gradient(multiplier / 2), PAIR, **options).refutes(claim)


@pytest.mark.statistical
def test_half_the_laplace_noise_is_caught_without_assumptions(seed):
    def laplace(scale):
        def train(data, run_seed):
            X, y = data
            total = np.sum(X[:, 0] * y)
            return total + generator(run_seed).laplace(scale=scale)

        return train

    options = {"n_runs": 4000, "delta": 0.0, "random_state": seed}
    assert not audit(laplace(2.0), PAIR, **options).refutes(1.0)
    assert audit(laplace(1.0), PAIR, **options).refutes(1.0)


def test_a_release_without_noise_is_caught():
    def train(data, seed):
        X, y = data
        return np.array([generator(seed).normal(), np.sum(X[:, 0] * y)])

    found = audit(train, PAIR, n_runs=1000, delta=0.0, random_state=0)
    assert found.epsilon_lower > 3


def test_a_given_score_is_used():
    def train(data, seed):
        X, y = data
        # only the size differs, so no linear score can tell
        sign = 1 if seed % 2 else -1
        return sign * (2.0 + np.sum(X[:, 0] * y))

    options = {"n_runs": 400, "delta": 0.0, "random_state": 0}
    assert audit(train, PAIR, **options, score=abs).epsilon_lower > 2


def test_seeds_differ_and_follow_the_random_state():
    def seeds_of(random_state):
        seen = []

        def train(data, seed):
            seen.append(seed)
            return float(len(seen))

        audit(train, PAIR, n_runs=50, delta=0.1, random_state=random_state)
        return seen

    seen = seeds_of(7)
    assert len(set(seen)) == 100
    assert all(isinstance(s, int) and 0 <= s < 2**32 for s in seen)
    assert seeds_of(7) == seen
    assert seeds_of(np.random.SeedSequence(7)) == seen
    assert seeds_of(8) != seen
    assert seeds_of(None) != seeds_of(None)


def test_the_result_is_frozen_and_reads_as_a_sentence():
    found = audit(noisy_gradient(1.0), PAIR, n_runs=50, delta=DELTA, method="gaussian")
    assert found.n_runs == 50
    assert found.trials == (25, 25)
    text = str(found)
    assert text.startswith("epsilon >= ")
    assert "confidence 1 - 1e-06" in text
    assert "assuming a Gaussian trade-off" in text
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.n_runs = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_runs": 3}, "n_runs must be"),
        ({"method": "guess"}, "method must be one of"),
        ({"pair": PAIR + PAIR}, "pair must be two"),
        ({"train": lambda data, seed: np.zeros(1 + seed % 2)}, "one shape"),
        ({"train": lambda data, seed: np.nan}, "finite"),
    ],
)
def test_bad_parameters_are_named(change, message):
    given = {"train": noisy_gradient(1.0), "pair": PAIR, "n_runs": 20, "delta": DELTA}
    given |= change
    with pytest.raises(ValueError, match=message):
        audit(given.pop("train"), given.pop("pair"), **given)
