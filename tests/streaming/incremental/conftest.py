"""Fixtures of the tests of least squares on streams."""

import numpy as np
import pytest


@pytest.fixture
def rng(seed):
    return np.random.Generator(np.random.PCG64(seed))
