"""A labeler: one charge, one vote of each teacher, the same noise for the same past."""

import copy
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.ending import refused_in_a_fork
from tests.ensemble.labeling import Odd, clouds, labeler, shown

from tacit.ensemble import PrivateLabeler
from tacit.exceptions import BudgetExceeded, PlanError
from tacit.mechanisms import NO_ANSWER
from tacit.mechanisms._votes._plans import CLASS_VOTES
from tacit.privacy import Budget, Ledger

ADDED = {"neighbors": "add_or_remove_one"}


@parametrize_with_checks(
    [
        PrivateLabeler(GaussianNB(), 3, 10.0),
        PrivateLabeler(LinearRegression(), 3, 10.0, y_range=(-3, 3)),
        PrivateLabeler(make_pipeline(StandardScaler(), GaussianNB()), 3, 10.0),
        PrivateLabeler(DecisionTreeClassifier(), 3, 10.0, 1e-5, **ADDED),
    ]
)
def test_scikit_learn_accepts_the_labeler(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ["ints", "strings", "truth", "ten"])
def test_labels_of_all_kinds_are_answered(seed, kind):
    X, y, Q, t = clouds(seed)
    names = {
        "ints": np.array([-3, 8]),
        "strings": np.array(["no", "yes"]),
        "truth": np.array([False, True]),
        "ten": np.arange(10),
    }[kind]
    found = labeler(classes=names).fit(X, names[y]).label(Q)
    assert found.values.dtype.kind == names.dtype.kind
    assert found.answered.all()
    assert found.votes.shape == (40, len(names))
    assert np.mean(found.values == names[t]) > 0.85


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        RandomForestClassifier(3),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["plain", "seeded", "pipeline"],
)
def test_any_classifier_is_a_teacher_and_is_not_fitted_itself(seed, estimator):
    X, y, Q, t = clouds(seed)
    before = repr(vars(estimator))
    found = labeler(estimator, 8).fit(X, y).label(Q)
    assert np.mean(found.values == t) > 0.85
    assert repr(vars(estimator)) == before


def test_numbers_are_answered_by_the_mean_or_the_median(seed):
    X, _, Q, _ = clouds(seed, n_rows=600, n_questions=10)
    for mechanism in ("auto", "median"):
        model = labeler(
            LinearRegression(),
            50,
            classes=None,
            y_range=(-6, 6),
            n_queries=10,
            mechanism=mechanism,
        ).fit(X, X[:, 0])
        found = model.label(Q)
        assert np.abs(found.values - Q[:, 0]).mean() < 1.0
        assert not hasattr(model, "classes_")
        assert (found.votes is None) == (mechanism == "median")
        if mechanism == "auto":  # the mean before it is cut
            assert np.array_equal(np.clip(found.votes[:, 0], -6, 6), found.values)


@pytest.mark.parametrize("mechanism", [m for m in CLASS_VOTES if m != "published"])
@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_queries_alone_and_in_batches_get_the_same_answers(seed, mechanism, relation):
    X, y, Q, _ = clouds(seed, n_rows=100, n_questions=12)
    terms = {"mechanism": mechanism, "neighbors": relation, "max_refusals": 40}
    whole, single, mixed = (
        labeler(n_teachers=6, max_answers=40, **terms).fit(X, y) for _ in range(3)
    )
    batch = whole.label(Q)
    assert [single.answer(x) for x in Q] == list(batch)
    for start, end in ((0, 1), (1, 5), (5, 5), (5, 12)):
        mixed.label(Q[start:end])
    assert shown(mixed.labels_) == shown(single.labels_) == shown(batch)
    assert mixed.remaining_ == single.remaining_ == whole.remaining_


def test_numbers_alone_and_in_batches_get_the_same_answers(seed):
    X, _, Q, _ = clouds(seed, n_questions=12)
    terms = {"classes": None, "y_range": (-6, 6), "n_teachers": 6}
    tree = DecisionTreeRegressor(max_depth=2)
    batch = labeler(tree, **terms).fit(X, X[:, 0]).label(Q)
    single = labeler(tree, **terms).fit(X, X[:, 0])
    assert [single.answer(x) for x in Q] == list(batch)


