"""Chosen neighbors and the best attack on them, on both libraries.

``python -m benchmarks.audit_peers.chosen``, which goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.audit_peers.attack import KINDS
from benchmarks.audit_peers.common import LIBRARIES, answered, arguments

FIELDS = (
    "model",
    "setting",
    "promised",
    "delta",
    "at_least",
    "hits",
    "judged",
    "control_at_least",
    "refuted",
)
QUICK_RUNS = 200


def main(argv: Sequence[str] | None = None) -> None:
    """Attack every setting of both libraries."""
    quick = arguments(argv, __doc__).quick
    questions = [
        {
            "kind": kind,
            "name": setting.name,
            "library": library,
            "runs": QUICK_RUNS if quick else setting.runs,
        }
        for kind, (settings, _) in KINDS.items()
        for setting in settings
        for library in LIBRARIES
    ]
    answered("chosen", questions, FIELDS, quick=quick)


if __name__ == "__main__":
    main()
