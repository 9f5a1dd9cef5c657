"""`tacit.audit.audit_estimator` on the models of both libraries.

``python -m benchmarks.audit_peers.estimators``, which goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.audit_peers.common import LIBRARIES, answered, arguments, ask

FIELDS = (
    "setting",
    "promised",
    "delta",
    "at_least",
    "hits",
    "judged",
    "leaks",
    "refuted",
)
RUNS, QUICK_RUNS = 500, 100


def main(argv: Sequence[str] | None = None) -> None:
    """Audit the estimators of both libraries by their parameters."""
    quick = arguments(argv, __doc__).quick
    runs = QUICK_RUNS if quick else RUNS
    questions = [
        {"kind": "estimator", "name": name, "library": library, "runs": runs}
        for library in LIBRARIES
        for name in ask(library, {"kind": "names"})["found"]
    ]
    answered("estimators", questions, FIELDS, quick=quick)


if __name__ == "__main__":
    main()
