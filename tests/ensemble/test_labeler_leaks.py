"""What a labeler shows of private rows: what its mechanism released, and no more."""

import functools
import json
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from tests.ensemble.labeling import Odd, clouds, labeler

from tacit.audit import assert_replays, replay
from tacit.ensemble import _rows
from tacit.mechanisms._votes._plans import CLASS_VOTES
from tacit.privacy import Budget, Ledger


def neighbors(seed, relation="replace_one"):
    """Return two tables, of which the first has one row far out."""
    X, y, Q, _ = clouds(seed, n_rows=60, n_questions=8)
    Z, z = X.copy(), y.copy()
    X[5], y[5] = (10.0, 10.0), 1 - y[5]
    if relation == "replace_one":
        return (X, y), (Z, z), Q
    return (X, y), (np.delete(Z, 5, axis=0), np.delete(z, 5)), Q


class Turned(ClassifierMixin, BaseEstimator):
    """Votes by whether it saw the row far out."""

    def fit(self, X, y):
        self.vote_ = int(np.abs(X).max() > 8)
        return self

    def predict(self, X):
        return np.full(len(X), self.vote_)


def labeled(X, y, *, Q, **terms):
    """Train and ask; return all that is shown."""
    model = labeler(**{"n_teachers": 6, "n_queries": 8, "max_refusals": 8, **terms})
    model.fit(X, y)
    found = model.label(Q[:5]), [model.answer(x) for x in Q[5:]]
    return model, found


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
@pytest.mark.parametrize("mechanism", [m for m in CLASS_VOTES if m != "published"])
def test_neighbors_differ_in_inputs_of_the_mechanism_alone(seed, mechanism, relation):
    first, second, Q = neighbors(seed, relation)
    train = functools.partial(
        labeled,
        Q=Q,
        estimator=Turned(),
        mechanism=mechanism,
        neighbors=relation,
        max_answers=8,
    )
    report = assert_replays(train, first, second, redraw=True)
    assert len(report.entries) >= 8
    assert any(entry.moved > 0 for entry in report.entries)


@pytest.mark.parametrize("mechanism", ["mean", "median"])
def test_neighbors_of_numbers_differ_in_inputs_of_the_mechanism_alone(seed, mechanism):
    (X, _), (Z, _), Q = neighbors(seed)
    train = functools.partial(
        labeled,
        Q=Q,
        estimator=DecisionTreeRegressor(max_depth=2),
        mechanism=mechanism,
        classes=None,
        y_range=(-4, 4),
    )
    report = assert_replays(train, (X, X[:, 0]), (Z, Z[:, 0]), redraw=True)
    assert any(entry.moved > 0 for entry in report.entries)


@pytest.mark.parametrize("how", ["raises", "warns", "prints", "fails", "nan"])
def test_learners_that_misbehave_on_one_row_cannot_be_identified(seed, how):
    first, second, Q = neighbors(seed)

    class Touchy(ClassifierMixin, BaseEstimator):
        """Misbehaves where it sees the row far out."""

        def fit(self, X, y):
            far = np.abs(X).max() > 8
            self.inner_ = (Odd(how) if far else GaussianNB()).fit(X, y)
            return self

        def predict(self, X):
            return self.inner_.predict(X)

    report = assert_replays(
        functools.partial(labeled, Q=Q, estimator=Touchy()), first, second, redraw=True
    )
    assert any(entry.moved > 0 for entry in report.entries)


def test_a_row_that_reaches_all_teachers_is_found(seed, monkeypatch):
    first, second, Q = neighbors(seed)

    def everything(X, y, n_chunks, **_):
        return [np.arange(len(X))] * n_chunks

    monkeypatch.setattr(_rows, "chunk_members", everything)
    # a learner that is turned by one row, so that all votes turn
    report = replay(
        functools.partial(labeled, Q=Q, estimator=Turned()), first, second, redraw=True
    )
    assert any("over the declared sensitivity" in v for v in report.violations)


def test_a_learner_that_is_turned_by_one_row_is_covered(seed):
    first, second, Q = neighbors(seed)
    report = assert_replays(
        functools.partial(labeled, Q=Q, estimator=Turned()), first, second, redraw=True
    )
    # one vote: one class has one more, and the other one less
    entry = max(report.entries, key=lambda entry: entry.moved)
    assert entry.moved == pytest.approx(entry.sensitivity)


def test_an_attribute_with_rows_would_be_found(seed):
    first, second, Q = neighbors(seed)

    def leaking(X, y):
        model, found = labeled(X, y, Q=Q)
        model.n_of_one_ = int(y.sum())
        return model, found

    assert any("n_of_one_" in v for v in replay(leaking, first, second).violations)


def test_only_private_names_hold_private_things(seed):
    (X, y), _, Q = neighbors(seed)
    # numbers that are nowhere else, as they would be found in bytes
    X = X + np.pi / 7
    model, _ = labeled(X, y, Q=Q)
    private = [name for name in vars(model) if name.startswith("_private_")]
    assert private == ["_private_labeler_state"]
    standing = vars(model)["_private_labeler_state"]
    secrets = [standing._private_key, standing._private_digest]
    rows = [value.tobytes() for value in X[:, 0]]
    content = pickle.dumps(model)
    assert not any(secret in content for secret in secrets + rows)
    state = {n: v for n, v in vars(model).items() if n not in private}
    strings = [
        repr(model),
        str(model),
        repr(state),
        repr(standing),
        repr(model.labels_),
    ]
    strings.append(json.dumps(model.privacy_.to_dict()))
    for text in strings:
        assert not any(repr(float(value)) in text for value in X.ravel())
        assert not any(repr(secret) in text for secret in secrets)
    # of the standing itself, all that is not public is called so
    assert {n for n in vars(standing) if not n.startswith("_private_")} == {
        "planned",
        "n_queried",
        "process",
    }
    planted = labeler(n_teachers=6)
    planted.rows_ = X
    assert rows[0] in pickle.dumps(planted)


def test_what_remains_follows_from_answers(seed):
    # of two runs with the same answers, what remains is the same, whatever the rows
    (X, y), (Z, z), Q = neighbors(seed)
    model, other = (
        labeler(Odd(), mechanism="stable", epsilon=500.0, max_refusals=3).fit(*rows)
        for rows in ((X, y), (Z[::-1].copy(), z[::-1].copy()))
    )
    assert list(model.label(Q)) == list(other.label(Q))
    assert model.remaining_ == other.remaining_


@pytest.mark.parametrize("relation", ["replace_one", "add_or_remove_one"])
def test_cells_that_python_cannot_read_are_rejected_in_words_of_our_own(relation):
    ledger = Ledger(Budget(50.0, 1e-4, relation))
    days = pa.array([1] * 299 + [10**8], pa.int32()).cast(pa.date32())
    X = pd.DataFrame({"d": pd.Series(pd.arrays.ArrowExtensionArray(days))})
    learner = make_pipeline(OneHotEncoder(handle_unknown="ignore"), GaussianNB())
    with pytest.raises(ValueError, match="cells that Python can read") as error:
        labeler(learner, neighbors=relation).fit(X, clouds(0)[1], ledger=ledger)
    assert error.value.__context__ is None
    assert ledger.spent() == 0
