"""Tables of a ledger, the triggers that keep them append-only, and migrations."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    CheckConstraint,
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
    "damage",
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
    CheckConstraint("seq >= 0", name="tacit_record_place"),
)

_FORBIDDEN = "tacit: a ledger is append-only"

# [store:append] the database itself rejects all but the next record of a chain; also
# for INSERT OR REPLACE, which deletes without firing the other triggers
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
# has a sequence number already taken is left to the primary key: a race, no attack.
# [store:names] the writer's own tables, functions and operators must not be found first
_SEARCHED = "search_path=pg_catalog, pg_temp"
_FUNCTIONS = {
    "tacit_refuse": f"BEGIN RAISE EXCEPTION '{_FORBIDDEN}'; END",
    "tacit_append": f"""
    DECLARE
      body json := NEW.body::json;
      account record;
      last record;
    BEGIN
      SELECT * INTO account FROM {{schema}}.tacit_dataset WHERE name = NEW.dataset;
      SELECT * INTO last FROM {{schema}}.tacit_record
        WHERE dataset = NEW.dataset ORDER BY seq DESC LIMIT 1;
      IF NEW.seq < 0 OR NEW.seq > coalesce(last.seq, -1) AND (
           NEW.seq <> coalesce(last.seq, -1) + 1
           OR NEW.previous <> coalesce(last.hash, account.genesis)) THEN
        RAISE EXCEPTION '{_FORBIDDEN}';
      END IF;
      IF NOT starts_with(body->>'who', session_user::text || '@'::text)
         OR (body->>'kind' IN ('void', 'allow')
             AND session_user::text <> account.owner::text) THEN
        RAISE EXCEPTION 'tacit: written under the name of another';
      END IF;
      RETURN NEW;
    END
    """,
}
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
        schema = connection.exec_driver_sql(
            "SELECT pg_catalog.quote_ident(current_schema())"
        ).scalar_one()
        for name, source in _FUNCTIONS.items():
            connection.exec_driver_sql(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql "
                f"SET {_SEARCHED} AS $${source.format(schema=schema)}$$"
            )
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


def damage(connection: Connection) -> list[str]:
    """Return in words what the database finds wrong with its own pages and indexes."""
    if connection.dialect.name != "sqlite":
        return []
    state = str(connection.exec_driver_sql("PRAGMA integrity_check").scalar())
    return [] if state == "ok" else ["SQLite finds the file damaged"]


def missing_guards(connection: Connection) -> list[str]:
    """Return in words what is wrong with the triggers."""
    made, found = _made(connection), _found(connection)
    wrong = [
        f"the trigger {name}, which keeps the ledger append-only, is "
        + ("not the one tacit made" if name in found else "missing")
        for name in made
        if found.get(name) != made[name]
    ]
    return wrong + [
        f"the trigger {name} is not one of the ledger's"
        for name in found
        if name not in made
    ]


def _made(connection: Connection) -> dict[str, str]:
    """Return what `_found` says of triggers as tacit makes them."""
    if connection.dialect.name == "sqlite":
        return {
            name: " ".join(f"CREATE TRIGGER {name} {rule}".split())
            for name, rule in _SQLITE.items()
        }
    schema = connection.exec_driver_sql(
        "SELECT relnamespace::regnamespace::text FROM pg_class "
        "WHERE oid = 'tacit_record'::regclass"
    ).scalar_one()
    out = {}
    for name, rule in _POSTGRESQL.items():
        verb, function = rule.split()[1], rule.rpartition(" ")[2].rstrip("()")
        kind = _BEFORE + _VERBS[verb] + (_EACH_ROW if "FOR EACH ROW" in rule else 0)
        source = _FUNCTIONS[function].format(schema=schema)
        out[name] = f"{kind} {function} {_SEARCHED} {source}"
    return out


# Bits of pg_trigger.tgtype
_EACH_ROW, _BEFORE = 1, 2
_VERBS = {"INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}


def _found(connection: Connection) -> dict[str, str]:
    """Return the triggers of the ledger's tables, by name."""
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        )
        return {name: " ".join(str(sql).split()) for name, sql in rows}
    # a trigger that is disabled, or fires on some rows or columns only, is as good as
    # none; O and A fire in usual sessions
    rows = connection.exec_driver_sql(
        """
        SELECT tgname, tgtype || ' ' || proname || ' '
               || coalesce(array_to_string(proconfig, ' '), '') || ' ' || prosrc,
               tgenabled IN ('O', 'A') AND tgqual IS NULL AND tgattr::text = ''
        FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
        WHERE NOT tgisinternal AND tgrelid
          IN ('tacit_record'::regclass, 'tacit_dataset'::regclass)
        """
    )
    return {name: text if whole else "" for name, text, whole in rows}
