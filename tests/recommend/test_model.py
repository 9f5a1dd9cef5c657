"""MatrixCompletion around its solvers: what is rejected, charged, reported and kept."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.recommend.doubles import MeansSolver, matrix, some_ratings, triples

from tacit._random import as_generator
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.privacy import Budget, GaussianNoise, Ledger, calibrate
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS, CompletionPlan
from tacit.recommend.items.side import ItemSide
from tacit.recommend.ratings.table import Ratings

N_ITEMS = 6
ROWS = triples(some_ratings(30, N_ITEMS, 0))


def model(**parameters):
    given = {
        "solver": MeansSolver(),
        "epsilon": 1.0,
        "delta": 1e-6,
        "items": N_ITEMS,
        "rating_range": (1, 5),
        "random_state": 0,
    }
    return MatrixCompletion(**(given | parameters))


def test_it_is_an_estimator_that_can_be_cloned_and_printed():
    one = model(epsilon=2.5).fit(ROWS)
    other = clone(one)
    assert other.get_params() == one.get_params()
    assert not hasattr(other, "factors_")
    assert "epsilon=2.5" in repr(one)
    assert one.set_params(solver=MeansSolver("float")).solver.noise == "float"


def test_before_a_fit_there_is_nothing_to_query():
    for call in (
        lambda m: m.rows_,
        lambda m: m.predict([(0, 1)]),
        lambda m: m.recommend(0),
        lambda m: m.complete_row({}),
    ):
        with pytest.raises(NotFittedError):
            call(model())


def test_a_fit_publishes_the_item_side_and_what_it_cost():
    fitted = model().fit(ROWS)
    assert isinstance(fitted.factors_, ItemSide)
    assert fitted.n_items_ == N_ITEMS
    assert fitted.items_.tolist() == list(range(N_ITEMS))
    assert fitted.privacy_.guarantee == Budget(1.0, 1e-6)
    assert fitted.privacy_.spent <= 1.0
    public = {name for name in vars(fitted) if name.endswith("_")}
    assert public == {"factors_", "items_", "n_items_", "privacy_"}


def test_the_report_states_who_is_protected_and_whose_rows_are_whose():
    text = "\n".join(model().fit(ROWS).privacy_.assumptions)
    for words in (
        "protects a user: all their ratings together",
        "joint privacy",
        "is for them only",
        "published: noisy sums over users, those of MeansSolver",
        "catalogue of items and the range of ratings are public",
        "ratings of other labels are left out",
        "the number of users is public",
    ):
        assert words in text


@pytest.mark.parametrize("name", SOLVERS)
def test_the_report_states_which_sums_a_solver_publishes(name):
    text = model(solver=name).plan(100).assumptions
    same = model(solver=SOLVERS[name]()).plan(100).assumptions
    assert text == same
    planned = model(solver=name).plan(100)
    assert f"published: noisy sums over users, {planned.sums}" in text
    assert planned.sums in str(planned)
    assert SOLVERS[name].name == planned.solver == name


def test_only_releases_that_were_planned_are_described():
    few, many = (model(solver="als", items=99).plan(n) for n in (50, 10**6))
    assert not few.plan.rounds
    assert "rank 0" in few.sums
    assert "products" not in str(few)
    assert "3 rounds products of ratings" in many.sums
    assert "8 directions" in many.sums
    assert (
        "1 step"
        in model(solver="gradient")
        .set_params(solver=SOLVERS["gradient"](n_iter=1))
        .plan(9)
        .sums
    )
    for means in (False, True):
        solver = SOLVERS["frank_wolfe"](n_iter=3, item_means=means, eigenvector="oja")
        text = model(solver=solver).plan(100).sums
        assert ("means of items" in text) == means
        assert "3 steps 30 products" in text
    unpaid = SOLVERS["frank_wolfe"](n_iter=3, step="published", nuclear_norm=9.0)
    assert model(solver=unpaid).plan(9).sums == (
        "in up to 2 steps second moments of users' residuals"
    )
    assert "up to 4 directions" in model(solver=SOLVERS["svd"](rank=4)).plan(9).sums


def test_a_plan_shows_the_noise_on_the_mean_of_an_item(seed):
    # everybody rates every item alike, so that all a mean differs by is noise
    n_users, n_items = 400, 200
    planned = model(items=n_items).plan(n_users)
    rows = planned._rated
    assert rows == 20
    text = planned.mean_scale
    assert f"{text:.2g} on the mean rating of an item" in str(planned)
    # each item is rated by a tenth of the users, who have 20 ratings each
    items = (np.arange(n_users)[:, None] + np.arange(rows) * 10) % n_items
    ratings = Ratings(
        np.arange(n_users + 1, dtype=np.int64) * rows,
        np.sort(items, axis=1).astype(np.int32).ravel(),
        np.full(n_users * rows, 3.0, dtype=np.float32),
        n_items,
    )
    means = planned.plan.means
    found = means.run(ratings, as_generator(seed))
    count = n_users * rows / n_items / np.sqrt(rows)
    assert np.std(found.sums / count) == pytest.approx(text, rel=0.25)
    assert model(solver="svd").plan(9).mean_scale is None


PRIVATE = pd.DataFrame({"user": [7], "item": [1], "rating": [4.123]})


@pytest.mark.parametrize(
    "name",
    [
        *("epsilon", "delta", "neighbors", "rating_range", "expected_users", "items"),
        *("max_ratings", "noise", "random_state", "verbose", "scratch", "solver"),
    ],
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pd.Series, np.ndarray, list])
def test_ratings_instead_of_a_parameter_are_not_quoted(name, kind):
    column = pd.Series([4.123] * 5)
    given = {
        pd.DataFrame: PRIVATE,
        pd.Series: column,
        np.ndarray: column.to_numpy(),
        list: column.tolist(),
    }[kind]
    with pytest.raises((ValueError, TypeError), match=name) as caught:
        model(**{name: given}).fit(ROWS)
    assert "4.123" not in str(caught.value)


def test_ratings_instead_of_an_argument_are_not_quoted():
    for call in (
        lambda m: m.plan(PRIVATE),
        lambda m: m.fit(ROWS, columns=PRIVATE),
        lambda m: m.fit(ROWS, ledger=PRIVATE),
        lambda m: m.fit(ROWS, PRIVATE.rating),
        lambda m: m.fit(ROWS).recommend(0, PRIVATE),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            call(model())
        assert "4.123" not in str(caught.value)


def test_ratings_may_come_through_a_pipeline_and_cross_validation_names_the_form():
    through = make_pipeline(FunctionTransformer(), model())
    frame = pd.DataFrame(ROWS, columns=["user", "item", "rating"])
    assert through.fit(frame).predict(frame).shape == (len(frame),)
    with pytest.raises(ValueError, match="users, items and ratings together"):
        cross_val_score(
            model(), frame[["user", "item"]], frame.rating, error_score="raise"
        )
    scores = cross_val_score(model(), frame, cv=2)
    assert np.isfinite(scores).all()


def test_a_score_takes_what_a_fit_does():
    frame = pd.DataFrame(ROWS, columns=["user", "item", "rating"])
    fitted = model().fit(ROWS)
    score = fitted.score(frame[["user", "item"]], frame.rating)
    for rated in (frame, ROWS, frame.to_numpy()):
        assert fitted.score(rated) == score
    for bad in (frame[["user", "item"]], [(0, 1)], np.zeros((2, 2)), None):
        with pytest.raises(ValueError, match="user, item and rating"):
            fitted.score(bad)


def test_both_things_that_are_missing_are_named():
    with pytest.raises(ValueError, match=r"rating_range must be given.*items"):
        MatrixCompletion().fit(ROWS)


@pytest.mark.parametrize("items", [{1, 2}, frozenset("ab"), {1: 2}.keys()])
def test_items_without_an_order_are_rejected(items):
    with pytest.raises(ValueError, match="got a set"):
        model(items=items).plan(100)


def test_a_dense_table_of_users_by_items_gets_an_error_that_helps():
    frame = pd.DataFrame(ROWS, columns=["user", "item", "rating"])
    dense = frame.pivot(index="user", columns="item", values="rating")
    with pytest.raises(ValueError, match="melt"):
        model().fit(dense)
    with pytest.raises(ValueError, match=r"scipy\.sparse"):
        model().fit(dense.to_numpy())


def test_a_plan_is_what_the_fit_charges():
    planned = model().plan(len({user for user, _, _ in ROWS}))
    fitted = model().fit(ROWS)
    assert isinstance(planned, CompletionPlan)
    assert fitted.privacy_.entries[0].event == planned.event
    assert set(planned.assumptions) <= set(fitted.privacy_.assumptions)
    multiplier = calibrate(GaussianNoise, Budget(1.0, 1e-6))
    assert planned.event == GaussianNoise(multiplier)
    for words in ("epsilon 1", "6 items, from 1 to 5", "planned for", "joint privacy"):
        assert words in str(planned)


def test_most_ratings_are_a_public_number():
    assert model().plan(100).facts.max_ratings == N_ITEMS
    assert model(items=500).plan(100).facts.max_ratings == 80
    assert model(items=500, max_ratings=7).plan(100).facts.max_ratings == 7
    assert model(max_ratings=900).plan(100).facts.max_ratings == N_ITEMS


def test_delta_is_one_over_the_squared_number_of_users_where_it_is_public():
    assert model(delta=None).plan(200).budget.delta == 1 / 200**2
    users = len({user for user, _, _ in ROWS})
    assert model(delta=None).fit(ROWS).privacy_.guarantee.delta == 1 / users**2


def test_a_guess_of_the_users_is_planned_for():
    added = {"neighbors": "add_or_remove_one", "delta": 1e-6}
    assert model(expected_users=70).plan(9).facts.n_users == 70
    assert model().plan(9).facts.n_users == 9
    # a guess that the plan is given, where a fit has none but that of delta
    assert model(**added).plan(9).facts.n_users == 9
    for n_users in (30, 3000):
        fitted = model(**added, solver="als").fit(ROWS)
        usual = model(**added, solver="als", expected_users=1000).plan(n_users)
        assert fitted.privacy_.entries[0].event == usual.event
    assert model(**added, expected_users=70).plan(9).facts.n_users == 70


def test_one_charge_goes_to_the_ledger_before_the_run():
    ledger = Ledger(Budget(2.5, 1e-5))
    model().fit(ROWS, ledger=ledger)
    assert [entry.label for entry in ledger.report().entries] == ["MatrixCompletion"]

    class Failing(MeansSolver):
        def run(self, plan, ratings, rng):
            assert len(ledger.report().entries) == 2
            raise RuntimeError("broken")

    fitted = model().fit(ROWS)
    side = fitted.factors_
    with pytest.raises(RuntimeError, match="broken"):
        fitted.set_params(solver=Failing()).fit(ROWS, ledger=ledger)
    assert len(ledger.report().entries) == 2
    assert fitted.factors_ is side  # as it was before


REJECTED = [
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"delta": 1.0}, "delta"),
    ({"delta": 0}, "delta must be above 0"),
    ({"delta": None, "neighbors": "add_or_remove_one"}, "number of users is private"),
    ({"neighbors": "others"}, "neighbors"),
    ({"items": None}, "items"),
    ({"items": 0}, "items"),
    ({"items": []}, "items"),
    ({"items": ["a", "a"]}, "items"),
    ({"items": ["a", 1]}, "items"),
    ({"rating_range": None}, "rating_range must be given"),
    ({"rating_range": (5, 1)}, "rating_range"),
    ({"rating_range": (1, np.inf)}, "rating_range"),
    ({"rating_range": 5}, "rating_range"),
    ({"rating_range": (1e6, 1e6 + 1)}, "rating_range"),
    ({"max_ratings": 0}, "max_ratings"),
    ({"max_ratings": 2.5}, "max_ratings"),
    ({"expected_users": 0}, "expected_users"),
    ({"expected_users": 2**40}, "expected_users"),
    ({"noise": "none"}, "noise"),
    ({"noise": "float"}, "set it on the solver"),
    ({"solver": "unknown"}, "solver must be one of"),
    ({"solver": MeansSolver}, "solver must be one of"),
    ({"solver": None}, "solver must be one of"),
    ({"verbose": -1}, "verbose"),
    ({"random_state": -1}, "random_state"),
]


@pytest.mark.parametrize(("parameters", "words"), REJECTED)
def test_bad_parameters_are_rejected_by_name_and_nothing_is_charged(parameters, words):
    ledger = Ledger(Budget(10.0, 1e-3))
    with pytest.raises((ValueError, TypeError, PlanError), match=words):
        model(**parameters).fit(ROWS, ledger=ledger)
    assert not ledger.report().entries
    if "random_state" not in parameters:
        with pytest.raises((ValueError, TypeError, PlanError), match=words):
            model(**parameters).plan(100)


@pytest.mark.parametrize(
    "ratings",
    [
        None,
        "no such file.csv",
        [(0, 1)],
        [(0, 1, 2, 3)],
        [(0, 1, np.nan), (5, 2, 4.0)],
        [(0, 1, np.inf)],
        [(0, 1, "secret")],
        np.array([("u", "1", "secret")]),
        np.zeros((2, 4)),
        pd.DataFrame({"user": [0], "item": [1]}),
        pd.DataFrame({"user": [0], "item": [1], "rating": ["secret"]}),
        sparse.csr_array((3, N_ITEMS + 1)),
    ],
)
def test_ratings_that_cannot_be_read_are_rejected_unquoted_and_uncharged(ratings):
    ledger = Ledger(Budget(10.0, 1e-3))
    untouched = model()
    before = vars(untouched).copy()
    with pytest.raises((ValueError, TypeError, OSError)) as caught:
        untouched.fit(ratings, ledger=ledger)
    assert "secret" not in str(caught.value)
    assert not ledger.report().entries
    assert vars(untouched) == before


def test_no_user_is_rejected_where_the_number_is_public_and_fine_where_it_is_not():
    nobody = np.empty((0, 3))
    with pytest.raises(ValueError, match="at least one user is needed"):
        model().fit(nobody)
    with pytest.raises(ValueError, match="delta must be given for fewer"):
        model(delta=None).fit(ROWS[:1])
    fitted = model(neighbors="add_or_remove_one").fit(nobody)
    assert np.isfinite(fitted.predict([(0, 1)])).all()


def test_an_overspent_ledger_rejects_and_is_not_charged():
    ledger = Ledger(Budget(0.5, 1e-3))
    with pytest.raises(BudgetExceeded):
        model().fit(ROWS, ledger=ledger)
    assert not ledger.report().entries
    with pytest.raises(TypeError, match="ledger"):
        model().fit(ROWS, ledger=0.5)


@pytest.mark.parametrize("name", ["double", *SOLVERS])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_or_remove_one"])
def test_odd_tables_are_fitted_without_a_word(name, neighbors):
    solver = MeansSolver() if name == "double" else name
    tables = [
        [(0, 1, 3.0)],
        [(0, j, 3.0) for j in range(N_ITEMS)],
        [(i, i % N_ITEMS, 3.0) for i in range(9)],
        [(0, 1, 3.0), (0, 1, 5.0), (0, 1, 5.0), (1, 2, 1.0)],
        [(0, 99, 3.0), (1, "x", 3.0), (2, 0, 1e9), (3, 0, -1e9)],
        sparse.csr_array((5, N_ITEMS)),
    ]
    for ratings in tables:
        for epsilon in (0.01, 1000.0):
            fitted = model(
                solver=solver, neighbors=neighbors, epsilon=epsilon, max_ratings=2
            ).fit(ratings)
            found = fitted.predict([(0, j) for j in range(N_ITEMS)])
            assert ((found >= 1) & (found <= 5)).all()


@pytest.mark.parametrize("name", ["double", *SOLVERS])
def test_one_item_and_ranges_off_zero_are_fine(name):
    solver = MeansSolver() if name == "double" else name
    single = model(solver=solver, items=1).fit([(0, 0, 3.0), (1, 0, 4.0)])
    assert 1 <= single.predict([(0, 0)])[0] <= 5
    for low in (-1005.0, 995.0):
        rows = [(i, j, low + 5 + r) for i, j, r in ROWS]
        far = model(solver=solver, rating_range=(low + 5, low + 10)).fit(rows)
        assert low + 5 <= far.predict([(0, 0)])[0] <= low + 10


def test_numbers_of_any_kind_are_the_same_ratings():
    whole = [(i, j, round(r)) for i, j, r in ROWS]
    expected = model().fit(whole).predict([(0, 1), (3, 2)])
    for same in (
        np.array(whole, dtype=np.float32),
        np.array(whole, dtype=np.int16),
        [(i, j, Decimal(r)) for i, j, r in whole],
        [(i, j, np.float32(r)) for i, j, r in whole],
        pd.DataFrame(whole, columns=["user", "item", "rating"]).sample(
            frac=1.0, random_state=0
        ),
    ):
        assert np.array_equal(model().fit(same).predict([(0, 1), (3, 2)]), expected)


def test_truth_values_are_ratings_too():
    liked = [(i, j, r > 3) for i, j, r in ROWS]
    fitted = model(rating_range=(0, 1)).fit(liked)
    assert ((fitted.predict([(0, 1)]) >= 0) & (fitted.predict([(0, 1)]) <= 1)).all()


def test_an_unsorted_matrix_with_entries_stored_twice_is_read_as_ratings():
    stored = sparse.csr_array(
        (np.array([3.0, 4.0, 5.0]), np.array([2, 1, 2]), np.array([0, 3])),
        shape=(1, N_ITEMS),
    )
    assert model().fit(stored).rows_[0].ratings == {1: 4.0, 2: 4.0}


def test_columns_of_a_matrix_are_the_items_where_none_are_named():
    fitted = model(items=None).fit(matrix(some_ratings(20, 8, 1)))
    assert fitted.n_items_ == 8
    labels = list("abcdefgh")
    named = model(items=labels).fit(matrix(some_ratings(20, 8, 1)))
    assert named.items_.tolist() == labels
    assert set(named.recommend(0, 8).items) <= set(labels)


def test_ratings_may_be_kept_in_files_during_the_fit(tmp_path):
    kept = model(scratch=tmp_path).fit(ROWS)
    assert np.array_equal(kept.factors_.offsets, model().fit(ROWS).factors_.offsets)
    assert np.array_equal(
        kept.rows_[0].complete(), model().fit(ROWS).rows_[0].complete()
    )
    assert not list(tmp_path.iterdir())


def test_a_seed_decides_all_noise_and_none_is_fresh():
    one, same = model().fit(ROWS), model().fit(ROWS)
    assert np.array_equal(one.factors_.offsets, same.factors_.offsets)
    assert one.privacy_.seeded
    fresh = model(random_state=None)
    # offsets may be zero in both, as noise hides them
    assert fresh.fit(ROWS).factors_.level != fresh.fit(ROWS).factors_.level
    assert not fresh.privacy_.seeded


def test_the_number_of_users_is_nowhere_where_it_is_private(capsys):
    added = {"neighbors": "add_or_remove_one", "expected_users": 50, "verbose": 1}
    ratings = some_ratings(37, N_ITEMS, 3)
    fitted = model(**added).fit(matrix(ratings))
    fewer = model(**added).fit(matrix(some_ratings(36, N_ITEMS, 3)))
    assert fitted.privacy_.to_dict() == fewer.privacy_.to_dict()
    shown = repr(fitted) + str(fitted.privacy_) + "".join(capsys.readouterr())
    assert "37" not in shown


def test_little_noise_finds_the_means_of_items(seed):
    rng = as_generator(seed)
    offsets = np.linspace(-1, 1, N_ITEMS)
    rows = [
        (i, j, 3 + offsets[j] + 0.1 * rng.standard_normal())
        for i in range(300)
        for j in rng.permutation(N_ITEMS)[:4].tolist()
    ]
    fitted = model(epsilon=1000.0).fit(rows)
    np.testing.assert_allclose(fitted.factors_.offsets, offsets, atol=0.25)
    worse = model(epsilon=0.01).fit(rows)
    assert fitted.score([r[:2] for r in rows], [r[2] for r in rows]) > worse.score(
        [r[:2] for r in rows], [r[2] for r in rows]
    )
