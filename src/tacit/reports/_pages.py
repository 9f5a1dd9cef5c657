"""The pages: reports, cards, fairness and audits as functions of plain facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacit.privacy import Budget, PrivacyReport
from tacit.privacy.attacker import TradeOff, curve_grid, rate_grid
from tacit.privacy.budget import budget_warnings
from tacit.privacy.event_data import describe
from tacit.reports import _charts
from tacit.reports._audits import audits_of
from tacit.reports._charts import BETWEEN, BOTH, chart
from tacit.reports._facts import Facts, restored_report
from tacit.reports._fairness import GroupTable, table_of
from tacit.reports._format import clean, environment
from tacit.reports._ledger import account_of
from tacit.reports._model import (
    Panel,
    panels_of,
    parameters_of,
    schema_of,
    selection_of,
    target_of,
)
from tacit.reports._shape_charts import shape_charts

__all__ = ["audit_html", "card_html", "card_markdown", "fairness_html", "report_html"]

MOST_CLASS_CHARTS = 6

# False-positive rates and failure probabilities that are tabulated
RATES = (0.001, 0.01, 0.1)
CHANCES = (0.05, 0.001)


def report_html(facts: Mapping[str, Any]) -> str:
    """Return the report of a fitted model as one self-contained HTML page.

    Parameters
    ----------
    facts
        Plain public data about the model, as the guide lists it. Every string in
        it is escaped, so it is shown as it is.

    Notes
    -----
    **Guarantee.** The page is a function of ``facts`` alone, so it is as private as
    they are. It contains no script and loads nothing. Under ``add_or_remove_one`` the
    number of rows is left out, and the value of a fixed seed always is.

    Examples
    --------
    >>> from tacit.privacy import Budget, GaussianNoise, Ledger
    >>> from tacit.reports import card_markdown
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> entry = ledger.charge(GaussianNoise(multiplier=10.0), "risk score")
    >>> facts = {
    ...     "title": "Risk score",
    ...     "estimator": "Ridge",
    ...     "privacy": ledger.report().to_dict(),
    ...     "features": ["age", "dose"],
    ...     "coef": [[0.2, -1.0]],
    ...     "intercept": [0.1],
    ... }
    >>> print(card_markdown(facts).splitlines()[0])
    # Model card: Risk score
    """
    context = _context(Facts.of(facts))
    context["charts"] = _drawn(context) | _fairness_charts(context["fairness"])
    context["charts"] |= shape_charts(context["shapes"])
    return environment(html=True).get_template("report.html").render(context)


def card_html(facts: Mapping[str, Any]) -> str:
    """Return the model card as one self-contained HTML page.

    Parameters
    ----------
    facts
        As for `report_html`.
    """
    context = _context(Facts.of(facts))
    return environment(html=True).get_template("card.html").render(context)


def card_markdown(facts: Mapping[str, Any]) -> str:
    """Return the model card in Markdown.

    Parameters
    ----------
    facts
        As for `report_html`. Pipes, backticks, brackets and markup in it are escaped.
    """
    context = _context(Facts.of(facts))
    return environment(html=False).get_template("card.md").render(context)


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
        "charts": _fairness_charts((fairness,)),
    }
    if fairness.charge is not None:
        report = restored_report(fairness.charge, "certificate")
        context |= _charge_context(report) | {
            "warnings": _warnings(report.guarantee, None, None),
            "seeded": report.seeded,
            "assumptions": report.assumptions,
            "notes": report.notes,
        }
    return environment(html=True).get_template("fairness.html").render(context)


def audit_html(facts: Mapping[str, Any]) -> str:
    """Return a page on privacy audits and membership attacks.

    Parameters
    ----------
    facts
        ``audits``, a list of what ``to_dict`` of `audit_estimator`,
        `audit_one_run` and `membership_attack` return, or of
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


