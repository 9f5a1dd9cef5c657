"""What the search must find: bounds a little too small, and charges too few."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sensitivity.judging import Found, Planned, search
from tests.sensitivity.pairs import ADD, REPLACE, Row
from tests.sensitivity.solving import HINGE, problem_of, targets_of
from tests.sensitivity.subjects import SUBJECTS, package_of

from tacit._random import as_generator
from tacit.data import RowBounds, bounded_rows
from tacit.privacy import Budget
from tacit.solvers import NoisyGD

TOO_SMALL = 0.9
# One of each package whose sensitivity some pair uses up
TIGHT = {
    "solvers": "NoisyGD HuberizedHinge",
    "linear_model": "LinearSVC",
    "additive": "AdditiveClassifier",
    "preprocessing": "PrivateQuantileBounds",
    "feature_selection": "PeelingSelector",
    "model_selection": "private_accuracy",
    "evaluation": "private_score",
    "fairness": "private_certificate",
    "streaming": "OnlineLogisticRegression tree",
    "ensemble": "PrivateLabeler gnmax",
    "stability": "StableValue",
    "recommend": "MatrixCompletion svd",
}


def found(subject, neighbors, n_pairs=100, **more):
    """Return what a search raises."""
    with pytest.raises(Found) as raised:
        search(subject, neighbors, n_pairs, **more)
    return raised.value


def test_every_package_has_a_control():
    assert TIGHT.keys() == set(map(package_of, SUBJECTS.values()))


@pytest.mark.parametrize("package", TIGHT)
def test_a_bound_a_tenth_too_small_is_found_and_made_simple(package):
    subject = SUBJECTS[f"{package}: {TIGHT[package]}"]
    report = found(subject, ADD, declared=TOO_SMALL)
    assert any("are declared" in sentence for sentence in report.sentences)
    # one kind of rows is left of up to three, and one line says it all
    kinds = report.pair.users if package == "recommend" else report.pair.kinds
    assert len(kinds) == 1
    assert len(str(report).splitlines()[0]) < 200


def test_the_pair_that_is_shown_is_the_simplest():
    subject = SUBJECTS[f"solvers: {TIGHT['solvers']}"]
    report = found(subject, REPLACE, declared=TOO_SMALL)
    pair = report.pair
    assert pair.kinds == (Row((0.0, 0.0), 0),)
    assert pair.positions == (0,)
    for row in (pair.row, pair.other):
        assert np.count_nonzero(row.x) == 1
        assert set(np.abs(row.x)) <= {0.0, 1.0}
    assert "Neighbors: of 5 rows like (0, 0; y=0), number 0, (" in str(report)


def planned_for_shorter_rows(neighbors):
    """Return a trainer whose plan counts on rows a tenth shorter than they are."""
    solver, problem = NoisyGD(n_steps=1), problem_of(HINGE, x_norm=TOO_SMALL)
    plan = solver.plan(problem, Budget(2.0, 1e-3, neighbors))

    def train(X, y):
        rows = bounded_rows(X, targets_of(problem, y), RowBounds(1.0))
        return solver.run(plan, rows, as_generator(0)).coefficients

    return Planned(train)


@pytest.mark.parametrize("neighbors", [REPLACE, ADD], ids=lambda r: r.name)
def test_a_plan_for_shorter_rows_is_found(neighbors):
    honest = SUBJECTS[f"solvers: {TIGHT['solvers']}"]
    report = found(replace(honest, planned=planned_for_shorter_rows), neighbors)
    assert any("moves by" in sentence for sentence in report.sentences)


def test_a_stream_that_is_charged_for_half_its_draws_is_found():
    honest = SUBJECTS[f"streaming: {TIGHT['streaming']}"]

    def cheaper(neighbors):
        planned = honest.planned(neighbors)
        return replace(planned, n_charged=planned.n_charged / 2)

    report = found(replace(honest, planned=cheaper), ADD)
    assert any("are charged" in sentence for sentence in report.sentences)


def test_what_is_shown_of_a_row_beside_the_releases_is_found():
    honest = SUBJECTS[f"solvers: {TIGHT['solvers']}"]

    def leaking(neighbors):
        train = honest.planned(neighbors).train
        return Planned(lambda X, y: (train(X, y), abs(X).max()))

    report = found(replace(honest, planned=leaking), ADD)
    assert any("differs although" in sentence for sentence in report.sentences)
