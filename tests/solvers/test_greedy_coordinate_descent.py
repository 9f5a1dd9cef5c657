"""Greedy coordinate descent: its accounts, its choices, and what neighbors can see."""

from dataclasses import replace
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from tests.refusal import raises_one_line
from tests.solvers.running import assert_tight, coefficients
from tests.stat import assert_probability_at_most
from tests.strategies import adversarial_pairs, budgets, each_relation, neighboring_data

from tacit._random import as_generator
from tacit._release import recording, replaying
from tacit.audit import assert_replays, replay
from tacit.convex import (
    L1,
    Box,
    ElasticNet,
    Free,
    Huber,
    HuberizedHinge,
    L1Ball,
    Logistic,
    Softmax,
    Squared,
)
from tacit.convex.regularizers import CoordinatePenalty
from tacit.data import RowBounds, bounded_rows
from tacit.exceptions import PlanError
from tacit.mechanisms import Exponential, NoisyMax, PermuteAndFlip
from tacit.privacy import (
    BoundedRange,
    Budget,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    Ledger,
    Neighbors,
    PureDP,
    Repeated,
)
from tacit.solvers import Problem
from tacit.solvers._coordinates.columns import Columns, weights_after
from tacit.solvers._coordinates.greedy_descent import GreedyDescent
from tacit.solvers._coordinates.greedy_plan import MARGIN, SETTLING, Scores, greedy_rule
from tacit.solvers._published import greedy_epsilon
from tacit.solvers.greedy_coordinate_descent import GreedyCoordinateDescent

BOUNDS = RowBounds(norm="linf")
BUDGET = Budget(1.0, 1e-5)
LOW_NOISE = Budget(1e9, 1e-5)
LOSSES = [Squared(), Huber(0.5), Logistic(), HuberizedHinge()]
PENALTIES = [Free(), L1(4.0), ElasticNet(4.0, 5.0), Box(-0.3, 0.4)]
RULES = ["gs-s", "gs-r", "gs-q"]

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
each_rule = pytest.mark.parametrize("rule", RULES)
each_mechanism = pytest.mark.parametrize("mechanism", ["gumbel", "pure", "laplace"])

layouts = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])


def problem_of(loss, n_rows=200, n_features=6, penalty=PENALTIES[0], **facts):
    bounds = facts.pop("bounds", BOUNDS)
    return Problem(loss, bounds, n_rows, n_features, regularizer=penalty, **facts)


def sample(loss, seed, n=200, p=6):
    rng = as_generator(seed)
    X = rng.uniform(-1, 1, size=(n, p)) * (rng.random((n, p)) < 0.7)
    X *= np.linspace(1.0, 0.2, p)
    signal = X @ np.linspace(1.5, -1.0, p) + 0.2 * rng.normal(size=n)
    if isinstance(loss, Squared | Huber):
        return X, np.clip(signal, -1, 1)
    return X, np.where(signal > 0, 1.0, -1.0)


def rows_of(loss, seed, layout=np.asarray, **shape):
    X, y = sample(loss, seed, **shape)
    return bounded_rows(layout(X), y, BOUNDS)


def exact_solver(n_steps, X, **arguments):
    """Return a solver that clips nothing and compares exact partial derivatives."""
    return GreedyCoordinateDescent(
        n_steps,
        step=1.0,
        clip=6.0,
        selection_clip=6.0,
        n_polish=0,
        mechanism="gumbel",
        smoothness=np.sqrt((np.asarray(X) ** 2).mean(axis=0)),
        staleness=0.0,
        **arguments,
    )


def less_noise(plan, part):
    """Return the plan with this part of its noise, and nothing else changed."""
    squares = plan.squares
    if squares.private:
        squares = squares.with_noise(part * squares.multiplier)
    return replace(
        plan,
        squares=squares,
        multiplier=part * plan.multiplier,
        selection_epsilon=plan.selection_epsilon / part,
    )


