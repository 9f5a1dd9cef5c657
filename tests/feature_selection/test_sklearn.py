"""The contract of scikit-learn, as its own checks see it."""

from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.public import excused_without_rows

from tacit.feature_selection import BlockVoteSelector, PeelingSelector

BOUNDS = {"feature_bounds": 5.0, "y_range": (-3, 3)}
ADD = {"delta": 1e-6, "neighbors": "add_or_remove_one"}
COMMON = {"n_features_to_select": 1, "random_state": 0}
ESTIMATORS = [
    PeelingSelector(**BOUNDS, **COMMON),
    PeelingSelector(delta=0.0, **BOUNDS, **COMMON),
    PeelingSelector(method="correlation", **BOUNDS, **COMMON, **ADD),
    BlockVoteSelector(fallback="all", **COMMON),
    BlockVoteSelector(method="features", **COMMON),
    BlockVoteSelector(method="features", delta=0.0, n_blocks=5, **COMMON),
    BlockVoteSelector(fallback="all", expected_rows=50, **COMMON, **ADD),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=excused_without_rows)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
