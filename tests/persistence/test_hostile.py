"""Folders that were damaged, forged or never were models are refused in a sentence."""

import io
import json
import os
import pickle
import shutil
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.persistence.forging import forge, npz, put, refused_in_place_of, rejected
from tests.persistence.subjects import (
    additive_models,
    fitted,
    linear_models,
    rows,
    steps,
    stream_models,
    table,
)
from tests.persistence.test_models import assert_same_model

from tacit.linear_model import LogisticRegression
from tacit.persistence import (
    ModelFileError,
    SavedModel,
    digest,
    load_model,
    read,
    write,
)

MODEL = fitted(
    LogisticRegression(1.0, classes=range(3), x_norm=1.0), [0, 1, 2], names=True
)
SUBJECTS = {
    **linear_models(),
    **additive_models(),
    **steps(),
    **stream_models(),
}


@pytest.fixture
def folder(tmp_path):
    saved = SavedModel(MODEL, MODEL.privacy_, {"a": 1}, {"b": [2]})
    return write(tmp_path / "model", saved)


GOOD = {"coef": MODEL.coef_, "intercept": MODEL.intercept_}


def test_the_forger_of_these_tests_can_make_a_good_folder(folder):
    forge(folder, put("facts", value={"b": 3}), weights_npz=npz(**GOOD))
    assert read(folder).facts == {"b": 3}


def test_what_is_no_model_folder_is_refused(tmp_path, folder):
    rejected(tmp_path / "nothing", "no such folder")
    rejected(folder / "model.json", "no such folder")
    rejected(tmp_path, "model.json is missing")
    with pytest.raises(ModelFileError, match=r"model\.json is missing"):
        digest(tmp_path)


def test_a_header_that_was_edited_has_no_digest(folder):
    header = folder / "model.json"
    edited = header.read_text().replace('"version": 1', '"version":  1')
    header.write_text(edited)
    digest(folder)  # the same facts, written in another way
    header.write_text(edited.replace('"epsilon": 1.0', '"epsilon": 0.5'))
    with pytest.raises(ModelFileError, match="was changed after it was written"):
        digest(folder)


