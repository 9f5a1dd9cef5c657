"""Pages written again: about all that is released, from a sound ledger, in place."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.story import fit_arguments
from tests.reports import test_fairness as fairness

from tacit import __version__
from tacit._random import as_generator
from tacit.audit._attacked import digest_of
from tacit.audit.bounds import bound_of_counts, largest_bound
from tacit.linear_model import LogisticRegression
from tacit.persistence import SavedModel, digest, read, write
from tacit.persistence._json import checksum
from tacit.privacy import Budget, Ledger, PureDP

SOLVER = "solver=output_perturbation"
GUIDE = Path(__file__).parents[2] / "docs" / "use" / "saved_models.md"


def account(folder, budget=None):
    url = f"sqlite:///{folder / 'budget.db'}"
    return Ledger.open(url, dataset="people", budget=budget)


@pytest.fixture
def model(tmp_path):
    """A small model that a ledger paid for, and facts as ``tacit fit`` keeps them."""
    ledger = account(tmp_path, Budget(3.0, 1e-6))
    rng = as_generator(0)
    X = rng.normal(size=(200, 2)) / 3
    fitted = LogisticRegression(1.0, 1e-7, classes=["no", "yes"], x_norm=1.0)
    fitted.fit(X, np.where(X[:, 0] > 0, "yes", "no"), ledger=ledger)
    facts = {
        "label": "income",
        "ledger": {"dataset": "people", "head": list(ledger.head)},
        "charge": ledger.head[0],
    }
    return write(tmp_path / "model", SavedModel(fitted, fitted.privacy_, None, facts))


def with_facts(folder, **more):
    saved = read(folder)
    facts = {**saved.facts, **more}
    changed = SavedModel(saved.estimator, saved.privacy, saved.schema, facts)
    return write(folder, changed, overwrite=True)


def again(run, folder, *more):
    url = f"sqlite:///{folder.parent / 'budget.db'}"
    return run("report", folder, "--ledger", url, *more)


def pages(folder):
    names = ("report.html", "card.html", "card.md")
    return [(folder / name).read_text("utf-8") for name in names]


def test_a_link_in_the_folder_is_replaced_and_not_followed(model, run, tmp_path):
    diary = tmp_path / "diary.txt"
    diary.write_text("years of work")
    for name in ("report.html", "card.html", "card.md"):
        (model / name).symlink_to(diary)
    answer = run("report", model)
    assert answer.code == 0, answer.err
    assert diary.read_text() == "years of work"
    assert not (model / "card.md").is_symlink()
    assert "income" in (model / "card.md").read_text("utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_in_the_folder_is_replaced_and_not_waited_for(model, run):
    os.mkfifo(model / "card.md")
    assert run("report", model).code == 0
    assert (model / "card.md").is_file()


def test_a_page_that_cannot_be_put_in_place_leaves_nothing_half_done(model, run):
    (model / "card.md").mkdir()
    before = {path.name for path in model.iterdir()}
    assert run("report", model).code == 2
    assert {path.name for path in model.iterdir()} - before <= {"report.html"}


def test_everything_in_the_folder_is_counted(model, run):
    paid = Ledger(Budget(2.0))
    paid.charge(PureDP(2.0), "score")
    first = json.loads((model / "privacy.json").read_text("utf-8"))
    with_facts(model, releases=[first, paid.report().to_dict()])
    assert run("report", model).code == 0
    for page in pages(model):
        assert "upper limit" in page
    card = (model / "card.md").read_text("utf-8")
    assert "Epsilon 3, delta 10⁻⁷" in card


def test_releases_that_are_no_reports_are_refused(model, run):
    with_facts(model, releases=[{}])
    answer = run("report", model)
    assert answer.code == 2
    assert "releases" in answer.err


def test_the_account_is_told_as_of_now_with_what_its_owner_states(model, run):
    ledger = account(model.parent)
    ledger.charge(PureDP(0.1), "a mean")
    ledger.void(ledger.head[0], "the run never began")
    assert again(run, model).code == 0
    for page in pages(model):
        assert "as of" in page
        assert "states that the voided charges released nothing" in page
        assert "WAS VOIDED" not in page


def test_a_model_whose_own_charge_was_voided_says_so_loudly(model, run):
    ledger = account(model.parent)
    ledger.void(1, "nobody will notice")
    assert again(run, model).code == 0
    for page in pages(model):
        assert "THE CHARGE OF THIS MODEL WAS VOIDED" in page


def test_a_ledger_written_anew_is_refused_and_no_page_is_written(model, run):
    (model.parent / "budget.db").unlink()
    ledger = account(model.parent, Budget(3.0, 1e-6))
    ledger.charge(PureDP(0.01), "hardly anything")
    answer = again(run, model)
    assert answer.code == 4
    assert "truncated or rewritten" in answer.err
    assert not (model / "report.html").exists()


@pytest.mark.parametrize("head", ["7", [1], ["1", "a"], {}, [True, "a"]])
def test_a_head_that_is_none_is_refused(model, run, head):
    with_facts(model, ledger={"dataset": "people", "head": head})
    answer = again(run, model)
    assert answer.code == 2
    assert "a number and a hash" in answer.err


def test_a_folder_without_a_head_is_still_reported(model, run):
    with_facts(model, ledger=None)
    assert again(run, model).code == 0


def test_the_example_of_the_guide_reads_a_folder_of_the_command_line(
    census, run, monkeypatch
):
    assert run(*fit_arguments(census)).code == 0
    assert run("example", census / "new.csv", "--rows", 50, "--seed", 1).code == 0
    (code,) = re.findall(r"^```py\n(.*?)^```$", GUIDE.read_text("utf-8"), re.S | re.M)
    monkeypatch.chdir(census)
    names = {}
    exec(compile(code, GUIDE, "exec"), names)
    assert len(names["predictions"]) == 50
    assert set(names["predictions"]) <= {"no", "yes"}


@pytest.fixture
def small(tmp_path):
    """A saved model of few rows, whose audits are fast."""
    X = np.linspace(-1, 1, 40)[:, None] * np.ones(2) / 2
    model = LogisticRegression(
        1.0, 1e-3, classes=["no", "yes"], solver="output_perturbation", x_norm=2.0
    ).fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    facts = {"label": "small", "rows": 40, "tacit": __version__}
    return write(tmp_path / "small", SavedModel(model, model.privacy_, None, facts))


FAST = ("--runs", 60, "--rows", 4, "--jobs", 1, "--seed", 0, "--quiet", "--json")


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (None, None),
        (("LogisticRegression", "--epsilon", 0.5), "another promise: epsilon 0.5"),
        (
            ("LogisticRegression", "--delta", 1e-3, "--set", SOLVER),
            "another parameter classes: nothing, and the model has ['no', 'yes']",
        ),
    ],
)
def test_audits_of_the_same_model_alone_go_into_its_report(
    small, subject, words, run, tmp_path
):
    if subject is None:
        given = ("--model", small)
    else:
        given = (f"tacit.linear_model:{subject[0]}", *subject[1:])
    audited = tmp_path / "audit.json"
    answer = run("audit", *given, *FAST)
    assert answer.code == 0, answer.err
    audited.write_text(answer.out)
    answer = run("report", small, "--audit", audited)
    if words is None:
        assert answer.code == 0, answer.err
        page = (small / "report.html").read_text("utf-8")
        assert "Many trainings on neighboring tables" in page
    else:
        assert answer.code == 2
        assert words in answer.err
        assert answer.err.count("\n") == 1
        assert not (small / "report.html").exists()


def test_an_audit_of_a_saved_model_takes_its_parameters(small, run):
    answer = run("audit", "--model", small, "--epsilon", 2)
    assert "--epsilon cannot be combined with --model" in answer.err
    both = ("tacit.linear_model:LogisticRegression", "--model", small)
    for subject in ((), both):
        answer = run("audit", *subject)
        assert answer.code == 2
        assert "Either PACKAGE.MODULE:CLASS or --model" in answer.err


@pytest.fixture
def audited(small, run, tmp_path):
    """What an audit of the small model printed, in a file, and a way to change it."""
    answer = run("audit", "--model", small, *FAST)
    assert answer.code == 0, answer.err

    def saved(**changes):
        path = tmp_path / "a1.json"
        path.write_text(json.dumps({**answer.data, **changes}))
        return path

    return saved


def refuting(audit):
    """Counts that refute epsilon 1, and what follows from them."""
    terms = {"delta": 1e-3, "confidence": 0.975, "method": audit["method"]}
    shown = bound_of_counts((30, 0), (30, 30), True, **terms)
    return {
        "hits": [30, 0],
        "favors_first": True,
        "epsilon_lower": shown,
        "refuted": True,
    }


def certified(folder, path, **changes):
    """A charged certificate of epsilon 0.5 for a model, in a file."""
    outcome = fairness.outcome(model=digest(folder), **changes)
    path.write_text(json.dumps(outcome))
    return path


def card(folder):
    return (folder / "card.md").read_text("utf-8")


def test_what_was_attached_is_shown_in_every_later_rewrite(
    small, audited, run, tmp_path
):
    fair = certified(small, tmp_path / "fair.json")
    assert run("report", small, "--fairness", fair).code == 0
    assert "Epsilon 1.5," in card(small)
    assert run("report", small, "--audit", audited()).code == 0
    assert run("report", small).code == 0
    assert "Epsilon 1.5," in card(small)
    assert "## Fairness" in card(small)
    assert card(small).count("does not refute epsilon 1") == 1
    assert "Many trainings on neighboring tables" in pages(small)[0]
    # the same once more counts once, and another charge besides
    assert run("report", small, "--fairness", fair, "--audit", audited()).code == 0
    assert "Epsilon 1.5," in card(small)
    assert card(small).count("does not refute epsilon 1") == 1
    other = certified(small, fair, sensitive=["region"])
    assert run("report", small, "--fairness", other).code == 0
    assert run("report", small).code == 0
    assert "Epsilon 2," in card(small)


def test_a_refuting_audit_stays_and_ends_with_its_exit_code(small, audited, run):
    passed = json.loads(audited().read_text())
    answer = run("report", small, "--audit", audited(**refuting(passed)), "--json")
    assert answer.code == 5
    assert set(answer.data) == {"report", "card", "card_html"}
    assert "an audit refutes the guarantee" in answer.err
    # one that passes, of the very same settings, does not take its place
    for more in (("--audit", audited()), ()):
        assert run("report", small, *more).code == 5
        for page in pages(small):
            assert page.count("AN AUDIT REFUTES THE GUARANTEE") == 1
    assert run("report", small, "--audit", audited()).code == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept.pop("audits"),
        lambda kept: kept.update(fairness=[]),
        lambda kept: kept.update(model="0" * 64),
        lambda kept: kept.update(version=2),
        lambda kept: kept.update(account=3),
    ],
)
@pytest.mark.parametrize("sealed", [False, True])
def test_attachments_that_were_changed_are_rejected(
    small, run, tmp_path, change, sealed
):
    run("report", small, "--fairness", certified(small, tmp_path / "fair.json"))
    position = small / "attachments.json"
    kept = json.loads(position.read_text("utf-8"))
    change(kept)
    if sealed:
        kept["sha256"] = checksum(kept)
    position.write_text(json.dumps(kept))
    answer = run("report", small)
    if sealed and kept.get("fairness") == []:
        assert answer.code == 0  # a digest stops nobody who can edit the file
        return
    assert answer.code == 2
    assert "attachments.json" in answer.err
    assert "Epsilon 1.5," in card(small)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_attachments_are_read_from_a_plain_file_alone(small, run, tmp_path):
    (small / "attachments.json").symlink_to(tmp_path / "elsewhere.json")
    assert run("report", small).code == 2
    (small / "attachments.json").unlink()
    os.mkfifo(small / "attachments.json")
    assert run("report", small).code == 2


def test_pages_say_when_they_lose_the_account_and_keep_its_banner(tmp_path, run):
    ledger = account(tmp_path, Budget(20.0, 1e-6))
    X = np.eye(2)[np.arange(40) % 2] / 2
    fitted = LogisticRegression(1.0, 1e-7, classes=[0, 1], x_norm=1.0)
    fitted.fit(X, np.arange(40) % 2, ledger=ledger)
    facts = {"label": "income"} | {"ledger": {"dataset": "people", "head": None}}
    folder = write(tmp_path / "m", SavedModel(fitted, fitted.privacy_, None, facts))
    assert again(run, folder).err == ""
    lost = "the pages no longer show the ledger of 'people'; give --ledger to show it"
    answer = run("report", folder)
    assert answer.code == 0
    assert answer.err == f"tacit: {lost}\n"
    for page in pages(folder):
        assert "Budget of the data set: epsilon 20 is a weak" in page
        assert "as of" not in page
    # they showed none any more
    assert run("report", folder).err == ""
    assert "Budget of the data set: epsilon 20 is a weak" in card(folder)


def test_errors_of_an_audit_name_its_file_and_round(small, audited, run, tmp_path):
    guarantee = json.loads(audited().read_text())["promise"]
    attacked = json.loads(audited().read_text())["attacked"]
    other = {**guarantee, "delta": 1 / 9e6}
    attacked = {**attacked, "promise": other}
    attacked["sha256"] = digest_of(attacked)
    path = audited(
        promise=other,
        attacked=attacked,
        most_shown=0.0,
        hits=[0, 0],
        epsilon_lower=0.0,
    )
    audit = json.loads(path.read_text())
    confidence = {"delta": 1 / 9e6, "confidence": 0.975, "method": audit["method"]}
    most = largest_bound(60, **confidence)
    audit["most_shown"] = most
    path.write_text(json.dumps(audit))
    answer = run("report", small, "--audit", path)
    assert answer.code == 2
    assert f"{path} has an audit of another promise" in answer.err
    assert "delta 1.11e-07," in answer.err
    assert "facts[" not in answer.err
    path.write_text(json.dumps({"error": "runs must be more.", "exit_code": 2}))
    for option in ("--audit", "--fairness"):
        answer = run("report", small, option, path)
        assert answer.code == 2
        assert f"{path} contains an error of its command" in answer.err
        assert "runs must be more." in answer.err
