"""Losses of others: whatever their methods return, results have one form."""

import copy
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from tests.refusal import raises_one_line

from tacit.convex import Huber, L2Ball, Logistic, Softmax, Squared
from tacit.convex._protocols import ConvexSet
from tacit.convex.foreign import (
    ForeignLoss,
    check_base,
    given_loss,
    guarded,
    guarded_penalty,
)
from tacit.convex.losses import OneMargin

ENDS = (-1.0, 1.0)
Y = np.array([-0.9, 0.2, 0.3, 0.8, 0.9])
Z = np.full((5, 1), 0.5)


@dataclass(frozen=True)
class Own(Huber):
    """A loss that is right on the rows that it is tried on."""

    def derivative(self, y, Z):
        found = super().derivative(y, Z)
        return found if 0.0 in y else self.changed(y, found)

    def changed(self, y, found):
        return found


class Sub(np.ndarray):
    """An array that no product changes."""

    def __imul__(self, other):
        return self


def changing(change):
    class Changed(Own):
        def changed(self, y, found):
            return change(y, found)

    return guarded(Changed(), ENDS)


RIGHT = Huber().derivative(Y, Z)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda y, found: found.view(Sub), RIGHT),
        (lambda y, found: np.ma.masked_array(found, mask=found < 0), RIGHT),
        (lambda y, found: np.matrix(found), RIGHT),
        (lambda y, found: found.astype(object), RIGHT),
        (lambda y, found: found.astype(np.float32), np.float64(np.float32(RIGHT))),
        (lambda y, found: found + 3j, RIGHT),
        (lambda y, found: found.ravel(), 0 * RIGHT),
        (lambda y, found: found[:1, :1].repeat(2, axis=1), 0 * RIGHT),
        (lambda y, found: None, 0 * RIGHT),
        (lambda y, found: "private", 0 * RIGHT),
        (lambda y, found: np.full_like(found, np.nan), 0 * RIGHT),
        (lambda y, found: found * 1e300, np.clip(RIGHT * 1e300, -1e100, 1e100)),
    ],
)
def test_derivatives_are_plain_arrays_of_the_shape_of_the_margins(change, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = changing(change).derivative(Y, Z)
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    assert found.shape == Z.shape
    assert np.array_equal(found, expected)


def test_a_derivative_for_one_margin_of_several_is_not_broadcast():
    class One(Softmax):
        def derivative(self, y, Z):
            found = super().derivative(y, Z)
            return found if Z.any() else found[:, :1]

    assert not guarded(One(3), ENDS).derivative(np.zeros(5), np.zeros((5, 3))).any()


def low(y, found):
    if (y < -0.5).any():
        raise ValueError(f"target {y.min()} is private")
    return found


def test_rows_on_which_a_loss_fails_count_as_zero_and_others_do_not():
    loss = changing(low)
    found = loss.derivative(Y, Z)
    assert found[0] == 0
    assert np.array_equal(found[1:], RIGHT[1:])
    y = np.where(np.arange(1000) % 7 == 3, -1.0, 0.1)
    found = loss.derivative(y, np.zeros((1000, 1)))
    assert np.array_equal(found[:, 0] == 0, y < 0)


def test_rows_without_a_finite_result_count_as_zero():
    loss = changing(lambda y, found: np.where(y[:, None] < 0, np.inf, found))
    assert np.array_equal(loss.derivative(Y, Z)[:, 0], [0, *RIGHT[1:, 0]])


def test_an_exit_is_a_failure_as_well():
    def leave(y, found):
        raise SystemExit

    assert not changing(leave).derivative(Y, Z).any()


def test_nothing_is_shown_from_threads_either(capsys):
    def loud(y, found):
        sys.stdout.write("private")
        warnings.warn("private", stacklevel=1)
        return found + 0 * np.log(-np.abs(y))[:, None]

    loss = changing(loud)
    with warnings.catch_warnings(record=True) as shown, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        list(pool.map(lambda _: loss.derivative(Y, Z), range(40)))
    assert not shown
    assert capsys.readouterr() == ("", "")


def test_no_row_reaches_a_loss_that_could_be_written_to():
    def overwrite(y, found):
        y[:] = 0.0
        return found

    loss, y = changing(overwrite), Y.copy()
    loss.derivative(y, Z)
    assert np.array_equal(y, Y)


def test_no_rows_are_no_call():
    loss = changing(lambda y, found: found / y.max())
    assert loss.derivative(Y[:0], Z[:0]).shape == (0, 1)
    assert loss.value(Y[:0], Z[:0]).shape == (0,)


def test_other_methods_have_the_form_of_the_protocol():
    class Bent(Own):
        def value(self, y, Z):
            return Z if (Z == 0.5).any() else super().value(y, Z)

        def curvature(self, y, Z):
            return 9 * Z if (abs(Z) == 0.5).all() else super().curvature(y, Z)

    loss = guarded(Bent(), ENDS)
    assert np.array_equal(loss.value(Y, Z), np.zeros(5))
    up, down = loss.curvature(Y, Z), loss.curvature(Y, -Z)
    # within what it states, and not negative
    assert set(up.ravel()) == {1.0}
    assert set(down.ravel()) == {0.0}
    assert np.array_equal(loss.curvature_product(Y, Z, 3 * Z), 3 * Z)


class Drifting(Own):
    """A loss that states another bound whenever it is asked."""

    count = 0

    def max_derivative(self, reach, y_range):
        Drifting.count += 1  # copies share their class
        return 1.0 + self.count

    def max_curvature(self):
        return self.max_derivative(inf, ENDS)


def test_constants_are_read_once():
    loss = guarded(Drifting(), ENDS)
    for reach in (inf, 2.0, 3.0):
        first = loss.max_derivative(reach, ENDS)
        assert loss.max_derivative(reach, ENDS) == first
        assert first <= loss.max_derivative(inf, ENDS)
    assert loss.max_curvature() == loss.max_curvature() == loss.max_trace() - 1
    assert copy.deepcopy(loss).max_derivative(2.0, ENDS) == loss.max_derivative(
        2.0, ENDS
    )


def test_a_bound_that_fails_at_a_reach_is_that_of_all_margins():
    class Partial(Own):
        def max_derivative(self, reach, y_range):
            if reach < 1:
                raise ValueError(f"{reach} is private")
            return 2.0 if reach == inf else -1.0

    loss = guarded(Partial(), ENDS)
    assert loss.max_derivative(0.5, ENDS) == loss.max_derivative(5.0, ENDS) == 2.0


def test_bounds_are_too_large_for_squares_to_underflow():
    class Flat(Own):
        def max_derivative(self, reach, y_range):
            return 1e-165

    assert guarded(Flat(), ENDS).max_derivative(inf, ENDS) == 1e-60


@pytest.mark.parametrize("loss", [Huber(0.5), Softmax(3), Squared()], ids=repr)
def test_a_loss_of_the_library_stays_what_it_is(loss):
    assert guarded(loss, ENDS) is loss


def test_a_loss_of_others_is_itself_to_its_user_and_no_loss_of_the_library():
    given = Own(0.5)
    loss = guarded(given, ENDS)
    assert guarded(loss, ENDS) is loss
    assert given_loss(loss) is given
    assert repr(loss) == repr(given)
    assert loss == given
    assert loss == guarded(Own(0.5), ENDS)
    assert loss != guarded(Own(0.25), ENDS)
    assert hash(loss) == hash(given)
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert not isinstance(loss, Huber)


class NoMethods:
    targets, n_outputs = "numbers", 1


class Shape(OneMargin):
    """A loss whose results have the shape or the numbers that are given."""

    targets = "numbers"

    def __init__(self, result=None, targets="numbers", n_outputs=1, **bounds):
        self.result = result
        self.targets, self.outputs, self.bounds = targets, n_outputs, bounds

    @property
    def n_outputs(self):
        return self.outputs

    def value(self, y, Z):
        return np.zeros(len(y))

    def derivative(self, y, Z):
        return Z if self.result is None else self.result(y, Z)

    def curvature(self, y, Z):
        return np.ones(Z.shape)

    def max_derivative(self, reach, y_range):
        return self.bounds.get("derivative", 1.0)

    def max_curvature(self):
        return self.bounds.get("curvature", 1.0)

    def derivative_rank(self):
        return self.bounds.get("rank", 1)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Own, r"must be an object, got the class Own; write Own\(\)"),
        (NoMethods(), "got NoMethods without value, derivative, curvature, max_"),
        (Shape(targets="text"), "targets of Shape must be .* got 'text'"),
        (Shape(n_outputs=1.0), "n_outputs of Shape must be an integer >= 1, got 1.0"),
        (Shape(n_outputs=0), "n_outputs of Shape must be an integer >= 1, got 0"),
        (Shape(n_outputs=2), "n_outputs of Shape must be 1 for targets='numbers'"),
        (
            Shape(n_outputs=2, targets="labels"),
            "n_outputs of Shape must be 1 for targets='labels', got 2",
        ),
        (Shape(derivative=-1.0), "max_derivative of Shape must return a number >= 0"),
        (Shape(curvature=np.nan), "max_curvature of Shape must return a number > 0"),
        (Shape(curvature=0.0), "max_curvature of Shape must return a number > 0 and"),
        (Shape(curvature=10**400), "at most 1e.100, or inf, got a value of type int"),
        (Shape(derivative=10**400), "at most 1e.100, or inf, got a value of type int"),
        (Shape(derivative=1e300), "at most 1e.100, or inf, got 1e.300"),
        (Shape(derivative="1"), "max_derivative of Shape must return a number >= 0"),
        (Shape(rank=0.5), "derivative_rank of Shape must be an integer >= 1, got 0.5"),
        (Shape(lambda y, Z: Z[:, 0]), r"of shape \(3, 1\) for .* got shape \(3,\)"),
        (Shape(lambda y, Z: Z / 0.0 * 0), "must return finite numbers for 3 rows"),
        (Shape(lambda y, Z: Z.private), "must return numbers for .* AttributeError"),
    ],
)
def test_a_loss_of_another_form_is_rejected(loss, words):
    with np.errstate(all="ignore"), raises_one_line(ValueError, words):
        guarded(loss, ENDS)