def test_other_queries_rows_learners_and_budgets_meet_other_noise(seed):
    X, y, Q, _ = clouds(seed)

    def noise(model, rows=X, first=Q[0]):
        model.fit(rows, y).answer(first)
        return model.answer(Q[1]), model.labels_.votes[1] % 1

    # a teacher that votes for one, whatever it learned: what differs is noise
    odd = Odd()
    _, plain = noise(labeler(odd))
    assert (noise(labeler(odd))[1] == plain).all()
    moved = X.copy()
    moved[7] += 1
    assert (noise(labeler(odd), rows=moved)[1] != plain).any()
    assert (noise(labeler(odd), first=Q[2])[1] != plain).any()
    assert (noise(labeler(Odd("short")))[1] != plain).any()
    assert (noise(labeler(odd, random_state=4))[1] != plain).any()
    assert (noise(labeler(odd, random_state=None))[1] != plain).any()


def test_other_rows_meet_another_noise_of_the_first_threshold(seed):
    X, y, _, _ = clouds(seed)

    def threshold(rows):
        model = labeler(Odd(), mechanism="stable").fit(rows, y)
        return model._private_labeler_state._private_state._private_threshold

    moved = X.copy()
    moved[7] += 1
    assert threshold(X) == threshold(X)
    assert threshold(X) != threshold(moved)


def named_by_nobody(column):
    choose = FunctionTransformer(lambda X: X[:, column : column + 1])
    return make_pipeline(choose, GaussianNB())


def fractions(votes):
    """What is left of noisy counts without integers, up to round-off."""
    return np.round(votes - np.round(votes), 9)


def test_other_votes_meet_other_noise_also_of_learners_described_alike(seed):
    X, y, Q, _ = clouds(seed)
    X[:, 1] = X[::-1, 1]
    first, again, other = (
        labeler(named_by_nobody(column)).fit(X, y).label(Q[:5]).votes
        for column in (0, 0, 1)
    )
    assert (first == again).all()
    # were the noise the same, differences would be of votes, which are integers
    assert (fractions(first - other) != 0).any(axis=1).all()


def test_answers_after_other_votes_meet_other_noise(seed):
    X, y, Q, _ = clouds(seed)

    class Crowd(Odd):
        """Says something else in a batch than alone."""

        def predict(self, X):
            return np.full(len(X), int(len(X) > 1))

    batch, single = (labeler(Crowd()).fit(X, y) for _ in range(2))
    crowd = batch.label(Q[:3]).votes
    alone = np.array([single.label(question[None]).votes[0] for question in Q[:3]])
    assert (fractions(crowd - alone) != 0).any(axis=1).all()


def test_the_same_numbers_in_another_type_are_the_same_query(seed):
    X, y, _, _ = clouds(seed)
    Q = np.arange(20).reshape(10, 2) - 8
    wide = labeler().fit(X, y).label(Q.astype(np.float64))
    for kind in (np.float32, np.int64, np.int8):
        assert shown(labeler().fit(X, y).label(Q.astype(kind))) == shown(wide)
    assert shown(labeler().fit(X, y).label(Q.tolist())) == shown(wide)


def test_one_charge_is_made_before_training_and_covers_all_answers(seed):
    X, y, Q, _ = clouds(seed)
    ledger = Ledger(Budget(40.0, 1e-4))
    model = labeler(Odd("raises")).fit(X, y, ledger=ledger)
    (entry,) = ledger.report().entries
    assert entry.label == "PrivateLabeler"
    assert entry.event == model.plan(len(X)).event == model.privacy_.entries[0].event
    assert model.privacy_.spent <= 40.0
    model.label(Q)
    assert len(ledger.report().entries) == 1
    with pytest.raises(BudgetExceeded):
        model.fit(X, y, ledger=ledger)
    # rejected calls change nothing
    assert model.n_queried_ == 40


def test_a_second_fit_is_a_second_charge_and_begins_anew(seed):
    X, y, Q, _ = clouds(seed)
    ledger = Ledger(Budget(100.0, 1e-3))
    model = labeler().fit(X, y, ledger=ledger)
    model.label(Q[:5])
    model.fit(X, y, ledger=ledger)
    assert len(ledger.report().entries) == 2
    assert model.n_queried_ == 0
    assert len(model.labels_) == 0


