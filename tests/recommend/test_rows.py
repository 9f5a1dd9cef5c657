"""Completed rows: all ways to predict agree, and no copy holds a rating."""

import copy
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.recommend.doubles import MeansSolver, matrix, some_ratings, triples

from tacit._random import as_generator
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS
from tacit.recommend._rows import Top

N_USERS, N_ITEMS = 25, 9


def model_of(solver, seed):
    model = MatrixCompletion(
        solver, 2.0, 1e-5, rating_range=(1, 5), random_state=seed, max_ratings=5
    )
    ratings = some_ratings(N_USERS, N_ITEMS, seed)
    return model.fit(matrix(ratings)), ratings


@pytest.fixture
def fitted(seed):
    return model_of(MeansSolver(), seed)


@pytest.mark.parametrize("name", ["double", *SOLVERS])
def test_all_ways_to_predict_agree_bit_for_bit(name, seed):
    model, ratings = model_of(MeansSolver() if name == "double" else name, seed)
    pairs = [(i, j) for i in range(N_USERS) for j in range(N_ITEMS)]
    whole = model.predict(pairs).reshape(N_USERS, N_ITEMS)
    assert ((whole >= 1) & (whole <= 5)).all()
    shuffled = as_generator(seed).permutation(len(pairs))
    some = model.predict([pairs[at] for at in shuffled])
    assert np.array_equal(some, whole.ravel()[shuffled])
    for user in range(N_USERS):
        row = model.rows_[user]
        assert np.array_equal(row.complete(), whole[user])
        own = np.full(N_ITEMS, np.nan)
        own[list(row.ratings)] = list(row.ratings.values())
        for given in (row.ratings, ratings.row(user), own, own.tolist()):
            assert np.array_equal(model.complete_row(given), whole[user])
        best = model.recommend(user, 4)
        assert best.items == row.top(4).items
        assert np.array_equal(best.scores, row.top(4).scores)
        assert np.array_equal(best.scores, whole[user, best.items])


def test_the_best_items_are_new_and_the_best_of_the_new_ones(fitted):
    model, ratings = fitted
    for user in range(N_USERS):
        found = model.recommend(user, 3)
        rated = set(ratings.row(user)[0].tolist())
        new = [j for j in range(N_ITEMS) if j not in rated]
        assert isinstance(found, Top)
        assert len(found.items) == min(3, len(new))
        assert not rated & set(found.items)
        row = model.rows_[user].complete()
        assert sorted(row[new])[::-1][:3] == found.scores.tolist()


def test_who_has_rated_everything_has_nothing_new():
    rows = [(0, j, 3.0) for j in range(4)] + [(1, 0, 2.0)]
    model = MatrixCompletion(
        MeansSolver(), 1.0, 1e-5, items=4, rating_range=(1, 5), random_state=0
    ).fit(rows)
    found = model.recommend(0)
    assert found.items == []
    assert found.scores.shape == (0,)


def test_an_unknown_user_gets_what_the_item_side_predicts(fitted):
    model, _ = fitted
    nobody = model.complete_row({})
    for user in (999, -1, "ann", None, 2.5, [3]):
        assert model.predict([(user, 4)]) == nobody[4]
        assert np.array_equal(
            model.recommend(user, N_ITEMS).scores, np.sort(nobody)[::-1]
        )
        assert np.array_equal(model.rows_[user].complete(), nobody)
        assert model.rows_[user].ratings == {}
    assert 999 not in model.rows_


def test_pairs_come_as_lists_arrays_and_frames(seed):
    ratings = some_ratings(N_USERS, N_ITEMS, seed)
    labels = [f"item {j}" for j in range(N_ITEMS)]
    rows = [(f"user {i}", labels[j], r) for i, j, r in triples(ratings)]
    model = MatrixCompletion(
        MeansSolver(), 1.0, 1e-5, items=labels, rating_range=(1, 5), random_state=0
    ).fit(rows)
    pairs = [row[:2] for row in rows]
    found = model.predict(pairs)
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    for same in (
        np.array(pairs),
        np.array(pairs, dtype=object),
        frame,
        frame[["item", "user"]],
        pa.Table.from_pandas(frame),
    ):
        assert np.array_equal(model.predict(same), found)
    assert model.predict([]).shape == (0,)
    assert model.score(pairs, found + 0.5) == pytest.approx(-0.5)