@each_mechanism
@each_relation
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("smoothness", ["private", "public"])
def test_planned_event_fits_and_wastes_nothing(mechanism, neighbors, delta, smoothness):
    budget = Budget(1.0, delta, neighbors)
    solver = GreedyCoordinateDescent(5, mechanism=mechanism, smoothness=smoothness)
    gaussian = mechanism == "gumbel"
    if (gaussian and delta == 0) or (smoothness == "private" and not gaussian):
        with pytest.raises(PlanError, match="mechanism="):
            solver.plan(problem_of(Logistic()), budget)
        return
    plan = solver.plan(problem_of(Logistic()), budget)
    assert_tight(plan, budget, less_noise(plan, 0.99))
    assert plan == solver.plan(problem_of(Logistic()), budget)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_budget_is_kept(data):
    neighbors = data.draw(st.sampled_from(Neighbors))
    budget = data.draw(budgets(neighbors))
    problem = problem_of(
        data.draw(st.sampled_from(LOSSES)),
        n_rows=data.draw(st.integers(1, 10**6)),
        n_features=data.draw(st.integers(2, 300)),
        penalty=data.draw(st.sampled_from(PENALTIES)),
        bounds=RowBounds(data.draw(st.floats(1e-3, 1e3)), norm="linf"),
        constant=data.draw(st.sampled_from([None, 0.5])),
    )
    mechanism = data.draw(st.sampled_from(["auto", "gumbel", "pure", "laplace"]))
    plan = GreedyCoordinateDescent(mechanism=mechanism).plan(problem, budget)
    spent = plan.event.curve(neighbors).epsilon(budget.delta)
    assert spent <= budget.epsilon * (1 + 1e-9)
    assert plan.sensitivity == neighbors.rows_changed
    assert plan.selector.sensitivity >= plan.sensitivity * plan.updater.units
    assert 1 <= plan.n_steps <= problem.n_features


@pytest.mark.parametrize("constant", [None, 1.0])
def test_what_is_charged_is_every_release_that_is_made(constant, seed):
    problem = problem_of(Logistic(), constant=constant)
    solver = GreedyCoordinateDescent(
        3, mechanism="gumbel", n_polish=4, smoothness="private"
    )
    plan = solver.plan(problem, BUDGET)
    n_updates = 7 + SETTLING * (constant is not None)
    assert plan.event == Composed(
        (
            GaussianNoise(plan.squares.multiplier),
            Repeated(BoundedRange(plan.selection_epsilon), 3),
            Repeated(GaussianNoise(plan.multiplier), n_updates),
        )
    )
    with recording() as tape:
        solver.run(plan, rows_of(Logistic(), seed), as_generator(seed))
    labels = [r.label for r in tape.releases]
    assert labels.count("Exponential") == 3
    assert labels.count("DiscreteGaussian") == n_updates + 1
    ledger = Ledger(BUDGET)
    ledger.charge(plan.event, "fit")
    assert ledger.report().spent == pytest.approx(1.0, rel=2e-4)


def plain_plan(n_steps, n_rows, mechanism, **arguments):
    solver = GreedyCoordinateDescent(
        n_steps, mechanism=mechanism, n_polish=0, smoothness="public", **arguments
    )
    problem = problem_of(Logistic(), n_rows, 100)
    return solver.plan(problem, Budget(1.0, n_rows**-2.0))


PUBLISHED = [
    # steps, rows, published epsilon of a part, what the two together cost at best
    (1, 2600, 0.12208, 0.366),
    (2, 1000, 0.09176, 0.551),
    (2, 800, 0.09318, 0.559),
    (4, 20640, 0.05470, 0.656),
    (7, 4450, 0.04478, 0.940),
    (10, 1000, 0.04107, inf),
    (10, 2600, 0.03866, inf),
    (20, 1000, 0.02905, inf),
]


@pytest.mark.parametrize(("n_steps", "n_rows", "part", "spent"), PUBLISHED)
def test_published_noise_is_refused_where_it_breaks_its_promise(
    n_steps, n_rows, part, spent
):
    budget = Budget(1.0, n_rows**-2.0)
    assert greedy_epsilon(budget, 2 * n_steps) == pytest.approx(part, rel=2e-4)
    if spent == inf:
        with pytest.raises(PlanError, match="accounting='tight'"):
            plain_plan(n_steps, n_rows, "laplace", accounting="paper")
        return
    plan = plain_plan(n_steps, n_rows, "laplace", accounting="paper")
    assert plan.multiplier == pytest.approx(1 / part, rel=2e-4)
    assert plan.selection_epsilon == pytest.approx(2 * part, rel=2e-4)
    epsilon = plan.event.curve(Neighbors.REPLACE_ONE).epsilon(n_rows**-2.0)
    assert epsilon == pytest.approx(spent, rel=2e-3)
    assert plan.event == Composed(
        (
            Repeated(PureDP(plan.selection_epsilon), n_steps),
            Repeated(LaplaceNoise(plan.multiplier), n_steps),
        )
    )


