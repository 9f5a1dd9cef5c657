"""Stable votes, against exact integrals and published numbers."""

from dataclasses import replace
from itertools import product
from math import e, exp, log, sqrt

import numpy as np
import pytest
from benchmarks.ensemble.reference import (
    COUNTS,
    PUBLISHED,
    TAILS,
    published_teachers,
    redrawn_votes,
)

from tacit._random import as_generator
from tacit._state import dumped, loaded
from tacit.exceptions import PlanError
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms._votes import _stable
from tacit.mechanisms._votes._base import distance_of_lead, lead_of, published_distance
from tacit.mechanisms._votes._plans import VoteTerms, stable_votes, vote_mechanism
from tacit.mechanisms._votes._probabilities import difference_tail, tail_point
from tacit.mechanisms._votes._published import PublishedVotes
from tacit.mechanisms._votes._stable import StableVotes
from tacit.mechanisms.noise import GRID, MAX_SCALE
from tacit.privacy import ApproxDP, Budget, Neighbors, Repeated


def histograms(n_teachers, n_classes):
    """All ways in which votes can fall on classes."""
    if n_classes == 1:
        yield (n_teachers,)
        return
    for first in range(n_teachers + 1):
        for rest in histograms(n_teachers - first, n_classes - 1):
            yield (first, *rest)


def vote_moves(counts):
    """All histograms that one changed vote makes of this one."""
    for source, target in product(range(len(counts)), repeat=2):
        if source != target and counts[source]:
            moved = list(counts)
            moved[source] -= 1
            moved[target] += 1
            yield tuple(moved)


def most_moved(distance, n_teachers, n_classes):
    """How far one vote moves the distance, and its most where the winner changes."""
    moved = unstable = 0
    for counts in histograms(n_teachers, n_classes):
        here = distance(lead_of(np.array(counts)))
        for other in vote_moves(counts):
            there = distance(lead_of(np.array(other)))
            moved = max(moved, abs(here - there))
            if np.argmax(counts) != np.argmax(other):
                unstable = max(unstable, here, there)
    return moved, unstable


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("n_teachers", [1, 2, 5, 8, 9])
def test_one_vote_moves_the_distance_by_one_and_it_is_zero_where_the_winner_changes(
    n_teachers, n_classes
):
    moved = most_moved(distance_of_lead, n_teachers, n_classes)
    assert moved == (int(n_teachers > 3), 0)
    if n_teachers > 3:
        # the printed distance lacks both, but for two classes and no ties
        no_ties = n_classes == 2 and n_teachers % 2 == 1
        wrong = most_moved(published_distance, n_teachers, n_classes)
        assert wrong == (2, int(not no_ties))


def test_distances_of_single_votes_are_those_of_the_corrected_form():
    for pair, (printed, right) in COUNTS.items():
        leads = [lead_of(np.array(counts)) for counts in pair]
        assert tuple(map(published_distance, leads)) == printed
        assert tuple(map(distance_of_lead, leads)) == right
    assert distance_of_lead(lead_of(np.array([7]))) == 3
    assert distance_of_lead(lead_of(np.array([1, 1, 1]))) == 0


@pytest.mark.parametrize(("at", "expected"), TAILS.items())
def test_the_tail_of_a_difference_has_the_published_values(at, expected):
    assert difference_tail(at, 2.0, 1.0) == pytest.approx(expected, rel=2e-4)
    assert difference_tail(at, 1.0, 2.0) == difference_tail(at, 2.0, 1.0)
    # twice the smaller scale would be seen
    assert difference_tail(at, 2.0, 2.0) > 1.1 * expected


def integrated_tail(at, first, second):
    """The same by quadrature over the second variable."""
    z = np.linspace(-60 * second, 60 * second, 100_001)
    density = np.exp(-np.abs(z) / second) / (2 * second)
    level = at + z
    passed = np.where(
        level > 0, np.exp(-np.abs(level) / first) / 2, 1 - np.exp(level / first) / 2
    )
    return np.trapezoid(density * passed, z)


