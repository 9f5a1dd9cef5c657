"""Pages about fairness and audits, which stand for themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.privacy.events import describe
from tacit.privacy.weak_budgets import budget_warnings
from tacit.reports import _charts, _words
from tacit.reports._audits import audits_of
from tacit.reports._facts import restored_report
from tacit.reports._fairness import GroupTable, table_of
from tacit.reports._templates import chart, environment

__all__ = ["audit_html", "fairness_charts", "fairness_html"]


def fairness_html(facts: Mapping[str, Any]) -> str:
    """Return a page on how a model treats groups, and what noise changed of it.

    Parameters
    ----------
    facts
        What ``tacit fairness --json`` prints: ``title``, ``target``, ``sensitive``,
        ``measured`` and ``certificate``, of which one may be None, as their ``to_dict``
        gives them, and where they are known ``created``, ``tacit`` and ``model``.

    Notes
    -----
    **Guarantee.** The page is a function of ``facts`` alone, contains no script and
    loads nothing. Where nothing was charged a banner says that it is private data.
    """
    fairness = table_of(facts, "facts")
    context = _page(facts, "Fairness") | {
        "fairness": fairness,
        "charts": fairness_charts((fairness,)),
    }
    if fairness.charge is not None:
        report = restored_report(fairness.charge, "certificate")
        context |= {
            "promise": report.guarantee,
            "warnings": [f"Here, {w}" for w in budget_warnings(report.guarantee)],
            "seeded": report.seeded,
            "fit_seeded": report.seeded,
            "assumptions": report.assumptions,
            "entries": [
                {
                    "label": entry.label,
                    "event": describe(entry.event),
                    "epsilon": entry.epsilon,
                }
                for entry in report.entries
            ],
        }
    return environment(html=True).get_template("fairness.html").render(context)


def audit_html(facts: Mapping[str, Any]) -> str:
    """Return a page on audits of a promise, and on membership attacks.

    Parameters
    ----------
    facts
        ``audits``, a list of what ``to_dict`` of `tacit.audit.EstimatorAudit`,
        `tacit.audit.OneRunAudit` and `tacit.audit.MembershipAttack` returned, or of
        what ``tacit audit --json`` printed, at most 50; ``title``, ``created`` and
        ``tacit`` where they are known.

    Notes
    -----
    **Guarantee.** The page is a function of ``facts`` alone, contains no script and
    loads nothing. Where an attack on rows is among them, a banner says that it is
    private data.
    """
    audits = audits_of(facts.get("audits"), "facts['audits']")
    context = _page(facts, "Audits") | {
        "audits": audits,
        "refuted": any(audit.refuted for audit in audits),
        "private": any(audit.private for audit in audits),
    }
    return environment(html=True).get_template("audits.html").render(context)


def _page(facts: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return what every page is told, of which no charge is known."""
    return {
        "facts": {name: facts.get(name) for name in ("created", "tacit", "model")},
        "title": _words.clean(facts.get("title", title)),
        "voided": False,
        "refuted": False,
        "warnings": [],
        "seeded": False,
        "fit_seeded": False,
    }


def fairness_charts(tables: Sequence[GroupTable]) -> dict[str, Any]:
    """Return a chart of the figures of groups for each table, by its name."""
    return {
        f"fairness{position}": _chart_of(table, f"fairness{position}")
        for position, table in enumerate(tables)
    }


def _chart_of(table: GroupTable, name: str) -> Any:
    return chart(
        name,
        f"Figures of groups: {table.notion}",
        "Dots are figures of the model; bars, where drawn, those without noise. "
        "The table below gives the figures.",
        lambda width: _charts.coefficient_chart(table.drawn, width, table.notion),
    )
