"""Atomic writing of a folder."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tacit.persistence._errors import ModelFileError

__all__ = ["write_atomically"]

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def write_atomically(
    folder: Path,
    files: dict[str, bytes],
    *,
    overwrite: bool,
    replaceable: Callable[[Path], bool],
) -> Path:
    """Write files into a new folder, or replace a replaceable one, atomically.

    The files are written and flushed in a sibling folder, which is then renamed. A
    failure or an interrupt leaves the old folder as it was.
    """
    target = Path(os.path.abspath(folder))
    _require_replaceable(target, overwrite, replaceable)
    target.parent.mkdir(parents=True, exist_ok=True)
    sibling = target.parent / f".tacit-{secrets.token_hex(8)}.partial"
    try:
        sibling.mkdir()
        for name, content in files.items():
            with open(sibling / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _flush_names(sibling)
        if os.path.lexists(target):
            _require_replaceable(target, overwrite, replaceable)
            _exchange(sibling, target)
        else:
            os.rename(sibling, target)
        _flush_names(target.parent)
    finally:
        # the unfinished folder, or the replaced one
        shutil.rmtree(sibling, ignore_errors=True)
    return target


def _require_replaceable(
    target: Path, overwrite: bool, replaceable: Callable[[Path], bool]
) -> None:
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise ModelFileError(
            f"{target} exists; choose another folder, or give overwrite=True."
        )
    if target.is_symlink() or not target.is_dir() or not replaceable(target):
        raise ModelFileError(
            f"{target} is not a readable model folder, so it is not replaced; "
            "choose another."
        )


def _exchange(sibling: Path, target: Path) -> None:
    """Swap the names of the sibling and the target."""
    if _exchanged(sibling, target):
        return
    aside = sibling.with_suffix(".old")
    try:
        os.rename(target, aside)
        os.rename(sibling, target)
        os.rename(aside, sibling)
    except BaseException:
        # interrupted between two renames: the old folder gets its name back
        if aside.exists() and not target.exists():
            os.rename(aside, target)
        raise
    finally:
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)


def _exchanged(first: Path, second: Path) -> bool:
    """Swap two names in one step, where the system has such a call."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = os.fsencode(first), os.fsencode(second)
    done: int = rename(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)
    return done == 0


def _flush_names(folder: Path) -> None:
    """Flush the names in a folder, where the system can open a folder."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
