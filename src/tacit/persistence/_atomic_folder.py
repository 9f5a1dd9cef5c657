"""A folder that appears as a whole."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tacit.persistence._errors import ModelFileError

__all__ = ["placed"]

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def placed(
    folder: Path,
    files: dict[str, bytes],
    *,
    overwrite: bool,
    replaceable: Callable[[Path], bool],
) -> Path:
    """Write files into a new folder, or in place of a replaceable one.

    They are written into a sibling and reach the disk before it gets the name. What
    fails on the way, or is interrupted, leaves what was there.
    """
    target = Path(os.path.abspath(folder))
    _reject(target, overwrite, replaceable)
    target.parent.mkdir(parents=True, exist_ok=True)
    sibling = target.parent / f".tacit-{secrets.token_hex(8)}.partial"
    try:
        sibling.mkdir()
        for name, content in files.items():
            with open(sibling / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _settle(sibling)
        if os.path.lexists(target):
            _reject(target, overwrite, replaceable)
            _exchange(sibling, target)
        else:
            os.rename(sibling, target)
        _settle(target.parent)
    finally:
        # what was not renamed, or what was replaced
        shutil.rmtree(sibling, ignore_errors=True)
    return target


def _reject(target: Path, overwrite: bool, replaceable: Callable[[Path], bool]) -> None:
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise ModelFileError(
            f"{target} exists; choose another folder, or give overwrite=True."
        )
    if target.is_symlink() or not target.is_dir() or not replaceable(target):
        raise ModelFileError(
            f"{target} is no model folder that can be read, so it is not replaced; "
            "choose another."
        )


def _exchange(sibling: Path, target: Path) -> None:
    """Give the sibling the name of the target, and the target that of the sibling."""
    if _exchanged(sibling, target):
        return
    aside = sibling.with_suffix(".old")
    try:
        os.rename(target, aside)
        os.rename(sibling, target)
        os.rename(aside, sibling)
    except BaseException:
        # interrupted between two names: the old folder gets its own back
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


def _settle(folder: Path) -> None:
    """Have the names in a folder reach the disk, where a folder can be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
