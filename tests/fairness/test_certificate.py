"""Certificates over many releases: how often they hold, and what they say."""

import json

import numpy as np
import pytest
from tests.fairness.people import Linear, models, people
from tests.stat import assert_probability_at_most

from tacit._random import as_generator
from tacit.fairness import (
    certify,
    certify_by_simulation,
    compare_models,
    group_fairness,
)
from tacit.fairness._distances import output_perturbation_distance
from tacit.fairness._groups import NOTIONS
from tacit.fairness._margins import linear_margins

SCALE, FAILURE = 0.02, 0.05


def noisy(model, rng, scale=SCALE):
    """Return the model with noise on all weights."""
    return Linear(
        model.coef_ + scale * rng.normal(size=model.coef_.shape),
        model.intercept_ + scale * rng.normal(size=model.intercept_.shape),
        model.classes_,
    )


def held(y, s, X, model, notion, **others):
    found = linear_margins(model, X, y)
    return certify(
        y,
        sensitive_features=s,
        margins=found.margins,
        lipschitz=found.lipschitz,
        distance=lambda failure: output_perturbation_distance(
            SCALE, 6, failure=failure
        ),
        notion=notion,
        failure=FAILURE,
        **others,
    )


def escapes(certificate, values):
    low = certificate.population_lower
    low = certificate.lower if low is None else low
    high = certificate.population_upper
    high = certificate.upper if high is None else high
    return bool(((values < low - 1e-12) | (values > high + 1e-12)).any())


@pytest.mark.statistical
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("reference", ["exact", "private"])
def test_figures_of_releases_leave_their_intervals_hardly_ever(notion, reference, seed):
    """Fails wrongly with probability 1e-6."""
    X, y, s = people(800)
    exact, rng = models()[0], as_generator(seed)
    escaped = 0
    for _ in range(200):
        private = noisy(exact, rng)
        known, other = (exact, private) if reference == "exact" else (private, exact)
        figures = group_fairness(
            y, other.predict(X), sensitive_features=s, notion=notion
        )
        escaped += escapes(held(y, s, X, known, notion), figures.values)
    assert_probability_at_most(escaped, 200, FAILURE)


@pytest.mark.statistical
def test_ten_times_the_noise_leaves_the_intervals(seed):
    """Control of the test above."""
    X, y, s = people(800)
    exact, rng = models()[0], as_generator(seed)
    certificate = held(y, s, X, exact, "equalized_odds")
    escaped = sum(
        escapes(
            certificate,
            group_fairness(
                y, noisy(exact, rng, 10 * SCALE).predict(X), sensitive_features=s
            ).values,
        )
        for _ in range(200)
    )
    with pytest.raises(AssertionError):
        assert_probability_at_most(escaped, 200, FAILURE)


def test_intervals_shrink_like_one_over_the_rows_of_the_fit():
    """Noise halves as rows double, and so does the share of fragile rows."""
    X, y, s = people(20_000)
    found = linear_margins(models()[0], X, y)
    widths = [
        certify(
            y,
            sensitive_features=s,
            margins=found.margins,
            lipschitz=found.lipschitz,
            distance=0.1 / doubled,
        ).change
        for doubled in (1, 2, 4)
    ]
    np.testing.assert_allclose(widths[0] / widths[1], 2.0, rtol=0.3)
    np.testing.assert_allclose(widths[1] / widths[2], 2.0, rtol=0.3)


@pytest.mark.statistical
@pytest.mark.parametrize("notion", NOTIONS)
def test_intervals_of_the_population_cover_it(notion, seed):
    """Fails wrongly with probability 1e-6; those of the rows alone do not cover.

    Noise is next to none, so that what is left is sampling.
    """
    X, y, s = people(100_000, seed=1)
    exact, rng = models()[0], as_generator(seed)
    truth = group_fairness(y, exact.predict(X), sensitive_features=s, notion=notion)
    found = linear_margins(exact, X, y)
    missed, rows_missed = 0, 0
    for _ in range(100):
        drawn = rng.choice(len(y), size=1000, replace=False)
        certificate = certify(
            y[drawn],
            sensitive_features=s[drawn],
            margins=found.margins[drawn],
            lipschitz=found.lipschitz[drawn],
            distance=1e-6,
            notion=notion,
            failure=0.1,
            sampling=0.09,
        )
        missed += escapes(certificate, truth.values)
        outside = (truth.values < certificate.lower) | (
            truth.values > certificate.upper
        )
        rows_missed += bool(outside.any())
    assert_probability_at_most(missed, 100, 0.09)
    assert rows_missed > 90


