"""What audits of matrix completion share: tables, solvers, parts of single users."""

import __future__

import inspect
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from textwrap import dedent

import numpy as np
import pytest
from tests.recommend.doubles import MeansSolver

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.mechanisms import DiscreteGaussian
from tacit.mechanisms.noise import GRID
from tacit.privacy import Neighbors
from tacit.recommend.ratings.table import Ratings
from tacit.recommend.solvers.als import PrivateALS
from tacit.recommend.solvers.frank_wolfe import FrankWolfeCompletion
from tacit.recommend.solvers.gradient import ProjectedGradientCompletion
from tacit.recommend.solvers.item_means import ItemMeans
from tacit.recommend.solvers.svd import CleansedSVD, SVDCompletion

REPLACED, ADDED = Neighbors.REPLACE_ONE, Neighbors.ADD_OR_REMOVE_ONE


def walk(**given):
    return FrankWolfeCompletion(n_iter=given.pop("n_iter", 2), **given)


# every way in which a solver reads ratings
VARIANTS = {
    "item means": MeansSolver(),
    "als": PrivateALS(rank=2, n_iter=3),
    "als, adaptive": PrivateALS(rank=2, n_iter=1, keep="adaptive"),
    "svd": SVDCompletion(),
    "gradient": ProjectedGradientCompletion(),
    "gradient, inverse": ProjectedGradientCompletion(step="inverse"),
    "cleansed": CleansedSVD(),
    "walk": walk(),
    "walk, standard": walk(step="standard", weights="increasing"),
    "walk, published": walk(step="published", n_iter=3, inflate=True),
    "walk, rows": walk(clip="row", item_means=True),
    "walk, lanczos": walk(eigenvector="lanczos", nuclear_norm=3.0, step="standard"),
    "walk, oja": walk(eigenvector="oja", n_products=2),
    "walk, power": walk(eigenvector="power", n_products=2),
}


def row(items, values):
    """Return one user's items, ascending, and ratings."""
    return np.array(items, dtype=np.int32), np.array(values, dtype=np.float32)


def table_of(rows, n_items):
    """Return the table of some users."""
    parts = [row([], []), *rows]
    return Ratings(
        np.cumsum([len(items) for items, _ in parts]),
        np.concatenate([items for items, _ in parts]),
        np.concatenate([values for _, values in parts]),
        n_items,
    )


def some_rows(facts, n, rng):
    """Return rows at the ends of the range and within it, of any length."""
    rows = []
    for i in range(n):
        items = np.sort(rng.permutation(facts.n_items)[: rng.integers(1 + i % 7, 8)])
        signs = rng.choice([-1.0, 1.0], len(items))
        kinds = signs, signs * rng.uniform(size=len(items)), np.abs(signs), signs * 0
        rows.append(row(items, facts.middle + facts.half_width * kinds[i % 4]))
    return [row([], []), *rows]


