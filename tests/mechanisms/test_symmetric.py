"""Symmetric matrices as vectors."""

import numpy as np
import pytest

from tacit._random import as_generator
from tacit.mechanisms.continual._base import to_matrix, to_vector


@pytest.mark.parametrize("p", [1, 2, 5])
def test_the_way_there_and_back_is_an_isometry(p):
    rng = as_generator(0)
    matrices = rng.standard_normal((4, 3, p, p))
    matrices = matrices + np.swapaxes(matrices, -1, -2)
    vectors = to_vector(matrices)
    assert vectors.shape == (4, 3, p * (p + 1) // 2)
    assert np.allclose(to_matrix(vectors), matrices, rtol=1e-15)
    norms = np.linalg.norm(matrices, axis=(-1, -2))
    assert np.allclose(np.linalg.norm(vectors, axis=-1), norms)
    # control: without the weight off the diagonal it would not be one
    upper = matrices[..., *np.triu_indices(p)]
    assert p == 1 or not np.allclose(np.linalg.norm(upper, axis=-1), norms)


def test_inner_products_are_kept():
    a, b = as_generator(0).standard_normal((2, 4, 4))
    a, b = a + a.T, b + b.T
    assert to_vector(a) @ to_vector(b) == pytest.approx(np.sum(a * b))


def test_what_is_no_square_matrix_is_refused():
    for wrong in (np.ones(3), np.ones((2, 3))):
        with pytest.raises(ValueError, match=r"^matrix must be square"):
            to_vector(wrong)
    for wrong in (np.ones(4), np.ones(0), np.float64(1.0)):
        with pytest.raises(ValueError, match=r"^vector must have p \(p \+ 1\) / 2"):
            to_matrix(wrong)
