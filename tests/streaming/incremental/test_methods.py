"""Methods on streams, each planned and stepped without an estimator."""

from dataclasses import replace
from math import log, log2, sqrt

import numpy as np
import pytest
from scipy.linalg import null_space
from tests.strategies import each_relation

from tacit._random import as_generator
from tacit._state import dumped, loaded
from tacit.audit import assert_replays
from tacit.convex import L1, Free, GroupBall, L1Ball, L2Ball, Logistic, Simplex, Squared
from tacit.data import RowBounds
from tacit.exceptions import PlanError
from tacit.privacy import Budget, Composed, GaussianNoise, Neighbors
from tacit.solvers import Problem
from tacit.streaming import (
    GradientRegression,
    MomentRegression,
    ProjectedRegression,
    SparseRows,
)
from tacit.streaming._model import StreamTerms
from tacit.streaming.incremental._moments import Projection, row_moments
from tacit.streaming.incremental._projected import published_components
from tacit.streaming.incremental._sets import WithConstant

BUDGET = Budget(1.0, 1e-6)
# as good as no noise, and sums of some hundred rows still fit
SILENT = 1e-8
DOMAINS = [L2Ball(0.6), L1Ball(0.6), GroupBall(0.6, group_size=2), Simplex()]
METHODS = [
    MomentRegression(),
    GradientRegression(most_iterations=50),
    ProjectedRegression(n_components=3),
]
every_method = pytest.mark.parametrize(
    "method", METHODS, ids=lambda m: type(m).__name__
)


def problem(domain=None, p=5, constant=None, x_norm=1.0, y_max=1.0):
    return Problem(
        Squared(),
        RowBounds(x_norm, y_range=(-y_max, y_max)),
        100,
        p,
        regularizer=domain or Free(),
        constant=constant,
    )


def planned(method, domain=None, horizon=20, budget=BUDGET, **facts):
    terms = StreamTerms(horizon, rows_per_step=5)
    return method.plan(problem(domain, **facts), budget, terms)


def silenced(learner):
    """The same learner with next to no noise."""
    if hasattr(learner, "sums"):
        quiet = replace(learner.sums.mechanism, multiplier=SILENT, noise="float")
        return replace(learner, sums=replace(learner.sums, mechanism=quiet))
    parts = {
        name: replace(getattr(learner, name), multiplier=SILENT, noise="float")
        for name in ("second_sums", "first_sums")
    }
    return replace(learner, **parts)


def stream(rng, horizon=20, p=5, rows=5, x_norm=1.0, y_max=1.0):
    """Steps of rows with signal in two features."""
    for _ in range(horizon):
        X = rng.standard_normal((rows, p))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        y = X[:, 0] - 0.5 * X[:, 1] + 0.1 * rng.standard_normal(rows)
        yield x_norm * X, y_max * np.clip(y, -1, 1)


def run(learner, steps, seed=0):
    """Return the weights after each step."""
    state, rng, found = learner.init(), as_generator(seed), []
    for X, y in steps:
        state = learner.step(state, X, y, rng)
        found.append(learner.weights(state))
    return found


def gap(X, y, W, domain):
    """How far the risk can be from the least in the set."""
    G = 2 * X.T @ (X @ W - y[:, None])
    return float(np.vdot(G, W - domain.lmo(G)))


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("sums", ["blt", "tree"])
def test_without_noise_every_step_is_least_squares_in_the_set(domain, sums, rng):
    steps = list(stream(rng, horizon=8))
    learner = silenced(planned(MomentRegression(sums=sums), domain, horizon=8))
    for t, W in enumerate(run(learner, steps), 1):
        X, y = (np.concatenate(part) for part in zip(*steps[:t], strict=True))
        assert domain.contains(W)
        assert gap(X, y, W, domain) <= 1e-6


def test_without_noise_and_set_every_step_is_least_squares(rng):
    steps = list(stream(rng))
    learner = silenced(planned(MomentRegression()))
    for t, W in enumerate(run(learner, steps), 1):
        X, y = (np.concatenate(part) for part in zip(*steps[:t], strict=True))
        if t > 1:
            assert np.allclose(W[:, 0], np.linalg.lstsq(X, y)[0], atol=1e-5)