def worst_rows(facts):
    """Return rows that are far apart in one sum or another."""
    half = np.arange(facts.n_items // 2)
    alternating = 1.0 - 2.0 * (half % 2)
    ends = [
        (half, alternating),
        (half, -alternating),
        (half + len(half), alternating),
        (half, np.ones(len(half))),
        ([0], [1.0]),
        ([1], [1.0]),
        ([0, 1], [1.0, 1.0]),
        ([0, 1], [1.0, -1.0]),
    ]
    return [
        row(items, facts.middle + facts.half_width * np.array(ends))
        for items, ends in ends
    ]


def one_taste(facts, n, rng):
    """Return users who all share one taste, or have it the other way round."""
    taste = rng.choice([-1.0, 1.0], facts.n_items)
    rows = []
    for _ in range(n):
        items = np.sort(rng.permutation(facts.n_items)[: facts.max_ratings])
        likes = rng.choice([-1.0, 1.0]) * taste[items]
        values = np.clip(likes + 0.2 * rng.normal(size=len(items)), -1.0, 1.0)
        rows.append(row(items, facts.middle + facts.half_width * values))
    return rows


def with_noise(planned, part):
    """Return a plan whose mechanisms have a part of their noise."""
    if isinstance(planned, tuple):
        return tuple(with_noise(each, part) for each in planned)
    if not is_dataclass(planned):
        return planned
    changed = {}
    for each in fields(planned):
        value = getattr(planned, each.name)
        if each.name == "multiplier":
            changed[each.name] = part * value
        elif isinstance(value, tuple) or is_dataclass(value):
            changed[each.name] = with_noise(value, part)
    return replace(planned, **changed)


@contextmanager
def remembered_means():
    """Work out once what released counts and sums say, and not in each replay."""
    read, known = ItemMeans._read, {}

    def remembered(self, noisy, scale):
        position = self, noisy.tobytes(), scale
        if position not in known:
            known.clear()
            known[position] = read(self, noisy, scale)
        return known[position]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ItemMeans, "_read", remembered)
        yield


def hostile(seed):
    """Return noise of all sizes, up to what wraps around: any state is public."""
    rng = as_generator(seed)

    def noise(self, shape, _):
        size = 2.0 ** rng.choice([0, 25, 31, 32, 33, 36, 45, 60])
        return (size * rng.normal(size=shape)).astype(np.int64)

    return noise


class State:
    """One run of a solver up to its end, in whose public state users are looked at.

    ``noise`` takes the place of the noise of the run: a bound on what a user adds must
    hold whatever was released before.
    """

    def __init__(self, solver, plan, rows, seed, noise=None):
        self.solver, self.plan, self.seed = solver, plan, seed
        facts = plan.means.facts if isinstance(solver, MeansSolver) else plan.facts
        self.n_items = facts.n_items
        with pytest.MonkeyPatch.context() as patch, recording() as self.tape:
            if noise is not None:
                patch.setattr(DiscreteGaussian, "_noise", noise)
            self._run(rows)
        self.bounds = np.array([each.sensitivity for each in self.tape.releases])

    def _run(self, rows):
        table = table_of(rows, self.n_items)
        return self.solver.run(self.plan, table, as_generator(self.seed))

    @property
    def parameter(self):
        """Gaussian parameter of all releases, by their bounds and the known noise."""
        return float(np.linalg.norm(self.bounds)) / GRID

    def sums(self, rows):
        """Return the exact sums over users that each release would have been of."""
        # nothing is drawn: starts are other ones than recorded, the same in all calls
        with remembered_means(), replaying(self.tape) as again:
            self._run(rows)
        assert [each.sensitivity for each in again.releases] == list(self.bounds)
        return [np.ravel(each.value) for each in again.releases]

    def parts(self, rows):
        """Return what each user by herself adds to each release, over its bound."""
        found = zip(*(self.sums([each]) for each in rows), strict=True)
        return [
            np.array(part, dtype=np.float64) / bound
            for part, bound in zip(found, self.bounds, strict=True)
        ]

    def adds_up(self, rows):
        """Return whether sums over users are those of each user by herself, exactly."""
        alone = zip(*(self.sums([each]) for each in rows), strict=True)
        together = zip(self.sums(rows), alone, strict=True)
        return all(np.array_equal(total, sum(parts)) for total, parts in together)


def planted(patch, module, name, right, wrong):
    """Put a function of a module, with one expression changed, in its place."""
    function = getattr(module, name)
    source = dedent(inspect.getsource(getattr(function, "py_func", function)))
    assert source.count(right) == 1
    # without the decorator, as a few ratings need no compiled code
    source = source[source.index("def ") :].replace(right, wrong)
    scope = dict(vars(module))
    code = compile(
        source, f"{name}, changed", "exec", __future__.annotations.compiler_flag
    )
    exec(code, scope)
    patch.setattr(module, name, scope[name])
