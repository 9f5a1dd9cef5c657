"""Parts of ``tacit recommend``: public items, the fit, and rows of single users."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa

from tacit._random import is_seeded
from tacit.cli._console import Rejected, cost_facts, warn_of_budget
from tacit.cli._output_files import SUFFIXES, check_file, try_writing, write_table
from tacit.cli._reporting import made_now, noted, side_facts, witness
from tacit.cli._small_files import columns_of, content_of, label_of, reading, table_of
from tacit.persistence import digest, read_side, write_side
from tacit.persistence._sides import SavedSide, can_be_listed
from tacit.privacy import Budget, Neighbors
from tacit.privacy.ledger import labelled
from tacit.recommend import MatrixCompletion
from tacit.recommend._plan import SOLVERS, planned_completion
from tacit.recommend._rows import UserRow
from tacit.recommend.ratings.columns import Catalogue

__all__ = [
    "OwnRow",
    "catalogue",
    "check_table",
    "fitted",
    "item_files",
    "model_for",
    "own_row",
    "plan_facts",
    "write",
    "write_row",
]

# Parameters with an option of their own
FIXED = {
    "epsilon": "--epsilon",
    "delta": "--delta",
    "neighbors": "--neighbors",
    "expected_users": "--expected-users",
    "items": "--items",
    "rating_range": "--range",
    "max_ratings": "--max-ratings",
    "solver": "--solver",
    "rank": "--rank",
    "scratch": "--scratch",
    "verbose": "--quiet",
}
# Names of a column of users, in lower case
USERS = ("user", "user_id", "userid", "users", "uid")
# Digits of a number that can be one of items, or the label of one
MOST_DIGITS = 19
STANDS = "the charge stands"


def item_files(items: str) -> list[Path]:
    """Return the file that lists the items, if there is one."""
    return [] if items.isdecimal() else [Path(items)]


def catalogue(
    items: str, column: str, ratings: Path | None
) -> int | list[int] | list[str]:
    """Return the public items: their number, or their labels from a file.

    Labels are integers where all of them are written as such, and otherwise strings.
    """
    if items.isdecimal():
        if len(items) > MOST_DIGITS:
            raise Rejected(
                f"--items must be a number of {MOST_DIGITS} digits at most, or a file."
            )
        return int(items)
    path = Path(items)
    if ratings is not None and path.exists() and _is_of(path, ratings):
        raise Rejected(
            "--items must be a public list of items; which of them were rated is "
            "private."
        )
    content = content_of(path, "--items")
    if path.suffix.lower() == ".txt":
        with reading("--items"):
            labels = content.decode("utf-8-sig").splitlines()
    elif content.lstrip()[:1] == b"[":
        with reading("--items"):
            labels = [label_of(label) for label in json.loads(content)]
    else:
        (cells,) = columns_of(content, path.suffix.lower(), (column,), "--items")
        with reading("--items"):
            labels = [label_of(label) for label in cells]
    if not labels or len(set(labels)) != len(labels) or not all(labels):
        raise Rejected(
            "--items must list at least one item, without duplicates or empty labels."
        )
    numbers = [int(label) for label in labels if _is_number(label)]
    found = numbers if len(numbers) == len(labels) else labels
    with reading("--items"):  # a label that cannot be saved is invalid
        listed = can_be_listed(found)
    if not listed:
        raise Rejected("--items must be fewer: their list is too long to be saved.")
    return found


def _is_of(path: Path, ratings: Path) -> bool:
    """Return whether a file is that of the ratings, or one of their folder."""
    files = ratings.rglob("*") if ratings.is_dir() else [ratings]
    # also by another name
    return any(path.samefile(file) for file in files if file.is_file())


def model_for(
    solver: str, rank: int | None, settings: dict[str, Any], **parameters: Any
) -> Any:
    """Return the estimator; reject parameters that neither it nor its solver has."""
    make = SOLVERS[solver]
    known = {field.name for field in fields(make)}
    make_model: Any = MatrixCompletion
    model = make_model(solver, **parameters)
    own = {} if rank is None else {"rank": rank}
    for name, value in settings.items():
        if name in FIXED:
            raise Rejected(f"--set {name} is not for that; use {FIXED[name]}.")
        if name in known:
            own[name] = value
        elif name in model.get_params(deep=False):
            model.set_params(**{name: value})
        else:
            raise Rejected(f"Neither the model nor {solver} has a parameter {name!r}.")
    if "rank" in own and "rank" not in known:
        raise Rejected(f"--rank is not for --solver {solver}; leave it out.")
    if own:
        try:
            model.set_params(solver=make(**own))
        except TypeError:
            raise Rejected(
                f"--set must give numbers where {solver} takes numbers; see its page."
            ) from None
    is_seeded(model.random_state)  # rejects an invalid seed before any row is read
    return model


def plan_facts(model: Any, ledger: Any) -> dict[str, Any]:
    """Return the plan and its charge; reads no rating."""
    if model.expected_users is None:
        raise Rejected(
            "--plan reads no rating: give --expected-users, the number of users."
        )
    planned = model.plan(model.expected_users)
    warn_of_budget(planned.budget, model.expected_users)
    facts, budget = planned.facts, planned.budget
    return {
        "solver": planned.solver,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbors": budget.neighbors.value,
        "items": facts.n_items,
        "range": [facts.low, facts.high],
        "users": facts.n_users,
        "max_ratings": facts.max_ratings,
        "published": planned.sums,
        "mean_scale": planned.mean_scale,
        "words": str(planned),
        "assumptions": list(planned.assumptions),
        "ledger": cost_facts(ledger, planned.event, budget),
    }


def fitted(
    model: Any,
    path: Path,
    columns: tuple[str, str, str],
    ledger: Any,
    label: str,
    shown: bool,
) -> None:
    """Read, check the budget, charge, and fit."""
    # a delta that is left out follows the number of users, and is never too large
    given = Budget(model.epsilon, model.delta or 0.0, model.neighbors)
    warn_of_budget(given, model.expected_users)
    with labelled(label):
        model.set_params(verbose=shown)
        model.fit(path, columns=columns, ledger=ledger)
        model.set_params(verbose=0)


def write(
    folder: Path, model: Any, ledger: Any, label: str, force: bool
) -> dict[str, Any]:
    """Write the item side, its report and its card; note it in the ledger.

    The fit is charged: from here on, errors of the ledger are reported and lose
    nothing.
    """
    side, privacy = model.factors_, model.privacy_
    n_users = None
    if privacy.guarantee.neighbors is Neighbors.REPLACE_ONE:  # otherwise it is private
        n_users = model.rows_._private_table.n_users
    planned = planned_completion(model, Catalogue.of(model.items), n_users or 1)
    failed: dict[str, str] = {}
    facts = {
        "label": label,
        **made_now(),
        "rows": n_users,
        "solver": planned.solver,
        "parameters": _parameters(model),
        "max_ratings": planned.facts.max_ratings,
        "releases": [privacy.to_dict()],
        **witness(ledger, failed, STANDS),
    }
    write_side(folder, side, privacy, items=model.items, facts=facts, overwrite=force)
    found = {
        **facts,
        "folder": str(folder),
        "side": side_facts(side, planned.facts.max_ratings),
        "digest": digest(folder),
        "privacy": privacy.to_dict(),
        "ledger": None,
        "failed": failed,
    }
    return noted(folder, read_side(folder), ledger, found, STANDS)


def _parameters(model: Any) -> dict[str, Any]:
    """Return public parameters as plain data; the items have a file of their own."""
    given = model.get_params(deep=False)
    left_out = {"items", "scratch", "verbose"}
    seeded = is_seeded(given.pop("random_state"))
    kept = {name: value for name, value in given.items() if name not in left_out}
    kept["rating_range"] = list(kept["rating_range"])
    if not isinstance(kept["solver"], str):
        kept["solver"] = repr(kept["solver"])
    # with the seed, anyone can remove the noise
    return {**kept, "random_state": "fixed" if seeded else None}


@dataclass(frozen=True, eq=False)
class OwnRow:
    """Completed row of one user, from an item side and their ratings; for them only."""

    row: UserRow
    labels: Sequence[Any]
    n_unknown: int

    @property
    def facts(self) -> dict[str, Any]:
        """What the side released, and the numbers of items, rated and unknown."""
        return {
            "items": len(self.labels),
            "rated": len(self.row.ratings),
            "unknown": self.n_unknown,
            "released": self.row.side.released,
        }

    def lines(self) -> list[dict[str, Any]]:
        """Return all items, predictions, and whether each was rated."""
        written, rated = self.row.catalogue.labels, self.row.ratings
        found = zip(self.labels, written, self.row.complete().tolist(), strict=True)
        return [
            {"item": label, "prediction": prediction, "rated": name in rated}
            for label, name, prediction in found
        ]

    def best(self, k: int) -> list[dict[str, Any]]:
        """Return the ``k`` items with the largest predictions that were not rated."""
        top = self.row.top(k)
        labels = [
            self.labels[self.row.catalogue.position(label)] for label in top.items
        ]
        return [
            {"item": label, "prediction": score}
            for label, score in zip(labels, top.scores.tolist(), strict=True)
        ]


def own_row(side: Path, mine: Path, columns: tuple[str, str]) -> OwnRow:
    """Combine an item side with a user's own ratings; nothing else is read."""
    found: SavedSide = read_side(side).estimator
    # a file has labels as strings
    written = replace(found, catalogue=found.catalogue.as_strings())
    ratings = _own_ratings(mine, columns)
    unknown = {label for label, _ in ratings if written.catalogue.position(label) < 0}
    with reading("MINE"):
        return OwnRow(written.row(ratings), found.catalogue.labels, len(unknown))


