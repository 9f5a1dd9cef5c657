import re

import pytest

from tacit.datasets import load
from tacit.datasets._load import LOADERS


@pytest.mark.parametrize("name", sorted(set(LOADERS) - {"diabetes"}))
def test_a_missing_folder_is_reported_in_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="TACIT_DATA to the folder that holds"):
        load(name)


def test_an_unknown_name_is_answered_with_the_list_of_names():
    with pytest.raises(ValueError, match=r"one of a9a, abalone.*'iris'"):
        load("iris")


@pytest.mark.parametrize(
    ("name", "message"),
    [("adult", "adult has no option scaled; it has download."), ("a9a", "has none.")],
)
def test_an_option_of_other_sets_is_an_error(name, message):
    with pytest.raises(TypeError, match=message):
        load(name, scaled=False)


def test_every_set_is_documented():
    words = re.findall(r"\w+", load.__doc__)
    assert set(LOADERS) <= set(words)
