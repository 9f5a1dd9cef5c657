"""Steps of ``tacit stream``: the estimator, the loop over steps, and its outputs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tacit import linear_model
from tacit._discovery import classes_by
from tacit._random import is_seeded
from tacit._resumable.record import OtherParameters
from tacit.cli._console import Rejected
from tacit.cli._reporting import charge_facts, made_now
from tacit.persistence import SavedModel, read, write
from tacit.persistence._folder import is_model
from tacit.persistence._values import restored_parameter
from tacit.privacy.ledger import labelled
from tacit.streaming import DurableStream, IncrementalERM
from tacit.tables import GrowingTable, Schema

__all__ = [
    "OWN_FILES",
    "Outputs",
    "ignored_rows",
    "learn",
    "opened_stream",
    "stream_estimator",
]

# Parameters that an option or the schema sets
FIXED = {
    "epsilon": "--epsilon",
    "delta": "--delta",
    "horizon": "--horizon",
    "rows_per_step": "--rows-per-step",
    "rows_per_person": "--rows-per-person",
    "method": "--method",
    "neighbors": "replace_one, which is the only choice",
    "estimator": "--model",
    "x_norm": "row_norm in the schema",
    "classes": "the target's categories in the schema",
    "y_range": "the target's range in the schema",
}
# Files that a state folder may contain before its first step
OWN_FILES = {"lock", "private-state", "private-state.partial"}
# Size of the blocks in which the last line of a file is searched, from the end
BLOCK = 2**16
# Largest number of categories or columns that a message names
MOST_NAMED = 8


def stream_estimator(
    schema: Schema, name: str, settings: dict[str, Any], **parameters: Any
) -> Any:
    """Return the estimator for the target of a schema, with checked parameters."""
    target = schema.target
    assert target is not None  # checked by schema_for
    found = classes_by(
        "stream_name", "tacit.streaming.online", "tacit.streaming.incremental"
    )
    make: Any = found[name, target.kind]
    inner: Any = linear_model.LogisticRegression
    inside = (inner(classes=target.labels, x_norm=schema.row_norm),)
    public: dict[str, Any] = {
        "x_norm": schema.row_norm,
        "classes": target.labels,
        "y_range": target.range,
    }
    model = make(*(inside if make is IncrementalERM else ()))
    known = model.get_params(deep=False)
    for setting in settings:
        if setting in FIXED:
            raise Rejected(f"--set {setting} is not possible; use {FIXED[setting]}.")
        if setting not in known:
            raise Rejected(f"{make.__name__} has no parameter {setting!r}.")
    if parameters.get("method") is None:
        parameters.pop("method", None)
    elif "method" not in known:
        raise Rejected(f"{make.__name__} has no --method; leave it out.")
    model.set_params(
        **parameters,
        **{key: value for key, value in public.items() if key in known},
        **{key: restored_parameter(key, value) for key, value in settings.items()},
    )
    is_seeded(model.random_state)  # reject an invalid seed before rows are read
    return model


def ignored_rows(schema: Schema) -> list[str]:
    """Return the conditions, from the schema, under which a row is ignored.

    A run never reports that it ignored a row, because that depends on private data.
    """
    target, columns = schema.target, schema.columns
    assert target is not None
    labels = [c for c in columns if c.kind == "category" and c.unseen == "refuse"]
    needed = [c.name for c in columns if c.kind == "number" and c.missing is None]
    found = []
    if target.kind == "number":
        found.append(f"{target.name} is missing or not a number")
    for column in [target] * (target.kind == "category") + labels:
        found.append(f"{column.name} is not one of {_named(column.categories)}")
    if needed:
        names = "one of " * (len(needed) > 1) + _named(needed)
        found.append(f'{names} is missing (missing = "refuse") or not a number')
    return found


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def opened_stream(model: Any, state: Path, ledger: Any) -> DurableStream:
    """Return the stream of a state folder; reject changed options."""
    try:
        return DurableStream(model, state, ledger=ledger)
    except OtherParameters as other:
        if "estimator" in other.names:  # the other names belong to another estimator
            options = ["--model and --target"]
        else:
            options = [FIXED.get(name, f"--set {name}") for name in other.names]
        raise Rejected(
            f"The stream in {state} began with other options; {', '.join(options)} "
            "must be unchanged."
        ) from None


@dataclass(frozen=True)
class Outputs:
    """Files that each release is written to, once the state of its step is saved.

    ``releases`` gets one JSON line per release, and each release replaces the model in
    ``folder``, with the schema and the label.
    """

    releases: Path | None
    folder: Path | None
    schema: Schema
    label: str

    def check(self, stream: DurableStream | None) -> None:
        """Reject outputs that contain anything but releases of this stream.

        None stands for a new stream, which has released nothing.
        """
        identity = None if stream is None else stream.identity
        if self.releases is not None and self.releases.exists():
            _check_last_line(self.releases, stream)
        if self.folder is None or not self.folder.exists():
            return
        facts = read(self.folder).facts if is_model(self.folder) else {}
        if identity is None or facts.get("stream") != identity:
            raise Rejected(
                f"{self.folder} contains no model of this stream; give another "
                "--output."
            )

    def write(self, stream: DurableStream, account: dict[str, Any]) -> None:
        """Write the latest release; a line that is already written is left as it is."""
        if self.releases is not None:
            _append(self.releases, _line(stream))
        if self.folder is None:
            return
        model = stream.model
        facts = {
            "label": self.label,
            **made_now(),
            "stream": stream.identity,
            "step": stream.n_steps,
            "rows": _rows_taken(stream),
            "features": self.schema.feature_names,
            "releases": [model.privacy_.to_dict()],
            **account,
        }
        saved = SavedModel(model, model.privacy_, self.schema.to_dict(), facts)
        write(self.folder, saved, overwrite=True)


def learn(
    stream: DurableStream,
    table: GrowingTable,
    outputs: Outputs,
    *,
    follow: bool,
    poll: float,
    after_step: Callable[[DurableStream], None],
) -> int | None:
    """Take steps until rows or the horizon end; return the number of waiting rows.

    None if the horizon is reached, because rows are then no longer counted.
    """
    horizon, rows = stream.model.horizon, stream.model.rows_per_step
    account: dict[str, Any] = {}
    if stream.n_steps:
        if stream.n_steps < horizon:  # check the table before anything is written
            table.take(stream.position, rows)
        account = _charge(stream)
        outputs.write(stream, account)
    while stream.n_steps < horizon:
        taken = table.take(stream.position, rows)
        if taken.X is None:
            if not follow:
                return taken.n_rows
            time.sleep(poll)
            continue
        with labelled(outputs.label):
            stream.partial_fit(taken.X, taken.y, position=taken.position)
        account = account or _charge(stream)
        # [durable:release] after the state, so that no release is of a lost step
        outputs.write(stream, account)
        after_step(stream)
    return None


def _rows_taken(stream: DurableStream) -> int:
    taken: int = stream.n_steps * stream.model.rows_per_step
    return taken


def _charge(stream: DurableStream) -> dict[str, Any]:
    return charge_facts(stream.ledger, stream.model.privacy_.entries[0].label)


def _line(stream: DurableStream) -> dict[str, Any]:
    """Return a release as plain data."""
    model = stream.model
    intercept = model.intercept_
    refit = getattr(model, "last_refit_", None)
    return {
        "stream": stream.identity,
        "step": stream.n_steps,
        "rows": _rows_taken(stream),
        **({} if refit is None else {"last_refit": refit}),
        "coef": model.coef_.tolist(),
        "intercept": getattr(intercept, "tolist", lambda: intercept)(),
    }


def _check_last_line(path: Path, stream: DurableStream | None) -> None:
    """Reject a file that the next release of the stream does not continue."""
    with open(path, "rb") as file:
        if stream is not None and stream.n_steps:
            _end_before(_line(stream), path, file)
        elif file.read(1):
            raise _other_lines(path)


def _append(path: Path, line: dict[str, Any]) -> None:
    """Append a release to a file, once, and complete a partly written line."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o666), "r+b") as file:
        end = _end_before(line, path, file)
        if end is None:
            return
        file.truncate(end)
        file.seek(end)
        file.write(_encoded(line))
        file.flush()
        os.fsync(file.fileno())


