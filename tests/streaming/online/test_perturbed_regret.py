"""How regret grows, as the benchmark measures it, and that it measures the learner."""

import numpy as np
import pytest
from benchmarks.streams.regret import (
    WALKED,
    Costs,
    exponent_of,
    perturbed,
    played,
    rows_of,
    stepped_weights,
    walked_regrets,
)

from tacit._random import as_generator

COSTS = Costs("logistic", 1.0)


@pytest.mark.parametrize("name", WALKED)
@pytest.mark.parametrize("schedule", ["root", "averaged"])
def test_noise_added_at_once_is_that_of_steps_one_by_one(name, schedule, seed):
    n = 64
    X, y = rows_of("logistic", n, seed)
    learner = perturbed(COSTS, schedule, n, WALKED[name])
    base = learner.iterates
    exact = base.path(base.init(), 1, X, y, np.arange(1, n + 1))[:, 0]
    at_once = played(exact, learner, as_generator(seed))
    stepped = stepped_weights(learner, X, y, as_generator(seed))
    np.testing.assert_allclose(at_once, stepped, rtol=1e-9, atol=1e-12)
    # the control: other noise is told apart
    other = played(exact, learner, as_generator(seed + 1))
    assert np.abs(other - stepped).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", WALKED)
def test_exponents_are_those_expected(name, seed):
    found = {}
    for repeat in range(4):
        for schedule, n, value in walked_regrets(
            COSTS, name, (12, 13, 14, 15, 16), seed + repeat
        ):
            found.setdefault(schedule, []).append((repeat, n, value))
    exponents = {name: exponent_of(measured)[0] for name, measured in found.items()}
    assert 0.45 < exponents["published"] < 0.60
    assert exponents["two_thirds"] < 0.40
    assert exponents["root"] < 0.40
    assert exponents["averaged"] < 0.40
