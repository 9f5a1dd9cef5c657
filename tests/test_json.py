"""Parameters of estimators as plain data, by which audits are bound to models."""

import numpy as np
import pandas as pd
import pytest

from tacit._json import readable_parameters
from tacit.linear_model import Lasso

WIDE = [(-1.0, 1.0)] * 2000


def readable(bounds):
    model = Lasso(1.0, 1e-6, feature_bounds=bounds, y_range=(-1, 1))
    return readable_parameters(model)["feature_bounds"]


@pytest.mark.parametrize(
    "make",
    [list, tuple, np.array, pd.Series, pd.DataFrame, lambda v: {"all": np.array(v)}],
)
def test_parameters_that_print_shortened_are_kept_whole(make):
    other = list(WIDE)
    other[1000] = (-1000.0, 1000.0)
    assert repr(make(WIDE)) == repr(make(other)) or isinstance(make(WIDE), list | tuple)
    assert readable(make(WIDE)) == readable(make(list(WIDE)))
    assert readable(make(WIDE)) != readable(make(other))