def test_a_batch_that_meets_the_end_says_how_far_it_came(seed):
    X, y, Q, _ = clouds(seed)
    model = labeler(n_queries=10).fit(X, y)
    found = model.label(Q)
    assert found.n_queried == model.n_queried_ == 10
    assert len(found) == 40
    assert found.answered.tolist() == [True] * 10 + [False] * 30
    assert found[10] is NO_ANSWER
    assert found.values[10:].tolist() == [None] * 30
    assert np.isnan(found.votes[10:]).all()
    assert model.remaining_.ended
    for ask in (lambda: model.label(Q[:1]), lambda: model.answer(Q[0])):
        with pytest.raises(ValueError, match="answered all queries that were charged"):
            ask()
    assert len(model.label(Q[:0])) == 0
    assert len(model.labels_) == 10


def test_withheld_answers_end_a_labeler_that_limits_them(seed):
    X, y, Q, _ = clouds(seed)
    model = labeler(Odd("fails"), mechanism="stable", max_refusals=2)
    model.set_params(epsilon=0.1).fit(X, y)
    found = model.label(Q)
    assert found.n_queried == 3
    assert not found.answered.any()
    # withheld answers and rows not queried are both missing
    assert found.values.tolist() == [None] * 40
    assert model.remaining_.refusals == 0


@pytest.mark.parametrize(
    "how", ["raises", "warns", "prints", "fails", "nan", "unknown", "short"]
)
def test_a_teacher_that_misbehaves_votes_the_default_and_leaks_nothing(
    seed, how, capfd, recwarn
):
    X, y, Q, _ = clouds(seed)
    found = labeler(Odd(how), epsilon=500.0, n_teachers=4).fit(X, y).label(Q[:5])
    expected = 1 if how in ("warns", "prints") else 0
    assert found.values.tolist() == [expected] * 5
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_chunks_that_are_empty_or_lack_a_class_vote(seed):
    X, y, Q, _ = clouds(seed)
    none = np.empty((0, 2)), np.empty(0, dtype=int)
    found = labeler(epsilon=500.0, **ADDED).fit(*none).label(Q[:5])
    assert found.values.tolist() == [0] * 5
    few = labeler(n_teachers=20, **ADDED).fit(X[:5], y[:5]).label(Q)
    assert few.answered.all()
    one = labeler(epsilon=500.0).fit(X, np.ones(len(X), dtype=int)).label(Q)
    assert (one.values == 1).all()
    alone = labeler(n_teachers=1, epsilon=500.0).fit(X, y)
    assert np.mean(alone.label(Q).values == clouds(seed)[3]) > 0.9


REJECTED = {
    "estimator": [None, GaussianNB, StandardScaler(), "tree"],
    "n_teachers": [0, 1.5, True, None, "many", np.array([3, 4])],
    "epsilon": [0, -1.0, None],
    "delta": [0, 0.0, 1.0],
    "mechanism": ["mean", "argmax", None],
    "classes": [[1], [0, np.nan]],
    "y_range": [(0, 1)],
    "n_queries": [0, 2.5],
    "max_refusals": [-1],
    "max_answers": [0],
    "agreement": [0, 2, "most"],
    "private": ["features"],
    "neighbors": ["swap"],
    "expected_rows": [0],
    "n_jobs": [0, 1.5, True],
    "noise": ["none"],
    "random_state": [-1, "seed"],
    "verbose": [-1],
}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in REJECTED.items() for v in values]
)
def test_bad_parameters_are_rejected_before_the_charge(seed, name, value):
    X, y, _, _ = clouds(seed)
    ledger = Ledger(Budget(100.0, 1e-3))
    model = labeler().set_params(**{name: value})
    before = dict(vars(model))
    with pytest.raises((ValueError, TypeError), match=name) as caught:
        model.fit(X, y, ledger=ledger)
    assert str(caught.value).count(". ") == 0
    assert ledger.report().entries == ()
    assert dict(vars(model)) == before


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"estimator": LinearRegression(), "classes": None}, "y_range must be given"),
        ({"estimator": LinearRegression(), "y_range": (0, 1)}, "classes must be None"),
        (
            {"estimator": LinearRegression(), "classes": None, "y_range": (1, 0)},
            "the lower first",
        ),
        (
            {
                "estimator": LinearRegression(),
                "classes": None,
                "y_range": (0, 1),
                "mechanism": "gnmax",
            },
            "mechanism must be one of 'mean', 'median'",
        ),
        ({"private": "labels", **ADDED}, "private='labels' must go with"),
        ({"delta": None, **ADDED}, "delta must be given"),
        ({"classes": [0, 7]}, "labels outside the public classes"),
    ],
)
def test_parameters_that_do_not_go_together_are_rejected(seed, parameters, words):
    X, y, _, _ = clouds(seed)
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match=words):
        labeler().set_params(**parameters).fit(X, y, ledger=ledger)
    assert ledger.report().entries == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:, 0], y), "X must have 2 dimensions"),
        (lambda X, y: (X, y[:-1]), "as many rows as each other"),
        (lambda X, y: (X, y[:, None].repeat(2, axis=1)), "1d array"),
        (lambda X, y: (X, y + 0.5), "labels outside"),
        (lambda X, y: (X[:1], y[:1]), "minimum of 2"),
        (lambda X, y: (X * np.nan, y), "X contains NaN"),
        (lambda X, y: (sparse.csr_array(X), y), "takes no sparse X"),
        (lambda X, y: ([["a", 1]] * len(y), y), "X must hold numbers only"),
        (lambda X, y: ([[1.0], [1.0, 2.0]], y[:2]), "X must have 2 dimensions"),
        (lambda X, y: (X, None), "y is None"),
    ],
)
def test_rows_that_cannot_be_learned_are_rejected_before_the_charge(
    seed, change, words
):
    X, y, _, _ = clouds(seed)
    ledger = Ledger(Budget(100.0, 1e-3))
    with pytest.raises((ValueError, TypeError), match=words):
        labeler().fit(*change(X, y), ledger=ledger)
    assert ledger.report().entries == ()


