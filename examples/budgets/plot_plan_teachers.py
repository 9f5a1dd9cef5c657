"""
How many teachers does a budget need?
=====================================

Teachers are trained on disjoint rows, and their votes on public questions are released
with privacy. More teachers drown the noise, and fewer have more rows to learn from.
Which number is best, and which mechanism? :func:`tacit.ensemble.plan_teachers` answers
from public facts, before there is any data. All it needs is a guess of how often a
teacher gives the label that most of them give.
"""

import matplotlib.pyplot as plt

from tacit.ensemble import compare_mechanisms, plan_teachers

FACTS = {"n_rows": 40_000, "n_queries": 500, "epsilon": 1.0, "delta": 1e-6}

# %%
# Suppose that teachers agree in 95 of 100 cases on most questions, and are divided on
# one question in fifty. Here is what 800 of them can do.

EASY_AND_HARD = [(0.98, 0.95), (0.02, 0.5)]
NAMES = ["gnmax", "confident_gnmax", "stable", "published"]
for plan in compare_mechanisms(
    **FACTS, agreement=EASY_AND_HARD, n_teachers=800, mechanisms=NAMES
):
    print(plan, end="\n\n")

# %%
# Noisy votes answer every question, and a few labels are wrong. Stable votes answer
# with the very label that most teachers give, and nothing else; they pay for rejections
# alone, and end when these are used up. With the constants as they were published they
# need far more teachers.
#
# How teachers learn decides how many there should be. Say a teacher guesses when it has
# less than some ten rows, and is good with a hundred.


def learned(rows):
    """Agreement on easy and on hard questions, by rows of a teacher."""
    return [(0.98, 0.5 + 0.45 * rows / (rows + 15)), (0.02, 0.5)]


best = plan_teachers(**FACTS, agreement=learned, mechanism="gnmax")
print(best)

# %%
# The plan takes the fewest teachers that come within one percent of the best number. So
# it keeps clear of teachers that are weak for no gain.

numbers = (10, 30, 100, 300, 600, 1_000, 2_000, 4_000)
fig, ax = plt.subplots(figsize=(6.5, 4))
for mechanism in ("gnmax", "confident_gnmax", "stable"):
    plans = [
        plan_teachers(
            **FACTS,
            agreement=learned,
            mechanism=mechanism,
            n_teachers=n,
            max_refusals=10,
            max_answers=FACTS["n_queries"],
        )
        for n in numbers
    ]
    ax.semilogx(numbers, [plan.fraction_right for plan in plans], "o-", label=mechanism)
ax.axvline(best.n_teachers, ls="--", c="k", lw=1)
ax.set(xlabel="teachers of 40,000 rows", ylabel="questions with the right label")
ax.legend()
plt.show()

# %%
# The dashed line is the plan. The figures are expectations: votes are taken as
# independent, which holds for teachers of disjoint rows, given the question. Privacy
# rests on none of them, and a guess that is wrong costs accuracy alone.
