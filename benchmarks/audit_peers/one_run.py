"""`tacit.audit.audit_one_run` on the classifiers of both libraries.

``python -m benchmarks.audit_peers.one_run``, a few fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.audit_peers.common import LIBRARIES, answered, arguments, ask

FIELDS = (
    "setting",
    "promised",
    "delta",
    "at_least",
    "right",
    "judged",
    "most_shown",
    "refuted",
)
CANARIES, QUICK_CANARIES = 1000, 200


def main(argv: Sequence[str] | None = None) -> None:
    """Fit each classifier once on canaries."""
    quick = arguments(argv, __doc__).quick
    n_canaries = QUICK_CANARIES if quick else CANARIES
    questions = [
        {"kind": "one_run", "name": name, "library": library, "runs": n_canaries}
        for library in LIBRARIES
        for name in ask(library, {"kind": "names"})["found"]
        if name.startswith("Logistic")
    ]
    answered("one_run", questions, FIELDS, quick=quick)


if __name__ == "__main__":
    main()
