import numpy as np
import pytest

from tacit.datasets import make_census

P_FAIL = 1e-6


def hoeffding(n_rows):
    """Error that a mean of ``n_rows`` indicators exceeds with chance ``P_FAIL``."""
    return np.sqrt(np.log(2 / P_FAIL) / (2 * n_rows))


def test_census_has_the_documented_shape_and_ranges():
    census = make_census(n_rows=2_000)
    assert census.X.shape == (2_000, len(census.feature_names))
    assert census.X.dtype == np.float64
    assert len(set(census.feature_names)) == len(census.feature_names)
    assert census.true_coef.shape == (census.X.shape[1],)
    assert census.X.min() == 0
    assert census.X.max() == 1
    assert set(np.unique(census.y)) == {0, 1}


def test_rows_stay_within_the_public_norm():
    census = make_census(n_rows=20_000)
    assert np.linalg.norm(census.X, axis=1).max() <= census.x_norm


def test_each_question_has_exactly_one_answer():
    census = make_census(n_rows=2_000)
    questions = {n.split("=")[0] for n in census.feature_names if "=" in n}
    assert len(questions) == 5
    for question in questions:
        columns = [n.startswith(f"{question}=") for n in census.feature_names]
        assert (census.X[:, columns].sum(axis=1) == 1).all()


@pytest.mark.parametrize("column", range(33))
def test_no_column_is_constant(column):
    assert np.ptp(make_census(n_rows=5_000).X[:, column]) > 0


def test_same_seed_same_census_and_other_seed_another():
    first, again, other = (make_census(n_rows=500, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.statistical
def test_known_model_reaches_the_stated_accuracy():
    census = make_census()
    labels = census.X @ census.true_coef + census.true_intercept > 0
    accuracy = np.mean(labels == census.y)
    slack = hoeffding(len(census.y))
    assert abs(accuracy - census.bayes_accuracy) < slack
    # control: a model that ignores the schooling misses by more than the slack
    kept = [not n.startswith("education") for n in census.feature_names]
    worse = (census.X * kept) @ census.true_coef + census.true_intercept > 0
    assert abs(np.mean(worse == census.y) - census.bayes_accuracy) > slack


@pytest.mark.statistical
def test_labels_follow_the_stated_probabilities():
    census = make_census(return_truth=True)
    slack = hoeffding(len(census.y))
    assert abs(census.y.mean() - census.probability.mean()) < slack
    assert 0.25 < census.y.mean() < 0.30
    assert 0.82 < census.bayes_accuracy < 0.86
    best = np.maximum(census.probability, 1 - census.probability).mean()
    assert census.bayes_accuracy == best


def test_probabilities_come_only_when_asked_for():
    assert make_census(n_rows=10).probability is None


def test_a_census_of_nobody_is_refused():
    with pytest.raises(ValueError, match="n_rows must be >= 1, got 0"):
        make_census(n_rows=0)