def test_one_row_a_step_ends_where_one_step_of_all_rows_does(rng):
    steps = list(stream(rng, horizon=8))
    X, y = (np.concatenate(part) for part in zip(*steps, strict=True))
    singly = silenced(planned(MomentRegression(), L1Ball(0.6), horizon=40))
    at_once = silenced(planned(MomentRegression(), L1Ball(0.6), horizon=1))
    last = run(singly, ((X[i : i + 1], y[i : i + 1]) for i in range(40)))[-1]
    assert np.allclose(last, run(at_once, [(X, y)])[-1], atol=1e-6)


def test_units_of_rows_and_targets_change_nothing_else(rng):
    steps = list(stream(rng, horizon=4))
    large = [(2e3 * X, 7e-2 * y) for X, y in steps]
    plain = run(planned(MomentRegression(), L1Ball(0.6)), steps)[-1]
    unit = 7e-2 / 2e3
    scaled = planned(MomentRegression(), L1Ball(0.6 * unit), x_norm=2e3, y_max=7e-2)
    assert np.allclose(run(scaled, large)[-1], unit * plain, rtol=1e-6, atol=1e-12)


@every_method
@pytest.mark.parametrize("domain", [*DOMAINS, WithConstant(L1Ball(0.6), 4.0)], ids=repr)
def test_noisy_weights_are_in_the_set_and_finite(method, domain, rng):
    constant = 0.4 if isinstance(domain, WithConstant) else None
    learner = planned(method, domain, constant=constant)
    for W in run(learner, stream(rng)):
        assert domain.contains(W)


@every_method
def test_steps_without_rows_are_steps(method, rng):
    learner = planned(method, L1Ball(0.6))
    empty = [(np.zeros((0, 5)), np.zeros(0))] * 3
    assert all(np.isfinite(W).all() for W in run(learner, empty))


@every_method
def test_one_seed_has_one_stream_and_another_has_another(method, rng):
    steps, learner = list(stream(rng, horizon=3)), planned(method, L1Ball(0.6))
    first, again, other = (run(learner, steps, seed)[-1] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@every_method
def test_a_state_that_was_written_goes_on_alike(method, rng):
    steps, learner = list(stream(rng, horizon=4)), planned(method, L1Ball(0.6))
    state = learner.init()
    for X, y in steps[:3]:
        state = learner.step(state, X, y, as_generator(1))
    ends = [
        learner.weights(learner.step(part, *steps[3], as_generator(2)))
        for part in (state, loaded(dumped(state)))
    ]
    assert np.array_equal(*ends)
    assert "_private" not in repr(state)


@every_method
@each_relation
def test_a_replay_on_a_neighbor_releases_the_same(method, neighbors, rng):
    learner = planned(
        method, L1Ball(0.6), horizon=4, budget=Budget(1.0, 1e-6, neighbors)
    )
    steps = list(stream(rng, horizon=4))
    X, y = steps[1]
    moved = X.copy(), y.copy()
    moved[0][2], moved[1][2] = -X[2] / np.linalg.norm(X[2]), -np.sign(y[2] + 1e-9)
    if neighbors is Neighbors.ADD_OR_REMOVE_ONE:
        moved = np.delete(X, 2, axis=0), np.delete(y, 2)
    other = [steps[0], moved, *steps[2:]]
    assert_replays(lambda *data: np.array(run(learner, data)), steps, other)


@every_method
def test_a_person_with_more_rows_takes_more_noise(method):
    risks = [
        method.plan(
            problem(L1Ball(0.6)), BUDGET, StreamTerms(20, 5, rows_per_person=k)
        ).expected_excess_risk(20)
        for k in (1, 3)
    ]
    assert risks[1] > 1.05 * risks[0]


@every_method
def test_a_budget_without_delta_is_refused(method):
    with pytest.raises(PlanError, match="needs delta > 0"):
        planned(method, L1Ball(0.6), budget=Budget(1.0))


@every_method
def test_other_losses_and_penalties_are_refused(method):
    terms = StreamTerms(5)
    with pytest.raises(PlanError, match="least squares only"):
        method.plan(replace(problem(), loss=Logistic()), BUDGET, terms)
    with pytest.raises(PlanError, match="no penalty other than a ridge"):
        method.plan(problem(L1(0.1)), BUDGET, terms)


@every_method
def test_a_ridge_with_a_set_is_refused(method):
    terms = StreamTerms(5)
    both = replace(problem(L1Ball(0.6)), ridge=2.0)
    with pytest.raises(PlanError, match=r"got ridge=2 and L1Ball\(radius=0.6\)"):
        method.plan(both, BUDGET, terms)


def test_a_ridge_without_a_set_is_kept(rng):
    X, y = rng.uniform(-0.4, 0.4, (40, 5)), rng.uniform(-1, 1, 40)
    quiet = Budget(1e9, 0.1)
    facts = replace(problem(), ridge=2.0)
    learner = MomentRegression().plan(facts, quiet, StreamTerms(1, 40))
    found = learner.weights(learner.step(learner.init(), X, y, rng))
    expected = np.linalg.solve(X.T @ X + 2.0 * np.eye(5), X.T @ y)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-3)


