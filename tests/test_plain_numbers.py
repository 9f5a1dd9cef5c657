"""Numbers of events, losses, sets, budgets and plans are Python's own.

NumPy's narrow numbers round and wrap in arithmetic, and a bound that is computed from
them is too small.
"""

import inspect
import pkgutil
import re
import sys
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from math import inf

import numpy as np
import pytest
from tests.test_public_names import public_names

import tacit
from tacit._discovery import modules_of
from tacit._validate import plain_number
from tacit.convex import Logistic, OneVsRest
from tacit.data import RowBounds
from tacit.ensemble import PrivateLabeler
from tacit.exceptions import BudgetExceeded
from tacit.feature_selection import BlockVoteSelector, PeelingSelector
from tacit.linear_model import (
    Lasso,
    LogisticRegression,
    Ridge,
    SparseLogisticRegression,
)
from tacit.model_selection import PrivateSearchCV
from tacit.preprocessing import PrivateQuantileBounds, PrivateStandardScaler
from tacit.privacy import Budget, Ledger, Neighbors, TradeOff, event_data, events
from tacit.privacy import GaussianNoise as Gaussian
from tacit.privacy.curve import ORDERS, PrivacyCurve
from tacit.solvers import ObjectivePerturbation, Problem
from tacit.tables import Column, Schema, TableError

NUMBER = re.compile(r"\b(int|float)\b")
# What such classes have, besides what is public: events, losses, penalties, bounds,
# learners of streams, and all that plans or has an event to charge
ROLES = ("curve", "event", "max_derivative", "prox", "clip", "iterates", "plan")
# Calls that make numbers plain
PLAIN = re.compile(r"\bplain(_number)?\(|\b_check\(self\)|super\(\)\.__post_init__")
EXCEPTED = {
    "Column": "takes strings from files besides, and has a test of its own",
    "Schema": "takes strings from files besides, and has a test of its own",
    "Record": "holds a row of a ledger as it was read from the database",
    "Choice": "is returned with an index of a list",
    "Labels": "is returned with a count of queries",
    "PrivacyReport": "is returned with what a curve gives, a float",
}


def found():
    """Return the frozen dataclasses with numbers of all modules."""
    kinds = []
    for package in pkgutil.iter_modules(tacit.__path__, "tacit."):
        names = [] if package.name.endswith("__main__") else modules_of(package.name)
        kinds += [
            kind
            for name in names
            for kind in vars(sys.modules[name]).values()
            if isinstance(kind, type) and frozen(kind) and numeric(kind)
        ]
    return [kind for kind in dict.fromkeys(kinds) if not inspect.isabstract(kind)]


def frozen(kind):
    return is_dataclass(kind) and kind.__dataclass_params__.frozen


def numeric(kind):
    return [f.name for f in fields(kind) if NUMBER.search(str(f.type))]


def must_check(kind):
    """Whether a class is public, has such a role, or makes numbers plain."""
    made = inspect.getsource(getattr(kind, "__post_init__", must_check))
    roles = any(role in vars(base) for base in kind.__mro__ for role in ROLES)
    plain = hasattr(kind, "__post_init__") and bool(PLAIN.search(made))
    return kind in PUBLIC or roles or plain


PUBLIC = [getattr(import_module(package), name) for package, name in public_names()]
KINDS = found()
CHECKED = [k for k in KINDS if must_check(k) and k.__name__ not in EXCEPTED]


def named(kind):
    return kind.__name__


def test_the_search_finds_events_losses_sets_budgets_plans_and_learners():
    names = set(map(named, CHECKED))
    assert {"GaussianNoise", "OneVsRest", "L2Ball", "Budget", "RowBounds"} <= names
    assert {"NoisyGDPlan", "Exponential", "SearchPlan", "Leader"} <= names
    assert EXCEPTED.keys() <= set(map(named, KINDS))
    assert len(CHECKED) > 150