def test_ids_are_for_rows_that_come_and_go(seed):
    X, y, Q, t = clouds(seed)
    people = np.arange(len(y)) % 60
    with pytest.raises(ValueError, match="ids must be None"):
        labeler().fit(X, y, ids=people)
    with pytest.raises(ValueError, match="ids must be one for each row"):
        labeler(**ADDED).fit(X, y, ids=people[1:])
    model = labeler(**ADDED).fit(X, y, ids=people)
    assert any("same id" in words for words in model.privacy_.assumptions)
    assert np.mean(model.label(Q).values == t) > 0.8


@pytest.mark.parametrize(
    "largest", [2**63, 2**70, 10**5000], ids=["63 bits", "70 bits", "long"]
)
def test_ids_of_any_size_are_kept_as_they_were_checked(seed, largest):
    X, y, _, _ = clouds(seed)
    ids = [*range(len(y) - 1), largest]
    ledger = Ledger(Budget(100.0, 1e-3, "add_or_remove_one"))
    model = labeler(**ADDED).fit(X, y, ids=ids, ledger=ledger)
    assert len(ledger.report().entries) == 1
    assert model.n_queried_ == 0


class Cell:
    """A cell that prints like all others of its kind."""

    def __init__(self, value=0.0):
        self.value = value

    def __repr__(self):
        return "Cell"


def values_of(X):
    return np.array([[cell.value for cell in row] for row in np.asarray(X)])


def test_cells_that_cannot_be_distinguished_are_rejected_before_the_charge(seed):
    X, y, Q, t = clouds(seed)
    made = np.vectorize(Cell, otypes=[object])
    learner = make_pipeline(FunctionTransformer(values_of), GaussianNB())
    ledger = Ledger(Budget(100.0, 1e-3, "add_or_remove_one"))
    with pytest.raises(ValueError, match="rows are distinguished by their content"):
        labeler(learner, **ADDED).fit(made(X), y, ledger=ledger)
    assert ledger.report().entries == ()
    fitted = labeler(learner, **ADDED).fit(made(X), y, ids=np.arange(len(y)))
    assert np.mean(fitted.label(made(Q)).values == t) > 0.8
    counted = labeler(learner).fit(made(X), y)
    assert np.mean(counted.label(made(Q)).values == t) > 0.8


def test_labels_alone_can_be_protected_and_every_report_says_so(seed):
    X, y, Q, _ = clouds(seed)
    ledger = Ledger(Budget(100.0, 1e-3))
    model = labeler(private="labels").fit(X, y, ledger=ledger)
    assert model.label(Q).answered.all()
    assert ledger.report().entries[0].label == "PrivateLabeler (labels only)"
    words = "protects labels alone: the features of all rows are taken as public"
    assert model.privacy_.assumptions[0] == words
    assert words not in labeler().fit(X, y).privacy_.assumptions


