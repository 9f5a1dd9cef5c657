"""What a fit reports as released, and how items are ranked where scores are equal."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import spearmanr
from tests.recommend.doubles import matrix, some_ratings

from tacit.persistence import read_side, write_side
from tacit.privacy import PrivacyReport
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS
from tacit.recommend.items.linear import LinearItems

NOTHING = "NOTHING about items was released beyond the noise"


def fitted(solver, epsilon, table=None, **given):
    model = MatrixCompletion(
        solver, epsilon, 1e-6, rating_range=(1, 5), random_state=0, **given
    )
    return model.fit(matrix(some_ratings(60, 40, 0)) if table is None else table)


def liked(n_users=3000, n_items=8):
    """Return ratings of users who all like the same half of the items."""
    rows = np.tile(np.where(np.arange(n_items) % 2, 5.0, 2.0), (n_users, 1))
    return rows + np.where(np.arange(n_users) % 2, 0.0, -1.0)[:, None]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_that_released_nothing_is_reported_everywhere(solver, tmp_path):
    model = fitted(solver, 0.01)
    assert not model.factors_.has_offsets
    assert not model.factors_.has_vectors
    assert model.released_.startswith(NOTHING)
    assert model.released_.endswith("in the ratings are of the kind of `items`")
    assert f"released     {model.released_}" in str(model.privacy_)
    saved = read_side(write_side(tmp_path / "side", model)).estimator
    assert saved.side.released == model.released_
    assert saved.privacy_.released == model.released_


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_that_released_something_is_not_reported_as_empty(solver):
    model = fitted(solver, 20.0, csr_array(liked()))
    assert NOTHING not in model.released_
    assert model.factors_.has_offsets or model.factors_.has_vectors
    assert model.released_ in str(model.privacy_)


def side(offsets, vectors=None):
    offsets = np.asarray(offsets, dtype=np.float64)
    vectors = np.empty((len(offsets), 0)) if vectors is None else vectors
    return LinearItems(vectors, offsets, 1.0, 5.0, np.ones(vectors.shape[1]), 3.0)


def test_the_sentence_follows_from_offsets_and_vectors():
    ones = np.ones((3, 1))
    assert side([0, 0, 0.0]).released.startswith("NOTHING")
    # offsets that noise has shrunk to a thousandth of the range do not order items
    assert side([0, 0.002, -0.002]).released.startswith("NOTHING")
    assert side([0, 0.5, 0]).released.startswith("only item offsets")
    assert "no item offsets" in side([0, 0, 0.0], ones).released
    assert side([0, 0.5, 0], ones).released.startswith("item offsets and item vectors")


def test_reports_without_the_sentence_are_read_as_before():
    report = fitted("als", 1.0).privacy_
    old = replace(report, released="")
    assert "released" not in old.to_dict()
    assert PrivacyReport.from_dict(old.to_dict()) == old
    assert PrivacyReport.from_dict(report.to_dict()) == report


def test_equal_items_are_not_ranked_by_their_position_in_the_catalogue():
    model = fitted("svd", 0.01, matrix(some_ratings(60, 400, 0, most=5)))
    top = model.recommend(None, 400)
    assert len(set(top.scores.tolist())) == 1
    assert sorted(top.items) == list(range(400))
    # chance of a correlation of 0.2 among 400 is one in 10^4
    assert abs(spearmanr(top.items, np.arange(400)).statistic) < 0.2
    assert fitted("svd", 0.02).recommend(None, 5).items == (
        fitted("svd", 0.01).recommend(None, 5).items
    )


def test_items_at_the_end_of_the_range_are_ranked_by_what_was_clipped(tmp_path):
    offsets = [2.5, 3.5, 3.0, -1.0]
    report = fitted("als", 1.0).privacy_
    folder = write_side(tmp_path / "side", side(offsets), report)
    row = read_side(folder).estimator.row({})
    top = row.top(4)
    assert top.items == [1, 2, 0, 3]
    assert top.scores.tolist() == [5.0, 5.0, 5.0, 2.0]
