"""Seeds into generators, and generators into independent children.

This is the only module that makes generators. The stream is AES-128 in counter
mode, so outputs do not reveal the state. Nothing is kept at module level: two
processes that ask for a generator from OS entropy never share one.
"""

import os
from numbers import Integral

import numpy as np
from numpy.random import Generator, RandomState, SeedSequence
from randomgen import AESCounter

__all__ = ["RandomSource", "as_generator", "is_seeded", "spawn"]

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


def spawn(rng: Generator, n: int) -> list[Generator]:
    """Return ``n`` generators, each keyed by 128 bits drawn from ``rng``."""
    words = rng.integers(0, 2**64, size=(n, 2), dtype=np.uint64)
    return [_keyed(word.tobytes()) for word in words]


def is_seeded(random_state: RandomSource) -> bool:
    """Whether the noise can be reproduced by whoever knows ``random_state``."""
    return random_state is not None


def _key(random_state: object) -> bytes:
    if random_state is None:
        return os.urandom(_KEY_BYTES)
    if isinstance(random_state, RandomState):
        return random_state.randint(0, 2**32, size=4, dtype=np.uint32).tobytes()
    if isinstance(random_state, SeedSequence):
        return random_state.generate_state(2, np.uint64).tobytes()
    # True and False are integers to Python, and never meant as seeds
    if not isinstance(random_state, bool) and isinstance(random_state, Integral):
        seed = int(random_state)
        if seed >= 0:
            return SeedSequence(seed).generate_state(2, np.uint64).tobytes()
    raise ValueError(
        "random_state must be None, a non-negative integer, a SeedSequence, a "
        f"Generator or a RandomState, got {random_state!r}."
    )


def _keyed(key: bytes) -> Generator:
    # `key` is set as it is; `seed` would go through a 64-bit mixer first
    return Generator(AESCounter(key=int.from_bytes(key, "little")))
