"""Fairness of groups, and how much privacy can change it.

`group_fairness` measures; `certify` bounds how far the figures of a model can be from
those of another with similar weights, such as a private model and the one without
noise. Functions take arrays and fitted models, and import no solver or estimator.
Figures from private rows without noise are private data; `private_certificate`
releases one that is charged.
"""

from typing import TYPE_CHECKING

from tacit._lazy import lazy_names

if TYPE_CHECKING:
    from tacit.fairness._certificate import certify
    from tacit.fairness._charged import plan_certificate, private_certificate
    from tacit.fairness._compare import compare_models
    from tacit.fairness._distances import noisy_gradient_distance
    from tacit.fairness._margins import linear_margins
    from tacit.fairness._models import certify_model, weight_distance
    from tacit.fairness._notions import group_fairness
    from tacit.fairness._simulated import certify_by_simulation
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "certify",
    "certify_by_simulation",
    "certify_model",
    "compare_models",
    "group_fairness",
    "linear_margins",
    "noisy_gradient_distance",
    "plan_certificate",
    "private_certificate",
    "weight_distance",
]
