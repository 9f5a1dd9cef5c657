"""Reports, model cards, and pages about fairness and audits.

Pages are functions of plain public facts: they read no rows and cost no budget. The
facts of a report or a card were released before. Fairness figures that were not charged
and attacks on rows are private data, and a banner on their pages says so. A page
contains its charts as SVG and loads nothing: no script, no font, no image.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.reports._pages import (
        audit_html,
        card_html,
        card_markdown,
        fairness_html,
        report_html,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "audit_html",
    "card_html",
    "card_markdown",
    "fairness_html",
    "report_html",
]
