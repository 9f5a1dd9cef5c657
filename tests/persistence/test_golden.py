"""Folders written by earlier versions stay readable.

``golden/v1`` was written by `subjects` when the format was new, with ``expected.json``
beside it. A change that breaks this test needs a new version of the format, and a
reader for the old one.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.persistence.subjects import table

from tacit.persistence import digest, read
from tacit.persistence._kinds import saved_kinds

GOLDEN = Path(__file__).parent / "golden" / "v1"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text("utf-8"))


def test_every_kind_of_model_has_a_golden_folder():
    assert {known["estimator"] for known in EXPECTED.values()} == set(saved_kinds())


def test_golden_folders_are_all_expected():
    assert {path.name for path in GOLDEN.iterdir() if path.is_dir()} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_folder_of_the_first_format_stays_readable(name):
    expected, saved = EXPECTED[name], read(GOLDEN / name)
    model = saved.estimator
    assert type(model).__name__ == expected["estimator"]
    assert digest(GOLDEN / name) == expected["digest"]
    assert saved.facts == {"made": "for tests"}
    given = model.get_params()
    assert {key: repr(given[key]) for key in expected["parameters"]} == (
        expected["parameters"]
    )
    if saved.privacy is not None:
        assert saved.privacy.to_dict()["promise"] == expected["promise"]
        assert len(saved.privacy.entries) == 1
    # rows with one entry each, so that no order of a sum matters
    X = table(model, np.eye(3) / 2)
    method = model.predict if hasattr(model, "predict") else model.transform
    found, known = method(X), np.array(expected["output"])
    if name == "fourier":  # processors round cosines differently
        assert_allclose(found, known, rtol=0, atol=1e-15)
    else:
        assert_array_equal(found, known)
