"""An item side in a folder: what a recommender publishes, and nothing of users."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tacit.persistence import _arrays, _json
from tacit.persistence._atomic_folder import placed
from tacit.persistence._errors import ModelFileError, rejected_as
from tacit.persistence._files import (
    MOST_JSON,
    PRIVACY,
    FolderKind,
    SavedModel,
    report_from,
)
from tacit.persistence._side_kinds import KINDS, SideKind
from tacit.privacy import PrivacyReport
from tacit.recommend import MatrixCompletion
from tacit.recommend._rows import UserRow, own_ratings
from tacit.recommend.items.side import ItemSide
from tacit.recommend.ratings.columns import Catalogue

__all__ = [
    "SIDES",
    "SavedSide",
    "can_be_listed",
    "is_side",
    "read_side",
    "write_side",
]

WEIGHTS, ITEMS = _arrays.FILE, "items.json"


def _required(header: dict[str, Any]) -> set[str]:
    _kind_named(header["side"])
    return {WEIGHTS, ITEMS, PRIVACY}


SIDES = FolderKind(
    noun="side",
    version=1,
    keys=frozenset({"side", "values", "arrays"}),
    required=_required,
    limits={WEIGHTS: _arrays.MOST_BYTES},
)


@dataclass(frozen=True, eq=False, repr=False)
class SavedSide:
    """The item side of a folder, by which anyone completes a row of her own.

    Parameters
    ----------
    side
        What was published about the items.
    catalogue
        The public items.
    privacy_
        The report of the fit.
    """

    side: ItemSide
    catalogue: Catalogue
    privacy_: PrivacyReport

    def __repr__(self) -> str:
        guarantee = self.privacy_.guarantee
        return (
            f"SavedSide({self.side!r}, epsilon={guarantee.epsilon:g}, "
            f"delta={guarantee.delta:.3g})"
        )

    def complete_row(self, ratings: Any) -> NDArray[np.float64]:
        """Return a predicted rating for each item, from one user's ratings.

        Parameters
        ----------
        ratings
            Her own, as `tacit.recommend.MatrixCompletion.complete_row` takes them.
        """
        return self.row(ratings).complete()

    def row(self, ratings: Any) -> UserRow:
        """Return the row of one user, which tells her predictions and best items.

        Parameters
        ----------
        ratings
            Her own, as `tacit.recommend.MatrixCompletion.complete_row` takes them, such
            as a mapping from items to ratings.
        """
        own = own_ratings(ratings, self.catalogue, self.side)
        return UserRow(self.side, self.catalogue, own)


def write_side(
    folder: str | os.PathLike[str],
    side: ItemSide | MatrixCompletion,
    report: PrivacyReport | None = None,
    *,
    items: Any = None,
    facts: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the public item side of a fit to a folder and return its path.

    Parameters
    ----------
    folder
        Where to; missing parents are made.
    side
        A fitted `tacit.recommend.MatrixCompletion`, which has its report and its items;
        or what was published about the items, its ``factors_``. No user is part of it.
    report
        The report of the fit, ``privacy_``, where the item side is given.
    items
        Labels of the public items, ``items_``; None where they are numbered from zero,
        or are those of a model.
    facts
        Anything else worth keeping that is public, as plain data.
    overwrite
        Whether the folder of a side that is there may be replaced, with all that is in
        it. Other folders never are.

    Notes
    -----
    **Guarantee.** The folder is a function of what was released and of what was public
    before: it is as private as the report says. What is written can be read again,
    which is tried before anything is. The files are written beside the folder and
    renamed as a whole.
    """
    if isinstance(side, MatrixCompletion):
        model: Any = side
        check_is_fitted(model, "factors_")
        side, report, items = model.factors_, model.privacy_, model.items_
    if not isinstance(side, ItemSide) or not isinstance(report, PrivacyReport):
        raise TypeError(
            "write_side takes a fitted MatrixCompletion, or an item side and the "
            f"report of its fit, got {type(side).__name__} and {type(report).__name__}."
        )
    catalogue = _catalogue(side.n_items if items is None else items)
    saved = SavedModel(SavedSide(side, catalogue, report), report, None, facts or {})
    files = _contents(saved)
    _opened(files)  # never leave what could not be read again
    return placed(Path(folder), files, overwrite=overwrite, replaceable=is_side)


