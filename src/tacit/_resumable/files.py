"""Atomically written files in a private folder that one process locks."""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["folder_path", "locked", "made", "placed"]

# A link instead of a file is not followed
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
# Names of the library's files in private folders; anything else is the user's
KEPT = re.compile(
    r"(lock|private-.+|answers-\d+|teachers|teachers\.json|labeler|pool\.json)"
    r"(\.partial)?"
)
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def folder_path(folder: Any, name: str = "folder") -> Path:
    """Return the absolute path of a folder, also after a change of directory."""
    given = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    if not isinstance(given, str) or not given:
        raise ValueError(f"{name} must be the path of a folder, got {folder!r}.")
    return Path(given).absolute()


def made(folder: Path, name: str = "folder") -> None:
    """Make a folder that only its owner can read, or restrict an existing one.

    An existing folder is rejected if another user owns it, or if others can read it
    and it contains other files: restricting it could lock those users out.
    """
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True)
        _settle(folder.parent)
    if os.name == "posix":
        _restrict(folder, name)


def _restrict(folder: Path, name: str) -> None:
    """Remove the permissions of other users from a folder and from its files."""
    # through one handle, as the path may name another folder a moment later
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            raise ValueError(
                f"{name} {folder} belongs to another user, who can read all of it; "
                "give a new folder, or one that you own."
            )
        with os.scandir(handle) as entries:
            inside = list(entries)
        if found.st_mode & OTHERS:
            if not all(KEPT.fullmatch(entry.name) for entry in inside):
                raise ValueError(
                    f"{name} {folder} contains other files and is open to other users "
                    f"(mode {stat.S_IMODE(found.st_mode):04o}); give a new or empty "
                    "folder, or restrict it yourself with `chmod 700`."
                )
            _set_mode(handle, 0o700, f"{name} {folder}")
        for entry in inside:
            if KEPT.fullmatch(entry.name):
                _restrict_entry(entry, handle, folder)
    finally:
        os.close(handle)


def _restrict_entry(entry: os.DirEntry[str], parent: int, folder: Path) -> None:
    """Remove the permissions of other users from a file or folder, but not a link."""
    mode = entry.stat(follow_symlinks=False).st_mode
    if not (mode & OTHERS and (stat.S_ISREG(mode) or stat.S_ISDIR(mode))):
        return
    handle = os.open(entry.name, os.O_RDONLY | NO_LINKS, dir_fd=parent)
    try:
        owners = 0o700 if stat.S_ISDIR(mode) else 0o600
        _set_mode(handle, owners, str(folder / entry.name))
    finally:
        os.close(handle)


def _set_mode(handle: int, mode: int, name: str) -> None:
    """Set permissions and check that the file system keeps them."""
    with suppress(PermissionError):
        os.fchmod(handle, mode)
    if os.fstat(handle).st_mode & OTHERS:
        raise ValueError(
            f"{name} is open to other users, and its permissions cannot be changed; "
            "give a folder on a file system that keeps permissions, or one you own."
        )


def locked(path: Path, rejection: str) -> int:
    """Return a handle that locks other processes out until it is closed.

    Parameters
    ----------
    path
        File of the lock.
    rejection
        Message of the error if it is locked already.
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
            raise ValueError(rejection) from None
        raise
    return handle


def placed(path: Path, content: bytes) -> None:
    """Replace a file by another that is complete and flushed, or leave it."""
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
    """Flush the names in a folder to disk, where a folder can be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
