"""What is handed to noise on neighbors, judged against what plans declare of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings, target
from tests.sensitivity.pairs import ADD, REPLACE

from tacit.audit import replay
from tacit.audit._replay import ReplayReport
from tacit.privacy import Composed, Neighbors, Repeated
from tacit.privacy.combined import OneOf, Parallel, RepeatAndSelect

__all__ = ["Found", "Planned", "Subject", "closest", "judged", "search"]


@dataclass(frozen=True)
class Planned:
    """A trainer whose plan is made, and what it charges.

    Parameters
    ----------
    train
        Called with the rows of one side of a pair.
    n_charged
        How often all releases together may use their sensitivity up.
    """

    train: Callable[..., Any]
    n_charged: float = inf


@dataclass(frozen=True)
class Subject:
    """Something private whose releases are looked at.

    Parameters
    ----------
    name
        How tests call it.
    covers
        Public names that it stands for, such as ``"solvers.AMP"``.
    planned
        Function of the relation that makes the plan, before there are rows.
    pairs
        Function of the relation that returns a strategy of neighbors.
    relations
        For which it promises something.
    redraw
        As in `replay`: whether public randomness comes after noise.
    reach
        Share of its sensitivity that the search must find, the positive control.
    min_releases
        Fewer than these would pass for want of anything to compare.
    """

    name: str
    covers: tuple[str, ...]
    planned: Callable[[Neighbors], Planned]
    pairs: Callable[[Neighbors], Any]
    relations: tuple[Neighbors, ...] = (REPLACE, ADD)
    redraw: bool = False
    reach: float = 0.9
    min_releases: int = 1


@dataclass
class Found(AssertionError):
    """A pair that moves what is released by more than was declared."""

    pair: Any
    sentences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"Neighbors: {self.pair}", *self.sentences])


def charged(*events: Any) -> float:
    """Return how many draws some events are charged as."""
    return sum(map(_charged, events))


def _charged(event: Any) -> float:
    if isinstance(event, Repeated):
        return event.count * charged(event.event)
    if isinstance(event, Composed):
        return charged(*event.events)
    if isinstance(event, Parallel | OneOf):
        return max(map(charged, event.events))
    # it pays for any number of runs, of which each is looked at
    return inf if isinstance(event, RepeatAndSelect) else 1


def used(report: ReplayReport) -> float:
    """Return how often all releases together use their sensitivity up."""
    ratios = ((e.moved / e.sensitivity, e.norm) for e in report.entries)
    return sum(ratio**2 if norm == "l2" else ratio for ratio, norm in ratios)


def closest(report: ReplayReport) -> float:
    """Return the largest share of its sensitivity that a release moved by."""
    return max((e.moved / e.sensitivity for e in report.entries), default=0.0)


def judged(
    subject: Subject, planned: Planned, pair: Any, declared: float = 1.0
) -> ReplayReport:
    """Replay a pair; raise `Found` where it moves too far or tells anything else.

    ``declared`` multiplies every sensitivity: below one it plants a bound that is
    too small.
    """
    report = replay(planned.train, pair.first, pair.second, redraw=subject.redraw)
    sentences = list(report.violations)
    if report.ok and report.raised:
        sentences.append(f"The first run did not finish: {report.raised}")
    if report.ok and len(report.entries) < subject.min_releases:
        sentences.append(f"There were {len(report.entries)} releases.")
    sentences += [
        f"{e.label} {e.shape} moves by {e.moved:.6g} in {e.norm}, and "
        f"{declared * e.sensitivity:.6g} are declared."
        for e in report.entries
        # written so that what is no number fails
        if not e.moved <= declared * e.sensitivity
    ]
    if not used(report) <= planned.n_charged:
        sentences.append(
            f"All releases use {used(report):.6g} sensitivities up, and "
            f"{planned.n_charged} are charged."
        )
    if sentences:
        raise Found(pair, sentences)
    return report


def search(
    subject: Subject,
    neighbors: Neighbors,
    n_pairs: int,
    *,
    declared: float = 1.0,
    derandomize: bool = True,
) -> float:
    """Try pairs, led to those that move far, and return the largest share found.

    What it finds is raised as `Found`, shrunk to a pair as simple as it can be.
    """
    planned = subject.planned(neighbors)
    most = 0.0

    @settings(
        max_examples=n_pairs,
        deadline=None,
        database=None,
        derandomize=derandomize,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.target, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(pair=subject.pairs(neighbors))
    def each(pair: Any) -> None:
        nonlocal most
        report = judged(subject, planned, pair, declared)
        most = max(most, closest(report))
        target(closest(report))

    each()
    return most
