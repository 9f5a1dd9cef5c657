"""The page of audits, made from the verdicts that the audits in the tests wrote down.

``python -m benchmarks.selfaudit LOG`` reads lines of JSON, prints what is missing and
rewrites ``docs/trust/self_audit.md``. It fails where a bound is above its claim or a
control is not detected, and, unless ``--partial`` is given, where a public name has no
verdict.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tables import markdown, rewrite, shown
from tests.excused import EXCUSED, subjects

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "trust" / "self_audit.md"

JUDGED = {
    "event": "event",
    "clopper-pearson": "threshold",
    "gaussian event": "event, Gaussian",
    "gaussian": "threshold, Gaussian",
}

Verdict = Mapping[str, Any]

SUBJECTS = {package: list(subjects(package)) for package in EXCUSED}


def read(path: Path) -> list[Verdict]:
    """Return the verdicts of a log; a later one of a test stands for an earlier one."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        verdict = json.loads(line)
        found[verdict["test"], verdict["name"], verdict["broken"]] = verdict
    return list(found.values())


def wrong(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return verdicts on which an audit would have failed."""
    return [v for v in verdicts if not v["bound"] <= v["claim"] < v["control"]]


def without_verdict(verdicts: Iterable[Verdict]) -> dict[str, list[str]]:
    """Return the public names of each package on which there is no verdict."""
    judged = {subject for verdict in verdicts for subject in verdict["subjects"]}
    missing = {
        package: [name for name in names if name not in judged]
        for package, names in SUBJECTS.items()
    }
    return {package: names for package, names in missing.items() if names}


def row(verdict: Verdict, name: str | None = None) -> dict[str, Any]:
    """Return one line of a table."""
    return {
        "audited": name or verdict["name"],
        "claim": verdict["claim"],
        "delta": verdict["delta"],
        "bound": f"{verdict['bound']:.3f}",
        "shown": f"{100 * tightness(verdict):.0f} %",
        "runs": verdict["runs"],
        "judged by": JUDGED[verdict["method"]],
        "control": verdict["broken"],
        "its bound": f"{verdict['control']:.3f}",
        "attack": f"`{module_of(verdict)}`",
    }


def tightness(verdict: Verdict) -> float:
    """Return the part of the claim that the attack showed."""
    return float(verdict["bound"] / verdict["claim"])


def module_of(verdict: Verdict) -> str:
    """Return the name of the file that has the attack."""
    return Path(verdict["test"].split("::")[0]).stem.removeprefix("test_")


def case_of(verdict: Verdict) -> str:
    """Return the parameters of a parametrized test, or nothing."""
    return str(verdict["test"]).partition("[")[2].removesuffix("]")


def all_rows(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return a line for each verdict; those that share a name also say their case."""
    times = Counter(verdict["name"] for verdict in verdicts)
    ordered = sorted(verdicts, key=lambda v: (v["name"].lower(), v["claim"], v["runs"]))
    return [
        row(verdict, f"{verdict['name']} ({case})")
        if times[verdict["name"]] > 1 and (case := case_of(verdict))
        else row(verdict)
        for verdict in ordered
    ]


def most_shown(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a table for each package: for each name the audit that showed most."""
    lines = []
    for package, names in SUBJECTS.items():
        rows = []
        for name in names:
            of_name = [v for v in verdicts if name in v["subjects"]]
            if of_name:
                best = max(of_name, key=tightness)
                rows.append({**row(best, f"`{name}`"), "audits": len(of_name)})
        if rows:
            lines += [f"### `{package}`", "", markdown(rows), ""]
    return lines


def attacks(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the docstring of each file of attacks."""
    files = sorted({verdict["test"].split("::")[0] for verdict in verdicts})
    lines = []
    for file in files:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        words = " ".join((ast.get_docstring(tree) or "").split())
        name = Path(file).stem.removeprefix("test_")
        lines.append(f"* `{name}`: {words.replace('``', '`')}")
    return lines


def page(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what the page has between its marks."""
    missing, failed = without_verdict(verdicts), wrong(verdicts)
    most = max(tightness(verdict) for verdict in verdicts)
    lines = [
        f"{len(verdicts)} verdicts. Bounds above their claim, or controls that were "
        f"not detected: {len(failed)}. The highest bound is {100 * most:.0f} % of its "
        "claim.",
        "",
    ]
    if missing:
        names = "; ".join(f"`{p}`: {', '.join(found)}" for p, found in missing.items())
        lines += [f"**This run was not whole.** No verdict yet on {names}.", ""]
    return [
        *lines,
        "## What was shown of each",
        "",
        *most_shown(verdicts),
        "## The attacks",
        "",
        *attacks(verdicts),
        "",
        "## All verdicts",
        "",
        markdown(all_rows(verdicts)),
        "",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrite the page and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--partial", action="store_true", help="some names may lack")
    given = parser.parse_args(argv)
    verdicts = read(given.log)
    rewrite(PAGE, page(verdicts))
    missing, failed = without_verdict(verdicts), wrong(verdicts)
    for package, names in missing.items():
        print(f"No verdict on {', '.join(names)} of {package}.")
    for verdict in failed:
        print(
            f"{verdict['name']}: claim {shown(verdict['claim'])}, bound "
            f"{shown(verdict['bound'])}, control {shown(verdict['control'])}."
        )
    print(f"{len(verdicts)} verdicts: see {PAGE.relative_to(ROOT)}.")
    return int(bool(failed) or (bool(missing) and not given.partial))


if __name__ == "__main__":
    raise SystemExit(main())
