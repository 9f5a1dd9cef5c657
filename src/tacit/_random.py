"""Seeds into generators, and generators into independent children.

This is the only module that makes generators. The stream is AES-128 in counter
mode, so outputs do not reveal the state. Nothing is kept at module level: two
processes that ask for a generator from OS entropy never share one.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from numbers import Integral

import numpy as np
from numpy.random import Generator, RandomState, SeedSequence
from randomgen import AESCounter

from tacit._validate import shown

__all__ = [
    "RandomSource",
    "as_generator",
    "generator_for",
    "global_states_kept",
    "is_seeded",
    "seed_globals",
    "spawn",
]

_KEY_BYTES = 16

RandomSource = int | SeedSequence | Generator | RandomState | None


def as_generator(random_state: RandomSource) -> Generator:
    """Return the generator for ``random_state``, from OS entropy when it is None.

    Parameters
    ----------
    random_state
        None draws a fresh 128-bit key from the operating system at every call. A
        non-negative integer or a ``SeedSequence`` fixes the key, for tests and
        replays. A ``Generator`` is returned as it is. A ``RandomState`` is asked for
        a key, and so moves on.

    Notes
    -----
    **Guarantee.** With None the key has 128 bits of OS entropy and is used by no other
    generator. A ``Generator`` copied by a fork or a pickle repeats its stream: give
    each process None, or a child from `spawn`.
    """
    if isinstance(random_state, Generator):
        return random_state
    return _keyed(_key(random_state))


def generator_for(random_state: RandomSource, *release: object) -> Generator:
    """Return the generator of one release, another for each release with one seed.

    Whoever sees two releases with the same noise can take it off, without the seed. So
    what is public of a release goes into the key. Releases that differ in their rows
    alone still share it: a seed remains for tests.

    Parameters
    ----------
    random_state
        As in `as_generator`. A ``Generator`` or a ``RandomState`` moves on, and None
        is fresh, so that only seeds need the rest.
    release
        What tells this release from others, and nothing private: arrays as bytes.
    """
    if random_state is None or isinstance(random_state, Generator | RandomState):
        return as_generator(random_state)
    seed = _sequence(random_state)
    words = np.frombuffer(sha256(repr(release).encode()).digest(), dtype="<u4")
    return as_generator(
        SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *words.tolist()))
    )


def spawn(rng: Generator, n: int) -> list[Generator]:
    """Return ``n`` generators, each keyed by 128 bits drawn from ``rng``."""
    words = rng.integers(0, 2**64, size=(n, 2), dtype=np.uint64)
    return [_keyed(word.tobytes()) for word in words]


def is_seeded(random_state: RandomSource) -> bool:
    """Whether the noise can be reproduced by whoever knows ``random_state``."""
    return random_state is not None


def seed_globals(seed: int) -> None:
    """Seed the generators that Python and numpy share with all code of a process.

    Nothing here draws from them. A learner that does would draw what is left by the
    one before it, whose rows may say how much that is.
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002


@contextmanager
def global_states_kept() -> Iterator[None]:
    """Put the shared generators back at the end, as their owner left them."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _key(random_state: object) -> bytes:
    if random_state is None:
        return os.urandom(_KEY_BYTES)
    if isinstance(random_state, RandomState):
        return random_state.randint(0, 2**32, size=4, dtype=np.uint32).tobytes()
    return _sequence(random_state).generate_state(2, np.uint64).tobytes()


def _sequence(seed: object) -> SeedSequence:
    if isinstance(seed, SeedSequence):
        return seed
    # True and False are integers to Python, and never meant as seeds
    if isinstance(seed, Integral) and not isinstance(seed, bool) and int(seed) >= 0:
        return SeedSequence(int(seed))
    raise ValueError(
        "random_state must be None, a non-negative integer, a SeedSequence, a "
        f"Generator or a RandomState, got {shown(seed)}."
    )


def _keyed(key: bytes) -> Generator:
    # `key` is set as it is; `seed` would go through a 64-bit mixer first
    return Generator(AESCounter(key=int.from_bytes(key, "little")))
