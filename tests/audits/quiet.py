"""All noise turned down at once, for controls of whole estimators."""

from contextlib import contextmanager

import numpy as np
import pytest

from tacit.mechanisms import noise as draws
from tacit.mechanisms.threshold import GRID

__all__ = ["Served", "quieter"]

ADDED = ("rounded_normal", "discrete_laplace", "rounded_gamma_norm")
CHOSEN = ("exponential_index", "permute_and_flip_index")


@contextmanager
def quieter(part):
    """Draw this part of all noise that mechanisms add, and choose so much sharper.

    It is for whole estimators, whatever they plan: every mechanism on the grid draws
    through these functions.
    """
    with pytest.MonkeyPatch.context() as patch:
        if part != 1.0:
            for name in ADDED:
                patch.setattr(draws, name, _less(getattr(draws, name), part))
            for name in CHOSEN:
                patch.setattr(draws, name, _sharper(getattr(draws, name), part))
        yield


def _less(sample, part):
    def drawn(*given, **named):
        return np.rint(part * sample(*given, **named)).astype(np.int64)

    return drawn


def _sharper(choose, part):
    def chosen(scores, scale, rng):
        return choose(np.rint(np.asarray(scores) / part).astype(np.int64), scale, rng)

    return chosen


class Served:
    """Discrete Laplace draws made in bulk by the true sampler, handed out singly.

    The mechanism still decides how often it draws and at which scale.
    """

    def __init__(self):
        self.sample, self.waiting = draws.discrete_laplace, {}

    def __call__(self, size, rng, scale=GRID):
        assert size == 1
        waiting = self.waiting.setdefault(scale, [])
        if not waiting:
            waiting.extend(self.sample(20_000, rng, scale).tolist())
        return [waiting.pop()]
