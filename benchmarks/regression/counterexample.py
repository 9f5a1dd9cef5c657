"""A published test of stability, and the neighbors that refute it.

The test of Thakurta (2013), Table 6.1, looks at the (s + 1)-st largest slope. Where the
lasso keeps fewer than s columns, the s largest slopes hide a column that is about to
enter. One more row lets it in: what was told with certainty is never told any more.

    python -m benchmarks.regression.counterexample
"""

from dataclasses import dataclass
from math import exp, log

import numpy as np
from sklearn.linear_model import Lasso

from tacit.audit import audit
from tacit.feature_selection._lasso_distance import PaperFacts, SquaredFacts
from tacit.mechanisms import Laplace, StableRelease, as_generator

EPSILON, DELTA = 1.0, 1e-6
N_ROWS, N_SELECT, CURVATURE, PENALTY = 40_000, 2, 0.2, 10_000.0
# What the published test tells before the row is added, and never after
TOLD = (0,)


def neighbors():
    """Return the data set and its neighbor with one row more."""
    hadamard = np.array([[1, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1]], dtype=float)
    X = np.tile(hadamard, (N_ROWS // 4, 1))
    # the second column is half a unit of slope away from entering
    y = 0.8 * X[:, 0] + (PENALTY - 0.5) / N_ROWS * X[:, 1]
    return (X, y), (np.vstack([X, [1.0, 1.0, 0.0]]), np.append(y, 2.0))


def printed_distance(X, y):
    """Return the support and the distance exactly as Section 6.4.2 has them."""
    n, s, psi = len(y), N_SELECT, CURVATURE
    lasso = Lasso(alpha=PENALTY / n, fit_intercept=False, tol=1e-14, max_iter=10_000)
    w = lasso.fit(X, y).coef_
    support = np.flatnonzero(w)
    derivatives = np.sort(np.abs(X.T @ (y - X @ w)))[::-1]
    least = np.linalg.eigvalsh(X[:, support].T @ X[:, support])[0]
    unit = 4 * s**1.5 / psi
    tests = [
        (-derivatives[s] + PENALTY / 2) / (12 * s**2 / psi),
        (least - 2 * psi * n) / s,
        (n * np.abs(w[support]).min() - 2 * unit) / unit,
        (-n * np.abs(w[support]).max() - 2 * unit + n) / unit,
    ]
    return tuple(support.tolist()), max(min(tests) + 1, 0.0)


def printed_probability(distance, epsilon=EPSILON, delta=DELTA):
    """Return how likely the published threshold tells a support at a distance."""
    ahead = epsilon * distance - log(1 / delta)
    return 1 - exp(-ahead) / 2 if ahead > 0 else exp(ahead) / 2


@dataclass(frozen=True)
class Printed:
    """The published release: Laplace noise on the distance, and a threshold."""

    def measure(self, X, y):
        return printed_distance(X, y)

    def release(self, support, distance, rng):
        noisy = Laplace(1 / EPSILON, 1.0)(np.array([distance]), rng)[0]
        return support if noisy > log(1 / DELTA) / EPSILON else None


@dataclass(frozen=True)
class Ours:
    """The repaired test, on targets from -1 to 1, with the rule of release it has."""

    facts: PaperFacts | SquaredFacts

    def measure(self, X, y):
        return self.facts.distance(X, y / N_SELECT)

    def release(self, support, distance, rng):
        return StableRelease(EPSILON, DELTA)(support, distance, rng)


def repaired(penalty=PENALTY):
    """Return both repaired tests at a penalty for targets as they are."""
    unit = penalty / N_SELECT
    return {
        "published slacks, repaired": Ours(
            PaperFacts(N_SELECT, unit, 2 * CURVATURE, 1, intercept=False)
        ),
        "tight slacks": Ours(SquaredFacts(N_SELECT, unit, 1.0, 1.0, 1, False)),
    }


def audited(procedure, n_runs, random_state=0):
    """Return both measurements and an audit of the event that `TOLD` is told."""
    measured = [procedure.measure(*side) for side in neighbors()]

    def train(side, seed):
        told = procedure.release(*side, as_generator(seed))
        return np.array([1.0 if told == TOLD else 0.0])

    found = audit(
        train,
        measured,
        n_runs=n_runs,
        delta=DELTA,
        score=lambda told: told[0],
        random_state=random_state,
    )
    return measured, found


def main(n_runs=4_000):
    """Print what each test says of the pair, and what an audit makes of it."""
    for name, procedure in {"as published": Printed(), **repaired()}.items():
        measured, found = audited(procedure, n_runs)
        print(f"{name}: claim epsilon {EPSILON:g} at delta {DELTA:g}")
        for side, (support, distance) in zip(("D", "D'"), measured, strict=True):
            line = f"  {side:2} support {support}, distance {distance:.2f}"
            if isinstance(procedure, Printed) and support == TOLD:
                line += f", told with probability {printed_probability(distance):.4f}"
            print(line)
        print(f"  {found}")
        print(
            f"  the claim is {'refuted' if found.refutes(EPSILON) else 'not refuted'}"
        )
    # with a penalty at which no column is about to enter there is an answer again
    for name, procedure in repaired(penalty=4_000.0).items():
        for side, rows in zip(("D", "D'"), neighbors(), strict=True):
            support, distance = procedure.measure(*rows)
            print(f"penalty 4000, {name}, {side}: {support} at {distance:.2f}")


if __name__ == "__main__":
    main()
