import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator, SeedSequence

import tacit
from tacit import _random
from tacit._random import as_generator, is_seeded, noise_generator, spawn


def first_word(rng):
    return int(rng.integers(0, 2**64, dtype=np.uint64))


def test_os_entropy_gives_a_key_of_sixteen_bytes(monkeypatch):
    asked = []

    def urandom(n):
        asked.append(n)
        return bytes(range(n))

    monkeypatch.setattr(_random.os, "urandom", urandom)
    same = first_word(as_generator(None)) == first_word(as_generator(None))
    assert asked == [16, 16]
    assert same


def test_every_byte_of_the_key_matters(monkeypatch):
    words = set()
    for position in range(16):
        key = bytes(position) + b"\x01" + bytes(15 - position)
        monkeypatch.setattr(_random.os, "urandom", lambda n, key=key: key)
        words.add(first_word(as_generator(None)))
    assert len(words) == 16


def test_os_generators_are_not_a_small_family():
    # a generator seeded through one byte has 256 streams, and 600 draws repeat
    words = {first_word(as_generator(None)) for _ in range(600)}
    assert len(words) == 600


def test_integer_seeds_all_differ():
    seeds = [*range(600), 2**32, 2**64, 2**64 + 1, 2**128, 2**200]
    assert len({first_word(as_generator(seed)) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("make", [int, np.int32, np.uint64, SeedSequence])
def test_a_seed_reproduces_the_stream(make):
    a, b = as_generator(make(7)), as_generator(make(7))
    assert np.array_equal(a.integers(0, 2**62, 100), b.integers(0, 2**62, 100))


def test_an_integer_and_its_seed_sequence_agree():
    assert first_word(as_generator(3)) == first_word(as_generator(SeedSequence(3)))


def test_a_generator_passes_through():
    rng = Generator(PCG64(0))
    assert as_generator(rng) is rng


def test_a_random_state_gives_a_new_key_at_each_call():
    legacy = np.random.RandomState  # noqa: TID251 - scikit-learn users pass them
    old, again = legacy(0), legacy(0)
    first, second = first_word(as_generator(old)), first_word(as_generator(old))
    assert first != second
    assert first == first_word(as_generator(again))


@pytest.mark.parametrize("bad", [-1, True, 1.0, "0", np.float64(2), [1], np.bool_(1)])
def test_what_is_no_seed_is_refused_by_name(bad):
    with pytest.raises(ValueError, match=r"^random_state must be .* got "):
        as_generator(bad)


def test_children_are_reproducible_and_distinct():
    children = [*spawn(as_generator(0), 5), *spawn(as_generator(1), 5)]
    words = [first_word(child) for child in children]
    assert len(set(words)) == 10
    assert words[:5] == [first_word(child) for child in spawn(as_generator(0), 5)]
    assert spawn(as_generator(0), 0) == []


def test_a_seed_gives_each_release_a_stream_of_its_own():
    keys = [("score", 0.5), ("score", 1.0), ("intervals", 0.5)]
    seeds = [0, 1, SeedSequence(2), *SeedSequence(2).spawn(2)]
    words = [first_word(noise_generator(s, *key)) for s in seeds for key in keys]
    assert len({*words, *(first_word(as_generator(s)) for s in seeds)}) == 20
    assert words[0] == first_word(noise_generator(0, "score", 0.5))
    rng = as_generator(0)
    assert noise_generator(rng, "score") is rng
    with pytest.raises(ValueError, match="random_state must be"):
        noise_generator(-1, "score")


def test_only_none_is_unseeded():
    assert not is_seeded(None)
    assert all(is_seeded(s) for s in (0, SeedSequence(0), as_generator(None)))


def test_forked_processes_draw_different_noise():
    # in a process of its own: a fork of the test runner would copy its threads
    script = """
import os
from tacit._random import as_generator
as_generator(None).standard_normal()
child = os.fork()
os.write(1, (as_generator(None).standard_normal(3).tobytes().hex() + "\\n").encode())
if child:
    os.waitpid(child, 0)
"""
    env = os.environ | {"PYTHONPATH": str(Path(tacit.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, check=True
    )
    lines = done.stdout.decode().split()
    assert len(lines) == len(set(lines)) == 2
