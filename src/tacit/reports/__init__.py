"""Reports that people read: one HTML page, and a model card.

They are made from plain facts, read no rows and cost no budget. What a report or a card
tells was released before. Figures of fairness that were not charged and attacks on rows
are private data, and so are pages with them: a banner says so.
A page holds its charts as SVG and loads nothing: no script, no font, no picture.
"""

from tacit.reports._pages import card_html, card_markdown, report_html
from tacit.reports._trust import audit_html, fairness_html

__all__ = [
    "audit_html",
    "card_html",
    "card_markdown",
    "fairness_html",
    "report_html",
]
