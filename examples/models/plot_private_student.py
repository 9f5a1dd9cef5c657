"""
Any model, taught by private votes
==================================

The best model for a table is often no linear one. Can a gradient boosting be used on
private rows, and what does the privacy cost in accuracy?

Rows are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from tacit import Seed
from tacit.datasets import make_census
from tacit.ensemble import NeighborMap, PrivateLabeler, PrivateStudent, SmoothedVotes

census = make_census(23_000, random_state=0)
X, y = census.X[:20_000], census.y[:20_000]
X_public = census.X[20_000:21_000]  # without labels: nobody needs to know them
X_new, y_new = census.X[21_000:], census.y[21_000:]

# %%
# The learner is an ordinary one. A hundred copies of it are trained on two hundred
# rows each, and vote on the public rows. Noise on the votes hides each single row,
# whatever the learner does with it.

learner = HistGradientBoostingClassifier(
    max_iter=5, max_leaf_nodes=6, learning_rate=0.5, early_stopping=False
)


def teachers(epsilon):
    """Return a labeler of all public rows."""
    return PrivateLabeler(
        learner,
        100,
        epsilon=epsilon,
        delta=1e-6,
        classes=[0, 1],
        n_queries=len(X_public),
        random_state=Seed(0),
    )


# %%
# Then a student learns from the public rows and what was said of them. Which student,
# and how it learns, is free: the answers are released, and a student is made of them.
# So three of them can be compared at the cost of one. A classifier takes the class with
# most noisy votes for the truth. The default takes the noisy votes themselves and
# averages them over alike rows, which takes much of the noise off.

students = {
    "default (smoothed votes)": None,
    "logistic regression of labels": LogisticRegression(),
    "boosting of labels": learner,
}
epsilons = [0.5, 2.0, 8.0]
scores = {name: [] for name in students}
for epsilon in epsilons:
    first = PrivateStudent(teachers(epsilon)).fit(X, y, X_public=X_public)
    for name, student in students.items():
        taught = PrivateStudent(first.labeler_, student)
        taught.fit_pool(X_public, first.labels_)
        scores[name].append(taught.score(X_new, y_new))
print(first.privacy_)

# %%
# Without privacy the learner sees all rows at once. A model that always gives the more
# frequent answer is the other end.

best = learner.fit(X, y).score(X_new, y_new)
worst = max(np.mean(y_new), 1 - np.mean(y_new))
fig, ax = plt.subplots(figsize=(6, 3.5))
for name, score in scores.items():
    ax.semilogx(epsilons, score, "o-", label=name)
ax.axhline(best, color="k", ls="--", label="the learner without privacy")
ax.axhline(worst, color="gray", ls=":", label="always the same answer")
ax.set(xlabel="epsilon", ylabel="accuracy on new rows")
ax.legend(fontsize=8)
plt.show()

# %%
# ``student_`` is what to publish. It holds public rows and what was released, and no
# teacher.

print(first.student_)

# %%
# The map behind the default student is fitted on public rows alone, and maps every
# other row by itself. So private rows may be mapped too, before any private fit.

coordinates = NeighborMap(n_components=5).fit(X_public).transform(X)
print(coordinates.shape, isinstance(first.student_.regressor_, SmoothedVotes))
