"""Noise follows the operating system unless a seed is asked for as such."""

import ast
import importlib
import inspect
import pickle
import pkgutil
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import AdaBoostRegressor, BaggingClassifier, BaggingRegressor
from sklearn.linear_model import RANSACRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tacit
from tacit import Seed, reproducible_noise
from tacit._random import as_generator, is_seeded, noise_generator, public_generator
from tacit.evaluation import hold_out
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.model_selection import PrivateSearchCV
from tacit.preprocessing import PrivateStandardScaler
from tacit.streaming import OnlineLinearRegression

pytestmark = pytest.mark.fresh_noise

RandomState = np.random.RandomState  # noqa: TID251 - what scikit-learn hands around
X = np.linspace(-0.5, 0.5, 80).reshape(40, 2)
Y = X[:, 0]
LABELS = np.arange(40) % 2


def regression(**given):
    return LinearRegression(1.0, 1e-6, y_range=(-1, 1), **given, x_norm=1.0)


def classification(**given):
    return LogisticRegression(1.0, 1e-6, classes=[0, 1], **given, x_norm=1.0)


def scaler(**given):
    return PrivateStandardScaler(500.0, 1e-6, ranges=(-1, 1), **given)


def stream(**given):
    return OnlineLinearRegression(
        1.0,
        1e-6,
        horizon=2,
        rows_per_step=40,
        y_range=(-1, 1),
        **given,
        x_norm=1.0,
    )


def fitted(model):
    """Return the numbers that one fit released."""
    done = model.partial_fit(X, Y) if hasattr(model, "horizon") else model.fit(X, Y)
    return done.coef_ if hasattr(done, "coef_") else done.scale_


MAKERS = [regression, scaler, stream]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "state", [0, np.int64(3), RandomState(0)], ids=lambda state: type(state).__name__
)
def test_an_integer_does_not_fix_the_noise(make, state):
    first, second = (make(random_state=deepcopy(state)) for _ in range(2))
    assert not np.array_equal(fitted(first), fitted(second))
    assert not first.privacy_.seeded


@pytest.mark.parametrize("make", MAKERS)
def test_an_explicit_seed_does_and_the_report_says_so(make):
    first, second = make(random_state=Seed(3)), make(random_state=Seed(3))
    assert np.array_equal(fitted(first), fitted(second))
    assert first.privacy_.seeded
    assert not np.array_equal(fitted(make(random_state=Seed(4))), fitted(first))


@pytest.mark.parametrize("make", MAKERS)
def test_integers_fix_the_noise_inside_the_context_alone(make):
    with reproducible_noise():
        first, second = make(random_state=3), make(random_state=3)
        assert np.array_equal(fitted(first), fitted(second))
        assert first.privacy_.seeded
    assert not np.array_equal(fitted(make(random_state=3)), fitted(first))


def test_the_seed_of_numpy_does_not_fix_the_noise():
    found = []
    for _ in range(2):
        # what code around the library may do
        np.random.seed(0)  # noqa: NPY002, TID251
        found.append(fitted(regression()))
    assert not np.array_equal(*found)


def test_workers_do_not_share_noise():
    model = regression(random_state=RandomState(0))
    # forks, which share what is in memory, and start at once
    workers = Parallel(n_jobs=2, backend="multiprocessing")
    first, second = workers(delayed(fitted)(model) for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    "copy", [clone, deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_keep_an_explicit_seed(copy):
    model = regression(random_state=Seed(5))
    assert copy(model).random_state == Seed(5)
    assert type(copy(model).random_state) is Seed


@pytest.mark.parametrize(
    ("ensemble", "target"),
    [
        (lambda m: BaggingRegressor(m, 3, random_state=0), Y),
        (lambda m: BaggingRegressor(make_pipeline(FunctionTransformer(), m), 3), Y),
        (lambda m: AdaBoostRegressor(m, n_estimators=3), Y),
        (lambda m: BaggingClassifier(m, 3), LABELS),
        (lambda m: BaggingClassifier(m, 3, bootstrap=False), LABELS),
    ],
)
def test_ensembles_that_repeat_rows_are_rejected_before_a_fit(
    ensemble, target, monkeypatch
):
    model = classification() if target is LABELS else regression()
    read = []
    monkeypatch.setattr(type(model), "fit", lambda *a, **k: read.append(a))
    with pytest.raises(
        ValueError,
        match=r"ensembles of scikit-learn do, most of which repeat rows.*tacit\.Seed",
    ):
        ensemble(model).fit(X, target)
    assert not read


def test_models_inside_ransac_draw_fresh_noise():
    found = [
        RANSACRegressor(regression(), min_samples=20, max_trials=1, random_state=0)
        .fit(X, Y)
        .estimator_
        for _ in range(2)
    ]
    assert not np.array_equal(found[0].coef_, found[1].coef_)
    assert not any(model.privacy_.seeded for model in found)


def test_seeds_set_later_must_be_explicit_and_change_nothing_else():
    model = regression()
    with pytest.raises(ValueError, match="set_params"):
        model.set_params(epsilon=5.0, random_state=3)
    assert model.epsilon == 1.0
    assert model.random_state is None
    assert model.set_params(random_state=Seed(3)).random_state == 3
    assert model.set_params(random_state=None).random_state is None


def test_a_search_gives_its_winner_the_random_state_that_it_came_with():
    search = PrivateSearchCV(
        classification(random_state=7), {"x_norm": [1.0, 2.0]}, epsilon=3.0, delta=1e-6
    )
    search.fit(np.tile(X, (20, 1)), np.tile(LABELS, 20))
    assert search.best_estimator_.random_state == 7


def test_public_choices_follow_any_integer():
    assert np.array_equal(
        hold_out(50, random_state=3)[1], hold_out(50, random_state=3)[1]
    )
    first, second = (public_generator(3, "split").integers(2**60) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("bad", [-1, True, 1.0, "0", None])
def test_what_is_no_seed_is_rejected(bad):
    with pytest.raises(ValueError, match="random_state must be"):
        Seed(bad)


def test_generators_and_sequences_are_explicit():
    assert noise_generator(rng := as_generator(0)) is rng
    assert is_seeded(np.random.SeedSequence(0))
    assert not is_seeded(0)
    assert not is_seeded(RandomState(0))
    assert not is_seeded(None)


def private_estimators():
    """Return the public classes of estimators that take a random state."""
    for module in pkgutil.iter_modules(tacit.__path__):
        if module.name.startswith("_") or module.name == "cli":
            continue
        package = importlib.import_module(f"tacit.{module.name}")
        for name in getattr(package, "__all__", ()):
            kind = getattr(package, name)
            estimator = isinstance(kind, type) and issubclass(kind, BaseEstimator)
            # seeds of features that are drawn without data are public
            public = getattr(getattr(kind, "saved", None), "private", True) is False
            seeded = estimator and "random_state" in inspect.signature(kind).parameters
            if seeded and not public:
                yield pytest.param(kind, id=name)


@pytest.mark.parametrize("kind", list(private_estimators()))
def test_every_private_estimator_rejects_integers_that_others_set(kind):
    model = kind.__new__(kind)  # parameters without a default do not matter here
    with pytest.raises(ValueError, match=r"tacit\.Seed"):
        model.set_params(random_state=0)


def test_no_release_makes_its_generator_from_a_plain_random_state():
    """`as_generator` takes integers as seeds, so releases must not call it."""
    root = Path(tacit.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        if "datasets" in path.parts or path.name == "_random.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = node.args[0]
            last = getattr(given, "id", getattr(given, "attr", ""))
            if name == "as_generator" and last == "random_state":
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert found == []
