"""``tacit recommend``: one charge, a public item side, rows that stay at home."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv, parquet
from tests.cli.labeling import run_once
from tests.cli.recommending import (
    FILMS,
    MINE,
    N_ITEMS,
    N_USERS,
    as_table,
    charges,
    fit,
    head_of,
    position,
    ratings,
    same_side,
    write_csv,
)

from tacit.persistence import _json, read, read_side
from tacit.privacy import Ledger
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return position(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def films(tables, tmp_path):
    return shutil.copytree(tables, tmp_path / "films")


@pytest.fixture(scope="module")
def done(tables, tmp_path_factory):
    """A folder in which a side was fitted once, and what was said."""
    folder = shutil.copytree(tables, tmp_path_factory.mktemp("done") / "films")
    return folder, json.loads(run_once(fit(folder, "--label", "my films", "--json")))


@pytest.fixture
def after(done, tmp_path):
    return shutil.copytree(done[0], tmp_path / "after")


def test_solvers_are_those_of_the_library(run):
    shown = run("recommend", "fit", "--help").out
    assert all(name in shown for name in SOLVERS)


def test_a_side_is_what_the_library_fits(done):
    model = MatrixCompletion(
        "als", 20.0, 1e-6, items=FILMS, rating_range=(1, 5), random_state=5
    ).fit(ratings())
    saved = read_side(done[0] / "side")
    found = saved.estimator.row(MINE).complete()
    assert found.tobytes() == model.complete_row(MINE).tobytes()
    assert saved.privacy.guarantee == model.privacy_.guarantee


def test_one_charge_pays_and_the_side_is_noted(done):
    folder, data = done
    assert charges(folder) == ["my films: MatrixCompletion"]
    assert data["rows"] == N_USERS
    assert data["ledger"]["spent"] <= data["privacy"]["promise"]["epsilon"] == 20
    assert data["failed"] == {}
    assert data["side"]["items"] == N_ITEMS
    assert head_of(folder)[0] == 2  # the charge, and the digest of side.json


def test_nothing_of_a_user_is_in_the_folder(done):
    content = b"".join(path.read_bytes() for path in (done[0] / "side").iterdir())
    assert b"user 1" not in content
    assert b"_private" not in content
    assert b"film 1" in content  # the check can find what is there


def test_the_number_of_users_is_written_only_where_it_is_public(tmp_path, run):
    folder = position(tmp_path, "add_or_remove_one")
    answer = run(*fit(folder, "--neighbors", "add_or_remove_one", "--json"))
    assert answer.code == 0, answer.out
    assert answer.data["rows"] is None
    told = json.loads((folder / "side" / "side.json").read_text())["facts"]
    told["created"] = told["ledger"] = told["tacit"] = None
    assert str(N_USERS) not in json.dumps(told)
    pages = [(folder / "side" / name).read_text() for name in ("card.md", "card.html")]
    assert all("number of users is not stated" in page for page in pages)
    assert all(f"{N_USERS} users" not in page for page in pages)


@pytest.mark.parametrize("source", ["parts", "parts.parquet", "scratch", "other.csv"])
def test_other_files_give_the_same_side(source, films, done, run):
    more = ()
    if source == "parts.parquet":
        parquet.write_table(as_table(ratings()), films / source)
    if source == "scratch":
        source, more = "ratings.csv", ("--scratch", films)
    if source == "other.csv":
        names = ("who", "film", "stars")
        write_csv(films / source, ratings(), names)
        (films / "films.txt").unlink()
        write_csv(films / "films.csv", [(film,) for film in FILMS], ("film",))
        more = ("--columns", *names, "--items", films / "films.csv")
    answer = run(*fit(films, *more, source=source))
    assert answer.code == 0, answer.err
    assert same_side(films / "side", done[0] / "side")


def test_numbers_can_be_labels_in_files_without_types(films, run):
    codes = {film: 10 * j for j, film in enumerate(FILMS)}
    rows = [(user, codes[film], rating) for user, film, rating in ratings()]
    write_csv(films / "n.csv", rows)
    parquet.write_table(as_table(rows), films / "n.parquet")
    (films / "codes.json").write_text(json.dumps(list(codes.values())))
    for source in ("n.csv", "n.parquet"):
        given = ("--items", films / "codes.json", "--out", films / source[2:])
        assert run(*fit(films, *given, source=source, out=None)).code == 0
    assert same_side(films / "csv", films / "parquet")
    assert read_side(films / "csv").estimator.catalogue.labels[1] == 10
    (films / "me.json").write_text('{"0": 5, "10": 5, "190": 1}')
    answer = run("recommend", "top", films / "csv", films / "me.json", "--json")
    assert answer.data["rated"] == 3
    assert answer.data["top"][0]["item"] in range(0, 100, 10)


def test_items_may_be_numbered(films, run):
    rows = [(user, FILMS.index(film), rating) for user, film, rating in ratings()]
    write_csv(films / "n.csv", rows)
    answer = run(*fit(films, "--items", N_ITEMS, source="n.csv"))
    assert answer.code == 0, answer.err
    assert read_side(films / "side").estimator.catalogue.labels == range(N_ITEMS)


def test_the_plan_reads_no_rating_and_charges_nothing(films, run):
    before = head_of(films)
    more = ("--plan", "--expected-users", N_USERS)
    answer = run(*fit(films, *more, source="nothing.csv", out=None))
    assert answer.code == 0, answer.err
    assert "epsilon 20" in answer.out
    assert "joint privacy" in answer.out
    assert "the charge fits" in answer.out
    data = run(*fit(films, *more, "--json", source="nothing.csv", out=None)).data
    assert data["items"] == N_ITEMS
    assert data["ledger"]["fits"]
    assert head_of(films) == before


def test_a_side_is_replaced_only_by_force(after, run):
    before = read(after / "side").facts["created"]
    assert "--force" in run(*fit(after)).err
    for option in ("--force", "--overwrite"):
        assert run(*fit(after, option, "--rank", 2, "--solver", "svd")).code == 0
    assert len(charges(after)) == 3
    assert read(after / "side").facts["created"] >= before


def test_a_fixed_seed_is_not_written(done):
    content = (done[0] / "side" / "side.json").read_text()
    assert '"random_state": "fixed"' in content
    assert "NOT PRIVATE" in (done[0] / "side" / "report.html").read_text()


def test_a_report_is_written_again(after, run):
    (after / "side" / "report.html").unlink()
    assert run("report", after / "side").code == 0
    account = ("--ledger", f"sqlite:///{after / 'budget.db'}")
    assert run("report", after / "side", *account).code == 0
    page = (after / "side" / "report.html").read_text()
    assert "item side of a recommender" in page
    assert "jointly differentially private" in page
    assert "tacit.persistence.read_side" in page
    assert "my films" in page


def test_facts_that_were_forged_cannot_break_a_report(after, run):
    path = after / "side" / "side.json"
    data = json.loads(path.read_text())
    data["facts"] |= {"max_ratings": "<b>", "parameters": [1], "rows": None}
    data["sha256"] = _json.checksum(data)
    path.write_text(json.dumps(data))
    # what was attached is bound to the facts as they were
    assert run("report", after / "side").code == 2
    (after / "side" / "attachments.json").unlink()
    assert run("report", after / "side").code == 0


def row(folder, mine, *more, side="side"):
    return ("recommend", "row", folder / side, mine, *more)


def test_a_row_is_completed_at_home(done, run):
    folder = done[0]
    answer = run(*row(folder, folder / "mine.csv", "--json"))
    assert answer.code == 0, answer.err
    found = answer.data["row"]
    assert [line["item"] for line in found] == FILMS
    assert {line["item"] for line in found if line["rated"]} == set(MINE)
    side = read_side(folder / "side").estimator
    predicted = [line["prediction"] for line in found]
    assert np.array(predicted).tobytes() == side.row(MINE).complete().tobytes()
    assert answer.data["rated"] == len(MINE)
    # who likes the first films is told to like the rest of them
    half = N_ITEMS // 2
    assert np.mean(predicted[:half]) > np.mean(predicted[half:]) + 1


def test_a_row_reads_neither_ledger_nor_ratings(done, tmp_path, run):
    side = shutil.copytree(done[0] / "side", tmp_path / "side")
    for page in ("report.html", "card.md", "card.html"):
        (side / page).unlink()
    shutil.copy(done[0] / "mine.csv", tmp_path)
    before = {path: path.read_bytes() for path in side.iterdir()}
    assert run(*row(tmp_path, tmp_path / "mine.csv")).code == 0
    assert {path: path.read_bytes() for path in side.iterdir()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"side", "mine.csv"}


PAIRS = list(MINE.items())
OWN = {
    "object.json": json.dumps(MINE),
    "pairs.json": json.dumps(PAIRS),
    "objects.json": json.dumps([{"item": a, "rating": b} for a, b in PAIRS]),
    "mine.tsv": "item\trating\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS),
    "twice.csv": "item,rating\n" + "".join(f"{a},{b}\n{a},{b}\n" for a, b in PAIRS),
    "beyond.csv": "item,rating\n"
    + "".join(f"{a},{9e9 if b == 5 else -9e9}\n" for a, b in PAIRS),
    "no file": json.dumps(MINE),
    "no file of lines": "item,rating\n" + "".join(f"{a},{b}\n" for a, b in PAIRS),
}


@pytest.mark.parametrize("name", OWN)
def test_own_ratings_come_in_many_forms(name, done, tmp_path, run, monkeypatch):
    mine = tmp_path / name
    mine.write_text(OWN[name])
    if name.startswith("no file"):
        stream = io.TextIOWrapper(io.BytesIO(OWN[name].encode()))
        monkeypatch.setattr(sys, "stdin", stream)
        mine = "-"
    expected = run(*row(done[0], done[0] / "mine.csv", "--json")).data
    answer = run(*row(done[0], mine, "--json"))
    assert answer.code == 0, answer.out
    assert answer.data == expected


def test_repeated_items_are_clipped_before_they_are_averaged(done, tmp_path, run):
    # as the fit does it: 9 and 1 are 5 and 1 there, and 3 together
    (a, _), *others = PAIRS
    rest = "".join(f"{label},{rating}\n" for label, rating in others)
    for name, own in (("twice", f"{a},9\n{a},1\n"), ("once", f"{a},3\n")):
        (tmp_path / f"{name}.csv").write_text("item,rating\n" + own + rest)
    twice, once = (
        run(*row(done[0], tmp_path / f"{name}.csv", "--json")).data
        for name in ("twice", "once")
    )
    assert twice == once
    (tmp_path / "twice.json").write_text(f'{{"{a}": 5, "{a}": 1}}')
    answer = run(*row(done[0], tmp_path / "twice.json"))
    assert answer.code != 0
    assert "MINE must contain items" in answer.err


def test_own_ratings_come_in_parquet(done, tmp_path, run):
    parquet.write_table(as_table(PAIRS, ("film", "stars")), tmp_path / "mine.parquet")
    answer = run(
        *row(done[0], tmp_path / "mine.parquet", "--columns", "film", "stars", "--json")
    )
    assert answer.data == run(*row(done[0], done[0] / "mine.csv", "--json")).data


@pytest.mark.parametrize("name", ["row.csv", "row.parquet"])
def test_a_row_is_written_to_a_file(name, done, tmp_path, run):
    path = tmp_path / name
    given = row(done[0], done[0] / "mine.csv", "--out", path)
    assert f"{N_ITEMS} predictions, from {len(MINE)} rating(s)" in run(*given).out
    table = csv.read_csv(path) if name == "row.csv" else parquet.read_table(path)
    assert table.column_names == ["item", "prediction", "rated"]
    assert table["item"].to_pylist() == FILMS
    assert "exists already" in run(*given).err
    assert run(*given, "--force").code == 0


def test_a_user_without_ratings_gets_predictions_of_the_side(done, tmp_path, run):
    (tmp_path / "none.csv").write_text("item,rating\n")
    (tmp_path / "none.json").write_text("{}")
    found = [
        run(*row(done[0], tmp_path / name, "--json")).data
        for name in ("none.csv", "none.json")
    ]
    assert found[0] == found[1]
    assert found[0]["rated"] == 0


def test_the_best_items_are_shown_and_none_that_was_rated(done, run):
    given = ("recommend", "top", done[0] / "side", done[0] / "mine.csv")
    data = run(*given, "--k", 5, "--json").data
    items = [line["item"] for line in data["top"]]
    assert len(items) == 5
    assert not set(items) & set(MINE)
    assert set(items) <= set(FILMS[: N_ITEMS // 2])
    scores = [line["prediction"] for line in data["top"]]
    assert scores == sorted(scores, reverse=True)
    shown = run(*given, "--k", 1000).out.splitlines()
    assert len(shown) == 1 + N_ITEMS - len(MINE)


def test_a_side_without_information_is_reported_as_such(films, run):
    given = fit(films, "--epsilon", "0.01", "--solver", "svd")
    nothing = "released     NOTHING about items was released beyond the noise"
    assert nothing in run(*given).out
    for page in ("card.md", "card.html"):
        told = (films / "side" / page).read_text()
        assert "In this fit NOTHING about items was released" in told
    for what in ("top", "row"):
        mine = ("recommend", what, films / "side", films / "mine.csv")
        assert nothing in run(*mine).out
        assert run(*mine, "--json").data["released"].startswith("NOTHING")


def test_ratings_of_unknown_items_are_left_out_and_counted(done, tmp_path, run):
    (tmp_path / "m.json").write_text(json.dumps({**MINE, "another film": 3}))
    answer = run("recommend", "top", done[0] / "side", tmp_path / "m.json")
    assert "left out     1 rating(s)" in answer.out
    assert "another film" not in answer.out


def test_a_model_of_rows_and_a_side_are_not_mixed_up(done, run):
    answer = run(
        *("predict", done[0] / "side", done[0] / "mine.csv"),
        *("--out", done[0] / "p.csv"),
    )
    assert answer.code == 2
    assert "tacit recommend row" in answer.err


def test_the_guide_runs_from_an_empty_folder(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = Path(__file__).parents[2] / "docs" / "use" / "command_line.md"
    section = guide.read_text().split("## Recommendations")[1].split("\n## ")[0]
    blocks = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    for line in "".join(blocks).replace("\\\n", "").splitlines():
        line = line.removeprefix("$ ")
        if line.startswith("tacit "):
            assert run(*shlex.split(line)[1:]).code == 0, line
        elif line.startswith("printf "):
            subprocess.run(line, shell=True, check=True)
        else:  # what goes into a pipe is only read
            assert json.loads(re.match("echo '(.*)' [|] tacit", line)[1])
    ledger = Ledger.open("sqlite:///ratings.db", dataset="films")
    assert len(ledger.report().entries) == 1
    ledger.close()
    # those who like item 3 like half of the items
    predictions = csv.read_csv("my_row.csv")["prediction"].to_numpy()
    assert predictions[3] > 3 > predictions[17]


def test_a_plan_needs_no_ratings_and_a_fit_does(films, run):
    items = ("--items", films / "films.txt", "--range", 1, 5, "--epsilon", 1)
    words = ("recommend", "fit", *items, "--delta", 1e-6)
    said = run(*words, "--expected-users", 100, "--plan", "--json")
    facts = said.data
    assert "rank 0" in facts["published"]
    assert facts["published"] in facts["words"]
    assert facts["mean_scale"] > 0
    rejected = run(*words, "--no-ledger", "--out", films / "side")
    assert rejected.code == 2
    assert "RATINGS must be given" in rejected.err


def test_the_report_shows_no_release_that_was_not_made(after, run):
    done = run(*fit(after, "--force", "--json", epsilon=0.1))
    told = " ".join(done.data["privacy"]["assumptions"])
    assert "means of items, once" in told
    assert "products" not in told


@pytest.mark.parametrize("command", ["row", "top"])
def test_the_table_of_all_users_is_not_one_users(command, done, tmp_path, run):
    folder, _ = done
    rows = ratings()
    named = tmp_path / "named.csv"
    # a column of users by any name, where items are there several times
    write_csv(named, rows, ("who", "item", "rating"))
    single = tmp_path / "single.csv"
    # and one called so, wherever there are two of them
    write_csv(
        single, [("a", "film 1", 2), ("b", "film 2", 3)], ("User", "item", "rating")
    )
    listed = tmp_path / "listed.json"
    names = ("user", "item", "rating")
    listed.write_text(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    for mine in (folder / "ratings.csv", named, single, listed):
        rejected = run("recommend", command, folder / "side", mine)
        assert rejected.code == 2
        assert "one user" in rejected.err
        assert "film" not in rejected.err
    fine = tmp_path / "fine.csv"
    own = [(*pair, "me", position) for position, pair in enumerate(MINE.items())]
    write_csv(fine, own, ("item", "rating", "user", "time"))
    said = [
        run("recommend", command, folder / "side", m)
        for m in (fine, folder / "mine.csv")
    ]
    assert [each.code for each in said] == [0, 0]
    assert said[0].out == said[1].out