@pytest.mark.parametrize(
    "scales", [(2.0, 1.0), (1.0, 3.0), (2.0, 2.0), (2.0, 2.0 + 1e-9), (5.0, 0.01)]
)
def test_the_tail_is_the_integral_for_equal_and_unequal_scales(scales):
    for at in (-3.0, 0.0, 0.7, 4.0, 12.0):
        assert difference_tail(at, *scales) == pytest.approx(
            integrated_tail(at, *scales), rel=1e-4
        )


@pytest.mark.parametrize("probability", [1e-200, 1e-12, 1e-6, 0.01, 0.4999, 0.5, 0.9])
@pytest.mark.parametrize(
    "scales", [(2.0, 1.0), (1.0, 1.0), (1e-3, 1e3), (3.0, 3.0 + 1e-12), (1e5, 7e4)]
)
def test_a_level_is_passed_with_the_probability_asked_for_and_hardly_less(
    probability, scales
):
    at = tail_point(probability, *scales)
    assert difference_tail(at, *scales) <= probability or at == 0.0
    if at > 0:
        assert difference_tail(at * (1 - 1e-9), *scales) > probability * (1 - 1e-9)


def discrete_tail(at, first, second):
    """Probability that whole Laplace noise passes another by more than ``at``."""
    reach = 60 * max(first, second)
    whole = np.arange(-reach, reach + 1)

    def distribution(scale):
        weights = np.exp(-np.abs(whole) / scale)
        return weights / weights.sum()

    below = np.cumsum(distribution(first)[::-1])[::-1]  # of this or more
    wanted = np.clip(whole + at + 1 + reach, 0, len(whole) - 1)
    return float((distribution(second) * below[wanted]).sum())


@pytest.mark.parametrize("scales", [(1, 1), (2, 1), (1, 4), (7, 3), (20, 30)])
def test_whole_noise_passes_two_cells_more_than_continuous_noise_at_most(scales):
    for at in range(3 * max(scales)):
        more = discrete_tail(at + _stable.SPARE_CELLS, *scales)
        assert more <= difference_tail(at, *scales)
    # four cells less would be seen
    assert discrete_tail(5 - 2, *scales) > difference_tail(5, *scales)


def nodes_between(points, n=24):
    """Nodes and weights of quadrature that is exact but for the last digits."""
    x, weights = np.polynomial.legendre.leggauss(n)
    low, high = np.array(points[:-1])[:, None], np.array(points[1:])[:, None]
    nodes = (low + high) / 2 + (high - low) / 2 * x
    return nodes.ravel(), ((high - low) / 2 * weights).ravel()


def transcript_log_probability(answers, distances, threshold_scale, query_scale):
    """Log probability of answers that share one threshold, by exact integration."""
    kinks = sorted({0.0, *distances})
    reach = 40 * max(threshold_scale, query_scale)
    ends = [kinks[0] - reach * k / 40 for k in range(40, 0, -1)]
    ends += kinks + [kinks[-1] + reach * k / 40 for k in range(1, 41)]
    z, weights = nodes_between(ends)
    log_density = -np.abs(z) / threshold_scale - log(2 * threshold_scale)
    for answered, distance in zip(answers, distances, strict=True):
        ahead = (distance - z) / query_scale
        signed = ahead if answered else -ahead
        near = np.log1p(-np.exp(-np.abs(signed)) / 2)
        log_density += np.where(signed > 0, near, -np.abs(signed) - log(2))
    top = log_density.max()
    return top + log(np.sum(weights * np.exp(log_density - top)))


def largest_loss(votes, length, moved):
    """Largest log ratio of a group, over neighbors whose distances move against it."""
    scales = votes.threshold_scale, votes.query_scale
    worst = 0.0
    for refusals in range(votes.per_group + 1):
        for last in (True, False):
            answers = [True] * (length - refusals - last) + [False] * refusals
            answers += [True] * last
            signs = np.where(answers, -moved, moved)
            for base in (0.0, 0.5 * votes.query_scale, -0.5 * votes.query_scale):
                apart = base - signs * 0.5
                pair = [
                    transcript_log_probability(answers, list(d), *scales)
                    for d in (apart, apart + signs)
                ]
                worst = max(worst, abs(pair[0] - pair[1]))
    return worst


