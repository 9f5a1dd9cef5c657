"""Pages about fairness and audits, which stand for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.privacy.events import describe
from tacit.reports import _charts, _words
from tacit.reports._facts import restored_report
from tacit.reports._fairness import GroupTable, table_of
from tacit.reports._templates import chart, environment

__all__ = ["fairness_charts", "fairness_html"]


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
    known = {name: facts.get(name) for name in ("created", "tacit", "model")}
    context: dict[str, Any] = {
        "facts": known,
        "title": _words.clean(facts["title"]) if "title" in facts else "Fairness",
        "fairness": fairness,
        "charts": fairness_charts(fairness),
        "voided": False,
        "seeded": False,
        "fit_seeded": False,
    }
    if fairness.charge is not None:
        report = restored_report(fairness.charge, "certificate")
        context |= {
            "promise": report.promise,
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


def fairness_charts(fairness: GroupTable | None) -> dict[str, Any]:
    """Return the chart of the figures of groups, by its name; none without them."""
    if fairness is None:
        return {}
    return {
        "fairness": chart(
            "fairness",
            f"Figures of groups: {fairness.notion}",
            "Dots are figures of the model; bars, where drawn, those without noise. "
            "The table below gives the figures.",
            lambda width: _charts.coefficient_chart(
                fairness.drawn, width, fairness.notion
            ),
        )
    }
