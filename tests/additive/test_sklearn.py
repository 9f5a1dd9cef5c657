"""The contract of scikit-learn, as its own checks see it: none is excused."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit.additive import AdditiveClassifier, AdditiveRegressor

PUBLIC = {"ranges": (-10, 10)}

ESTIMATORS = [
    AdditiveClassifier(**PUBLIC),
    AdditiveClassifier(1e4, interactions=0, **PUBLIC, random_state=0),
    AdditiveClassifier(
        1.0,
        1e-6,
        **PUBLIC,
        neighbors="add_or_remove_one",
        expected_rows=100,
        random_state=0,
    ),
    AdditiveRegressor(y_range=(-3, 3), **PUBLIC, random_state=0),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