@every_method
def test_the_event_fits_the_budget_and_nearly_fills_it(method):
    for budget in (BUDGET, Budget(8.0, 1e-9), Budget(0.05, 1e-3)):
        curve = planned(method, L1Ball(0.6), budget=budget).event.curve(
            budget.neighbors
        )
        assert curve.fits(budget)
        assert curve.epsilon(budget.delta) > 0.99 * budget.epsilon


def test_joint_sums_have_the_noise_that_was_computed():
    # squared sensitivity 4.5 at weight 1, constant 3.27 over 1024 steps, mu 0.2367
    learner = MomentRegression(weight=1.0).plan(problem(), BUDGET, StreamTerms(1024))
    assert learner.sums.stds(1024)[1] == pytest.approx(29.3, rel=0.01)
    tree = MomentRegression(weight=1.0, sums="tree").plan(
        problem(), BUDGET, StreamTerms(1024)
    )
    assert max(tree.sums.stds(t)[1] for t in range(1, 1025)) == pytest.approx(
        94.0, rel=0.01
    )


def test_both_trees_cover_the_farthest_pairs_of_rows():
    learner = planned(GradientRegression(), L2Ball(1.0))
    axes = np.eye(5)

    def moments(row, target):
        return row_moments(row[None], np.array([target]), 1.0, 1.0)

    # products of opposite targets, second moments of rows at right angles
    opposite = moments(axes[0], 1.0).first - moments(axes[0], -1.0).first
    crossed = moments(axes[0], 1.0).second - moments(axes[1], 1.0).second
    assert np.linalg.norm(opposite) == 2.0 <= learner.first_sums.sensitivity < 2.01
    assert np.linalg.norm(crossed) <= learner.second_sums.sensitivity < 1.42

    added = planned(
        GradientRegression(),
        L2Ball(1.0),
        budget=replace(BUDGET, neighbors=Neighbors.ADD_OR_REMOVE_ONE),
    )
    assert 1.0 <= added.first_sums.sensitivity < 1.01
    assert 1.0 <= added.second_sums.sensitivity < 1.01


def test_published_noise_is_the_printed_one():
    paper = planned(GradientRegression("paper"), L2Ball(1.0), horizon=1024)
    printed = log2(1024) * 2 * sqrt(2 * log(2 / 5e-7)) / 0.5
    assert paper._stds(1)[1] == pytest.approx(printed, rel=1e-4)
    assert max(paper._stds(t)[1] for t in range(1, 1025)) == pytest.approx(
        697, rel=0.01
    )
    tight = planned(GradientRegression(), L2Ball(1.0), horizon=1024)
    assert tight.multiplier < paper.multiplier / 3


@pytest.mark.parametrize("horizon", [1, 2])
def test_published_noise_is_refused_for_short_streams(horizon):
    with pytest.raises(PlanError, match="published noise is not private"):
        planned(GradientRegression("paper"), L2Ball(1.0), horizon=horizon)
    assert planned(GradientRegression(), L2Ball(1.0), horizon=horizon)


