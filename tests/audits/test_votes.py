"""Every mechanism for votes attacked on its worst pair of votes.

Neighbors differ in what one teacher votes, in all queries. Bounds hold with confidence
``1 - P_FAIL``.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.audits.quiet import Served
from tests.audits.verdict import assert_refutes_the_control, event_bound
from tests.cases import Cases
from tests.stat import P_FAIL

from tacit._random import as_generator
from tacit.audit.bounds import clopper_pearson_lower, gaussian_bound
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms._votes import _stable
from tacit.mechanisms._votes._base import published_distance
from tacit.mechanisms._votes._noisy import ConfidentVotes, NoisyVotes
from tacit.mechanisms._votes._numbers import VoteMean, VoteMedian
from tacit.mechanisms._votes._published import PublishedVotes
from tacit.mechanisms._votes._stable import StableVotes
from tacit.privacy import Neighbors

SHARED_CASES = Cases(
    audits="ConfidentVotes NoisyVotes PublishedVotes StableVotes VoteMean VoteMedian"
)

DELTA = 1e-5

pytestmark = [pytest.mark.slow, pytest.mark.statistical]


def claim_of(mechanism, delta=DELTA):
    return mechanism.curve(Neighbors.REPLACE_ONE).epsilon(delta)


def transcript(mechanism, panels, rng):
    """Answers to all questions."""
    state, answers = mechanism.init(rng), []
    for votes in panels:
        state, answer = mechanism.step(state, votes, rng)
        answers.append(answer)
    return answers


def gaussian_lower(mechanism, sides, score, n_runs, seed):
    """Bound from scores of runs on both sides, for a Gaussian trade-off."""
    rng = as_generator(seed)
    scores = [
        np.array([score(transcript(mechanism, panels, rng)) for _ in range(n_runs)])
        for panels in sides
    ]
    return gaussian_bound(*scores, delta=DELTA, confidence=1 - P_FAIL)


def check_gaussian(name, mechanism, sides, score, seed, n_runs=3000, least=0.5):
    """The planned noise survives and half of it does not."""
    claim = claim_of(mechanism)
    halved = replace(mechanism, multiplier=mechanism.multiplier / 2)
    found, control = (
        gaussian_lower(votes, sides, score, n_runs, seed)
        for votes in (mechanism, halved)
    )
    assert_refutes_the_control(name, claim, found, control, least=least)


def lead_of_the_second(answers):
    """The direction in which all histograms move."""
    return sum(answer.votes[1] - answer.votes[0] for answer in answers)


def test_noisy_votes_keep_their_claim(seed):
    # one teacher votes for the first class or for the second, in all questions
    sides = [[np.array([side, 2, 2])] * 3 for side in (0, 1)]
    check_gaussian("NoisyVotes", NoisyVotes(1.0, 3, 3), sides, lead_of_the_second, seed)


def test_answers_of_confident_votes_keep_their_claim(seed):
    # all tests pass, and most of the claim is for the answers
    mechanism = ConfidentVotes(1.0, 2, 2, 2, 0.0, 0.1)
    sides = [np.r_[side, np.zeros(60, dtype=int)] for side in (0, 1)]
    check_gaussian(
        "ConfidentVotes, answers",
        mechanism,
        [[votes] * 2 for votes in sides],
        lead_of_the_second,
        seed,
    )


def test_tests_of_confident_votes_keep_their_claim(seed):
    # nearly all of the claim is for one test, which passes as a coin does or less often
    n_runs, delta = 4000, 0.1
    mechanism = ConfidentVotes(0.6, 2, 1, 1, 21.0, 0.98)
    sides = [np.repeat([0, 1], [n, 21 - n]) for n in (21, 20)]

    def lower(votes):
        rng = as_generator(seed)
        passed = [
            sum(
                transcript(votes, [side], rng)[0].value is not NO_ANSWER
                for _ in range(n_runs)
            )
            for side in sides
        ]
        return event_bound(*passed, n_runs, delta)

    claim = claim_of(mechanism, delta)
    found = lower(mechanism), lower(replace(mechanism, multiplier=0.3))
    assert_refutes_the_control("ConfidentVotes, tests", claim, *found, least=0.4)


def test_a_mean_of_votes_keeps_its_claim(seed):
    mechanism = VoteMean(1.0, 0.0, 1.0, 2)
    # teachers enough for the noise not to be cut off at the ends
    fixed = np.tile([0.0, 1.0], 20)
    sides = [[np.r_[end, fixed]] * 2 for end in (0.0, 1.0)]

    def score(answers):
        return sum(answer.value for answer in answers)

    check_gaussian("VoteMean", mechanism, sides, score, seed)


def test_a_median_of_votes_keeps_its_claim(seed):
    # a vote that crosses the middle lowers all scores below it and lifts those above
    claim, n_runs = 2.0, 3000
    sides = [np.array([end, 0.5, 0.5, 1.0]) for end in (0.0, 1.0)]

    def lower(epsilon):
        votes = VoteMedian(epsilon, 0.0, 1.0, 1, n_values=101)
        rng = as_generator(seed)
        hits = [
            sum(transcript(votes, [s], rng)[0].value < 0.5 for _ in range(n_runs))
            for s in sides
        ]
        return event_bound(*hits, n_runs)

    found = lower(claim), lower(2 * claim)
    assert_refutes_the_control("VoteMedian", claim, *found, least=0.4)


@dataclass(frozen=True)
class Uncorrected(StableVotes):
    """The printed distance under noise for one that moves by one."""

    def distance(self, lead):
        return published_distance(lead)


def panels_beside(mechanism):
    """Votes at the threshold of a mechanism, and those with one vote less for them."""
    level = round(mechanism.threshold)
    # leads are even for the one number of teachers and odd for the other
    first, second = next(
        (first, n_teachers - first)
        for n_teachers in (4 * level + 8, 4 * level + 9)
        for first in range(n_teachers // 2, n_teachers)
        if mechanism.distance(2 * first - n_teachers) == level
    )
    votes = np.repeat([0, 1], [first, second])
    other = votes.copy()
    other[0] = 1
    return votes, other


def told_then_refused(mechanism, answers, refusals, n_runs, seed, delta):
    """Bound from the event: so many answers, and then so many rejections.

    One teacher votes with the others in the first questions and against them in the
    last, or the other way round, so that distances move in opposite directions.
    """
    above, below = panels_beside(mechanism)
    sides = [
        [above] * answers + [below] * refusals,
        [below] * answers + [above] * refusals,
    ]
    expected = [False] * answers + [True] * refusals

    def hit(panels, rng):
        state = mechanism.init(rng)
        for votes, rejected in zip(panels, expected, strict=True):
            state, answer = mechanism.step(state, votes, rng)
            if (answer.value is NO_ANSWER) != rejected:
                return False
        return True

    rng = as_generator(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stable.draws, "discrete_laplace", Served())
        hits = [sum(hit(panels, rng) for _ in range(n_runs)) for panels in sides]
    return event_bound(*hits, n_runs, delta)


@pytest.mark.parametrize(
    ("threshold", "query", "per_group", "n_runs"),
    [(0.5, 2.0, 1, 8000), (0.5, 1.0, 2, 40_000)],
)
def test_stable_votes_keep_their_claim(threshold, query, per_group, n_runs, seed):
    delta, answers = 1e-4, 4
    claim = threshold + per_group * query
    votes = StableVotes(threshold, query, delta, 2, per_group - 1, per_group)
    halved = replace(votes, threshold_epsilon=2 * threshold, query_epsilon=2 * query)
    printed = Uncorrected(threshold, query, delta, 2, per_group - 1, per_group)
    found, less, wrong = (
        told_then_refused(v, answers, per_group, n_runs, seed, delta)
        for v in (votes, halved, printed)
    )
    name = f"StableVotes, {per_group} a group"
    assert_refutes_the_control(name, claim, found, less, least=0.3)
    assert_refutes_the_control(name, claim, found, wrong, "the printed distance")


def test_a_winner_that_a_neighbor_lacks_is_told_with_probability_delta(seed):
    # a tie goes to the first class, and one vote more to the second
    n_runs, delta = 2000, 0.03
    tie = np.array([0, 1] * 5)
    votes = StableVotes(1.0, 1.0, delta, 2, 3, per_group=2)

    def told(mechanism):
        rng, count = as_generator(seed), 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_stable.draws, "discrete_laplace", Served())
            for _ in range(n_runs):
                state = mechanism.init(rng)
                while not mechanism.remaining(state).ended:
                    state, answer = mechanism.step(state, tie, rng)
                    if answer.value is not NO_ANSWER:
                        count += 1
                        break
        return clopper_pearson_lower(count, n_runs, P_FAIL)

    assert 0.3 * delta < told(votes) <= delta
    assert told(replace(votes, delta=5 * delta)) > delta


def test_the_printed_mechanism_costs_what_is_charged_and_more_than_is_printed(seed):
    votes = PublishedVotes(12.0, 1e-6, 2, 100, 1)
    run = votes.event.event
    halved = replace(votes, epsilon=2 * votes.epsilon)
    found, control = (
        told_then_refused(v, 4, 1, 16_000, seed, run.delta) for v in (votes, halved)
    )
    # a run would cost half if the distance moved by one
    assert_refutes_the_control(
        "PublishedVotes, one run", run.epsilon, found, control, least=0.5
    )
