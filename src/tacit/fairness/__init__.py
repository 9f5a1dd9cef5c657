"""How fairly models treat groups, and what privacy can change about it.

`group_fairness` measures; `certify` bounds how far the figures of a model can be from
those of another near it, as a private model is from the one without noise. Everything
here looks from outside: it takes arrays and fitted models, and no solver or estimator
is imported. What is computed from private rows without noise is private data;
`private_certificate` charges for one that is not.
"""

from tacit.fairness._certificate import certify
from tacit.fairness._charged import plan_certificate, private_certificate
from tacit.fairness._compare import compare_models
from tacit.fairness._distances import noisy_gradient_distance
from tacit.fairness._models import certify_model
from tacit.fairness._notions import group_fairness
from tacit.fairness._simulated import certify_by_simulation

__all__ = [
    "certify",
    "certify_by_simulation",
    "certify_model",
    "compare_models",
    "group_fairness",
    "noisy_gradient_distance",
    "plan_certificate",
    "private_certificate",
]
