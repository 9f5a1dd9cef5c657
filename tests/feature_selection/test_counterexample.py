"""A published test of stability, refuted by two neighbors, and its repair."""

from math import exp, log

import pytest
from benchmarks.regression.counterexample import (
    EPSILON,
    TOLD,
    Printed,
    audited,
    neighbors,
    printed_probability,
    repaired,
)

from tacit.mechanisms import StableRelease


@pytest.mark.statistical
def test_the_published_test_is_detected(seed):
    (first, second), found = audited(Printed(), 300, seed)
    assert first[0] == TOLD
    assert second[0] == (0, 1)
    assert first[1] == pytest.approx(21.83, abs=0.01)
    assert printed_probability(first[1]) == pytest.approx(0.99984, abs=1e-5)
    assert second[1] == 0
    assert found.epsilon_lower > 2 * EPSILON


def test_the_repaired_tests_release_neither_side():
    for procedure in repaired().values():
        for side in neighbors():
            assert procedure.measure(*side)[1] == 0


def test_the_repaired_tests_release_the_same_where_nothing_is_about_to_enter():
    for procedure in repaired(penalty=4000.0).values():
        first, second = (procedure.measure(*side) for side in neighbors())
        assert first[0] == second[0] == (0, 1)
        assert first[1] > 4
        assert abs(first[1] - second[1]) <= 1


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_published_one_too_many_costs_delta_a_factor(epsilon):
    """A distance of one where a neighbor differs is told with half e^epsilon delta."""
    delta = 1e-6
    told = printed_probability(1.0, epsilon, delta)
    assert told == pytest.approx(exp(epsilon) * delta / 2)
    assert (told > delta) == (epsilon > log(2))
    # without it the distance is zero, and what is told there is within delta
    assert StableRelease(epsilon, delta).release_probability(0.0) <= delta