def stored(kind, value):
    """Return what the numeric fields are after construction, and whether it failed.

    Fields of other types have no value here. A check that misses one fails, and by
    then all numbers must be plain.
    """
    instance = object.__new__(kind)
    for field in fields(kind):
        pair = value if "tuple" not in str(field.type) else (value - value, value)
        given = pair if field.name in numeric(kind) else ()
        object.__setattr__(instance, field.name, given)
    try:
        instance.__post_init__()
    except Exception as error:
        return instance, error
    return instance, None


def flat(value):
    return (
        [x for part in value for x in flat(part)] if type(value) is tuple else [value]
    )


NARROW = (
    *(kind(0.5) for kind in (np.float16, np.float32, np.float64, np.longdouble)),
    *(np.uint8(200), np.int8(100), np.int64(3), Fraction(1, 2)),
)


@pytest.mark.parametrize("kind", CHECKED, ids=named)
def test_narrow_numbers_are_stored_as_plain_ones(kind):
    for value in NARROW:
        instance, error = stored(kind, value)
        for field in numeric(kind):
            for number in flat(getattr(instance, field)):
                assert type(number) in (int, float), (field, error)
                assert number in (0, value)


# These check each entry, which may be given as anything that NumPy reads as a float
READ_BY_ENTRY = {"CoordinatePenalty", "FeatureBounds"}


@pytest.mark.parametrize(
    "kind", [k for k in CHECKED if k.__name__ not in READ_BY_ENTRY], ids=named
)
def test_other_numbers_are_rejected(kind):
    for value in (np.array(0.5), np.array(3), Decimal("0.5"), 1j):
        _, error = stored(kind, value)
        assert isinstance(error, ValueError | TypeError), error


def test_schemas_hold_plain_numbers_or_reject_them():
    half = np.float16(0.5)
    column = Column("age", "number", range=(half, np.uint8(200)))
    assert column.range == (0.5, 200.0)
    norm = Schema([column], given_norm=half).given_norm
    assert {type(value) for value in (*column.range, norm)} == {float}
    for name in ("zero", "missing"):
        with pytest.raises(TableError, match=name):
            Column("age", "number", range=(0, 1), **{name: half})


@pytest.mark.parametrize("truth", [True, np.True_])
@pytest.mark.parametrize("kind", event_data.event_classes().values(), ids=named)
def test_truth_values_are_no_numbers_of_events(kind, truth):
    if numeric(kind):
        _, error = stored(kind, truth)
        assert isinstance(error, ValueError | TypeError)


def test_nothing_else_is_changed():
    for value in ("grid", None, (0.0, inf), (1, "a"), [np.float16(1)], np.zeros(2)):
        assert plain_number(value, "value") is value or plain_number(value, "") == value
    with pytest.raises(ValueError, match="beyond must be an int or a float"):
        plain_number(Fraction(10**400), "beyond")


def curves(event):
    curve = event.curve(Neighbors.ADD_OR_REMOVE_ONE)
    return curve.epsilon(1e-5), curve.renyi.tolist()


@pytest.mark.parametrize(
    ("narrow", "plain"),
    [
        (Gaussian(np.float16(100)), Gaussian(100.0)),
        (
            events.Repeated(Gaussian(np.float16(20000)), 10**9),
            events.Repeated(Gaussian(20000.0), 10**9),
        ),
        (events.PureDP(np.float16(0.01)), events.PureDP(float(np.float16(0.01)))),
        (
            events.TiltedMinimum(np.float32(0.1), np.float16(3), np.uint8(200)),
            events.TiltedMinimum(float(np.float32(0.1)), 3.0, 200),
        ),
        (
            events.L2LaplaceNoise(np.float16(2), np.uint8(250)),
            events.L2LaplaceNoise(2.0, 250),
        ),
        (
            events.Repeated(Gaussian(50.0), np.uint8(200)),
            events.Repeated(Gaussian(50.0), 200),
        ),
    ],
)
def test_events_of_narrow_numbers_cost_what_those_of_plain_ones_do(narrow, plain):
    assert narrow == plain
    assert curves(narrow) == curves(plain)


