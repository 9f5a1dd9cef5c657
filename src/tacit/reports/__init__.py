"""Reports that people read: one HTML page, and a model card.

They are made from plain facts that are public already, read no rows and cost no budget.
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
