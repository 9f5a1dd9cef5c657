"""The algorithms compared, each ready to run again and again at other clips and steps.

Coordinate solvers are those of the library, called below ``plan`` and ``run`` so that
noise is calibrated once for a grid of settings. ``python -m benchmarks.cd.algorithms``
checks that both ways lead to the same weights, bit for bit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import exp, log, sqrt

import numpy as np
from benchmarks.cd import sgd
from benchmarks.cd.optimum import OUTPUTS
from benchmarks.cd.problems import Case, case, papers_clip
from scipy import sparse

from tacit._random import as_generator, spawn
from tacit.convex.regularizers import CoordinatePenalty, coordinate_parts
from tacit.data import RowBounds, bounded_rows
from tacit.linear_model import ElasticNet, SparseLogisticRegression
from tacit.mechanisms.integer_noise import DiscreteGaussian
from tacit.privacy import (
    Budget,
    Composed,
    GaussianNoise,
    Neighbors,
    Repeated,
    calibrate,
)
from tacit.solvers import CoordinateDescent, GreedyCoordinateDescent, Problem
from tacit.solvers._coordinates.columns import Columns, Updates, weights_after
from tacit.solvers._coordinates.greedy_descent import GreedyDescent
from tacit.solvers.noisy_sgd import Sampling, least_log_noise

# Part of the squared Gaussian parameter that private smoothness constants are worth
SHARE = 0.1
ALL_ROWS = 10**9
BATCHES = (1, 16, 64, 256, 1024, 4096, ALL_ROWS)
# Grid of losses for samples this small, where the usual one takes minutes
SMALL_BATCH, INTERVAL = 16, 3e-4

# those of the papers end at 10, where some of the best lie
CD_STEPS = np.logspace(-2, 2, 13)
# those of the papers end at 1; clipped gradients of large samples want more
SGD_STEPS = np.logspace(-6, 4, 16)
# stands for what the rule of the library chooses
OWN_PASSES = 0.0
GREEDY_STEPS = (1, 2, 4, 7, 10, 15, 20)
# Clip of choices over that of updates
VOTES = 0.1


@dataclass(frozen=True)
class Prepared:
    """An algorithm at one number of passes: what it spends, and how to run it."""

    epsilon: float
    run: Callable


@dataclass(frozen=True)
class Algorithm:
    """A row of the tables."""

    name: str
    title: str
    steps: np.ndarray
    prepare: Callable[[Case, float], Prepared]
    greedy: bool = False

    @property
    def tuned(self) -> bool:
        return len(self.steps) > 0

    def passes(self, found: Case) -> tuple[float, ...]:
        if not self.tuned:
            return (OWN_PASSES,)
        return GREEDY_STEPS if self.greedy else found.passes


@lru_cache(maxsize=1)
def scaled(name: str):
    """Return a problem as the coordinate solvers see it: entries between -1 and 1."""
    found = case(name)
    n, bounds = found.n_rows, found.bounds
    free = (np.inf,) * found.n_features
    penalty = CoordinatePenalty(
        tuple((n * found.l1 / bounds).tolist()),
        tuple((n * found.l2 / bounds**2).tolist()),
        tuple(-end for end in free),
        free,
    )
    y_range = float(found.y.min()), float(found.y.max())
    problem = Problem(
        found.loss,
        RowBounds(1.0, y_range=y_range, norm="linf"),
        n,
        found.n_features,
        regularizer=penalty,
    )
    X = found.X if sparse.issparse(found.X) else found.X / bounds
    rows = bounded_rows(X, found.y, problem.bounds)
    columns = Columns(X, found.y, found.loss)
    # columns without spread have no smoothness constant
    squares = np.maximum(found.mean_squares, found.mean_squares.max() / n) / bounds**2
    return problem, rows, columns, squares


def replace_one(found: Case) -> Budget:
    return Budget(found.epsilon, found.delta, Neighbors.REPLACE_ONE)


def spent(found: Case, event) -> float:
    return event.curve(Neighbors.REPLACE_ONE).epsilon(found.delta)


def coordinate(found: Case, passes: float, *, paid: bool, published: bool) -> Prepared:
    """Return DP-CD.

    With ``paid``, smoothness constants are private; without, the true ones are given
    for free, as in the paper. ``published`` stands for its accounting and its order.
    """
    problem, _, columns, squares = scaled(found.name)
    p = found.n_features
    n_updates = max(1, round(passes * p))
    if published:
        root = sqrt(log(1 / found.delta))
        rho = (sqrt(root**2 + found.epsilon) - root) ** 2
        small, multiplier = 0.0, sqrt(n_updates / (2 * rho))
    else:
        once = calibrate(GaussianNoise, replace_one(found))
        share = SHARE if paid else 0.0
        small = once / sqrt(SHARE)
        multiplier = once * sqrt(n_updates / (1 - share))
    event = Repeated(GaussianNoise(multiplier), n_updates)
    if paid:
        event = Composed((GaussianNoise(small), event))
    mechanism = DiscreteGaussian(multiplier, 2.0)
    parts = coordinate_parts(problem.regularizer, 0.0, p)
    smooth = found.curvature * found.n_rows
    at_zero = columns.state(np.zeros(p))
    private_squares = CoordinateDescent(n_passes=1, smoothness="private")
    squares_of = private_squares.plan(problem, replace_one(found)).squares

    def run(clip, step, rng):
        public, private = spawn(rng, 2)
        if published:
            order = public.integers(0, p, size=n_updates)
        else:
            n_passes = -(-n_updates // p)
            order = np.concatenate([public.permutation(p) for _ in range(n_passes)])
            order = order[:n_updates].astype(np.int64)
        known = squares
        if paid:
            known = squares_of.with_noise(small)(columns, private)
        limits = papers_clip(found, clip) * np.sqrt(known)
        updates = Updates.of(limits, mechanism.units, step / (smooth * known), parts, 1)
        noise = mechanism.draws(n_updates, private)
        w = np.zeros(p)
        released, _ = columns.update_all(w, at_zero.copy(), order, updates, noise=noise)
        return weights_after(w, order, released, updates) / found.bounds

    return Prepared(spent(found, event), run)


def greedy(
    found: Case, n_steps: float, *, rule, mechanism, plain, free=False
) -> Prepared:
    """Return DP-GCD: as published but for the accounting with ``plain``, else ours.

    With ``free`` choices have no noise and cost nothing, so that all of the budget is
    for updates: not private, and a limit to what less noise of choices can win.
    """
    problem, _, columns, squares = scaled(found.name)
    # where features lie on both sides of zero, votes choose best
    narrow = 1.0 if plain or sparse.issparse(found.X) else VOTES
    solver = GreedyCoordinateDescent(
        n_steps=int(n_steps),
        clip=1.0,
        step=1.0,
        rule=rule,
        mechanism=mechanism,
        n_polish=0 if plain else None,
        selection_clip=narrow,
        selection_share=1e-4 if free else 0.5,
        smoothness=tuple(np.sqrt(squares).tolist()),
    )
    first = solver.plan(problem, replace_one(found))
    epsilon = spent(found, first.event)
    if free:
        first = replace(first, selection_epsilon=1e5)

    def run(clip, step, rng):
        clip = papers_clip(found, clip)
        plan = replace(first, clip=clip, step=step, selection_clip=narrow * clip)
        descent = GreedyDescent(plan, columns, squares, rng)
        for t in range(plan.n_steps):
            descent.step(t)
        return descent.w / found.bounds

    return Prepared(epsilon, run)


def gradient(found: Case, passes: float, *, batch: int) -> Prepared:
    """Return proximal DP-SGD, by the relation that is kinder to it."""
    multiplier = known_multiplier(found, batch, passes)
    run = partial(sgd.run, found, batch, passes, multiplier)
    return Prepared(found.epsilon, run)


def default(found: Case, _: float) -> Prepared:
    """Return the estimator as it comes: nothing tuned, smoothness paid for."""

    def run(clip, step, rng):
        given = {
            "epsilon": found.epsilon,
            "delta": found.delta,
            "alpha": found.l1 + found.l2,
            "feature_bounds": found.bounds.tolist(),
            "fit_intercept": False,
            "random_state": int(rng.integers(2**31)),
        }
        l1_ratio = found.l1 / (found.l1 + found.l2)
        if found.logistic:
            model = SparseLogisticRegression(
                l1_ratio=l1_ratio, classes=(-1.0, 1.0), **given
            )
        else:
            model = ElasticNet(l1_ratio=l1_ratio, y_range=found.y_range, **given)
        return np.ravel(model.fit(found.X, found.y).coef_)

    return Prepared(found.epsilon, run)


def known_multiplier(found: Case, batch: int, passes: float) -> float:
    """Return the noise of DP-SGD, from disk after the first time."""
    file = OUTPUTS / "multipliers.json"
    kept = json.loads(file.read_text()) if file.is_file() else {}
    batch = min(batch, found.n_rows)
    steps = sgd.n_steps(found, batch, passes)
    key = f"{found.n_rows} {batch} {steps} {found.epsilon:g}"
    if key not in kept:
        kept[key] = _small(found, batch, passes, steps)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(kept))
    return kept[key]


def _small(found, batch, passes, steps):
    if batch > SMALL_BATCH:
        return sgd.multiplier(found, batch, passes)
    sampling = Sampling(found.n_rows, batch, steps, poisson=True)

    def of(multiplier: float) -> float:
        return sampling.profile(multiplier).epsilon(found.delta, INTERVAL)

    return exp(least_log_noise(of, found.epsilon, log(0.7)))


def _sgd_title(batch):
    return "DP-GD, all rows" if batch == ALL_ROWS else f"DP-SGD, batch {batch}"


def _algorithms():
    yield Algorithm("default", "our estimator, untuned", np.empty(0), default)
    cd = partial(Algorithm, steps=CD_STEPS)
    yield cd(
        "dp_cd",
        "DP-CD",
        prepare=partial(coordinate, paid=False, published=False),
    )
    yield cd(
        "dp_cd_private",
        "DP-CD, private smoothness",
        prepare=partial(coordinate, paid=True, published=False),
    )
    yield cd(
        "dp_cd_published",
        "DP-CD, published accounting",
        prepare=partial(coordinate, paid=False, published=True),
    )
    gcd = partial(cd, greedy=True)
    for rule in ("gs-r", "gs-s", "gs-q"):
        yield gcd(
            f"dp_gcd_published_{rule[-1]}",
            f"DP-GCD published, {rule.upper()}",
            prepare=partial(greedy, rule=rule, mechanism="laplace", plain=True),
        )
    yield gcd(
        "dp_gcd_gumbel",
        "DP-GCD, Gumbel and Gaussian noise",
        prepare=partial(greedy, rule="gs-s", mechanism="gumbel", plain=True),
    )
    yield gcd(
        "dp_gcd",
        "DP-GCD, ours",
        prepare=partial(greedy, rule="gs-s", mechanism="auto", plain=False),
    )
    yield gcd(
        "dp_gcd_free",
        "DP-GCD, ours, choices without noise (not private)",
        prepare=partial(
            greedy, rule="gs-s", mechanism="gumbel", plain=False, free=True
        ),
    )
    for batch in BATCHES:
        name = "dp_gd" if batch == ALL_ROWS else f"dp_sgd_{batch}"
        yield Algorithm(
            name, _sgd_title(batch), SGD_STEPS, partial(gradient, batch=batch)
        )


ALGORITHMS = {algorithm.name: algorithm for algorithm in _algorithms()}


# Where the rules are compared, and where choices without noise show what may be reached
RULES_COMPARED = ("square", "log1", "log2", "madelon_l1", "california")
CHOICES_FREE = ("square", "log1", "log2")
# Samples for the wide problems, where smaller ones are as far from anything useful
FEW_BATCHES = (64, 256)


def applies(algorithm: Algorithm, found: Case) -> bool:
    """Return whether a row is run: what the papers compare, and larger samples."""
    name, narrow = algorithm.name, found.chapter == 4
    if name == "dp_cd_private":
        return narrow and found.paid and found.n_features <= 100
    if name == "dp_cd_published":
        return narrow
    if name == "dp_gcd_free":
        return found.name in CHOICES_FREE
    if name in ("dp_gcd_published_s", "dp_gcd_published_q", "dp_gcd_gumbel"):
        return found.name in RULES_COMPARED
    if algorithm.greedy:
        return found.chapter == 5
    if name.startswith("dp_sgd_"):
        batch = int(name.removeprefix("dp_sgd_"))
        return batch < found.n_rows and (narrow or batch in FEW_BATCHES)
    return True


def main() -> int:
    """Check that the shortcuts above are what the solvers do."""
    for name in ("california_raw", "log1"):
        found = case(name)
        problem, rows, _, squares = scaled(name)
        roots = tuple(np.sqrt(squares).tolist())
        given = {"clip": papers_clip(found, 20.0), "step": 0.7, "smoothness": roots}
        solvers = {
            "dp_cd": CoordinateDescent(n_passes=3, **given),
            "dp_cd_private": CoordinateDescent(
                n_passes=3, **given | {"smoothness": "private"}
            ),
            "dp_gcd": GreedyCoordinateDescent(
                n_steps=3, selection_clip=VOTES * given["clip"], **given
            ),
            "dp_gcd_published_r": GreedyCoordinateDescent(
                n_steps=3, rule="gs-r", mechanism="laplace", **given
            ),
        }
        for which, solver in solvers.items():
            plan = solver.plan(problem, replace_one(found))
            theirs = solver.run(plan, rows, as_generator(7)).coefficients[:, 0]
            theirs = theirs / found.bounds
            ours = (
                ALGORITHMS[which]
                .prepare(found, 3)
                .run(20.0, 0.7, as_generator(7))
                .coefficients
            )
            apart = np.abs(ours - theirs).max()
            # the calibrations may differ in the last places
            print(f"{name} {which}: {apart:.1e} apart")
            if not apart <= 1e-6 * max(1.0, np.abs(theirs).max()):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