@pytest.mark.parametrize("per_group", [1, 2, 4])
@pytest.mark.parametrize(("threshold", "query"), [(0.5, 0.5), (0.3, 0.1), (1.0, 2.0)])
def test_no_answers_of_a_group_tell_more_than_its_claim(per_group, threshold, query):
    votes = StableVotes(threshold, query, 1e-6, 2, per_group - 1, per_group)
    claim = threshold + per_group * query
    assert votes.event == Repeated(ApproxDP(claim, 1e-6), 1)
    found = [largest_loss(votes, length, 1.0) for length in (1, 5, 8)]
    assert max(found) <= claim * (1 + 1e-9)
    # a distance that moves by two breaks it
    assert largest_loss(votes, 8, 2.0) > claim


def test_a_refusal_costs_and_an_answer_is_free():
    votes = StableVotes(0.2, 0.4, 1e-6, 2, 0)
    scales = votes.threshold_scale, votes.query_scale

    def loss(answers):
        signs = np.where(answers, -1.0, 1.0)
        first, second = -signs / 2, signs / 2
        pair = [
            transcript_log_probability(answers, d, *scales) for d in (first, second)
        ]
        return abs(pair[0] - pair[1])

    assert loss([True] * 8) <= 0.2 < loss([True] * 8 + [False]) <= 0.6


@pytest.mark.parametrize("one", PUBLISHED, ids=lambda one: one.words())
def test_reference_values_are_met(one):
    settings = one.epsilon, one.delta, one.n_queries, one.refusals
    printed = PublishedVotes(one.epsilon, one.delta, 2, one.n_queries, one.refusals)
    assert printed.threshold_scale == pytest.approx(one.scale, abs=0.051)
    assert printed.query_scale == pytest.approx(2 * printed.threshold_scale)
    assert printed.threshold == pytest.approx(one.threshold, abs=0.51)
    counts = [published_teachers(*settings, algorithm=n) for n in (9, 10)]
    assert counts == pytest.approx([one.teachers_9, one.teachers_10], abs=1)
    redrawn = redrawn_votes(Budget(one.epsilon, one.delta), one.refusals)
    run = redrawn.threshold_epsilon + redrawn.query_epsilon
    assert run == pytest.approx(one.run_epsilon, abs=5.1e-5)
    assert redrawn.threshold_scale == pytest.approx(one.tight_scale, abs=0.051)
    assert redrawn.threshold == pytest.approx(one.tight_threshold, abs=0.51)


BUDGETS = [
    Budget(epsilon, delta, neighbors)
    for epsilon, delta in [(0.01, 1e-6), (1.0, 1e-6), (3.0, 1e-5), (8.0, 1e-9)]
    for neighbors in Neighbors
] + [Budget(1000.0, 1e-6)]


@pytest.mark.parametrize("refusals", [0, 5, 20, 2000])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: f"{b.epsilon:g}-{b.delta:g}")
def test_the_plan_fits_and_needs_no_more_than_redrawn_thresholds(budget, refusals):
    plan = stable_votes(budget, 3, refusals)
    redrawn = redrawn_votes(budget, refusals)
    for votes in (plan, redrawn):
        assert votes.curve(budget.neighbors).fits(budget)
        assert votes.max_refusals == refusals
        # and the budget is used: a little more of it would not fit
        most = replace(votes, delta=min(votes.delta * 4, 0.5))
        most = replace(most, threshold_epsilon=4 * votes.threshold_epsilon)
        assert not most.curve(budget.neighbors).fits(budget)
    assert plan.distance_needed() <= redrawn.distance_needed()


@pytest.mark.parametrize(
    ("epsilon", "refusals", "needed"),
    [(1, 0, 61), (1, 5, 270), (1, 20, 908), (3, 20, 303), (8, 20, 114)],
)
def test_the_distance_needed_is_that_of_the_table(epsilon, refusals, needed):
    votes = stable_votes(Budget(epsilon, 1e-6), 2, refusals)
    assert votes.distance_needed(0.01) == needed


@pytest.mark.parametrize("failure", [0.3, 0.01, 1e-6])
def test_the_distance_needed_is_the_least_that_is_released(failure):
    for votes in (stable_votes(Budget(1.0, 1e-6), 2, 3), printed_votes()):
        needed = votes.distance_needed(failure)
        assert votes.release_probability(needed) >= 1 - failure
        assert votes.release_probability(needed - 1) < 1 - failure


def printed_votes():
    return PublishedVotes(1.0, 1e-6, 2, 100, 2)


