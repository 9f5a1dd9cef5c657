from types import SimpleNamespace

import numpy as np
import pytest
from tests.datasets.test_real import assert_public, assert_within, needs, raw

from tacit.datasets import _acs, load_acs_income
from tacit.datasets._acs import (
    ACS_BIRTHPLACES,
    ACS_CODES,
    ACS_OCCUPATIONS,
    ACS_RANGES,
)

FILE = "acs_income_co_ne/acs_income_co_ne.parquet"


@needs(FILE)
def test_acs_income_is_in_its_stated_ranges_and_codes():
    columns = raw(FILE)
    assert_within(columns, ACS_RANGES)
    for name, codes in ACS_CODES.items():
        assert set(columns[name].tolist()) <= set(codes), name
    acs = load_acs_income()
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
    assert _acs._grouped(np.array([code]), ACS_OCCUPATIONS).tolist() == [group]


def test_groups_start_in_the_order_of_their_codes():
    for firsts in (ACS_OCCUPATIONS, ACS_BIRTHPLACES):
        assert list(firsts.values()) == sorted(set(firsts.values()))
    assert _acs._grouped(np.array([0, 303]), ACS_BIRTHPLACES).tolist() == [
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
    monkeypatch.setattr(_acs, "fetch_openml", lambda **_: bunch)
    found = load_acs_income(download=True)
    assert found.y.tolist() == [0, 1]
    named = [
        {name for name, x in zip(found.feature_names, row, strict=True) if x == 1}
        for row in found.X
    ]
    asked = {"COW=1", "MAR=5", "RELP=0", "SEX=1", "RAC1P=1", "SCHL"}
    assert named[0] == asked | {"OCCP=computing", "POBP=states"}
    asked = {"COW=2", "MAR=1", "RELP=17", "SEX=2", "RAC1P=9", "AGEP", "WKHP"}
    assert named[1] == asked | {"OCCP=military", "POBP=Americas"}