def _own_ratings(mine: Path, columns: tuple[str, str]) -> list[tuple[str, float]]:
    """Return items, by labels as strings, and ratings of a file."""
    content = content_of(mine, "MINE")
    if content.lstrip()[:1] in (b"{", b"["):
        with reading("MINE"):
            data = json.loads(content, object_pairs_hook=_without_repeats)
            labels, values, others = _of_json(data, columns)
    else:
        table = table_of(content, mine.suffix.lower(), columns, "MINE")
        with reading("MINE"):
            labels, values = (table[name].to_pylist() for name in columns)
            others = {
                name: column.to_pylist()
                for name, column in zip(table.column_names, table.columns, strict=True)
                if name not in columns
            }
    _check_one_user(labels, others)
    with reading("MINE"):
        return [
            (label_of(label), _number(value))
            for label, value in zip(labels, values, strict=True)
        ]


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, whose keys must not repeat."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _check_one_user(labels: list[Any], others: dict[str, list[Any]]) -> None:
    """Reject what looks like the ratings of several users, as it has a column of users.

    The column has such a name, or it differs between ratings of one item.
    """
    repeated = len(set(map(repr, labels))) < len(labels)
    for name, cells in others.items():
        if (repeated or name.lower() in USERS) and len(set(map(repr, cells))) > 1:
            raise Rejected(
                "MINE must have the ratings of one user, but a column besides item and "
                "rating has several values; keep the rows that are yours."
            )