# composed epsilon of the printed scales with the true sensitivity, two
REFUSALS = (1, 5, 20, 200, 2000)
COMPOSED = {
    0.1: [0.037, 0.050, 0.087, 0.086, 0.085],
    1.0: [0.371, 0.498, 0.872, 0.960, 0.958],
    5.0: [1.856, 2.491, 4.359, 5.433, 5.419],
}


def composed_by_lemma(epsilon, count, delta):
    """Kairouz, Oh and Viswanath (2017), Theorem 3.4, in its simplified form."""
    mean = count * epsilon * (exp(epsilon) - 1) / (exp(epsilon) + 1)
    spread = epsilon * sqrt(2 * count)
    tails = [e + sqrt(count) * epsilon / delta, 1 / delta]
    return min(count * epsilon, *(mean + spread * sqrt(log(t)) for t in tails))


@pytest.mark.parametrize("epsilon", COMPOSED)
def test_the_printed_noise_costs_what_the_table_says(epsilon):
    for refusals, expected in zip(REFUSALS, COMPOSED[epsilon], strict=True):
        votes = PublishedVotes(epsilon, 1e-6, 2, 1000, refusals)
        run = votes.event.event.epsilon
        by_lemma = composed_by_lemma(run, refusals + 1, 5e-7)
        assert by_lemma == pytest.approx(expected, abs=6e-4)
        # the curve knows better, with what is released wrongly included
        assert votes.curve(Neighbors.REPLACE_ONE).epsilon(1e-6) <= expected + 6e-4


@pytest.mark.parametrize(
    ("epsilon", "refusals", "kept"),
    [(1, 2000, True), (5, 200, True), (8, 20, True), (8, 200, True), (20, 200, False)],
)
def test_the_printed_noise_is_refused_where_its_promise_is_not_kept(
    epsilon, refusals, kept
):
    votes = PublishedVotes(epsilon, 1e-6, 2, 1000, refusals)
    budget = Budget(epsilon, 1e-6)
    assert votes.curve(budget.neighbors).fits(budget) == kept
    terms = VoteTerms(50, 1000, 2, max_refusals=refusals)
    if kept:
        assert vote_mechanism("published", budget, terms) == votes
        return
    with pytest.raises(PlanError, match=rf"exceeds epsilon={epsilon}"):
        vote_mechanism("published", budget, terms)


def test_the_printed_form_needs_a_refusal():
    terms = VoteTerms(50, 1000, 2, max_refusals=0)
    with pytest.raises(PlanError, match="max_refusals must be at least 1"):
        vote_mechanism("published", Budget(1.0, 1e-6), terms)
    with pytest.raises(ValueError, match="max_refusals must be an integer >= 1"):
        PublishedVotes(1.0, 1e-6, 2, 10, 0)


TIE = np.array([0, 1] * 20)
AGREED = np.ones(400, dtype=np.int16)


@pytest.mark.parametrize("noise", ["grid", "float"])
def test_without_refusals_the_first_one_ends_the_stream(noise, seed):
    votes = stable_votes(Budget(1.0, 1e-6), 2, 0, noise)
    rng = as_generator(seed)
    state = votes.init(rng)
    for _ in range(200):
        state, answer = votes.step(state, AGREED, rng)
        assert answer.value == 1
        assert answer.votes is None
    state, answer = votes.step(state, TIE, rng)
    assert answer.value is NO_ANSWER
    assert votes.remaining(state).ended
    with pytest.raises(ValueError, match="answered all queries of its plan") as caught:
        votes.step(state, AGREED, rng)
    assert str(caught.value).count(".") == 1


@pytest.mark.parametrize("refusals", [1, 4])
def test_one_refusal_more_than_planned_ends_the_stream(refusals, seed):
    votes = stable_votes(Budget(1.0, 1e-6), 2, refusals)
    rng = as_generator(seed)
    state = votes.init(rng)
    for left in range(refusals, -1, -1):
        assert not votes.remaining(state).ended
        state, answer = votes.step(state, TIE, rng)
        assert answer.value == NO_ANSWER
        assert votes.remaining(state).refusals == left
    with pytest.raises(ValueError, match="plan a new one"):
        votes.step(state, TIE, rng)


