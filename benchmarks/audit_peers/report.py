"""Tables in Markdown of audits of both libraries, from the files of results.

``python -m benchmarks.audit_peers.report`` prints the tables; ``--docs`` also rewrites
the page in the guide.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.audit_peers.common import RESULTS
from benchmarks.audit_peers.settings import CONFIDENCE
from benchmarks.tables import DOCS, Section, print_report, rewrite

PAGE = DOCS / "trust/audit_others.md"
HIDDEN = ("quick", "question", "code")

SECTIONS = (
    Section(
        "chosen",
        "Chosen neighbors",
        "All rows are zeros except for one, which is replaced by zeros. The score of a "
        "classifier is the exact ratio of the densities of its release under the "
        "noise that it adds; that of a regression is the size of its only "
        "coefficient. `at least` is the bound on epsilon, which holds with confidence "
        f"{CONFIDENCE:g} for each row; `hits` are the counts of the chosen event on "
        "the two sides, among the judged runs of each. The control is the same attack "
        "on a quarter as many fits with four times the epsilon: where it stays below "
        "the guarantee, this pair could not show that so much noise is missing.",
    ),
    Section(
        "estimators",
        "Audited by their parameters",
        "`audit_estimator` with 500 runs a side at epsilon 1, which knows "
        "nothing of either library but `fit`, `epsilon` and a bound on rows. It flips "
        "the label of one row, once at the bounds and once far beyond. Same "
        "confidence; `leaks`, if any, are attributes that distinguish the sides in "
        "every run.",
    ),
    Section(
        "one_run",
        "One run",
        "`audit_one_run` with a thousand canaries in as many columns, a single fit at "
        "epsilon 1: `right` are the right guesses among those made, `most shown` what "
        "so many canaries could show without noise. Same confidence. The linear "
        "regression of diffprivlib was left out: in a thousand columns its noise is on "
        "a million products.",
    ),
    Section(
        "promises",
        "Six situations",
        "The outcome in each situation, and the evidence for it. `kept` says whether "
        "the noise or the account was as privacy requires.",
    ),
)


def page(*, whole: bool) -> list[str]:
    """Return everything that was measured, in Markdown."""
    lines: list[str] = []
    for section in SECTIONS:
        rows = RESULTS.measured(section.name, whole=whole)
        lines += section.lines(
            [{k: v for k, v in row.items() if k not in HIDDEN} for row in rows]
        )
    return lines


def write(lines: Sequence[str]) -> None:
    """Rewrite the page in the documentation."""
    rewrite(PAGE, lines)


def main(argv: Sequence[str] | None = None) -> None:
    print_report(argv, __doc__, page, write)


if __name__ == "__main__":
    main()
