"""Optima without privacy, certified by the gap to a dual value."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from benchmarks.cd.problems import CASES, Case, case
from scipy import sparse
from sklearn.linear_model import Lasso, LogisticRegression

OUTPUTS = Path(__file__).resolve().parents[1] / "outputs" / "cd"
CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Optimum:
    """Weights at the optimum, their value, and a bound on what is left to gain."""

    w: np.ndarray
    value: float
    gap: float

    @property
    def support(self) -> np.ndarray:
        return self.w != 0


def derivatives(found: Case, z: np.ndarray) -> np.ndarray:
    """Return the derivative of each row's loss in its margin."""
    if not found.logistic:
        return z - found.y
    return -found.y * _sigmoid(-found.y * z)


def _sigmoid(t):
    return np.where(t < 0, np.exp(np.minimum(t, 0)), 1.0) / (1 + np.exp(-np.abs(t)))


def duality_gap(found: Case, w: np.ndarray) -> float:
    """Return F(w) less a value of the dual problem: a bound on F(w) - F*."""
    n = found.n_rows
    a = derivatives(found, found.margins(w))
    pull = np.asarray(found.X.T @ a) / n
    if found.l2 == 0:
        # into the set where the dual is finite
        a = a * min(1.0, found.l1 / np.abs(pull).max())
        penalty = 0.0
    else:
        over = np.maximum(np.abs(pull) - found.l1, 0.0)
        penalty = float(over @ over) / (2 * found.l2)
    if found.logistic:
        b = np.clip(-a * found.y, 0.0, 1.0)
        conjugate = _entropy(b) + _entropy(1 - b)
    else:
        conjugate = 0.5 * a**2 + a * found.y
    return found.objective(w) + float(np.mean(conjugate)) + penalty


def _entropy(b):
    return np.where(b > 0, b * np.log(np.maximum(b, 1e-300)), 0.0)


def newton(found: Case, w: np.ndarray, n_steps: int = 60) -> np.ndarray:
    """Return the optimum among weights of these signs, by Newton steps on them."""
    support = np.flatnonzero(w) if found.l1 > 0 else np.arange(found.n_features)
    signs = np.sign(w[support])
    part = found.X[:, support]
    part = part.toarray() if sparse.issparse(part) else part
    v = w[support].copy()
    here = _value(found, part, signs, v)
    for _ in range(n_steps):
        z = part @ v
        if found.logistic:
            p = _sigmoid(z)
            curved = p * (1 - p)
        else:
            curved = np.ones(found.n_rows)
        gradient = part.T @ derivatives(found, z) / found.n_rows
        gradient += found.l1 * signs + found.l2 * v
        hessian = (part * curved[:, None]).T @ part / found.n_rows
        hessian[np.diag_indices_from(hessian)] += found.l2
        move = np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        length = 1.0
        # only far from the optimum is the value no guide to within round-off
        while length > 1e-6:
            there = _value(found, part, signs, v - length * move)
            if there <= here + 1e-12 * abs(here):
                break
            length /= 2
        v, here = v - length * move, there
        if np.abs(move).max() <= 1e-15 * max(1.0, np.abs(v).max()):
            break
    out = np.zeros(found.n_features)
    out[support] = v
    return out


def _value(found, part, signs, v):
    smooth = replace(found, X=part, l1=0.0)
    return smooth.objective(v) + found.l1 * float(signs @ v)


def start(found: Case) -> np.ndarray:
    """Return what scikit-learn finds."""
    if found.l1 == 0:
        return np.zeros(found.n_features)
    if not found.logistic:
        model = Lasso(found.l1, fit_intercept=False, tol=1e-14, max_iter=1_000_000)
        return model.fit(found.X, found.y).coef_
    model = LogisticRegression(
        C=1 / (found.n_rows * found.l1),
        l1_ratio=1.0,
        fit_intercept=False,
        tol=1e-9,
        max_iter=100_000,
        solver="liblinear",
        random_state=0,
    )
    return model.fit(found.X, found.y).coef_[0]


def solve(found: Case) -> Optimum:
    """Return the better of two solutions, and its certificate."""
    first = start(found)
    second = newton(found, first)
    best = min((first, second), key=lambda w: duality_gap(found, w))
    return Optimum(best, found.objective(best), duality_gap(found, best))


def optimum(found: Case) -> Optimum:
    """Return the optimum of a problem, from disk after the first time."""
    file = OUTPUTS / "optima" / f"{found.name}.npz"
    key = json.dumps([found.l1, found.l2, found.n_rows, found.n_features])
    if file.is_file():
        stored = np.load(file)
        if str(stored["key"]) == key:
            return Optimum(stored["w"], float(stored["value"]), float(stored["gap"]))
    best = solve(found)
    if not best.gap <= CLOSE * best.value:
        raise RuntimeError(f"The optimum of {found.name} is known to {best.gap} only.")
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, w=best.w, value=best.value, gap=best.gap, key=key)
    return best


def main() -> int:
    for name in CASES:
        found = case(name)
        best = optimum(found)
        at_zero = found.objective(np.zeros(found.n_features)) / best.value - 1
        print(
            f"{name}: n {found.n_rows}, p {found.n_features}, l1 {found.l1:g}, "
            f"l2 {found.l2:g}, F* {best.value:.10g}, gap {best.gap:.1e}, error at zero "
            f"{at_zero:.4f}, weights {int(best.support.sum())}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
