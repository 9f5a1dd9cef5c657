"""Judging privacy claims from outside.

`replay` finds leaks around the mechanisms, in milliseconds and without chance;
`audit` finds mechanisms with too little noise, by training many times, and
`audit_estimator` does so for an estimator, by what its parameters guarantee, while
`audit_one_run` trains it once on many canaries; `membership_attack` asks which rows a
fitted model was trained on; the `precision_attack` finds noise whose last digits betray
the value. None of them proves privacy: they refute false claims. The package takes
callables and arrays and shares no code with what it judges, except the log in which
mechanisms note their releases.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.audit._replay import assert_replays, replay
    from tacit.audit.canaries import audit_one_run
    from tacit.audit.estimators import audit_estimator
    from tacit.audit.membership import membership_attack
    from tacit.audit.one_run import one_run_bound, one_run_p_value
    from tacit.audit.pairs import precision_attack, pushed_pair, worst_case_pair
    from tacit.audit.run import audit
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "assert_replays",
    "audit",
    "audit_estimator",
    "audit_one_run",
    "membership_attack",
    "one_run_bound",
    "one_run_p_value",
    "precision_attack",
    "pushed_pair",
    "replay",
    "worst_case_pair",
]
