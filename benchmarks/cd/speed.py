"""Time of a private pass over all coordinates, against passes without privacy.

Run as ``python -m benchmarks.cd.speed``. Read the ratios: seconds depend on the machine
and on what else it does, so all columns are measured in turn, and the median over the
repetitions is taken. Every figure is processor time a pass: that of many passes less
that of one, which leaves preparation out. A private pass makes as many updates as there
are coordinates, at random, and is given with and without drawing its noise.

scikit-learn's coordinate descent has a penalty so small that every weight moves, and is
divided by the passes that it reports. celer is called as `time_celer.py` says, in an
environment of its own: ``python -m benchmarks.peers.install``.
scikit-learn has no coordinate descent in Python
for the logistic loss, so only celer is compared there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from benchmarks.peers.client import ENVIRONMENTS, HERE
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso

from tacit._random import as_generator
from tacit.convex import Logistic, Loss, Squared
from tacit.datasets import load
from tacit.mechanisms import DiscreteGaussian
from tacit.solvers._coordinates.columns import Columns, Updates

PASSES = 50
TINY = 1e-9  # penalty with which every weight moves
BAR = 2.0
COLUMNS = ("random", "cyclic", "celer", "sklearn random", "sklearn cyclic")


@dataclass(frozen=True, eq=False)
class Data:
    """Rows within [-1, 1] and a loss."""

    name: str
    X: Any
    y: np.ndarray
    loss: Loss

    @property
    def mean_squares(self) -> np.ndarray:
        squares = self.X * self.X
        return np.maximum(np.asarray(squares.mean(axis=0)).ravel(), 1e-6)


def standard(X: np.ndarray) -> np.ndarray:
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.asfortranarray(X / np.abs(X).max(axis=0))


def signs(y: np.ndarray) -> np.ndarray:
    return np.where(y == y.max(), 1.0, -1.0)


def data() -> list[Data]:
    """Return the problems, the largest last."""
    california, electricity = load("california_housing"), load("electricity")
    X, y = make_regression(1000, 1000, n_informative=10, noise=1.0, random_state=0)
    news = load("newsgroups20", binary=True)
    words = sparse.csc_array(news.X)
    return [
        Data("California", standard(california.X), california.y - 2.0, Squared()),
        Data("make_regression", standard(X), y / np.abs(y).max(), Squared()),
        Data("Electricity", standard(electricity.X), signs(electricity.y), Logistic()),
        Data("newsgroups20", words, signs(news.y), Squared()),
        Data("newsgroups20", words, signs(news.y), Logistic()),
    ]


class Private:
    """Our walk, with a multiplier that a budget of about one would give."""

    def __init__(self, given: Data, order: str) -> None:
        n, p = given.X.shape
        m = given.mean_squares
        rows = given.X.tocsr() if sparse.issparse(given.X) else given.X
        self._private_columns = Columns(rows, given.y, given.loss)
        self.mechanism = DiscreteGaussian(4.0 * np.sqrt(PASSES * p))
        step = 1.0 / (given.loss.max_curvature() * n * m)
        ends = np.full(p, np.inf)
        parts = (np.full(p, TINY * n), np.zeros(p), -ends, ends)
        self.updates = Updates.of(np.sqrt(m), self.mechanism.units, step, parts, 1.0)
        self.p, self.order = p, order

    def __call__(self, passes: int) -> tuple[float, float, int]:
        """Return seconds of the walk and of its noise, and the passes."""
        count, w = passes * self.p, np.zeros(self.p)
        order = np.tile(np.arange(self.p), passes)
        if self.order == "random":
            order = as_generator(0).integers(0, self.p, count)
        t = self._private_columns.state(w)
        start = process_time()
        noise = self.mechanism.draws(count, as_generator(1))
        drawn = process_time()
        self._private_columns.update_all(w, t, order, self.updates, noise=noise)
        return process_time() - drawn, drawn - start, passes


class ScikitLearn:
    """The Lasso of scikit-learn, stopped after a number of passes."""

    def __init__(self, given: Data, selection: str) -> None:
        self.given, self.selection = given, selection

    def __call__(self, passes: int) -> tuple[float, float, int]:
        model = Lasso(
            TINY,
            fit_intercept=False,
            precompute=False,
            max_iter=passes,
            tol=0.0,
            selection=self.selection,
            random_state=0,
            copy_X=False,
        )
        start = process_time()
        model.fit(self.given.X, self.given.y, check_input=False)
        return process_time() - start, 0.0, model.n_iter_


class Celer:
    """celer's inner solver, in a process that waits for the next question."""

    def __init__(self, given: Data, folder: str) -> None:
        python = ENVIRONMENTS / "celer" / "bin" / "python"
        if not python.is_file():
            raise FileNotFoundError(
                "the environment celer is missing: python -m benchmarks.peers.install"
            )
        logistic = isinstance(given.loss, Logistic)
        # its logistic loss is a sum and its squared one a mean
        alpha = TINY * (len(given.y) if logistic else 1)
        packed = sparse.issparse(given.X)
        arrays = {"X": given.X}
        if packed:
            X = given.X
            arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        file = Path(folder) / f"{given.name}-{logistic}.npz"
        np.savez(
            file,
            y=given.y,
            shape=given.X.shape,
            alpha=alpha,
            is_sparse=packed,
            logistic=logistic,
            **arrays,
        )
        self.child = subprocess.Popen(
            [str(python), str(HERE / "time_celer.py"), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, passes: int) -> tuple[float, float, int]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(f"{passes}\n")
        self.child.stdin.flush()
        seconds, moved = map(float, self.child.stdout.readline().split())
        if moved < 0.9:
            raise RuntimeError("celer left features out of its working set")
        return seconds, 0.0, passes

    def close(self) -> None:
        self.child.communicate()


def a_pass(run: Any) -> tuple[float, float]:
    """Return milliseconds of one pass, and of its noise."""
    long, short = run(PASSES + 1), run(1)
    passes = max(1, long[2] - short[2])
    return tuple(1e3 * (long[i] - short[i]) / passes for i in (0, 1))


def compare(given: Data, repeats: int, folder: str) -> list[float]:
    """Print the medians of all columns, and return our ratios to the peers."""
    celer = Celer(given, folder)
    runs: dict[str, Any] = {
        "random": Private(given, "random"),
        "cyclic": Private(given, "cyclic"),
        "celer": celer,
    }
    pairs = [("random", "celer"), ("cyclic", "celer")]
    if isinstance(given.loss, Squared):
        for order in ("random", "cyclic"):
            runs[f"sklearn {order}"] = ScikitLearn(given, order)
            pairs.append((order, f"sklearn {order}"))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for run in runs.values():
        run(1)  # compiles
    for _ in range(repeats):
        for name, run in runs.items():
            found[name].append(a_pass(run))
    celer.close()
    walk = {name: median(v[0] for v in values) for name, values in found.items()}
    noise = median(v[1] for v in found["random"] + found["cyclic"])

    def ratio(ours: str, other: str, extra: int) -> float:
        rounds = zip(found[ours], found[other], strict=True)
        return median((a[0] + extra * a[1]) / b[0] for a, b in rounds)

    kind = type(given.loss).__name__.lower()
    times = " ".join(f"{walk.get(name, np.nan):>9.3f}" for name in COLUMNS)
    ratios = [(ratio(a, b, 0), ratio(a, b, 1)) for a, b in pairs]
    shown = " ".join(f"{plain:>5.2f}/{full:<5.2f}" for plain, full in ratios)
    shape = f"{given.X.shape[0]} x {given.X.shape[1]}"
    print(f"{given.name:>16} {shape:>14} {kind:>9} {times} {noise:>7.3f}  {shown}")
    return [full for _, full in ratios]


FIRST_CALL = """
from time import perf_counter
import numpy as np
from tacit.convex import {loss}
from tacit.solvers._coordinates.columns import Columns, Updates, weights_after
X = np.ones((64, 4))
if {packed}:
    from scipy import sparse
    X = sparse.csr_array(X)
start = perf_counter()
columns = Columns(X, np.ones(64), {loss}())
parts = tuple(np.ones(4) for _ in range(4))
updates = Updates.of(np.ones(4), 1000, np.ones(4), parts, 1.0)
w, order, noise = np.zeros(4), np.arange(4), np.arange(4)
released, _ = columns.update_all(w, columns.state(w), order, updates, noise=noise)
weights_after(w, order, released, updates)
print(perf_counter() - start)
"""


def first_calls() -> None:
    """Print the time of a first walk in a fresh process, compiled or from the cache."""
    import os  # noqa: PLC0415 - the environment of children only

    for packed in (False, True):
        code = FIRST_CALL.format(loss="Logistic", packed=packed)
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            seconds = []
            for _ in range(2):
                start = perf_counter()
                done = subprocess.run(
                    [sys.executable, "-c", code],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=environment,
                )
                seconds.append((float(done.stdout), perf_counter() - start))
        layout = "sparse" if packed else "dense"
        print(
            f"first walk, {layout}: {seconds[0][0]:.2f} s compiled, {seconds[1][0]:.2f}"
            f" s cached (processes {seconds[0][1]:.2f} s, {seconds[1][1]:.2f} s)"
        )


def main() -> int:
    """Print the table; fail where a pass takes more than twice that of a peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--names", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # peers say that they did not converge
    columns = ("ours rnd", "ours cyc", "celer", "skl rnd", "skl cyc")
    print(
        f"{'ms a pass':>16} {'rows x columns':>14} {'loss':>9} "
        + " ".join(f"{c:>9}" for c in columns)
        + f" {'noise':>7}  without/with noise: rnd/celer cyc/celer rnd/skl cyc/skl"
    )
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for given in data():
            if args.names is None or given.name in args.names:
                worst = max(worst, *compare(given, args.repeats, folder))
    print(f"largest ratio, noise drawn: {worst:.2f} (bar {BAR})")
    first_calls()
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main())
