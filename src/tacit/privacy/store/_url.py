"""URLs of ledgers, checked, and without passwords for display."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.util import immutabledict

__all__ = ["parsed", "shown"]

# Options that a URL may pass to PostgreSQL. No options: they could turn off what the
# guarantees rest on, or lead to other tables
KEYS = {
    "host",
    "port",
    "user",
    "password",
    "passfile",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslpassword",
    "channel_binding",
    "gssencmode",
    "target_session_attrs",
}


def shown(url: URL) -> str:
    """Return a URL that may be printed and stored: without passwords."""
    kept = {k: v for k, v in url.query.items() if "password" not in k.lower()}
    plain = url._replace(
        drivername=url.drivername.partition("+")[0],
        password=None,
        query=immutabledict(kept),
    )
    return plain.render_as_string(hide_password=False)


def parsed(url: str) -> URL:
    """Return a URL that can be used, or reject it without quoting it."""
    usage = (
        "url must be like 'sqlite:///budget.db' or 'postgresql://user@host/database'"
    )
    if not isinstance(url, str):
        raise TypeError(f"{usage}, got {type(url).__name__}.")
    try:
        found = make_url(url)
    except (ArgumentError, ValueError):
        found = None
    if found is None:
        raise ValueError(f"{usage}, and this one cannot be read.")
    if found.drivername == "sqlite":
        if found.database in (None, "", ":memory:") or found.host or found.query:
            raise ValueError(
                f"{usage}; a SQLite ledger needs the path of a file and nothing else."
            )
        return found.set(database=str(Path(found.database or "").resolve()))
    if found.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        # not quoted: either may be a part of a password
        where = f"{found.host} {found.database}"
        if "@" in where or "://" in where:
            raise ValueError(
                f"{usage}; write '@' in a password as '%40', '/' as '%2F'."
            )
        if not KEYS.issuperset(found.query):
            raise ValueError(
                f"{usage}, with no options after '?' but {', '.join(sorted(KEYS))}."
            )
        return found.set(drivername="postgresql+psycopg")
    raise ValueError(f"{usage}, got one of {found.drivername!r}.")
