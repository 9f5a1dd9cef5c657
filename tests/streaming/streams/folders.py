"""Runs of a small stream in a folder, and what they show."""

import numpy as np
from tests.streaming.streams.tiny import Tiny

from tacit._random import as_generator
from tacit.streaming import DurableStream

STEPS = 4


def rows_of(seed, steps=STEPS, rows=3, columns=2):
    rng = as_generator(seed)
    return [
        (rng.uniform(-0.5, 0.5, (rows, columns)), rng.uniform(0, 1, rows))
        for _ in range(steps)
    ]


def shown(model):
    """Everything that a fitted model shows, as text that is equal for equal bits."""
    public = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and name != "random_state"
    }
    parts = {
        name: (value.dtype.str, value.tolist())
        if isinstance(value, np.ndarray)
        else value
        for name, value in public.items()
    }
    return repr((sorted(parts.items(), key=lambda part: part[0]), model.n_steps_))


def plain_run(rows, **parameters):
    """Return what is shown after each step of a run that nothing disturbs."""
    model = Tiny(random_state=7, **parameters)
    return [shown(model.partial_fit(X, y)) for X, y in rows]


def values(text):
    """Leave the label of the charge out, which carries an identity."""
    model_part, _, _ = text.partition("('privacy_'")
    return model_part


def folder_run(folder, rows, ledger=None, seed=7, found=None):
    """Go on to the end of the rows, and return what was shown by step."""
    model = Tiny(random_state=seed)
    found = {} if found is None else found
    with DurableStream(model, folder, ledger=ledger) as stream:
        if stream.n_steps:
            assert stream.position == {"taken": stream.n_steps}
            found[stream.n_steps] = shown(model)
        for t in range(stream.n_steps, len(rows)):
            stream.partial_fit(*rows[t], position={"taken": t + 1})
            assert stream.n_steps == model.n_steps_ == t + 1
            found[t + 1] = shown(model)
    return found
