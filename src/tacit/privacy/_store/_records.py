"""Records of a ledger, their stored form and the hash chain through them."""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
import unicodedata
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from tacit._json import canonical, plain
from tacit.privacy.budget import Budget, Neighbors
from tacit.privacy.curve import PrivacyCurve
from tacit.privacy.event_data import describe, is_own, restore
from tacit.privacy.events import Event
from tacit.privacy.ledger import Shares

__all__ = [
    "KINDS",
    "UNREADABLE",
    "Record",
    "Row",
    "Terms",
    "canonical",
    "chained",
    "checked_name",
    "checked_text",
    "event_text",
    "host",
    "look",
    "now",
    "read_body",
    "said",
    "system_user",
    "token",
    "typed",
    "user_of",
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


# All that reading what others wrote can raise
UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    PermissionError,
)


def said(error: BaseException) -> str:
    """Return why something could not be read, in words."""
    ours = isinstance(error, ValueError | PermissionError)
    return str(error) if ours else "its parts are not what tacit writes"


KINDS = ("open", "charge", "reserve", "cancel", "void", "allow", "note")


class Row(NamedTuple):
    """One row of the table of records, as stored."""

    seq: int
    token: str
    body: str
    previous: str
    hash: str


# wide: one field for each part of a record
@dataclass(frozen=True)
class Record:
    """One line of a ledger's history.

    Parameters
    ----------
    seq
        Sequence number, counted from zero without gaps.
    kind
        ``open``, ``charge``, ``reserve``, ``cancel``, ``void``, ``allow`` or ``note``.
    when
        Time of the writer's clock, UTC. Nothing rests on it.
    who
        Real user and host of the writer.
    analyst
        Name the charge is made for, or whom an ``allow`` concerns.
    label
        Name of the charge.
    epsilon
        Epsilon the charge guarantees by itself.
    event
        The event as a dictionary, see `tacit.privacy.event_data.restore`.
    promise
        Guarantee: the budget the charge was planned for, or the allowance.
    seeded
        Whether the randomness came from a fixed seed.
    refers_to
        Record that is voided, cancelled, turned into a charge or remarked on.
    reason
        Why, or the text of a note.
    hash
        Hash of this record and of all before it.
    """

    seq: int
    kind: str
    when: str
    who: str
    analyst: str
    label: str = ""
    epsilon: float | None = None
    event: dict[str, Any] | None = None
    promise: dict[str, Any] | None = None
    seeded: bool = False
    refers_to: int | None = None
    reason: str = ""
    hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return asdict(self)

    def body(self, token: str) -> str:
        """Return the text that is stored and hashed."""
        parts = {**vars(self), "token": token}
        del parts["hash"]
        return canonical(parts)


_TYPES: dict[str, tuple[type, ...]] = {
    "seq": (int,),
    "kind": (str,),
    "when": (str,),
    "who": (str,),
    "analyst": (str,),
    "label": (str,),
    "epsilon": (float, type(None)),
    "event": (dict, type(None)),
    "promise": (dict, type(None)),
    "seeded": (bool,),
    "refers_to": (int, type(None)),
    "reason": (str,),
    "token": (str,),
}


def chained(previous: str, body: str) -> str:
    """Return the hash of a record that follows ``previous``."""
    # [store:chain] the length of the first part is fixed, so the pair is unambiguous
    return sha256(f"{previous}{body}".encode()).hexdigest()


def typed(row: Row) -> Row:
    """Return the row; ValueError unless its parts are a number and strings."""
    if type(row.seq) is not int or any(type(part) is not str for part in row[1:]):
        raise ValueError("a record has parts of other types")
    try:
        "".join(row[1:]).encode()
    except UnicodeEncodeError:
        raise ValueError(f"record {row.seq} holds text that is no Unicode") from None
    return row


def read_body(row: Row) -> Record:
    """Return the record of a row; ValueError says what is invalid."""
    try:
        parts = json.loads(typed(row).body)
    except (ValueError, RecursionError):
        raise ValueError("its text is not JSON") from None
    if not isinstance(parts, dict) or set(parts) != set(_TYPES):
        raise ValueError("its text has other parts than a record")
    for name, types in _TYPES.items():
        if type(parts[name]) not in types:
            raise ValueError(f"its part {name!r} is of another type")
    if parts["kind"] not in KINDS:
        raise ValueError(f"its kind {parts['kind']!r} is not known")
    if parts["seq"] != row.seq or parts.pop("token") != row.token:
        raise ValueError("its text is that of another record")
    return Record(**parts, hash=row.hash)


def event_text(event: Event, neighbors: Neighbors) -> str:
    """Return the canonical text of an event that can be read back from it.

    A mechanism is stored as its event, if that has the same curve. What is neither is
    rejected, because nobody could later say what was charged.
    """
    kept: Any = event if is_own(event) else getattr(event, "event", None)
    # [store:event] what is charged is the curve of what is stored
    if is_own(kept) and (
        kept is event or _same(event.curve(neighbors), kept.curve(neighbors))
    ):
        text = canonical(plain(describe(kept), "event"))
        restore(json.loads(text))
        return text
    raise ValueError(
        f"event must be one of tacit.privacy's own to be kept in a database, got "
        f"{type(event).__name__}; bound it by PureDP or ApproxDP."
    )


def _same(one: PrivacyCurve, other: PrivacyCurve) -> bool:
    """Whether two curves are equal in all their parts."""
    parts = ("pure", "exact", "slack")
    return np.array_equal(one.renyi, other.renyi) and all(
        getattr(one, part) == getattr(other, part) for part in parts
    )


def user_of(who: str) -> str:
    """Return the user of ``user@host``."""
    return who.rpartition("@")[0]


@dataclass(frozen=True)
class Terms:
    """Terms that are fixed when the account of a data set is opened."""

    name: str
    budget: Budget
    shares: Shares
    owner: str
    created: str
    nonce: str  # so that no two accounts have the same chain

    @property
    def text(self) -> str:
        """The text that is stored and hashed."""
        return canonical(
            {
                "format": "tacit ledger 1",
                "name": self.name,
                "budget": self.budget.to_dict(),
                "shares": {k: float(v) for k, v in asdict(self.shares).items()},
                "owner": self.owner,
                "created": self.created,
                "nonce": self.nonce,
            }
        )

    @property
    def genesis(self) -> str:
        """The hash the chain starts from."""
        return sha256(self.text.encode()).hexdigest()

    @classmethod
    def read(cls, text: str) -> Terms:
        """Return the terms of a stored string; ValueError if it is invalid."""
        try:
            data = json.loads(text)
            terms = cls(
                data["name"],
                Budget.from_dict(data["budget"]),
                Shares(**data["shares"]),
                data["owner"],
                data["created"],
                data["nonce"],
            )
            kept = (terms.name, terms.owner, terms.created, terms.nonce)
            good = terms.text == text and all(type(part) is str for part in kept)
        except UNREADABLE:
            good = False
        if not good:
            raise ValueError("the terms of the account are not what tacit writes")
        return terms
