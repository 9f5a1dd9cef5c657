"""
Which columns matter, released privately
========================================

A survey has 300 questions, and a score that four of them explain. Which four is worth
publishing, and so is a model of only those. But a selection made from the answers
reveals something about the people who gave them. How many people does it take to select
the right columns with a budget of 1, and how much accuracy does the model then lose?

The survey is synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.pipeline import make_pipeline

from tacit import Budget, Ledger, Seed
from tacit.evaluation import rows_for_support
from tacit.feature_selection import BlockVoteSelector, PeelingSelector
from tacit.linear_model import LinearRegression
from tacit.mechanisms import as_generator

N_QUESTIONS, RELEVANT = 300, (12, 80, 81, 240)
# answers are from 1 to 5, and scores from 0 to 40: both stand in the questionnaire
ANSWERS, SCORES = [(1, 5)] * N_QUESTIONS, (0, 40)
DELTA = 1e-6


def survey(n, seed):
    """Return answers and scores of ``n`` people; the questions 80 and 81 are alike."""
    rng = as_generator(seed)
    mood = rng.normal(size=(n, N_QUESTIONS))
    mood[:, 81] = 0.6 * mood[:, 80] + 0.8 * mood[:, 81]
    X = np.clip(np.rint(3 + mood), 1, 5)
    y = 20 + X[:, list(RELEVANT)] @ [1.5, -1.5, 1.5, 1.5] + rng.normal(0, 1.5, n)
    return X, y


X, y = survey(16_000, 0)
X_test, y_test = survey(4_000, 1)

# %%
# :class:`tacit.feature_selection.PeelingSelector` chooses one question after another,
# each with noise, and always answers. Its report says what it cost.

selector = PeelingSelector(
    1.0,
    DELTA,
    n_features_to_select=4,
    feature_bounds=ANSWERS,
    y_range=SCORES,
    random_state=Seed(0),
)
selector.fit(X[:8_000], y[:8_000])
print(selector.selection_)
print(selector.privacy_)

# %%
# :class:`tacit.feature_selection.BlockVoteSelector` asks any selector on blocks of
# people, and releases what most of them say: by default which questions enter the path
# of the lasso first. With too few people for the blocks it gives no answer, rather than
# a wrong one. So it does where the selector is not up to its task: scikit-learn's
# ``SelectKBest`` looks at one question at a time.

votes = BlockVoteSelector(1.0, DELTA, n_features_to_select=4, random_state=Seed(0))
for n in (1_000, 16_000):
    print(f"lasso path, {n:6} people: {votes.fit(X[:n], y[:n]).selection_}")
alone = sklearn.clone(votes).set_params(selector=SelectKBest(f_regression, k=4))
print(f"k best,      16000 people: {alone.fit(X, y).selection_}")

# %%
# How many people does each need? Ten surveys of each size, and the share in which all
# four questions are found and no other. Dotted lines are what
# :func:`tacit.evaluation.rows_for_support` expects without data. It knows the size of
# the weights in units of the ranges, and takes all questions to be unlike each other.

sizes = np.array([500, 1_000, 2_000, 4_000, 8_000])
subjects = {
    "peeling, pursuit": ("pursuit", selector),
    "peeling, correlation": (
        "correlation",
        sklearn.clone(selector).set_params(method="correlation"),
    ),
    "votes of blocks": ("blocks", votes),
}
surveys = [survey(int(sizes[-1]), seed) for seed in range(10, 20)]


def share_found(subject, n):
    """Return how often just the right questions are selected."""
    hits = 0
    for seed, (answers, scores) in enumerate(surveys):
        found = subject.set_params(random_state=Seed(seed)).fit(answers[:n], scores[:n])
        hits += found.selection_ == RELEVANT
    return hits / len(surveys)


for name, (method, subject) in subjects.items():
    shares = [share_found(subject, n) for n in sizes]
    expected = rows_for_support(
        N_QUESTIONS, 4, method=method, epsilon=1.0, signal=3.0, noise=1.5, spread=0.5
    )
    print(f"{name:22} {shares}, expected from {expected:,} on")
    (line,) = plt.plot(sizes, shares, "o-", label=name)
    plt.axvline(expected, color=line.get_color(), ls=":")
plt.xscale("log")
plt.xlabel("people")
plt.ylabel("all four found, and no other")
plt.legend()
plt.show()

# %%
# The alike questions 80 and 81 are where the methods differ. They have opposite
# weights, so that each hides the other: pursuit takes out of the scores what the first
# of them explains, and then sees the second.
#
# In a pipeline the selection and the model share one ledger. Half of the budget for
# each is a fair start.

with sklearn.config_context(enable_metadata_routing=True):
    half = sklearn.clone(selector).set_params(epsilon=0.5, random_state=Seed(0))
    model = LinearRegression(
        0.5, DELTA, x_norm=8.0, y_range=SCORES, random_state=Seed(0)
    )
    pipeline = make_pipeline(
        half.set_fit_request(ledger=True), model.set_fit_request(ledger=True)
    )
    ledger = Ledger(Budget(1.0, 2 * DELTA))
    pipeline.fit(X, y, ledger=ledger)
    print(f"selected, private  R2 {pipeline.score(X_test, y_test):.3f}")
    print(f"spent {ledger.spent():.3f} of 1")

wide = LinearRegression(
    1.0, DELTA, x_norm=60.0, y_range=SCORES, random_state=Seed(0)
)  # all 300 questions
print(f"all, private       R2 {wide.fit(X, y).score(X_test, y_test):.3f}")
plain = PlainLinearRegression().fit(X, y)
print(f"all, not private   R2 {plain.score(X_test, y_test):.3f}")

# %%
# Naming four questions first leaves the model four weights to hide instead of 300.
