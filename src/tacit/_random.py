"""Seeds into generators, and generators into independent children.

This is the only module that makes generators. The stream is AES-128 in counter
mode, so outputs do not reveal the state. No generator is kept at module level: two
processes that take a generator from OS entropy never share one.

Noise that can be repeated can be subtracted. scikit-learn's ensembles put integers into
`random_state` of every model that they fit, and keep them, so that an integer alone is
no request for repeatable noise: `Seed` is one, and so is `reproducible_noise`.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from numbers import Integral

import numpy as np
from numpy.random import Generator, RandomState, SeedSequence
from randomgen import AESCounter

from tacit._validate import shown

__all__ = [
    "RandomSource",
    "Seed",
    "as_generator",
    "check_set_seed",
    "global_states_kept",
    "is_seeded",
    "keyed_generator",
    "noise_generator",
    "public_generator",
    "reproducible_noise",
    "secret_key",
    "seed_globals",
    "spawn",
]

_KEY_BYTES = 16

RandomSource = int | SeedSequence | Generator | RandomState | None

# A context variable, so that a test that repeats noise does not do so in other threads
_REPRODUCIBLE: ContextVar[bool] = ContextVar("tacit_reproducible_noise", default=False)


class Seed(int):
    """Seed that fixes the noise of a private release, for tests and papers.

    Whoever knows the seed can subtract the noise, so a release that is published must
    not have one. Reports say when noise was seeded.

    Parameters
    ----------
    value
        Non-negative integer.

    Notes
    -----
    An integer in every other respect, so that scikit-learn's models take it too. Any
    other integer given as ``random_state`` fixes what is public (splits, order,
    candidates of a search) and not the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import Seed
    >>> from tacit.linear_model import LogisticRegression
    >>> X, y = np.tile([[0.6, 0.0], [0.0, 0.6]], (50, 1)), np.tile([0, 1], 50)
    >>> first, second = (
    ...     LogisticRegression(
    ...         1.0, classes=[0, 1], random_state=Seed(7), x_norm=1.0
    ...     ).fit(X, y)
    ...     for _ in range(2)
    ... )
    >>> bool(np.array_equal(first.coef_, second.coef_))
    True
    """

    def __new__(cls, value: int) -> "Seed":
        """Reject what is no seed."""
        return super().__new__(cls, _checked_integer(value))

    def __repr__(self) -> str:
        return f"Seed({int(self)})"


@contextmanager
def reproducible_noise() -> Iterator[None]:
    """Let integers and ``RandomState`` given as ``random_state`` fix the noise.

    For tests, scikit-learn's estimator checks among them. It holds for code of the
    thread that enters it.

    Examples
    --------
    >>> import tacit
    >>> with tacit.reproducible_noise():
    ...     pass  # LogisticRegression(random_state=0, x_norm=1).fit(X, y) repeats noise
    """
    token = _REPRODUCIBLE.set(True)
    try:
        yield
    finally:
        _REPRODUCIBLE.reset(token)


def as_generator(seed: RandomSource) -> Generator:
    """Return the generator for ``seed``, from OS entropy when it is None.

    Parameters
    ----------
    seed
        None draws a fresh 128-bit key from the operating system at every call. A
        non-negative integer or a ``SeedSequence`` fixes the key, for tests and
        replays. A ``Generator`` is returned as it is. A ``RandomState`` yields
        a key, and so moves on.

    Notes
    -----
    **Guarantee.** With None the key has 128 bits of OS entropy and is used by no other
    generator. A ``Generator`` copied by a fork or a pickle repeats its stream: give
    each process None, or a child from `spawn`.
    """
    if isinstance(seed, Generator):
        return seed
    return _keyed(_key(seed))


def noise_generator(random_state: RandomSource, *release: object) -> Generator:
    """Return the generator of the noise of one release.

    Whoever sees two releases with the same noise can subtract it, without the seed. So
    what is public of a release goes into the key. Releases that differ in their rows
    alone still share it: a seed remains for tests.

    Parameters
    ----------
    random_state
        A `Seed`, a ``SeedSequence`` or a ``Generator`` fixes the noise. None, and
        outside `reproducible_noise` any other integer or a ``RandomState``, draw a key
        from the operating system.
    release
        What distinguishes this release from others, and nothing private: arrays as
        bytes. Without it, a seed gives the same noise to all.
    """
    return _purposed(_noise_source(random_state), release)


def public_generator(random_state: RandomSource, *purpose: object) -> Generator:
    """Return the generator of a public choice, such as a split or an order of rows.

    Any integer fixes it, as in scikit-learn.
    """
    return _purposed(random_state, purpose)


def _purposed(source: RandomSource, purpose: tuple[object, ...]) -> Generator:
    # a Generator or a RandomState moves on, and None is fresh
    if not purpose or source is None or isinstance(source, Generator | RandomState):
        return as_generator(source)
    seed = _sequence(source)
    words = np.frombuffer(sha256(repr(purpose).encode()).digest(), dtype="<u4")
    return as_generator(
        SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *words.tolist()))
    )


def _noise_source(random_state: RandomSource) -> RandomSource:
    """Return what of ``random_state`` fixes noise; None is for OS entropy."""
    if random_state is None or isinstance(random_state, Generator):
        return random_state
    explicit = isinstance(random_state, Seed | SeedSequence)
    if not isinstance(random_state, RandomState):
        _sequence(random_state)  # rejects what is no seed
    return random_state if explicit or _REPRODUCIBLE.get() else None


def is_seeded(random_state: RandomSource) -> bool:
    """Whether the noise can be reproduced by whoever knows ``random_state``."""
    return _noise_source(random_state) is not None


def check_set_seed(kind: str, random_state: object) -> None:
    """Reject an integer that a meta-estimator sets on a private model.

    Most ensembles of scikit-learn repeat rows, each of which is charged once. They set
    integers on clones, by which they are detected; a row that comes twice does not,
    and looking for it would read private values.
    """
    plain = isinstance(random_state, Integral) and not isinstance(random_state, Seed)
    if plain and not _REPRODUCIBLE.get():
        raise ValueError(
            f"random_state of {kind} cannot be set to an integer by set_params, as "
            "ensembles of scikit-learn do, most of which repeat rows: a repeated row "
            "would be charged once. To fix the noise in a test, set "
            "tacit.Seed(...); to fit one model, give random_state to the constructor."
        )


def secret_key(random_state: RandomSource) -> bytes:
    """Return 128 secret bits for `keyed_generator`, seeded as noise is."""
    words = noise_generator(random_state).integers(0, 2**64, 2, dtype=np.uint64)
    return words.tobytes()


def keyed_generator(key: bytes, *purpose: object) -> Generator:
    """Return the noise generator of one purpose under a secret key."""
    return noise_generator(Seed(int.from_bytes(key, "little")), *purpose)


def spawn(rng: Generator, n: int) -> list[Generator]:
    """Return ``n`` generators, each keyed by 128 bits drawn from ``rng``."""
    words = rng.integers(0, 2**64, size=(n, 2), dtype=np.uint64)
    return [_keyed(word.tobytes()) for word in words]


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
    return (
        seed if isinstance(seed, SeedSequence) else SeedSequence(_checked_integer(seed))
    )


def _checked_integer(seed: object) -> int:
    # True and False are integers to Python, and never meant as seeds
    if isinstance(seed, Integral) and not isinstance(seed, bool) and int(seed) >= 0:
        return int(seed)
    raise ValueError(
        "random_state must be None, a non-negative integer, a SeedSequence, a "
        f"Generator or a RandomState, got {shown(seed)}."
    )


def _keyed(key: bytes) -> Generator:
    # `key` is set as it is; `seed` would go through a 64-bit mixer first
    return Generator(AESCounter(key=int.from_bytes(key, "little")))
