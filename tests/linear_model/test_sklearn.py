"""The contract of scikit-learn, as its own checks see it: none is excused."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit.linear_model import LogisticRegression

ESTIMATORS = [
    LogisticRegression(),
    LogisticRegression(epsilon=1e4, x_norm=10.0, random_state=0),
    LogisticRegression(
        delta=1e-6, neighbors="add_or_remove_one", expected_rows=100, random_state=0
    ),
    LogisticRegression(solver="noisy_gd", random_state=0),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