def test_whole_numbers_in_floats_are_the_labels_they_stand_for(fitted):
    model, _ = fitted
    pairs = np.array([[0, 3], [7, 2]])
    assert np.array_equal(model.predict(pairs), model.predict(pairs.astype(float)))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 77)], "items of the catalogue"),
        ([(0, np.inf)], "items of the catalogue"),
        ([(0, "secret")], "items of the catalogue"),
        ([(0, [1])], "items of the catalogue"),
        ([(0, 1, 2)], "a user's label and an item's"),
        ([0, 1], "a user's label and an item's"),
        (None, "a user's label and an item's"),
        (np.zeros((2, 3)), "two columns"),
        (np.zeros(2), "two columns"),
        (np.ma.masked_array([[0, 1]], mask=[[0, 1]]), "masked"),
        (pd.DataFrame({"user": [1], "film": [1]}), "columns 'user' and 'item'"),
    ],
)
def test_other_pairs_are_rejected_without_being_quoted(fitted, pairs, message):
    with pytest.raises(ValueError, match=message) as caught:
        fitted[0].predict(pairs)
    assert "77" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        ({1: np.nan}, "finite"),
        ({1: np.inf}, "finite"),
        ({1: "secret"}, "numbers"),
        (([1, 2], [3.0]), "two lists of equal length"),
        ([1.0, 2.0], "one for each of 9 items"),
        ([[1.0] * 9], "numbers"),
        ([[1, 2], [3]], "numbers"),
        (np.ones((1, 9)), "numbers"),
        ({1: 10**400}, "numbers"),
        (([1, 2], 3), "numbers"),
        (np.ma.masked_array(np.ones(9), mask=[1] + [0] * 8), "numbers"),
        ("secret", "numbers"),
        (None, "numbers"),
        (3, "numbers"),
    ],
)
def test_other_rows_are_rejected_without_being_quoted(fitted, ratings, message):
    with pytest.raises(ValueError, match=message) as caught:
        fitted[0].complete_row(ratings)
    assert "secret" not in str(caught.value)


def test_no_ratings_are_the_same_in_every_form(fitted):
    model, _ = fitted
    expected = model.complete_row({})
    for nothing in ([], ([], [])):
        assert np.array_equal(model.complete_row(nothing), expected)


def test_own_ratings_are_clipped_and_those_of_unknown_items_dropped(fitted):
    model, _ = fitted
    assert np.array_equal(
        model.complete_row({0: 99, 3: -5, 77: 4, "x": 3}),
        model.complete_row({0: 5.0, 3: 1.0}),
    )
    assert np.array_equal(
        model.complete_row(([2, 2], [3.0, 4.0])), model.complete_row({2: 3.5})
    )


@pytest.mark.parametrize("name", ["als", "gradient"])
def test_a_row_at_home_is_that_of_the_fit_where_the_range_is_rounded(name, seed):
    # neither end is a 32-bit number, and bits choose the ratings of "gradient"
    rng = as_generator(seed)
    rows = [
        (i, j, float(rng.choice([0.1, 4.9, 2.0, 9.0])))
        for i in range(40)
        for j in rng.permutation(8)[:5].tolist()
    ]
    model = MatrixCompletion(
        name, 50.0, 1e-6, items=8, rating_range=(0.1, 4.9), max_ratings=3
    ).set_params(random_state=seed)
    model.fit(rows)
    for user in range(40):
        own = {j: rating for i, j, rating in rows if i == user}
        assert np.array_equal(model.complete_row(own), model.rows_[user].complete())


