"""The student by default: the one of a short list that the answers speak for."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor

from tacit._random import as_generator
from tacit.ensemble._shares import VoteClassifier, offsets
from tacit.ensemble._smoothing import SmoothedVotes

__all__ = ["chosen_classifier", "chosen_regressor"]

FOLDS = 5
# Answers below which nothing is compared, and the first rule is taken
LEAST = 20
# Standard errors by which a rule must be better than those before it. The first one was
# the best or little worse on most problems that were tried
DOUBT = 1.5
# Rules for classes: a regressor, and how much of the offsets is added. All of them is
# too much where teachers disagree, as a rare class then gets more votes than it wins
RULES = (
    ("smooth", 0.5),
    ("smooth", 1.0),
    ("smooth", 0.0),
    ("constant", 0.0),
    ("trees", 0.0),
)
KINDS = ("smooth", "constant", "trees")


def chosen_classifier(pool, shares, answered, classes):
    """Return the classifier that agrees with most votes about rows it had not seen.

    Parameters
    ----------
    pool
        Public rows.
    shares
        Noisy shares of the votes, one column a class.
    answered
        Which rows have shares.
    classes
        Labels, in the order of the columns.
    """
    # shares sum to one: what all classes of a row have in common is noise
    shares = shares - (shares.sum(axis=1, keepdims=True) - 1) / shares.shape[1]
    kind, balance = RULES[_best(_held_out(pool, shares, answered, _agreements))]
    model = VoteClassifier(_learner(kind, several=True), classes, balance)
    return _fitted(model, kind, pool, shares, answered)


def chosen_regressor(pool, goals, answered):
    """Return the regressor that is nearest to answers about rows it had not seen.

    Parameters
    ----------
    pool
        Public rows.
    goals
        Noisy numbers.
    answered
        Which rows have one.
    """
    kind = KINDS[_best(_held_out(pool, goals, answered, _nearness))]
    return _fitted(_learner(kind, several=False), kind, pool, goals, answered)


def _agreements(found, goals, weights):
    """Return the noisy share of votes that each rule agrees with, one row a rule."""
    added = offsets(found["smooth"], goals, weights)
    rows = np.arange(len(goals))
    return np.array(
        [
            goals[rows, (found[kind] + balance * added).argmax(axis=1)]
            for kind, balance in RULES
        ]
    )


def _nearness(found, goals, weights):
    """Return minus the squared distance of each rule from the answers."""
    return np.array([-((goals - found[kind]) ** 2) for kind in KINDS])


def _held_out(pool, goals, answered, judged):
    """Return what each rule gains on each answered row, fitted without that row."""
    # [student:choice] noise of a row is independent of what was fitted without it
    if answered.sum() < LEAST:
        return np.zeros((1, 1))
    X = np.asarray(pool, dtype=np.float64)
    smooth = SmoothedVotes()
    # the map looks at public rows alone, and so is the same for all folds
    Z = smooth._placed(X)
    # a fixed seed, as nothing here is secret; the same student for the same answers
    places = as_generator(0).permutation(np.flatnonzero(answered))
    gains = []
    for fold in range(FOLDS):
        out = places[fold::FOLDS]
        weights = answered.astype(np.float64)
        weights[out] = 0.0
        seen = weights > 0
        smooth._solve(Z, goals, weights)
        trees = _learner("trees", several=goals.ndim > 1).fit(X[seen], goals[seen])
        found = {
            "constant": np.broadcast_to(goals[seen].mean(axis=0), goals.shape),
            "smooth": (Z @ smooth.coef_ + smooth.intercept_).reshape(goals.shape),
            "trees": trees.predict(X),
        }
        gains.append(judged(found, goals, weights)[:, out])
    return np.hstack(gains)


def _best(gains):
    """Return the place of the first rule that may be as good as the best one."""
    behind = gains[gains.mean(axis=1).argmax()] - gains
    error = behind.std(axis=1) / np.sqrt(gains.shape[1])
    return int(np.argmax(behind.mean(axis=1) <= DOUBT * error))


def _learner(kind, several):
    if kind == "constant":
        return DummyRegressor()
    if kind == "smooth":
        return SmoothedVotes()
    trees = HistGradientBoostingRegressor(
        max_iter=30,
        max_depth=3,
        min_samples_leaf=50,
        categorical_features=None,
        early_stopping=False,
        random_state=0,
    )
    return MultiOutputRegressor(trees) if several else trees


def _fitted(model, kind, pool, goals, answered):
    if kind == "smooth":  # which learns from rows without an answer too
        return model.fit(pool, goals, sample_weight=answered.astype(np.float64))
    rows = pool.iloc[answered] if hasattr(pool, "iloc") else pool[answered]
    return model.fit(rows, goals[answered])
