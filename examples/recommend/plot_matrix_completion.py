"""
Recommend films without revealing who likes what
================================================

A film club has ratings of its members and wants to recommend films to each of them.
What members like is their own business: nobody, not even all other members together,
should learn what one of them has rated, or how. What can be published, what does each
member make of it, and how large must a club be?

Ratings are synthetic. Seeds are fixed for reproduction only.
"""

import matplotlib.pyplot as plt
import numpy as np

from tacit import Budget, Ledger, Seed
from tacit.mechanisms import as_generator
from tacit.recommend import MatrixCompletion

rng = as_generator(0)
N_FILMS = 60
films = [f"film {j}" for j in range(N_FILMS)]
quality = rng.normal(0.0, 0.5, N_FILMS)
kind = rng.normal(0.0, 1.0, (N_FILMS, 2))  # how funny a film is, and how sad


def club(n_members):
    """Return ratings of members, and some that are kept apart to compare with."""
    level = rng.normal(3.3, 0.4, n_members)
    taste = rng.normal(0.0, 0.5, (n_members, 2))
    seen = rng.uniform(size=(n_members, N_FILMS)) < 0.35
    noise = rng.normal(0.0, 0.5, seen.shape)
    all_ratings = np.clip(level[:, None] + quality + taste @ kind.T + noise, 1, 5)
    apart = seen & (rng.uniform(size=seen.shape) < 0.1)

    def rows(where):
        return [
            (f"member {i}", films[j], all_ratings[i, j])
            for i, j in zip(*np.nonzero(where), strict=True)
        ]

    return rows(seen & ~apart), rows(apart)


ratings, held_out = club(4_000)

# %%
# What a fit will do and spend can be read before any rating is. The catalogue of films
# and the range of ratings are public, and set without the data.


def model(epsilon, solver="als"):
    """Return a model of the club."""
    return MatrixCompletion(
        solver, epsilon, 1e-6, items=films, rating_range=(1, 5), random_state=Seed(0)
    )


print(model(epsilon=2.0).plan(n_users=4_000))

# %%
# The fit is charged once. What it publishes is the item side: a vector and an offset
# for each film, with noise that hides any one member, with all of their ratings.

ledger = Ledger(Budget(epsilon=2.0, delta=1e-6))
completion = model(epsilon=2.0).fit(ratings, ledger=ledger)
side = completion.factors_
print(f"published: {side.vectors.shape[1]} numbers and an offset for each film")
print(f"offsets against quality: {np.corrcoef(side.offsets, quality)[0, 1]:.2f}")

# %%
# Each member completes their own row from the item side and their own ratings. Their
# row reveals what they like, so it is for them only; this is called joint differential
# privacy.

mine = completion.rows_["member 7"]
print("I have rated", len(mine.ratings), "films. Next I should see:")
for film, score in zip(*mine.top(3), strict=True):
    print(f"  {film:8s} {score:.2f}")

# %%
# Somebody who joins later does the same at home. Nothing is charged for them: they read
# what is published, and reveal to nobody what they like.

newcomer = {"film 3": 5.0, "film 11": 1.0, "film 20": 4.0}
row = completion.complete_row(newcomer)
print("best for the newcomer:", films[int(np.argmax(row))])

# %%
# How good is it? Errors on the ratings kept apart are compared with those of a guess
# that each member can make by themselves, the mean of their own ratings.


def error_of_own_means(ratings, held_out):
    """Return the error of each member's own mean rating."""
    own = {}
    for member, _, rating in ratings:
        own.setdefault(member, []).append(rating)
    guesses = [np.mean(own.get(member, [3.0])) for member, _, _ in held_out]
    return np.sqrt(np.mean((np.array([r for _, _, r in held_out]) - guesses) ** 2))


def error(fitted, held_out):
    """Return the error of private predictions."""
    return -fitted.score([row[:2] for row in held_out], [row[2] for row in held_out])


epsilons = [0.3, 1.0, 3.0, 10.0]
for n_members in (1_000, 4_000, 16_000):
    table, apart = (ratings, held_out) if n_members == 4_000 else club(n_members)
    errors = [error(model(epsilon).fit(table), apart) for epsilon in epsilons]
    plt.semilogx(epsilons, errors, marker="o", label=f"{n_members:,} members")
plt.axhline(
    error_of_own_means(ratings, held_out), color="gray", ls="--", label="own mean"
)
plt.axhline(0.5, color="black", ls=":", label="noise of ratings")
plt.xlabel("epsilon")
plt.ylabel("error of a predicted rating")
plt.legend()
plt.show()

# %%
# A larger club hides each member in more others, so that the same guarantee costs less.
# Nothing about ratings is in what may be passed on: a copy of the model has the item
# side, and completes the row of whoever brings their own ratings.

print(completion.privacy_)
