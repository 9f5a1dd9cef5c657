"""Codes of cells by public facts alone."""

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.additive._bins import BinsPlan
from tacit.additive._columns import CELLS, codes_of, public_columns
from tacit.privacy import Neighbors

REPLACE = Neighbors.REPLACE_ONE
COLUMNS = public_columns({0: (0.0, 10.0)}, {1: ["a", 1, True, "b"][:2]}, [0, 1])


def coded(cells):
    X = np.empty((len(cells), 2), dtype=object)
    for row, cell in enumerate(cells):
        X[row] = cell
    return codes_of(X, COLUMNS)


def test_numbers_are_clipped_and_missing_ones_have_a_code_of_their_own():
    codes = coded([(-5, "a"), (0.0, 1), (10.0, "c"), (1e300, None), (None, np.nan)])
    assert codes[:, 0].tolist() == [0, 0, CELLS - 1, CELLS - 1, CELLS]
    assert codes[:, 1].tolist() == [0, 1, 2, 3, 3]


@pytest.mark.parametrize(
    "cell", [(1e308, "zebra"), (None, b"a"), (np.nan, 2.5), (3, [])]
)
def test_a_cell_does_not_change_how_others_are_read(cell):
    rows = [(1.5, "a"), (None, 1), (9.0, "b"), (4, None)]
    before = coded([*rows, (2.0, "a")])
    after = coded([*rows, cell])
    assert np.array_equal(before[:-1], after[:-1])


def test_a_column_that_fills_little_of_its_range_gets_many_bins():
    rng = as_generator(0)
    X = np.column_stack([rng.normal(5.0, 0.01, 5000), rng.uniform(0, 10, 5000)])
    columns = public_columns((0.0, 10.0), None, [0, 1])
    codes = codes_of(X, columns)
    plan = BinsPlan(2, REPLACE, 1.0)
    (narrow, wide), total = plan.run(codes, columns, len(X), rng)
    assert total == len(X)
    inside = [columns[0].edge(int(cell)) for cell in narrow.starts]
    assert sum(4.97 < edge < 5.03 for edge in inside) > 15
    assert wide.n_bins > 100
    for bins in (narrow, wide):
        assert bins.mass.sum() == pytest.approx(1.0)
        assert (np.diff(bins.position) > 0).all()


def test_counts_lost_in_noise_give_bins_of_equal_width():
    X = np.full((100, 1), 5.0)
    columns = public_columns((0.0, 10.0), None, [0])
    plan = BinsPlan(1, REPLACE, 1e6)
    (bins,), _ = plan.run(codes_of(X, columns), columns, 100, as_generator(0))
    widths = np.diff([*bins.starts, CELLS]) / CELLS
    assert widths.max() < 0.05
