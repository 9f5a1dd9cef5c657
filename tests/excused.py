"""What is private in the package, and which public names release nothing, and why."""

import inspect
import re
import sys
from importlib import import_module

from tacit._discovery import modules_of
from tacit.mechanisms._base import Drawable

__all__ = ["EXCUSED", "could_leak", "excused", "subjects"]

# Names of what a plan or a stream consists of
PARTS = ("Plan", "State")
# Private algorithms that packages neither export, name, save nor draw
INSIDE = {
    "tacit.mechanisms.repeats": "RandomRepeats",
    "tacit.recommend.solvers.item_means": "ItemMeans",
    "tacit.streaming.online._hedge": "Hedge",
}


def could_leak(module):
    """Return the public names of a module that could leak a row."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isroutine(thing))
        and not getattr(thing, "_is_protocol", False)
        and not name.endswith(PARTS)
    }


def subjects(package):
    """Return what needs an audit, by name: what is public, named, saved or drawn."""
    module = import_module(package)
    public = {name: getattr(module, name) for name in could_leak(module)}
    own = {
        name: kind
        for part in modules_of(package)
        if not any(part.startswith(below) for below in EXCUSED if below > package)
        for name, kind in vars(sys.modules[part]).items()
        if inspect.isclass(kind)
        and kind.__module__ == part
        and re.match("[A-Z]", name)
        and _is_declared(kind)
    }
    return {
        name: thing
        for name, thing in sorted({**own, **public}.items())
        if name not in excused(package)
    }


def excused(package):
    """Return the names of a package that release nothing."""
    return set(" ".join(EXCUSED.get(package, {}).values()).split())


def _is_declared(kind):
    inside = INSIDE.get(kind.__module__) == kind.__name__
    drawn = issubclass(kind, Drawable) and not inspect.isabstract(kind)
    named = isinstance(vars(kind).get("name"), str) or "saved" in vars(kind)
    return drawn or named or inside


VALUES = "holds plain values, public or released"
PUBLIC = "reads public facts only, or what was released"
UNCHARGED = "gives no guarantee: what it computes from private rows is private"
PLANNING = "computes for plans what is needed; releases nothing"

# Packages of private algorithms. For each, why some names release nothing; plans,
# states, protocols and constants need no reason
EXCUSED = {
    "tacit.mechanisms": {
        VALUES: "NoAnswer",
        "makes generators": "as_generator",
        "a step of TukeyRegression, which is audited": "NestedExponential",
        "a step of EntropySampling, which is audited": "SampleIndices",
    },
    "tacit.mechanisms.continual": {
        "what the sums have in common": "PrefixSums",
        "makes one of the sums by its name": "prefix_sums",
    },
    "tacit.solvers": {
        VALUES: "Problem Result",
        "the base class of the solvers": "Solver",
    },
    "tacit.linear_model": {
        VALUES: "SelectionPath",
    },
    "tacit.additive": {},
    "tacit.preprocessing": {
        PUBLIC: (
            "PublicOneHot PublicScaler RandomFourierFeatures RandomPartitionTrees"
        ),
    },
    "tacit.feature_selection": {
        "not private; BlockVoteSelector makes it so": "HuberLassoSupport",
    },
    "tacit.model_selection": {
        VALUES: "Choice",
    },
    "tacit.evaluation": {
        PUBLIC: (
            "expected_score noise_at noise_intervals regression_risk rows_for_risk "
            "rows_for_support"
        ),
        "parts rows at random, and releases nothing": "hold_out",
    },
    "tacit.fairness": {
        UNCHARGED: (
            "certify certify_by_simulation certify_model compare_models "
            "group_fairness linear_margins"
        ),
        PUBLIC: "noisy_gradient_distance plan_certificate weight_distance",
    },
    "tacit.streaming": {
        "a stream model kept on disk: its tests compare them": "DurableStream",
        VALUES: "SparseRows",
    },
    "tacit.ensemble": {
        "a PrivateLabeler kept on disk: its tests compare them": "DurableLabeler",
        VALUES: "Labels",
        PUBLIC: (
            "NeighborMap SmoothedVotes VoteClassifier compare_mechanisms plan_teachers"
        ),
    },
    "tacit.recommend": {},
    "tacit.stability": {
        PLANNING: "blocks_needed release_probability",
        "not private; votes make it so": "winner_and_distance",
    },
}
