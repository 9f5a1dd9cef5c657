"""Send a split to a peer's environment and read its results."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[1] / ".peers"
# rows are sent dense: no peer takes sparse ones
MOST_BYTES = 2**30


class PeerFailed(RuntimeError):
    """The peer's environment is missing, or its process ended in an error."""


class PeerRefused(RuntimeError):
    """The peer does not take such data."""


def diffprivlib(split, epsilons, seed, repeats=1):
    """Return a result for each epsilon, pure epsilon-DP as that library claims it."""
    given = {"epsilons": epsilons, "seed": seed, "repeats": repeats}
    return ask("sklearn", "fit_diffprivlib.py", split, given)


def diffprivlib_regression(split, epsilons, seed, low, high, y_range):
    """Return a result for each epsilon, pure epsilon-DP as that library claims it.

    It is not where its noise on the squares of a column, in proportion to the square of
    the distance from the mean to the lower bound alone, is less than the distance to
    the upper one asks for; see `widened_bounds`.
    """
    given = {
        "epsilons": list(epsilons),
        "seed": seed,
        "low": [float(end) for end in low],
        "high": [float(end) for end in high],
        "y_range": [float(end) for end in y_range],
    }
    return ask("sklearn", "fit_diffprivlib_regression.py", split, given)


def widened_bounds(low, high):
    """Return bounds whose lower end is the further one, wherever a mean may be."""
    return low - (high - low), high


def opacus(split, epsilon, seed, **given):
    return ask("torch", "fit_opacus.py", split, _descent(split, epsilon, seed, given))


def jax_privacy(split, epsilon, seed, **given):
    asked = _descent(split, epsilon, seed, given)
    return ask("jax", "fit_jax_privacy.py", split, asked)


def _descent(split, epsilon, seed, given):
    usual = {"batch": 512, "epochs": 20, "rates": [1.0, 4.0, 16.0]}
    return usual | given | {"epsilon": epsilon, "delta": split.delta, "seed": seed}


def interpreter(environment):
    """Return the Python of an environment."""
    python = ENVIRONMENTS / environment / "bin" / "python"
    if not python.is_file():
        raise PeerFailed(
            f"the environment {environment} is missing: "
            "python -m benchmarks.peers.install"
        )
    return python


def on_one_thread():
    """Return the variables of a process that computes on one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    one["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return {**os.environ, **one}


def stream(environment, script, arrays, given):
    """Run a script of this folder, and yield each line of JSON as it is printed.

    For jobs of hours: what was yielded is kept when the process is ended.
    """
    python = interpreter(environment)
    with tempfile.TemporaryDirectory() as folder:
        rows, facts = Path(folder) / "table.npz", Path(folder) / "given.json"
        np.savez(rows, **arrays)
        facts.write_text(json.dumps(given))
        errors = Path(folder) / "errors"
        with (
            errors.open("w") as written,
            subprocess.Popen(
                [str(python), str(HERE / script), str(rows), str(facts)],
                stdout=subprocess.PIPE,
                stderr=written,
                text=True,
                env=on_one_thread(),
            ) as process,
        ):
            try:
                for line in process.stdout:
                    yield json.loads(line)
            except BaseException:  # the reader stopped: nobody wants the rest
                process.terminate()
                raise
        if process.returncode != 0:
            last = (errors.read_text().strip().splitlines() or ["no message"])[-1]
            raise PeerFailed(f"{script}: {last}")


def ask(environment, script, split, given):
    """Run a script of this folder on the clipped rows of a split."""
    python = interpreter(environment)
    X, X_test = split.clipped()
    if sparse.issparse(X):
        size = 8 * (X.shape[0] + X_test.shape[0]) * X.shape[1]
        if size > MOST_BYTES:
            raise PeerRefused(
                f"takes no sparse rows, and dense ones would need {size / 2**30:.1f} "
                "GiB"
            )
        X, X_test = X.toarray(), X_test.toarray()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "split.npz"
        np.savez(file, X=X, y=split.y, X_test=X_test, y_test=split.y_test)
        done = subprocess.run(
            [str(python), str(HERE / script), str(file), json.dumps(given)],
            capture_output=True,
            text=True,
            env=on_one_thread(),  # as all columns are
        )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerFailed(f"{script}: {last}")
    return json.loads(done.stdout.strip().splitlines()[-1])
