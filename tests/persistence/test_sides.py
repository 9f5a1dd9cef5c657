"""Item sides in folders: all of them come back, and forged ones are refused."""

import json
import pickle
import zipfile
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.persistence.forging import (
    forge,
    npz,
    put,
    refused_in_place_of,
    refused_when_edited,
    refused_with_less_spent,
    rejected,
)

import tacit.recommend
from tacit._random import as_generator
from tacit.persistence import (
    ModelFileError,
    digest,
    load_model,
    read,
    read_side,
    save_model,
    write_side,
)
from tacit.persistence._folder import is_model
from tacit.persistence._side_kinds import KINDS
from tacit.persistence._sides import SavedSide, is_side
from tacit.persistence._students import is_student
from tacit.privacy import Budget, GaussianNoise, Ledger
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS
from tacit.recommend.items.linear import LinearItems, NeighborItems
from tacit.recommend.items.side import ItemSide
from tacit.recommend.items.steps import ReplayedItems, WalkItems

GOLDEN = Path(__file__).parent / "golden" / "sides"
N_ITEMS, RANK = 7, 3
LABELS = ["tea", "Kaffee", "rum", "7", "größe", "a\nb", "x"]


def report(neighbors="replace_one"):
    ledger = Ledger(Budget(1.0, 1e-6, neighbors))
    ledger.charge(GaussianNoise(10.0), "films")
    return ledger.report()


def numbers(*shape, seed=0):
    """Return positive numbers, the same to the bit on every machine."""
    positions = np.arange(float(np.prod(shape))).reshape(shape)
    return ((7 * positions + 5 * seed) % 13 + 1) / 8


COMMON = {
    "vectors": numbers(N_ITEMS, RANK),
    "offsets": numbers(N_ITEMS, seed=1),
    "low": 1.0,
    "high": 5.0,
}
LINEAR = LinearItems(**COMMON, penalties=numbers(RANK), prior_level=2.75)
WALK = WalkItems(
    **COMMON,
    keeps=numbers(RANK, seed=2) % 1,
    lengths=numbers(RANK, seed=3),
    strengths=numbers(RANK, seed=4),
    prior_level=2.5,
    max_ratings=4,
)
REPLAY = ReplayedItems(
    **COMMON,
    projections=numbers(N_ITEMS, 2 + RANK) / 3,
    shrinks=numbers(2 + RANK, seed=2) % 1,
    ranks=np.array([2, RANK]),
    step_sizes=np.full(3, 0.75),
    radii=np.full(3, 2.0),
    row_norm=3.0,
    max_ratings=2,
    key=np.arange(16, dtype=np.uint8),
)
NEIGHBORS = NeighborItems(
    **{**COMMON, "vectors": np.eye(N_ITEMS)},
    covariance=np.eye(N_ITEMS) + np.outer(numbers(N_ITEMS), numbers(N_ITEMS)),
    variance=0.5,
    n_neighbors=2,
    prior_level=2.5,
    prior_count=3.0,
)
EXAMPLES = {
    "linear": LINEAR,
    "neighbors": NEIGHBORS,
    "projection": replace(LINEAR, step="projection"),
    "walk": WALK,
    "clipped walk": replace(WALK, row_norm=1.5),
    "replay": REPLAY,
    "no step": replace(
        REPLAY,
        vectors=np.empty((N_ITEMS, 0)),
        projections=np.empty((N_ITEMS, 0)),
        shrinks=np.empty(0),
        ranks=np.empty(0, dtype=np.int64),
    ),
}
MINE = {"tea": 5.0, "rum": 1.0, "7": 2.5, "other": 3.0}


@pytest.fixture
def folder(tmp_path):
    return write_side(
        tmp_path / "side", LINEAR, report(), items=LABELS, facts={"b": [2]}
    )


def parts(side=LINEAR):
    kind = KINDS[type(side).__name__]
    return {name: getattr(side, name) for name in kind.all_arrays}


def forge_arrays(folder, **changed):
    """Put other arrays in, of which the header knows."""
    arrays = {**parts(), **changed}

    def change(data):
        for name, array in arrays.items():
            data["arrays"][name]["shape"] = list(np.shape(array))

    forge(folder, change, weights_npz=npz(**arrays))


def sides_of_the_library():
    for module in walk_packages(tacit.recommend.__path__, "tacit.recommend."):
        import_module(module.name)
    found, waiting = set(), [ItemSide]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        waiting += kinds
        found |= {kind for kind in kinds if kind.__module__.startswith("tacit.")}
    return found


def test_every_side_of_the_library_can_be_saved():
    assert LinearItems in sides_of_the_library()
    assert {kind.make for kind in KINDS.values()} == sides_of_the_library()


