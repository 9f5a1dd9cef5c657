"""How fairly models treat groups, and what privacy can change about it.

`group_fairness` measures; `certify` bounds how far the figures of a model can be from
those of another near it, as a private model is from the one without noise. Everything
here looks from outside: it takes arrays and fitted models, and no solver or estimator
is imported. What is computed from private rows without noise is private data;
`private_certificate` charges for one that is not.
"""

from tacit.fairness._bounds import BOUNDS
from tacit.fairness._certificate import FairnessCertificate, certify
from tacit.fairness._charged import (
    CertificatePlan,
    plan_certificate,
    private_certificate,
)
from tacit.fairness._compare import ModelComparison, compare_models
from tacit.fairness._distances import (
    expected_flips,
    minibatch_distance,
    noisy_gradient_distance,
    output_perturbation_distance,
)
from tacit.fairness._groups import LEAST_ROWS, NOTIONS, Group
from tacit.fairness._margins import Margins, linear_margins
from tacit.fairness._models import WeightDistance, certify_model, weight_distance
from tacit.fairness._notions import (
    FairnessForm,
    GroupFairness,
    fairness_form,
    group_fairness,
)
from tacit.fairness._printed import printed_distance, truncated_chernoff
from tacit.fairness._simulated import certify_by_simulation

__all__ = [
    "BOUNDS",
    "LEAST_ROWS",
    "NOTIONS",
    "CertificatePlan",
    "FairnessCertificate",
    "FairnessForm",
    "Group",
    "GroupFairness",
    "Margins",
    "ModelComparison",
    "WeightDistance",
    "certify",
    "certify_by_simulation",
    "certify_model",
    "compare_models",
    "expected_flips",
    "fairness_form",
    "group_fairness",
    "linear_margins",
    "minibatch_distance",
    "noisy_gradient_distance",
    "output_perturbation_distance",
    "plan_certificate",
    "printed_distance",
    "private_certificate",
    "truncated_chernoff",
    "weight_distance",
]
