"""Tables of a ledger, what keeps them append-only, and how they grow up."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
    update,
)

from tacit.exceptions import LedgerDamaged

__all__ = [
    "DATASETS",
    "RECORDS",
    "VERSIONS",
    "migrate",
    "missing_guards",
    "outdated",
    "version_of",
]

META = MetaData()

VERSIONS = Table("tacit_schema", META, Column("version", Integer, nullable=False))
DATASETS = Table(
    "tacit_dataset",
    META,
    Column("name", String(200), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("terms", Text, nullable=False),
    Column("genesis", String(64), nullable=False),
)
RECORDS = Table(
    "tacit_record",
    META,
    Column("dataset", ForeignKey(DATASETS.c.name), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("token", String(64), nullable=False, unique=True),
    Column("body", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)

_FORBIDDEN = "tacit: a ledger is append-only"

# [store:append] the database itself refuses all but the next record of a chain; also
# for INSERT OR REPLACE, which deletes without asking the other triggers
_SQLITE = {
    **{
        f"tacit_{table}_{verb}": f"BEFORE {verb.upper()} ON tacit_{table} "
        f"BEGIN SELECT RAISE(ABORT, '{_FORBIDDEN}'); END"
        for table in ("record", "dataset")
        for verb in ("update", "delete")
    },
    "tacit_record_append": f"""
    BEFORE INSERT ON tacit_record
    WHEN NEW.seq <> (SELECT coalesce(max(seq), -1) + 1 FROM tacit_record
                     WHERE dataset = NEW.dataset)
      OR NEW.previous <> coalesce(
           (SELECT hash FROM tacit_record
            WHERE dataset = NEW.dataset AND seq = NEW.seq - 1),
           (SELECT genesis FROM tacit_dataset WHERE name = NEW.dataset))
      OR EXISTS (SELECT 1 FROM tacit_record WHERE token = NEW.token)
    BEGIN SELECT RAISE(ABORT, '{_FORBIDDEN}'); END
    """,
    "tacit_dataset_append": f"""
    BEFORE INSERT ON tacit_dataset
    WHEN EXISTS (SELECT 1 FROM tacit_dataset WHERE name = NEW.name)
    BEGIN SELECT RAISE(ABORT, '{_FORBIDDEN}'); END
    """,
}

# In PostgreSQL the session's role is known to the server, so it can also see to it that
# nobody writes under another's name and that only owners void and allow. A record that
# takes a place already taken is left to the primary key: that is a race, not an attack.
_FUNCTIONS = (
    f"""
    CREATE FUNCTION tacit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '{_FORBIDDEN}'; END $$
    """,
    f"""
    CREATE FUNCTION tacit_append() RETURNS trigger LANGUAGE plpgsql
    SET search_path FROM CURRENT AS $$
    DECLARE
      body json := NEW.body::json;
      account record;
      last record;
    BEGIN
      SELECT * INTO account FROM tacit_dataset WHERE name = NEW.dataset;
      SELECT * INTO last FROM tacit_record
        WHERE dataset = NEW.dataset ORDER BY seq DESC LIMIT 1;
      IF NEW.seq > coalesce(last.seq, -1) AND (
           NEW.seq <> coalesce(last.seq, -1) + 1
           OR NEW.previous <> coalesce(last.hash, account.genesis)) THEN
        RAISE EXCEPTION '{_FORBIDDEN}';
      END IF;
      IF NOT starts_with(body->>'who', session_user || '@')
         OR (body->>'kind' IN ('void', 'allow') AND session_user <> account.owner) THEN
        RAISE EXCEPTION 'tacit: written under the name of another';
      END IF;
      RETURN NEW;
    END $$
    """,
)
_POSTGRESQL = {
    "tacit_record_append": "BEFORE INSERT ON tacit_record "
    "FOR EACH ROW EXECUTE FUNCTION tacit_append()",
    **{
        f"tacit_{table}_{verb}": f"BEFORE {verb.upper()} ON tacit_{table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION tacit_refuse()"
        for table in ("record", "dataset")
        for verb in ("update", "delete", "truncate")
    },
}


def _triggers(connection: Connection) -> dict[str, str]:
    """Return what keeps the tables append-only, by name."""
    return _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL


def _first(connection: Connection) -> None:
    """From an empty database to version 1."""
    META.create_all(connection, checkfirst=False)
    if connection.dialect.name != "sqlite":
        for function in _FUNCTIONS:
            connection.exec_driver_sql(function)
    for name, rule in _triggers(connection).items():
        connection.exec_driver_sql(f"CREATE TRIGGER {name} {rule}")
    connection.execute(VERSIONS.insert().values(version=1))


# Step i leads from version i to version i + 1. A later version appends its step.
STEPS: tuple[Callable[[Connection], None], ...] = (_first,)


def version_of(connection: Connection) -> int:
    """Return the version of the tables, zero where there are none."""
    if not inspect(connection).has_table(VERSIONS.name):
        return 0
    found = connection.execute(select(VERSIONS.c.version)).scalars().all()
    if len(found) != 1:
        raise LedgerDamaged(
            "The database does not say which version its ledger tables have; restore "
            "it from a backup."
        )
    if found[0] > len(STEPS):
        raise LedgerDamaged(
            f"The ledger's tables have version {found[0]} and this tacit knows "
            f"{len(STEPS)}; use the later tacit that wrote them."
        )
    return int(found[0])


def outdated(connection: Connection) -> bool:
    """Whether the tables are there and of an earlier version."""
    return 0 < version_of(connection) < len(STEPS)


def migrate(connection: Connection) -> None:
    """Bring the tables to the present version, within the caller's transaction."""
    found = version_of(connection)
    for step in STEPS[found:]:
        step(connection)
    if found < len(STEPS):
        connection.execute(update(VERSIONS).values(version=len(STEPS)))


def missing_guards(connection: Connection) -> list[str]:
    """Return what is wrong with the database itself, in words."""
    if connection.dialect.name == "sqlite":
        names = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        state = str(connection.exec_driver_sql("PRAGMA quick_check").scalar())
        wrong = [] if state == "ok" else ["SQLite finds the file damaged"]
    else:
        # O: fires in usual sessions; a disabled trigger is as good as none
        names = (
            "SELECT tgname FROM pg_trigger WHERE tgenabled IN ('O', 'A') AND tgrelid "
            "IN ('tacit_record'::regclass, 'tacit_dataset'::regclass)"
        )
        wrong = []
    found = set(connection.exec_driver_sql(names).scalars())
    return wrong + [
        f"the trigger {name}, which keeps the ledger append-only, is missing"
        for name in _triggers(connection)
        if name not in found
    ]
