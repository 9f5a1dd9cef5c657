"""Regressions that the rule of adaptive moments was chosen on.

Real tables that are not among those of the comparison, in public ranges written down
here, and made-up ones: sensible, whose columns and targets fill a good part of their
ranges; correlated ones of that kind; hard, which fill little of them and are far from
the middle; and sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from tacit._random import as_generator
from tacit.datasets._real import _require

TEST_ROWS = 4000

# Target first, then columns, with the least and the largest value of each
REAL = {
    "adult_hours": (
        "adult",
        {
            "hours_per_week": (0, 100),
            "age": (0, 100),
            "fnlwgt": (0, 1_500_000),
            "education_num": (0, 20),
            "capital_gain": (0, 100_000),
            "capital_loss": (0, 5_000),
            "target": (0, 1),
            "sex=Male": (0, 1),
            "relationship=Own-child": (0, 1),
            "marital_status=Never-married": (0, 1),
            "marital_status=Married-civ-spouse": (0, 1),
        },
    ),
    "adult_age": (
        "adult",
        {
            "age": (0, 100),
            "hours_per_week": (0, 100),
            "education_num": (0, 20),
            "capital_gain": (0, 100_000),
            "target": (0, 1),
            "marital_status=Never-married": (0, 1),
            "relationship=Own-child": (0, 1),
            "workclass=Private": (0, 1),
        },
    ),
    "acs_age": (
        "acs_income_co_ne",
        {
            "AGEP": (0, 100),
            "SCHL": (0, 25),
            "MAR": (1, 5),
            "OCCP": (0, 10_000),
            "POBP": (0, 600),
            "RELP": (0, 20),
            "WKHP": (0, 100),
            "SEX": (1, 2),
            "RAC1P": (1, 9),
            "target": (0, 1),
        },
    ),
    "acs_hours": (
        "acs_income_co_ne",
        {
            "WKHP": (0, 100),
            "AGEP": (0, 100),
            "COW": (1, 9),
            "SCHL": (0, 25),
            "MAR": (1, 5),
            "SEX": (1, 2),
            "target": (0, 1),
        },
    ),
    "elevation": (
        "covertype",
        {
            "Elevation": (1500, 4500),
            "Aspect": (0, 360),
            "Slope": (0, 90),
            "Horizontal_Distance_To_Hydrology": (0, 2000),
            "Vertical_Distance_To_Hydrology": (-500, 1000),
            "Horizontal_Distance_To_Roadways": (0, 10_000),
            "Hillshade_9am": (0, 255),
            "Hillshade_Noon": (0, 255),
            "Hillshade_3pm": (0, 255),
            "Horizontal_Distance_To_Fire_Points": (0, 10_000),
            "Wilderness_Area1": (0, 1),
            "Wilderness_Area3": (0, 1),
            "Wilderness_Area4": (0, 1),
        },
    ),
    "hillshade": (
        "covertype",
        {
            "Hillshade_3pm": (0, 255),
            "Aspect": (0, 360),
            "Slope": (0, 90),
            "Hillshade_9am": (0, 255),
            "Elevation": (1500, 4500),
        },
    ),
    "soils": (
        "covertype",
        {
            "Elevation": (1500, 4500),
            **{f"Soil_Type{i}": (0, 1) for i in range(1, 41)},
            **{f"Wilderness_Area{i}": (0, 1) for i in range(1, 5)},
        },
    ),
    "demand": (
        "electricity",
        {
            "nswdemand": (0, 1),
            "day": (1, 7),
            "period": (0, 1),
            "nswprice": (0, 1),
            "vicprice": (0, 1),
            "vicdemand": (0, 1),
            "transfer": (0, 1),
        },
    ),
    "price": (
        "electricity",
        {
            "nswprice": (0, 0.3),
            "date": (0, 1),
            "period": (0, 1),
            "nswdemand": (0, 1),
            "vicdemand": (0, 1),
            "transfer": (0, 1),
        },
    ),
    "melting": (
        "melting_point",
        {
            "target": (0, 400),
            "diameter": (0, 30),
            "petitjean": (0, 1),
            "radius": (0, 15),
            "VDistEq": (0, 6),
            "VDistMa": (0, 12),
            "weinerPol": (0, 120),
            "a_aro": (0, 40),
            "a_count": (0, 120),
            "a_IC": (0, 200),
            "a_ICM": (0, 3),
            "a_nH": (0, 60),
            "b_1rotN": (0, 40),
            "b_1rotR": (0, 0.5),
            "b_ar": (0, 40),
            "b_count": (0, 120),
            "b_double": (0, 20),
            "b_rotR": (0, 0.5),
            "chi0v": (0, 40),
            "chi1v": (0, 25),
            "Weight": (0, 1000),
            "a_heavy": (0, 75),
        },
    ),
    "compas_age": (
        "compas",
        {
            "age": (18, 100),
            "priors_count": (0, 40),
            "juv_fel_count": (0, 20),
            "decile_score": (1, 10),
            "v_decile_score": (1, 10),
            "target": (0, 1),
            "sex=Male": (0, 1),
            "c_charge_degree=F": (0, 1),
        },
    ),
    "compas_score": (
        "compas",
        {
            "decile_score": (1, 10),
            "age": (18, 100),
            "priors_count": (0, 40),
            "juv_misd_count": (0, 20),
        },
    ),
    "kdd_hosts": (
        "kddcup99_10pct",
        {
            "dst_host_srv_count": (0, 255),
            "logged_in": (0, 1),
            "count": (0, 511),
            "srv_count": (0, 511),
            "serror_rate": (0, 1),
            "rerror_rate": (0, 1),
            "same_srv_rate": (0, 1),
            "diff_srv_rate": (0, 1),
            "srv_diff_host_rate": (0, 1),
            "dst_host_count": (0, 255),
            "dst_host_same_src_port_rate": (0, 1),
        },
    ),
}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and targets in [-1, 1], to fit and to score."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@cache
def read(name: str) -> np.ndarray:
    """Return the target and the columns of a real table, moved to [-1, 1]."""
    folder, ranges = REAL[name]
    columns = sorted({column.partition("=")[0] for column in ranges})
    path = _require(f"{folder}/{folder}.parquet")
    frame = pd.read_parquet(path, columns=columns)
    found = []
    for column, (low, high) in ranges.items():
        column, _, value = column.partition("=")
        seen = frame[column] == value if value else frame[column]
        found.append(2 * (seen.to_numpy(np.float64) - low) / (high - low) - 1)
    return np.column_stack(found).clip(-1, 1)


def real(name: str, n: int, seed: int) -> Table:
    """Return n rows of a real table, fewer where it has fewer, and others to score."""
    rows = read(name)
    rng = as_generator(seed)
    n = min(n, int(0.7 * len(rows)))
    chosen = rng.permutation(len(rows))[: n + TEST_ROWS]
    X, y = rows[chosen, 1:], rows[chosen, 0]
    return Table("real", X[:n], y[:n], X[n:], y[n:])


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def hard_column(rng, latent):
    """Return a column in [-1, 1] that may fill little of it."""
    kind = rng.choice(["normal", "skew", "indicator", "even"], p=[0.45, 0.25, 0.2, 0.1])
    if kind == "normal":
        spread = log_uniform(rng, 0.02, 0.4)
        return spread * latent + rng.uniform(-1, 1) * (1 - 2 * spread)
    if kind == "skew":
        return -1 + 2 * np.exp(rng.uniform(0.3, 1.2) * latent) / log_uniform(
            rng, 3, 100
        )
    if kind == "indicator":
        return np.where(latent > rng.uniform(-1.5, 2), 1.0, -1.0)
    return 2 * np.arctan(latent) / np.pi


def sensible_column(rng, latent):
    """Return a column that fills a third to all of [-1, 1], moderately off."""
    kind = rng.choice(["normal", "skew", "indicator", "even"], p=[0.4, 0.2, 0.2, 0.2])
    if kind == "normal":
        return rng.uniform(0.15, 0.45) * latent + rng.uniform(-0.4, 0.4)
    if kind == "skew":
        return -1 + np.exp(rng.uniform(0.3, 0.7) * latent) * rng.uniform(0.2, 0.8)
    if kind == "indicator":
        return np.where(latent > rng.uniform(-1, 1), 1.0, -1.0)
    return 2 * np.arctan(latent) / np.pi


def synthetic(kind: str, n: int, p: int, seed: int) -> Table:
    """Return a sensible, hard, correlated or sparse table."""
    rng = as_generator(seed)
    rows = n + TEST_ROWS
    hard = kind == "hard"
    k, common = int(rng.integers(1, 5)), rng.uniform(0, 0.98 if hard else 0.9)
    if kind == "sparse":
        common = 0.0
    elif kind == "correlated":  # as sensible ones, but most columns tell the same
        k, common = max(1, p // 4), rng.uniform(0.7, 0.98)
    factors = rng.standard_normal((rows, k))
    if hard and rng.random() < 0.25:
        factors = rng.standard_t(4, size=factors.shape)
    loadings = rng.standard_normal((k, p))
    loadings /= np.linalg.norm(loadings, axis=0)
    latent = np.sqrt(1 - common) * rng.standard_normal((rows, p))
    latent += np.sqrt(common) * factors @ loadings
    if kind == "sparse":
        X = rng.uniform(0.2, 0.4) * latent
    else:
        column = hard_column if hard else sensible_column
        X = np.column_stack([column(rng, latent[:, j]) for j in range(p)])
    X = X.clip(-1, 1)
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    w = rng.standard_normal(p)
    if kind == "sparse":
        w[int(rng.integers(5, 20)) :] = 0
    elif rng.random() < 0.4:
        w *= rng.random(p) < max(1 / p, rng.uniform(0.05, 0.5))
    w[0] += not w.any()
    signal = standard @ w
    signal /= max(signal.std(), 1e-9)
    heavy = rng.random() < 0.3
    noise = rng.standard_t(3, size=rows) if heavy else rng.standard_normal(rows)
    part = rng.uniform(0.1, 0.95) if hard else rng.uniform(0.3, 0.8)
    y = np.sqrt(part) * signal + np.sqrt(1 - part) * noise / noise.std()
    # targets fill a twenty-fifth to a third of their range, or a sixth to a half
    spread = log_uniform(rng, 0.04, 0.3) if hard else log_uniform(rng, 0.15, 0.4)
    off = 0.5 if hard else 0.25
    y = (rng.uniform(-off, off) + spread * y / y.std()).clip(-1, 1)
    return Table(kind, X[:n], y[:n], X[n:], y[n:])