def test_classes_from_the_labels_are_stated_in_the_report(seed):
    X, y, _, _ = clouds(seed)
    told = labeler(classes=None).fit(X, y)
    assert told.classes_.tolist() == [0, 1]
    note = "the set of labels is public (taken from y; give classes=)"
    assert note in told.privacy_.assumptions
    assert note not in labeler().fit(X, y).privacy_.assumptions
    with pytest.raises(ValueError, match="y has one class"):
        labeler(classes=None).fit(X, np.zeros(len(X), dtype=int))
    with pytest.raises(ValueError, match="classes must be given for a plan"):
        labeler(classes=None).plan(100)


def test_a_plan_reads_no_row_and_is_what_the_fit_does(seed):
    X, y, _, _ = clouds(seed)
    model = labeler(n_teachers="auto")
    planned = model.plan(len(X))
    assert not hasattr(model, "n_teachers_")
    model.fit(X, y)
    assert model.n_teachers_ == planned.n_teachers
    assert model.privacy_.entries[0].event == planned.event
    assert planned.rows_per_teacher == len(X) / planned.n_teachers
    with pytest.raises(PlanError, match="delta"):
        labeler(delta=0).plan(100)


def test_nothing_planned_depends_on_a_number_of_rows_that_is_private(seed):
    X, y, _, _ = clouds(seed)
    for terms in ({}, {"expected_rows": 500}):
        few, many = (
            labeler(n_teachers="auto", **ADDED, **terms).fit(X[:n], y[:n])
            for n in (20, 300)
        )
        assert few.n_teachers_ == many.n_teachers_
        assert repr(few.plan(0)) == repr(many.plan(10**6))
        assert few.privacy_ == many.privacy_


def test_one_row_is_queried_in_any_form(seed):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    X, y, Q, _ = clouds(seed)
    forms = [Q[0], Q[:1], Q[0].tolist(), Q[:1].tolist()]
    answers = {labeler().fit(X, y).answer(form) for form in forms}
    assert len(answers) == 1
    for form in (Q[:2], Q[:0], Q[:2].tolist()):
        with pytest.raises(ValueError, match="x must be one row"):
            labeler().fit(X, y).answer(form)
    frame = pandas.DataFrame(Q, columns=["a", "b"])
    rows = pandas.DataFrame(X, columns=["a", "b"])
    one, other = labeler().fit(rows, y), labeler().fit(rows, y)
    assert one.answer(frame.iloc[0]) == other.answer(frame.iloc[[0]])
    assert shown(one.labels_) == shown(other.labels_)


