"""Where commands write to: what must be refused while nothing is charged yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from tempfile import TemporaryFile

from tacit.cli._console import Rejected
from tacit.persistence import is_model, is_side, is_student

__all__ = [
    "check_file",
    "check_folder",
    "check_label",
    "check_state",
    "try_writing",
]

LONGEST_LABEL = 200
# What SQLite puts beside the file of a ledger
SQLITE_ENDS = ("-journal", "-wal", "-shm")
# What a folder may hold that is replaced as a whole
FOLDERS: dict[str, Callable[[Path], bool]] = {
    "model": is_model,
    "side": is_side,
    "student": is_student,
}


def check_folder(
    folder: Path,
    force: bool,
    used: Iterable[Path],
    option: str,
    holds: str = "model",
) -> None:
    """Refuse a folder that cannot be written, while nothing is charged yet.

    What is ``used`` must not be in it: the whole folder is replaced, and so must hold
    what it ``holds`` afterwards.
    """
    position = folder.resolve()
    for path in used:
        if path.resolve().is_relative_to(position):
            raise Rejected(f"{path} is inside {option}, which is replaced as a whole.")
    if folder.exists() and not force:
        raise Rejected(f"{folder} is there already; give another {option}, or --force.")
    if folder.exists() and not FOLDERS[holds](folder):
        raise Rejected(
            f"{folder} is no {holds}, and so is not replaced; give another {option}."
        )
    try_writing(folder, option)


def try_writing(path: Path, option: str) -> None:
    """Refuse a place that nothing can be written to."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise Rejected(f"{parent} is no folder; make it, or give another {option}.")
    # trying beats asking: quotas and mounts have rules of their own
    with TemporaryFile(dir=parent, prefix=".tacit-") as trial:
        trial.write(os.urandom(2**16))


def check_file(path: Path, used: Iterable[Path], option: str) -> None:
    """Refuse a file to write that is no file, or one that is used otherwise."""
    if not path.absolute().parent.is_dir() or (path.exists() and not path.is_file()):
        raise Rejected(f"{path} cannot be a file to write; give another {option}.")
    position = path.resolve()
    beside = [Path(f"{file}{end}") for file in used for end in ("", *SQLITE_ENDS)]
    # what is read may be a folder
    if any(position.is_relative_to(f.resolve()) or _same_file(path, f) for f in beside):
        raise Rejected(
            f"{path} is used for something else by this command; give another {option}."
        )


def _same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def check_state(
    folder: Path, own: Collection[str], what: str, outputs: dict[str, Path | None]
) -> None:
    """Refuse a folder of something else to keep the state in, or outputs in it.

    ``own`` are the names that it may hold, ``outputs`` the options and their places.
    """
    for path in outputs.values():
        if path is not None and path.resolve().is_relative_to(folder.resolve()):
            raise Rejected(
                f"{path} is inside --state, which is secret; give another "
                f"{' or '.join(outputs)}."
            )
    if folder.exists() and not folder.is_dir():
        raise Rejected(f"{folder} is no folder; give another --state.")
    if folder.is_dir() and not {p.name for p in folder.iterdir()} <= set(own):
        raise Rejected(
            f"{folder} holds other files than those of {what}; give another --state."
        )


def check_label(label: str) -> None:
    """Refuse a label that could not be written or shown once the fit is paid for."""
    if not 0 < len(label) <= LONGEST_LABEL or not label.isprintable():
        raise Rejected(
            f"--label must be 1 to {LONGEST_LABEL} characters that can be printed."
        )
