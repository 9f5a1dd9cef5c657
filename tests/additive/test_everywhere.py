"""Additive models are searched, scored, compared, audited and copied like others."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from tacit import Seed
from tacit._random import as_generator
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.audit import audit_estimator, audit_one_run
from tacit.datasets import make_census_table
from tacit.evaluation import coefficient_intervals, noise_intervals, private_score
from tacit.exceptions import BudgetExceeded
from tacit.fairness import certify_model, group_fairness
from tacit.model_selection import PrivateSearchCV
from tacit.preprocessing import PublicScaler
from tacit.privacy import Budget, Ledger

RANGES = {"age": (18, 90), "hours_per_week": (0, 80), "job_tenure": (0, 50)}
CATEGORIES = {
    "sector": ["public", "retail", "none"],
    "housing": ["owner", "tenant", "other"],
}
NAMES = [*RANGES, *CATEGORIES]
GIVEN = {"ranges": RANGES, "categories": CATEGORIES, "classes": ["no", "yes"]}


@pytest.fixture(scope="module")
def census():
    frame = pd.DataFrame(make_census_table(2000, random_state=0))
    frame.loc[::7, "sector"] = None
    return frame[NAMES], frame["high_income"].to_numpy()


@pytest.fixture(scope="module")
def model(census):
    return AdditiveClassifier(4.0, **GIVEN, random_state=Seed(0)).fit(*census)


def test_a_search_finds_the_pairs_that_help():
    rng = as_generator(0)
    a, b = rng.integers(2, size=(2, 3000))
    X = pd.DataFrame({"a": a, "b": b, "c": rng.random(3000)})
    estimator = AdditiveClassifier(
        ranges={"c": (0, 1)}, categories={"a": [0, 1], "b": [0, 1]}
    )
    search = PrivateSearchCV(
        estimator, {"interactions": [0, [("a", "b")]]}, 20.0, random_state=Seed(1)
    )
    search.fit(X, a ^ b)
    assert search.best_params_ == {"interactions": [("a", "b")]}
    assert search.score(X, a ^ b) > 0.9
    assert search.best_estimator_.privacy_ == search.privacy_
    assert search.best_estimator_.pairs_[0].columns == ("a", "b")
    assert not any("each row from that row" in a for a in search.privacy_.assumptions)


def test_a_search_charges_its_ledger_once_and_takes_lists(census):
    X, y = census
    ledger = Ledger(Budget(2.0, 1e-5))
    given = {"ranges": [*RANGES.values(), None, None], "classes": ["no", "yes"]}
    given["categories"] = [None, None, None, *CATEGORIES.values()]
    estimator = AdditiveClassifier(**given)
    search = PrivateSearchCV(
        estimator, {"interactions": [0, 1]}, 1.0, 1e-6, random_state=Seed(0)
    )
    search.fit(X.astype(object).to_numpy().tolist(), y, ledger=ledger)
    assert len(ledger.report().entries) == 1
    assert search.predict(X.to_numpy(dtype=object)).shape == (len(X),)


def test_a_search_of_regressions_and_of_relations(census):
    X, _ = census
    y = X["age"] + 0.0
    estimator = AdditiveRegressor(
        ranges={k: v for k, v in RANGES.items() if k != "age"},
        categories=CATEGORIES,
        y_range=(18, 90),
        delta=1e-5,
        neighbors="add_or_remove_one",
    )
    search = PrivateSearchCV(
        estimator,
        {"interactions": [0]},
        4.0,
        1e-5,
        random_state=Seed(0),
    )
    search.fit(X.drop(columns="age"), y)
    assert search.predict(X.drop(columns="age")).shape == (len(X),)


def test_a_search_scales_columns_by_public_facts_first():
    X = as_generator(0).random((400, 2))
    y = (X[:, 0] > 0.5).astype(int)
    steps = make_pipeline(
        PublicScaler((0, 1)), AdditiveClassifier(ranges=(-1, 1), classes=[0, 1])
    )
    grid = {"additiveclassifier__interactions": [0]}
    search = PrivateSearchCV(steps, grid, 20.0, 1e-4, random_state=Seed(0))
    assert search.fit(X, y).score(X, y) > 0.8


def strings(X):
    return X.assign(age="elderly")


def without(X):
    return X.drop(columns="sector")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (strings, "numbers only"),
        (without, "sector"),
        (lambda X: sparse.csr_matrix(np.zeros((len(X), 5))), "sparse"),
    ],
)
def test_a_search_rejects_what_a_fit_would_before_the_charge(change, words, census):
    X, y = census
    ledger = Ledger(Budget(1.0, 1e-5))
    search = PrivateSearchCV(
        AdditiveClassifier(**GIVEN), {"interactions": [0]}, 1.0, 1e-6
    )
    with pytest.raises((ValueError, TypeError), match=words) as found:
        search.fit(change(X), y, ledger=ledger)
    assert "elderly" not in str(found.value)
    assert ledger.spent() == 0
    assert not hasattr(search, "privacy_")


def test_a_score_is_private_and_close(census, model):
    X, y = census
    found = private_score(model, X, y, epsilon=2.0, random_state=Seed(0))
    assert abs(found.value - model.score(X, y)) < 0.05
    # each row is predicted from that row alone, so nothing is assumed
    assert not any("row alone" in words for words in found.privacy.assumptions)
    again = private_score(model, X.copy(), y, epsilon=2.0, random_state=Seed(0))
    assert again.value == found.value


def test_scores_of_two_models_have_noise_of_their_own(census, model):
    X, y = census
    other = clone(model).set_params(random_state=Seed(1)).fit(X, y)
    first, second = (
        private_score(m, X, y, epsilon=0.1, random_state=Seed(0)).value - m.score(X, y)
        for m in (model, other)
    )
    assert first != second


def test_a_score_of_no_rows_is_released_where_their_number_is_private(census):
    X, y = census
    model = AdditiveClassifier(4.0, 1e-5, neighbors="add_or_remove_one", **GIVEN)
    found = private_score(model.fit(X, y), X[:0], y[:0], epsilon=1.0)
    assert 0 <= found.value <= 1


def test_groups_are_compared_by_predictions(census, model):
    X, y = census
    right = model.predict(X)
    found = group_fairness(
        y, right, sensitive_features=X["housing"], notion="accuracy_parity"
    )
    assert {group.sensitive for group in found.groups} == set(CATEGORIES["housing"])


@pytest.mark.parametrize(
    "release",
    [
        lambda model, X, y: noise_intervals(model),
        lambda model, X, y: coefficient_intervals(model, X, y, epsilon=1.0),
        lambda model, X, y: certify_model(model, X, y, sensitive_features=y),
        lambda model, X, y: certify_model(
            model, X, y, sensitive_features=y, distance=lambda failure: 1.0
        ),
        lambda model, X, y: audit_one_run(model),
        lambda model, X, y: audit_estimator(model),
    ],
    ids=["noise", "intervals", "certificate", "distance", "one run", "categories"],
)
def test_what_needs_coefficients_or_numbers_says_so(release, census, model):
    with pytest.raises((ValueError, TypeError)) as found:
        release(model, *census)
    message = str(found.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert "must" in message or "give" in message


@pytest.mark.parametrize(
    "estimator",
    [
        AdditiveClassifier(1.0, ranges=(-1, 1), interactions=1),
        AdditiveRegressor(1.0, 1e-3, ranges=[(0, 1), (-2, 5)], y_range=(0, 2)),
        AdditiveRegressor(
            1.0,
            ranges={"a": (0, 1), "b": (-2, 5)},
            categories={},
            interactions=[("b", "a")],
        ),
    ],
)
def test_an_audit_attacks_ranges_and_refutes_nothing(estimator):
    found = audit_estimator(estimator, runs=60, random_state=0)
    assert not found.refuted
    assert not found.leaks
    assert found.claims_gaussian
    assert "Not refuted" in found.verdict


class Leaking(AdditiveClassifier):
    """The same model with almost no noise, for the control of the audit."""

    def fit(self, X, y, *, ledger=None):
        guaranteed = self.epsilon
        self.set_params(epsilon=1e5)
        super().fit(X, y, ledger=ledger)
        self.set_params(epsilon=guaranteed)
        del self.privacy_
        return self


def test_an_audit_refutes_a_model_with_less_noise():
    found = audit_estimator(
        Leaking(1.0, ranges=(-1, 1)), runs=200, random_state=0, delta=1e-3
    )
    assert found.refuted


def test_clones_have_the_same_parameters_and_nothing_fitted(model):
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "shapes_")
    assert copied.ranges is not RANGES or copied.ranges == RANGES
    changed = copied.set_params(interactions=2, epsilon=3)
    assert (changed.interactions, model.interactions) == (2, 0)


def test_a_fit_changes_no_parameter_and_no_row(census):
    X, y = census
    before, rows = {k: list(v) for k, v in CATEGORIES.items()}, X.copy()
    AdditiveClassifier(**GIVEN).fit(X, y)
    pd.testing.assert_frame_equal(X, rows)
    assert before == CATEGORIES
    assert GIVEN == {
        "ranges": RANGES,
        "categories": CATEGORIES,
        "classes": ["no", "yes"],
    }


def test_a_plan_reads_the_columns_in_any_order(census, model):
    X, _ = census
    planned = model.plan(len(X), X.shape[1])
    unfitted = clone(model).plan(len(X))
    assert planned.event == unfitted.event == model.privacy_.entries[0].event
    assert planned.budget == model.privacy_.guarantee
    report = model.privacy_
    assert set(planned.assumptions) <= {*report.assumptions, *report.notes}


def test_a_fit_beyond_the_budget_charges_nothing(census):
    ledger = Ledger(Budget(0.5, 1e-6))
    model = AdditiveClassifier(1.0, **GIVEN)
    with pytest.raises(BudgetExceeded):
        model.fit(*census, ledger=ledger)
    assert ledger.spent() == 0
    assert set(vars(model)) == set(model.get_params())