def test_the_distance_is_asked_for_what_sampling_leaves():
    X, y, s = people()
    asked = []

    def distance(failure):
        asked.append(failure)
        return 0.1

    found = linear_margins(models()[0], X, y)
    given = {"margins": found.margins, "lipschitz": found.lipschitz}
    certificate = certify(
        y,
        sensitive_features=s,
        distance=distance,
        failure=0.05,
        sampling=0.02,
        **given,
    )
    assert asked == [pytest.approx(0.03)]
    assert (certificate.population_lower <= certificate.lower).all()
    assert (certificate.population_upper >= certificate.upper).all()


def test_a_certificate_is_plain_data_and_says_what_it_is_about():
    X, y, s = people()
    certificate = held(y, s, X, models()[0], "equalized_odds", sampling=0.01)
    data = json.loads(json.dumps(certificate.to_dict()))
    assert data["groups"][0]["lower"] == pytest.approx(certificate.lower[0])
    assert data["charged"] is False
    words = str(certificate)
    for said in (
        "certified except with probability 0.05",
        "not certified: that either model is fair",
        "population",
        "private data",
    ):
        assert said in words
    low, high = certificate.aggregate_interval
    assert low <= certificate.aggregate <= high
    assert certificate.largest_change == certificate.change.max()
    alone = held(y, s, X, models()[0], "equalized_odds")
    assert "not certified for the population" in str(alone)


def test_a_certificate_is_drawn():
    pytest.importorskip("matplotlib").use("agg")
    X, y, s = people()
    ax = held(y, s, X, models()[0], "equalized_odds", sampling=0.01).plot()
    assert len(ax.get_legend().get_texts()) == 3


def test_figures_stay_within_what_a_figure_can_be():
    X, y, s = people()
    found = linear_margins(models()[0], X, y)
    given = {"margins": found.margins, "lipschitz": found.lipschitz, "distance": 1e9}
    for notion in NOTIONS:
        wide = certify(y, sensitive_features=s, notion=notion, **given)
        assert wide.upper.max() <= 1.0
        assert wide.lower.min() >= (0.0 if notion == "accuracy" else -1.0)


@pytest.mark.statistical
@pytest.mark.parametrize("notion", NOTIONS)
def test_simulated_intervals_hold_and_are_far_tighter(notion, seed):
    """Fails wrongly with probability 1e-6; a tenth of the noise is caught."""
    X, y, s = people(800)
    exact, rng = models()[0], as_generator(seed)
    predictions = [noisy(exact, rng).predict(X) for _ in range(400)]
    releases = [
        group_fairness(
            y, noisy(exact, rng).predict(X), sensitive_features=s, notion=notion
        ).values
        for _ in range(200)
    ]

    def escaped(simulate):
        certificate = certify_by_simulation(
            y,
            exact.predict(X),
            sensitive_features=s,
            simulate=simulate,
            notion=notion,
            failure=FAILURE,
        )
        return certificate, sum(escapes(certificate, values) for values in releases)

    certificate, found = escaped(predictions.__getitem__)
    # the rank of the simulated runs varies too: of 200 runs, by one or two parts in 100
    assert_probability_at_most(found, 200, 2 * FAILURE)
    by_norm = held(y, s, X, exact, notion)
    assert certificate.largest_change < by_norm.largest_change
    assert certificate.to_dict()["distance"] is None
    quiet = [noisy(exact, rng, SCALE / 10).predict(X) for _ in range(400)]
    with pytest.raises(AssertionError):
        assert_probability_at_most(escaped(quiet.__getitem__)[1], 200, 2 * FAILURE)


def test_too_few_simulated_runs_are_refused():
    _, y, s = people()
    with pytest.raises(ValueError, match="n_runs must be an integer >= 200"):
        certify_by_simulation(
            y, y, sensitive_features=s, simulate=lambda run: y, n_runs=100
        )


@pytest.mark.parametrize("n_labels", [2, 3])
def test_what_turns_is_among_what_moves_and_that_within_the_distance(n_labels):
    X, y, s = people(500, n_labels=n_labels)
    for seed in range(30):
        first, second = models(5, n_labels, 0.2, seed)
        found = compare_models(y, sensitive_features=s, first=first, second=second, X=X)
        assert found.distance == pytest.approx(0.2)
        assert found.turned <= found.along <= found.near
        assert (np.abs(found.difference) <= found.change_along + 1e-12).all()
        assert (found.change_along <= found.change_near + 1e-12).all()
        if n_labels == 2:  # margins move by exactly this
            moved = linear_margins(second, X, y).margins
            moved = np.abs(moved - linear_margins(first, X, y).margins)
            step = X @ (second.coef_ - first.coef_)[0] + (
                second.intercept_ - first.intercept_
            )
            np.testing.assert_allclose(moved, np.abs(step), atol=1e-12)
    assert "private data" in str(found)
    json.dumps(found.to_dict())


def test_models_that_cannot_be_compared_are_refused():
    X, y, s = people()
    first, _ = models()
    other = models(5, 3)[0]
    with pytest.raises(ValueError, match="the same labels and features"):
        compare_models(y, sensitive_features=s, first=first, second=other, X=X)