@pytest.mark.parametrize("name", ["weights.npz", "privacy.json", "schema.json"])
def test_another_file_than_was_written_is_refused(name, folder):
    refused_in_place_of(folder, name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_waited_for(folder):
    (folder / "model.json").unlink()
    os.mkfifo(folder / "model.json")
    rejected(folder, "plain file")


def test_a_file_that_is_too_large_is_not_read(folder):
    with open(folder / "model.json", "r+b") as file:
        file.truncate(2**40)  # a hole, which takes no room
    rejected(folder, "larger than")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "valid JSON"),
        (b"\xff\xfe{}", "valid JSON"),
        (b"[]", "JSON object"),
        (b"{}", "model of tacit"),
        (b'{"format": "tacit model"}', "version of its format"),
        (b'{"format": "tacit model", "version": true}', "version of its format"),
        (b'{"format": "tacit model", "version": 2}', "update tacit"),
        (b'{"format": "tacit model", "version": 1}', "lacks"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "beyond all floats"),
        (b'{"a": ' + b"9" * 5000 + b"}", "valid JSON"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": "\\ud800"}', "Unicode"),
        (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "deep"),
        (b'{"a": ' + b"[" * 10**6 + b"]" * 10**6 + b"}", "deep"),
        (pickle.dumps({"format": "tacit model"}), "valid JSON"),
    ],
)
def test_foreign_json_is_refused(content, words, folder):
    (folder / "model.json").write_bytes(content)
    rejected(folder, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("estimator", value="os.system"), "estimator"),
        (put("estimator", value=["Ridge"]), "estimator"),
        (put("estimator", value="Ridge"), "does not know"),
        (put("extra", value=1), "does not know"),
        (put("tacit", value=3), "version"),
        (put("facts", value=[]), "facts"),
        (put("parameters", value=[]), "parameters"),
        (put("parameters", "bogus", value=1), "bogus"),
        (put("parameters", "random_state", value=1), "random_state"),
        (put("parameters", "epsilon", value=2.0), "report"),
        (put("parameters", "epsilon", value="a"), "parameters"),
        (put("parameters", "neighbors", value=None), "parameters"),
        (put("parameters", "penalty", value={"type": "os"}), "does not know"),
        (put("parameters", "penalty", value={"type": []}), "does not know"),
        (put("parameters", "penalty", value={}), "does not know"),
        (put("parameters", "penalty", value={"type": "L1", "a": 1}), "does not know"),
        (put("parameters", "penalty", value={"type": "L1", "weight": "a"}), "penalty"),
        (put("parameters", "classes", value={"type": "tuple", "items": 3}), "classes"),
        (put("parameters", "classes", value={"type": "range"}), "lacks"),
        (
            put("parameters", "classes", value={"type": "dict", "items": [[[], 1]]}),
            "classes",
        ),
        (put("fitted", "n_features", value=4), "one name for each column"),
        (put("fitted", value={"n_features": 4, "feature_names": None}), "lacks"),
        (put("fitted", "n_features", value=True), "n_features"),
        (put("fitted", "feature_names", value=["a", "b"]), "one name for each column"),
        (
            put("fitted", "feature_names", value=["a", "a", "b"]),
            "one name for each column",
        ),
        (
            put("fitted", "feature_names", value=["a", 1, "b"]),
            "one name for each column",
        ),
        (put("fitted", "bounds", "x_norm", value=0.0), "x_norm"),
        (put("fitted", "bounds", "x_norm", value="1"), "bounds"),
        (put("fitted", "bounds", "x_norm", value=2.0), "not those of the fit"),
        (put("parameters", "x_norm", value=2.0), "not those of the fit"),
        (put("parameters", "bound_norm", value="linf"), "not those of the fit"),
        (put("fitted", "bounds", "norm", value="l9"), "norm"),
        (put("fitted", "bounds", "norm", value=[]), "norm"),
        (put("fitted", "bounds", "y_range", value=[1.0, 0.0]), "y_range"),
        (put("fitted", "loss", value={"type": "Squared"}), "loss"),
        (put("fitted", "loss", value=None), "loss"),
        (put("fitted", "loss", "n_classes", value=4), "loss"),
        (put("fitted", "classes", "values", value=[0, 1]), "weights"),
        (put("fitted", "classes", "values", value=[0, 2, 1]), "in order"),
        (put("fitted", "classes", "values", value=[0, 1, 1]), "in order"),
        (put("fitted", "classes", "values", value=[0, 1, 2.5]), "dtype"),
        (put("fitted", "classes", "values", value=[0, 1, 2**70]), "classes"),
        (put("fitted", "classes", "values", value=[0, 1, [2]]), "vector"),
        (put("fitted", "classes", "dtype", value="|O8,|V4"), "vector"),
        (put("fitted", "classes", "dtype", value="<U9999999"), "vector"),
        (put("arrays", "coef", "shape", value=[3, 10**12]), "impossible"),
        (put("arrays", "coef", "shape", value=[2**30, 2**30]), "bytes"),
        (put("arrays", "coef", "shape", value=[3, -3]), "impossible"),
        (put("arrays", "coef", "shape", value=[9]), "shape"),
        (put("arrays", "coef", "dtype", value="object"), "float64"),
        (put("arrays", "more", value={}), "does not know"),
        (put("files", "../../etc/passwd", value={}), "does not know"),
        (put("files", value={}), "lacks"),
        (put("files", "weights.npz", "bytes", value=2**50), "impossible size"),
        (put("files", "weights.npz", "bytes", value=1.5), "impossible size"),
        (put("files", "weights.npz", "sha256", value="0"), "weights"),
    ],
)
def test_a_forged_description_is_refused(change, words, folder):
    forge(folder, change)
    rejected(folder, words)


def test_a_description_edited_by_hand_is_refused(folder):
    path = folder / "model.json"
    path.write_bytes(path.read_bytes().replace(b'"verbose": 0', b'"verbose": 1'))
    rejected(folder, "changed after")


def bad_header():
    content = npz(**GOOD)
    return content.replace(b"(3, 3)", b"(9, 9)")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (b"PK\x03\x04" + b"\0" * 100, "damaged"),
        (npz(**GOOD)[:-10], "damaged"),
        (npz(zipfile.ZIP_DEFLATED, **GOOD), "compressed"),
        (npz(zipfile.ZIP_DEFLATED, coef=np.zeros(10**6), intercept=1.0), "compressed"),
        (npz(coef=np.zeros(10**5), intercept=GOOD["intercept"]), "larger"),
        (npz(coef=GOOD["coef"]), "other members"),
        (npz(**GOOD, **{"../evil": np.zeros(1)}), "other members"),
        (npz(**GOOD, **{"/etc/evil": np.zeros(1)}), "other members"),
        (npz(coef=GOOD["coef"].astype(np.float32), intercept=np.zeros(3)), "type"),
        (npz(coef=GOOD["coef"].T.copy()[:2], intercept=np.zeros(3)), "shape"),
        (npz(coef=np.asfortranarray(GOOD["coef"]), intercept=np.zeros(3)), "shape"),
        (npz(coef=GOOD["coef"] * np.nan, intercept=np.zeros(3)), "finite"),
        (npz(coef=np.full((3, 3), os.system), intercept=np.zeros(3)), "type"),
        (bad_header(), "damaged"),
    ],
)
def test_forged_weights_are_refused(content, words, folder):
    forge(folder, weights_npz=content)
    rejected(folder, words)