def delta_of_an_attack(multiplier, n_steps, budget):
    """Return the delta of choices of bounded range, all alike, with their noise.

    A choice has two outcomes, whose losses differ by the whole range. It is one of the
    mechanisms that the plan must cover, so more noise than against it is needed.
    """
    reach, mu = 2 / multiplier, np.sqrt(n_steps) / multiplier
    taken = np.arange(n_steps + 1)
    found = []
    for loss in np.linspace(0, reach, 401)[1:-1]:
        weights = np.expm1(reach - loss) / (np.exp(reach - loss) - np.exp(-loss))
        left = budget.epsilon - taken * loss + (n_steps - taken) * (reach - loss)
        deltas = stats.norm.cdf(mu / 2 - left / mu)
        deltas -= np.exp(left) * stats.norm.cdf(-mu / 2 - left / mu)
        found.append(stats.binom.pmf(taken, n_steps, weights) @ deltas)
    return max(found)


@pytest.mark.parametrize(
    ("n_steps", "n_rows", "part"),
    [
        (1, 2600, 0.14421),
        (2, 1000, 0.11035),
        (2, 800, 0.11261),
        (4, 20640, 0.06271),
        (7, 4450, 0.05238),
        (10, 1000, 0.04935),
        (20, 1000, 0.03490),
    ],
)
def test_noise_has_the_values_computed_by_hand(n_steps, n_rows, part):
    plan = plain_plan(n_steps, n_rows, "gumbel")
    # those are from Renyi curves; composed numerically, less noise will do
    assert plan.multiplier <= 1 / part * 1.002
    budget = Budget(1.0, n_rows**-2.0)
    assert delta_of_an_attack(plan.multiplier, n_steps, budget) <= budget.delta
    assert delta_of_an_attack(0.98 * plan.multiplier, n_steps, budget) > budget.delta
    assert plan.selection_epsilon == pytest.approx(2 / plan.multiplier)


def test_few_choices_are_pure_and_many_are_not():
    def taken(n_steps, **arguments):
        return plain_plan(n_steps, 1000, "auto", **arguments).mechanism

    assert [taken(t) for t in (1, 2, 10, 50)] == ["pure", "pure", "gumbel", "gumbel"]
    solver = GreedyCoordinateDescent(50)
    assert solver.plan(problem_of(Logistic()), Budget(1.0)).mechanism == "pure"
    plan = plain_plan(1, 1000, "pure", selection_share=2 / 3)
    assert plan.selection_epsilon == pytest.approx(2 / 3, rel=2e-4)
    assert plan.multiplier == pytest.approx(3, rel=2e-4)


@pytest.mark.parametrize("fraction", [0.2, 0.5, 0.9])
def test_choices_get_their_share(fraction):
    plan = plain_plan(9, 1000, "gumbel", selection_share=fraction)
    choices = 9 * plan.selection_epsilon**2 / 8
    moves = 9 / (2 * plan.multiplier**2)
    assert choices / (choices + moves) == pytest.approx(fraction)


def test_each_mechanism_is_what_it_says():
    kinds = {"gumbel": Exponential, "pure": PermuteAndFlip, "laplace": NoisyMax}
    for name, kind in kinds.items():
        plan = plain_plan(3, 1000, name)
        assert type(plan.selector) is kind
        assert plan.selector.event.epsilon == plan.selection_epsilon
        assert plan.updater.event.multiplier == plan.multiplier
        assert plan.selector.sensitivity == plan.updater.units * (2 + MARGIN)


@each_mechanism
def test_the_charge_is_that_of_the_mechanisms_that_run(mechanism):
    plan = plain_plan(3, 1000, mechanism)
    choices = Repeated(plan.selector.event, plan.n_steps)
    moves = Repeated(plan.updater.event, plan.n_updates)
    assert plan.event == Composed((*plan.squares.events, choices, moves))


FIXED = CoordinatePenalty((1.0,) * 3, (0.0,) * 3, (-inf,) * 3, (inf,) * 3)


