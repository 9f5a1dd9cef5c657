"""Membership attacks: what they show of models that remember, and of those that do not.

Each bound may be wrong with the probability that it states; where a test asks for more
than one, that is P_FAIL.
"""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.stat import P_FAIL, assert_probability_at_most

from tacit._random import as_generator
from tacit.audit import membership_attack
from tacit.plots._privacy import roc


def rows(n, rng, d=20):
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return X, y


def by_coins(n, rng, d=20):
    """Return rows that a coin each made members, and the others."""
    X, y = rows(n, rng, d)
    inside = rng.random(n) < 0.5
    return (X[inside], y[inside]), (X[~inside], y[~inside])


REMEMBERS = DecisionTreeClassifier(random_state=0)


@pytest.mark.statistical
@pytest.mark.parametrize("assigned", ["coins", "pairs"])
def test_a_model_that_remembers_is_shown_to_be_far_from_private(assigned, seed):
    rng = as_generator(seed)
    members, others = by_coins(2000, rng)
    if assigned == "pairs":
        members, others = rows(1000, rng), rows(1000, rng)
    model = REMEMBERS.fit(*members)
    options = {"assigned": assigned, "confidence": 1 - P_FAIL, "random_state": seed}
    found = membership_attack(model, members, others, **options)
    # by coins every row that is wrong is an outsider; of a pair, many are both right
    assert found.epsilon_lower > (2.0 if assigned == "coins" else 1.0)
    assert found.auc > 0.6
    # control: a model that knows nothing of rows
    dummy = DummyClassifier(strategy="stratified", random_state=0).fit(*members)
    assert membership_attack(dummy, members, others, **options).epsilon_lower < 0.2


@pytest.mark.statistical
def test_a_model_without_members_is_accused_no_more_often_than_allowed(seed):
    rng = as_generator(seed)
    n_attacks, confidence = 80, 0.9
    accused = {False: 0, True: 0}
    for remembers in accused:
        for i in range(n_attacks):
            members, others = by_coins(120, rng, d=3)
            trained_on = members if remembers else rows(60, rng, d=3)
            found = membership_attack(
                DecisionTreeClassifier(random_state=0).fit(*trained_on),
                members,
                others,
                assigned="coins",
                confidence=confidence,
                random_state=i,
            )
            accused[remembers] += found.epsilon_lower > 0
    assert_probability_at_most(accused[False], n_attacks, 1 - confidence)
    # control: a model of the members
    with pytest.raises(AssertionError):
        assert_probability_at_most(accused[True], n_attacks, 1 - confidence)


def test_without_coins_nothing_is_said_of_epsilon():
    rng = as_generator(0)
    members, others = rows(100, rng), rows(100, rng)
    # other labels, which any model tells apart, private or not
    shifted = (others[0], 1 - others[1])
    model = LogisticRegression().fit(*rows(100, rng))
    found = membership_attack(model, members, shifted)
    assert abs(found.auc - 0.5) > 0.1
    assert found.epsilon_lower is None
    assert found.bound is None
    assert "No bound on epsilon follows" in found.verdict
    assert found.to_dict()["bound"] is None


def test_the_outcome_says_that_it_is_private_data():
    rng = as_generator(0)
    members, others = by_coins(200, rng)
    found = membership_attack(
        REMEMBERS.fit(*members), members, others, assigned="coins", random_state=0
    )
    assert "itself private data" in found.verdict
    assert "add or remove" in str(found)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["verdict"] == found.verdict
    assert told["members"] + told["non_members"] == 200
    assert [rate["asked"] for rate in told["rates"]] == [0.001, 0.01, 0.1]
    assert not any("scores" in key for key in told)


def test_rates_and_areas_are_those_of_the_scores():
    rng = as_generator(0)
    members, others = rows(400, rng), rows(300, rng)
    inside, outside = rng.normal(1, 1, 400), rng.normal(0, 1, 300)
    inside[:5] = outside[:5] = 2.5  # ties

    members[0][:, 0], others[0][:, 0] = inside, outside

    def known(model, X, y):
        return X[:, 0]

    found = membership_attack(None, members, others, score=known)
    assert found.score == "known"
    higher = inside[:, None] > outside
    even = inside[:, None] == outside
    assert found.auc == pytest.approx(np.mean(higher + 0.5 * even))
    for rate in found.rates:
        assert np.mean(outside >= rate.threshold) == rate.false_positive_rate
        assert rate.false_positive_rate <= rate.asked
        assert np.mean(inside >= rate.threshold) == rate.true_positive_rate
        low, high = rate.true_positive_interval
        assert low < rate.true_positive_rate < high
    # one more outsider would be over the rate
    strict = found.rates[2]
    allowed = np.sum(outside >= np.nextafter(strict.threshold, -np.inf)) / 300
    assert allowed > strict.asked
    false, true = roc(np.array(found.scores_in), np.array(found.scores_out))
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert np.all(np.diff(false) >= 0)


