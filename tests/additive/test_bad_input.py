"""What cannot be fitted is refused with one sentence, and nothing is charged."""

import datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tacit import Seed
from tacit.additive import AdditiveClassifier, AdditiveRegressor
from tacit.evaluation import expected_score
from tacit.exceptions import BudgetExceeded, NoiseWarning, PlanError
from tacit.privacy import Budget, Ledger

N = 40
SECRET = "a secret"
FRAME = pd.DataFrame(
    {
        "age": np.linspace(20, 60, N),
        "size": np.arange(N) % 7 / 2,
        "home": [["own", "rent"][k % 2] for k in range(N)],
    }
)
LABELS = np.arange(N) % 2
TARGETS = np.linspace(0.0, 1.0, N)
RANGES = {"age": (18, 98), "size": (0, 3)}
CATEGORIES = {"home": ["own", "rent"]}
GOOD = {"ranges": RANGES, "categories": CATEGORIES}
KINDS = {"classifier": AdditiveClassifier, "regressor": AdditiveRegressor}


def refused(kind, error, words, X=FRAME, y=None, ledger=None, **parameters):
    """Fit with parameters or rows that are wrong, and check that nothing happened."""
    own = {"y_range": (0, 1)} if kind is AdditiveRegressor else {}
    model = kind(**{**GOOD, **own, **parameters})
    before = dict(vars(model))
    ledger = Ledger(Budget(10.0, 1e-3)) if ledger is None else ledger
    if y is None:
        y = LABELS if kind is AdditiveClassifier else TARGETS
    with pytest.raises(error, match=words) as found:
        model.fit(X, y, ledger=ledger)
    message = str(found.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert SECRET not in message
    assert found.value.__cause__ is None or SECRET not in str(found.value.__cause__)
    assert ledger.spent() == 0
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    return message


def either(*values, words, error=ValueError):
    return [
        pytest.param(kind, value, words, error, id=f"{name}-{repr(value)[:60]}")
        for i, value in enumerate(values)
        for name, kind in KINDS.items()
        if i == 0 or (i + (name == "regressor")) % 2
    ]


PAIR = "two finite numbers, the lower first, got|two numbers that differ by more"


@pytest.mark.parametrize(
    ("kind", "value", "words", "error"),
    either(
        (1, 0),
        (0, 0),
        (0, np.inf),
        (np.nan, 1),
        (0, 10**400),
        (0, 1e200),
        (0, 1, 2),
        ("0", "1"),
        (True, False),
        3,
        "01",
        None,
        [],
        (1, 1 + 1e-12),
        (1j, 2j),
        (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
        b"01",
        words=f"column 'age'.*({PAIR})",
    ),
)
def test_a_range_that_is_none_is_refused(kind, value, words, error):
    message = refused(kind, error, words, ranges={**RANGES, "age": value})
    assert "range" in message


@pytest.mark.parametrize(
    ("kind", "value", "words", "error"),
    [
        *either(None, {}, [], {"age": (18, 98)}, words="neither|has 0 entries"),
        *either(3, "ab", {1, 2}, 2.5, len, words="must map columns to public facts"),
        *either([(0, 1)], [(0, 1)] * 2, [(0, 1)] * 4, words="X has 3 columns"),
        *either([(0, 1)] * 3, words="both"),
        *either(
            {**RANGES, "weight": (0, 1)}, words="'weight', and X has no such column"
        ),
        *either({**RANGES, 0: (0, 1)}, words="column 0, and X has no such column"),
        *either({**RANGES, "home": (0, 1)}, words="got both"),
        *either((1, 0), (0, np.nan), ("a", "b"), (0, None), words="column 'age'"),
    ],
)
def test_ranges_that_are_not_those_of_the_columns_are_refused(
    kind, value, words, error
):
    refused(kind, error, words, ranges=value)


@pytest.mark.parametrize(
    ("kind", "value", "words", "error"),
    [
        *either(None, {}, words="column 'home' must have an entry"),
        *either(3, "own", {"own"}, len, words="must map columns to public facts"),
        *either([["own"]], [["own", "rent"]] * 2, words="X has 3 columns"),
        *either({"home": ["own"], "rent": ["a"]}, words="'rent', and X has no such"),
        *either({"home": ["own"], "age": ["a"]}, words="'age' must have.*both"),
        *either(
            *({"home": wrong} for wrong in (None, 3, "own", [], ())),
            *({"home": wrong} for wrong in (["own", "own"], [0, False], [1, 1.0])),
            *({"home": wrong} for wrong in ([None], [np.nan, "own"], [pd.NA], [[1]])),
            *({"home": wrong} for wrong in ({"own"}, {"own": 1}, b"ab")),
            {"home": range(10_001)},
            words="'home' must list 1 to 10000 distinct values, none missing",
        ),
    ],
)
def test_categories_that_are_not_public_lists_are_refused(kind, value, words, error):
    refused(kind, error, words, categories=value)


@pytest.mark.parametrize(
    ("kind", "value", "words", "error"),
    [
        *either(-1, 4, 10**400, np.int64(7), words="number from 0 to 3"),
        *either(
            *(True, None, 2.0, "1", "age", b"ab", {"age"}, len),
            *([("age",)], [("age", "age")], [("age", "size", "home")], ["age"]),
            *([("age", "weight")], [(0, 1)], [None], [("age", ["size"])], [3]),
            *({("age", "size"): 1}, [{"age"}], ["ab"]),
            words="interactions must be a number of pairs, or a list of pairs of names",
        ),
    ],
)
def test_interactions_that_are_none_are_refused(kind, value, words, error):
    refused(kind, error, words, interactions=value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epsilon", (-1.0, 0.0, np.nan, np.inf, "1", True, None)),
        ("delta", (1, 1.5, -1e-9, np.nan, "1", True)),
        ("expected_rows", (0, -1, 2.5, "1", True, 2**40)),
        ("random_state", (-1, 1.5, "1", True)),
        ("neighbors", ("swap", None)),
        ("noise", ("laplace", None)),
    ],
)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_parameters_of_all_models_are_checked(name, values, kind):
    for value in values:
        refused(kind, (ValueError, TypeError), f"{name} must be", **{name: value})


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_delta_must_be_given_where_the_number_of_rows_is_private(kind):
    relation = {"neighbors": "add_or_remove_one"}
    message = refused(kind, ValueError, "delta must be given", **relation)
    assert str(N) not in message
    refused(kind, (ValueError, PlanError), "delta", delta=0.0)


@pytest.mark.parametrize(
    "y_range",
    [
        *(None, 3, (1, 0), (0, 0), (0,), (0, 1, 2), (0, np.inf), ("0", "1")),
        *((np.nan, 1), (0, 10**400), (-1e308, 1e308), (1.0, 1 + 1e-12), (True, 2)),
        *(np.zeros((2, 2)), [None, 1], "01"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_range_of_targets_that_is_none_is_refused(y_range):
    refused(AdditiveRegressor, ValueError, "y_range must be", y_range=y_range)


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ([0], "classes"),
        (3, "classes"),
        ([0, 2], "outside the public classes"),
        (["0", "1"], "outside the public"),
        ([0, 1, np.nan], "none of them missing"),
    ],
)
def test_classes_that_are_none_are_refused(classes, words):
    refused(AdditiveClassifier, ValueError, words, classes=classes)


def with_cells(column, value, count=1):
    cells = FRAME[column].astype(object)
    cells[:count] = [value] * count
    return FRAME.assign(**{column: cells})


DATES = pd.Series(pd.date_range("2020", periods=N))
BAD_ROWS = {
    "a string": (with_cells("age", SECRET), "X must hold numbers only"),
    "strings": (FRAME.assign(age=SECRET), "X must hold numbers only"),
    "numbers as strings": (FRAME.assign(age="3"), "or give their categories"),
    "bytes": (with_cells("age", SECRET.encode()), "X must hold numbers only"),
    "a list": (with_cells("age", [1, 2]), "X must hold numbers only"),
    "a date": (with_cells("age", datetime.date(2020, 1, 1)), "X must hold numbers"),
    "dates": (FRAME.assign(age=DATES), "X must hold numbers only"),
    "spans": (FRAME.assign(age=DATES - DATES[0]), "X must hold numbers only"),
    "dates as categories": (FRAME.assign(home=DATES), "'home' has dates"),
    "spans as categories": (FRAME.assign(home=DATES - DATES[0]), "'home' has dates"),
    "a complex number": (with_cells("age", 1j), "X must hold numbers only"),
    "complex": (FRAME.assign(age=1j), "X must hold real numbers"),
    "a huge integer": (with_cells("age", 10**400), "X must hold numbers only"),
    "one dimension": (FRAME["age"], "X must have 2 dimensions"),
    "a list of numbers": ([1.0] * N, "X must have 2 dimensions"),
    "three dimensions": (np.zeros((N, 3, 1)), "X must have 2 dimensions"),
    "a number": (3, "X must have 2 dimensions"),
    "a string for a table": (SECRET, "X must have 2 dimensions"),
    "uneven rows": ([[1, 2, "own"]] * (N - 1) + [[1]], "X must have 2 dimensions"),
    "no rows": (FRAME[:0], "0 sample"),
    "no columns": (FRAME[[]], "0 feature"),
    "another number of rows": (FRAME[:-1], "as many rows as each other"),
    "a column too few": (FRAME.drop(columns="size"), "'size', and X has no such"),
    "a column too many": (FRAME.assign(more=1), "'more' must have an entry"),
    "positions": (FRAME.to_numpy(dtype=object), "'home', and X has no such column"),
    "sparse": (sparse.csr_matrix((N, 3)), "takes no sparse X"),
    "sparse array": (sparse.coo_array((N, 3)), "takes no sparse X"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_rows_that_are_none_are_refused(name, kind):
    X, words = BAD_ROWS[name]
    refused(kind, (ValueError, TypeError), words, X=X)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_complex_array_is_refused(kind):
    X = np.zeros((N, 2), dtype=complex)
    given = {"ranges": (0, 1), "categories": None}
    refused(kind, ValueError, "X must hold real numbers", X=X, **given)
    refused(kind, ValueError, "numbers only", X=np.full((N, 2), SECRET), **given)


@pytest.mark.parametrize(
    ("kind", "y", "words"),
    [
        (AdditiveRegressor, TARGETS * np.nan, "y contains NaN"),
        (AdditiveRegressor, np.full(N, np.inf), "y contains NaN or inf"),
        (AdditiveRegressor, np.array([SECRET] * N), "y must hold numbers"),
        (AdditiveRegressor, [SECRET, *TARGETS[1:]], "y must hold numbers"),
        (AdditiveRegressor, TARGETS + 1j, "y must hold real numbers"),
        (AdditiveRegressor, TARGETS[:-1], "inconsistent numbers"),
        (AdditiveClassifier, np.c_[LABELS, LABELS], "y should be a 1d"),
        (AdditiveClassifier, 0 * LABELS, "y has one class|y holds one class"),
        (AdditiveClassifier, TARGETS, "continuous"),
        (AdditiveClassifier, [SECRET, *LABELS[1:]], "labels of one kind"),
        (AdditiveClassifier, sparse.csr_matrix(LABELS), "y must be dense"),
    ],
)
def test_targets_that_are_none_are_refused(kind, y, words):
    refused(kind, ValueError, words, y=y)


def test_a_fit_beyond_the_budget_is_refused_before_a_cell_is_read():
    ledger = Ledger(Budget(0.5, 1e-6))
    X = with_cells("age", SECRET)
    refused(AdditiveClassifier, BudgetExceeded, "budget", X=X, ledger=ledger)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_same_is_refused_where_a_model_predicts(kind):
    own = {"y_range": (0, 1)} if kind is AdditiveRegressor else {}
    y = LABELS if kind is AdditiveClassifier else TARGETS
    model = kind(**GOOD, **own).fit(FRAME, y)
    for name in ("a string", "bytes", "dates", "one dimension", "sparse", "complex"):
        X, words = BAD_ROWS[name]
        with pytest.raises((ValueError, TypeError), match=words) as found:
            model.predict(X)
        assert SECRET not in str(found.value)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[["size", "age", "home"]])
    for plan in (lambda: model.plan(1), lambda: model.plan(N, 0)):
        with pytest.raises(ValueError, match="must be"):
            plan()


@pytest.mark.parametrize(
    "value",
    [(Fraction(18), 98), [18, 98], np.array([18, 98]), (np.float32(18), np.int8(98))],
    ids=repr,
)
def test_ranges_of_all_kinds_are_read_as_numbers(value):
    model = AdditiveRegressor(
        **{**GOOD, "ranges": {**RANGES, "age": value}}, y_range=(0, 1)
    )
    column = model.fit(FRAME, TARGETS)._columns[0]
    assert (column.low, column.high) == (18.0, 98.0)
    assert type(column.low) is type(column.high) is float


@pytest.mark.parametrize(
    "value",
    [("own", "rent"), np.array(["own", "rent"]), pd.Index(["own", "rent"])],
    ids=lambda value: type(value).__name__,
)
def test_lists_of_all_kinds_are_read_as_categories(value):
    model = AdditiveRegressor(**{**GOOD, "categories": {"home": value}}, y_range=(0, 1))
    labels = model.fit(FRAME, TARGETS).shapes_[2].labels
    assert labels == ("own", "rent", "(other)", "(missing)")


def test_more_categories_than_a_descent_takes_are_rejected_in_words_of_the_table():
    codes = list(range(2500))
    table = pd.DataFrame({"code": codes[:N], "size": FRAME["size"]})
    refused(
        AdditiveClassifier,
        PlanError,
        "up to 2000 categories, .* got 2504; merge rare categories",
        X=table,
        ranges={"size": (0, 3)},
        categories={"code": codes},
    )


@pytest.mark.parametrize("kind", KINDS)
def test_noise_beyond_any_signal_warns_once_and_is_noted(kind):
    own = {"y_range": (0, 1)} if kind == "regressor" else {"classes": [0, 1]}
    y = TARGETS if kind == "regressor" else LABELS
    model = KINDS[kind](1e-3, 1e-6, **GOOD, **own)
    with pytest.warns(NoiseWarning, match="3 columns are too many") as raised:
        model.fit(FRAME, y)
    assert len(raised) == 1
    assert any("exceeds any signal" in note for note in model.privacy_.notes)
    usual = KINDS[kind](1.0, 1e-9, **GOOD, **own).plan(50_000)
    assert not any("exceeds any signal" in words for words in usual.assumptions)


@pytest.mark.parametrize(
    "facts",
    [{"ranges": (0, 1)}, {"ranges": {"a": (0, 1)}, "n_features": 5}],
    ids=["one range", "one of five"],
)
def test_a_plan_of_unknown_columns_is_rejected(facts):
    n_features = facts.pop("n_features", None)
    with pytest.raises(ValueError, match="n_features"):
        AdditiveClassifier(1.0, 1e-6, classes=[0, 1], **facts).plan(1000, n_features)
    model = AdditiveClassifier(1.0, 1e-6, classes=[0, 1], ranges=[(0, 1), (0, 2)])
    assert model.plan(1000).bins.n_columns == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_without_rows_is_fitted_as_any_other(kind):
    own = {"y_range": (0, 1)} if kind == "regressor" else {"classes": [0, 1]}
    for pairs in (2, [("age", "home")]):
        model = KINDS[kind](
            1.0,
            1e-5,
            **GOOD,
            **own,
            interactions=pairs,
            neighbors="add_or_remove_one",
            random_state=Seed(0),
        )
        ledger = Ledger(Budget(2.0, 1e-3, "add_or_remove_one"))
        model.fit(FRAME.iloc[:0], LABELS[:0], ledger=ledger)
        assert len(ledger.report().entries) == 1
        assert np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("y_range", [(-1e303, 1e303), (0, 1e-322)])
def test_target_ranges_whose_unit_is_no_number_are_rejected(y_range):
    refused(AdditiveRegressor, ValueError, "y_range must be two", y_range=y_range)


def test_targets_far_outside_of_the_range_are_those_of_its_end():
    fits = []
    for far in (1e9, 1.7e308):
        y = np.append(TARGETS[1:], far)
        model = AdditiveRegressor(
            5.0, 1e-5, **GOOD, y_range=(0, 1), random_state=Seed(0)
        )
        fits.append(model.fit(FRAME, y))
    assert np.array_equal(fits[0].predict(FRAME), fits[1].predict(FRAME))


@pytest.mark.parametrize("kind", KINDS)
def test_masked_arrays_are_rejected_as_a_mask_would_be_read_past(kind):
    X = np.ma.masked_array(np.full((N, 1), 0.5), mask=np.zeros((N, 1)))
    y = TARGETS if kind == "regressor" else LABELS
    facts = {"ranges": (0, 1), "categories": None}
    refused(KINDS[kind], TypeError, "X must not be a masked array", X=X, **facts)
    masked = np.ma.masked_array(y, mask=np.zeros(N))
    refused(KINDS[kind], TypeError, "y must not be a masked array", y=masked)


def test_more_pairs_than_a_descent_takes_are_rejected_before_a_plan():
    model = AdditiveClassifier(1.0, 1e-6, classes=[0, 1], ranges=(0, 1))
    model.set_params(interactions=600)
    with pytest.raises(PlanError, match="600 pairs have up to 5400; give fewer pairs"):
        model.plan(1000, 50)


@pytest.mark.parametrize("pairs", [None, 2.5, True, "ab"])
def test_a_forecast_rejects_pairs_as_a_fit_does(pairs):
    model = AdditiveClassifier(1.0, 1e-6, interactions=pairs)
    with pytest.raises(ValueError, match="interactions must be a number"):
        expected_score(model, 1000, [1, 1, 1], n_classes=2, repeats=1)


def test_loops_that_cannot_be_compiled_charge_nothing(monkeypatch):
    def full(*_):
        raise OSError("no space left.")

    monkeypatch.setattr("tacit.additive._kernels.add_up", full)
    refused(AdditiveClassifier, OSError, "no space left")