def test_a_penalty_derives_from_none_of_the_library():
    class Ball(L2Ball):
        pass

    class Set(ConvexSet):
        pass

    check_base(L2Ball())
    check_base(Set())
    with raises_one_line(ValueError, "must not derive from L2Ball, .* use L2Ball"):
        check_base(Ball())


def test_labels_and_codes_are_tried_as_such():
    class Labels(Logistic):
        def derivative(self, y, Z):
            assert set(y) <= {-1.0, 1.0}
            return super().derivative(y, Z)

    assert isinstance(guarded(Labels(), (0.0, 5.0)), ForeignLoss)

    class Codes(Softmax):
        def derivative(self, y, Z):
            assert set(y) <= {0, 1}
            return super().derivative(y, Z)

    assert isinstance(guarded(Codes(2), (0.0, 5.0)), ForeignLoss)


class Locked(Own):
    def __deepcopy__(self, memo):
        raise TypeError("private")


def test_a_loss_or_penalty_that_cannot_be_copied_is_rejected():
    with raises_one_line(
        ValueError, "loss must be an object that copy.deepcopy copies"
    ):
        guarded(Locked(), ENDS)

    class Set(ConvexSet):
        radius = 1.0
        __deepcopy__ = Locked.__deepcopy__

    with raises_one_line(ValueError, "penalty must be an object that copy.deepcopy"):
        guarded_penalty(Set())


