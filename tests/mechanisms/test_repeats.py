"""The secret number of runs has exactly the distribution that is charged for."""

from fractions import Fraction

import numpy as np
import pytest
from tests.stat import (
    assert_counts_detect,
    assert_counts_follow,
    assert_probability,
)

from tacit._random import as_generator
from tacit.mechanisms.repeats import RandomRepeats, _coin
from tacit.privacy import PureDP
from tacit.privacy.combined import RepeatAndSelect

DISTRIBUTIONS = [
    (-0.5, 0.2),
    (0.0, 0.1),
    (0.5, 0.2),
    (1.0, 0.2),
    (1.5, 0.3),
    (3.0, 0.4),
]
CELLS = 400


def distribution(eta, gamma):
    """Probabilities of 1, 2, ..., and of all that is beyond in the last cell."""
    weights = [1.0]
    for k in range(1, 100 * CELLS):
        weights.append(weights[-1] * (1 - gamma) * (k + eta) / (k + 1))
    weights = np.array(weights) / sum(weights)
    return np.append(weights[: CELLS - 1], weights[CELLS - 1 :].sum())


@pytest.mark.statistical
@pytest.mark.parametrize(("eta", "gamma"), DISTRIBUTIONS)
def test_numbers_of_runs_follow_the_law(eta, gamma, seed):
    repeats, rng = RandomRepeats(eta, gamma), as_generator(seed)
    found = [repeats(rng) for _ in range(4000)]
    assert min(found) >= 1
    counts = np.bincount(np.minimum(found, CELLS) - 1, minlength=CELLS)
    assert_counts_follow(counts, distribution(eta, gamma))
    assert_counts_detect(counts, distribution(eta, 1.3 * gamma))
    assert_counts_detect(counts, distribution(eta + 0.5, gamma))


@pytest.mark.statistical
@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(0.1), Fraction(1, 2)])
def test_a_coin_has_the_chance_it_says(chance, seed):
    rng = as_generator(seed)
    heads = sum(_coin(chance, rng) for _ in range(20_000))
    assert_probability(heads, 20_000, float(chance))
    with pytest.raises(AssertionError, match="is not probability"):
        assert_probability(heads, 20_000, float(chance) * 1.15)


class Words:
    """A generator whose next words are known."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, dtype):
        return self.words.pop(0)


def test_a_coin_is_decided_by_later_words_where_the_first_agree():
    third = (2**64 - 1) // 3  # every word of the digits of one third
    assert _coin(Fraction(1, 3), Words(third, third, third - 1))
    assert not _coin(Fraction(1, 3), Words(third, third, third + 1))
    # one half ends after a word: what equals it so far is not below it
    assert not _coin(Fraction(1, 2), Words(2**63))
    assert _coin(Fraction(1, 2), Words(2**63 - 1))
    assert not _coin(Fraction(0), Words(0))


def test_the_event_has_the_numbers_that_are_drawn_with():
    event = RandomRepeats(np.float32(0.5), np.float64(0.25)).event(PureDP(1.0))
    assert event == RepeatAndSelect(PureDP(1.0), 0.5, 0.25)
    assert type(event.eta) is float


@pytest.mark.parametrize(("eta", "gamma"), [(-1.0, 0.5), (0.0, 0.0), (0.0, 1.0)])
def test_what_is_no_law_is_refused(eta, gamma):
    with pytest.raises(ValueError, match=r"eta must|gamma must"):
        RandomRepeats(eta, gamma)
