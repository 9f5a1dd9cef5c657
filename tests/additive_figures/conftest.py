import numpy as np
import pandas as pd
import pytest
from benchmarks.additive import data


@pytest.fixture
def tables(monkeypatch):
    """Two small tables in place of the published ones, one of each kind."""
    rng = np.random.Generator(np.random.PCG64(7))
    n = 200
    frame = pd.DataFrame(
        {
            "size": rng.uniform(2, 4, n),
            "kind": rng.choice(["red", "white"], n).astype(object),
        }
    )
    level = frame["size"].to_numpy() + (frame["kind"] == "red").to_numpy()
    facts = {"size": (0.0, 5.0)}, {"kind": ("red", "white", "rose")}
    labels = (level > 3.5).astype(np.int64)
    made = {
        "adult": data.Table("adult", frame, labels, *facts),
        "abalone": data.Table("abalone", frame, level, *facts, (0.0, 10.0)),
    }
    for name, table in made.items():
        source = data.SETS[name]
        kept = data.Source(lambda t=table: t, source.title, source.n_classes)
        monkeypatch.setitem(data.SETS, name, kept)
    data.table.cache_clear()
    yield made
    data.table.cache_clear()
