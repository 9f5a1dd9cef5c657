import numpy as np
import pytest
import scipy.sparse as sp
from tests.datasets.test_real import assert_public, assert_within, needs, raw

from tacit.datasets import Dataset, load_celeba_attributes, load_compas
from tacit.datasets._people import (
    CELEBA_ATTRIBUTES,
    COMPAS_CATEGORIES,
    COMPAS_RANGES,
)

FACES = "celeba_attributes/celeba_attributes.parquet"
CHARGED = "compas/compas.parquet"


@needs(FACES)
def test_faces_have_the_published_attributes():
    faces = load_celeba_attributes()
    assert_public(faces, 202_599, 39, {0: 104_930, 1: 97_669})
    assert set(np.unique(faces.X)) == {0, 1}
    columns = raw(FACES)
    young = faces.X[:, faces.feature_names.index("Young")]
    np.testing.assert_array_equal(young, columns["Young"] > 0)
    rest, male = faces.without("Male")
    assert rest.X.shape == (202_599, 38)
    assert (male == "1").sum() == 84_434


@needs(FACES)
def test_any_attribute_can_be_the_label():
    faces = load_celeba_attributes("Young")
    assert "Young" not in faces.feature_names
    smiles = faces.X[:, faces.feature_names.index("Smiling")]
    assert smiles.sum() == 97_669
    np.testing.assert_array_equal(faces.y, raw(FACES)["Young"] > 0)


def test_a_label_that_is_no_attribute_is_refused():
    assert len(set(CELEBA_ATTRIBUTES)) == 40
    with pytest.raises(ValueError, match="label must be one of the 40 published"):
        load_celeba_attributes("Happy")


@needs(CHARGED)
def test_compas_has_the_rows_of_the_published_analysis():
    columns = raw(CHARGED)
    assert_within(columns, COMPAS_RANGES)
    for name, labels in COMPAS_CATEGORIES.items():
        assert set(columns[name]) <= set(labels), name
    people = load_compas()
    # the counts of the published analysis
    assert_public(people, 6_172, 15, {0: 3_363, 1: 2_809})
    rest, race = people.without("race")
    assert rest.X.shape == (6_172, 9)
    assert (race == "African-American").sum() == 3_175
    assert (race == "Caucasian").sum() == 2_103
    assert not any("score" in name for name in people.feature_names)


@pytest.mark.parametrize("load", [load_celeba_attributes, load_compas])
def test_a_missing_folder_is_said_in_one_sentence(load, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="TACIT_DATA to the folder that holds"):
        load()


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_a_column_is_set_aside_with_all_its_indicators(form):
    X = form([[0.5, 1.0, 0.0, 1.0], [0.2, 0.0, 0.0, 0.0], [0.1, 0.0, 1.0, 1.0]])
    names = ("age", "sex=f", "sex=m", "sexist")
    made = Dataset(X, np.array([0, 1, 0]), names, "made", 2.0, ((0.0, 1.0),) * 4)
    rest, sex = made.without("sex")
    assert sex.tolist() == ["f", "", "m"]
    assert rest.feature_names == ("age", "sexist")
    assert len(rest.feature_bounds) == 2
    kept = rest.X if isinstance(rest.X, np.ndarray) else rest.X.toarray()
    np.testing.assert_array_equal(kept, [[0.5, 1.0], [0.2, 0.0], [0.1, 1.0]])
    assert made.without("sexist")[1].tolist() == ["1", "0", "1"]
    with pytest.raises(ValueError, match="column must be a column of made"):
        made.without("race")