def _of_json(
    data: Any, columns: tuple[str, str]
) -> tuple[list[Any], list[Any], dict[str, list[Any]]]:
    """Return items and ratings of an object by items, of pairs, or of objects.

    Third are all other parts of such objects, by their names.
    """
    others: defaultdict[str, list[Any]] = defaultdict(list)
    if isinstance(data, dict):
        pairs = list(data.items())
    else:
        pairs = [
            tuple(row[name] for name in columns) if isinstance(row, dict) else row
            for row in data
        ]
        for row in data:
            for name in row.keys() - set(columns) if isinstance(row, dict) else ():
                others[name].append(row[name])
    if any(not isinstance(pair, list | tuple) or len(pair) != 2 for pair in pairs):
        raise ValueError
    return [item for item, _ in pairs], [rating for _, rating in pairs], others


def _is_number(label: str) -> bool:
    """Return whether a label is an integer in its usual form."""
    digits = label.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > MOST_DIGITS:
        return False
    return str(int(label)) == label and -(2**63) <= int(label) < 2**63


def _number(cell: Any) -> float:
    if isinstance(cell, bool) or not isfinite(number := float(cell)):
        raise TypeError
    return number


def check_table(path: Path, force: bool, used: list[Path]) -> None:
    """Check that a row can be written to a file."""
    if path.suffix not in SUFFIXES:
        raise Rejected(f"--out must end in {' or '.join(SUFFIXES)}, got {path.name!r}.")
    check_file(path, [position for position in used if str(position) != "-"], "--out")
    if path.exists() and not force:
        raise Rejected(f"{path} exists already; give another --out, or --force.")
    try_writing(path, "--out")


def write_row(path: Path, own: OwnRow) -> None:
    """Write all items with predictions to a file."""
    write_table(path, iter([pa.Table.from_pylist(own.lines())]))
