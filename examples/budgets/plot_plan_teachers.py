"""
How many teachers does a budget need?
=====================================

Teachers are trained on disjoint rows, and their votes on public queries are released
with privacy. With more teachers the noise matters less, but each has fewer rows to
learn from. Which number is best, and which mechanism?
:func:`tacit.ensemble.plan_teachers` computes this from public facts, without any data.
It needs a guess of how many teachers agree on a label.
"""

import matplotlib.pyplot as plt

from tacit.ensemble import compare_mechanisms, plan_teachers

FACTS = {"n_rows": 40_000, "n_queries": 500, "epsilon": 1.0, "delta": 1e-6}

# %%
# Suppose that 95% of the teachers agree on most queries, and half of them on one query
# in fifty. Here is what to expect of 800 of them.

EASY_AND_HARD = [(0.98, 0.95), (0.02, 0.5)]
NAMES = ["gnmax", "confident_gnmax", "stable", "published"]
for plan in compare_mechanisms(
    **FACTS, agreement=EASY_AND_HARD, n_teachers=800, mechanisms=NAMES
):
    print(plan, end="\n\n")

# %%
# Noisy votes answer every query, and a few labels are wrong. Stable votes release
# exactly the label of most teachers, or no answer; they end after a number of missing
# answers. With the published constants they need far more teachers.
#
# The best number depends on how fast teachers learn. Suppose that a teacher guesses
# with less than about ten rows, and is good with a hundred.


def agreement(rows):
    """Agreement on easy and on hard queries, by rows of a teacher."""
    return [(0.98, 0.5 + 0.45 * rows / (rows + 15)), (0.02, 0.5)]


best = plan_teachers(**FACTS, agreement=agreement, mechanism="gnmax")
print(best)

# %%
# The plan takes the smallest number of teachers whose accuracy is within one percent of
# the best.

numbers = (10, 30, 100, 300, 600, 1_000, 2_000, 4_000)
fig, ax = plt.subplots(figsize=(6.5, 4))
for mechanism in ("gnmax", "confident_gnmax", "stable"):
    plans = [
        plan_teachers(
            **FACTS,
            agreement=agreement,
            mechanism=mechanism,
            n_teachers=n,
            max_refusals=10,
            max_answers=FACTS["n_queries"],
        )
        for n in numbers
    ]
    ax.semilogx(numbers, [plan.fraction_right for plan in plans], "o-", label=mechanism)
ax.axvline(best.n_teachers, ls="--", c="k", lw=1)
ax.set(xlabel="teachers of 40,000 rows", ylabel="queries with the right label")
ax.legend()
plt.show()

# %%
# The dashed line is the plan. All numbers are expectations, for independent votes of
# teachers on a query. Privacy does not rest on them: a wrong guess costs only accuracy.