def read_side(folder: str | os.PathLike[str]) -> SavedModel:
    """Return what the folder of a side holds, or raise `ModelFileError`.

    The estimator of what comes back is a `SavedSide`.

    Parameters
    ----------
    folder
        As given to `write_side`.

    Notes
    -----
    **Guarantee.** Nothing in the folder is executed or imported: sides come from a
    fixed table, arrays are plain finite numbers of shapes that go together, and sizes
    are checked before anything is made of them. All files must be those whose digests
    ``side.json`` holds, and the promise and the spend of the report must follow from
    its charges. Who can write to the folder can put another side there: keep the
    `digest` elsewhere where that matters.
    """
    return _opened(SIDES.found(Path(folder)))


def is_side(folder: str | os.PathLike[str]) -> bool:
    """Return whether this is the folder of a side, by ``side.json`` alone."""
    return SIDES.is_in(folder)


def can_be_listed(items: Any) -> bool:
    """Return whether public items can be saved beside a side, before it is paid for."""
    return len(_listed(_catalogue(items))) <= MOST_JSON


def _kind_named(name: Any) -> SideKind:
    if not isinstance(name, str) or name not in KINDS:
        raise ModelFileError(f"{SIDES.header} names a side that this version lacks.")
    return KINDS[name]


def _contents(saved: SavedModel) -> dict[str, bytes]:
    """Return the files of a side by name, ``side.json`` first."""
    side = saved.estimator.side
    name = type(side).__name__
    kind = KINDS.get(name)
    if kind is None or type(side) is not kind.make:
        raise ModelFileError(
            f"A side of type {name} cannot be saved; what can be is "
            f"{', '.join(KINDS)}, and nothing derived from them."
        )
    # a field that the table does not know would be lost
    assert {f.name for f in fields(side)} == {*kind.all_arrays, *kind.all_values}
    arrays = {key: getattr(side, key) for key in kind.all_arrays}
    values = {
        key: part.written(getattr(side, key)) for key, part in kind.all_values.items()
    }
    parts = {
        "side": name,
        "values": _json.plain(values, "values"),
        "arrays": _arrays.claims_of(arrays),
    }
    contents = {
        WEIGHTS: _arrays.packed(arrays),
        ITEMS: _listed(saved.estimator.catalogue),
    }
    return SIDES.files(saved, parts, contents)


def _opened(files: dict[str, bytes]) -> SavedModel:
    header = SIDES.opened(files)
    kind = _kind_named(header["side"])
    report = report_from(files[PRIVACY])
    values = _values(header["values"], kind)
    arrays = _arrays.unpacked(files[WEIGHTS], header["arrays"], tuple(kind.all_arrays))
    kind.check_shapes(arrays)
    with rejected_as(SIDES.header):
        parts: dict[str, Any] = {**arrays, **values}
        side = kind.make(**parts)
    if not kind.is_usable(side):
        raise ModelFileError(f"{SIDES.header} and {WEIGHTS} hold what no fit gives.")
    told = _json.checked_keys(_json.parsed(files[ITEMS], ITEMS), {"items"}, ITEMS)
    catalogue = _catalogue(told["items"])
    if len(catalogue) != side.n_items:
        raise ModelFileError(f"{ITEMS} has another number of items than the side.")
    return SavedModel(SavedSide(side, catalogue, report), report, None, header["facts"])


def _values(given: Any, kind: SideKind) -> dict[str, Any]:
    parts = kind.all_values
    values = _json.checked_keys(given, set(parts), "'values'")
    for name, part in parts.items():
        if not part.fits(values[name]):
            raise ModelFileError(f"'values' has no such {name!r} as a side has.")
    return {name: part.restored(values[name]) for name, part in parts.items()}


def _catalogue(items: Any) -> Catalogue:
    """Return the public items; those numbered from zero by their number alone."""
    with rejected_as(ITEMS):
        found = Catalogue.of(items)
        whole = range(len(found))
        numbered = all(a == b for a, b in zip(found.labels, whole, strict=True))
        return Catalogue.of(len(found)) if numbered else found


def _listed(catalogue: Catalogue) -> bytes:
    labels = catalogue.labels
    items = len(labels) if isinstance(labels, range) else list(labels)
    return _json.dumped({"items": items})
