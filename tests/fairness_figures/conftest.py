import numpy as np
import pytest
from benchmarks.fairness.data import split


@pytest.fixture(scope="session")
def problem():
    """Two groups that differ in features and in how noisy their labels are."""
    rng = np.random.Generator(np.random.PCG64(5))
    n, p = 8_000, 6
    groups = np.where(rng.random(n) < 0.35, "a", "b")
    X = rng.normal(size=(n, p)) + np.where(groups == "a", 0.3, -0.1)[:, None]
    score = X @ np.linspace(1.5, -1.0, p) + rng.normal(size=n) * (1 + (groups == "a"))
    return split("made", X, (score > 0).astype(np.int64), groups, 2.0)
