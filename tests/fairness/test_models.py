"""Certificates of fitted models: the distance is in the plan of the fit."""

import numpy as np
import pytest
from sklearn import linear_model as plain
from tests.fairness.people import people
from tests.stat import assert_probability_at_most

from tacit.convex import L1, GroupL1
from tacit.fairness import certify_model, group_fairness
from tacit.fairness._distances import output_perturbation_distance
from tacit.fairness._margins import linear_margins
from tacit.fairness._models import WeightDistance, weight_distance
from tacit.linear_model import LogisticRegression
from tacit.persistence import load_model, save_model
from tacit.solvers import AMP, ObjectivePerturbation, OutputPerturbation

RIDGE = 60.0
SOLVERS = [
    OutputPerturbation(ridge=RIDGE),
    AMP(ridge=RIDGE),
    ObjectivePerturbation(ridge=RIDGE),
    OutputPerturbation(ridge=RIDGE, law="laplace"),
    OutputPerturbation(ridge=RIDGE, law="gamma"),
]
NAMES = ["output", "amp", "objective", "laplace", "gamma"]


@pytest.fixture(scope="module")
def rows():
    X, y, s = people(600)
    return X / 4, y, s


def fitted(rows, solver, epsilon=2.0, seed=0, **others):
    X, y, _ = rows
    model = LogisticRegression(
        epsilon,
        1e-5,
        solver=solver,
        classes=[0, 1],
        random_state=seed,
        **{"x_norm": 1.0, **others},
    )
    return model.fit(X, y)


def weights(model, constant):
    return np.append(model.coef_, model.intercept_ / (constant or 1.0))


@pytest.mark.statistical
@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_fits_are_as_near_to_the_minimum_as_stated(rows, solver, seed):
    """Fails wrongly with probability 1e-6."""
    # next to no noise, and the same objective: the minimum itself
    exact = fitted(rows, OutputPerturbation(ridge=RIDGE), epsilon=1e7)
    far, distances = 0, []
    for run in range(25):
        model = fitted(rows, solver, seed=seed + run)
        moved = weight_distance(model)
        apart = weights(model, moved.constant) - weights(exact, moved.constant)
        distances.append(np.linalg.norm(apart))
        far += distances[-1] > moved(0.1)
    assert_probability_at_most(far, 25, 0.1)
    # control: the distance is of the size of what it bounds
    assert max(distances) > 0.05 * moved(0.1)


def test_the_distance_is_the_quantile_of_the_plan_and_its_gap(rows):
    model = fitted(rows, OutputPerturbation(ridge=RIDGE))
    plan = model._facts.planned.plan
    gap = plan.gradient_tolerance / RIDGE
    wanted = output_perturbation_distance(plan.scale(), 6, failure=0.01, gap=gap)
    moved = weight_distance(model)
    assert moved(0.01) == pytest.approx(wanted)
    assert moved.constant == 0.25
    # the same from a plan that has seen no row
    assert weight_distance(model, model.plan(600, 5)) == moved


def test_margins_move_by_no_more_than_the_distance_allows(rows):
    X, y, _ = rows
    exact = fitted(rows, OutputPerturbation(ridge=RIDGE), epsilon=1e7)
    for seed in range(10):
        model = fitted(rows, OutputPerturbation(ridge=RIDGE), seed=seed)
        moved = weight_distance(model)
        first, second = (
            linear_margins(m, X, y, constant=moved.constant) for m in (model, exact)
        )
        apart = weights(model, moved.constant) - weights(exact, moved.constant)
        reach = np.linalg.norm(apart) * first.lipschitz
        assert (np.abs(first.margins - second.margins) <= reach * (1 + 1e-9)).all()


def test_a_model_from_a_folder_has_nearly_the_same_distance(rows, tmp_path):
    model = fitted(rows, OutputPerturbation(ridge=RIDGE))
    save_model(model, tmp_path / "model")
    moved, saved = (
        weight_distance(model),
        weight_distance(load_model(tmp_path / "model")),
    )
    assert saved.constant == pytest.approx(moved.constant)
    assert saved.scales == pytest.approx(moved.scales)
    assert moved(0.01) < saved(0.01) < 1.1 * moved(0.01)


@pytest.mark.parametrize("intercept", [True, False])
def test_several_labels_have_one_vector_each(intercept):
    X, y, s = people(900, n_labels=3)
    model = LogisticRegression(
        4.0,
        1e-5,
        solver=OutputPerturbation(ridge=RIDGE),
        classes=[0, 1, 2],
        fit_intercept=intercept,
        random_state=0,
        x_norm=1.0,
    ).fit(X / 4, y)
    moved = weight_distance(model)
    assert moved.size == 3 * (5 + intercept)
    assert moved.constant == (0.25 if intercept else 0.0)
    certificate = certify_model(model, X / 4, y, sensitive_features=s)
    assert len(certificate.groups) == 9