@pytest.mark.parametrize("name", KINDS)
def test_the_table_names_all_fields_of_a_side(name):
    kind = KINDS[name]
    assert {type(side) for side in EXAMPLES.values()} >= {kind.make}
    named = {*kind.all_arrays, *kind.all_values}
    assert named == {field.name for field in fields(kind.make)}


def assert_same(again, side):
    """Assert that two sides are the same to the bit, and so are rows made of them."""
    assert type(again) is type(side)
    for field in fields(side):
        mine, its = (getattr(part, field.name) for part in (side, again))
        assert type(mine) is type(its)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == its.dtype
            assert np.ascontiguousarray(mine).tobytes() == its.tobytes()
        else:
            assert mine == its


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_side_comes_back_and_completes_rows_to_the_bit(name, tmp_path):
    side = EXAMPLES[name]
    position = write_side(tmp_path / "a" / "side", side, report(), items=LABELS)
    assert {path.name for path in position.iterdir()} == {
        "side.json",
        "weights.npz",
        "items.json",
        "privacy.json",
    }
    saved = read_side(position)
    again = saved.estimator
    assert saved.privacy == again.privacy_ == report()
    assert_same(again.side, side)
    before = SavedSide(side, again.catalogue, report())
    for ratings in (MINE, {}, {"other": 1}, dict.fromkeys(LABELS, 4)):
        rows = (before.row(ratings), again.row(ratings))
        first, second = (row.complete() for row in rows)
        assert first.tobytes() == second.tobytes()
        assert rows[0].top(2).items == rows[1].top(2).items
    assert np.isfinite(first).all()
    assert not np.array_equal(again.row(MINE).complete(), again.row({}).complete()) or (
        name == "no step"
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_each_solver_publishes_can_be_saved(solver, tmp_path):
    rng = as_generator(1)
    rows = [(u, j, 1 + 4 * rng.random()) for u in range(40) for j in range(u % N_ITEMS)]
    model = MatrixCompletion(
        solver, 5.0, 1e-4, items=N_ITEMS, rating_range=(1, 5), random_state=0
    ).fit(rows)
    folder = write_side(
        tmp_path / "side", model.factors_, model.privacy_, items=model.items_
    )
    saved = read_side(folder)
    assert saved.privacy == model.privacy_
    assert_same(saved.estimator.side, model.factors_)
    mine = {0: 5.0, 3: 2.0}
    found = saved.estimator.row(mine).complete()
    assert found.tobytes() == model.complete_row(mine).tobytes()


def test_labels_of_all_kinds_come_back(tmp_path):
    for position, (items, labels) in enumerate(
        [
            (None, range(N_ITEMS)),
            (N_ITEMS, range(N_ITEMS)),
            (list(range(N_ITEMS)), range(N_ITEMS)),
            (np.arange(N_ITEMS) * 10, tuple(range(0, 70, 10))),
            (LABELS, tuple(LABELS)),
            (np.array(LABELS), tuple(LABELS)),
        ]
    ):
        folder = write_side(tmp_path / str(position), LINEAR, report(), items=items)
        assert read_side(folder).estimator.catalogue.labels == labels


def test_folders_of_sides_models_and_students_are_told_apart(folder):
    assert is_side(folder)
    assert not is_model(folder)
    assert not is_student(folder)
    assert not is_side(folder.parent)
    assert read(folder).facts == read_side(folder).facts == {"b": [2]}
    assert digest(folder) == sha256((folder / "side.json").read_bytes()).hexdigest()
    words = r"not a side folder: side\.json is missing"
    with pytest.raises(ModelFileError, match=words):
        read_side(folder.parent)


def test_only_the_folder_of_a_side_is_replaced(folder):
    with pytest.raises(ModelFileError, match="exists"):
        write_side(folder, LINEAR, report())
    write_side(folder, LINEAR, report(), overwrite=True)
    assert read_side(folder).estimator.catalogue.labels == range(N_ITEMS)
    with pytest.raises(ModelFileError, match="not replaced"):
        write_side(folder.parent, LINEAR, report(), overwrite=True)


@dataclass(frozen=True, eq=False)
class Own(LinearItems):
    pass


def test_what_cannot_be_written_is_refused(tmp_path):
    def refuses(words, side=LINEAR, **options):
        with pytest.raises(ModelFileError, match=words):
            write_side(tmp_path / "s", side, report(), **options)

    own = Own(**{field.name: getattr(LINEAR, field.name) for field in fields(LINEAR)})
    refuses("type Own cannot be saved", own)
    refuses("other shape", replace(LINEAR, offsets=LINEAR.offsets[1:]))
    refuses("finite", replace(LINEAR, offsets=np.full(N_ITEMS, np.nan)))
    refuses("no fit gives", replace(LINEAR, low=5.0, high=1.0))
    refuses("low", replace(LINEAR, low=np.inf))
    refuses("number of items", items=LABELS[1:])
    refuses("distinct labels", items=["a"] * N_ITEMS)
    refuses("items", items=["a", *range(6)])
    refuses("facts", facts={"a": object()})
    assert not list(tmp_path.iterdir())


def test_the_forger_of_these_tests_can_make_a_good_folder(folder):
    forge(folder, put("facts", value={"b": 3}), weights_npz=npz(**parts()))
    assert read_side(folder).facts == {"b": 3}
    forge_arrays(folder, vectors=np.ones((N_ITEMS, 2)), penalties=np.ones(2))
    assert read_side(folder).estimator.side.vectors.shape == (N_ITEMS, 2)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"vectors": np.ones((N_ITEMS - 1, RANK))}, "another shape"),
        ({"vectors": np.ones((N_ITEMS, RANK + 1))}, "another shape"),
        ({"vectors": np.ones(N_ITEMS)}, "another shape"),
        ({"penalties": np.ones(RANK - 1)}, "another shape"),
        ({"penalties": np.ones((RANK, 1))}, "another shape"),
        ({"offsets": np.ones(N_ITEMS + 1)}, "another shape"),
        ({"vectors": np.ones((N_ITEMS, 1, RANK))}, "must state a shape"),
        ({"offsets": np.full(N_ITEMS, np.nan)}, "not finite"),
        ({"offsets": np.full(N_ITEMS, -np.inf)}, "not finite"),
        ({"offsets": np.full(N_ITEMS, 1e200)}, "no fit gives"),
        ({"offsets": np.ones(N_ITEMS, dtype=np.float32)}, "another type or shape"),
        ({"offsets": np.ones(N_ITEMS, dtype=np.int64)}, "another type or shape"),
        ({"offsets": np.array([print] * N_ITEMS)}, "larger than|another type or shape"),
    ],
)
def test_forged_arrays_are_refused(changed, words, folder):
    forge_arrays(folder, **changed)
    rejected(folder, words)


