"""States as bytes: what goes in comes out, and what is damaged does not."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pytest

from tacit._state import StateDamaged, dumped, kept, loaded


@kept
@dataclass(frozen=True)
class Inner:
    """A part of a state."""

    array: np.ndarray
    name: str = "a"


@dataclass(frozen=True)
class Stranger:
    """No part of a state."""

    number: int = 1


def full_state():
    return {
        "zero": -0.0,
        "huge": 2**100,
        "tiny": 5e-324,
        "flag": True,
        "none": None,
        "key": b"\x00\xff",
        "pair": (1, (2.5, "text"), ()),
        "inner": Inner(np.arange(6.0).reshape(2, 3)),
        "whole": np.array([2**63 - 1, -1]),
        "truths": np.array([True, False]),
        "scalar": np.array(1.5),
        "nothing": np.empty((0, 3), dtype=np.float32),
        "odd": np.array([np.nan, np.inf, -0.0]),
    }


def same(one, other):
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        return one.tobytes() == other.tobytes()
    if isinstance(one, Inner):
        return one.name == other.name and same(one.array, other.array)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, float):
        return repr(one) == repr(other)
    return type(one) is type(other) and one == other


def test_a_state_comes_back_as_it_was_down_to_the_bits_and_the_order():
    state = full_state()
    assert same(state, loaded(dumped(state)))
    assert not same(state, {**state, "zero": 0.0})


def test_the_same_state_is_the_same_bytes():
    assert dumped(full_state()) == dumped(full_state())


@pytest.mark.parametrize(
    "part", [[1], {1}, {1: 2}, Stranger(), np.array(["a"]), np.int64(3), object(), 1j]
)
def test_what_has_no_place_in_a_state_is_named_by_its_type(part):
    with pytest.raises(TypeError, match=type(part).__name__):
        dumped({"part": part})


def test_every_cut_and_every_changed_byte_is_found():
    whole = dumped({"a": np.arange(3.0), "b": "text"})
    for position in range(len(whole)):
        with pytest.raises(StateDamaged):
            loaded(whole[:position])
        changed = bytearray(whole)
        changed[position] ^= 1
        with pytest.raises(StateDamaged):
            loaded(bytes(changed))
    with pytest.raises(StateDamaged):
        loaded(whole + b"\0")


def test_a_sound_digest_around_something_else_is_no_state():
    for body in (b"", b"text", dumped({"a": 1})[:-33]):
        with pytest.raises(StateDamaged):
            loaded(body + sha256(body).digest())


def test_two_modules_may_call_their_states_the_same():
    @kept
    @dataclass(frozen=True)
    class Outer:
        number: int = 1

    first = Outer

    @kept
    @dataclass(frozen=True)
    class Outer:
        number: int = 2

        __module__ = "elsewhere"

    with pytest.raises(TypeError, match="Outer"):
        dumped(type("Outer", (Outer,), {})())
    for kind in (first, Outer):
        assert type(loaded(dumped({"part": kind()}))["part"]) is kind
