"""User, host and time of a record, and checks of names."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import unicodedata
from datetime import UTC, datetime

__all__ = [
    "checked_name",
    "checked_text",
    "host",
    "look",
    "now",
    "system_user",
    "token",
]

# Longer strings belong in a file, with its digest here
LONGEST = 4000


def system_user() -> str:
    """Return the user this process runs as, whatever the environment claims."""
    if os.name == "posix":
        import pwd  # noqa: PLC0415 - not on Windows

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # a number without a name, as in some containers
            return str(os.getuid())
    return getpass.getuser()


def host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def now() -> str:
    """Return the time, UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def token() -> str:
    """Return a token that no other record has."""
    return secrets.token_hex(16)


def checked_text(*, empty: bool = False, **named: object) -> None:
    """Require strings that a database can store."""
    for name, value in named.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a str, got {type(value).__name__}.")
        if not empty and not value.strip():
            raise ValueError(f"{name} must not be empty.")
        if len(value) > LONGEST:
            raise ValueError(f"{name} must have at most {LONGEST} characters.")
        try:
            value.encode()
            valid = "\0" not in value
        except UnicodeEncodeError:
            valid = False
        if not valid:
            raise ValueError(f"{name} must be valid Unicode without a zero character.")


def checked_name(**named: object) -> None:
    """Require names that do not print like another one."""
    for name, value in named.items():
        checked_text(**{name: value})  # type: ignore[arg-type]
        if value != unicodedata.normalize("NFC", str(value)).strip():
            raise ValueError(
                f"{name} must have no blanks around it and be in the composed form of "
                "Unicode (NFC)."
            )


def look(name: str) -> str:
    """Return a key that names which look alike share."""
    return unicodedata.normalize("NFKC", name).casefold()