def _context(facts: Facts) -> dict[str, Any]:
    """Return what the templates of reports and cards read."""
    # long: one entry for each name in the template
    privacy, plain = facts.privacy, facts.plain
    account = account_of(plain["ledger"])
    whole = None
    if account is not None:
        stated = account.budget
        whole = Budget(stated["epsilon"], stated["delta"], stated["neighbors"])
    bound = TradeOff.of(privacy)
    total_bound = None if whole is None else TradeOff.of(whole)
    return {
        **_model_context(facts),
        **_charge_context(privacy),
        "facts": plain,
        "releases": [
            {
                "label": "; ".join(entry.label for entry in part.entries),
                "guarantee": part.guarantee,
            }
            for part in facts.parts
        ],
        "uncounted": facts.uncounted,
        "voided": facts.voided,
        "refuted": any(audit.refuted for audit in facts.audits),
        "warnings": _warnings(
            privacy.guarantee, whole or facts.budget, facts.expected_rows
        ),
        "spent": privacy.spent,
        "assumptions": [
            *privacy.assumptions,
            *(() if account is None else account.assumptions),
        ],
        "notes": privacy.notes,
        "seeded": facts.seeded,
        "replaces": facts.replaces,
        "rows": facts.rows,
        "attacker": attacker_limits(bound),
        "whole": whole,
        "total_attacker": None if total_bound is None else attacker_limits(total_bound),
        "bounds": (bound, total_bound),
        "rates": RATES,
        "chances": CHANCES,
        "curve": curve_points(privacy),
        "account": account,
        "fairness": facts.fairness,
        "audits": facts.audits,
    }


def _model_context(facts: Facts) -> dict[str, Any]:
    """Return what is known of the model, apart from its privacy."""
    plain = facts.plain
    panels, hidden_panels = panels_of(facts)
    title, target = clean(plain["title"]), target_of(plain["schema"])
    if target is not None:
        same = title == target
        title = f"Prediction of {target}" if same else f"{title}, predicting {target}"
    return {
        "title": title,
        "n_features": len(facts.features),
        "parameters": parameters_of(facts),
        "panels": panels,
        "hidden_panels": hidden_panels,
        "selection": selection_of(facts),
        "stream": plain["stream"] and {"last_refit": None, **plain["stream"]},
        "student": plain["student"],
        "side": plain["side"],
        "shapes": facts.shapes,
        "linear": all(plain[name] is None for name in ("student", "side", "shapes")),
        "noise": plain["noise"],
        "score": plain["score"] and {"level": None, "rows": None, **plain["score"]},
        "schema": schema_of(plain["schema"]),
    }


def _charge_context(report: PrivacyReport) -> dict[str, Any]:
    """Return what was charged for, as reports and pages of fairness show it."""
    return {
        "guarantee": report.guarantee,
        "fit_seeded": report.seeded,
        "entries": [
            {
                "label": entry.label,
                "event": describe(entry.event),
                "epsilon": entry.epsilon,
                "seeded": entry.seeded,
            }
            for entry in report.entries
        ],
    }


