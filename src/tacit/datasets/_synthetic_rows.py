"""Synthetic rows from public facts only, to see what a plan would do on real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._random import as_generator

Floats = NDArray[np.float64]


def synthetic_rows(
    n_rows: int,
    widths: Sequence[int],
    *,
    n_classes: int = 0,
    strength: float = 2.0,
    spread: float = 1.0,
    n_messages: int | None = None,
    random_state: Any = 0,
) -> tuple[Floats, NDArray[Any]]:
    """Draw encoded rows of a table of which only the columns are known, and targets.

    The rows are invented, so reading them costs no privacy. ``widths`` has one entry a
    column: 1 for a number, spread evenly over -1 to 1; more for the indicators of so
    many categories, of which the first are the most frequent. Labels are drawn from a
    softmax of linear scores, or targets in -1 to 1 for no classes. ``strength`` is the
    standard deviation of the scores, for targets the ratio of signal to noise. Targets
    fill the fraction ``spread`` of their range, from its low end on; most amounts and
    durations fill little of it. Of the encoded columns ``n_messages``, drawn at random,
    predict anything; None for all.
    """
    rng = as_generator(random_state)
    blocks = []
    for width in widths:
        if width == 1:
            blocks.append(rng.uniform(-1.0, 1.0, size=(n_rows, 1)))
            continue
        # a few answers are common and the others rare, as in most questionnaires
        common = np.cumsum(1.0 / np.arange(1, width + 1))
        codes = np.searchsorted(common[:-1], rng.random(n_rows) * common[-1])
        blocks.append(np.eye(width)[codes])
    X = np.hstack(blocks)
    effects = rng.normal(size=(X.shape[1], max(n_classes, 1)))
    if n_messages is not None:
        effects[rng.permutation(X.shape[1])[n_messages:]] = 0.0
    scores = X @ effects
    scores -= scores.mean(axis=0)
    scores *= strength / max(float(scores.std()), 1e-12)
    if n_classes:
        # the largest of scores plus Gumbel noise is a draw from their softmax
        return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    targets = scores[:, 0] + rng.normal(size=n_rows)
    # three standard deviations to both sides; values beyond are clipped
    filled = np.clip(targets / (3 * np.hypot(strength, 1.0)), -1.0, 1.0)
    return X, spread * (1.0 + filled) - 1.0
