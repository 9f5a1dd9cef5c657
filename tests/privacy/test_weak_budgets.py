"""Valid budgets that protect little are named, by public numbers alone."""

import pytest

from tacit.privacy import Budget, GaussianNoise, Ledger
from tacit.privacy.budget import budget_warnings


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "expected"),
    [
        (1.0, 1e-6, None, []),
        (10.0, 9e-4, None, []),
        (10.0, 1e-4, 10_000, []),
        (10.1, 0.0, 5, ["epsilon 10.1 is a weak guarantee"]),
        (1.0, 1e-3, None, ["delta 0.001 is too large: with that probability"]),
        (1.0, 1e-3, 500, ["delta 0.001 is too large: with that probability"]),
        (1.0, 1e-4, 20_000, ["delta 0.0001 is too large: it is above one over"]),
        (50.0, 0.5, 100, ["epsilon 50 is", "publishing 50 whole rows on average"]),
    ],
)
def test_each_weakness_is_one_sentence(epsilon, delta, rows, expected):
    found = budget_warnings(Budget(epsilon, delta), rows)
    assert len(found) == len(expected)
    for words, sentence in zip(expected, found, strict=True):
        assert words in sentence
        assert sentence.endswith(".")
        assert "\n" not in sentence


@pytest.mark.parametrize(
    ("rows", "words"),
    [(40_000, "2e-05."), (100, "0.01."), (3, "0.3."), (1_500_000, "6e-07.")],
)
def test_the_delta_to_stay_below_is_rounded_down(rows, words):
    (found,) = budget_warnings(Budget(1.0, 0.5), rows)[-1:]
    assert found.endswith(f"choose a delta well below {words}")


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [(10.1, "24,344"), (12.0, "162,755"), (50.0, "5.2e+21"), (1000.0, "2.0e+434")],
)
def test_the_odds_are_those_of_the_given_epsilon(epsilon, factor):
    (found,) = budget_warnings(Budget(epsilon))
    assert f"by a factor of up to {factor};" in found


def test_a_printed_report_warns_of_a_weak_budget():
    def printed(budget):
        ledger = Ledger(budget)
        ledger.charge(GaussianNoise(10.0), "fit")
        return str(ledger.report())

    text = printed(Budget(50.0, 0.5))
    assert "WARNING      epsilon 50 is a weak guarantee" in text
    assert "WARNING      delta 0.5 is too large" in text
    assert "WARNING" not in printed(Budget(1.0, 1e-6))