def _page(facts: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return the context of a page about which no charge is known."""
    return {
        "facts": {name: facts.get(name) for name in ("created", "tacit", "model")},
        "title": clean(facts.get("title", title)),
        "voided": False,
        "refuted": False,
        "warnings": [],
        "seeded": False,
        "fit_seeded": False,
    }


def _warnings(guarantee: Budget, whole: Budget | None, rows: int | None) -> list[str]:
    """Return in what the guarantees of a fit and of its data set are weak."""
    found = [f"This release: {warning}" for warning in budget_warnings(guarantee, rows)]
    if whole is not None:
        found += [
            f"Budget of the data set: {warning}"
            for warning in budget_warnings(whole, rows)
        ]
    return found


@dataclass(frozen=True)
class AttackerLimits:
    """Bounds on the best attacker who starts at 50%.

    Parameters
    ----------
    accuracy
        How often the attacker guesses right.
    found
        Largest true-positive rate at each of ``RATES``.
    right
        Precision, the fraction of accusations that are right, at each of ``RATES``.
    belief
        Largest posterior probability, except with each of the probabilities in
        ``CHANCES``.
    """

    accuracy: float
    found: tuple[float, ...]
    right: tuple[float, ...]
    belief: tuple[float, ...]


def attacker_limits(bound: TradeOff) -> AttackerLimits:
    """Return the tabulated bounds of a trade-off."""
    rates = np.array(RATES)
    return AttackerLimits(
        bound.accuracy(),
        tuple(map(float, bound.power(rates))),
        tuple(map(float, bound.precision(rates))),
        tuple(bound.posterior(chance) for chance in CHANCES),
    )


def roc_points(bound: TradeOff) -> list[dict[str, float]]:
    """Return points of the largest ROC curve, dense where it bends."""
    rates = rate_grid()
    return [
        {"false": round(float(a), 6), "true": round(float(b), 6)}
        for a, b in zip(rates, bound.power(rates), strict=True)
    ]


def curve_points(report: PrivacyReport) -> list[dict[str, float]]:
    """Return points of a privacy curve, to well below the delta of the guarantee."""
    epsilons, deltas = curve_grid(report, n=90)
    return [
        {"epsilon": float(e), "delta": float(d)}
        for e, d in zip(epsilons, deltas, strict=True)
    ]


def _drawn(context: dict[str, Any]) -> dict[str, Any]:
    """Return the charts by name, each a list of (class of its width, drawing)."""
    guarantee = context["guarantee"]
    point = {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
    fit, whole = context["bounds"]
    rocs = roc_points(fit), None if whole is None else roc_points(whole)
    account = context["account"]
    charts = {
        "attacker": chart(
            "attacker",
            "Limits on an attacker",
            "The largest percentage of people an attacker can detect, against the "
            "percentage of false alarms. The table below gives the figures.",
            lambda width: _charts.attacker_chart(*rocs, min(width, BETWEEN)),
        )
    }
    if context["curve"]:
        charts["curve"] = chart(
            "curve",
            "Every pair of epsilon and delta that holds for this release",
            "Delta falls as epsilon grows; the guarantee is marked. The table below "
            "gives the figures.",
            lambda width: _charts.curve_chart(context["curve"], point, width),
        )
    if account is not None and account.steps:
        charts["spend"] = chart(
            "spend",
            "Budget of the whole data set",
            "Epsilon spent after each record of the ledger, and the budget as a line. "
            "The table below gives the figures.",
            lambda width: _charts.spend_chart(
                account.steps,
                account.marks,
                account.budget["epsilon"],
                account.last,
                width,
            ),
        )
    return charts | _coefficient_charts(context["panels"])


def _coefficient_charts(panels: Sequence[Panel]) -> dict[str, Any]:
    """Return a chart of the coefficients of each of the first outputs, by its name."""
    several = len(panels) > 1
    shown = panels[: MOST_CLASS_CHARTS if several else 1]
    return {
        f"coefficients{position}": chart(
            f"coefficients{position}",
            f"Largest coefficients: {panel.name}",
            "Dots are coefficients; bars, where drawn, their noise. The table below "
            "gives the figures.",
            partial(_charts.coefficient_chart, panel.drawn),
            (BETWEEN,) if several else BOTH,
        )
        for position, panel in enumerate(shown)
        if panel.drawn
    }


def _fairness_charts(tables: Sequence[GroupTable]) -> dict[str, Any]:
    """Return a chart of the figures of groups for each table, by its name."""
    return {
        f"fairness{position}": chart(
            f"fairness{position}",
            f"Figures of groups: {table.notion}",
            "Dots are figures of the model; bars, where drawn, those without noise. "
            "The table below gives the figures.",
            partial(_charts.coefficient_chart, table.drawn, title=table.notion),
        )
        for position, table in enumerate(tables)
    }
