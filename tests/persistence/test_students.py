"""Students in folders: read without trust, as anyone may have written the files."""

import io
import json
import pickle
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.persistence.forging import (
    forge,
    put,
    refused_in_place_of,
    refused_when_edited,
    refused_with_less_spent,
    rejected,
)

from tacit._random import as_generator
from tacit.ensemble import PrivateLabeler, PrivateStudent
from tacit.persistence import (
    ModelFileError,
    SavedModel,
    digest,
    read,
    read_student,
    write_student,
)
from tacit.persistence._folder import is_model
from tacit.persistence._students import is_student

GOLDEN = Path(__file__).parent / "golden" / "students"
RNG = as_generator(0)
X = np.r_[RNG.normal(-1.5, 1, (300, 2)), RNG.normal(1.5, 1, (300, 2))]
Y = np.repeat(["no", "yes"], 300)
LABELER = PrivateLabeler(
    GaussianNB(), 10, 20.0, 1e-4, classes=["no", "yes"], n_queries=60, random_state=0
)
TRAINED = LABELER.fit(X, Y)
POOL = X[::10]
LABELS = TRAINED.label(POOL)


def taught(student=None, **options):
    return PrivateStudent(TRAINED, student, **options).fit_pool(POOL, LABELS)


STUDENTS = {
    "default": None,
    "logistic": LogisticRegression(),
    "ridge": Ridge(),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": RandomForestClassifier(5, random_state=0),
    "forest of votes": RandomForestRegressor(5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=3, random_state=0),
    "bagging": BaggingClassifier(
        DecisionTreeClassifier(), 3, max_features=1, random_state=0
    ),
    "pipeline": make_pipeline(
        StandardScaler(),
        PolynomialFeatures(3),
        RandomForestClassifier(3, random_state=0),
    ),
    "neighbors": KNeighborsClassifier(3, algorithm="brute"),
}


def put_student(folder, student, schema=None, facts=None, **options):
    saved = SavedModel(student, student.privacy_, schema, facts or {})
    return write_student(folder, saved, **options)


@pytest.fixture
def folder(tmp_path):
    return put_student(tmp_path / "student", taught(), {"a": 1}, {"b": [2]})


@pytest.mark.parametrize("name", STUDENTS)
def test_a_student_comes_back_as_it_was(name, tmp_path):
    student = taught(STUDENTS[name])
    position = put_student(tmp_path / "a" / "student", student, {"a": 1}, {"b": [2]})
    assert {path.name for path in position.iterdir()} == {
        "student.json",
        "student.skops",
        "privacy.json",
        "schema.json",
    }
    saved = read_student(position)
    assert type(saved.estimator) is type(student.student_)
    assert_array_equal(saved.estimator.predict(X), student.predict(X))
    assert_allclose(saved.estimator.predict_proba(X), student.predict_proba(X))
    assert saved.privacy == student.privacy_
    assert (saved.schema, saved.facts) == ({"a": 1}, {"b": [2]})


def test_names_of_columns_are_kept(tmp_path):
    table = pd.DataFrame(X, columns=["age", "Größe"])
    student = PrivateStudent(LABELER).fit(table, Y, X_public=table[::10])
    again = read_student(put_student(tmp_path / "s", student)).estimator
    assert_array_equal(again.predict(table), student.predict(table))
    assert list(again.feature_names_in_) == ["age", "Größe"]


def test_a_folder_holds_no_teacher_and_no_labeler(folder):
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    for secret in (b"GaussianNB", b"_private", b"n_queries", b"n_teachers"):
        assert secret not in content
    assert b"SmoothedVotes" in content  # the check can find what is there


def test_folders_of_students_and_of_models_are_told_apart(folder):
    assert is_student(folder)
    assert not is_model(folder)
    assert not is_student(folder.parent)
    assert read(folder).facts == read_student(folder).facts == {"b": [2]}
    assert digest(folder) == sha256((folder / "student.json").read_bytes()).hexdigest()
    words = r"not a student folder: student\.json is missing"
    with pytest.raises(ModelFileError, match=words):
        read_student(folder.parent)
    words = r"not a model folder: model\.json is missing"
    with pytest.raises(ModelFileError, match=words):
        read(folder.parent)


def test_only_the_folder_of_a_student_is_replaced(folder):
    with pytest.raises(ModelFileError, match="exists"):
        put_student(folder, taught())
    put_student(folder, taught(LogisticRegression()), overwrite=True)
    assert type(read_student(folder).estimator) is LogisticRegression
    with pytest.raises(ModelFileError, match="not replaced"):
        put_student(folder.parent, taught(), overwrite=True)


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="PrivateStudent"):
        write_student(tmp_path / "s", SavedModel(LogisticRegression(), None))
    with pytest.raises(ModelFileError, match="privacy must be the report"):
        write_student(tmp_path / "s", SavedModel(taught(), None))
    with pytest.raises(ModelFileError, match="schema"):
        put_student(tmp_path / "s", taught(), [1])
    with pytest.raises(ModelFileError, match="facts"):
        put_student(tmp_path / "s", taught(), None, {"a": object()})
    assert not list(tmp_path.iterdir())


class Own(LogisticRegression):
    pass


