"""Steps of private completion beside those without privacy, and whole fits.

    python -m benchmarks.recommend.speed [--quick]

A step of the walk is beside SciPy's ``svds`` for the first singular triplet of the same
residuals: of rank one, whose triplet is found at once, and of many directions. A round
of private alternating least squares is beside a pass of the package ``implicit`` with
as many factors, in an environment of its own: ``python -m benchmarks.peers.install``.
That package has no
privacy and fits weights of clicks, of which users have as many. Ratings have so many
directions and epsilon is so large there that none of the factors is dropped as noise,
which would save time. Steps and rounds are differences of two runs, in seconds of
processor time on one thread, the least of some repeats that take turns. Whole fits run
in processes of their own: from a sparse matrix to the item side. Memory is the most
that a process held beyond what it had with that matrix, on Linux.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from benchmarks.peers.client import ENVIRONMENTS, HERE
from benchmarks.recommend.common import RESULTS
from benchmarks.tables import arguments, markdown
from scipy import sparse
from scipy.sparse.linalg import svds

from tacit._random import as_generator
from tacit.datasets import make_rank_one_ratings
from tacit.privacy import Budget
from tacit.recommend import FrankWolfeCompletion, MatrixCompletion, PrivateALS
from tacit.recommend.items.side import ItemSide, centered
from tacit.recommend.ratings.reading import read_ratings
from tacit.recommend.ratings.table import RatingFacts, Ratings

ITEMS, RATINGS_EACH = 400, 80
EPSILON, DELTA = 1.0, 1e-6
# With this all factors of the rounds that are timed are beyond the noise
LARGE_EPSILON = 100.0
RANGE = (-1.0, 1.0)
FEW, MANY = 2, 6
FACTORS = 16
# Steps of the whole fits
STEPS = 20
REPEATS = 3
USERS, QUICK_USERS = 100_000, 5_000
WHOLE_USERS, QUICK_WHOLE_USERS = (500_000, 1_000_000), (20_000,)
SOLVERS: dict[str, Callable[[int | None], Any]] = {
    "frank_wolfe": lambda steps: FrankWolfeCompletion(n_iter=steps),
    "als": lambda steps: PrivateALS(n_iter=steps),
}


def matrix_of(n_users: int, rank: int = 1) -> sparse.csr_array:
    """Return ratings of this rank, as many of each user."""
    made = make_rank_one_ratings(n_users, ITEMS, RATINGS_EACH, random_state=1)
    values, items = made.ratings, made.items
    if rank > 1:
        rng = as_generator(2)
        users = rng.standard_normal((n_users, rank), dtype=np.float32)
        vectors = rng.standard_normal((ITEMS, rank), dtype=np.float32) / rank**0.5
        products = np.einsum("ij,ij->i", users[made.users], vectors[items])
        values = np.clip(products / 3, *RANGE)
    ends = np.arange(0, len(values) + 1, RATINGS_EACH)
    return sparse.csr_array((values, items, ends), (n_users, ITEMS))


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of some work."""
    began = process_time()
    work()
    return process_time() - began


class Timed:
    """Ratings in memory, and solvers that run on them for a few steps and for more."""

    def __init__(self, n_users: int, rank: int, epsilon: float) -> None:
        self.matrix = matrix_of(n_users, rank)
        self.ratings = read_ratings(self.matrix, items=ITEMS, rating_range=RANGE)
        self.facts = RatingFacts(ITEMS, *RANGE, n_users, RATINGS_EACH)
        self.budget = Budget(epsilon, DELTA)

    @property
    def residuals(self) -> sparse.csr_array:
        """What the first step of the walk sees."""
        (_, _, left), _ = centered(self.ratings, self.facts.middle)
        whole = self.matrix
        return sparse.csr_array((left, whole.indices, whole.indptr), whole.shape)

    def run(self, solver: Any, ratings: Ratings | None = None) -> ItemSide:
        plan = solver.plan(self.facts, self.budget)
        return solver.run(plan, ratings or self.ratings, as_generator(0))

    def compile(self, solver: Any) -> None:
        """Run on a few users, so that no clock sees what is done once."""
        self.run(solver, self.ratings.users(0, 100))

    def step(self, solver: Callable[[int], Any]) -> float:
        """Return what one more step of a solver takes."""
        few, many = (seconds(partial(self.run, solver(n))) for n in (FEW, MANY))
        return (many - few) / (MANY - FEW)