def _end_before(line: dict[str, Any], path: Path, file: IO[bytes]) -> int | None:
    """Return the offset at which a release belongs; None if it is already there."""
    last, end, rest = _last_line(file)
    if last is not None and last.get("stream") != line.get("stream"):
        raise _other_lines(path)
    step = line["step"] - 1 if last is None else last.get("step")
    if step == line["step"] and not rest:
        return None
    # only a partly written copy of this very line may be overwritten
    if step != line["step"] - 1 or not _encoded(line).startswith(rest):
        raise _other_lines(path)
    return end


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, allow_nan=False).encode() + b"\n"


def _other_lines(path: Path) -> Rejected:
    return Rejected(
        f"{path} does not end with one of the last two releases of this stream; give "
        "another --releases."
    )


def _last_line(file: IO[bytes]) -> tuple[dict[str, Any] | None, int, bytes]:
    """Return the last complete line of a file, the offset of its end, and the rest."""
    size = file.seek(0, os.SEEK_END)
    block = BLOCK
    while True:
        start = max(0, size - block)
        file.seek(start)
        text = file.read(size - start)
        end = text.rfind(b"\n") + 1
        begin = text.rfind(b"\n", 0, max(0, end - 1)) + 1
        if start == 0 or (end and begin):
            break
        block *= 4
    if not end:
        return None, start, text
    try:
        found = json.loads(text[begin:end])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        found = {}  # not a release
    return found, start + end, text[end:]
