"""Public names that release nothing, and why: neither audits nor searches need them.

All that is private has an attack in `tests.audits` and is searched for neighbors that
move it too far in `tests.sensitivity`; both take their excuses from here.
"""

import inspect

__all__ = ["EXCUSED", "could_tell"]

# what only says what another thing will do or holds what it has done
PARTS = ("Plan", "State")


def could_tell(module):
    """Return the public names of a module that could tell on a row."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isroutine(thing))
        and not getattr(thing, "_is_protocol", False)
        and not name.endswith(PARTS)
    }


VALUES = "holds plain values, public or released"
PUBLIC = "reads public facts alone, or what was released"
UNPAID = "promises nothing: what it computes from private rows is private data"
POLICY = "says for plans what is needed; releases nothing"

# the other names, each with the reason why there is nothing to attack; plans, states,
# protocols and constants need no reason
EXCUSED = {
    "tacit.mechanisms": {
        "NoAnswer": VALUES,
        "as_generator": "makes a generator",
        "spawn": "makes generators",
    },
    "tacit.mechanisms.continual": {
        "PrefixSums": "what the sums have in common",
        "prefix_sums": "makes one of the sums by its name",
    },
    "tacit.solvers": {
        "Problem": VALUES,
        "Result": VALUES,
        "Solver": "the base class of the solvers",
    },
    "tacit.linear_model": {"SelectionPath": VALUES},
    "tacit.preprocessing": {"PublicOneHot": PUBLIC, "PublicScaler": PUBLIC},
    "tacit.feature_selection": {
        "HuberLassoSupport": "not private; BlockVoteSelector makes it so",
    },
    "tacit.model_selection": {"Choice": VALUES},
    "tacit.evaluation": {
        "Forecast": VALUES,
        "Outlook": VALUES,
        "expected_score": PUBLIC,
        "least_rows": PUBLIC,
        "noise_at": PUBLIC,
        "regression_risk": PUBLIC,
        "rows_for_risk": PUBLIC,
        "rows_for_support": PUBLIC,
        "CoefficientNoise": VALUES,
        "Intervals": VALUES,
        "PrivateScore": VALUES,
        "hold_out": "parts rows at random, and releases nothing",
        "noise_intervals": PUBLIC,
        "require_theory": POLICY,
    },
    "tacit.fairness": {
        "FairnessCertificate": VALUES,
        "FairnessForm": VALUES,
        "Group": VALUES,
        "GroupFairness": VALUES,
        "Margins": VALUES,
        "ModelComparison": VALUES,
        "WeightDistance": VALUES,
        "certify": UNPAID,
        "certify_by_simulation": UNPAID,
        "certify_model": UNPAID,
        "compare_models": UNPAID,
        "expected_flips": UNPAID,
        "fairness_form": UNPAID,
        "group_fairness": UNPAID,
        "linear_margins": UNPAID,
        "minibatch_distance": PUBLIC,
        "noisy_gradient_distance": PUBLIC,
        "output_perturbation_distance": PUBLIC,
        "plan_certificate": PUBLIC,
        "printed_distance": PUBLIC,
        "truncated_chernoff": UNPAID,
        "weight_distance": PUBLIC,
    },
    "tacit.streaming": {
        "DurableStream": "a stream model kept on disk: its tests compare them",
        "Experts": VALUES,
        "SparseRows": VALUES,
    },
    "tacit.ensemble": {
        "DurableLabeler": "a PrivateLabeler kept on disk: its tests compare them",
        "Labels": VALUES,
        "NeighborMap": PUBLIC,
        "SmoothedVotes": PUBLIC,
        "VoteClassifier": PUBLIC,
        "compare_mechanisms": PUBLIC,
        "plan_teachers": PUBLIC,
    },
    "tacit.recommend": {
        "ItemSide": VALUES,
    },
    "tacit.stability": {
        "Answer": VALUES,
        "NoAnswer": VALUES,
        "block_members": "parts rows, and releases nothing",
        "blocks_needed": POLICY,
        "distance_needed": POLICY,
        "release_probability": POLICY,
        "winner_and_distance": "not private; votes make it so",
    },
}
