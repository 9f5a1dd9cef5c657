"""Votes of blocks and of subsamples, by brute force over single rows."""

import asyncio
import signal
import sys
import threading
from collections import Counter, deque
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse, stats
from tests.refusal import raises_one_line
from tests.stat import assert_probability, assert_probability_at_most
from tests.strategies import each_relation

from tacit._execution import attempt
from tacit._random import as_generator
from tacit.audit import replay
from tacit.data.rows import plain_category
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.mechanisms import NO_ANSWER, StableRelease
from tacit.mechanisms.subsets import block_members
from tacit.privacy import Budget, Ledger, Neighbors
from tacit.stability import (
    BlockVote,
    ProposeTestRelease,
    StableValue,
    SubsampleVote,
    _rows,
    blocks_needed,
    private_answer,
    release_probability,
    winner_and_distance,
)
from tacit.stability._rows import ListedRows, as_table, as_vote, select_rows, votes_of
from tacit.stability._subsamples import SubsampleVotePlan, subsample_members
from tacit.stability._votes import BlockVotePlan


def changes(votes, values):
    """All votes that differ in one place."""
    for position, value in product(range(len(votes)), values):
        yield [*votes[:position], value, *votes[position + 1 :]]


def broken(votes, other, changed=1, distance=winner_and_distance):
    """Whether a pair of votes breaks what a stable release needs."""
    first, second = (distance(v, changed=changed) for v in (votes, other))
    apart = abs(first[1] - second[1]) > 1
    return apart or (first[0] != second[0] and max(first[1], second[1]) > 0)


def test_every_change_of_every_short_vote_is_within_the_bound():
    for n in range(1, 6):
        for votes in product("abc", repeat=n):
            assert not any(broken(list(votes), v) for v in changes(votes, "abcd"))


def test_random_votes_and_their_changes_are_within_the_bound(seed):
    rng = as_generator(seed)
    for _ in range(20_000):
        n = int(rng.integers(1, 40))
        votes = rng.integers(0, rng.integers(1, 5), size=n).tolist()
        other = votes.copy()
        other[int(rng.integers(n))] = int(rng.integers(0, 6))
        assert not broken(votes, other)


@pytest.mark.parametrize("changed", [2, 3])
def test_votes_that_change_several_at_a_time_are_within_the_bound(changed, seed):
    rng = as_generator(seed)
    for _ in range(3000):
        n = int(rng.integers(changed, 60))
        votes = rng.integers(0, 2, size=n).tolist()
        other = votes.copy()
        for position in rng.choice(n, changed, replace=False):
            other[position] = int(rng.integers(0, 3))
        assert not broken(votes, other, changed)


def test_a_distance_of_half_the_lead_is_detected():
    def wrong(votes, changed):
        winner, _ = winner_and_distance(votes)
        first, second, *_ = [*sorted(Counter(votes).values())[::-1], 0]
        return winner, (first - second) // 2

    pairs = ((list(v), c) for v in product("ab", repeat=4) for c in changes(v, "ab"))
    assert any(broken(*pair, distance=wrong) for pair in pairs)


def test_ties_have_an_order_of_their_own():
    assert winner_and_distance(["b", "a"]) == ("a", 0)
    assert winner_and_distance(["a", "b"]) == ("a", 0)
    assert winner_and_distance([]) == (None, 0)
    assert winner_and_distance([3] * 7) == (3, 3)
    assert winner_and_distance([3] * 40, changed=4) == (3, 4)


def test_values_that_print_otherwise_are_others():
    # for Python they are one value, and which of them is told would depend on a row
    for votes in ([1, True, 1.0], [True, 1.0, 1], [0.0, -0.0, 0]):
        assert winner_and_distance(votes)[1] == 0
        assert len({repr(winner_and_distance(v)[0]) for v in (votes, votes[::-1])}) == 1


class Odd(int):
    """A number that prints as it likes."""


