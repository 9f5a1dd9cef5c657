"""What either library does in six situations in which noise or spends get lost.

``python -m benchmarks.audit_peers.promises`` prints the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.audit_peers.common import LIBRARIES, answered, arguments

FIELDS = ("situation", "outcome", "shown_by", "kept")


def main(argv: Sequence[str] | None = None) -> None:
    """Try every situation with both libraries."""
    quick = arguments(argv, __doc__).quick
    questions = [{"kind": "promises", "library": library} for library in LIBRARIES]
    answered("promises", questions, FIELDS, quick=quick)


if __name__ == "__main__":
    main()