REPLAYED = {
    "more directions": {"ranks": [2, RANK + 1]},
    "fewer directions": {"ranks": [1, RANK]},
    "another last step": {"ranks": [RANK, 2]},
    "negative ranks": {"ranks": [2 * RANK + 2, -RANK]},
    "huge ranks": {"ranks": [2**63 - 1, 2]},
    "no list of ranks": {"ranks": 5},
    "more steps than sizes": {"ranks": [0, 0, 0, 2, RANK]},
    "no ratings": {"max_ratings": 0},
    "half a rating": {"max_ratings": 1.5},
    "no norm": {"row_norm": 0.0},
    "no key": {"key": None},
    "another key": {"key": [256]},
}


@pytest.mark.parametrize("case", REPLAYED)
def test_a_replay_that_leads_out_of_its_arrays_is_refused(case, tmp_path):
    folder = write_side(tmp_path / "side", REPLAY, report())
    forge(folder, lambda data: data["values"].update(REPLAYED[case]))
    rejected(folder, "no fit gives|an invalid")


@pytest.mark.parametrize(
    "changed", [{"row_norm": -1.0}, {"max_ratings": 2**31}, {"prior_level": None}]
)
def test_a_forged_walk_is_refused(changed, tmp_path):
    folder = write_side(tmp_path / "side", WALK, report())
    forge(folder, lambda data: data["values"].update(changed))
    rejected(folder, "no fit gives|an invalid")


@pytest.mark.parametrize("changed", [{"n_neighbors": 10**6}, {"n_neighbors": 0}])
def test_a_forged_neighborhood_is_refused(changed, tmp_path):
    folder = write_side(tmp_path / "side", NEIGHBORS, report())
    forge(folder, lambda data: data["values"].update(changed))
    rejected(folder, "no fit gives|an invalid")


def test_vectors_that_do_not_go_with_neighbors_are_refused(tmp_path):
    side = replace(NEIGHBORS, vectors=np.eye(N_ITEMS)[:, 1:])
    with pytest.raises(ModelFileError, match="no fit gives"):
        write_side(tmp_path / "side", side, report())


