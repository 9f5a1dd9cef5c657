"""The contract of scikit-learn, as its own checks see it."""

from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.public import excused_without_rows

from tacit.preprocessing import (
    PrivateQuantileBounds,
    PrivateStandardScaler,
    PublicOneHot,
    PublicScaler,
    RandomFourierFeatures,
    RandomPartitionTrees,
)

RANGES = (-10.0, 10.0)
ADD = {"delta": 1e-6, "neighbors": "add_or_remove_one"}
ESTIMATORS = [
    PublicScaler(RANGES),
    PublicScaler((0.0, 4.0), target=(0.0, 1.0), missing=0.0),
    PublicOneHot(["a", "b"]),
    PublicOneHot([0, 1, 2], other=None, sparse_output=True),
    RandomFourierFeatures(RANGES),
    RandomFourierFeatures(RANGES, 6, missing=0.0, random_state=None),
    RandomPartitionTrees(RANGES),
    RandomPartitionTrees(RANGES, 3, 2, missing=0.0, sparse_output=True),
    PrivateStandardScaler(ranges=RANGES),
    PrivateStandardScaler(ranges=RANGES, random_state=0, **ADD),
    PrivateStandardScaler(ranges=RANGES, delta=0.0, random_state=0),
    PrivateStandardScaler(ranges=RANGES, with_mean=False),
    PrivateStandardScaler(ranges=RANGES, with_mean=False, random_state=0, **ADD),
    PrivateStandardScaler(ranges=RANGES, with_mean=False, delta=0.0, random_state=0),
    PrivateQuantileBounds(ranges=RANGES),
    PrivateQuantileBounds(ranges=RANGES, random_state=0, **ADD),
]


READ_NO_VALUE = (PublicScaler, RandomFourierFeatures, RandomPartitionTrees)


def excused(estimator):
    """Return checks that want ``fit`` to read what these must not tell."""
    empty = {"check_estimators_empty_data_messages": "no rows are fitted as any other"}
    if isinstance(estimator, PublicOneHot):
        return empty
    if not isinstance(estimator, READ_NO_VALUE):
        return excused_without_rows(estimator)
    reason = "fit reads no value; transform refuses what is not a finite number"
    checks = ["check_estimators_nan_inf", "check_dtype_object"]
    return empty | dict.fromkeys(checks, reason)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=excused)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
