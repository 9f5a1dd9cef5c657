"""
A private answer by vote
========================

How many clusters do these customers form? The answer is an integer, and no noise can be
added to it. Blocks of rows vote instead, each computed by ordinary scikit-learn. If the
vote is so clear that no row can turn it, the number is released exactly.

Rows are synthetic, and seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from tacit import Seed
from tacit.mechanisms import as_generator
from tacit.stability import (
    BlockVote,
    blocks_needed,
    private_answer,
    release_probability,
    winner_and_distance,
)

CENTERS = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.5]])


def draw(spread, seed=0, n=2_400):
    """Return rows around three centers, close to them or not."""
    rng = as_generator(seed)
    return CENTERS[rng.integers(0, 3, n)] + spread * rng.normal(size=(n, 2))


def n_clusters(X, y, random_state):
    """Return the number of clusters that are best apart, from two to four."""
    scores = {}
    for k in range(2, 5):
        model = KMeans(k, n_init=1, random_state=random_state).fit(X)
        scores[k] = silhouette_score(X, model.labels_)
    return max(scores, key=scores.get)


# %%
# The function knows nothing of privacy. It gets a seed for each block, as it has an
# argument ``random_state``. How many blocks vote is known before any row is read.

epsilon, delta = 1.0, 1e-6
print(blocks_needed(epsilon, delta), "blocks let three quarters of them carry the vote")

answers = {}
for name, spread in {"clear": 0.7, "blurred": 2.2}.items():
    answers[name] = private_answer(
        BlockVote(n_clusters),
        draw(spread),
        epsilon=epsilon,
        delta=delta,
        random_state=Seed(0),
    )
    print(f"{name}: {answers[name].value}")

# %%
# Blurred clusters have no answer: blocks disagree, and which side wins could hang on
# one row. ``NoAnswer()`` is a value, it costs as much as any other, and it is false.

print(answers["clear"].privacy)

# %%
# What decides is the distance: how many rows would have to change before another answer
# could win. The optimal rule releases more than one with Laplace noise at every
# distance, most of all at small budgets.

distances = np.arange(0, 200, 2)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for epsilon in (0.1, 1.0):
    for rule, style in {"optimal": "-", "laplace": "--"}.items():
        chances = [release_probability(epsilon, delta, d, rule=rule) for d in distances]
        left.plot(distances, chances, style, label=f"epsilon {epsilon}, {rule}")
left.set(xlabel="distance, in rows", ylabel="probability of an answer")
left.legend(fontsize=8)

# %%
# Under the cover: votes of the blocks, which nobody gets to see. Here they are drawn
# from other synthetic rows.

for position, (name, spread) in enumerate({"clear": 0.7, "blurred": 2.2}.items()):
    blocks = np.array_split(draw(spread, seed=1), 79)
    votes = [n_clusters(block, None, i) for i, block in enumerate(blocks)]
    counts = [votes.count(k) for k in range(2, 5)]
    label = f"{name}: distance {winner_and_distance(votes)[1]}"
    right.bar(np.arange(2, 5) + 0.4 * position - 0.2, counts, 0.4, label=label)
right.set(xlabel="clusters", ylabel="votes of 79 blocks", xticks=[2, 3, 4])
right.legend(fontsize=8)
fig.tight_layout()
