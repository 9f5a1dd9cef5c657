"""One private linear fit with a given solver, outside the estimators.

What estimators do by themselves, solvers are given here by hand: the constant feature,
the capped loss, and several classes as a softmax or as one model a class.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit._random import as_generator
from tacit.convex import Free, HuberizedHinge, Logistic, OneVsRest, Softmax
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.privacy import Budget
from tacit.solvers import Problem
from tacit.solvers._base import INTERCEPT_FRACTION
from tacit.solvers._gradients.descent import capped_where_noisy

# half width of the rounded corner of the hinge: as published, and our default
PUBLISHED_ROUNDING, ROUNDING = 0.1, 0.5


def solver_fit(
    solver,
    split,
    loss,
    epsilon,
    seed,
    *,
    published=False,
    norm="l2",
    regularizer=None,
    ridge=0.0,
):
    """Return predictions on the test rows, and a note where there is one.

    ``published`` follows the paper: no intercept, the plain loss, and for several
    classes one model each, with an equal share of epsilon and of delta.
    """
    intercept = None if published else INTERCEPT_FRACTION
    bounds = RowBounds(1.0, norm)
    budget = Budget(epsilon, split.delta)

    def planned(margin_loss, share):
        problem = Problem(
            margin_loss,
            bounds if intercept is None else bounds.with_intercept(intercept),
            split.n_rows,
            split.X.shape[1] + (intercept is not None),
            ridge,
            Free() if regularizer is None else regularizer,
        )
        if not published:
            problem = replace(problem, loss=capped_where_noisy(problem, share))
        return solver.plan(problem, share)

    rng = as_generator(seed)
    hinge = HuberizedHinge(PUBLISHED_ROUNDING if published else ROUNDING)
    one_margin = Logistic() if loss == "logistic" else hinge
    note = ""
    if split.n_classes == 2:
        plans = [(planned(one_margin, budget), 2.0 * split.y - 1.0)]
    else:
        plans = None
        if not published:
            k = split.n_classes
            joint = Softmax(k) if loss == "logistic" else OneVsRest(hinge, k)
            try:
                plans = [(planned(joint, budget), split.y)]
            except PlanError:
                note = "one model a class"  # the solver takes a single margin
        if plans is None:
            share = (
                Budget(epsilon / split.n_classes, split.delta / split.n_classes)
                if published
                else head_budget(
                    lambda part: planned(one_margin, part), budget, split.n_classes
                )
            )
            plan = planned(one_margin, share)
            plans = [
                (plan, np.where(split.y == k, 1.0, -1.0))
                for k in range(split.n_classes)
            ]
    W = np.hstack(
        [
            solver.run(
                plan, bounded_rows(split.X, y, bounds, intercept), rng
            ).coefficients
            for plan, y in plans
        ]
    )
    return predictions(W, split, bounds, intercept), note


def head_budget(planned, budget, n_heads, steps=12):
    """Return the largest budget of one head such that all of them fit together.

    Composing the privacy curves of the heads is cheaper than adding their epsilons.
    """
    best = None
    low, high = budget.epsilon / n_heads, budget.epsilon
    for _ in range(steps):
        middle = float(np.sqrt(low * high))
        share = Budget(middle, budget.delta, budget.neighbors)
        try:
            curve = planned(share).event.curve(budget.neighbors) * n_heads
        except PlanError:
            low = middle  # too little for this solver
            continue
        if curve.fits(budget):
            best, low = share, middle
        else:
            high = middle
    if best is None:
        return Budget(epsilon=budget.epsilon / n_heads, delta=budget.delta / n_heads)
    return best


def predictions(W, split, bounds, intercept):
    """Return label codes; margins of zero count as the class of the positives."""
    weights, constant = (W, 0.0) if intercept is None else (W[:-1], intercept * W[-1])
    scores = bounds.clip(split.X_test) @ weights + constant
    if scores.shape[1] == 1:
        return (scores[:, 0] >= 0).astype(np.int64)
    return scores.argmax(axis=1)