@pytest.mark.parametrize(
    "event", [Gaussian(30.0), events.Repeated(events.LaplaceNoise(30.0), 40)]
)
def test_curves_answer_questions_in_few_bits_as_plain_ones(event):
    curve = event.curve(Neighbors.REPLACE_ONE)
    small, large = np.float16(1e-5), np.float32(0.2)
    assert curve.epsilon(small) == curve.epsilon(float(small))
    assert curve.delta(large) == curve.delta(float(large))
    assert (curve * np.uint8(200)).epsilon(1e-5) == (curve * 200).epsilon(1e-5)
    bound = TradeOff.of(event)
    for method in (bound.chance_above, bound.posterior):
        assert method(np.float16(0.6), small) == method(float(np.float16(0.6)), small)
        assert method(0.6, small) == method(0.6, float(small))
    assert bound.precision(0.1, large) == bound.precision(0.1, float(large))


def test_curves_of_other_events_are_added_in_plain_numbers():
    narrow = PrivacyCurve(np.full(len(ORDERS), np.float16(1e-3)), np.float16(1e-3))
    assert narrow.renyi.dtype == np.float64
    assert type((narrow + narrow).pure) is float


def test_a_ledger_admits_as_many_narrow_charges_as_plain_ones():
    def admitted(multiplier):
        ledger, count = Ledger(Budget(0.1, 1e-5)), 0
        while count < 99:
            try:
                ledger.charge(Gaussian(multiplier), label="")
            except BudgetExceeded:
                break
            count += 1
        return count

    assert 0 < admitted(np.float16(100)) == admitted(100.0) < 99


def test_many_classes_in_few_bits_are_planned_for_as_they_are():
    def plan(n_classes, norm, ends):
        problem = Problem(
            OneVsRest(Logistic(), n_classes), RowBounds(norm, y_range=ends), 10**4, 5
        )
        return ObjectivePerturbation().plan(problem, Budget(1.0, 1e-6))

    few = plan(np.uint8(200), np.float16(0.1), (np.float16(0), np.int8(100)))
    assert few == plan(200, float(np.float16(0.1)), (0.0, 100))


def test_parts_of_a_budget_are_split_by_plain_numbers():
    narrow = Budget(1.0, 1e-6).split(np.float16(1), np.float16(3), np.uint8(200))
    assert narrow == Budget(1.0, 1e-6).split(1.0, 3.0, 200)


def planners():
    """Return what plans from public numbers, without data."""
    rows = {"y_range": (0.0, 1.0)}
    return [
        (LogisticRegression(1.0, classes=[0, 1], x_norm=1.0), 2),
        (Ridge(1.0, **rows, x_norm=1.0), 2),
        (Lasso(1.0, feature_bounds=1.0, **rows), 2),
        (SparseLogisticRegression(1.0, classes=[0, 1], feature_bounds=1.0), 2),
        (PeelingSelector(n_features_to_select=1, feature_bounds=1.0, **rows), 2),
        (BlockVoteSelector(n_features_to_select=1), 2),
        (PrivateStandardScaler(ranges=(-1.0, 1.0)), 2),
        (PrivateQuantileBounds(ranges=(-1.0, 1.0)), 2),
        (PrivateSearchCV(Ridge(**rows, x_norm=1.0), {"x_norm": [1.0]}, 2.0, 1e-5), 2),
        (PrivateLabeler(Ridge(**rows, x_norm=1.0), 10, 1.0, 1e-5, **rows), 1),
    ]


@pytest.mark.parametrize(
    ("planner", "n"), planners(), ids=lambda planner: type(planner).__name__
)
def test_numbers_of_rows_and_columns_in_few_bits_are_planned_for_as_they_are(
    planner, n
):
    narrow = planner.plan(*(np.uint8(200), np.uint8(3))[:n])
    assert repr(narrow) == repr(planner.plan(*(200, 3)[:n]))
