"""A model of selected columns comes back whole, or is refused."""

import pytest
from sklearn.feature_selection import SelectKBest
from tests.persistence.subjects import Y_RANGE, fitted
from tests.persistence.test_hostile import forge, put, rejected

from tacit.feature_selection import BlockVoteSelector, PeelingSelector
from tacit.linear_model import SparseLinearRegression
from tacit.mechanisms import NO_ANSWER
from tacit.persistence import ModelFileError, load_model, save_model
from tacit.persistence._values import restored_parameter

COMMON = {"feature_bounds": 1.0, "y_range": Y_RANGE}
# with so little noise that both columns surely have a weight
MODEL = fitted(
    SparseLinearRegression(1e3, n_features_to_select=2, random_state=0, **COMMON)
)


@pytest.fixture
def folder(tmp_path):
    return save_model(MODEL, tmp_path / "model")


def test_what_was_selected_and_what_it_cost_comes_back(folder):
    again = load_model(folder)
    assert again.selection_ == MODEL.selection_
    assert again.selection_spent_ == MODEL.selection_spent_
    assert again.selected_features_.tolist() == MODEL.selected_features_.tolist()
    assert again.path_ is None
    assert again.noise_ is None


@pytest.mark.parametrize(
    "selection",
    [[0, 0], [2, 1], [3], [-1], [0.0], [True], ["0"], "0", {}, 3, [[0]], [0, 1, 2]],
    ids=repr,
)
def test_a_forged_selection_is_refused(folder, selection):
    forge(folder, put("fitted", "selection", value=selection))
    rejected(folder, "'selection'")


def test_a_weight_outside_of_the_selection_is_refused(folder):
    for selection in (None, [], [MODEL.selection_[0]]):
        forge(folder, put("fitted", "selection", value=selection))
        rejected(folder, "'selection' does not fit the weights")


@pytest.mark.parametrize("count", [0, -1, "2", 1.5, None, [2]], ids=repr)
def test_a_forged_number_of_columns_is_refused(folder, count):
    forge(folder, put("parameters", "n_features_to_select", value=count))
    rejected(folder, ".")


@pytest.mark.parametrize(
    "selector",
    [
        {"type": "SelectKBest"},
        {"type": "PrivateSelector"},
        {"type": "PeelingSelector"},
        {"type": "PeelingSelector", "n_features_to_select": 1, "random_state": 0},
        {"type": "PeelingSelector", "n_features_to_select": 1, "more": 1},
    ],
    ids=repr,
)
def test_a_forged_selector_is_refused(folder, selector):
    forge(folder, put("parameters", "selector", value=selector))
    rejected(folder, "selector")


def test_no_answer_is_kept_as_such(tmp_path):
    votes = BlockVoteSelector(n_features_to_select=2, n_blocks=3)
    model = SparseLinearRegression(
        0.5, 1e-6, n_features_to_select=2, selector=votes, **COMMON
    )
    again = load_model(save_model(fitted(model), tmp_path / "model"))
    assert again.selection_ == NO_ANSWER
    assert again.selected_features_.size == 0
    assert again.selection_spent_ > 0


def test_the_seed_of_a_selector_is_not_written(tmp_path):
    given = PeelingSelector(n_features_to_select=1, random_state=1234567)
    model = SparseLinearRegression(
        2.0, n_features_to_select=1, selector=given, **COMMON
    )
    folder = save_model(fitted(model), tmp_path / "model")
    assert "1234567" not in (folder / "model.json").read_text("utf-8")
    assert load_model(folder).selector.random_state is None


def test_a_selector_around_something_of_another_library_is_not_written(tmp_path):
    votes = BlockVoteSelector(
        selector=SelectKBest(k=2), n_features_to_select=2, n_blocks=3
    )
    model = fitted(
        SparseLinearRegression(
            0.5, 1e-6, n_features_to_select=2, selector=votes, **COMMON
        )
    )
    with pytest.raises(ModelFileError, match=r"selector\.selector cannot be written"):
        save_model(model, tmp_path / "model")


def test_a_selector_can_be_given_as_plain_data():
    data = {
        "type": "PeelingSelector",
        "n_features_to_select": 2,
        "method": "correlation",
    }
    selector = restored_parameter("selector", data)
    assert type(selector) is PeelingSelector
    assert selector.method == "correlation"
