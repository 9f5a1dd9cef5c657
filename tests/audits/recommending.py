"""What audits of matrix completion share: tables, solvers, and parts of single users."""

from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from tests.recommend.doubles import MeansSolver

from tacit._random import as_generator
from tacit._tape import recording, replaying
from tacit.mechanisms import WholeGaussian
from tacit.recommend._means import ItemMeans
from tacit.recommend._ratings import Ratings
from tacit.recommend.als import PrivateALS
from tacit.recommend.cleansed import CleansedSVD
from tacit.recommend.frank_wolfe import FrankWolfeCompletion
from tacit.recommend.gradient import ProjectedGradientCompletion
from tacit.recommend.svd import SVDCompletion

__all__ = ["State", "VARIANTS", "remembered_means", "table_of", "with_noise"]


def walk(**given):
    return FrankWolfeCompletion(n_iter=given.pop("n_iter", 2), **given)


# every way in which a solver reads ratings
VARIANTS = {
    "item means": MeansSolver(),
    "als": PrivateALS(rank=2, n_iter=3),
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


def table_of(rows, n_items):
    """Return the table of rows of items, ascending, and their ratings."""
    lengths = [len(items) for items, _ in rows]
    parts = [(np.empty(0), np.empty(0)), *rows]
    return Ratings(
        np.append(0, np.cumsum(lengths)).astype(np.int64),
        np.concatenate([items for items, _ in parts]).astype(np.int32),
        np.concatenate([values for _, values in parts]).astype(np.float32),
        n_items,
    )


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
    """Work out once what released counts and sums say, not again in each replay."""
    read, known = ItemMeans._read, {}

    def remembered(self, released):
        place = self, released.tobytes()
        if place not in known:
            known.clear()
            known[place] = read(self, released)
        return known[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ItemMeans, "_read", remembered)
        yield


class State:
    """One run of a solver up to its end, in whose public state users are looked at.

    ``noise`` takes the place of the noise of the run: a bound on what a user adds must
    hold whatever was released before.
    """

    def __init__(self, solver, facts, budget, rows, seed, noise=None):
        self.solver, self.n_items, self.seed = solver, facts.n_items, seed
        self.plan = solver.plan(facts, budget)
        with pytest.MonkeyPatch.context() as patch, recording() as self.tape:
            if noise is not None:
                patch.setattr(WholeGaussian, "_noise", noise)
            self.side = self._run(rows)
        self.sensitivities = np.array([r.sensitivity for r in self.tape.releases])

    def _run(self, rows):
        table = table_of(rows, self.n_items)
        return self.solver.run(self.plan, table, as_generator(self.seed))

    def sums(self, rows):
        """Return the exact sums over users that each release would have been of."""
        # no draws, hence other starting vectors than recorded, and the same in all
        with remembered_means(), replaying(self.tape) as again:
            self._run(rows)
        assert len(again.releases) == len(self.tape.releases)
        for one, other in zip(self.tape.releases, again.releases, strict=True):
            assert one.sensitivity == other.sensitivity
        return [np.ravel(release.value) for release in again.releases]

    def parts(self, rows):
        """Return what each user by herself adds to each release, over its bound."""
        found = zip(*(self.sums([row]) for row in rows), strict=True)
        return [
            np.array(part, dtype=np.float64) / bound
            for part, bound in zip(found, self.sensitivities, strict=True)
        ]
