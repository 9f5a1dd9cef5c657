"""
When only the labels are private
================================

The participants of a study and their features are public. Only their answers must stay
private. Is this easier than to protect all of a row?

The digits are public and stand for such a study. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from tacit import Seed
from tacit.ensemble import PrivateLabeler, PrivateStudent

images, digits = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(images, digits, test_size=400, random_state=0)
print(X.shape)

# %%
# With ``private="labels"`` features are public. The queries may then be the rows
# themselves, so that no other public rows are needed: each label affects the vote of
# one teacher, also in the query of its own row. Here every row is a query.

learner = KNeighborsClassifier(1)


def fitted(epsilon):
    """Return a student of private labels."""
    labeler = PrivateLabeler(
        learner,
        60,
        epsilon=epsilon,
        delta=1e-5,
        classes=range(10),
        n_queries=len(X),
        private="labels",
        random_state=Seed(0),
    )
    return PrivateStudent(labeler).fit(X, y)


student = fitted(8.0)
print(student.privacy_)

# %%
# The report states what is protected, and what is not. Few votes and ten classes make
# noisy answers. The default student averages them over similar images, which it finds
# by the public features of all rows.

right = np.mean(student.labels_.values == y[student.questions_])
print(f"{right:.0%} of the answers are right, and {student.score(X_new, y_new):.0%} of")
print("the predictions of the student for new images")

# %%
# A forest learns from the released labels, without a correction for noise. It costs no
# budget to try it on the same answers.

epsilons = [2.0, 4.0, 8.0, 16.0]
smooth, plain = [], []
for epsilon in epsilons:
    student = fitted(epsilon)
    smooth.append(student.score(X_new, y_new))
    forest = PrivateStudent(student.labeler_, ExtraTreesClassifier(30, random_state=0))
    forest.fit_pool(X[student.questions_], student.labels_)
    plain.append(forest.score(X_new, y_new))
best = learner.fit(X, y).score(X_new, y_new)

fig, ax = plt.subplots(figsize=(6, 3.5))
ax.semilogx(epsilons, smooth, "o-", label="default student")
ax.semilogx(epsilons, plain, "s-", label="forest of labels")
ax.axhline(best, color="k", ls="--", label="the learner without privacy")
ax.axhline(0.1, color="gray", ls=":", label="guessing")
ax.set(xlabel="epsilon, of labels only", ylabel="accuracy on new images")
ax.set_ylim(0, 1.02)
ax.legend(fontsize=8)
plt.show()
