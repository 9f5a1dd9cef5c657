"""Formatting of numbers; bounds are rounded towards the safe side."""

import pytest

from tacit.privacy import budget
from tacit.privacy.combined import FixedSizeSampled, PoissonSampled
from tacit.privacy.event_data import describe
from tacit.privacy.events import (
    ApproxDP,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    PureDP,
    Repeated,
)
from tacit.reports._format import (
    NOTHING,
    TIMES,
    at_most,
    clean,
    count,
    event_words,
    factor,
    fixed,
    fixed_down,
    fixed_up,
    moment,
    number,
    number_down,
    number_up,
    one_in,
    percent,
    spent_up,
    stamp,
    tiny,
    tiny_up,
    truncated,
)

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.99998825, "1"),
        (0.5, "0.5"),
        (-1.25, f"{MINUS}1.25"),
        (0.00012345, "0.0001234"),
        (1e-7, "10⁻⁷"),
        (123456.7, "123,457"),
        (0.0, "0"),
        (None, NOTHING),
        (float("inf"), "infinite"),
        (float("nan"), NOTHING),
    ],
)
def test_numbers_have_four_digits_and_no_exponent_where_none_is_expected(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (1e-6, "1 in 1 million"),
        (1 / 3000**2, "1 in 9 million"),
        (1 / 48211, "1 in 48,211"),
        (3e-10, "1 in 3.33 billion"),
        (0.05, "1 in 20"),
        (0.3, "1 in 3.3"),
        (1e-20, "1 in 10²⁰"),
        (0.0, "never"),
        (1.0, "always"),
    ],
)
def test_small_probabilities_are_one_in_so_many(probability, text):
    assert one_in(probability) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.5, "50%"),
        (0.73106, "73.2%"),
        (0.0027, "0.27%"),
        (0.00271, "0.28%"),
        (0.9999, "100%"),
        (1.0, "100%"),
        (1e-10, "0.01%"),
        (0.5 + 1e-12, "50.1%"),
        (0.0, "0.00%"),
    ],
)
def test_bounds_are_rounded_up(share, text):
    assert at_most(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (3.6, "3.6"),
        (1.00049, "1.001"),
        (0.1 + 0.2, "0.3001"),
        (9.9999, "10"),
        (123456.2, "123,457"),
        (1.0004e-7, f"1.01 {TIMES} 10⁻⁷"),
        (None, NOTHING),
    ],
)
def test_guarantees_are_rounded_up(value, text):
    assert number_up(value) == text


def test_what_is_spent_is_rounded_alike_on_pages_and_in_print():
    # 1.1000004 is 1.1, as the search for it is no more exact
    for spent, text in ((0.895832, "0.8959"), (1.1000004, "1.1"), (1.2001, "1.201")):
        assert spent_up(spent) == budget.spent_up(spent) == text
    assert (spent_up(0.0), budget.spent_up(0.0), spent_up(None)) == ("0", "0", NOTHING)


def test_deltas_are_rounded_up_and_one_in_n_down():
    assert tiny_up(1e-6) == "10⁻⁶"
    assert tiny_up(1.004e-6) == f"1.01 {TIMES} 10⁻⁶"
    assert one_in(1.0000001e-6) == "1 in 999,999"
    assert one_in(1.004e-20) == f"1 in 9.96 {TIMES} 10¹⁹"
    assert factor(25.00001) == "e to the power 25.01"


def test_intervals_are_rounded_outwards():
    assert (fixed_down(0.7649), fixed_up(0.8001)) == ("0.764", "0.801")
    assert (fixed_down(0.764), fixed_up(0.8)) == ("0.764", "0.800")
    assert (number_down(-1.23451), number_up(-1.23451)) == (
        f"{MINUS}1.235",
        f"{MINUS}1.234",
    )


def test_factors_are_rounded_up_and_stay_readable():
    assert factor(1.0) == "2.72"
    assert factor(5.0) == "149"
    assert factor(50.0) == "e to the power 50"


def test_other_figures():
    assert count(48211) == "48,211"
    assert percent(0.527) == "52.7%"
    assert percent(0.001) == "0.1%"
    assert fixed(0.8) == "0.800"
    assert fixed(-0.5) == f"{MINUS}0.500"
    assert tiny(2.5e-9) == f"2.5 {TIMES} 10⁻⁹"
    assert tiny(0.0) == "0"


def test_times_are_in_utc():
    assert moment("2026-11-15T14:03:22+02:00") == "15 November 2026, 12:03 UTC"
    assert moment("2026-11-05T14:03:22Z") == "5 November 2026, 14:03 UTC"
    assert moment("last week") == "last week"
    assert stamp("2026-11-15T14:03:22+02:00") == "2026-11-15 12:03"
    assert stamp("last week") == "last week"


def test_control_and_bidirectional_characters_are_made_visible():
    assert clean("a\nb\tc") == "a b c"
    assert clean("evil\u202egpj.exe\x00\x1b[31m\u2028") == "evil�gpj.exe��[31m�"
    assert clean("Müller 患者 é") == "Müller 患者 é"
    assert truncated("x" * 200, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (GaussianNoise(2.0), "Gaussian mechanism, noise multiplier 2"),
        (LaplaceNoise(0.5), "Laplace mechanism, noise multiplier 0.5"),
        (PureDP(1.5), "PureDP(epsilon=1.5)"),
        (
            Repeated(ApproxDP(0.5, 1e-7), 1),
            "a release of epsilon 0.5, delta 1e-07, once",
        ),
        (
            Repeated(PoissonSampled(GaussianNoise(2.0), 0.01), 1200),
            "Gaussian mechanism, noise multiplier 2, on a Poisson sample of 1% of the "
            "rows, 1,200 times",
        ),
        (
            FixedSizeSampled(GaussianNoise(2.0), 10, 1000),
            "Gaussian mechanism, noise multiplier 2, on a random sample of 10 of 1,000 "
            "rows",
        ),
        (
            Composed((PureDP(1.0), PureDP(2.0))),
            "PureDP(epsilon=1), once; PureDP(epsilon=2), once",
        ),
    ],
)
def test_events_are_phrases(event, text):
    assert event_words(describe(event)) == text