@pytest.mark.parametrize(
    ("problem", "budget", "cure"),
    [
        (problem_of(Softmax(3)), BUDGET, "FrankWolfe"),
        (problem_of(Logistic(), bounds=RowBounds()), BUDGET, "bound_norm='linf'"),
        (problem_of(Logistic(), penalty=L1Ball(1.0)), BUDGET, r"ElasticNet\(\)"),
        (problem_of(Logistic(), penalty=FIXED), BUDGET, "one entry for each"),
        (problem_of(Logistic(), 2**26 + 1), BUDGET, "NoisyGD"),
        (problem_of(Logistic(), n_features=1, constant=1.0), BUDGET, "no weight"),
        (problem_of(Logistic()), Budget(1e-9, 1e-300), "raise epsilon"),
        (problem_of(Logistic()), Budget(1e-9, 0.0), "raise epsilon"),
    ],
    ids=["outputs", "l2", "ball", "three weights", "rows", "alone", "noise", "pure"],
)
def test_what_cannot_be_planned_is_refused_with_a_cure(problem, budget, cure):
    with raises_one_line(PlanError, match=cure):
        GreedyCoordinateDescent().plan(problem, budget)


def test_too_many_updates_are_refused():
    with pytest.raises(PlanError, match="fewer steps"):
        GreedyCoordinateDescent(10**6).plan(problem_of(Logistic()), BUDGET)
    paper = GreedyCoordinateDescent(3, mechanism="laplace", accounting="paper")
    with pytest.raises(PlanError, match="accounting='tight'"):
        paper.plan(problem_of(Logistic()), Budget(1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_steps": 0}, "n_steps"),
        ({"n_steps": 1.5}, "n_steps"),
        ({"n_polish": -1}, "n_polish"),
        ({"step": 0.0}, "step must be"),
        ({"clip": inf}, "clip must be"),
        ({"clip": 1e-200}, "clip must be"),
        ({"selection_clip": -1.0}, "selection_clip must be"),
        ({"rule": "gs-x"}, "rule must be"),
        ({"mechanism": "gaussian"}, "mechanism must be"),
        ({"selection_share": 1.0}, "selection_share"),
        ({"selection_share": 0.0}, "selection_share"),
        ({"smoothness": "known"}, "smoothness must be"),
        ({"smoothness_share": 1.0}, "smoothness_share"),
        ({"accounting": "loose"}, "accounting must be"),
        ({"accounting": "paper"}, "mechanism='laplace'"),
        ({"noise": "none"}, "noise must be"),
        ({"staleness": -0.1}, "staleness must be"),
    ],
)
def test_bad_parameters_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        GreedyCoordinateDescent(**arguments)


def textbook(loss, penalty, ridge, X, y, n_steps, rule):
    """Return the coordinates and weights of greedy descent, by its definition."""
    p = X.shape[1]
    l1, l2 = getattr(penalty, "weight", getattr(penalty, "l1", 0.0)), ridge
    l2 += getattr(penalty, "l2", 0.0)
    low, high = (-0.3, 0.4) if isinstance(penalty, Box) else (-inf, inf)
    M = loss.max_curvature() * (X**2).sum(axis=0)
    w, chosen, best = np.zeros(p), [], []
    for _ in range(n_steps):
        g = X.T @ loss.derivative(y, (X @ w)[:, None])[:, 0]
        u = w - g / M
        u = np.sign(u) * np.maximum(np.abs(u) - l1 / M, 0.0) / (1 + l2 / M)
        a = np.clip(u, low, high) - w
        if rule == "gs-r":
            score = np.sqrt(M) * np.abs(a)
        elif rule == "gs-q":
            bend = l1 * (np.abs(w + a) - np.abs(w)) + l2 / 2 * ((w + a) ** 2 - w**2)
            score = np.sqrt(np.maximum(-2 * (g * a + M / 2 * a**2 + bend), 0.0))
        else:
            derivative = g + l2 * w + l1 * np.sign(w)
            score = np.where(w == 0, np.abs(g) - l1, np.abs(derivative))
            score = np.where(
                w == high, derivative, np.where(w == low, -derivative, score)
            )
            score = score / np.sqrt(M)
        j = int(np.argmax(score))
        chosen.append(j)
        best.append(score[j])
        w[j] += a[j]
    return chosen, w, best