def test_a_penalty_of_others_is_itself_to_its_user_and_keeps_no_point():
    class Set(ConvexSet):
        radius = 1.0
        seen = ()

        def prox(self, W, step):
            self.seen = W
            return W

    given = Set()
    penalty = guarded_penalty(given)
    assert guarded_penalty(penalty) is penalty
    assert guarded_penalty(L2Ball()) == L2Ball()
    assert repr(penalty) == repr(given)
    assert penalty == given
    assert hash(penalty) == hash(given)
    assert copy.copy(penalty) == penalty
    assert penalty.prox(Z, 1.0) is Z
    assert given.seen == penalty.seen == ()
    given.radius = 2.0
    assert penalty.radius == 1.0


def test_values_are_within_what_sums_can_hold():
    class Large(Own):
        def value(self, y, Z):
            return np.where(y < 0, 1e308, -1e308)

    assert guarded(Large(), ENDS).value(Y, Z).tolist() == [1e100, *[-1e100] * 4]


@pytest.mark.parametrize(
    "radius", [np.nan, -1.0, 0.0, "1", None, True, 10**400, 1e300, 1 + 0j]
)
def test_a_radius_that_is_no_size_is_rejected(radius):
    class Set(ConvexSet):
        pass

    Set.radius = radius
    with raises_one_line(ValueError, "radius .*must be a"):
        guarded_penalty(Set())


@pytest.mark.parametrize("radius", [inf, 2, np.float32(2.0)])
def test_a_radius_is_a_float(radius):
    class Set(ConvexSet):
        pass

    Set.radius = radius
    assert type(guarded_penalty(Set()).radius) is float
