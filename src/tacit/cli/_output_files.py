"""Files and folders that commands write, checked before anything is charged."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from tacit import persistence
from tacit.cli._console import Rejected

__all__ = [
    "SUFFIXES",
    "check_file",
    "check_folder",
    "check_label",
    "check_state",
    "fill_table",
    "try_writing",
    "write_table",
    "write_text",
]

# Files that tables are written to
SUFFIXES = (".csv", ".parquet")
LONGEST_LABEL = 200
# Endings of the files that SQLite creates beside a database
SQLITE_ENDS = ("-journal", "-wal", "-shm")
# Contents of a folder that may be replaced as a whole
FOLDERS: dict[str, Callable[[Path], bool]] = {
    "model": lambda folder: persistence._folder.is_model(folder),
    "side": lambda folder: persistence._sides.is_side(folder),
    "student": lambda folder: persistence._students.is_student(folder),
}


def check_folder(
    folder: Path,
    force: bool,
    used: Iterable[Path],
    option: str,
    holds: str = "model",
) -> None:
    """Reject a folder that cannot be written.

    The whole folder is replaced. So an existing one must contain what it ``holds``
    afterwards, and no path in ``used`` may be inside it.
    """
    position = folder.resolve()
    for path in used:
        if path.resolve().is_relative_to(position):
            raise Rejected(
                f"{path} is inside {option}, and that whole folder is replaced; give "
                f"another {option}."
            )
    if folder.exists() and not force:
        raise Rejected(f"{folder} already exists; give another {option}, or --force.")
    if folder.exists() and not FOLDERS[holds](folder):
        raise Rejected(
            f"{folder} contains no {holds} and is not replaced; give another {option}."
        )
    try_writing(folder, option)


def try_writing(path: Path, option: str) -> None:
    """Reject a path that nothing can be written to."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise Rejected(
            f"{parent} is not a folder; create it, or give another {option}."
        )
    # permissions do not show quotas and read-only mounts, so try to write
    with TemporaryFile(dir=parent, prefix=".tacit-") as trial:
        trial.write(os.urandom(2**16))


def check_file(path: Path, used: Iterable[Path], option: str) -> None:
    """Reject an output path that is not a file, or that the command uses otherwise."""
    if not path.absolute().parent.is_dir() or (path.exists() and not path.is_file()):
        raise Rejected(
            f"{path} is not a file that can be written; give another {option}."
        )
    position = path.resolve()
    beside = [Path(f"{file}{end}") for file in used for end in ("", *SQLITE_ENDS)]
    # an input may be a folder
    if any(position.is_relative_to(f.resolve()) or _same_file(path, f) for f in beside):
        raise Rejected(
            f"{path} is already used by this command; give another {option}."
        )


def _same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def check_state(
    folder: Path, own: Collection[str], what: str, outputs: dict[str, Path | None]
) -> None:
    """Reject a state folder with other files in it, or with outputs inside it.

    ``own`` are the names it may contain, ``outputs`` the options and their paths.
    """
    for path in outputs.values():
        if path is not None and path.resolve().is_relative_to(folder.resolve()):
            raise Rejected(
                f"{path} is inside --state, and the state is secret; give another "
                f"{' or '.join(outputs)}."
            )
    if folder.exists() and not folder.is_dir():
        raise Rejected(f"{folder} is not a folder; give another --state.")
    if folder.is_dir() and not {p.name for p in folder.iterdir()} <= set(own):
        raise Rejected(
            f"{folder} contains files that do not belong to {what}; give another "
            "--state."
        )


def check_label(label: str) -> None:
    """Reject a label that could not be written or shown after the charge."""
    if not 0 < len(label) <= LONGEST_LABEL or not label.isprintable():
        raise Rejected(
            f"--label must be 1 to {LONGEST_LABEL} characters that can be printed."
        )


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole, replacing any file with its name.

    The folder may come from someone else: a link in it must not be followed, and a pipe
    must not block.
    """
    partial = path.with_name(f".tacit-{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except BaseException:
        with suppress(FileNotFoundError):
            partial.unlink()
        raise


def write_table(path: Path, blocks: Iterator[pa.Table]) -> int:
    """Write blocks to a file as a whole; return the number of rows."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        rows = fill_table(partial, blocks, path.suffix)
        if not rows:
            raise Rejected("DATA has no rows; at least one is needed.")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return rows


def fill_table(path: Any, blocks: Iterable[pa.Table], suffix: str) -> int:
    """Write blocks to a ``.csv`` or ``.parquet`` file; return the number of rows."""
    kind = csv.CSVWriter if suffix == ".csv" else parquet.ParquetWriter
    rows = 0
    writer: Any = None
    for block in blocks:
        writer = writer or kind(path, block.schema)
        writer.write_table(block)
        rows += len(block)
    if writer is not None:
        writer.close()
    return rows