def test_published_noise_is_refused_where_it_breaks_its_promise():
    assert planned(GradientRegression("paper"), L2Ball(1.0), horizon=4)
    budget = Budget(100.0, 1e-6)
    with pytest.raises(PlanError, match="does not keep epsilon=100"):
        planned(GradientRegression("paper"), L2Ball(1.0), horizon=4, budget=budget)
    # the control: one node a step, with the printed noise, costs more than is said
    multiplier = 2 * sqrt(2 * log(2 / 5e-7)) / 50 / sqrt(3)
    event = Composed((GaussianNoise(multiplier),) * 2)
    assert not event.curve(Neighbors.REPLACE_ONE).fits(budget)


def test_descent_needs_a_set():
    with pytest.raises(PlanError, match="requires weights in a set"):
        planned(GradientRegression())


def test_excess_of_descent_is_within_its_bound(rng):
    steps, domain = list(stream(rng)), L2Ball(0.6)
    learner = planned(GradientRegression(most_iterations=200), domain)
    X, y = (np.concatenate(part) for part in zip(*steps, strict=True))
    excess = [gap(X, y, run(learner, steps, seed)[-1], domain) for seed in range(5)]
    assert np.mean(excess) <= learner.expected_excess_risk(20)


def test_expected_excess_scales_with_the_noise():
    domain, terms = L1Ball(1.0), StreamTerms(100, 1000)
    strict, loose = (
        MomentRegression().plan(problem(domain), Budget(e, 1e-6), terms)
        for e in (0.01, 1.0)
    )
    ratio = strict.multiplier / loose.multiplier
    risks = [learner.expected_excess_risk(100) for learner in (strict, loose)]
    assert risks[0] == pytest.approx(ratio * risks[1], rel=1e-4)


@pytest.mark.parametrize(("p", "m"), [(10, 3), (100, 10), (400, 100)])
def test_a_projected_row_has_the_same_bits_alone_and_among_others(p, m, rng):
    projection = Projection(0, m, p, False, 1.0)
    matrix, bounds = projection.matrix(), RowBounds(1.0)
    # rows that the matrix takes to zero, where all that is left is round-off
    X = null_space(matrix)[:, 0] * np.linspace(0.1, 0.999, 70)[:, None]
    X[::7] = rng.uniform(-1, 1, (10, p)) / p
    together = projection.rows(X, matrix, bounds)
    for n in (1, 2, 3, 8, 40):
        for start in (0, 7, 20):
            rows = X[start : start + n]
            alone = projection.rows(np.asfortranarray(rows), matrix, bounds)
            assert alone.tobytes() == together[start : start + n].tobytes()
    # a product of whole arrays has other round-off for other numbers of rows
    assert any((X[:n] @ matrix.T != (X @ matrix.T)[:n]).any() for n in range(1, 70))


@pytest.mark.parametrize("adversarial", [False, True])
def test_projected_rows_are_as_long_as_rows_whatever_the_matrix(adversarial, rng):
    projection = Projection(0, 20, 200, False, 1.0)
    matrix = projection.matrix()
    X = rng.standard_normal((30, 200)) * np.geomspace(1e-200, 1e-2, 30)[:, None]
    if adversarial:
        X[-1] = np.linalg.svd(matrix)[2][0]
        assert np.linalg.norm(matrix @ X[-1]) > 3  # the control: not scaled back
    X[0] = 0.0
    X[1] = np.linalg.svd(matrix)[2][-1]  # in the kernel
    seen = projection.rows(X, matrix, RowBounds(1.0))
    before, after = (np.linalg.norm(A, axis=1) for A in (X, seen))
    assert np.allclose(after[2:], before[2:], rtol=1e-12)
    assert after[0] == 0
    assert (after <= 1.0).all()


def test_matrix_comes_from_its_key_alone():
    first, same, other = (Projection(k, 4, 9, True, 1.0).matrix() for k in (3, 3, 4))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert first[-1, -1] == 1.0
    assert not first[-1, :-1].any()


def test_a_row_can_look_like_nothing_to_weights_in_the_kernel(rng):
    # so that no relative distortion holds over a set around zero
    matrix = Projection(0, 100, 1000, False, 1.0).matrix()
    x = np.linalg.svd(matrix)[2][-1]
    w = x / np.abs(x).sum()
    assert L1Ball(1.0).contains(w[:, None])
    assert abs(w @ x) == pytest.approx(np.linalg.norm(w) * np.linalg.norm(x))
    assert np.linalg.norm(matrix @ w) < 1e-9


