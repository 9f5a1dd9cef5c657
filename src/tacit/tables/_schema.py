"""Public facts about a table: its columns, their ranges and categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from os import PathLike
from typing import Any

from tacit._validate import positive
from tacit.data._files import TableError
from tacit.tables import _toml
from tacit.tables._column import Column, check_known, column_of, writable

__all__ = ["VERSION", "Schema"]

VERSION = 1
# Keys that a target does not have, because no target may be missing
NOT_FOR_TARGETS = ("missing", "unseen")


@dataclass(frozen=True)
class Schema:
    """Public facts about a table, by which its rows are read and encoded.

    Numbers are clipped to their range and scaled to -1 to 1, as by
    `~tacit.preprocessing.PublicScaler`; categories become indicators, as by
    `~tacit.preprocessing.PublicOneHot`.

    Parameters
    ----------
    columns
        Columns to learn from, and those to leave out, in the order of the features.
    target
        Column to predict, or None.
    given_norm
        Bound on the norm of an encoded row; None derives it from the columns.
    note
        A remark for people.

    Notes
    -----
    **Guarantee.** Each encoded row depends only on that row and the schema. A public
    schema costs no privacy; a range or a category that was computed from the rows is a
    release of its own, which no ledger counts. So no row is read until
    `require_confirmed` passes.

    Examples
    --------
    >>> from tacit.tables import Column, Schema
    >>> age = Column("age", "number", range=(0, 100))
    >>> sex = Column("sex", "category", categories=("f", "m"))
    >>> schema = Schema((age, sex), target=Column("ill", "category", None, ("0", "1")))
    >>> schema.feature_names
    ['age', 'sex=f', 'sex=m']
    >>> schema.feature_ranges
    [(-1.0, 1.0), (0.0, 1.0), (0.0, 1.0)]
    >>> round(schema.row_norm, 3)
    1.155
    >>> schema.target.labels
    [0, 1]
    """

    columns: tuple[Column, ...]
    target: Column | None = None
    given_norm: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if not isinstance(self.note, str) or not writable(self.note):
            raise TableError("note must be a string.")
        if self.given_norm is not None:
            try:
                positive(row_norm=self.given_norm)
            except ValueError as error:
                raise TableError(str(error)) from None
            object.__setattr__(self, "given_norm", float(self.given_norm))
        if not any(column.kind != "ignore" for column in self.columns):
            raise TableError(
                "The schema has no columns to learn from; give at least one of kind "
                '"number" or "category".'
            )
        _check_unique([column.name for column in self.columns], "column")
        _check_unique(self.feature_names, "feature")
        if self.target is not None:
            self._check_target(self.target)

    def _check_target(self, target: Column) -> None:
        if target.name in {column.name for column in self.columns}:
            raise TableError(
                f"The target {target.name!r} must not be among the columns; take it "
                "out of one of the two."
            )
        if target.kind == "ignore" or target.unseen != "refuse":
            raise TableError(
                f'The target {target.name!r} must be of kind "number" or "category"'
                ", without missing or unseen values."
            )
        if target.kind == "category" and len(target.categories) == 1:
            raise TableError(
                f"categories of the target {target.name!r} must be at least two."
            )

    @property
    def every_column(self) -> tuple[Column, ...]:
        """The columns, followed by the target if there is one."""
        return self.columns if self.target is None else (*self.columns, self.target)

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features, ``column=category`` for indicators."""
        return [name for column in self.columns for name in column.features]

    @property
    def feature_ranges(self) -> list[tuple[float, float]]:
        """Public lowest and highest value of each encoded feature.

        Indicators are from 0 to 1, numbers from -1 to 1 or with their zero at 0. These
        are the ``feature_bounds`` of sparse models.
        """
        return [pair for column in self.columns for pair in column.feature_ranges]

    @property
    def row_norm(self) -> float:
        """Public L2 norm that encoded rows are clipped to.

        If the schema does not give it, it is the root mean square norm of a row whose
        numbers are uniform over their ranges: a number then has a mean square of 1/3,
        whether zero is in the middle or at an end, and a category has exactly one
        indicator that is 1.
        """
        if self.given_norm is not None:
            return self.given_norm
        return sqrt(sum(column.mean_square for column in self.columns))

    @property
    def widths(self) -> list[int]:
        """Number of features of each column that is not ignored."""
        return [len(c.features) for c in self.columns if c.kind != "ignore"]

    def unconfirmed(self) -> list[str]:
        """Return the names of columns whose facts nobody has confirmed yet."""
        return [column.name for column in self.every_column if not column.is_confirmed]

    def require_confirmed(self) -> None:
        """Reject a schema with facts that nobody has confirmed as public."""
        waiting = self.unconfirmed()
        if waiting:
            names = ", ".join(map(repr, waiting))
            raise TableError(
                f"The schema is not confirmed for {names}: compare each range and "
                "list of categories with what is publicly known, then confirm it."
            )

    def confirm(self, columns: Iterable[str] | None = None, by: str = "") -> Schema:
        """Return the schema with the facts of these columns confirmed as public.

        Parameters
        ----------
        columns
            Names of columns or the target; None for all.
        by
            Person who confirms them.
        """
        if isinstance(columns, str):
            columns = (columns,)
        names = self.unconfirmed() if columns is None else list(columns)
        schema = self
        for name in names:
            column = schema.column(name)
            if not column.is_filled:
                fact = "range" if column.kind == "number" else "categories"
                raise TableError(
                    f"{fact} of column {name!r} must be filled in before it is "
                    "confirmed."
                )
            schema = schema.with_column(
                replace(column, source="public", confirmed_by=by)
            )
        return schema

    def column(self, name: str) -> Column:
        """Return the column, or the target, with this name."""
        for column in self.every_column:
            if column.name == name:
                return column
        raise TableError(f"The schema has no column {name!r}.")

    def with_column(self, column: Column) -> Schema:
        """Return the schema with the column of the same name replaced.

        Changed facts lose the name of the person who confirmed the old ones.
        """
        had = self.column(column.name)
        if column != had and column.confirmed_by == had.confirmed_by:
            column = replace(column, confirmed_by="")
        if self.target is not None and self.target.name == column.name:
            return replace(self, target=column)
        same = (column if c.name == column.name else c for c in self.columns)
        return replace(self, columns=tuple(same))

    def with_target(self, name: str) -> Schema:
        """Return the schema with this column as the target.

        The former target is then ignored, because it may reveal too much of the new
        one. A flag, which is a number from 0 to 1 with its zero at 0, becomes the
        labels 0 and 1.
        """
        chosen = self.column(name)
        if chosen is self.target:
            return self
        if chosen.kind == "ignore":
            raise TableError(
                f"The column {name!r} is ignored in the schema; give its kind and "
                "public facts to make it the target."
            )
        left: list[Column] = [c for c in self.columns if c is not chosen]
        if self.target is not None:
            left.append(Column(self.target.name, "ignore", note="It was the target."))
        target = replace(chosen, missing=None, unseen="refuse")
        if (target.range, target.zero) == ((0, 1), 0):
            flag: dict[str, Any] = {"range": None, "zero": None}
            target = replace(target, kind="category", categories=("0", "1"), **flag)
        return replace(self, columns=tuple(left), target=target)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data, as in a schema file."""
        found: dict[str, Any] = {"version": VERSION}
        if self.given_norm is not None:
            found["row_norm"] = self.given_norm
        if self.note:
            found["note"] = self.note
        if self.target is not None:
            facts = self.target.to_dict()
            shown = {k: v for k, v in facts.items() if k not in NOT_FOR_TARGETS}
            found["target"] = {"name": self.target.name, **shown}
        found["columns"] = {column.name: column.to_dict() for column in self.columns}
        return found

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Schema:
        """Return the schema of plain data; errors name the table and the key."""
        if not isinstance(facts, Mapping):
            raise TableError("A schema must be a table of keys.")
        version = facts.get("version")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise TableError(f"version must be {VERSION}.")
        if version > VERSION:
            raise TableError(
                f"version is that of a later tacit, and this one reads version "
                f"{VERSION}; upgrade tacit."
            )
        check_known(facts, ("version", "row_norm", "note", "target", "columns"))
        tables = facts.get("columns", {})
        if not isinstance(tables, Mapping):
            raise TableError("columns must be tables, one [columns.name] per column.")
        target = facts.get("target")
        return cls(
            tuple(_column(name, table) for name, table in tables.items()),
            None if target is None else _target(target),
            facts.get("row_norm"),
            facts.get("note", ""),
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schema:
        """Return the schema of a TOML file."""
        facts = _toml.read(path)
        try:
            return cls.from_dict(facts)
        except TableError as error:
            raise TableError(f"{path}: {error}") from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema to a TOML file that people can read and edit.

        A ``note`` is kept, and comments in an existing file are lost.
        """
        _toml.write(path, self.to_dict())


def _column(name: str, table: Any) -> Column:
    try:
        return column_of(name, table)
    except TableError as error:
        raise TableError(f"[columns.{name}] {error}") from None


def _target(table: Any) -> Column:
    try:
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise TableError("name must be the name of a column.")
        facts = {key: value for key, value in table.items() if key != "name"}
        for key in NOT_FOR_TARGETS:
            if key in facts:
                raise TableError(f"{key} is not for targets; leave it out.")
        return column_of(table["name"], facts)
    except TableError as error:
        raise TableError(f"[target] {error}") from None


def _check_unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(
                f"The schema names the {what} {name!r} twice; rename or leave out one."
            )
        seen.add(name)
