from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.datasets.test_real import assert_public, assert_within, needs, raw

from tacit.datasets import _people, load
from tacit.datasets._people import (
    ACS_BIRTHPLACES,
    ACS_CODES,
    ACS_OCCUPATIONS,
    ACS_RANGES,
    CELEBA_ATTRIBUTES,
    COMPAS_CATEGORIES,
    COMPAS_RANGES,
)
from tacit.datasets._real import Dataset

FACES = "celeba_attributes/celeba_attributes.parquet"
WORKERS = "acs_income_co_ne/acs_income_co_ne.parquet"
CHARGED = "compas/compas.parquet"


@needs(FACES)
def test_faces_have_the_published_attributes():
    faces = load("celeba_attributes")
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
    faces = load("celeba_attributes", label="Young")
    assert "Young" not in faces.feature_names
    smiles = faces.X[:, faces.feature_names.index("Smiling")]
    assert smiles.sum() == 97_669
    np.testing.assert_array_equal(faces.y, raw(FACES)["Young"] > 0)


def test_a_label_that_is_no_attribute_is_rejected():
    assert len(set(CELEBA_ATTRIBUTES)) == 40
    with pytest.raises(ValueError, match="label must be one of the 40 published"):
        load("celeba_attributes", label="Happy")


@needs(CHARGED)
def test_compas_has_the_rows_of_the_published_analysis():
    columns = raw(CHARGED)
    assert_within(columns, COMPAS_RANGES)
    for name, labels in COMPAS_CATEGORIES.items():
        assert set(columns[name]) <= set(labels), name
    people = load("compas")
    # the counts of the published analysis
    assert_public(people, 6_172, 15, {0: 3_363, 1: 2_809})
    rest, race = people.without("race")
    assert rest.X.shape == (6_172, 9)
    assert (race == "African-American").sum() == 3_175
    assert (race == "Caucasian").sum() == 2_103
    assert not any("score" in name for name in people.feature_names)


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


@needs(WORKERS)
def test_acs_income_is_in_its_stated_ranges_and_codes():
    columns = raw(WORKERS)
    assert_within(columns, ACS_RANGES)
    for name, codes in ACS_CODES.items():
        assert set(columns[name].tolist()) <= set(codes), name
    acs = load("acs_income")
    assert_public(acs, 42_091, 79, {0: 25_751, 1: 16_340})
    indicators = acs.X[:, len(ACS_RANGES) :]
    assert (indicators.sum(axis=1) == len(ACS_CODES) + 2).all()
    ages = acs.X[:, 0] * (99 - 17) + 17
    np.testing.assert_allclose(ages, columns["AGEP"], rtol=1e-14)
    women = acs.X[:, acs.feature_names.index("SEX=2")]
    np.testing.assert_array_equal(women, columns["SEX"] == 2)


@pytest.mark.parametrize(
    ("code", "group"),
    [(10, "management"), (499, "management"), (500, "business"), (9830, "military")],
)
def test_an_occupation_is_in_the_group_that_starts_at_or_below_its_code(code, group):
    assert _people._grouped(np.array([code]), ACS_OCCUPATIONS).tolist() == [group]


def test_groups_start_in_the_order_of_their_codes():
    for firsts in (ACS_OCCUPATIONS, ACS_BIRTHPLACES):
        assert list(firsts.values()) == sorted(set(firsts.values()))
    assert _people._grouped(np.array([0, 303]), ACS_BIRTHPLACES).tolist() == [
        "states",
        "Americas",
    ]


def test_downloaded_answers_of_two_states_are_kept(monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas", reason="tables are downloaded with pandas")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    frame = pandas.DataFrame(
        {
            "AGEP": [17.0, 99.0, 40.0],
            "COW": [1.0, 2.0, 3.0],
            "SCHL": [24.0, 1.0, 12.0],
            "MAR": [5.0, 1.0, 2.0],
            "OCCP": [1005.0, 9800.0, 10.0],
            "POBP": [8.0, 303.0, 1.0],
            "RELP": [0.0, 17.0, 1.0],
            "WKHP": [40.0, 99.0, 1.0],
            "SEX": [1.0, 2.0, 1.0],
            "RAC1P": [1.0, 9.0, 2.0],
            "ST": [8.0, 31.0, 6.0],
        }
    )
    bunch = SimpleNamespace(data=frame, target=pandas.Series([50_000.0, 50_001.0, 9e5]))
    monkeypatch.setattr(_people, "fetch_openml", lambda **_: bunch)
    found = load("acs_income", download=True)
    assert found.y.tolist() == [0, 1]
    named = [
        {name for name, x in zip(found.feature_names, row, strict=True) if x == 1}
        for row in found.X
    ]
    given = {"COW=1", "MAR=5", "RELP=0", "SEX=1", "RAC1P=1", "SCHL"}
    assert named[0] == given | {"OCCP=computing", "POBP=states"}
    given = {"COW=2", "MAR=1", "RELP=17", "SEX=2", "RAC1P=9", "AGEP", "WKHP"}
    assert named[1] == given | {"OCCP=military", "POBP=Americas"}