def test_projection_to_itself_is_no_projection(rng):
    steps = list(stream(rng, horizon=3))
    wide = planned(ProjectedRegression(n_components=5), L1Ball(0.6))
    assert wide == planned(MomentRegression(), L1Ball(0.6))
    assert np.array_equal(
        run(wide, steps)[-1], run(planned(MomentRegression(), L1Ball(0.6)), steps)[-1]
    )


def test_published_components_exceed_the_features_of_usual_streams():
    assert published_components(SparseRows(5).width(800) + 3.84, 5000) > 800
    learner = ProjectedRegression().plan(
        problem(L1Ball(1.0), p=800), BUDGET, StreamTerms(5000)
    )
    assert learner.projection is None
    narrow = ProjectedRegression(row_width=1.0).plan(
        problem(L1Ball(1.0), p=800), BUDGET, StreamTerms(20)
    )
    assert narrow.projection is not None
    assert narrow.sums.n_features < 800


def test_components_without_a_set_are_refused():
    with pytest.raises(PlanError, match="requires weights in a set"):
        planned(ProjectedRegression(n_components=3))


def test_more_components_fit_better_without_noise(rng):
    p, horizon = 60, 4
    steps = []
    for _ in range(horizon):
        X = np.zeros((100, p))
        for row in X:
            row[rng.choice(p, 3, replace=False)] = rng.standard_normal(3)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        steps.append((X, 0.7 * X[:, 0] - 0.3 * X[:, 1]))
    X, y = (np.concatenate(part) for part in zip(*steps, strict=True))
    risks = []
    for m in (4, 16, 48):
        method = ProjectedRegression(n_components=m, solver="clipped")
        learner = silenced(planned(method, L1Ball(1.0), horizon, p=p))
        W = run(learner, steps)[-1]
        risks.append(((y - X @ W[:, 0]) ** 2).sum())
    assert risks[0] > 2 * risks[2]
    assert risks[2] < 0.3 * (y**2).sum()


def test_projected_weights_in_a_ball_are_those_of_the_rows_it_sees(rng):
    steps, domain = list(stream(rng)), L2Ball(0.3)
    learner = silenced(planned(ProjectedRegression(n_components=3), domain))
    W = run(learner, steps)[-1]
    X, y = (np.concatenate(part) for part in zip(*steps, strict=True))
    matrix = learner.projection.matrix()
    seen = learner.projection.rows(X, matrix, RowBounds(1.0)) @ matrix
    assert gap(seen, y, W, domain) <= 1e-6


def test_squared_targets_tell_the_sum_of_squared_residuals(rng):
    steps = list(stream(rng))
    learner = silenced(planned(MomentRegression(squares=True), L2Ball(0.6)))
    state = learner.init()
    for X, y in steps:
        state = learner.step(state, X, y, as_generator(0))
    X, y = (np.concatenate(part) for part in zip(*steps, strict=True))
    residuals = y - X @ learner.weights(state)[:, 0]
    assert learner.residual_sum(state) == pytest.approx(residuals @ residuals, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: MomentRegression(sums="heap"), "sums must be"),
        (lambda: MomentRegression(solver="best"), "solver must be"),
        (lambda: MomentRegression(weight=0.0), "weight must be"),
        (lambda: MomentRegression(weight=1.0, squares=True), "weight must be 'auto'"),
        (lambda: MomentRegression(noise="none"), "noise must be"),
        (lambda: GradientRegression("loose"), "accounting must be"),
        (lambda: GradientRegression(most_iterations=0), "most_iterations must be"),
        (lambda: ProjectedRegression(0), "n_components must be"),
        (lambda: ProjectedRegression(key=-1), "key must be"),
        (lambda: ProjectedRegression(row_width=0.0), "row_width must be"),
        (lambda: SparseRows(0), "k must be"),
    ],
)
def test_bad_parameters_are_rejected_in_one_sentence(make, match):
    with pytest.raises(ValueError, match=match):
        make()
