"""Schemas as TOML, written for people."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.data._files import TableError

__all__ = ["read", "write"]

HEADER = """\
# Public facts about a table. No row is read until every entry has source = "public":
# compare each range and list of categories with public knowledge, and correct what
# differs. An entry with source = "data", or without a source, was computed from the
# rows; used unchanged, it would release information about them.
"""
UNFILLED = {
    "range": "  # fill in: lowest and highest possible value",
    "categories": "  # fill in: the possible values",
}
BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
SHORT |= {'"': '\\"', "\\": "\\\\"}
# Lists longer than this are broken into lines
WIDTH = 88


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a schema file; reject an invalid one in one sentence."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except OSError as error:
        raise TableError(f"{path}: {(error.strerror or 'cannot be read')}.") from None
    except UnicodeDecodeError:
        raise TableError(f"{path}: a schema must be a UTF-8 file.") from None
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path}: not valid TOML: {error}.") from None
    except (RecursionError, ValueError):  # nested too deep, or too long a number
        raise TableError(f"{path}: not valid TOML for a schema.") from None


def write(path: str | os.PathLike[str], facts: Mapping[str, Any]) -> None:
    """Write a schema file as a whole, or not at all."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(dumps(facts))
        # a new file is readable by its owner only; an existing one keeps its mode
        if target.exists():
            os.chmod(name, target.stat().st_mode & 0o777)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def dumps(facts: Mapping[str, Any]) -> str:
    """Return the TOML of plain data of a schema."""
    parts = [HEADER]
    parts += [_line(k, v) for k, v in facts.items() if not isinstance(v, Mapping)]
    if "target" in facts:
        parts += ["\n[target]\n", *map(_line, *_pairs(facts["target"]))]
    for name, table in facts["columns"].items():
        parts += [f"\n[columns.{_key(name)}]\n", *map(_line, *_pairs(table))]
    return "".join(parts)


def _pairs(table: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    return list(table), list(table.values())


def _line(key: str, value: Any) -> str:
    comment = UNFILLED.get(key, "") if value == [] else ""
    if key == "source" and value == "data":
        comment = "  # computed from the rows"
    line = f"{key} = {_value(value)}"
    if isinstance(value, list) and len(line) > WIDTH:
        items = "".join(f"  {_value(item)},\n" for item in value)
        line = f"{key} = [\n{items}]"
    return f"{line}{comment}\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in SHORT:
        return SHORT[letter]
    if ord(letter) < 0x20 or ord(letter) == 0x7F:
        return f"\\u{ord(letter):04X}"
    return letter