def test_predictions_of_rows_beyond_the_bounds_are_those_of_the_model(rows):
    X, y, s = rows
    model = fitted(rows, OutputPerturbation(ridge=RIDGE), epsilon=100.0)
    certificate = certify_model(model, 50 * X, y, sensitive_features=s)
    wanted = group_fairness(y, model.predict(50 * X), sensitive_features=s)
    np.testing.assert_allclose(certificate.values, wanted.values)


@pytest.mark.statistical
def test_the_exact_model_is_where_the_private_one_says(rows, seed):
    """Fails wrongly with probability 1e-6; a distance 30 times too small is caught."""
    X, y, s = rows
    exact = fitted(rows, OutputPerturbation(ridge=RIDGE), epsilon=1e7)
    truth = group_fairness(y, exact.predict(X), sensitive_features=s).values
    escaped = np.zeros(2, dtype=int)
    for run in range(25):
        model = fitted(rows, AMP(ridge=RIDGE), seed=seed + run)
        moved = weight_distance(model)(0.05)
        for k, distance in enumerate((moved, moved / 30)):
            held = certify_model(
                model, X, y, sensitive_features=s, failure=0.05, distance=distance
            )
            escaped[k] += bool(((truth < held.lower) | (truth > held.upper)).any())
    assert_probability_at_most(int(escaped[0]), 25, 0.05)
    with pytest.raises(AssertionError):
        assert_probability_at_most(int(escaped[1]), 25, 0.05)


@pytest.mark.parametrize("x_norm", [0.5, 8.0])
def test_a_distance_as_a_number_has_the_constant_of_the_fit(rows, x_norm, tmp_path):
    """The intercept is in the units of the noise, whoever says how far it moved."""
    X, y, s = rows
    model = fitted(rows, OutputPerturbation(ridge=RIDGE), x_norm=x_norm)
    moved = weight_distance(model)
    assert moved.constant == x_norm / 4
    save_model(model, tmp_path / "model")
    held = certify_model(model, X, y, sensitive_features=s)
    for same in (model, load_model(tmp_path / "model")):
        found = certify_model(same, X, y, sensitive_features=s, distance=moved(0.01))
        np.testing.assert_array_equal(found.lower, held.lower)
        np.testing.assert_array_equal(found.upper, held.upper)


def test_other_linear_models_need_a_distance(rows):
    X, y, s = rows
    model = plain.LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="distance must be given for this model"):
        certify_model(model, X, y, sensitive_features=s)
    held = certify_model(model, X, y, sensitive_features=s, distance=0.05)
    assert held.distance == 0.05
    noisy = fitted(rows, "noisy_gd")
    with pytest.raises(ValueError, match="distance must be given for this model"):
        certify_model(noisy, X, y, sensitive_features=s)


def test_a_certificate_says_which_minimum_the_other_model_is(rows, tmp_path):
    X, y, s = rows
    model = fitted(rows, OutputPerturbation(ridge=RIDGE))
    save_model(model, tmp_path / "model")
    for same in (model, load_model(tmp_path / "model")):
        held = certify_model(same, X, y, sensitive_features=s)
        # the logistic loss of a fit with noise is capped
        assert "whose loss has derivatives of at most 0.5" in str(held)
        assert held.to_dict()["other"] == weight_distance(model).other
    exact = fitted(rows, OutputPerturbation(ridge=RIDGE), epsilon=1e7)
    assert weight_distance(exact).other.endswith("derivatives of at most 1")
    told = certify_model(
        model, X, y, sensitive_features=s, distance=0.1, failure=1e-300
    )
    assert told.other is None
    assert "certified except with probability 1e-300" in str(told)


@pytest.mark.parametrize("penalty", [L1(5.0), GroupL1(5.0)], ids=["l1", "group"])
def test_weights_that_are_set_to_zero_have_moved(rows, penalty):
    moved, plain_moved = (
        weight_distance(fitted(rows, AMP(ridge=RIDGE), **others))
        for others in ({"penalty": penalty}, {})
    )
    model = fitted(rows, AMP(ridge=RIDGE), penalty=penalty)
    plan = model._facts.planned.plan
    reach = plan.tilted.noise_distribution.furthest(plan.output_scale())
    gap = plan.gradient_tolerance / plan.tilted.ridge
    assert moved.gap == pytest.approx(gap + np.sqrt(6) * reach)
    plan = fitted(rows, AMP(ridge=RIDGE))._facts.planned.plan
    assert plain_moved.gap == plan.gradient_tolerance / plan.tilted.ridge


def test_chances_of_two_noises_are_added_up():
    one = WeightDistance(5, "gaussian", (1.0,))
    two = WeightDistance(5, "gaussian", (1.0, 2.0), gap=0.5)
    assert two(0.02) == pytest.approx(3 * one(0.01) + 0.5)