def walk_rows(n_users: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield a step of the walk beside a singular triplet."""
    for rank in (1, FACTORS):
        timed = Timed(n_users, rank, EPSILON)
        walk, residuals = SOLVERS["frank_wolfe"], timed.residuals
        timed.compile(walk(1))
        turns = [
            (
                timed.step(walk),
                seconds(partial(svds, residuals, k=1, rng=as_generator(0))),
            )
            for _ in range(repeats)
        ]
        private, plain = map(min, zip(*turns, strict=True))
        yield line(
            f"a step beside svds, ratings of rank {rank}",
            users=n_users,
            items=ITEMS,
            ratings_each=RATINGS_EACH,
            private=private,
            plain=plain,
        )


def round_rows(n_users: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield a round of least squares beside a pass of implicit."""
    timed = Timed(n_users, FACTORS, LARGE_EPSILON)
    timed.compile(private_als(1))
    private = min(timed.step(private_als) for _ in range(repeats))
    factors = timed.run(private_als(FEW)).vectors.shape[1]
    for way, plain in implicit_seconds(timed.matrix, factors, repeats).items():
        yield line(
            f"a round beside implicit, {way}",
            users=n_users,
            items=ITEMS,
            ratings_each=RATINGS_EACH,
            factors=factors,
            private=private,
            plain=plain,
        )


def private_als(steps: int) -> PrivateALS:
    """Return alternating least squares of a fixed number of factors."""
    return PrivateALS(rank=FACTORS, n_iter=steps)


def implicit_seconds(
    matrix: sparse.csr_array, factors: int, passes: int
) -> dict[str, float]:
    """Return the least seconds of a pass of implicit, by way of solving."""
    python = ENVIRONMENTS / "implicit" / "bin" / "python"
    if not python.is_file():
        raise SystemExit(
            "the environment implicit is missing: python -m benchmarks.peers.install"
        )
    asked = json.dumps({"factors": factors, "passes": passes, "threads": 1})
    with TemporaryDirectory() as folder:
        file = Path(folder) / "ratings.npz"
        np.savez(
            file,
            # weights of clicks are positive
            data=np.ones(matrix.nnz, dtype=np.float32),
            indices=matrix.indices.astype(np.int32),
            indptr=matrix.indptr.astype(np.int32),
            shape=matrix.shape,
        )
        script = str(HERE / "time_implicit.py")
        done = subprocess.run(
            [str(python), script, str(file), asked],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    return {way: min(found) for way, found in json.loads(done.stdout).items()}


def line(part: str, **found: Any) -> dict[str, Any]:
    """Return a row with all columns."""
    names = ("solver", "users", "items", "ratings_each", "factors", "steps")
    times = ("private", "plain", "seconds", "processor_seconds", "megabytes")
    row = {"part": part} | dict.fromkeys((*names, *times, "ratio")) | found
    if row["plain"] is not None:
        row["ratio"] = row["private"] / row["plain"]
    return row


def whole_rows(n_users: int) -> Iterator[dict[str, Any]]:
    """Yield whole fits, each in a process of its own."""
    for name in SOLVERS:
        for steps in (STEPS, None) if name == "als" else (STEPS,):
            found = in_process(name, n_users, steps)
            yield line(
                "whole fits",
                solver=name,
                users=n_users,
                items=ITEMS,
                ratings_each=RATINGS_EACH,
                steps="as planned" if steps is None else steps,
                **found,
            )


def in_process(name: str, n_users: int, steps: int | None) -> dict[str, float]:
    # a process of its own, as the most that one held never falls
    command = [sys.executable, "-m", "benchmarks.recommend.speed", "--fit"]
    asked = json.dumps([name, n_users, steps])
    done = subprocess.run([*command, asked], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def fit_once(name: str, n_users: int, steps: int | None) -> dict[str, float]:
    """Return the times of one fit, and the most megabytes that it added."""
    small, matrix = matrix_of(200), matrix_of(n_users)

    def fitted(ratings: sparse.csr_array) -> None:
        MatrixCompletion(
            SOLVERS[name](steps), EPSILON, DELTA, items=ITEMS, rating_range=RANGE
        ).fit(ratings)

    fitted(small)
    # the most so far was needed to make the ratings, and is forgotten
    Path("/proc/self/clear_refs").write_text("5")
    before, began = megabytes("VmRSS"), perf_counter()
    worked = seconds(lambda: fitted(matrix))
    return {
        "seconds": perf_counter() - began,
        "processor_seconds": worked,
        "megabytes": megabytes("VmHWM") - before,
    }


def megabytes(name: str) -> float:
    """Return what Linux says of the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1e3


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["--fit"]:
        print(json.dumps(fit_once(*json.loads(argv[1]))))
        return
    quick = arguments(argv, __doc__).quick
    size = (QUICK_USERS, 1) if quick else (USERS, REPEATS)
    rows = [*walk_rows(*size), *round_rows(*size)]
    for n_users in QUICK_WHOLE_USERS if quick else WHOLE_USERS:
        rows += whole_rows(n_users)
    print(markdown(rows))
    RESULTS.save("speed", rows, quick=quick)


if __name__ == "__main__":
    main()