def test_a_prediction_does_not_depend_on_who_else_is_predicted(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n1,0,5\n2,0,1\n", encoding="utf-8")
    model = MatrixCompletion(
        MeansSolver(), 1.0, 1e-6, items=2, rating_range=(1, 5), random_state=0
    ).fit(path)
    hers = model.rows_["1"].complete()[1]
    assert hers != model.complete_row({})[1]
    for one in (1, 1.0, "1", np.float32(1), Decimal(1)):
        for other in (2, 2.5, np.nan, np.inf, None, "x", 10**5000):
            assert model.predict([(one, 1), (other, 1)])[0] == hers
    for other in (2, 2.5, np.nan):
        assert model.predict(np.array([[1, 1], [other, 1]]))[0] == hers
    assert model.predict(np.array([[1, 1]]).view(np.matrix))[0] == hers


def test_a_missing_user_in_a_frame_does_not_make_floats_of_the_others():
    big = 2**53 + 1
    model = MatrixCompletion(
        MeansSolver(), 1.0, 1e-6, items=2, rating_range=(1, 5), random_state=0
    ).fit([(big, 0, 5), (big - 1, 0, 1)])
    hers = model.rows_[big].complete()[1]
    assert hers != model.rows_[big - 1].complete()[1]
    users = [big, None]
    for frame in (
        pa.table({"user": users, "item": [1, 1]}),
        pd.DataFrame({"user": pd.array(users, dtype="Int64"), "item": 1}),
        pd.DataFrame({"user": pd.Categorical.from_codes([0, -1], [big]), "item": 1}),
    ):
        assert model.predict(frame)[0] == hers


@pytest.mark.parametrize(
    "ratings",
    [["secret"], [None], [[3.0]], "3", 3, {0: 3}, [3.0, 3.0], np.ones((1, 1))],
)
def test_a_score_is_of_one_number_a_pair_and_quotes_none(fitted, ratings):
    with pytest.raises(ValueError, match=r"^ratings must be numbers") as caught:
        fitted[0].score([(0, 1)], ratings)
    assert "secret" not in str(caught.value)


def test_copies_and_pickles_have_the_item_side_and_no_rows(fitted):
    model, _ = fitted
    own = {0: 4.0, 5: 1.0}
    for other in (
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        assert np.array_equal(other.complete_row(own), model.complete_row(own))
        assert not any("private" in name for name in vars(other))
        for call in (
            lambda m: m.rows_,
            lambda m: m.predict([(0, 1)]),
            lambda m: m.recommend(0),
        ):
            with pytest.raises(ValueError, match="complete_row"):
                call(other)
    assert model.rows_[0].complete().shape == (N_ITEMS,)


def test_rows_themselves_are_not_copied_or_pickled(fitted):
    rows = fitted[0].rows_
    for thing in (rows, rows[0]):
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="complete_row"):
                attempt(thing)


def test_nothing_prints_a_rating(fitted):
    model, ratings = fitted
    shown = repr(model) + repr(model.rows_) + repr(model.rows_[1]) + str(model.privacy_)
    for value in ratings.values:
        assert f"{value:.4f}"[:6] not in shown


def test_own_ratings_know_their_items_in_whatever_form_they_come(fitted):
    model, _ = fitted
    own = {7: 5.0, 0: 1.0, 3: 4.0}
    expected = model.complete_row(own)
    frame = pd.DataFrame({"rating": own.values(), "item": own.keys(), "at": 0})
    for given in (
        pd.Series(own),
        pd.Series(own)[::-1].reindex([3, 5, 0, 7]),  # one of them was not rated
        pd.Series([5.0, 1.0, 4.0, None, 2.0], index=[7, 0, 3, 1, 77], dtype=object),
        list(own.items()),
        [list(pair) for pair in own.items()],
        frame,
        pa.Table.from_pandas(frame),
    ):
        assert np.array_equal(model.complete_row(given), expected)
    whole = pd.Series(range(N_ITEMS), index=range(N_ITEMS)[::-1])
    assert np.array_equal(
        model.complete_row(whole), model.complete_row(whole[::-1].to_numpy())
    )


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        (pd.Series({1: "secret"}), "numbers"),
        (pd.Series({1: np.inf}), "finite"),
        ([(1, "secret")], "numbers"),
        ([(1, 3.0), (2, 3.0, "secret")], "numbers"),
        (pd.DataFrame({"film": ["secret"], "rating": [1.0]}), "'item' and 'rating'"),
        (pd.DataFrame({"item": [1], "rating": ["secret"]}), "numbers"),
    ],
)
def test_other_forms_are_rejected_without_being_quoted(fitted, ratings, message):
    with pytest.raises(ValueError, match=message) as caught:
        fitted[0].complete_row(ratings)
    assert "secret" not in str(caught.value)


def test_rows_are_not_handed_out_one_after_another(fitted):
    for call in (iter, list, sorted, len):
        with pytest.raises(TypeError):
            call(fitted[0].rows_)


@pytest.mark.parametrize("name", SOLVERS)
def test_an_item_side_is_shown_in_one_line(name, seed):
    model, _ = model_of(name, seed)
    shown = repr(model.factors_)
    assert shown.startswith(f"{type(model.factors_).__name__}(n_items=9, rank=")
    assert len(shown) < 80
    assert "[" not in shown
