"""Bounds between two models at a known distance, and the order they are in."""

import numpy as np
import pytest
from tests.fairness.people import models, people

from tacit._random import as_generator
from tacit.fairness import certify, group_fairness
from tacit.fairness._bounds import fragile_rows
from tacit.fairness._groups import NOTIONS, cells_of
from tacit.fairness._margins import linear_margins
from tacit.fairness._sampling import Ends, figure_ends, tallies_of


def truncated_chernoff(margins, lipschitz, distance, t):
    """The published bound on how many answers differ, for one ``t``.

    ``exp(t d) E[exp(-t |margin| / lipschitz); |margin| <= lipschitz d]`` (Mangold 2023,
    Remarks C.2.1 and C.2.2). Every row that is left has an exponent of at least zero,
    so it grows with ``t``, and is least at ``t = 0``: the plain fraction of rows with a
    small margin, which `certify` counts.
    """
    near = np.abs(margins) <= lipschitz * distance
    left = np.where(near, distance - np.abs(margins) / lipschitz, 0.0)
    return float(np.where(near, np.exp(t * left), 0.0).mean())


N_LABELS = [2, 3]
# demographic parity is for two labels
CASES = [
    (notion, n)
    for notion in NOTIONS
    for n in N_LABELS
    if n == 2 or notion != "demographic_parity"
]


def certified(y, s, found, distance, notion, bound="one_sided", **others):
    return certify(
        y,
        sensitive_features=s,
        margins=found.margins,
        lipschitz=found.lipschitz,
        distance=distance,
        notion=notion,
        bound=bound,
        **others,
    )


@pytest.mark.parametrize(("notion", "n_labels"), CASES)
def test_figures_of_a_thousand_neighbors_lie_in_the_intervals(notion, n_labels):
    X, y, s = people(400, n_labels=n_labels)
    extra = {"desirable": [0, 1]} if notion == "equal_opportunity" else {}
    for seed in range(200 if n_labels == 2 else 50):
        distance = 10 ** -(seed % 4)
        first, second = models(5, n_labels, distance, seed)
        found = linear_margins(first, X, y)
        held = certified(y, s, found, distance, notion, **extra)
        other = group_fairness(
            y, second.predict(X), sensitive_features=s, notion=notion, **extra
        )
        assert (held.lower - 1e-12 <= other.values).all()
        assert (other.values <= held.upper + 1e-12).all()


def test_a_distance_a_third_too_small_does_not_hold():
    """Control: the models are further apart than the bound is told."""
    X, y, s = people(2000)
    escaped = 0
    for seed in range(40):
        first, second = models(5, 2, 0.3, seed)
        # the move that turns most answers: towards the other side
        second.coef_ = first.coef_ * (1 - 0.3 / np.linalg.norm(first.coef_))
        second.intercept_ = first.intercept_ + 0.3
        held = certified(y, s, linear_margins(first, X, y), 0.03, "equalized_odds")
        other = group_fairness(y, second.predict(X), sensitive_features=s)
        escaped += ((other.values < held.lower) | (other.values > held.upper)).any()
    assert escaped > 30


@pytest.mark.parametrize("n_labels", N_LABELS)
def test_bounds_are_in_their_order(n_labels):
    """Actual change, one side, count, Chernoff for every t; Markov above the count."""
    X, y, s = people(500, n_labels=n_labels)
    for seed in range(50):
        first, second = models(5, n_labels, 0.2, seed)
        found = linear_margins(first, X, y)
        actual = abs((first.predict(X) == y).mean() - (second.predict(X) == y).mean())
        sizes = [
            certified(y, s, found, 0.2, "accuracy", bound).largest_change
            for bound in ("one_sided", "count", "markov")
        ]
        assert actual <= sizes[0] + 1e-12
        assert sizes == sorted(sizes)
        chernoff = [
            truncated_chernoff(found.margins, found.lipschitz, 0.2, t)
            for t in (0.0, 0.1, 1.0, 10.0)
        ]
        assert chernoff == sorted(chernoff)
        # no search is needed: the least is at zero, and it is the count
        assert chernoff[0] == pytest.approx(sizes[1])


@pytest.mark.parametrize("notion", NOTIONS)
def test_exact_sums_are_never_above_the_corollary(notion):
    X, y, s = people(500)
    for seed in range(20):
        found = linear_margins(models(5, 2, 0.2, seed)[0], X, y)
        one, count, markov, printed, printed_count = (
            certified(y, s, found, 0.2, notion, bound).change
            for bound in (
                "one_sided",
                "count",
                "corollary_count",
                "markov",
                "corollary",
            )
        )
        assert (one <= count + 1e-12).all()
        assert (count <= printed_count + 1e-12).all()
        assert (markov <= printed * (1 + 1e-12)).all()


def test_a_balanced_group_has_half_the_corollary():
    """The exact sum is E(.) + (1 - 2 P(S = r)) E(. | S = r)."""
    X, y, s = people(2000)
    found = linear_margins(models()[0], X, y)
    near = np.abs(found.margins) <= 0.2 * found.lipschitz
    held = certified(y, s, found, 0.2, "accuracy_parity", "count")
    for group, change in zip(held.groups, held.change, strict=True):
        inside = s == group.sensitive
        wanted = near.mean() + (1 - 2 * inside.mean()) * near[inside].mean()
        assert change == pytest.approx(wanted)