@pytest.mark.parametrize(
    "value",
    [np.nan, [1], {1}, np.array([1]), Odd(3), (1, [2]), (np.nan,), object(), 10**5000],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_plain_value_is_no_vote(value):
    assert as_vote(value) is None


def test_plain_values_are_votes():
    for value in (3, 2.5, "a", b"a", True, None, (1, ("b", None))):
        assert as_vote(value) == value
    assert type(as_vote(np.float32(0.5))) is float
    assert type(as_vote((np.int64(3),))[0]) is int


@each_relation
def test_blocks_are_disjoint_and_hold_all_rows(neighbors, seed):
    equal = neighbors is Neighbors.REPLACE_ONE
    blocks = block_members(103, 10, equal, as_generator(seed))
    assert sorted(np.concatenate(blocks)) == list(range(103))
    assert all(np.all(np.diff(block) > 0) for block in blocks)
    sizes = {len(block) for block in blocks}
    assert (sizes <= {10, 11}) == equal


def largest(X, y):
    """The column whose sum is largest."""
    return int(np.argmax(X.sum(axis=0)))


@each_relation
def test_one_row_changes_one_vote_and_the_distance_by_one(neighbors, seed):
    rng = as_generator(seed)
    X = rng.normal(size=(24, 2))
    equal = neighbors is Neighbors.REPLACE_ONE
    blocks = block_members(24, 6, equal, rng)
    votes = votes_of(largest, X, None, blocks, [None] * 6)
    for row in range(24):
        if equal:
            other = X.copy()
            other[row] = rng.normal(size=2) * 9
            sets = blocks
        else:
            other = np.delete(X, row, axis=0)
            kept = [block[block != row] for block in blocks]
            sets = [block - (block > row) for block in kept]
        changed = votes_of(largest, other, None, sets, [None] * 6)
        assert sum(a != b for a, b in zip(votes, changed, strict=True)) <= 1
        assert not broken(votes, changed)


SMALL = SubsampleVotePlan(60, 2**53 // 20, StableRelease(1.0, 1e-6))


def test_no_row_is_in_too_many_subsamples(seed):
    plan = SubsampleVotePlan(60, 2**53 // 20, SMALL.stable)
    assert plan.most_sets == 5  # 2 * 60 / 20, rounded down as the rate is
    sets = subsample_members(400, plan, as_generator(seed))
    counts = np.bincount(np.concatenate(sets), minlength=400)
    assert counts.max() <= plan.most_sets
    assert counts.min() == 0
    assert len(sets) == 60
    # without the limit some row would be in more of them
    assert np.mean(counts == plan.most_sets) > 0.02


def test_one_row_changes_few_votes_and_the_distance_by_one(seed):
    rng = as_generator(seed)
    X = rng.normal(size=(30, 2))
    sets = subsample_members(30, SMALL, rng)
    votes = votes_of(largest, X, None, sets, [None] * 60)
    for row in range(30):
        other = X.copy()
        other[row] = rng.normal(size=2) * 9
        changed = votes_of(largest, other, None, sets, [None] * 60)
        assert sum(a != b for a, b in zip(votes, changed, strict=True)) <= 5
        assert not broken(votes, changed, SMALL.most_sets)


def run(procedure, X, y=None, epsilon=1.0, delta=1e-6, seed=0, **options):
    return private_answer(
        procedure, X, y, epsilon=epsilon, delta=delta, random_state=seed, **options
    )


@each_relation
@pytest.mark.parametrize("rule", ["optimal", "laplace"])
def test_what_all_rows_show_is_released(neighbors, rule, seed):
    X = as_generator(seed).normal(size=(3000, 3))
    X[:, 1] += 1.0
    options = {"neighbors": neighbors, "expected_rows": 2000, "seed": seed}
    for procedure in (BlockVote(largest, rule=rule), SubsampleVote(largest, rule=rule)):
        if isinstance(procedure, SubsampleVote):
            options["epsilon"] = 20.0
        answer = run(procedure, X, **options)
        assert answer.value == 1
        assert answer.released
        assert answer.privacy.spent <= answer.privacy.guarantee.epsilon


@pytest.mark.statistical
def test_a_coin_is_released_as_seldom_as_is_guaranteed(seed):
    n, law = 600, StableRelease(0.2, 0.02)

    def coin(X, y, random_state):
        return random_state % 2

    def number(X, y, random_state):
        return random_state

    def told(function):
        plan = BlockVotePlan(21, True, law)
        X, rng = np.zeros((21, 1)), as_generator(seed)
        runs = (BlockVote(function).run(plan, X, None, rng) for _ in range(n))
        return sum(value != NO_ANSWER for value in runs)

    # blocks that all say something else are told with probability delta
    assert_probability_at_most(told(number), n, law.delta)
    heads = np.arange(22)
    leads = np.abs(2 * heads - 21)
    chances = [law.release_probability((lead - 1) // 2) for lead in leads]
    expected = float(stats.binom(21, 0.5).pmf(heads) @ chances)
    assert_probability(told(coin), n, expected)
    with pytest.raises(AssertionError):
        assert_probability(told(coin), n, 2.5 * expected)


@pytest.mark.statistical
def test_a_constant_is_released_with_the_probability_of_the_closed_form(seed):
    def constant(X, y):
        return "same"

    rng, X, n = as_generator(seed), np.zeros((12, 1)), 400
    blocks = BlockVotePlan(9, True, StableRelease(0.5, 0.02))
    assert blocks.most_probable == StableRelease(0.5, 0.02).release_probability(4)
    sets = SubsampleVotePlan(60, 2**53 // 20, StableRelease(0.5, 0.02))
    assert sets.most_probable == StableRelease(0.5, 0.02).release_probability(5)
    for procedure, plan in (
        (BlockVote(constant), blocks),
        (SubsampleVote(constant), sets),
    ):
        told = sum(procedure.run(plan, X, None, rng) == "same" for _ in range(n))
        assert_probability(told, n, plan.most_probable)
        with pytest.raises(AssertionError):
            assert_probability(told, n, plan.most_probable / 2)


def refuses(X, y):
    if X[0, 0] > -10:
        raise KeyError("no such row")
    return "never"


def leaves(X, y):
    raise SystemExit(3)


def cancels(X, y):
    raise asyncio.CancelledError


def prints(X, y):
    sys.stdout.write(str(X))
    sys.stderr.write(str(X))
    raise GeneratorExit


def warns(X, y):
    return float(np.log(np.zeros(1))[0] - np.log(np.zeros(1))[0])


@pytest.mark.parametrize("function", [refuses, leaves, cancels, prints, warns])
def test_failures_and_warnings_leak_nothing(function, capfd):
    answer = run(BlockVote(function), np.zeros((2000, 1)))
    assert answer.value is None
    assert capfd.readouterr() == ("", "")


def test_a_keyboard_interrupt_of_the_user_ends_the_run():
    def interrupted(X, y):
        signal.raise_signal(signal.SIGINT)

    # a run that was started in the background ignores interrupts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(BlockVote(interrupted), np.zeros((2000, 1)))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_keyboard_interrupt_that_a_function_raises_is_a_failure(handler):
    def raises(X, y):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        assert run(BlockVote(raises), np.zeros((2000, 1))).value is None
        found = []
        other = threading.Thread(target=lambda: found.append(attempt(raises, 0, 0)))
        other.start()
        other.join()
        assert found == [None]
    finally:
        signal.signal(signal.SIGINT, before)


def farthest_label(X, y):
    return int((X.index - X["id"]).max()) if len(X) else 0


def test_labels_of_rows_show_no_block_of_another():
    whole = pd.DataFrame({"id": np.arange(1000)})
    less = whole.iloc[1:].reset_index(drop=True)
    procedure = BlockVote(farthest_label, 51)
    for data in (whole, less):
        answer = run(procedure, data, neighbors="add_or_remove_one")
        assert answer.value == NO_ANSWER
        subsamples = SubsampleVote(farthest_label)
        assert subsamples.run(SMALL, data, None, as_generator(0)) == NO_ANSWER
    # a control: labels that are passed on are distinguished for certain
    blocks = np.array_split(np.arange(999), 51)
    leaked = {farthest_label(whole.iloc[block], None) for block in blocks}
    assert leaked == {0}
    assert {farthest_label(less.iloc[block], None) for block in blocks} == {-1}


def test_what_is_taken_of_a_table_depends_on_those_rows_alone():
    table = pd.DataFrame(
        {"kind": pd.Categorical(["a", "b", "a", "rare"]), "x": np.arange(4.0)}
    )
    table.attrs["rows"] = table.copy()
    rows = np.array([2, 0])
    for part in (select_rows(table, rows), select_rows(table["kind"], rows)):
        assert part.index.tolist() == [0, 1]
        assert part.attrs == {}
        kinds = part if part.ndim == 1 else part["kind"]
        assert kinds.tolist() == ["a", "a"]
        assert kinds.cat.categories.tolist() == ["a"]
    strings = np.array([["a", "b"], ["c", "long text"], ["d", "e"]])
    assert select_rows(strings, rows).dtype == np.dtype("U1")
    assert select_rows(strings, rows).tolist() == [["d", "e"], ["a", "b"]]
    assert select_rows(strings, rows[:0]).shape == (0, 2)
    numbers = select_rows(np.arange(8.0).reshape(4, 2), rows)
    assert numbers.base is None or numbers.base.size == numbers.size
    thin = select_rows(sparse.csr_array(np.eye(4)), rows)
    assert thin.data.base is None or thin.data.base.size == thin.data.size


def listed(kinds, values, **options):
    return pd.DataFrame({"kind": pd.Categorical(values, kinds, **options)})


@pytest.mark.parametrize("kinds", [["b", "a", "c"], ["c", "a", "b"]], ids="".join)
def test_categories_are_in_an_order_of_their_own_rows(kinds):
    # libraries list them as rows come, so that the first row decides
    table = listed(kinds, ["b", "a", "b", "c"])
    for rows, found in (([0, 1], "ab"), ([1, 0, 2], "ab"), ([3, 1], "ac"), ([2], "b")):
        part = select_rows(table, np.array(rows))["kind"]
        assert "".join(part.cat.categories) == found
        assert part.tolist() == table["kind"].iloc[rows].tolist()
    # what cannot be compared is listed as it comes
    mixed = listed([*kinds, 1, (2, 3)], [1, "b", (2, 3), "a"])
    order = select_rows(mixed, np.array([3, 2, 0]))["kind"].cat.categories.tolist()
    assert order == ["a", (2, 3), 1]
    # an order that is part of the type is public
    ranked = select_rows(listed(kinds, ["b", "a"], ordered=True), np.array([1, 0]))[
        "kind"
    ]
    assert ranked.cat.ordered
    assert ranked.cat.categories.tolist() == [kind for kind in kinds if kind != "c"]


def in_dictionary(values, listed, ordered=False):
    codes = pa.array([None if v is None else listed.index(v) for v in values])
    stored = pa.DictionaryArray.from_arrays(codes, pa.array(listed), ordered=ordered)
    return pd.DataFrame({"kind": pd.Series(pd.arrays.ArrowExtensionArray(stored))})


def dictionary_of(part):
    stored = part["kind"].array.__arrow_array__().unify_dictionaries()
    return [v for c in stored.chunks[:1] for v in c.dictionary.to_pylist()]


def test_dictionaries_of_arrow_hold_values_of_their_own_rows_alone():
    values = ["b", "a", None, "rare", "a"]
    table = in_dictionary(values, ["rare", "b", "a"])
    for rows, found in (([0, 1, 2], ["a", "b"]), ([4, 1], ["a"]), ([2], []), ([], [])):
        part = select_rows(table, np.array(rows, dtype=np.intp))
        assert dictionary_of(part) == found
        assert part["kind"].dtype == table["kind"].dtype
        assert part["kind"].isna().tolist() == [values[row] is None for row in rows]
        assert part["kind"].dropna().tolist() == [values[r] for r in rows if r != 2]
    ranked = in_dictionary(values, ["rare", "b", "a"], ordered=True)
    assert dictionary_of(select_rows(ranked, np.array([1, 0]))) == ["b", "a"]
    # the positive control: rows alone keep what all of the table hold
    assert "rare" in dictionary_of(table.iloc[[0, 1]])


def test_dictionaries_within_lists_hold_values_of_their_own_rows_alone():
    kind = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    stored = pa.array([["b", "a"], ["rare"]], type=kind)
    table = pd.DataFrame({"kind": pd.Series(pd.arrays.ArrowExtensionArray(stored))})
    part = select_rows(table, np.array([0]))["kind"]
    assert list(part[0]) == ["b", "a"]
    assert "rare" not in str(part.array.__arrow_array__())
    assert "rare" in str(table["kind"].iloc[[0]].array.__arrow_array__())


def test_a_function_cannot_write_into_the_rows():
    def scribbles(X, y):
        X[:] = 7.0
        return 1

    X = np.zeros((2000, 2))
    run(BlockVote(scribbles), X)
    assert not X.any()


@pytest.mark.parametrize(
    "table", [sparse.csr_array, sparse.coo_array, pd.DataFrame, list], ids=lambda t: t
)
def test_rows_of_any_kind_are_taken(table):
    def wide(X, y):
        return X.shape[1], str(type(y))

    X = np.eye(3)[np.arange(2000) % 3]
    answer = run(BlockVote(wide), table(X), pd.Series(np.arange(2000)))
    assert answer.value[0] == 3


@each_relation
def test_neighbors_are_seen_through_the_distance_alone(neighbors, seed):
    X = as_generator(seed).normal(size=(60, 2))
    plan = BlockVote(largest, n_blocks=5).plan(Budget(1.0, 0.1, neighbors), 60)
    other = X[:-1] if neighbors is Neighbors.ADD_OR_REMOVE_ONE else X.copy()
    other[-1] = [-100.0, 100.0]

    def train(X):
        rng = as_generator(seed)
        value = BlockVote(largest).run(plan, X, None, rng)
        return value != NO_ANSWER

    report = replay(train, (X,), (other,), redraw=True)
    assert report.ok, str(report)
    assert [entry.label for entry in report.entries] == ["StableRelease"]
    assert report.entries[0].sensitivity == 1.0


def test_a_vote_of_all_rows_together_is_detected(seed):
    plan = BlockVotePlan(9, True, StableRelease(1.0, 0.1))

    def leaky(X):
        votes = [largest(X, None)] * 9  # one row turns all of them
        return plan.stable(*winner_and_distance([*votes[:8], 5]), as_generator(0)) == 1

    X = np.array([[1.0, 0.0], [0.0, 0.5]])
    other = np.array([[-9.0, 0.0], [0.0, 0.5]])
    assert replay(leaky, (X,), (X,)).ok
    report = replay(leaky, (X,), (other,))
    (violation,) = report.violations
    assert "result differs" in str(violation)


@pytest.mark.parametrize("rule", ["optimal", "laplace"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 1000.0])
@pytest.mark.parametrize("agreement", [0.6, 0.75, 1.0])
def test_so_many_blocks_carry_the_vote(rule, epsilon, agreement):
    needed = blocks_needed(epsilon, 1e-6, agreement=agreement, rule=rule)
    for blocks in (needed, needed + 1, 2 * needed + 3):
        won = int(agreement * blocks)
        distance = winner_and_distance([0] * won + [1] * (blocks - won))[1]
        assert release_probability(epsilon, 1e-6, distance, rule=rule) >= 1 - 1e-3
    assert StableRelease(epsilon, 1e-6, rule).distance_needed(1e-3) >= 1


@pytest.mark.parametrize("rule", ["optimal", "laplace"])
@pytest.mark.parametrize("failure", [1e-6, 0.01, 0.5, 0.99])
def test_the_distance_needed_is_the_least_that_is_released(rule, failure):
    stable = StableRelease(0.7, 0.02, rule)
    released = [stable.release_probability(d) >= 1 - failure for d in range(60)]
    assert stable.distance_needed(failure) == released.index(True)
    with pytest.raises(ValueError, match="failure"):
        stable.distance_needed(1.0)


def test_blocks_needed_are_near_the_closed_form():
    # (2 / (2a - 1)) (1 + (log 1/2delta + log 1/2beta) / epsilon) for noise
    assert blocks_needed(1.0, 1e-6, rule="laplace") == pytest.approx(82, abs=3)
    assert blocks_needed(1.0, 1e-6) <= 82


def test_plans_hold_public_facts_and_no_function():
    for procedure in (
        BlockVote(largest),
        SubsampleVote(largest),
        StableValue(largest, largest),
        ProposeTestRelease(largest, largest, 1.0),
    ):
        plan = procedure.plan(Budget(1.0, 1e-6), 5000)
        assert "largest" in repr(procedure)
        assert "largest" not in repr(plan)


def test_plans_are_made_without_rows_and_hold_no_budget():
    for procedure in (BlockVote(largest), SubsampleVote(largest)):
        plan = procedure.plan(Budget(1.0, 1e-6), 5000)
        assert plan == procedure.plan(Budget(1.0, 1e-6), 5000)
        assert plan.event.curve(Neighbors.REPLACE_ONE).fits(Budget(1.0, 1e-6))
        assert not any(isinstance(part, Budget) for part in vars(plan).values())
        assert "keeps no state" in plan.assumptions[0]


def test_subsamples_are_as_many_as_the_proof_needs_and_no_more():
    plan = SubsampleVote(largest).plan(Budget(1.0, 1e-6), 10_000)
    assert 2e4 < plan.n_sets < 3.1e4
    assert plan.rate > 1 / (32 * np.log(1e6))
    printed = "SubsampleVote would call the function 4"
    with pytest.raises(PlanError, match=printed):
        SubsampleVote(largest, "paper").plan(Budget(1.0, 1e-6), 10_000)
    plan = SubsampleVote(largest, "paper").plan(Budget(8.0, 1e-6), 10_000)
    assert plan.rate == pytest.approx(8 / (32 * np.log(1e6)))
    assert plan.n_sets == int(np.ceil(np.log(1e10) / plan.rate**2))
    with pytest.raises(PlanError, match="accounting='tight'"):
        SubsampleVote(largest, "paper").plan(Budget(1000.0, 1e-6), 10_000)


@pytest.mark.parametrize("n_rows", [1, 2, 10**9])
@pytest.mark.parametrize("delta", [1e-300, 0.9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1000.0])
def test_any_budget_has_a_plan_or_a_refusal(n_rows, delta, epsilon):
    plan = BlockVote(largest).plan(Budget(epsilon, delta), n_rows)
    assert 1 <= plan.n_blocks <= n_rows
    assert 0 <= plan.most_probable <= 1
    procedure = SubsampleVote(largest)
    if delta < 1e-9 and epsilon < 10:
        with pytest.raises(PlanError, match="use BlockVote"):
            procedure.plan(Budget(epsilon, delta), n_rows)
    else:
        assert procedure.plan(Budget(epsilon, delta), n_rows).most_sets >= 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BlockVote(largest, 0), "n_blocks must be"),
        (lambda: BlockVote(largest, rule="best"), "rule must be"),
        (lambda: SubsampleVote(largest, "loose"), "accounting must be"),
        (lambda: blocks_needed(1.0, 1e-6, agreement=0.5), "agreement must be"),
        (lambda: blocks_needed(0.0, 1e-6), "epsilon must be"),
        (lambda: blocks_needed(1.0, 0.0), "delta must be"),
        (lambda: run(BlockVote(largest), np.zeros((2, 2, 2))), "X must have one row"),
        (lambda: run(BlockVote(largest), np.zeros((3, 1)), [1, 2]), "as many rows"),
        (lambda: run(BlockVote(largest), np.zeros((3, 1)), delta=0.0), "delta > 0"),
    ],
)
def test_bad_parameters_are_rejected_in_one_sentence(make, words):
    with raises_one_line(ValueError, match=words):
        make()


def test_a_refusal_charges_nothing_and_no_answer_is_charged():
    ledger = Ledger(Budget(1.5, 1e-6))
    X = np.arange(200.0)[:, None]
    with pytest.raises(PlanError):
        private_answer(SubsampleVote(largest, "paper"), X, epsilon=0.5, ledger=ledger)
    assert ledger.spent() == 0
    answer = private_answer(
        BlockVote(lambda X, y: float(X[0, 0])),
        X,
        epsilon=1.0,
        delta=1e-6,
        ledger=ledger,
        random_state=0,
    )
    assert answer.value == NO_ANSWER
    assert not answer.released
    assert ledger.spent() == pytest.approx(1.0)
    with pytest.raises(BudgetExceeded):
        private_answer(BlockVote(largest), X, epsilon=1.0, delta=1e-6, ledger=ledger)


def of_rows(X):
    return 0


def of_three(X, y, z):
    return 0


def named_alike(X, random_state):
    return 0


def number(X, y):
    return 1


@pytest.mark.parametrize("wrong", [of_rows, of_three, None, 3])
@pytest.mark.parametrize(
    ("made", "name"),
    [
        (BlockVote, "function"),
        (SubsampleVote, "function"),
        (lambda wrong: StableValue(wrong, number), "function"),
        (lambda wrong: StableValue(number, wrong), "distance"),
        (lambda wrong: ProposeTestRelease(wrong, number, 1.0), "estimate"),
        (lambda wrong: ProposeTestRelease(number, wrong, 1.0), "distance"),
    ],
)
def test_functions_that_cannot_be_called_with_rows_are_rejected(made, name, wrong):
    with raises_one_line(TypeError, match=f"^{name} must"):
        made(wrong)


def test_an_error_does_not_show_what_a_function_holds():
    with pytest.raises(TypeError, match="function must") as rejection:
        BlockVote(lambda rows=(41.5, 17.25): 0)
    assert "41.5" not in str(rejection.value)


@pytest.mark.parametrize("kind", [BlockVote, SubsampleVote])
def test_a_seed_is_not_taken_for_the_targets(kind):
    with pytest.raises(TypeError, match="function"):
        kind(named_alike)
    # defaults, further names and functions that do not say are all right
    for right in (lambda X, y=None, *, c=0: c, lambda *rows, **named: 0, max):
        assert kind(right).function is right


@pytest.mark.parametrize("wrong", [number, BlockVote, 3])
def test_what_neither_plans_nor_runs_is_rejected_before_the_charge(wrong):
    ledger = Ledger(Budget(1.0, 1e-6))
    with pytest.raises(TypeError, match="procedure must"):
        private_answer(wrong, np.zeros((9, 1)), epsilon=1.0, ledger=ledger)
    assert ledger.spent() == 0


def first_cell(X, y):
    cell = X.iloc[0] if hasattr(X, "iloc") else X.ravel()[0]
    cell = cell.iloc[0] if hasattr(cell, "iloc") else cell
    return repr(cell.item() if hasattr(cell, "item") else cell)


def in_categories(cells):
    return pd.DataFrame({"c": pd.Series(cells, dtype=object).astype("category")})


@pytest.mark.parametrize(
    ("make", "odd"),
    [
        (list, "x"),
        (deque, "x"),
        (lambda cells: dict(enumerate(cells)).values(), "x"),
        (pa.array, None),
        (lambda cells: pa.chunked_array([cells]), None),
        (lambda cells: pa.table({"c": cells}), None),
        (lambda cells: pd.array(cells, dtype="Int32"), None),
        (pd.Categorical, None),
        (lambda cells: pd.Index(cells, dtype=object), "x"),
        (in_categories, 2.5),
        (in_categories, "x"),
        (in_categories, 1j),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_one_cell_changes_the_vote_of_its_own_block_alone(make, odd):
    blocks = block_members(60, 30, True, as_generator(0))

    def votes(cells):
        return votes_of(
            lambda X, y: (repr(getattr(X, "dtypes", None)), first_cell(X, y)),
            as_table("X", make(cells)),
            None,
            blocks,
            [None] * 30,
        )

    cells = [1, 2, 3] * 20
    before, after = votes(cells), votes([*cells[:-1], odd])
    assert None not in before
    assert sum(a != b for a, b in zip(before, after, strict=True)) <= 1


@pytest.mark.parametrize("values", [5, "abc", {"a": 1}, {1, 2}])
def test_what_has_no_rows_is_rejected_by_its_type(values):
    with pytest.raises(TypeError, match="X must be an array, a sparse matrix, a data"):
        run(BlockVote(largest), values)


def test_a_sequence_is_rejected_where_a_function_sees_all_rows():
    ledger = Ledger(Budget(2.0, 1e-5))
    for rows in ([[1.0], [2.0]], deque([[1.0], [2.0]])):
        with pytest.raises(TypeError, match=f"got a {type(rows).__name__}"):
            run(StableValue(number, number), rows, ledger=ledger)
    assert ledger.spent() == 0


def stored(values, codes=None):
    """A column of Arrow with these values in a dictionary."""
    codes = range(len(values)) if codes is None else codes
    cells = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)
    return pd.DataFrame({"c": pd.Series(pd.arrays.ArrowExtensionArray(cells))})


NOT_TEXT = pa.array([b"ok", b"\xffRosebud"], pa.binary()).view(pa.string())
DAYS = pa.array([3, 10**8], pa.int32()).cast(pa.date32())
MOMENTS = pa.array([3, 2**62], pa.int64()).cast(pa.timestamp("s"))


@pytest.mark.parametrize("values", [NOT_TEXT, DAYS, MOMENTS], ids=["text", "day", "s"])
def test_values_that_python_cannot_read_raise_nothing_after_the_charge(values):
    for last in (0, 1):
        table = stored(values, [0] * 199 + [last])
        for function in (lambda X, y: len(X) > 0, lambda X, y: X["c"].tolist()[0] == 0):
            run(BlockVote(function, n_blocks=40), table)
            run(StableValue(function, lambda X, y: 5), table)
    part = select_rows(stored(values), np.array([0]))
    (own,) = part["c"].array.__arrow_array__().chunks
    assert own.dictionary.equals(values.slice(0, 1))


def test_rows_that_cannot_be_taken_are_no_vote(monkeypatch):
    def full(table, rows):
        raise MemoryError("no room for Rosebud")

    monkeypatch.setattr(_rows, "select_rows", full)
    X = np.zeros((2000, 1))
    assert run(BlockVote(number), X).value is None
    assert run(StableValue(number, lambda X, y: 5), X).value == NO_ANSWER


@pytest.mark.parametrize(
    "kind",
    [
        pa.dictionary(pa.int32(), pa.list_(pa.int64())),
        pa.map_(pa.string(), pa.dictionary(pa.int32(), pa.string())),
    ],
    ids=str,
)
def test_types_of_which_no_rows_can_be_taken_are_rejected_before_the_charge(kind):
    ledger = Ledger(Budget(2.0, 1e-5))
    cells = pd.arrays.ArrowExtensionArray(pa.chunked_array([], kind))
    table = pd.DataFrame({"c": pd.Series(cells)})
    terms = {"neighbors": "add_or_remove_one", "ledger": ledger}
    with pytest.raises(TypeError, match="X must have no column of type"):
        run(BlockVote(largest), table, **terms)
    assert ledger.spent() == 0


def test_a_long_string_in_a_list_does_not_widen_the_others():
    rows = ListedRows(["a"] * 999 + ["b" * 10**6])
    assert select_rows(rows, np.arange(1000)).nbytes == 8000
    assert select_rows(ListedRows(["a\0", "b"]), np.arange(2)).tolist() == ["a\0", "b"]


def test_equal_categories_are_the_same_whichever_of_them_pandas_keeps():
    moment = pd.Timestamp("2020", tz="UTC")
    same = [
        ([True, 1, 1.0, np.int8(1), Decimal(1), 1 + 0j], 1),
        ([2**53 + 1, float(2**53)], 2**53),
        (["a", np.str_("a")], "a"),
        ([moment, moment.tz_convert("Asia/Tokyo"), moment.to_pydatetime()], moment),
        ([np.datetime64("2020"), pd.Timestamp("2020")], pd.Timestamp("2020")),
        ([(1, "a"), (True, "a")], (1, "a")),
        ([pd.Interval(0, 1), pd.Interval(0.0, 1.0)], pd.Interval(0, 1)),
        ([np.timedelta64(60, "s"), pd.Timedelta("1min")], pd.Timedelta("1min")),
    ]
    for given, plain in same:
        found = list(map(plain_category, given))
        assert found == [plain] * len(given)
        assert len(set(map(repr, found))) == 1
        assert len({getattr(one, "unit", None) for one in found}) == 1
    for other in (2.5, np.inf, 10**400, "1", b"1", None, Decimal("sNaN")):
        assert repr(plain_category(other)) == repr(other)