def test_no_items_at_all_are_refused(folder):
    forge_arrays(folder, vectors=np.ones((0, RANK)), offsets=np.ones(0))
    rejected(folder, "no item")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (pickle.dumps(LINEAR.vectors), "damaged"),
        (npz(zipfile.ZIP_DEFLATED, **parts()), "compressed"),
        (npz(vectors=LINEAR.vectors), "other members"),
        (npz(**parts(), more=np.ones(1)), "other members"),
        (npz(**parts())[:-9], "damaged"),
    ],
)
def test_a_damaged_archive_is_refused(content, words, folder):
    forge(folder, weights_npz=content)
    rejected(folder, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("format", value="tacit model"), "side of tacit"),
        (put("version", value=2), "update tacit"),
        (put("extra", value=1), "does not know"),
        (put("side", value="Ratings"), "this version lacks"),
        (put("side", value="ItemSide"), "this version lacks"),
        (put("side", value=["LinearItems"]), "this version lacks"),
        (put("values", value=[]), "JSON object"),
        (put("values", "low", value="1"), "'low'"),
        (put("values", "low", value=True), "'low'"),
        (put("values", "low", value=1), "'low'"),
        (put("values", "low", value=5.0), "no fit gives"),
        (put("values", "prior_count", value=-1.0), "no fit gives"),
        (put("values", "step", value="os.system"), "'step'"),
        (put("values", "step", value=["ridge"]), "'step'"),
        (put("values", "more", value=1.0), "does not know"),
        (lambda data: data["values"].pop("high"), "lacks 'high'"),
        (put("arrays", "offsets", "shape", value=[2**40]), "impossible shape"),
        (put("arrays", "vectors", "shape", value=[2**20, 2**20]), "more than"),
        (put("arrays", "offsets", "dtype", value="object"), "float64"),
        (put("files", value={}), "lacks"),
        (put("files", "weights.npz", "bytes", value=2**50), "impossible size"),
        (lambda data: data["files"].update({"../evil": {}}), "does not know"),
    ],
)
def test_a_forged_description_is_refused(change, words, folder):
    forge(folder, change)
    rejected(folder, words)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ({"items": LABELS[1:]}, "another number"),
        ({"items": N_ITEMS + 1}, "another number"),
        ({"items": 2**40}, "items"),
        ({"items": 0}, "items"),
        ({"items": True}, "items|number"),
        ({"items": None}, "items"),
        ({"items": ["a"] * N_ITEMS}, "distinct labels"),
        ({"items": [[1]] * N_ITEMS}, "items"),
        ({"items": [1.5] * N_ITEMS}, "items"),
        ({"labels": LABELS}, "lacks 'items'"),
        (LABELS, "JSON object"),
    ],
)
def test_a_forged_list_of_items_is_refused(items, words, folder):
    forge(folder, items_json=json.dumps(items).encode())
    rejected(folder, words)


@pytest.mark.parametrize("name", ["weights.npz", "privacy.json", "items.json"])
def test_another_file_than_was_written_is_refused(name, folder):
    refused_in_place_of(folder, name)


def test_a_report_that_its_charges_do_not_bear_out_is_refused(folder):
    refused_with_less_spent(folder)


def test_a_description_edited_by_hand_is_refused(folder):
    refused_when_edited(folder, "side.json")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_folder_of_the_first_format_stays_readable(name):
    saved = read_side(GOLDEN / name.replace(" ", "_"))
    assert saved.facts == {"made": "for tests"}
    assert saved.privacy == report()
    assert_same(saved.estimator.side, EXAMPLES[name])
    assert saved.estimator.catalogue.labels == tuple(LABELS)


def test_a_fitted_model_is_all_that_has_to_be_given(tmp_path):
    model = MatrixCompletion(
        "svd", 1.0, 1e-6, items=LABELS, rating_range=(1, 5), random_state=0
    )
    with pytest.raises(NotFittedError):
        write_side(tmp_path / "side", model)
    model.fit([(i, LABELS[i % 7], 1 + i % 5) for i in range(40)])
    with pytest.raises(ModelFileError, match="write_side"):
        save_model(model, tmp_path / "model")
    found = read_side(write_side(tmp_path / "side", model))
    assert found.privacy.to_dict() == model.privacy_.to_dict()
    own = {"tea": 4.0, "x": 2.0}
    expected = model.complete_row(own)
    for each in (found.estimator, load_model(tmp_path / "side")):
        assert np.array_equal(each.complete_row(own), expected)
        assert np.array_equal(each.row(own).complete(), expected)
    for told in (repr(found), repr(found.estimator)):
        assert "LinearItems(n_items=7" in told
        assert "epsilon=1, delta=1e-06" in told
        assert "\n" not in told
        assert len(told) < 150
    for given in ((model.factors_,), (model, model.privacy_, 3), (LABELS,)):
        with pytest.raises(TypeError):
            write_side(tmp_path / "other", *given)
