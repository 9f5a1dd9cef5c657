"""
A service that answers one query at a time
==========================================

A clinic has trained models on its patients and answers queries of others, one case at a
time. Which answers can be released without noise, when is there no answer, how many
queries are possible, and what happens if the machine is restarted?

Rows are synthetic. Seeds are fixed for reproduction only.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from tacit import Budget, Ledger, Seed
from tacit.ensemble import DurableLabeler, PrivateLabeler, VoteClassifier
from tacit.mechanisms import NO_ANSWER, as_generator

rng = as_generator(0)


def people(n):
    """Return measurements of people and whom to watch: those on the outer ring."""
    outer = rng.uniform(size=n) < 0.5
    far = np.where(outer, rng.normal(1.0, 0.12, n), np.abs(rng.normal(0, 0.18, n)))
    turn = rng.uniform(0, 2 * np.pi, n)
    labels = np.where(outer, "watch", "send home")
    return np.column_stack([far * np.cos(turn), far * np.sin(turn)]), labels


X, y = people(30_000)
queries, truth = people(1_000)  # public

# %%
# A decision tree is not private, and does not have to be. Three hundred of them are
# trained on a hundred rows each. A patient is in one of these chunks, and can change
# one vote of three hundred. The mechanism ``"stable"`` releases the exact result of
# the vote, but only where no single patient could have changed it.


def labeler():
    """Return the service, with the same parameters in every process."""
    return PrivateLabeler(
        DecisionTreeClassifier(max_depth=6),
        300,
        epsilon=4.0,
        delta=1e-6,
        mechanism="stable",
        max_refusals=5,
        classes=["send home", "watch"],
        random_state=Seed(0),
    )


# %%
# The plan reads no row. It states how clear a vote must be for an answer: the lead of
# the winner has to be more than twice the distance.

planned = labeler().plan(n_rows=30_000)
votes = planned.mechanism
print(f"{planned.rows_per_teacher:.0f} rows per teacher")
for chance in (0.5, 0.99):
    distance = votes.distance_needed(1 - chance)
    print(
        f"released with probability {chance} from a lead of {2 * distance + 1} votes on"
    )

# %%
# One charge is made before the teachers are trained. Then come the queries. No answer
# is a release too: it reveals that the vote was close.

folder = Path(mkdtemp())
ledger = Ledger.open(
    f"sqlite:///{folder / 'budget.db'}", dataset="clinic", budget=Budget(4.0, 1e-5)
)
with DurableLabeler(labeler(), folder / "service", ledger=ledger) as service:
    service.fit(X, y)
    for x in queries[:5]:
        released = service.answer(x)
        print(np.round(x, 2), "no answer" if released is NO_ANSWER else released)
    print(service.remaining)

# %%
# The machine is restarted. The folder has the teachers, the number of withheld answers
# and the secret threshold, so that nothing is trained, charged or drawn again, and the
# rows of the clinic are not needed any more.

ledger = Ledger.open(f"sqlite:///{folder / 'budget.db'}", dataset="clinic")
with DurableLabeler(labeler(), folder / "service", ledger=ledger) as service:
    print(
        "resumes after", service.n_queried, "queries, spent", round(ledger.spent(), 3)
    )
    rest = service.label(queries[5:])
    released = service.labels
    print(rest.n_queried, "more queries,", service.remaining)

# %%
# Answers are missing where labels change. All others were released exactly and used no
# budget: with fewer hard queries there would have been more of them. The sixth query
# without an answer, after the five that were allowed, was the last one.

queried = queries[: released.n_queried]
fig, ax = plt.subplots(figsize=(5, 5))
for label, color in (("send home", "tab:green"), ("watch", "tab:red")):
    chosen = released.answered & (released.values == label)
    ax.plot(*queried[chosen].T, ".", ms=5, c=color, label=label)
ax.plot(*queried[~released.answered].T, "x", ms=8, c="k", label="no answer")
ax.set(
    title=f"{released.answered.sum()} answers, {released.missing.sum()} without answer"
)
ax.set_aspect("equal")
ax.legend(loc="upper right", fontsize=8)
plt.show()

# %%
# How good are the answers? The truth is known here, as the people are synthetic.

right = released.values == truth[: released.n_queried]
print(f"{right[released.answered].mean():.1%} of the answers are right")

# %%
# For a label of every query, and a known number of queries, take noisy votes instead of
# exact ones. Here they are as accurate. On hard queries the two differ: noisy votes
# always give a label, and close votes are decided by the noise.

noisy = labeler().set_params(mechanism="gnmax", n_queries=1_000).fit(X, y)
labels = noisy.label(queries)
print(f"{np.mean(labels.values == truth):.1%} of all {len(labels)} labels are right")
print(noisy.remaining_)

# %%
# The noisy vote counts were released too. A model fitted to them needs no more queries,
# and may be published, as it depends on released numbers only.

fractions = labels.votes / noisy.n_teachers_
model = VoteClassifier(KNeighborsRegressor(20), noisy.classes_).fit(queries, fractions)
new, known = people(1_000)
print(f"the model is right on {model.score(new, known):.1%} of other people")