@each_loss
@each_penalty
@each_rule
@layouts
def test_without_noise_it_is_the_textbook(loss, penalty, rule, layout, seed):
    X, y = sample(loss, seed, n=4000)
    solver = exact_solver(8, X, rule=rule)
    problem = problem_of(loss, 4000, penalty=penalty, ridge=2.0)
    plan = solver.plan(problem, LOW_NOISE)
    rows = bounded_rows(layout(X), y, BOUNDS)
    found = solver.run(plan, rows, as_generator(seed))
    W, path = found.coefficients, found.path
    chosen, w, best = textbook(loss, penalty, 2.0, X, y, 8, rule)
    # what is left when all weights rest is smaller than the noise
    released = 8 if best[-1] > 0.01 else 7
    assert [visit.coordinate for visit in path][:released] == chosen[:released]
    np.testing.assert_allclose(W[:, 0], w, rtol=0, atol=0.01)


def test_a_separable_quadratic_is_solved_in_as_many_steps_as_it_has_weights(seed):
    n, p = 6000, 6
    X = np.zeros((n, p))
    X[np.arange(n), np.arange(n) % p] = 1.0
    y = as_generator(seed).normal(np.linspace(-0.5, 0.8, p)[np.arange(n) % p], 0.1)
    solver = exact_solver(p, X)
    plan = solver.plan(problem_of(Squared(), n, p, L1(10.0)), LOW_NOISE)
    found = solver.run(plan, bounded_rows(X, y, BOUNDS), as_generator(seed))
    W, path = found.coefficients, found.path
    assert sorted(visit.coordinate for visit in path) == list(range(p))
    mean = X.T @ y / (n / p)
    exact = np.sign(mean) * np.maximum(np.abs(mean) - 10 * p / n, 0.0)
    np.testing.assert_allclose(W[:, 0], exact, rtol=0, atol=0.02)


@each_loss
def test_it_tends_to_the_optimum_with_steps_and_budget(loss, seed):
    X, y = sample(loss, seed, n=4000)

    def value(w):
        return loss.value(y, (X @ w)[:, None]).sum() + 40 * np.abs(w).sum()

    least = value(textbook(loss, L1(40.0), 0.0, X, y, 2000, "gs-s")[1])
    left = []
    for n_steps in (2, 8, 100):
        solver = exact_solver(n_steps, X)
        plan = solver.plan(problem_of(loss, 4000, penalty=L1(40.0)), LOW_NOISE)
        W = coefficients(solver, plan, bounded_rows(X, y, BOUNDS), seed)
        left.append((value(W[:, 0]) - least) / (value(np.zeros(6)) - least))
    assert left[0] > left[1] > left[2] - 1e-6
    assert left[2] < 2e-3


@pytest.mark.parametrize(
    ("loss", "penalty"), list(zip(LOSSES, PENALTIES, strict=True)), ids=repr
)
@each_mechanism
@layouts
def test_no_more_weights_than_steps_besides_the_intercept(
    loss, penalty, mechanism, layout, seed
):
    solver = GreedyCoordinateDescent(3, mechanism=mechanism, n_polish=5)
    plan = solver.plan(problem_of(loss, penalty=penalty, constant=0.2), BUDGET)
    X, y = sample(loss, seed)
    X[:, -1] = 0.2
    rows = bounded_rows(layout(X), y, BOUNDS)
    found = solver.run(plan, rows, as_generator(seed))
    W, path = found.coefficients, found.path
    assert W.shape == (6, 1)
    assert np.isfinite(W).all()
    assert np.count_nonzero(W[:-1]) <= 3
    assert path[0].coordinate == 5  # a public choice, which does not compete
    others = {visit.coordinate for visit in path if visit.coordinate != 5}
    assert len(others) == 3  # none competes twice
    assert len(path) == 3 + 5 + SETTLING
    again = coefficients(solver, plan, rows, seed)
    np.testing.assert_array_equal(W, again)
    other = coefficients(solver, plan, rows, seed + 1)
    assert not np.array_equal(W, other)


