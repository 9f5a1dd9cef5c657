"""Folders of additive models that were forged are refused in a sentence."""

import json
import shutil
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.persistence.forging import forge, npz, put, rejected
from tests.persistence.subjects import additive_models, table
from tests.persistence.test_hostile import FUZZ, VALUES, positions

from tacit.persistence import ModelFileError, load_model, save_model

SUBJECTS = additive_models()
MODEL = SUBJECTS["additive of three"]


@pytest.fixture
def folder(tmp_path):
    return save_model(MODEL, tmp_path / "model")


@pytest.fixture
def good(folder):
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def test_the_forger_of_these_tests_can_make_a_good_folder(folder, good):
    forge(folder, weights_npz=npz(**good))
    assert load_model(folder).predict(table(MODEL, np.eye(3))).shape == (3,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("fitted", "starts", value=[]), "each column"),
        (put("fitted", "starts", value=None), "each column"),
        (put("fitted", "n_features", value=2**28), "one name for each column"),
        (put("fitted", "starts", 0, value=None), "from 0"),
        (put("fitted", "starts", 0, value=[]), "from 0"),
        (put("fitted", "starts", 0, value=[1, 2]), "from 0"),
        (put("fitted", "starts", 0, value=[0, 2**14]), "from 0"),
        (put("fitted", "starts", 0, value=[0, 2**14 - 1]), "does not fit the bins"),
        (put("fitted", "starts", 0, value=[0, 3, 3, 4]), "in order"),
        (put("fitted", "starts", 0, value=[0, 3.0]), "from 0"),
        (put("fitted", "starts", 0, value=[False, 3]), "from 0"),
        (put("fitted", "starts", 1, value=[0, 1]), "null"),
        (put("fitted", "pairs", value=None), "pairs"),
        (put("fitted", "pairs", value=[[0]]), "pairs"),
        (put("fitted", "pairs", value=[[0, 3]]), "pairs"),
        (put("fitted", "pairs", value=[[-1, 0]]), "pairs"),
        (put("fitted", "pairs", value=[[2, 0]]), "pairs"),
        (put("fitted", "pairs", value=[[0, 2], [0, 2]]), "pairs"),
        (put("fitted", "pairs", value=[]), "does not fit the bins"),
        (put("fitted", "classes", "values", value=[0, 1]), "does not fit the bins"),
        (put("fitted", "classes", "values", value=[0, 2, 1]), "in order"),
        (put("fitted", "classes", value=None), "classes"),
        (put("fitted", "banded", value=[True]), "banded"),
        (put("fitted", "banded", value=[1, 1, 1]), "banded"),
        (put("fitted", "banded", value=[False, True, True]), "does not fit the bins"),
        (put("fitted", "edits", value=[3]), "edits"),
        (put("fitted", "edits", value=[-1]), "edits"),
        (put("fitted", "edits", value=[True]), "edits"),
        (put("fitted", "edits", value=None), "edits"),
        (put("fitted", "edits", value=[0]), "does not fit the bins"),
        (put("parameters", "interactions", value="all"), "interactions"),
        (put("parameters", "monotone", value=3), "monotone"),
        (put("parameters", "ranges", value=None), "neither"),
        (put("parameters", "ranges", value=[1.0, 0.0]), "lower first"),
        (put("parameters", "ranges", value=3), "ranges"),
        (put("parameters", "categories", value=[None, ["a"], [0]]), "does not fit"),
        (put("parameters", "categories", value=[None, ["a"], []]), "categories"),
        (put("parameters", "epsilon", value=2.0), "report"),
        (put("arrays", "values", "shape", value=[3, 3, 3]), "shape"),
        (put("arrays", "more", value={}), "does not know"),
    ],
)
def test_a_forged_description_is_refused(change, words, folder):
    forge(folder, change)
    rejected(folder, words)


@pytest.fixture
def banded(tmp_path):
    """Return the folder of a model with bands, and its arrays."""
    folder = save_model(SUBJECTS["additive"], tmp_path / "banded")
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
        return folder, dict(arrays)


def test_bands_that_no_fit_can_give_are_refused(banded):
    folder, arrays = banded
    assert arrays["std"].size
    forge(folder, weights_npz=npz(**{**arrays, "std": -arrays["std"]}))
    rejected(folder, "no fit can give")
    shorter = put("arrays", "std", "shape", value=[1, 1])
    forge(folder, shorter, weights_npz=npz(**{**arrays, "std": arrays["std"][:1]}))
    rejected(folder, "does not fit the bins")


@pytest.mark.parametrize("name", ["intercept", "values", "mass", "position"])
def test_arrays_of_another_shape_are_refused(name, folder, good):
    shorter = good[name][:-1]
    forge(
        folder,
        put("arrays", name, "shape", value=list(shorter.shape)),
        weights_npz=npz(**{**good, name: shorter}),
    )
    rejected(folder, "does not fit the bins")


@pytest.mark.parametrize("name", ["mass", "position"])
@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_bins_that_no_fit_can_give_are_refused(name, value, folder, good):
    good[name][0] = value
    forge(folder, weights_npz=npz(**good))
    rejected(folder, "no fit can give")


def test_a_count_of_columns_allocates_nothing(tmp_path):
    model = SUBJECTS["additive numbers"]
    folder = save_model(model, tmp_path / "model")
    forge(folder, put("fitted", "n_features", value=2**28))
    rejected(folder, "each column")


@settings(FUZZ, max_examples=100)
@given(st.data())
def test_forged_values_give_a_model_that_works_or_a_refusal(tmp_path, data):
    name = data.draw(st.sampled_from(sorted(SUBJECTS)))
    folder = tmp_path / "model"
    shutil.rmtree(folder, ignore_errors=True)
    save_model(SUBJECTS[name], folder)
    described = json.loads((folder / "model.json").read_bytes())
    parts = [p for p in positions(described) if p[:1] in (("fitted",), ("parameters",))]
    *keys, last = data.draw(st.sampled_from(parts))
    forge(folder, put(*keys, last, value=data.draw(VALUES)))
    with suppress(ModelFileError):
        again = load_model(folder)
        assert len(again.predict(table(again, np.eye(3)))) == 3
