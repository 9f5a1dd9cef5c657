"""Facts of models that were never trained, for pages to be made of."""

from dataclasses import replace

from tacit._release import rows_note
from tacit.privacy import Budget, Composed, GaussianNoise, Ledger, Repeated
from tacit.tables import Schema

FEATURES = [
    "age", "sex=female", "sex=male", "systolic_pressure", "heart_rate", "creatinine",
    "sodium", "admission=emergency", "admission=planned", "previous_admissions",
    "diabetes", "heart_failure", "copd", "days_in_hospital", "medicines",
    "discharge=home", "discharge=care_home", "distance_km",
]  # fmt: skip

SCHEMA = Schema.from_dict(
    {
        "version": 1,
        "row_norm": 3.0,
        "target": {
            "name": "readmitted",
            "kind": "category",
            "categories": ["stayed home", "readmitted"],
        },
        "columns": {
            "age": {
                "kind": "number",
                "range": [0, 120],
                "missing": "refuse",
                "source": "public",
                "confirmed_by": "m.keller",
            },
            "sex": {
                "kind": "category",
                "categories": ["female", "male"],
                "unseen": "refuse",
                "source": "public",
                "confirmed_by": "m.keller",
            },
            "creatinine": {
                "kind": "number",
                "range": [0.2, 15.0],
                "missing": 1.0,
                "source": "public",
                "confirmed_by": "lab handbook",
            },
        },
    }
).to_dict()

FIT = Composed((GaussianNoise(29.9), Repeated(GaussianNoise(23.5), 30)))


def privacy(*, seeded=False, budget=None, event=FIT, label="readmission"):
    budget = budget or Budget(epsilon=1.0, delta=1e-6)
    ledger = Ledger(budget)
    ledger.charge(event, label, seeded=seeded)
    assumptions = (
        "rows are clipped to L2 norm 3 (chosen without looking at the data)",
        "the number of rows is public",
    )
    notes = (rows_note(48211),)
    return replace(ledger.report(assumptions), notes=notes).to_dict()


def record(seq, kind, **more):
    return {
        "seq": seq,
        "kind": kind,
        "when": f"2026-0{1 + seq % 9}-1{seq % 10}T09:3{seq % 6}:00+00:00",
        "who": "m.keller",
        "analyst": "cardiology",
        "label": "",
        "epsilon": None,
        "event": None,
        "promise": None,
        "seeded": False,
        "refers_to": None,
        "reason": "",
        "hash": f"{seq:064x}",
        "spent_after": None,
        **more,
    }


def ledger():
    rows = [
        ("open", "", None, 0.0, {}),
        ("allow", "cardiology", None, 0.0, {"reason": "half of the budget"}),
        ("charge", "mean age", 0.1, 0.1, {}),
        ("charge", "age by ward", 0.3, 0.34, {"who": "j.ortiz", "analyst": "quality"}),
        ("reserve", "readmission, trial", 0.5, 0.71, {}),
        ("cancel", "readmission, trial", None, 0.34, {"refers_to": 4}),
        ("charge", "readmission", 1.0, 1.12, {}),
        (
            "void",
            "mean age",
            None,
            1.12,
            {"refers_to": 2, "reason": "computed on the wrong export"},
        ),
        ("reserve", "length of stay", 0.8, 1.58, {"who": "j.ortiz"}),
    ]
    return {
        "dataset": "hospital-2026",
        "budget": {"epsilon": 3.0, "delta": 1e-6, "neighbors": "replace_one"},
        "spent": 1.58,
        "records": [
            record(seq, kind, label=label, epsilon=epsilon, spent_after=spent, **more)
            for seq, (kind, label, epsilon, spent, more) in enumerate(rows)
        ],
    }


def weights(n, seed=0):
    """Numbers of both signs and falling size, the same every time."""
    return [(-1) ** (j * 7 % 3) * 2.4 / (1 + (j * 5 + seed) % n) for j in range(n)]


def facts(**changes):
    coef = [weights(len(FEATURES))]
    return {
        "title": "Readmission within 30 days",
        "created": "2026-11-15T14:03:22+00:00",
        "tacit": "0.1.0",
        "estimator": "LogisticRegression",
        "parameters": {"epsilon": 1.0, "x_norm": 3.0, "random_state": None},
        "rows": 48211,
        "dataset": "hospital-2026",
        "privacy": privacy(),
        "features": FEATURES,
        "classes": ["stayed home", "readmitted"],
        "coef": coef,
        "intercept": [-1.3],
        "noise": {
            "level": 0.95,
            "low": [[w - 0.21 for w in coef[0]]],
            "high": [[w + 0.21 for w in coef[0]]],
            "covers": "noise",
            "how": "The noise of the last step is Gaussian with a known deviation.",
        },
        "score": {
            "measure": "accuracy",
            "value": 0.782,
            "low": 0.764,
            "high": 0.8,
            "epsilon": 0.2,
            "rows": "rows held out before the fit",
        },
        "ledger": ledger(),
        "schema": SCHEMA,
    } | changes