@each_mechanism
def test_weights_follow_from_the_path_alone(mechanism, seed):
    solver = GreedyCoordinateDescent(
        4, mechanism=mechanism, n_polish=6, smoothness="public"
    )
    problem = problem_of(Squared(), penalty=L1(1.0))
    plan = solver.plan(problem, Budget(5.0, 1e-5))
    found = solver.run(plan, rows_of(Squared(), seed), as_generator(seed))
    W, path = found.coefficients, found.path
    updates = plan.updates(np.ones(6), plan.clip)  # squares are public here
    w, visits = np.zeros(6), np.zeros(6)
    for j, gradient, std in path:
        visits[j] += 1
        now = replace(updates, step=updates.step / visits[j])
        whole = np.rint([gradient / updates.back[j]]).astype(np.int64)
        w = weights_after(w, np.array([j]), whole, now)
        scale = plan.multiplier * plan.sensitivity * plan.clip
        law = 1 if mechanism == "gumbel" else sqrt(2)
        assert std == pytest.approx(scale * law, rel=1e-6)
    np.testing.assert_allclose(w, W[:, 0], rtol=0, atol=1e-12)


@each_loss
@each_rule
@pytest.mark.parametrize("n_polish", [0, 6])
@pytest.mark.parametrize("constant", [None, 0.2])
def test_sparse_steps_see_the_scores_of_dense_steps(
    loss, rule, n_polish, constant, seed
):
    solver = GreedyCoordinateDescent(
        9, mechanism="gumbel", rule=rule, n_polish=n_polish, staleness=0.0
    )
    plan = solver.plan(
        problem_of(loss, penalty=L1(1.0), constant=constant), Budget(20.0, 1e-5)
    )
    with recording() as dense:
        W = coefficients(solver, plan, rows_of(loss, seed), seed)
    with replaying(dense) as thin:
        V = coefficients(solver, plan, rows_of(loss, seed, sparse.csr_array), seed)
    np.testing.assert_array_equal(W, V)
    pairs = list(zip(dense.releases, thin.releases, strict=True))
    assert {a.label for a, _ in pairs} == {"Exponential", "DiscreteGaussian"}
    for a, b in pairs:
        # states of rows may be added up in another order
        np.testing.assert_allclose(a.value, b.value, rtol=0, atol=1e-6 * a.sensitivity)


@each_loss
def test_choices_see_slopes_as_stale_as_is_allowed_and_updates_true_ones(loss, seed):
    solver = GreedyCoordinateDescent(6, mechanism="gumbel", staleness=0.1)
    plan = solver.plan(problem_of(loss), Budget(20.0, 1e-5))
    rows = rows_of(loss, seed, sparse.csr_array)
    with recording() as stale:
        W = coefficients(solver, plan, rows, seed)
    with replaying(stale) as fresh:
        V = coefficients(solver, replace(plan, staleness=0.0), rows, seed)
    np.testing.assert_array_equal(W, V)
    apart = {"Exponential": 0.0, "DiscreteGaussian": 0.0}
    for a, b in zip(stale.releases, fresh.releases, strict=True):
        apart[a.label] = max(apart[a.label], np.abs(a.value - b.value).max())
    assert apart["Exponential"] > 0
    assert apart["DiscreteGaussian"] == 0


def test_staleness_grows_with_the_noise_of_choices():
    def staleness(epsilon, loss=None, **arguments):
        problem = problem_of(Logistic() if loss is None else loss, 10_000)
        solver = GreedyCoordinateDescent(20, mechanism="gumbel", **arguments)
        return solver.plan(problem, Budget(epsilon, 1e-6)).staleness

    assert staleness(100.0) == 0.02
    assert 0.02 < staleness(2.0) < staleness(1.0) < staleness(0.01) == 0.2
    # in units of the clip of choices where derivatives have no bound
    assert staleness(100.0, Squared(), selection_clip=0.5) == 0.01
    assert staleness(0.01, staleness=0.0) == 0.0


@pytest.mark.statistical
@layouts
def test_chosen_scores_are_as_close_to_the_best_as_is_said(layout, seed):
    solver = GreedyCoordinateDescent(1, mechanism="gumbel", n_polish=0)
    plan = solver.plan(problem_of(Logistic(), 50), Budget(1.0, 1e-5))
    rows = rows_of(Logistic(), seed, layout, n=50)
    rng, n_runs, missed = as_generator(seed), 200, 0
    for _ in range(n_runs):
        with recording() as tape:
            solver.run(plan, rows, rng)
        choice = tape.releases[0]
        gap = choice.value.max() - choice.value[choice.output]
        missed += gap > plan.within(0.9) * plan.updater.units
    assert_probability_at_most(missed, n_runs, 0.1)
    assert plan.within(0.99) > plan.within(0.9) > 0
    laplace = replace(plan, mechanism="laplace")
    assert laplace.within(0.9) == pytest.approx(2 * plan.within(0.9))


