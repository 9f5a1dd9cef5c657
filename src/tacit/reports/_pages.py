"""The pages: facts in, text out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.privacy import Budget
from tacit.privacy.attacker import TradeOff
from tacit.privacy.events import describe
from tacit.privacy.weak_budgets import budget_warnings
from tacit.reports import _charts, _words
from tacit.reports._attacker_metrics import (
    CHANCES,
    RATES,
    curve_points,
    odds_of,
    roc_points,
)
from tacit.reports._facts import Facts
from tacit.reports._ledger import account_of
from tacit.reports._model import (
    panels_of,
    parameters_of,
    schema_of,
    selection_of,
    target_of,
)
from tacit.reports._templates import BETWEEN, BOTH, chart, environment
from tacit.reports._trust import fairness_charts

__all__ = ["card_html", "card_markdown", "report_html"]

MOST_CLASS_CHARTS = 6


def report_html(facts: Mapping[str, Any]) -> str:
    """Return the report of a fitted model as one self-contained HTML page.

    Parameters
    ----------
    facts
        Plain public data about the model, as the guide lists it. Every text in it is
        shown as text, whatever it contains.

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
    context["charts"] = _drawn(context) | fairness_charts(context["fairness"])
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


def _context(facts: Facts) -> dict[str, Any]:
    privacy, plain = facts.privacy, facts.plain
    account = account_of(plain["ledger"])
    whole = None
    if account is not None:
        stated = account.budget
        whole = Budget(stated["epsilon"], stated["delta"], stated["neighbors"])
    bound = TradeOff.of(privacy)
    total_bound = None if whole is None else TradeOff.of(whole)
    panels, hidden_panels = panels_of(facts)
    title, target = _words.clean(plain["title"]), target_of(plain["schema"])
    if target is not None:
        same = title == target
        title = f"Prediction of {target}" if same else f"{title}, predicting {target}"
    return {
        "facts": plain,
        "title": title,
        "releases": [
            {
                "label": "; ".join(entry.label for entry in part.entries),
                "promise": part.guarantee,
            }
            for part in facts.parts
        ],
        "uncounted": facts.uncounted,
        "voided": facts.voided,
        "refuted": any(audit.refuted for audit in facts.audits),
        "warnings": _warnings(
            privacy.guarantee, whole or facts.budget, facts.expected_rows
        ),
        "promise": privacy.guarantee,
        "spent": privacy.spent,
        "assumptions": [
            *privacy.assumptions,
            *(() if account is None else account.assumptions),
        ],
        "entries": [
            {
                "label": entry.label,
                "event": describe(entry.event),
                "epsilon": entry.epsilon,
                "seeded": entry.seeded,
            }
            for entry in privacy.entries
        ],
        "seeded": facts.seeded,
        "fit_seeded": privacy.seeded,
        "replaces": facts.replaces,
        "rows": facts.rows,
        "n_features": len(facts.features),
        "parameters": parameters_of(facts),
        "odds": odds_of(bound),
        "whole": whole,
        "total_odds": None if total_bound is None else odds_of(total_bound),
        "bounds": (bound, total_bound),
        "rates": RATES,
        "chances": CHANCES,
        "curve": curve_points(privacy),
        "account": account,
        "panels": panels,
        "hidden_panels": hidden_panels,
        "selection": selection_of(facts),
        "stream": plain["stream"] and {"last_refit": None, **plain["stream"]},
        "student": plain["student"],
        "side": plain["side"],
        "linear": plain["student"] is None and plain["side"] is None,
        "noise": plain["noise"],
        "score": plain["score"] and {"level": None, "rows": None, **plain["score"]},
        "schema": schema_of(plain["schema"]),
        "fairness": facts.fairness,
        "audits": facts.audits,
    }


def _warnings(guarantee: Budget, whole: Budget | None, rows: int | None) -> list[str]:
    """Return in what the guarantees of a fit and of its data set are weak."""
    found = [f"Here, {warning}" for warning in budget_warnings(guarantee, rows)]
    if whole is not None:
        found += [
            f"In the budget of the data set, {warning}"
            for warning in budget_warnings(whole, rows)
        ]
    return found


def _drawn(context: dict[str, Any]) -> dict[str, Any]:
    """Return the charts by name, each a list of (class of its width, drawing)."""
    guarantee = context["promise"]
    point = {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
    fit, whole = context["bounds"]
    rocs = roc_points(fit), None if whole is None else roc_points(whole)
    account, panels = context["account"], context["panels"]
    charts: dict[str, Any] = {}

    def draw(name: str, *given: Any) -> None:
        charts[name] = chart(name, *given)

    draw(
        "attacker",
        "What is left to an attacker",
        "The largest share of people an attacker can rightly find, against the share "
        "wrongly accused. The table below gives the figures.",
        lambda width: _charts.attacker_chart(*rocs, min(width, BETWEEN)),
    )
    if context["curve"]:
        draw(
            "curve",
            "Every epsilon and delta that hold for what is released",
            "Delta falls as epsilon grows; the promise is marked. The table below "
            "gives the figures.",
            lambda width: _charts.curve_chart(context["curve"], point, width),
        )
    if account is not None and account.steps:
        draw(
            "spend",
            "Spend of the whole data set",
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
    several = len(panels) > 1
    for position, panel in enumerate(panels[: MOST_CLASS_CHARTS if several else 1]):
        if panel.drawn:
            draw(
                f"coefficients{position}",
                f"Largest coefficients: {panel.name}",
                "Dots are coefficients; bars, where drawn, their noise. The table "
                "below gives the figures.",
                lambda width, panel=panel: _charts.coefficient_chart(
                    panel.drawn, width
                ),
                (BETWEEN,) if several else BOTH,
            )
    return charts
