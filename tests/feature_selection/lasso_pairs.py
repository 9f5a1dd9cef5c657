"""Neighbors that try to change what the lasso keeps."""

import numpy as np

from tacit._random import as_generator


def designs(rng, n, p):
    """Return features of a kind: even, two-valued, alike, or rare codes."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.uniform(-1, 1, (n, p))
    if kind == 1:
        return rng.choice([-1.0, 1.0], (n, p))
    if kind == 2:
        shared = 0.7 * rng.uniform(-1, 1, (n, 1))
        return np.clip(shared + 0.5 * rng.uniform(-1, 1, (n, p)), -1, 1)
    return 2.0 * (rng.random((n, p)) < 0.2) - 1


def data_set(rng):
    """Return rows of a few columns, and how many columns may be selected."""
    n, p = int(rng.integers(60, 400)), int(rng.integers(1, 6))
    s = int(rng.integers(1, min(p, 3) + 1))
    X = designs(rng, n, p)
    w = np.zeros(p)
    w[:s] = rng.uniform(-0.8, 0.8, s)
    noise = rng.uniform(0, 0.3) * rng.standard_normal(n)
    return X, np.clip(X @ w + noise + rng.uniform(-0.2, 0.2), -1, 1), s


def neighbor(rng, X, y, rows_changed):
    """Return the rows with one of them pushed to a corner, added or left out."""
    x = rng.choice([-1.0, 1.0], X.shape[1])
    target = rng.choice([-1.0, 1.0])
    position = int(rng.integers(len(y))) if rng.random() < 0.5 else int(np.argmax(y))
    if rows_changed == 2:
        X, y = X.copy(), y.copy()
        X[position], y[position] = x, target
        return X, y
    if rng.random() < 0.5:
        return np.vstack([X, x]), np.append(y, target)
    return np.delete(X, position, axis=0), np.delete(y, position)


def about_to_enter(n=400, penalty=100.0, short=0.75):
    """Return rows whose second column is just short of entering, and a neighbor."""
    hadamard = np.array([[1, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1]], dtype=float)
    X = np.tile(hadamard, (n // 4, 1))
    y = 0.4 * X[:, 0] + (penalty - short) / n * X[:, 1]
    return (X, y), (np.vstack([X, [1.0, 1.0, 0.0]]), np.append(y, 1.0))


def twins(n, near):
    """Return rows of a column with two twins that differ by hardly anything.

    Together they can stand for the last column, at the cost of very large weights.
    """
    hadamard = np.array([[1.0]])
    for _ in range(3):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    H = np.tile(hadamard, (n // 8 + 1, 1))[:n]
    first, second = H[:, 1], H[:, 2]
    columns = [first, 0.7 * first + near * second, 0.7 * first - near * second]
    columns += [0.7 * first + 0.3 * H[:, j] for j in (3, 5, 6, 7)]
    columns += [0.7 * first - 0.3 * H[:, 3], second]
    return np.column_stack(columns), 0.5 * first + 0.3 * second


def violations(facts_of, seed, n_sets=25, n_neighbors=6):
    """Return pairs that break a distance, and how many put it to the test.

    ``facts_of(rng, n_rows, n_select)`` draws public facts.
    """
    rng = as_generator(seed)
    found, tried = [], 0
    for _ in range(n_sets):
        X, y, s = data_set(rng)
        facts = facts_of(rng, len(y), s)
        support, distance = facts.distance(X, y)
        for _ in range(n_neighbors):
            other, far = facts.distance(*neighbor(rng, X, y, facts.rows_changed))
            tried += max(distance, far) > 0
            moved = abs(distance - far) > 1
            if moved or (max(distance, far) > 0 and support != other):
                found.append((facts, support, distance, other, far))
    return found, tried