def test_a_threshold_is_kept_for_a_group_and_then_drawn_anew():
    votes = StableVotes(0.5, 0.5, 1e-6, 2, 5, per_group=3)
    rng, found = as_generator(0), []
    state = votes.init(rng)
    for _ in range(6):
        found.append(state._private_threshold)
        state, _ = votes.step(state, TIE, rng)
    assert found[0] == found[1] == found[2] != found[3] == found[4] == found[5]
    assert votes.n_groups == 2
    # an answer does not change it
    other = votes.init(as_generator(1))
    after, answer = votes.step(other, AGREED, as_generator(2))
    assert answer.value == 1
    assert after._private_threshold == other._private_threshold


def test_the_threshold_is_kept_through_a_file_and_not_shown():
    votes = stable_votes(Budget(1.0, 1e-6), 2, 3)
    state = votes.init(as_generator(0))
    assert "threshold" not in repr(state)
    again = loaded(dumped(state))
    assert again == state
    assert isinstance(again._private_threshold, int)
    for k in range(5):
        state, first = votes.step(state, [AGREED, TIE][k % 2], as_generator(k))
        again, second = votes.step(again, [AGREED, TIE][k % 2], as_generator(k))
        assert first == second
        assert state == again


@pytest.mark.parametrize("scale", [1e-3, 1.0, 7e4, 1e8])
def test_scales_are_whole_in_cells_and_not_below_what_is_needed(scale):
    votes = StableVotes(1 / scale, 2 / scale, 1e-6, 2, 0)
    cells = votes._cells
    assert cells <= GRID
    assert cells & (cells - 1) == 0
    for found, least in zip(
        (votes.threshold_scale, votes.query_scale), votes._least_scales(), strict=True
    ):
        assert least < found <= least + 2 / cells
        assert (found * cells).is_integer()
        assert found * cells <= MAX_SCALE


def test_noise_beyond_the_grid_is_refused():
    with pytest.raises(PlanError, match="too large for the grid"):
        StableVotes(1e-14, 1e-14, 1e-6, 2, 0)
    StableVotes(1e-14, 1e-14, 1e-6, 2, 0, noise="float")


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["grid", "float"])
def test_winners_are_told_as_often_as_the_law_says(noise, seed):
    votes = StableVotes(1.0, 2.0, 0.05, 2, 0, noise=noise)
    rng, n = as_generator(seed), 900
    for agreeing in (7, 9, 11):
        panel = np.r_[np.ones(agreeing, dtype=int), np.zeros(3, dtype=int)]
        at = distance_of_lead(agreeing - 3)
        released = sum(
            votes.step(votes.init(rng), panel, rng)[1].value == 1 for _ in range(n)
        )
        distribution = votes.release_probability(at)
        assert 0.03 < distribution < 0.99
        assert released == pytest.approx(
            n * distribution, abs=5.5 * (n * distribution * (1 - distribution)) ** 0.5
        )
        off = votes.release_probability(at - 1)
        assert abs(released - n * off) > 5.5 * (n * off * (1 - off)) ** 0.5


def test_unknown_refusals_are_as_many_as_the_agreement_allows():
    budget = Budget(3.0, 1e-6)
    terms = VoteTerms(1000, 60, n_classes=3, agreement=0.9)
    votes = vote_mechanism("stable", budget, terms)
    assert votes.distance_needed(0.01) <= terms.distance
    more = stable_votes(budget, 3, votes.max_refusals + 1)
    assert more.distance_needed(0.01) > terms.distance
    # no more than questions, and none where nothing can be released
    assert vote_mechanism("stable", Budget(900.0, 1e-6), terms).max_refusals == 60
    few = replace(terms, n_teachers=3)
    assert vote_mechanism("stable", budget, few).max_refusals == 0


def test_log_odds_of_the_symmetric_split_have_the_printed_closed_form():
    votes = StableVotes(0.5, 0.5, 3e-7, 2, 4)
    scale = votes.threshold_scale
    # for two to one the tail is (2/3) exp(-w/2s) - (1/6) exp(-w/s)
    w = votes.threshold
    closed = 2 / 3 * exp(-w / (2 * scale)) - exp(-w / scale) / 6
    assert 5 * closed == pytest.approx(3e-7, rel=1e-6)
