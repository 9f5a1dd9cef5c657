"""Judging privacy claims from outside.

`replay` finds leaks around the mechanisms, in milliseconds and without chance;
`audit` finds mechanisms with too little noise, by training many times, and
`audit_estimator` does so for an estimator, by what its parameters promise; the
`precision_attack` finds noise whose last digits betray the value. None of them proves
privacy: they refute false claims. The package takes callables and arrays and shares no
code with what it judges, save the tape on which mechanisms note their releases.
"""

from tacit.audit._replay import ReplayEntry, ReplayReport, assert_replays, replay
from tacit.audit.bounds import (
    EpsilonBound,
    clopper_pearson_bound,
    clopper_pearson_lower,
    clopper_pearson_upper,
    gaussian_bound,
    gaussian_delta,
    gaussian_epsilon,
)
from tacit.audit.estimators import EstimatorAudit, audit_estimator
from tacit.audit.pairs import (
    Pair,
    PrecisionAttack,
    precision_attack,
    pushed_pair,
    worst_case_pair,
)
from tacit.audit.run import AuditResult, audit

__all__ = [
    "AuditResult",
    "EpsilonBound",
    "EstimatorAudit",
    "Pair",
    "PrecisionAttack",
    "ReplayEntry",
    "ReplayReport",
    "assert_replays",
    "audit",
    "audit_estimator",
    "clopper_pearson_bound",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "gaussian_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "precision_attack",
    "pushed_pair",
    "replay",
    "worst_case_pair",
]