@pytest.mark.parametrize("noise", ["grid", "float"])
@layouts
def test_float_noise_is_said_and_grid_noise_is_not(noise, layout, seed):
    solver = GreedyCoordinateDescent(3, noise=noise)
    plan = solver.plan(problem_of(Logistic()), BUDGET)
    assert (len(plan.assumptions) == 2) == (noise == "grid")
    assert plan.assumptions[-1] == "there are at most 2^26 rows"
    W = coefficients(solver, plan, rows_of(Logistic(), seed, layout), seed)
    assert np.isfinite(W).all()


def train(solver, plan):
    def run(X, y, layout=np.asarray, seed=0):
        rows = bounded_rows(layout(np.asarray(X)), y, plan.problem.bounds)
        return coefficients(solver, plan, rows, seed)

    return run


CASES = [
    ("gumbel", np.asarray),
    ("gumbel", sparse.csr_array),
    ("pure", np.asarray),
    ("laplace", sparse.csr_array),
]
each_case = pytest.mark.parametrize(("mechanism", "layout"), CASES)


@each_relation
@each_case
@each_rule
def test_neighbors_stay_within_the_declared_sensitivity(
    neighbors, mechanism, layout, rule, seed
):
    solver = GreedyCoordinateDescent(2, mechanism=mechanism, rule=rule, n_polish=1)
    # each loss with a penalty of its own: hypothesis below mixes them
    pairs = list(zip(LOSSES, PENALTIES, strict=True))
    first = RULES.index(rule)
    for loss, penalty in pairs[first : first + 2]:
        problem = problem_of(loss, 5, 2, penalty, ridge=0.5)
        plan = solver.plan(problem, Budget(2.0, 1e-3, neighbors))
        for pair in adversarial_pairs(loss, neighbors):
            sides = [(*data, layout, seed) for data in (pair.first, pair.second)]
            report = assert_replays(train(solver, plan), *sides)
            assert len(report.entries) == 5


@each_relation
@layouts
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_neighbors_stay_within_the_declared_sensitivity(neighbors, layout, data):
    loss = data.draw(st.sampled_from(LOSSES))
    problem = problem_of(loss, 6, 2, data.draw(st.sampled_from(PENALTIES)))
    solver = GreedyCoordinateDescent(
        3,
        mechanism="gumbel",
        rule=data.draw(st.sampled_from(RULES)),
        n_polish=data.draw(st.sampled_from([0, 2])),
        clip=data.draw(st.sampled_from([None, 1e-3, 1e3])),
        smoothness=data.draw(st.sampled_from(["private", "public"])),
    )
    plan = solver.plan(problem, Budget(2.0, 1e-3, neighbors))
    pair = data.draw(neighboring_data(loss, neighbors))
    first, second = ((*side, layout) for side in (pair.first, pair.second))
    entries = assert_replays(train(solver, plan), first, second).entries
    assert len(entries) == 3 + plan.n_updates + len(plan.squares.events)


def violations(solver, plan, neighbors, layout):
    found = []
    for pair in adversarial_pairs(plan.problem.loss, neighbors):
        first, second = ((*data, layout) for data in (pair.first, pair.second))
        found += replay(train(solver, plan), first, second).violations
    return found


@each_relation
@pytest.mark.parametrize(
    ("mechanism", "layout", "rule"),
    [(*case, rule) for case, rule in zip(CASES, [*RULES, "gs-s"], strict=True)],
)
def test_half_the_sensitivity_is_reported(neighbors, mechanism, layout, rule):
    problem = problem_of(HuberizedHinge(), 5, 2)
    solver = GreedyCoordinateDescent(3, mechanism=mechanism, rule=rule)
    plan = solver.plan(problem, Budget(2.0, 1e-3, neighbors))
    assert violations(solver, plan, neighbors, layout) == []
    broken = replace(plan, sensitivity=plan.sensitivity / 2)
    found = violations(solver, broken, neighbors, layout)
    assert any("over the declared sensitivity" in sentence for sentence in found)


