"""Time of a default private fit against the same fit elsewhere, in the same minutes.

Read the ratios: seconds depend on the machine and on what else it does. scikit-learn
gets the same ridge and the same clipped rows. The other private libraries run
in their own processes and time their own fit: loading data and compiling are left out,
their batch loaders are not. Where steps have a learning rate, the best of three on the
test rows is taken, in their favor, and the cheapest number of passes that reaches our
accuracy.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import replace
from statistics import median
from time import process_time

import numpy as np
from benchmarks.erm.data import OUTPUTS, split
from benchmarks.erm.report import table
from benchmarks.peers import client
from sklearn.linear_model import LogisticRegression as Plain

from tacit import Seed
from tacit.linear_model import LogisticRegression

SETS = ("adult", "kddcup99", "covertype_binary", "covertype", "mnist")
EPSILON = 1.0
RIDGE = 1.0  # of both, scikit-learn's default
# how far below ours an accuracy may be and still count as equal
EQUAL = 0.003
PASSES = (5, 10, 20, 50)
# weights beyond which one Hessian of newton-cholesky takes minutes
MOST_WEIGHTS = 2000


def rows_of(name):
    """Return the split of run 0; the largest class against the rest if binary."""
    if name != "covertype_binary":
        return split(name, 0)
    found = split("covertype", 0)
    return replace(
        found,
        name=name,
        y=(found.y == 1).astype(np.int64),
        y_test=(found.y_test == 1).astype(np.int64),
        n_classes=2,
    )


def timed(action, *given):
    start = process_time()
    action(*given)
    return process_time() - start


def plain_fits(names, repeats):
    """Return a line for each set and solver of scikit-learn."""
    lines = []
    for name in names:
        rows = rows_of(name)
        X, X_test = rows.clipped()
        ours = LogisticRegression(
            EPSILON, ridge=RIDGE, classes=range(rows.n_classes), x_norm=1.0
        )
        rivals = {
            solver: Plain(C=1 / RIDGE, solver=solver, max_iter=1000)
            for solver in ("lbfgs", "newton-cholesky")
            if solver == "lbfgs" or X.shape[1] * rows.n_classes <= MOST_WEIGHTS
        }
        for model in (ours, *rivals.values()):  # compile and load once
            model.fit(X[:2000], rows.y[:2000])
        times = {"ours": [], **{solver: [] for solver in rivals}}
        for _ in range(repeats):
            times["ours"].append(timed(ours.fit, X, rows.y))
            for solver, model in rivals.items():
                times[solver].append(timed(model.fit, X, rows.y))
        took = {key: median(values) for key, values in times.items()}
        score = {
            solver: f"{100 * model.score(X_test, rows.y_test):.1f}"
            for solver, model in rivals.items()
        }
        mine = f"{100 * ours.score(X_test, rows.y_test):.1f}"
        for solver in rivals:
            lines.append(
                [
                    name,
                    f"scikit-learn {solver}",
                    f"{took['ours']:.2f}",
                    f"{took[solver]:.2f}",
                    f"{took['ours'] / took[solver]:.2f}",
                    mine,
                    score[solver],
                ]
            )
            print("  ".join(lines[-1]), flush=True)
    return lines


def peer_fits(names, repeats):
    """Return a line for each set and private library."""
    lines = []
    for name in names:
        rows = rows_of(name)
        lines += [
            _peer_line(name, "diffprivlib", rows, repeats, _diffprivlib),
            _peer_line(name, "Opacus", rows, repeats, _reaching(client.opacus)),
            _peer_line(
                name, "jax_privacy", rows, repeats, _reaching(client.jax_privacy)
            ),
        ]
    return lines


def _peer_line(name, peer, rows, repeats, measure):
    # the relation that the peer's own accounting is for
    neighbors = "replace_one" if peer == "diffprivlib" else "add_or_remove_one"
    times, scores = [], []
    for seed in range(repeats):
        model = LogisticRegression(
            EPSILON,
            rows.delta,
            neighbors=neighbors,
            classes=range(rows.n_classes),
            random_state=Seed(seed),
            x_norm=1.0,
        )
        model.fit(rows.X[:2000], rows.y[:2000])  # compile and load once
        times.append(timed(model.fit, rows.X, rows.y))
        scores.append(model.score(rows.X_test, rows.y_test))
    mine, accuracy = median(times), float(np.mean(scores))
    try:
        theirs, their_accuracy, note = measure(rows, accuracy, repeats)
        ratio, seconds = f"{mine / theirs:.3f}", f"{theirs:.2f}"
        reached = f"{100 * their_accuracy:.1f}"
    except (client.PeerFailed, client.PeerRefused) as error:
        ratio, seconds, reached, note = "", "", "", str(error)
    label = f"{peer} ({note})" if note else peer
    line = [name, label, f"{mine:.2f}", seconds, ratio, f"{100 * accuracy:.1f}"]
    line.append(reached)
    print("  ".join(line), flush=True)
    return line


def _diffprivlib(rows, accuracy, repeats):
    found = client.diffprivlib(rows, [EPSILON], 0, repeats)
    took = median(r["cpu_s"] for r in found)
    return took, float(np.mean([r["accuracy"] for r in found])), ""


def _reaching(fit):
    """Return a measure that raises the passes until our accuracy is reached."""

    def measure(rows, accuracy, repeats):
        for passes in PASSES:
            found = fit(rows, EPSILON, 0, epochs=passes)
            best = max(found, key=lambda r: r["accuracy"])
            if best["accuracy"] >= accuracy - EQUAL:
                return best["cpu_s"], best["accuracy"], f"{passes} passes"
        return best["cpu_s"], best["accuracy"], f"{passes} passes, not reached"

    return measure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Adult alone")
    parser.add_argument("--sets", nargs="*", choices=SETS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's, of fits stopped early
    names = given.sets or (SETS[:1] if given.quick else SETS)
    lines = plain_fits(names, given.repeats)
    if not given.no_peers:
        lines += peer_fits(names, given.repeats)
    head = ["set", "against", "our CPU s", "their CPU s", "ours / theirs"]
    text = table([*head, "our accuracy, %", "theirs, %"], lines)
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / "speed.md").write_text(
        f"CPU seconds of a fit at ε = {EPSILON:g}, one thread, median of "
        f"{given.repeats}.\n\n{text}\n"
    )
    print("\n" + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