def test_tables_keep_their_names_and_types(seed):
    pandas = pytest.importorskip("pandas", reason="needs the extra tacit[pandas]")
    X, y, Q, t = clouds(seed)
    rows = pandas.DataFrame(X, columns=["a", "b"], index=np.arange(len(X)) * 3)
    model = labeler().fit(rows, pandas.Series(y, index=rows.index))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    questions = pandas.DataFrame(Q, columns=["a", "b"])
    assert np.mean(model.label(questions).values == t) > 0.85
    with pytest.raises(ValueError, match="feature names should match"):
        labeler().fit(rows, y).label(questions[["b", "a"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        labeler().fit(rows, y).label(Q)


def test_sparse_rows_are_learned_and_queried(seed):
    X, y, Q, t = clouds(seed, n_questions=12)
    model = labeler(LogisticRegression(), 6).fit(sparse.csr_array(X), y)
    batch = model.label(sparse.coo_array(Q))
    assert np.mean(batch.values == t) > 0.7
    single = labeler(LogisticRegression(), 6).fit(sparse.csr_array(X), y)
    one_by_one = [single.answer(sparse.csr_array(Q)[[i]]) for i in range(12)]
    assert one_by_one == list(batch)


def test_public_queries_of_another_kind_are_rejected_and_change_nothing(seed):
    X, y, Q, _ = clouds(seed)
    model = labeler().fit(X, y)
    for bad, words in [
        (Q[:, :1], "1 features"),
        (Q[:, 0], "2 dimensions"),
        (sparse.csr_array(Q), "no sparse"),
        (np.where(Q[0] == Q, np.nan, Q), "NaN"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            model.label(bad)
    assert model.n_queried_ == 0
    assert shown(model.label(Q)) == shown(labeler().fit(X, y).label(Q))


def test_missing_values_are_left_to_learners_that_take_them(seed):
    X, y, Q, t = clouds(seed)
    X, Q = X.copy(), Q.copy()
    X[::7, 1], Q[::5, 1] = np.nan, np.nan
    found = labeler(DecisionTreeClassifier(max_depth=2)).fit(X, y).label(Q)
    assert np.mean(found.values == t) > 0.8


def test_copies_hold_what_was_released_and_cannot_answer(seed):
    X, y, Q, _ = clouds(seed)
    model = labeler().fit(X, y)
    model.label(Q[:10])
    first = shown(model.labels_)
    copies = (
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    )
    for other in copies:
        assert shown(other.labels_) == shown(model.labels_)
        assert other.privacy_ == model.privacy_
        assert other.remaining_ == model.remaining_
        assert other.n_queried_ == 10
        with pytest.raises(ValueError, match="copy of a labeler"):
            other.label(Q[10:])
    fresh = clone(model)
    assert fresh.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    for ask in (fresh.label, fresh.answer):
        with pytest.raises(NotFittedError):
            ask(Q[:1])
    with pytest.raises(NotFittedError):
        fresh.labels_  # noqa: B018
    assert model.label(Q[10:]).answered.all()
    assert all(shown(other.labels_) == first for other in copies)


def test_changed_parameters_are_rejected_after_the_fit(seed):
    X, y, Q, _ = clouds(seed)
    model = labeler().fit(X, y)
    for name, value in [("epsilon", 1.0), ("n_queries", 99), ("classes", [0, 1, 2])]:
        before = getattr(model, name)
        with pytest.raises(ValueError, match=f"{name} was changed after the fit"):
            model.set_params(**{name: value}).label(Q)
        model.set_params(**{name: before})
    assert model.label(Q).answered.all()


def test_a_forked_process_cannot_answer(seed):
    X, y, Q, _ = clouds(seed)
    model = labeler().fit(X, y)
    assert refused_in_a_fork(lambda: model.label(Q))


def test_a_second_thread_is_rejected_in_the_middle(seed):
    X, y, Q, _ = clouds(seed)
    model = labeler().fit(X, y)
    inside, leave = threading.Event(), threading.Event()

    class Slow:
        def votes(self, questions):
            inside.set()
            leave.wait(10)
            return np.zeros((15, len(questions)), dtype=np.int16)

    model._private_labeler_state = replace(
        model._private_labeler_state, _private_teachers=Slow()
    )
    other = threading.Thread(target=model.label, args=(Q[:3],))
    other.start()
    assert inside.wait(10)
    with pytest.raises(ValueError, match="in the middle of a step"):
        model.label(Q)
    leave.set()
    other.join()
    assert model.n_queried_ == 3


def test_a_query_that_fails_on_the_way_is_not_counted(seed, monkeypatch):
    X, y, Q, _ = clouds(seed)
    model, plain = labeler().fit(X, y), labeler().fit(X, y)
    model.label(Q[:4])
    step = type(model.plan(300).mechanism).step
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(type(model.plan(300).mechanism), "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.label(Q[4:])
    assert model.n_queried_ == len(model.labels_) == 4
    model.label(Q[4:])
    assert shown(model.labels_) == shown(plain.label(Q))


def test_teachers_can_be_kept_in_a_new_folder(tmp_path, seed):
    X, y, Q, _ = clouds(seed)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("")
    ledger = Ledger(Budget(100.0, 1e-3))
    for position in (tmp_path / "used", tmp_path / "used" / "file"):
        with pytest.raises(ValueError, match="teacher_folder must be a new or an em"):
            labeler(teacher_folder=position).fit(X, y, ledger=ledger)
    with pytest.raises(OSError, match="file"):
        labeler(teacher_folder=tmp_path / "used" / "file" / "x").fit(
            X, y, ledger=ledger
        )
    assert ledger.report().entries == ()
    kept = labeler(teacher_folder=tmp_path / "new").fit(X, y)
    assert len(list((tmp_path / "new").glob("private-teacher-*"))) == 15
    assert shown(kept.label(Q)) == shown(labeler().fit(X, y).label(Q))