@pytest.mark.statistical
def test_intervals_of_the_area_hold(seed):
    # fails wrongly with probability at most P_FAIL
    rng = as_generator(seed)
    truth, n = 0.7602, 300  # Phi(1 / sqrt(2))
    missed = {1: 0, 8: 0}
    for _ in range(n):
        inside, outside = rng.normal(1, 1, (50, 1)), rng.normal(0, 1, (40, 1))
        sides = (inside, np.zeros(50)), (outside, np.zeros(40))
        score = lambda _, X, y: X[:, 0]  # noqa: E731
        found = membership_attack(None, *sides, score=score, confidence=0.9)
        low, high = found.auc_interval
        for factor in missed:
            reach = (high - low) / 2 / factor
            missed[factor] += abs(found.auc - truth) > reach
    assert_probability_at_most(missed[1], n, 0.1)
    # control: an eighth of the interval
    with pytest.raises(AssertionError):
        assert_probability_at_most(missed[8], n, 0.1)


def overfitted(rng):
    """Return a model of few rows for many columns, so that each row moves it."""
    X, y = rows(480, rng, d=60)
    members, others = (X[:240], y[:240]), (X[240:], y[240:])
    return LogisticRegression().fit(*members), members, others


LIRA = {"score": "lira", "shadow": LogisticRegression(), "n_shadows": 16}


@pytest.mark.statistical
def test_likelihood_ratios_tell_more_than_losses(seed):
    # fails wrongly with probability at most P_FAIL, if losses tell more of no more than
    # one such model in five; they did of 1 of 40
    rng = as_generator(seed)
    n, worse = 24, 0
    for i in range(n):
        attacked = overfitted(rng)
        by_loss = membership_attack(*attacked)
        by_ratio = membership_attack(*attacked, **LIRA, random_state=i)
        worse += by_loss.auc >= by_ratio.auc
    assert by_ratio.score == "lira"
    assert_probability_at_most(worse, n, 0.2)
    # control: that losses tell more, by the same counts
    with pytest.raises(AssertionError):
        assert_probability_at_most(n - worse, n, 0.2)


@pytest.mark.slow
def test_likelihood_ratios_are_the_same_from_several_processes():
    attacked = overfitted(as_generator(0))
    alone, shared = (
        membership_attack(*attacked, **LIRA, jobs=jobs, random_state=0)
        for jobs in (1, 2)
    )
    np.testing.assert_allclose(alone.scores_in, shared.scores_in)


def test_a_score_cannot_see_the_side_of_a_row_by_its_batch():
    calls = []

    def by_batch(model, X, y):
        calls.append(X[:, 0])
        # the number of rows, and the place among them
        return len(y) + np.arange(len(y)) / len(y)

    side = np.repeat([1.0, -1.0], [300, 280])[:, None]
    found = membership_attack(
        None,
        (side[:300], np.zeros(300)),
        (side[300:], np.zeros(280)),
        score=by_batch,
        assigned="coins",
        confidence=1 - P_FAIL,  # the chance of failing wrongly
        random_state=0,
    )
    assert found.epsilon_lower == 0
    assert len(calls) == 1
    # rows and scores are still those of one another
    by_side = membership_attack(
        None,
        (side[:300], np.zeros(300)),
        (side[300:], np.zeros(280)),
        score=lambda model, X, y: X[:, 0],
        assigned="coins",
        random_state=0,
    )
    assert by_side.auc == 1.0
    assert by_side.epsilon_lower > 3


@pytest.mark.parametrize("kind", ["array", "list", "frame", "sparse", "texts"])
def test_tables_of_many_kinds_stay_what_they_are(kind):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    X = as_generator(0).normal(size=(50, 3))
    make = {
        "array": np.asarray,
        "list": np.ndarray.tolist,
        "frame": lambda part: pandas.DataFrame(part, columns=list("abc")),
        "sparse": sparse.csr_array,
        "texts": lambda part: pandas.Series(part[:, 0].astype(str)),
    }[kind]

    def first(model, table, y):
        if kind == "frame":
            return table["a"]
        if kind == "texts":
            return table.astype(float)
        return table[:, [0]].toarray()[:, 0] if kind == "sparse" else table[:, 0]

    sides = (make(X[:30]), np.zeros(30)), (make(X[30:]), np.zeros(20))
    found = membership_attack(None, *sides, score=first)
    np.testing.assert_allclose(found.scores_in, X[:30, 0])
    np.testing.assert_allclose(found.scores_out, X[30:, 0])