def test_a_member_stored_twice_is_refused(folder):
    buffer = io.BytesIO(npz(**GOOD))
    with (
        zipfile.ZipFile(buffer, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("coef.npy", b"")
    forge(folder, weights_npz=buffer.getvalue())
    rejected(folder, "other members")


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b"[]",
        b'{"promise": {"epsilon": 1.0}}',
        MODEL.privacy_.to_json().replace("GaussianNoise", "os.system").encode(),
        MODEL.privacy_.to_json().replace('"seeded": false', '"seeded": 0').encode(),
        MODEL.privacy_.to_json().replace('"LogisticRegression"', "3").encode(),
    ],
)
def test_a_forged_report_is_refused(content, folder):
    forge(folder, privacy_json=content)
    rejected(folder, r"privacy\.json")


LOUD = {"type": "GaussianNoise", "multiplier": 0.5}


def put_report(*keys, value):
    data = MODEL.privacy_.to_dict()
    put(*keys, value=value)(data)
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (put_report("entries", value=[]), "names no charge"),
        (put_report("entries", 0, "event", value=LOUD), "guarantees less"),
        (put_report("entries", 0, "epsilon", value=0.1), "guarantees less"),
        (put_report("entries", 0, "epsilon", value=-1.0), "epsilon"),
        (put_report("spent", "epsilon", value=0.1), "another spend"),
        (put_report("spent", "epsilon", value=-1.0), "another spend"),
        (put_report("spent", "epsilon", value=1.5), "another spend"),
        (put_report("seeded", value=True), "not a report"),
    ],
)
def test_a_report_that_its_own_charges_do_not_bear_out_is_refused(
    content, words, folder
):
    forge(folder, privacy_json=content)
    rejected(folder, words)


def test_other_files_in_the_folder_do_not_matter(folder):
    before = digest(folder)
    (folder / "report.html").write_text("<html>")
    (folder / "evil.pkl").write_bytes(pickle.dumps(os.system))
    assert load_model(folder).epsilon == 1.0
    assert digest(folder) == before


FUZZ = settings(
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def work(tmp_path):
    """Give a fresh copy of a subject's folder at each call."""
    sources = {
        name: write(tmp_path / name, SavedModel(s, getattr(s, "privacy_", None)))
        for name, s in SUBJECTS.items()
    }

    def fresh(name):
        target = tmp_path / "copy"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(sources[name], target)
        return target

    return fresh


@FUZZ
@given(st.data())
def test_damaged_bytes_give_an_equal_model_or_a_refusal(work, data):
    name = data.draw(st.sampled_from(sorted(SUBJECTS)))
    folder = work(name)
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(start + 8, len(content))))
        content[start:stop] = data.draw(st.binary(max_size=8))
    path.write_bytes(content)
    with suppress(ModelFileError):
        assert_same_model(SUBJECTS[name], load_model(folder))


def positions(value, here=()):
    """Every place in a nest of plain data."""
    parts = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value) if isinstance(value, list) else parts
    yield here
    for key, part in parts:
        yield from positions(part, (*here, key))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["L1", "<f8", "|O", "tuple", "array", "Ridge", 2**70, 1e300]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "items", "values", "a"]), inner)
    ),
    max_leaves=5,
)


@FUZZ
@given(st.data())
def test_forged_values_give_a_model_that_works_or_a_refusal(work, data):
    name = data.draw(st.sampled_from(sorted(SUBJECTS)))
    folder = work(name)
    described = json.loads((folder / "model.json").read_bytes())
    private = (folder / "privacy.json").exists() and data.draw(st.booleans())
    if private:
        described = json.loads((folder / "privacy.json").read_bytes())
    *keys, last = data.draw(st.sampled_from([p for p in positions(described) if p]))
    value = data.draw(VALUES)
    if private:
        put(*keys, last, value=value)(described)
        forge(folder, privacy_json=json.dumps(described).encode())
    else:
        forge(folder, put(*keys, last, value=value))
    with suppress(ModelFileError):
        again = load_model(folder)
        X = table(again, rows(1))
        (again.predict if hasattr(again, "predict") else again.transform)(X)
        assert str(getattr(again, "privacy_", "none"))
