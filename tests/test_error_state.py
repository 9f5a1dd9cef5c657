"""What NumPy is set to do on floating point errors tells nothing of rows."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit import Seed
from tacit._execution import in_order
from tacit._release import Release, charged_run
from tacit.ensemble import PrivateLabeler
from tacit.linear_model import GeneralizedLinearModel
from tacit.preprocessing import PrivateStandardScaler
from tacit.privacy import Budget, GaussianNoise, Ledger
from tacit.solvers import NoisyGD, PermutedSGD, PreconditionedGD
from tacit.streaming import OnlineLogisticRegression

X = np.tile([[0.5, 0.25], [-0.25, 0.5]], (30, 1))
X[0] = [1e-200, 1e-310]  # squares and products underflow
y = np.array([0, 1] * 30)


@pytest.fixture(params=["warn", "raise"])
def strict(request):
    """Return a context in which underflow is an error or a warning."""

    def context():
        return np.errstate(under=request.param)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield context


def test_rows_underflow_where_the_state_is_strict(strict):
    """Positive control: the rows of these tests would show."""
    with strict(), pytest.raises((FloatingPointError, RuntimeWarning)):
        np.square(X)


def test_no_run_shows_underflow_of_rows(strict):
    release = Release(GaussianNoise(3.0), Budget(2.0, 1e-3), "squares")
    with strict():
        charged_run(release, None, np.square, check=lambda: X)


@pytest.mark.parametrize(
    "solver", [NoisyGD(), PreconditionedGD(), PermutedSGD(n_passes=2)]
)
def test_fits_show_no_underflow_of_rows(strict, solver):
    model = GeneralizedLinearModel(
        1.0, 1e-4, classes=(0, 1), random_state=Seed(0), solver=solver, x_norm=1.0
    )
    usual = model.fit(X, y).coef_
    with strict():
        ledger = Ledger(Budget(2.0, 1e-3))
        assert np.array_equal(model.fit(X, y, ledger=ledger).coef_, usual)


def test_moments_show_no_underflow_of_rows(strict):
    with strict():
        PrivateStandardScaler(1.0, 1e-4, ranges=(-1.0, 1.0)).fit(X)


def test_no_step_of_a_stream_shows_underflow_of_rows(strict):
    model = OnlineLogisticRegression(
        1.0,
        1e-5,
        horizon=3,
        rows_per_step=20,
        classes=(0, 1),
        random_state=Seed(0),
        x_norm=1.0,
    )
    with strict():
        for _ in range(3):
            model.partial_fit(X[:20], y[:20])


@pytest.mark.parametrize("workers", [1, 2])
def test_blocks_show_no_underflow_in_any_thread(strict, workers, monkeypatch):
    monkeypatch.setattr("tacit._execution._workers", lambda: workers)
    # threads begin with the default state, in which overflow is a warning
    with strict():
        list(in_order(np.square, [X, 1e300 * X] * 3, side_by_side=True))


def test_no_query_shows_underflow_of_what_rows_made(strict):
    labeler = PrivateLabeler(LogisticRegression())
    with strict(), labeler._exclusive_step():
        np.square(X)
