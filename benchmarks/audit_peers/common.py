"""Where the rows of these audits go, and how a library is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.peers.client import ENVIRONMENTS, PeerFailed
from benchmarks.tables import Results, arguments, code_of, markdown

__all__ = ["LIBRARIES", "RESULTS", "answered", "arguments", "ask"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = Results.beside(__file__)
WORKERS = 4  # attacks at a time
# The environment of each library; that of this one is the one that asks
LIBRARIES = {
    "diffprivlib": ENVIRONMENTS / "sklearn" / "bin" / "python",
    "tacit": Path(sys.executable),
}
# All code that rows follow from
OWN = ("attack", "densities", "evidence", "of_diffprivlib", "of_tacit", "settings")
PARTS = ("audit", "linear_model", "mechanisms", "solvers")
CODE = code_of(
    [HERE / f"{name}.py" for name in OWN]
    + [
        file
        for part in PARTS
        for file in sorted((ROOT / "src" / "tacit" / part).rglob("*.py"))
    ]
)


def ask(library: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the attack found that runs in the environment of a library."""
    python = LIBRARIES[library]
    if not python.is_file():
        raise PeerFailed(
            f"the environment of {library} is missing: "
            "python -m benchmarks.peers.install"
        )
    # one thread, as all have; the auditor is read from the sources in every case
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    paths = {"PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))}
    done = subprocess.run(
        [
            str(python),
            "-m",
            "benchmarks.audit_peers.attack",
            json.dumps({"library": library, **given}),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **one, **paths},
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerFailed(f"{library}, {given}: {last}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def _asked(question: str) -> dict[str, Any]:
    given = json.loads(question)
    return ask(given.pop("library"), given)


def answered(
    name: str,
    questions: list[dict[str, Any]],
    fields: tuple[str, ...],
    *,
    quick: bool,
) -> None:
    """Ask what no row of this code answers yet, write the rows, and print them all.

    A question names its library; the answer is a row, or a list of rows.
    """
    keys = [json.dumps(question, sort_keys=True) for question in questions]
    fields = ("library", *fields, "question", "code")
    holds = lambda row: row["code"] == CODE and row["question"] in keys  # noqa: E731
    with RESULTS.log(name, fields, holds, quick=quick) as log:
        done = {row["question"] for row in log.rows}
        wanted = [key for key in keys if key not in done]
        # threads that wait for processes
        with ThreadPoolExecutor(WORKERS) as pool:
            for key, answer in zip(wanted, pool.map(_asked, wanted), strict=True):
                found = answer["found"]
                for row in found if isinstance(found, list) else [found]:
                    words = {"library": answer["library"], **row}
                    log.append({**words, "question": key, "code": CODE})
        print(markdown({k: row.get(k) for k in fields[:-2]} for row in log.rows))