def test_counts_that_no_coins_give_are_refused():
    rng = as_generator(0)
    members, others = rows(800, rng), rows(200, rng)
    model = DummyClassifier().fit(*members)
    with pytest.raises(ValueError, match="fair coins hardly ever"):
        membership_attack(model, members, others, assigned="coins")
    assert membership_attack(model, members, others).bound is None
    # counts that coins may well give, and a model that tells nothing
    few = rows(480, rng), rows(520, rng)
    found = membership_attack(model, *few, assigned="coins", random_state=0)
    assert found.epsilon_lower < 0.2


@pytest.mark.parametrize("score", ["loss", "margin"])
@pytest.mark.parametrize(
    "model",
    [LinearSVC(), LogisticRegression(), DecisionTreeClassifier(max_depth=3)],
    ids=repr,
)
def test_classifiers_of_many_kinds_and_labels_are_scored(model, score):
    rng = as_generator(0)
    X, y = rows(200, rng)
    names = np.array(["no", "yes", "rather"])[y + (X[:, 1] > 1)]
    fitted = model.fit(X[:100], names[:100])
    sides = (X[:100], names[:100]), (X[100:], names[100:])
    found = membership_attack(fitted, *sides, score=score)
    # rows that are predicted right have higher scores than those that are not
    right = fitted.predict(X) == names
    scores = np.array(found.scores_in + found.scores_out)
    assert scores[right].min() >= scores[~right].max() - 1.5
    assert scores[right].mean() > scores[~right].mean()
    with pytest.raises(ValueError, match="classes_"):
        membership_attack(fitted, sides[0], (X[:2], np.array(["no", "other"])))


def test_regressors_are_scored_by_residuals():
    rng = as_generator(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.normal(size=80)
    model = KNeighborsRegressor(1).fit(X[:40], y[:40])
    found = membership_attack(model, (X[:40], y[:40]), (X[40:], y[40:]))
    assert found.auc == 1.0
    assert found.scores_in == tuple([0.0] * 40)
    linear = LinearRegression().fit(X[:40], y[:40])
    by = [
        membership_attack(linear, (X[:40], y[:40]), (X[40:], y[40:]), score=s).auc
        for s in ("loss", "margin")
    ]
    assert by[0] == by[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": "guess"}, "score must be"),
        ({"score": lambda m, X, y: np.zeros(3)}, "one number a row"),
        ({"assigned": "halves"}, "assigned must be"),
        ({"confidence": 1.5}, "confidence"),
        ({"confidence": "a"}, "confidence"),
        ({"delta": -1.0}, "delta"),
        ({"delta": float("nan")}, "delta"),
        ({"random_state": "a"}, "random_state"),
        ({"random_state": -1}, "random_state"),
        ({"non_members": (np.zeros((30, 3)), np.zeros(30))}, "the same columns"),
        ({"score": "lira"}, "shadow"),
        ({"score": "lira", "shadow": LogisticRegression(), "n_shadows": 7}, "even"),
        ({"score": "lira", "shadow": LogisticRegression(), "jobs": 0}, "jobs"),
        ({"members": ([[1.0]],)}, "members must be rows and labels"),
        ({"members": (np.zeros((3, 20)), [0, 1])}, "one label for each"),
        (
            {"assigned": "pairs", "non_members": (np.zeros((3, 20)), [0, 1, 1])},
            "as many rows as each other",
        ),
    ],
)
def test_what_cannot_be_attacked_is_refused(change, words):
    rng = as_generator(0)
    data = {"members": rows(30, rng), "non_members": rows(30, rng)}
    model = LogisticRegression().fit(*data["members"])
    with pytest.raises(ValueError, match=words):
        membership_attack(model, **(data | change))
    few = rows(4, rng)
    with pytest.raises(ValueError, match="at least 20 rows"):
        membership_attack(model, few, few, assigned="coins")


def test_the_plot_says_that_it_is_private():
    pytest.importorskip("matplotlib", reason="needs the extra tacit[plots]").use("Agg")
    rng = as_generator(0)
    members, others = rows(50, rng), rows(50, rng)
    ax = membership_attack(REMEMBERS.fit(*members), members, others).plot()
    assert "private data" in ax.get_title()
