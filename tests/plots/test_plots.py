"""What is drawn, read back from the axes."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

from tacit.linear_model._saved import CoefficientNoise
from tacit.plots import (
    audit_roc,
    coefficients,
    ledger,
    plot_shapes,
    privacy_curve,
    privacy_utility,
    trade_off,
)
from tacit.privacy import Budget, GaussianNoise, LaplaceNoise, Ledger

mpl.use("Agg")


@pytest.fixture
def ax():
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the backend is chosen

    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()  # what cannot be rendered fails here
    plt.close("all")


def report():
    account = Ledger(Budget(1.0, 1e-6))
    account.charge(GaussianNoise(10.0), "mean $age")
    account.charge(GaussianNoise(20.0), "test", seeded=True)
    return account.report()


def segments(axes, which=0):
    return [np.asarray(s) for s in axes.collections[which].get_segments()]


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_curve_of_an_event_is_drawn_as_it_is(ax):
    event = GaussianNoise(2.0)
    assert privacy_curve(event, ax=ax, label="fit", linestyle="--") is ax
    (line,) = ax.get_lines()
    curve = event.curve(Budget(1.0).neighbors)
    epsilons, deltas = line.get_data()
    np.testing.assert_allclose(deltas, [curve.delta(e) for e in epsilons])
    assert epsilons[0] == 0
    assert deltas[-1] == pytest.approx(1e-12, rel=0.01)
    assert ax.get_yscale() == "log"
    assert line.get_linestyle() == "--"
    assert labels(ax) == ["fit"]


def test_the_guarantee_of_a_report_is_marked(ax):
    privacy_curve(report(), ax=ax)
    line, mark = ax.get_lines()
    assert mark.get_xydata().tolist() == [[1.0, 1e-6]]
    # both charges together: 1/10^2 + 1/20^2
    both = GaussianNoise(1 / np.sqrt(0.0125)).curve(Budget(1.0).neighbors)
    epsilons, deltas = line.get_data()
    np.testing.assert_allclose(deltas, [both.delta(e) for e in epsilons], rtol=1e-6)


def test_a_pure_curve_stops_where_delta_is_zero(ax):
    privacy_curve(LaplaceNoise(1.0), ax=ax)
    (line,) = ax.get_lines()
    assert line.get_xdata().max() <= 1.0
    assert line.get_ydata().min() > 0


def test_a_pure_budget_is_marked_at_the_foot_of_the_axis(ax):
    privacy_curve(Budget(1.0), ax=ax)
    line, mark = ax.get_lines()
    assert mark.get_xdata() == [1.0]
    assert mark.get_ydata()[0] == line.get_ydata().min()


def test_the_trade_off_is_the_roc_of_the_best_attacker(ax):
    assert trade_off(GaussianNoise(1.0), ax=ax) is ax
    best, coin = ax.get_lines()
    rates, power = best.get_data()
    np.testing.assert_allclose(
        power, stats.norm.cdf(stats.norm.ppf(rates) + 1.0), atol=2e-3
    )
    assert coin.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert labels(ax)[0] == "best attacker: right 69.2% of the time"


def test_curves_on_the_same_axes_share_one_coin(ax):
    trade_off(GaussianNoise(1.0), ax=ax, label="first")
    trade_off(Budget(1.0), ax=ax, label="second")
    assert labels(ax) == ["first", "tossing a coin", "second"]


def test_an_audit_roc_counts_scores_at_or_above_each_threshold(ax):
    audit_roc([3.0, 2.0, 2.0, 0.0], [2.0, 1.0, 0.0, 0.0], ax=ax)
    roc, _ = ax.get_lines()
    assert roc.get_xydata().tolist() == [
        [0, 0],
        [0, 0.25],
        [0.25, 0.75],
        [0.5, 0.75],
        [1, 1],
    ]
    assert not ax.collections


def test_the_region_a_guarantee_forbids_is_shaded(ax):
    audit_roc([1.0], [0.0], epsilon=1.0, delta=1e-5, ax=ax)
    above, below = (c.get_paths()[0] for c in ax.collections)
    # at a rate of 1% at most e% is found; so too with the answers turned round
    assert above.contains_point((0.01, 0.03))
    assert not above.contains_point((0.01, 0.027))
    assert below.contains_point((0.99, 0.97))
    assert not below.contains_point((0.99, 0.973))


def test_scores_must_be_numbers(ax):
    with pytest.raises(ValueError, match="scores_out must have at least one score"):
        audit_roc([1.0], [], ax=ax)
    with pytest.raises(ValueError, match="scores_in must have at least one score"):
        audit_roc([np.nan], [1.0], ax=ax)
    with pytest.raises(ValueError, match="epsilon must be"):
        audit_roc([1.0], [1.0], epsilon=-1.0, ax=ax)


def test_utility_shows_mean_and_spread_in_order_of_epsilon(ax):
    scores = [[0.9, 0.7], [0.5, 0.5], [0.6, 0.8]]
    privacy_utility([4.0, 1.0, 2.0], scores, baseline=0.95, ax=ax, measure="accuracy")
    line, baseline = ax.get_lines()
    np.testing.assert_allclose(line.get_xydata(), [[1, 0.5], [2, 0.7], [4, 0.8]])
    assert baseline.get_ydata() == [0.95, 0.95]
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(0.8 + np.std([0.9, 0.7], ddof=1))
    assert heights.min() == pytest.approx(0.5)
    assert ax.get_ylabel() == "accuracy"
    assert ax.get_xscale() == "log"


def test_utility_of_single_runs_has_no_band(ax):
    privacy_utility([1.0, 2.0], [0.5, 0.6], ax=ax)
    assert not ax.collections
    with pytest.raises(ValueError, match="one row for each of the 2 epsilons"):
        privacy_utility([1.0, 2.0], [0.5], ax=ax)
    with pytest.raises(ValueError, match="epsilons must all be > 0"):
        privacy_utility([0.0, 2.0], [0.5, 0.6], ax=ax)


def model(**more):
    return SimpleNamespace(coef_=np.array([[0.5, -3.0, 1.0, 0.0]]), **more)


def test_coefficients_are_drawn_largest_on_top(ax):
    coefficients(model(feature_names_in_=["a", "b$", "c", "d"]), top=3, ax=ax)
    _zero, dots = ax.get_lines()
    assert dots.get_xdata().tolist() == [0.5, 1.0, -3.0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "c", r"b\$"]
    assert ax.get_title() == "Coefficients, largest 3 of 4"
    assert "not known" in ax.get_xlabel()
    assert not ax.collections


@pytest.mark.parametrize(
    ("law", "width"),
    [
        ({}, stats.norm.ppf(0.95)),
        ({"law": "gaussian"}, stats.norm.ppf(0.95)),
        ({"law": "laplace"}, stats.laplace(scale=0.5**0.5).ppf(0.95)),
        ({"law": "gamma"}, 10**0.5),  # Chebyshev
    ],
)
def test_noise_bars_cover_the_level_asked(ax, law, width):
    noise = CoefficientNoise(np.array([[0.1, 0.2, 0.3, 0.4]]), 0.0, "made up", **law)
    coefficients(model(noise_=noise), level=0.9, ax=ax)
    ends = np.array([s[:, 0] for s in segments(ax)])
    expected = [(0.0, 0.4), (0.5, 0.1), (1.0, 0.3), (-3.0, 0.2)]
    for (low, high), (center, std) in zip(ends, expected, strict=True):
        assert low == pytest.approx(center - width * std)
        assert high == pytest.approx(center + width * std)


def test_given_intervals_take_the_place_of_noise_bars(ax):
    intervals = SimpleNamespace(low=[[0, -4, 0, -1]], high=[[1, -2, 2, 1]])
    noise = SimpleNamespace(coef=np.ones((1, 4)))
    coefficients(model(noise_=noise), intervals, top=1, ax=ax)
    assert segments(ax)[0][:, 0].tolist() == [-4, -2]


def test_one_class_of_many_is_drawn(ax):
    many = SimpleNamespace(coef_=np.array([[1.0, 2.0], [5.0, -4.0]]))
    coefficients(many, output=1, ax=ax)
    assert ax.get_lines()[1].get_xdata().tolist() == [-4.0, 5.0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["column 1", "column 0"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"top": 0}, ValueError, "top must be"),
        ({"output": 1}, ValueError, "output must lie in 0..0"),
        ({"level": 1.0}, ValueError, "level must be"),
        ({"feature_names": ["a"]}, ValueError, "must name 4 columns"),
        ({"intervals": 3}, TypeError, "fields low and high"),
        (
            {"intervals": SimpleNamespace(low=[1], high=[2])},
            ValueError,
            "intervals must have the shape",
        ),
    ],
)
def test_what_does_not_fit_the_model_is_refused(ax, change, error, message):
    with pytest.raises(error, match=message):
        coefficients(model(), ax=ax, **change)


def test_a_ledger_shows_charges_spend_and_budget(ax):
    found = report()
    ledger(found, ax=ax)
    spent, budget = ax.get_lines()
    assert spent.get_ydata() == [found.spent] * 2
    assert budget.get_ydata() == [1.0, 1.0]
    (plain,), (seeded,) = segments(ax, 0), segments(ax, 1)
    assert plain.tolist() == [[1, 0], [1, found.entries[0].epsilon]]
    assert seeded.tolist() == [[2, 0], [2, found.entries[1].epsilon]]
    assert "FIXED SEED: not private" in labels(ax)
    assert [t.get_text() for t in ax.get_xticklabels()] == [r"mean \$age", "test"]


def test_a_ledger_itself_and_an_empty_one_are_drawn(ax):
    ledger(Ledger(Budget(1.0, 1e-6)), ax=ax)
    spent, _ = ax.get_lines()
    assert spent.get_ydata() == [0.0, 0.0]


def test_new_axes_are_made_where_none_are_given():
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the backend is chosen

    first, second = trade_off(GaussianNoise(1.0)), trade_off(GaussianNoise(1.0))
    assert first.figure is not second.figure
    plt.close("all")


def test_importing_the_plots_does_not_load_matplotlib():
    code = "import sys, tacit.plots; print('matplotlib' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"


def additive(std=True):
    """A model of two columns and two classes, as far as plots read it."""
    age = SimpleNamespace(
        column="age",
        edges=np.array([18.0, 30.0, 60.0, 90.0]),
        labels=("(missing)",),
        values=np.array([[-1.0], [0.5], [2.0], [0.25]]),
        std=np.array([[0.1], [0.1], [0.2], [0.5]]) if std else None,
        mass=np.array([0.2, 0.5, 0.25, 0.05]),
    )
    home = SimpleNamespace(
        column="$home",
        edges=None,
        labels=("own", "rent", "(other)"),
        values=np.array([[0.3], [-0.3], [9.0]]),
        std=np.array([[0.1], [0.1], [7.0]]) if std else None,
        mass=np.array([0.5, 0.5, 0.0]),
    )
    importances = {"$home": 2.0, "age": 1.0, ("age", "$home"): 0.5}
    return SimpleNamespace(shapes_=[age, home], importances_=importances)


def test_shapes_are_drawn_by_importance_on_one_scale(ax):
    home, age = plot_shapes(additive())
    assert [each.get_title() for each in (home, age)] == [r"\$home", "age"]
    assert home.get_ylim() == age.get_ylim()
    # what has no rows does not set the scale
    assert age.get_ylim()[1] < 3
    assert [text.get_text() for text in home.get_xticklabels()] == ["own", "rent"]
    assert "missing cells: +0.25" in age.get_xlabel()


def test_the_band_of_a_shape_is_as_wide_as_the_level_says(ax):
    (drawn,) = plot_shapes(additive(), ["age"], axes=ax, level=0.5)
    assert drawn is ax
    band, rows, line = ax.patches
    half = stats.norm.ppf(0.75)
    np.testing.assert_allclose(
        band.get_data().values, [-1, 0.5, 2] + half * np.array([0.1, 0.1, 0.2])
    )
    np.testing.assert_allclose(line.get_data().values, [-1, 0.5, 2])
    assert rows.get_data().values.max() < line.get_data().values.min()


def test_no_band_is_drawn_where_none_is_known(ax):
    plot_shapes(additive(std=False), ["age"], axes=ax)
    assert len(ax.patches) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ["income"]}, "columns must be"),
        ({"columns": []}, "columns must be"),
        ({"output": 1}, "output must lie in 0..0"),
        ({"level": 1.0}, "level"),
    ],
)
def test_options_of_shapes_are_checked(ax, options, words):
    with pytest.raises(ValueError, match=words):
        plot_shapes(additive(), **options)
    with pytest.raises(ValueError, match="axes must be 2"):
        plot_shapes(additive(), axes=ax)
