"""Files that are whole at every moment, in a folder that one process holds."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["folder_path", "locked", "made", "placed"]

# A link that was put in the place of a file is not followed
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def folder_path(folder: Any, name: str = "folder") -> Path:
    """Return where a folder is, also after the process goes to another one."""
    given = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    if not isinstance(given, str) or not given:
        raise ValueError(f"{name} must be the path of a folder, got {folder!r}.")
    return Path(given).absolute()


def made(folder: Path) -> None:
    """Make a folder for its owner alone, where there is none."""
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, parents=True)
    _settle(folder.parent)


def locked(path: Path, refusal: str) -> int:
    """Return a handle that keeps other processes out until it is closed.

    ``refusal`` says what to do where it is held already.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o600)
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, BlockingIOError | PermissionError):
            raise ValueError(refusal) from None
        raise
    return handle


def placed(path: Path, content: bytes) -> None:
    """Put a file in the place of another, whole and flushed, or leave the other."""
    # one name, as the lock keeps others out: what a kill leaves is removed
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS
    try:
        with open(os.open(partial, flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # [durable:write] the file is the old or the new one at every moment
        os.replace(partial, path)
        _settle(path.parent)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _settle(folder: Path) -> None:
    """Have the names in a folder reach the disk, where a folder can be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