def test_a_student_of_an_unknown_type_is_refused_by_its_name(tmp_path):
    with pytest.raises(ModelFileError, match=r"test_students\.Own"):
        put_student(tmp_path / "s", taught(Own()))
    with pytest.raises(ModelFileError, match="KDTree"):
        put_student(tmp_path / "s", taught(KNeighborsClassifier(algorithm="kd_tree")))
    assert not list(tmp_path.iterdir())


def test_the_forger_of_these_tests_can_make_a_good_folder(folder):
    model = skops.io.dumps(taught().student_)
    forge(folder, put("facts", value={"b": 3}), student_skops=model)
    assert read_student(folder).facts == {"b": 3}


class Loud(BaseEstimator):
    """Would run if it were loaded."""

    heard = False

    def __setstate__(self, state):
        Loud.heard = True

    def predict(self, X):
        return X


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Loud(), r"test_students\.Loud"),
        (DummyClassifier().fit(X, Y), "another student"),
        (StandardScaler().fit(X), "no classifier or regressor"),
        ([1, 2], "no classifier or regressor"),
        (make_pipeline(StandardScaler(), Own()).fit(X, Y), r"test_students\.Own"),
    ],
)
def test_a_forged_student_is_refused(model, words, folder):
    forge(folder, student_skops=skops.io.dumps(model))
    rejected(folder, words)
    assert not Loud.heard


def compressed():
    buffer = io.BytesIO()
    source = zipfile.ZipFile(io.BytesIO(skops.io.dumps(taught().student_)))
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (pickle.dumps(DummyClassifier()), "damaged"),
        (compressed(), "compressed"),
        (skops.io.dumps(taught().student_)[:-9], "damaged"),
    ],
)
def test_a_damaged_student_is_refused(content, words, folder):
    forge(folder, student_skops=content)
    rejected(folder, words)


def bent(side):
    model = taught(STUDENTS["tree"]).student_
    state = model.tree_.__getstate__()
    change, state["nodes"] = side, state["nodes"].copy()
    change(model, state["nodes"])
    model.tree_.__setstate__(state)
    return model


@pytest.mark.parametrize(
    "side",
    [
        lambda model, nodes: nodes["left_child"].__setitem__(0, 10**9),
        lambda model, nodes: nodes["right_child"].__setitem__(0, 0),
        lambda model, nodes: nodes["left_child"].__setitem__(0, -7),
        lambda model, nodes: nodes["feature"].__setitem__(0, 10**6),
        lambda model, nodes: nodes["feature"].__setitem__(0, -5),
        lambda model, nodes: setattr(model, "n_features_in_", 0),
        lambda model, nodes: vars(model).pop("n_features_in_"),
    ],
)
def test_a_tree_that_leads_out_of_itself_is_refused(side, tmp_path):
    position = put_student(tmp_path / "s", taught(STUDENTS["tree"]))
    forge(position, student_skops=skops.io.dumps(bent(lambda model, nodes: None)))
    read_student(position)
    forge(position, student_skops=skops.io.dumps(bent(side)))
    rejected(position, "tree that no fit can give")


@pytest.mark.parametrize("field", ["left", "right", "feature_idx"])
def test_a_tree_of_histograms_that_leads_out_is_refused(field, tmp_path):
    position = put_student(tmp_path / "s", taught(STUDENTS["histograms"]))
    model = read_student(position).estimator
    nodes = model._predictors[0][0].nodes
    assert not nodes["is_leaf"][0]
    nodes[field][0] = 10**8
    forge(position, student_skops=skops.io.dumps(model))
    rejected(position, "tree that no fit can give")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("format", value="tacit model"), "student of tacit"),
        (put("version", value=True), "version of its format"),
        (put("version", value=2), "update tacit"),
        (put("extra", value=1), "does not know"),
        (put("facts", value=[]), "facts"),
        (put("student", value="os.system"), "another student"),
        (put("files", value={}), "lacks"),
        (lambda data: data["files"].update({"../evil": {}}), "does not know"),
        (
            lambda data: data["files"]["student.skops"].update(bytes=2**50),
            "impossible size",
        ),
    ],
)
def test_a_forged_description_is_refused(change, words, folder):
    forge(folder, change)
    rejected(folder, words)


@pytest.mark.parametrize("name", ["student.skops", "privacy.json", "schema.json"])
def test_another_file_than_was_written_is_refused(name, folder):
    refused_in_place_of(folder, name)


def test_a_report_that_its_charges_do_not_bear_out_is_refused(folder):
    refused_with_less_spent(folder)


def test_a_description_edited_by_hand_is_refused(folder):
    refused_when_edited(folder, "student.json")


@pytest.mark.parametrize("name", ["default", "constant", "logistic"])
def test_a_folder_of_the_first_format_stays_readable(name):
    saved = read_student(GOLDEN / name)
    expected = json.loads((GOLDEN / "expected.json").read_text("utf-8"))[name]
    assert saved.facts == {"made": "for tests"}
    assert saved.privacy.guarantee.epsilon == expected["epsilon"]
    questions = np.array([[-3.0, -3.0], [3.0, 3.0]])
    assert saved.estimator.predict(questions).tolist() == expected["output"]
