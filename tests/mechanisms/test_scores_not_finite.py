"""Scores that are NaN or infinite: read one by one, and never an exception."""

import warnings
from math import inf, nan

import numpy as np
import pytest

from tacit._random import as_generator
from tacit._release import recording
from tacit.mechanisms import (
    AboveThreshold,
    Exponential,
    NoisyMax,
    PermuteAndFlip,
    StableRelease,
)
from tacit.mechanisms.samples import SampleIndices

KINDS = [Exponential, PermuteAndFlip, NoisyMax]
each_kind = pytest.mark.parametrize("kind", KINDS)
each_noise = pytest.mark.parametrize("noise", ["grid", "float"])
ODD = [
    ([nan, 0.0, 5.0], [-inf, 0.0, 5.0], 2),
    ([0.0, 5.0, -inf], [-1e300, 5.0, -1e300], 1),
    ([inf, 0.0, nan], [1e300, 0.0, -1e300], 0),
]


@each_kind
@each_noise
@pytest.mark.parametrize(("scores", "read", "best"), ODD)
def test_nan_is_the_lowest_score_and_infinity_the_end_of_the_range(
    kind, noise, scores, read, best
):
    mechanism = kind(100.0, 1.0, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = [mechanism(np.array(scores), as_generator(i)) for i in range(5)]
        same = [mechanism(np.array(read), as_generator(i)) for i in range(5)]
    assert chosen == [best] * 5
    assert same == [best] * 5


@each_kind
@each_noise
@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_scores_that_are_all_alike_are_chosen_alike(kind, noise, score):
    mechanism, rng = kind(1.0, 1.0, noise), as_generator(0)
    chosen = {mechanism(np.full(3, score), rng) for _ in range(60)}
    assert chosen == {0, 1, 2}  # fails wrongly with a chance of 3 (2/3)^60


@each_kind
def test_other_scores_are_read_as_they_are(kind):
    scores = np.array([1.5, -1e299, nan, 0.1])
    with recording() as tape:
        kind(1.0, 1.0)(scores, as_generator(0))
    assert tape.releases[0].value.tolist() == [1.5, -1e299, -1e300, 0.1]


@each_noise
def test_a_query_that_is_nan_is_below_every_threshold(noise):
    mechanism, rng = AboveThreshold(1.0, -100.0, noise=noise), as_generator(0)
    state = mechanism.init(rng)
    for value in (nan, -inf):
        assert mechanism.step(state, value, rng) == (state, False)
    assert mechanism.step(state, inf, rng)[1] is True


@pytest.mark.parametrize("threshold", [nan, inf, -inf, 1e301, -1e301])
def test_a_threshold_that_is_too_large_or_no_number_is_rejected(threshold):
    with pytest.raises(ValueError, match="threshold must be between -1e300 and 1e300"):
        AboveThreshold(1.0, threshold)


@each_noise
def test_samples_by_weights_that_are_no_numbers(noise):
    mechanism, rng = SampleIndices(1.0, 40, noise=noise), as_generator(0)
    assert mechanism(np.array([nan, 0.0, -inf]), rng).tolist() == [0, 40, 0]
    # each is drawn; fails wrongly with a chance of 2 (1/2)^40
    assert mechanism(np.array([nan, -inf]), rng).min() > 0


def test_distances_beyond_all_floats_count_as_far():
    stable = StableRelease(1.0, 1e-6)
    assert stable("answer", 10**400, as_generator(0)) == "answer"
    assert not stable("answer", nan, as_generator(0))
