"""The item side of a recommender in a folder, which has no data of users."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tacit import persistence, recommend
from tacit.persistence import _arrays, _json
from tacit.persistence._atomic_folder import write_atomically
from tacit.persistence._errors import ModelFileError, rejected_as
from tacit.persistence._files import (
    MOST_JSON,
    PRIVACY,
    FolderKind,
    SavedModel,
    report_from,
)
from tacit.privacy import PrivacyReport

if TYPE_CHECKING:
    from tacit.persistence._side_kinds import SideKind
    from tacit.recommend import MatrixCompletion
    from tacit.recommend._rows import UserRow
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
    """Item side of a recommender, for the predictions of one user.

    Parameters
    ----------
    side
        Published item side.
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
            As in `tacit.recommend.MatrixCompletion.complete_row`.
        """
        return self.row(ratings).complete()

    def row(self, ratings: Any) -> UserRow:
        """Return the row of one user, with predictions and best items.

        Parameters
        ----------
        ratings
            As in `tacit.recommend.MatrixCompletion.complete_row`, for example a mapping
            from items to ratings.
        """
        own = recommend._rows.own_ratings(ratings, self.catalogue, self.side)
        return recommend._rows.UserRow(self.side, self.catalogue, own)


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
        Path of the folder; missing parents are created.
    side
        A fitted `tacit.recommend.MatrixCompletion`, or its ``factors_``.
    report
        The report of the fit, ``privacy_``, where ``factors_`` is given.
    items
        Labels of the public items, ``items_``; None where they are numbered from zero,
        or are those of a model.
    facts
        Anything else to save that is public, as plain data.
    overwrite
        Whether to replace an existing folder of a side, with all its files. Other
        folders are never rewrite_atomically.

    Notes
    -----
    **Guarantee.** The folder is a function of the release and of public facts, so it
    has the guarantee of the report. What is written can be read again, which is tested
    first. The files are written beside the folder, which is renamed as a whole.
    """
    if isinstance(side, recommend.MatrixCompletion):
        model: Any = side
        check_is_fitted(model, "factors_")
        side, report, items = model.factors_, model.privacy_, model.items_
    if not isinstance(side, recommend.items.side.ItemSide) or not isinstance(
        report, PrivacyReport
    ):
        raise TypeError(
            "write_side takes a fitted MatrixCompletion, or an item side and the "
            f"report of its fit, got {type(side).__name__} and {type(report).__name__}."
        )
    catalogue = _catalogue(side.n_items if items is None else items)
    saved = SavedModel(SavedSide(side, catalogue, report), report, None, facts or {})
    files = _contents(saved)
    _opened(files)  # before anything is written
    return write_atomically(
        Path(folder), files, overwrite=overwrite, replaceable=is_side
    )


def read_side(folder: str | os.PathLike[str]) -> SavedModel:
    """Return the contents of the folder of a side, or raise `ModelFileError`.

    Its ``estimator`` is a `SavedSide`.

    Parameters
    ----------
    folder
        As given to `write_side`.

    Notes
    -----
    **Guarantee.** Nothing in the folder is executed or imported: sides come from a
    fixed table, arrays are plain finite numbers of matching shapes, and sizes are
    checked before anything is allocated. All files must have the digests in
    ``side.json``, and the guarantee and the spend of the report must follow from its
    charges. Whoever can write to the folder can replace the side: keep the `digest`
    elsewhere where that matters.
    """
    return _opened(SIDES.found(Path(folder)))


def is_side(folder: str | os.PathLike[str]) -> bool:
    """Return whether this is the folder of a side, by its ``side.json``."""
    return SIDES.is_in(folder)


def can_be_listed(items: Any) -> bool:
    """Return whether public items can be saved; called before the charge."""
    return len(_listed(_catalogue(items))) <= MOST_JSON


def _kind_named(name: Any) -> SideKind:
    kinds = persistence._side_kinds.KINDS
    if not isinstance(name, str) or name not in kinds:
        raise ModelFileError(f"{SIDES.header} names a side that this version lacks.")
    return kinds[name]


def _contents(saved: SavedModel) -> dict[str, bytes]:
    """Return the files of a side by name, ``side.json`` first."""
    side = saved.estimator.side
    name = type(side).__name__
    kinds = persistence._side_kinds.KINDS
    kind = kinds.get(name)
    if kind is None or type(side) is not kind.make:
        raise ModelFileError(
            f"A side of type {name} cannot be saved; only {', '.join(kinds)} can, and "
            "no class derived from them."
        )
    # a field that the table lacks would be lost
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
        raise ModelFileError(
            f"{SIDES.header} and {WEIGHTS} hold values that no fit gives."
        )
    listed = _json.checked_keys(_json.parsed(files[ITEMS], ITEMS), {"items"}, ITEMS)
    catalogue = _catalogue(listed["items"])
    if len(catalogue) != side.n_items:
        raise ModelFileError(f"{ITEMS} has another number of items than the side.")
    return SavedModel(SavedSide(side, catalogue, report), report, None, header["facts"])


def _values(given: Any, kind: SideKind) -> dict[str, Any]:
    parts = kind.all_values
    values = _json.checked_keys(given, set(parts), "'values'")
    for name, part in parts.items():
        if not part.fits(values[name]):
            raise ModelFileError(f"'values' has an invalid {name!r}.")
    return {name: part.restored(values[name]) for name, part in parts.items()}


def _catalogue(items: Any) -> Catalogue:
    """Return the public items; by their number where counted from zero."""
    with rejected_as(ITEMS):
        catalogue = recommend.ratings.columns.Catalogue
        found = catalogue.of(items)
        positions = range(len(found))
        numbered = all(a == b for a, b in zip(found.labels, positions, strict=True))
        return catalogue.of(len(found)) if numbered else found


def _listed(catalogue: Catalogue) -> bytes:
    labels = catalogue.labels
    items = len(labels) if isinstance(labels, range) else list(labels)
    return _json.dumped({"items": items})
