"""Single exact draws from words that are known; a wrong one could loop for ever."""

import numpy as np
import pytest

from tacit.mechanisms import _kernels

ALL = 2**64 - 1


def words(*draws):
    """Return words from which `_below` draws each value v of the pairs (v, m)."""
    return np.array([v * (ALL // m) for v, m in draws], dtype=np.uint64)


def bernoulli_exp(u, t, *values):
    """Return the draw and whether it used exactly the words for these values."""
    given = words(*((v, (j + 1) * t) for j, v in enumerate(values)))
    # the Python version, in which a loop without end can be interrupted
    draw = _kernels._bernoulli_exp.py_func
    found, used = draw(given, 0, np.uint64(u), np.uint64(t))
    return bool(found), int(used) == len(given)


@pytest.mark.parametrize(
    ("u", "t", "values", "expected"),
    [
        # v < j t - u ends the draw, which is true after an even number of others
        (1, 1, (0, 0), False),
        (1, 1, (0, 1, 0), True),
        (1, 1, (0, 1, 1), True),
        (1, 1, (0, 1, 2, 0), False),
        (1, 2, (0,), True),
        (1, 2, (1, 2), False),
        (1, 2, (1, 3, 4), True),
        (1, 2, (1, 3, 5, 6), False),
        (0, 3, (2,), True),
    ],
)
def test_a_draw_counts_successes_before_the_first_failure(u, t, values, expected):
    assert bernoulli_exp(u, t, *values) == (expected, True)


@pytest.mark.parametrize("u", [1, 5])
def test_a_draw_ends_on_zeros_past_the_buffer(u):
    """With False for ``u = t``: the loops over whole units go on while it is True."""
    found, used = _kernels._bernoulli_exp.py_func(
        words(), 0, np.uint64(u), np.uint64(5)
    )
    assert bool(found) == (u < 5)
    assert used > 0


@pytest.mark.parametrize("m", [1, 2, 3, 7, 2**48])
def test_a_uniform_integer_takes_equal_parts_of_all_words(m):
    draw, width = _kernels._below.py_func, ALL // m
    for v in (0, m // 2, m - 1):
        given = np.array([v * width, (v + 1) * width - 1], dtype=np.uint64)
        assert draw(given, 0, np.uint64(m)) == (v, 1)
        assert draw(given, 1, np.uint64(m)) == (v, 2)
    # what is left over is drawn again
    given = np.array([width * m, 0], dtype=np.uint64)
    assert draw(given, 0, np.uint64(m)) == (0, 2)
