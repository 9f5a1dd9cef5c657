"""Seeded fits of two trees, compared bit for bit.

``python -m tools.same_fits OTHER_TREE`` runs the fits of `tools.fits` with the package
of this tree and with that of another, such as a worktree of an earlier revision, and
compares what they release. The exit status is 1 on a difference that is not argued, and
on a fit that fails; a fit of something that the other tree does not have is new, and a
combination of an estimator and a solver that both trees reject is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tools.fits import FITS, REJECTED, Absent

ROOT = Path(__file__).resolve().parents[1]

# What is compared of a released object, where it has it
RELEASED = """
    coef_ intercept_ classes_ weights_ play_ expert_ mean_ scale_ ranges_ lower_ upper_
    selected_features_ support_ x_norm_ feature_bounds_ factors_ items_ candidates_
    best_params_ best_score_ best_index_ best_estimator_ labels_ questions_ selection_
    n_steps_ last_refit_ remaining_ queries answers refusals values votes value
    n_queried low high intercept_low intercept_high lower upper change distance failure
    items scores counts sums offsets level vectors privacy_ privacy
"""
# What a tree without the subject of a fit prints for it
ABSENT = "absent"
# Fits that differ from those of 22ccbce, and why they may
SENTENCE = "the sentences of a report are in the key of its noise, and one was reworded"
ARGUED = {
    "search": SENTENCE,
    "search of a small budget": SENTENCE,
    "forecast": "a forecast draws floats, so that a plan is faster than its fit",
}
# What a tree of before may call it
BEFORE = {"n_queried": "n_asked"}
# What is compared of a report on privacy, as saved files have it
REPORTED = ("promise", "spent", "seeded")
# Asks each tree for its digests, after a look that it is the one that was meant
WORKER = """
import sys, tacit
from tools.same_fits import print_digests
assert tacit.__file__.startswith(sys.argv[1]), tacit.__file__
print_digests()
"""


def value_of(thing: Any, name: str) -> Any:
    """Return an attribute by its name or the one of before; None if there is none."""
    return getattr(thing, name, getattr(thing, BEFORE.get(name, name), None))


def released(thing: Any) -> bytes:
    """Return the bytes of what is released, with the types and shapes of arrays."""
    if sparse.issparse(thing):
        thing = thing.toarray()
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        return f"{thing.dtype.str}{thing.shape}".encode() + thing.tobytes()
    if isinstance(thing, np.ndarray | list | tuple):
        return b"(" + b",".join(map(released, thing)) + b")"
    if isinstance(thing, dict):
        return released(sorted(thing.items()))
    if isinstance(thing, float):
        return float(thing).hex().encode()
    if thing is None or isinstance(thing, bool | int | str | np.generic):
        return repr(thing).encode()
    if hasattr(thing, "entries"):
        report = thing.to_dict()
        events = [entry["event"] for entry in report["entries"]]
        return released([events, *(report[name] for name in REPORTED)])
    found = {
        name: value
        for name in RELEASED.split()
        if (value := value_of(thing, name)) is not None and not callable(value)
    }
    return b";".join(name.encode() + released(found[name]) for name in found)


def digest(fit: Any) -> str:
    """Return the digest of what a fit released, or what became of it instead."""
    try:
        content = fit()
        found = released(content)
    except Absent:
        return ABSENT
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}".splitlines()[0]
    if not found:
        return "failed: nothing that it released is known"
    return REJECTED if content is REJECTED else sha256(found).hexdigest()[:16]


def print_digests() -> None:
    """Print the name and the digest of each fit, with the package of this process."""
    warnings.simplefilter("ignore")
    for name, fit in FITS.items():
        print(name, digest(fit), sep="\t", flush=True)


def of_tree(tree: Path) -> dict[str, str]:
    """Return the digests of all fits with the package of a tree."""
    source = tree.resolve() / "src"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    path = f"{source}{os.pathsep}{ROOT}"
    printed = subprocess.run(
        [sys.executable, "-c", WORKER, str(source)],
        env=os.environ | threads | {"PYTHONPATH": path},
        cwd=tempfile.gettempdir(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return dict(line.split("\t") for line in printed.splitlines())


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each fit and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, help="another tree of this repository")
    other = parser.parse_args(arguments).other
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(of_tree, (ROOT, other))
    compared = [name for name in FITS if {ours[name], theirs[name]} != {REJECTED}]
    outcomes: Counter[str] = Counter()
    for name in compared:
        outcome = compare(name, ours[name], theirs[name])
        outcomes[outcome] += 1
        found = ours[name]
        if outcome in ("argued", "DIFFERS"):
            found += f" here, {theirs[name]} there"
        print(f"{name:50} {outcome:8} {found} {ARGUED.get(name, '')}".rstrip())
    print(", ".join(f"{outcomes[each]} {each}" for each in outcomes))
    return int(outcomes["DIFFERS"] > 0)


def compare(name: str, ours: str, theirs: str) -> str:
    """Return what became of a fit whose digests in both trees are these."""
    if ours.startswith("failed") or ours == ABSENT:
        return "DIFFERS"
    if ours == theirs:
        return "same"
    if theirs == ABSENT:
        return "new"
    return "argued" if name in ARGUED and "failed" not in theirs else "DIFFERS"


if __name__ == "__main__":
    sys.exit(main())
