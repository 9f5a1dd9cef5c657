"""Weights that learners on streams show step by step."""

import numpy as np

from tacit._random import as_generator

__all__ = ["walk"]


def walk(learner, steps, seed=0):
    """Return the weights after each step."""
    rng, state, found = as_generator(seed), learner.init(), []
    for X, y in steps:
        state = learner.step(state, X, y, rng)
        found.append(learner.weights(state))
    return np.array(found)