@layouts
def test_the_decrease_itself_as_a_score_is_reported(layout, monkeypatch):
    problem = problem_of(HuberizedHinge(), 5, 2)
    solver = GreedyCoordinateDescent(
        3, mechanism="gumbel", rule="gs-q", selection_clip=0.07
    )
    plan = solver.plan(problem, Budget(2.0, 1e-3))
    units, right = plan.updater.units, Scores.__call__

    def decrease(self, *given):
        found = right(self, *given)
        return found * np.abs(found) / 2 / units  # the sign is for those out of it

    monkeypatch.setattr(Scores, "__call__", decrease)
    found = violations(solver, plan, Neighbors.REPLACE_ONE, layout)
    assert any("over the declared sensitivity" in sentence for sentence in found)


def first_scores(plan, X, y):
    """Return the scores of the first choice, in rows."""
    columns = Columns(X, y, plan.problem.loss)
    descent = GreedyDescent(plan, columns, np.ones(X.shape[1]), as_generator(0))
    descent._private_sums = descent._all_sums()
    return descent._scores(descent.candidates) / plan.updater.units


def softmax(scores, epsilon):
    weights = np.exp(epsilon * (scores - scores.max()) / 4)
    return weights / weights.sum()


@pytest.mark.parametrize("n_features", [2, 5, 20, 100])
def test_one_score_against_many_that_move_together_stays_below_the_claim(n_features):
    # noise of a scale of its own for each score would add up over the others
    problem = problem_of(Squared(), 200, n_features)
    solver = GreedyCoordinateDescent(
        1, mechanism="gumbel", clip=0.1, smoothness="public", n_polish=0
    )
    plan = solver.plan(problem, Budget(1.0, 1e-5))
    X = np.ones((200, n_features))
    X[:, 0] = 0.0
    X[:150, 0] = 1.0
    y = np.ones(200)
    other_X, other_y = X.copy(), y.copy()
    other_X[0, 0], other_y[0] = 0.0, -1.0
    distributions = [
        softmax(first_scores(plan, *data), plan.selection_epsilon)
        for data in ((X, y), (other_X, other_y))
    ]
    apart = np.abs(np.log(distributions[0]) - np.log(distributions[1])).max()
    assert 0 < apart <= plan.selection_epsilon
    assert (
        np.ptp(np.log(distributions[0]) - np.log(distributions[1]))
        <= plan.selection_epsilon
    )
    # control: a score without noise wins if Laplace noise keeps all others below it
    part, others = plan.selection_epsilon / 2, n_features - 1

    def wins(above):
        return others * log(exp(-part * above) / 2)

    if n_features >= 5:
        assert wins(5.0) - wins(6.0) > 1.9 * plan.selection_epsilon


@pytest.mark.parametrize("gap", [0.0, 2.0, 5.0, 10.0, 20.0])
def test_two_scores_that_move_apart_stay_below_the_claim(gap):
    def wins(distance):
        """Return the chance that the lower of two scores wins, with Laplace noise."""
        return exp(-distance) * (2 + distance) / 4

    part = 0.1
    ratio = log(wins(max(gap - 2 * part, 0.0)) / wins(gap)) if gap else 0.0
    # noisy max with noise of one over epsilon is charged twice that epsilon
    assert ratio <= 2 * part
    if gap >= 5:
        assert ratio > 1.5 * part  # and once would not be enough


def test_intervals_of_weights_that_are_fixed_are_no_candidates():
    fixed = Box(0.0, 0.4)
    plan = GreedyCoordinateDescent(2).plan(
        problem_of(Logistic(), penalty=fixed, constant=1.0), BUDGET
    )
    assert plan.candidates.tolist() == [0, 1, 2, 3, 4]


def test_the_rule_takes_more_steps_with_more_rows_and_budget():
    def steps(n_rows, epsilon, n_features=100):
        problem = problem_of(Logistic(), n_rows, n_features)
        return greedy_rule(problem, Budget(epsilon, 1e-6)).n_steps

    assert steps(100, 1.0) == 1
    assert steps(300, 1.0) < steps(600, 1.0) < steps(600, 4.0)
    assert steps(600, 1.0, 10_000) < steps(600, 1.0)
    assert steps(10**6, 8.0) == 12
    assert steps(10**6, 8.0, 5) == 5
