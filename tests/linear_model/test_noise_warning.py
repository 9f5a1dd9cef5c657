"""A plan whose noise exceeds any signal warns before its fit is charged."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from tacit import Budget, Ledger
from tacit._random import as_generator
from tacit._release import is_note, noise_note, noise_warning
from tacit.convex import L1Ball
from tacit.evaluation import expected_score
from tacit.exceptions import NoiseWarning
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.solvers._drowned import relative_noise

N, P = 100, 40


def rows():
    return as_generator(0).uniform(-1, 1, (N, P)) / np.sqrt(P)


def model(epsilon, **given):
    return LogisticRegression(epsilon, 1e-6, classes=[0, 1], x_norm=1.0, **given)


def test_a_fit_that_can_learn_nothing_warns_once_and_says_so_in_its_report():
    X, ledger = rows(), Ledger(Budget(1.0, 1e-3))
    with pytest.warns(NoiseWarning, match="40 columns are too many for 100") as caught:
        fitted = model(0.05).fit(X, X[:, 0] > 0, ledger=ledger)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert noise_warning(fitted.privacy_.notes) == str(caught[0].message)
    assert noise_warning(fitted.privacy_.assumptions) is None


def test_the_warning_comes_before_the_charge():
    X, ledger = rows(), Ledger(Budget(1.0, 1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseWarning)
        with pytest.raises(NoiseWarning):
            model(0.05).fit(X, X[:, 0] > 0, ledger=ledger)
    assert ledger.spent() == 0


@pytest.mark.parametrize("epsilon", [0.05, 50.0])
@pytest.mark.parametrize("kind", ["labels", "numbers", "pure"])
def test_the_plan_knows_from_public_facts(epsilon, kind):
    delta = 0.0 if kind == "pure" else 1e-6
    given = (
        LinearRegression(epsilon, delta, x_norm=1.0, y_range=(0, 1))
        if kind == "numbers"
        else LogisticRegression(epsilon, delta, x_norm=1.0, classes=[0, 1])
    )
    planned = given.plan(N, P)
    drowned = epsilon < 1
    assert (relative_noise(planned.problem, planned.budget) > 1) == drowned
    assert (noise_warning(planned.assumptions) is not None) == drowned


def test_choices_of_columns_have_a_limit_of_their_own():
    ball = {"bound_norm": "linf", "penalty": L1Ball(5.0)}
    # 2,000 columns drown sums of all of them, and not yet the choice of one
    assert noise_warning(model(1.0, **ball).plan(N, 2000).assumptions) is None
    assert noise_warning(model(0.5, **ball).plan(N, 2000).assumptions) is not None


def test_sparse_rows_may_have_more_noise():
    dense, thin = (
        model(0.2, bound_norm="l2").plan(N, P, sparse=s) for s in (False, True)
    )
    assert 1 < relative_noise(dense.problem, dense.budget) < 4
    assert noise_warning(dense.assumptions) is not None
    assert noise_warning(thin.assumptions) is None


def test_the_warning_depends_on_nothing_but_the_shape():
    messages = []
    for scale in (0.0, 1.0):
        with pytest.warns(NoiseWarning) as caught:
            model(0.05).fit(sparse.csr_array(scale * rows()), np.arange(N) % 2)
        messages.append(str(caught[0].message))
    assert messages[0] == messages[1]


def test_the_fits_of_a_forecast_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseWarning)
        expected_score(model(0.05), 50, [1] * 5, n_classes=2, repeats=1)


def test_the_note_is_no_assumption():
    assert is_note(noise_note("3 columns"))