@pytest.mark.parametrize("notion", NOTIONS)
def test_sums_over_cells_are_contrasts_of_shares(notion):
    """The interval by constants is (1 - q)(inside - outside), end for end."""
    X, y, s = people(700)
    found = linear_margins(models()[0], X, y)
    held = certified(y, s, found, 0.1, notion)
    cells = cells_of(y, s, notion)
    fragile = fragile_rows(found.margins, found.lipschitz, 0.1, len(y))
    t = tallies_of(
        cells.layout,
        cells.counts(),
        cells.counts(fragile.surely_right),
        cells.counts(fragile.possibly_right),
    )
    inside = Ends(t.sure_inside / t.inside, t.possible_inside / t.inside)
    if notion == "accuracy":
        wanted = inside
    else:
        outside = Ends(t.sure_outside / t.outside, t.possible_outside / t.outside)
        size = t.inside / (t.inside + t.outside)
        wanted = figure_ends(inside, outside, Ends(size, size))
    np.testing.assert_allclose(held.lower, wanted.low, atol=1e-12)
    np.testing.assert_allclose(held.upper, wanted.high, atol=1e-12)


def test_ties_are_fragile_both_ways_and_make_markov_say_nothing():
    y, s = np.repeat([0, 1], 20), np.tile(["a", "b"], 20)
    rho = np.where(np.arange(40) < 4, 0.0, 1.0)
    given = {"sensitive_features": s, "margins": rho, "lipschitz": 1.0, "distance": 0.0}
    held = certify(y, notion="accuracy", **given)
    assert held.lower[0] == pytest.approx(0.8)
    assert held.upper[0] == pytest.approx(1.0)
    empty = certify(y, notion="accuracy", bound="markov", **given)
    assert empty.largest_change == np.inf
    assert empty.to_dict()["largest_change"] is None


@pytest.mark.parametrize(
    ("n_labels", "factor"), [(2, 1.0), (3, np.sqrt(2))], ids=["two", "several"]
)
def test_lipschitz_constants_hold_and_are_attained(n_labels, factor, seed):
    X, y, _ = people(300, n_labels=n_labels)
    rng = as_generator(seed)
    first, _ = models(5, n_labels)
    found = linear_margins(first, X, y)
    norms = np.sqrt((X**2).sum(1) + 1)
    np.testing.assert_allclose(found.lipschitz, factor * norms)
    for i in range(20):
        # the worst move: this row up for its label's rival, down for its own
        step = np.zeros((len(first.coef_), 6))
        row = np.append(X[i], 1.0) / norms[i]
        if n_labels == 2:
            step[0] = row * (1 if y[i] == 0 else -1)
        else:
            scores = X[i] @ first.coef_.T + first.intercept_
            scores[y[i]] = -np.inf
            step[y[i]], step[scores.argmax()] = -row / np.sqrt(2), row / np.sqrt(2)
        size = 0.01 * rng.random()
        second = type(first)(
            first.coef_ + size * step[:, :-1],
            first.intercept_ + size * step[:, -1],
            first.classes_,
        )
        moved = linear_margins(second, X, y).margins - found.margins
        assert (np.abs(moved) <= found.lipschitz * size * (1 + 1e-9)).all()
        assert moved[i] == pytest.approx(-found.lipschitz[i] * size)


def test_a_model_without_an_intercept_has_shorter_rows():
    X, y, _ = people(100)
    first, _ = models(5, intercept=False)
    found = linear_margins(first, X, y)
    np.testing.assert_allclose(found.lipschitz, np.linalg.norm(X, axis=1))


def test_margins_depend_on_their_row_alone():
    X, y, _ = people(300)
    first, _ = models()
    whole = linear_margins(first, X, y)
    part = linear_margins(first, X[7:8], y[7:8])
    assert part.margins[0] == whole.margins[7]
    assert part.lipschitz[0] == whole.lipschitz[7]


def test_bad_margins_and_models_are_refused_by_name():
    X, y, s = people()
    first, _ = models()
    found = linear_margins(first, X, y)

    def certificate(**changed):
        given = {
            "sensitive_features": s,
            "margins": found.margins,
            "lipschitz": found.lipschitz,
            "distance": 0.1,
        }
        return certify(y, **(given | changed))

    for changed, said in [
        ({"margins": found.margins[1:]}, "margins must have one number"),
        ({"margins": np.where(s == 1, np.nan, 1.0)}, "margins must be finite"),
        ({"lipschitz": -1.0}, "lipschitz must be finite and >= 0"),
        ({"distance": -1.0}, "distance must be"),
        ({"distance": np.nan}, "distance must be"),
        ({"failure": 0.0}, "failure must be"),
        ({"sampling": 0.02}, "sampling must be less than failure"),
        ({"sampling": 0.001, "bound": "count"}, "sampling is for bound='one_sided'"),
        ({"bound": "chernoff"}, "bound must be"),
    ]:
        with pytest.raises(ValueError, match=said):
            certificate(**changed)
    with pytest.raises(ValueError, match="fitted linear classifier with coef_"):
        linear_margins(object(), X, y)
    with pytest.raises(ValueError, match="X must have 5 columns"):
        linear_margins(first, X[:, 1:], y)
    with pytest.raises(ValueError, match="labels of the model only"):
        linear_margins(first, X, y + 5)
