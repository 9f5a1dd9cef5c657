"""Votes of teachers and of blocks, tests of stability, and ratings of users."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from tests.cases import Cases
from tests.sensitivity.judging import Planned, Subject, charged
from tests.sensitivity.pairs import ADD, REPLACE, numbers, pairs_of

from tacit._random import as_generator
from tacit.ensemble import PrivateLabeler
from tacit.mechanisms import StableRelease
from tacit.mechanisms._votes._plans import CLASS_VOTES, NUMBER_VOTES
from tacit.mechanisms.subsets import RATE_CELLS
from tacit.recommend import FrankWolfeCompletion, MatrixCompletion, PrivateALS
from tacit.recommend._plan import SOLVERS
from tacit.stability import (
    BlockVote,
    ProposeTestRelease,
    StableValue,
    SubsampleVote,
    private_answer,
)
from tacit.stability._subsamples import SubsampleVotePlan

SEED = 0
QUESTIONS = np.linspace(-1.0, 1.0, 8).reshape(4, 2)


class Leaning(ClassifierMixin, BaseEstimator):
    """Votes for the label of its largest row, so that one row turns it round."""

    def fit(self, X, y):
        self.vote_ = y[np.argmax(np.abs(X).max(axis=1))]
        return self

    def predict(self, X):
        return np.full(len(X), self.vote_)


class Far(RegressorMixin, BaseEstimator):
    """Says the target of its largest row."""

    fit, predict = Leaning.fit, Leaning.predict


def labeled(mechanism, neighbors):
    """Return a trainer of teachers who are asked four questions."""
    numeric = mechanism in NUMBER_VOTES
    terms = {"y_range": (-1.0, 1.0)} if numeric else {"classes": [0, 1, 2]}
    limits = {} if numeric else {"max_refusals": 4, "max_answers": 4}
    ready = PrivateLabeler(
        Far() if numeric else Leaning(),
        4,
        20.0,
        1e-3,
        mechanism=mechanism,
        n_queries=len(QUESTIONS),
        neighbors=neighbors.value,
        expected_rows=12 if neighbors is ADD else None,
        random_state=SEED,
        **terms,
        **limits,
    )

    def train(X, y):
        model = clone(ready).fit(X, y)
        return model.label(QUESTIONS), model.privacy_

    return Planned(train)


def labelers():
    """Return a labeler for each way of counting votes."""
    return [
        Subject(
            f"PrivateLabeler {name}",
            # a student learns from released answers only
            ("ensemble.PrivateLabeler", "ensemble.PrivateStudent"),
            partial(labeled, name),
            partial(
                pairs_of,
                n_rows=12,
                n_classes=0 if name in NUMBER_VOTES else 3,
                last=True,
            ),
            redraw=True,
            reach=0.5,
        )
        for name in (*CLASS_VOTES, *NUMBER_VOTES)
    ]


def largest(X, y):
    """Return the column of the largest number."""
    return int(np.argmax(np.abs(X).max(axis=0)))


def positive(X, y):
    """Return whether at least four rows have a positive first number."""
    return bool(np.sum(X[:, 0] > 0) >= 4)


def rows_to_four(X, y):
    """Return how many rows must change before `positive` can."""
    above = int(np.sum(X[:, 0] > 0))
    return above - 4 if above >= 4 else 3 - above


def center(X, y):
    return float(np.mean(np.clip(X[:, 0], -1.0, 1.0)))


def answered(procedure, n_rows, neighbors):
    """Return a trainer that asks once."""
    terms = {"epsilon": 2.0, "delta": 1e-6, "neighbors": neighbors.value}
    if neighbors is ADD:
        terms["expected_rows"] = n_rows

    def train(X, y):
        found = private_answer(procedure, X, y, **terms, random_state=SEED)
        return found.value, found.privacy

    report = train(np.zeros((n_rows, 2)), np.zeros(n_rows))[1]
    return Planned(train, charged(*(entry.event for entry in report.entries)))


def procedures():
    """Return the procedures of `tacit.stability`."""
    n = 12
    wide = ProposeTestRelease(center, lambda X, y: 100, 2 / (n - 1))
    asked = {
        "BlockVote": (BlockVote(largest, n_blocks=7), 0.9),
        "StableValue": (StableValue(positive, rows_to_four), 0.9),
        "ProposeTestRelease": (wide, 0.5),
    }
    return [
        Subject(
            name,
            (f"stability.{name}", "stability.private_answer"),
            partial(answered, procedure, n),
            partial(pairs_of, n_rows=n, last=True),
            redraw=True,
            reach=reach,
        )
        for name, (procedure, reach) in asked.items()
    ] + [
        Subject(
            "SubsampleVote",
            ("stability.SubsampleVote",),
            subsampled,
            partial(pairs_of, n_rows=60, last=True),
            redraw=True,
        )
    ]


def subsampled(neighbors):
    """Return a trainer whose subsamples are few, with a plan made by hand."""
    plan = SubsampleVotePlan(60, RATE_CELLS // 30, StableRelease(2.0, 1e-6))

    def train(X, y):
        return SubsampleVote(largest).run(plan, X, y, as_generator(SEED))

    return Planned(train, charged(plan.event))


@dataclass(frozen=True)
class UserPair:
    """Tables of ratings that differ in all ratings of one user."""

    users: tuple[dict[int, float], ...]
    n_users: int
    position: int
    user: dict[int, float]
    other: dict[int, float] | None
    n_items: int

    @property
    def first(self):
        return (self._table(self.user),)

    @property
    def second(self):
        return (self._table(self.other),)

    def _table(self, here):
        users = [self.users[i % len(self.users)] for i in range(self.n_users)]
        users[self.position : self.position + 1] = [] if here is None else [here]
        positions = [(i, j) for i, user in enumerate(users) for j in sorted(user)]
        values = [users[i][j] for i, j in positions]
        rows, columns = zip(*positions, strict=True) if positions else ((), ())
        shape = len(users), self.n_items
        return sparse.csr_array((values, (rows, columns)), shape=shape, dtype=float)

    def __str__(self):
        change = "is taken away" if self.other is None else f"becomes {self.other}"
        users = ", ".join(map(str, self.users))
        return (
            f"of {self.n_users} users like {users}, number {self.position}, "
            f"{self.user}, {change}"
        )


@st.composite
def users_of(draw, neighbors, *, n_users=4, n_items=6):
    """Return neighbors whose users rate any items, and any number of them."""
    user = st.dictionaries(st.integers(0, n_items - 1), numbers(), max_size=n_items)
    users = tuple(draw(st.lists(user, min_size=1, max_size=3)))
    position = draw(st.sampled_from([0, n_users - 1, n_users // 2]))
    other = draw(user) if neighbors is REPLACE else None
    return UserPair(users, n_users, position, draw(user), other, n_items)


def completed(solver, neighbors):
    """Return a trainer of matrix completion."""
    ready = MatrixCompletion(
        solver,
        2.0,
        1e-3,
        items=range(6),
        rating_range=(-1.0, 1.0),
        max_ratings=3,
        neighbors=neighbors.value,
        expected_users=4 if neighbors is ADD else None,
        random_state=SEED,
    )

    def train(table):
        return clone(ready).fit(table)

    return Planned(train)


def recommenders():
    """Return matrix completion with each solver."""
    solvers = {name: kind() for name, kind in SOLVERS.items()} | {
        "few steps": FrankWolfeCompletion(n_iter=2, step="standard"),
        "by rows": FrankWolfeCompletion(n_iter=2, clip="row", item_means=True),
        "by power": FrankWolfeCompletion(n_iter=2, eigenvector="power", n_products=2),
        "adaptive": PrivateALS(rank=2, n_iter=1, keep="adaptive"),
    }
    return [
        Subject(
            f"MatrixCompletion {name}",
            (
                "recommend.MatrixCompletion",
                "recommend.ItemMeans",
                f"recommend.{type(solver).__name__}",
            ),
            partial(completed, solver),
            users_of,
            redraw=True,
            reach=0.7,
        )
        for name, solver in solvers.items()
    ]


SHARED_CASES = Cases(searches=lambda: labelers() + procedures() + recommenders())
