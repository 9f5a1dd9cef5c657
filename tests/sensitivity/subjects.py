"""All that is private in the package, and why what is left out needs no search."""

from tests.sensitivity.asking import labelers, procedures, recommenders
from tests.sensitivity.fitting import (
    linear_models,
    questions,
    selectors,
    transformers,
)
from tests.sensitivity.solving import solvers
from tests.sensitivity.streaming import incremental, online

__all__ = ["EXCUSED", "FAMILIES", "SUBJECTS"]

FAMILIES = {
    "solvers": solvers,
    "linear_model": linear_models,
    "preprocessing": transformers,
    "feature_selection": selectors,
    "questions": questions,
    "online": online,
    "incremental": incremental,
    "ensemble": labelers,
    "stability": procedures,
    "recommend": recommenders,
}
SUBJECTS = {
    f"{family}: {subject.name}": subject
    for family, subjects in FAMILIES.items()
    for subject in subjects()
}

CHOICE = "chooses a solver or a bound from public facts, and reads no row"
PROTOCOL = "a protocol, which others meet"
RECORD = "a record of public facts or of what was released"
COMPUTED = "computes with public facts alone, and draws nothing but public places"
PUBLIC = "its statistics come from the caller: fit reads no row"
UNPAID = "promises nothing: what it computes from private rows is private data"
AFTER = "works on what was released already"

EXCUSED = {
    "solvers.INTERCEPT_SHARE": "a number",
    "solvers.SOLVER_NAMES": "names",
    "solvers.Problem": RECORD,
    "solvers.Plan": PROTOCOL,
    "solvers.Solver": PROTOCOL,
    "solvers.auto_norm": CHOICE,
    "solvers.auto_solver": CHOICE,
    "solvers.capped_where_noisy": CHOICE,
    "solvers.has_default_set": CHOICE,
    "solvers.named_solver": CHOICE,
    "fairness.BOUNDS": "names",
    "fairness.LEAST_ROWS": "a number",
    "fairness.NOTIONS": "names",
    "fairness.CertificatePlan": RECORD,
    "fairness.FairnessCertificate": RECORD,
    "fairness.FairnessForm": RECORD,
    "fairness.Group": RECORD,
    "fairness.GroupFairness": RECORD,
    "fairness.Margins": RECORD,
    "fairness.ModelComparison": RECORD,
    "fairness.WeightDistance": RECORD,
    "fairness.certify": UNPAID,
    "fairness.certify_by_simulation": UNPAID,
    "fairness.certify_model": UNPAID,
    "fairness.compare_models": UNPAID,
    "fairness.expected_flips": UNPAID,
    "fairness.fairness_form": UNPAID,
    "fairness.group_fairness": UNPAID,
    "fairness.linear_margins": UNPAID,
    "fairness.minibatch_distance": COMPUTED,
    "fairness.noisy_gradient_distance": COMPUTED,
    "fairness.output_perturbation_distance": COMPUTED,
    "fairness.plan_certificate": COMPUTED,
    "fairness.printed_distance": COMPUTED,
    "fairness.truncated_chernoff": COMPUTED,
    "fairness.weight_distance": COMPUTED,
    "linear_model.SelectionPath": RECORD,
    "preprocessing.PublicOneHot": PUBLIC,
    "preprocessing.PublicScaler": PUBLIC,
    "feature_selection.HuberLassoSupport": (
        "a function that the caller hands to a vote, which protects it"
    ),
    "model_selection.Choice": RECORD,
    "model_selection.SearchPlan": RECORD,
    "online.Experts": RECORD,
    "incremental.SparseRows": RECORD,
    "ensemble.DurableLabeler": "a PrivateLabeler that is written to a folder",
    "ensemble.LabelerPlan": RECORD,
    "ensemble.Labels": RECORD,
    "ensemble.NeighborMap": AFTER,
    "ensemble.PrivateStudent": "a PrivateLabeler, and what learns from its answers",
    "ensemble.SmoothedVotes": AFTER,
    "ensemble.TeacherPlan": RECORD,
    "ensemble.VoteClassifier": AFTER,
    "ensemble.compare_mechanisms": COMPUTED,
    "ensemble.plan_teachers": COMPUTED,
    "recommend.SOLVERS": "names",
    "recommend.CompletionPlan": RECORD,
    "recommend.ItemSide": RECORD,
    "recommend.ReleasedMeans": RECORD,
    "recommend.Rows": "a user's own rows, which stay at home",
    "recommend.Top": RECORD,
    "recommend.UserRow": "a user's own row, which stays at home",
    "recommend.UserSide": "a user's own side, which stays at home",
    "stability.NO_ANSWER": RECORD,
    "stability.Answer": RECORD,
    "stability.NoAnswer": RECORD,
    "stability.Procedure": PROTOCOL,
    "stability.block_members": COMPUTED,
    "stability.blocks_needed": COMPUTED,
    "stability.distance_needed": COMPUTED,
    "stability.release_probability": COMPUTED,
    "stability.winner_and_distance": (
        "counts votes; the votes of all short lists are tried in tests of stability"
    ),
    "inference.CoefficientNoise": RECORD,
    "inference.Intervals": RECORD,
    "inference.PrivateScore": RECORD,
    "inference.hold_out": COMPUTED,
    "inference.noise_intervals": AFTER,
    "inference.require_theory": COMPUTED,
}
