"""Membership inference attacks on a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit._validate import fraction
from tacit.audit._scored_rows import ScoreFunction, rows_of, scored_together
from tacit.audit._seeds import AuditSeed, coins, sequence_of, shuffled
from tacit.audit._shadows import likelihood_ratios, losses, margins
from tacit.audit.bounds import clopper_pearson_lower, clopper_pearson_upper
from tacit.audit.one_run import OneRunBound, chosen_and_judged
from tacit.plots import audit_roc
from tacit.plots._privacy import roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MembershipAttack", "RateAt", "membership_attack"]

Floats = NDArray[np.float64]
Score = Literal["loss", "margin", "lira"]
Assigned = Literal["coins", "pairs"]

SCORES: dict[str, ScoreFunction] = {"loss": losses, "margin": margins}
RATES = (0.001, 0.01, 0.1)
LEAST_JUDGED = 20
# Counts of members that fair coins give with a smaller probability are rejected
LEAST_CHANCE = 1e-6
PRIVATE = "This was computed on private rows and is itself private data."
NOT_ASSIGNED = (
    "No bound on epsilon follows: that takes rows each of which was trained on by a "
    "fair coin of its own."
)


@dataclass(frozen=True)
class RateAt:
    """Members recognized at a threshold that few others pass.

    Parameters
    ----------
    asked
        Allowed false positive rate.
    threshold
        The smallest score at which no more non-members than that were taken for
        members.
    false_positive_rate, true_positive_rate
        Fractions of non-members and of members with at least this score.
    false_positive_interval, true_positive_interval
        Clopper-Pearson intervals, for one threshold.
    """

    asked: float
    threshold: float
    false_positive_rate: float
    false_positive_interval: tuple[float, float]
    true_positive_rate: float
    true_positive_interval: tuple[float, float]


@dataclass(frozen=True)
class MembershipAttack:
    """How well members can be distinguished from others. Private data, like the rows.

    Parameters
    ----------
    score
        Name of the score.
    scores_in, scores_out
        Scores of members and of non-members; higher speaks for a member.
    auc, auc_interval
        Probability that a member scores higher than a non-member, ties counted half,
        and an interval for it.
    rates
        Members recognized at small false positive rates.
    confidence
        Probability with which each of the intervals holds.
    assigned
        How rows became members: ``"coins"``, ``"pairs"``, or None if not at random.
    bound
        Lower bound on epsilon, where rows were assigned at random; else None.
    """

    score: str
    scores_in: tuple[float, ...]
    scores_out: tuple[float, ...]
    auc: float
    auc_interval: tuple[float, float]
    rates: tuple[RateAt, ...]
    confidence: float
    assigned: str | None
    bound: OneRunBound | None

    @property
    def epsilon_lower(self) -> float | None:
        """Lower bound on epsilon, where rows were assigned at random; else None."""
        return None if self.bound is None else self.bound.epsilon_lower

    @property
    def verdict(self) -> str:
        """The outcome in words, with what it does not show."""
        low, high = self.auc_interval
        lines = [
            f"Membership attack by {self.score} on {len(self.scores_in)} members and "
            f"{len(self.scores_out)} others: AUC {self.auc:.3f} ({low:.3f} to "
            f"{high:.3f}, confidence {self.confidence:g} each)."
        ]
        for rate in self.rates:
            low, high = rate.true_positive_interval
            lines.append(
                f"At a false positive rate of {rate.asked:g}, "
                f"{rate.true_positive_rate:.3g} of the members are recognized "
                f"({low:.3g} to {high:.3g})."
            )
        if self.bound is None:
            lines.append(NOT_ASSIGNED)
        else:
            relation = "add or remove" if self.assigned == "coins" else "replace"
            lines.append(
                "As rows were assigned at random, for neighbors that "
                f"{relation} a row: {self.bound}."
            )
        lines += ["A weak attack proves nothing: another may do better.", PRIVATE]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data, without the scores of single rows."""
        return {
            "score": self.score,
            "members": len(self.scores_in),
            "non_members": len(self.scores_out),
            "auc": self.auc,
            "auc_interval": list(self.auc_interval),
            "rates": [
                {
                    "asked": rate.asked,
                    "false_positive_rate": rate.false_positive_rate,
                    "false_positive_interval": list(rate.false_positive_interval),
                    "true_positive_rate": rate.true_positive_rate,
                    "true_positive_interval": list(rate.true_positive_interval),
                }
                for rate in self.rates
            ],
            "confidence": self.confidence,
            "assigned": self.assigned,
            "bound": None if self.bound is None else self.bound.to_dict(),
            "verdict": self.verdict,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the ROC curve; its title says that it is private data."""
        name = f"{self.score}, AUC {self.auc:.3f}"
        drawn = audit_roc(self.scores_in, self.scores_out, ax=ax, label=name)
        drawn.set_title("Membership attack: private data")
        return drawn

    def __str__(self) -> str:
        return self.verdict


def membership_attack(
    model: Any,
    members: Sequence[Any],
    non_members: Sequence[Any],
    *,
    score: Score | ScoreFunction = "loss",
    shadow: Any = None,
    n_shadows: int = 64,
    assigned: Assigned | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    jobs: int = 1,
    random_state: AuditSeed = None,
) -> MembershipAttack:
    """Guess which rows a fitted model was trained on.

    Parameters
    ----------
    model
        A fitted classifier or regressor of scikit-learn's interface.
    members, non_members
        Rows and labels ``(X, y)`` that it was trained on, and others of the same kind.
        Rows are what the model predicts from: arrays, sparse matrices or data frames.
    score
        ``"loss"``: members have a smaller one. ``"margin"``: by how much the own label
        leads. ``"lira"``: how much likelier the confidence is if the row was in, by
        models trained on random halves of all the rows. Or a function of model, X
        and y with a number for each row, higher for members. It is called once, on
        all rows in random order.
    shadow
        For ``"lira"``, an estimator like the attacked one, which is copied and fitted.
    n_shadows
        For ``"lira"``, how many are trained: even, at least 4.
    assigned
        How rows became members. ``"coins"``: each by a fair coin of its own.
        ``"pairs"``: of the two rows at the same position of ``members`` and
        ``non_members``, a fair coin settled which was trained on. None: otherwise, so
        that nothing follows for epsilon. A random half of fixed size is not by coins,
        and numbers of members that coins hardly ever give are rejected.
    delta
        Delta at which epsilon is bounded.
    confidence
        Probability with which each interval, and the bound, holds.
    jobs
        Processes that train shadow models.
    random_state
        Fixes the shadow models, the order of rows, and which of them choose the attack.

    Notes
    -----
    **Bound.** Epsilon is bounded by `one_run_bound`, with the rows as canaries: half of
    them choose how many are guessed, half are judged. Coins bound it for neighbors that
    add or remove a row, pairs for neighbors that replace one. The interval of the AUC
    is Hoeffding's for two samples [1]_, those of the rates are Clopper and Pearson's
    at a threshold that the non-members settled. Without coins, the attack may recognize
    a difference between the two sets of rows rather than the training.

    The score by likelihood ratio is that of Carlini et al. [2]_, Section V.

    References
    ----------
    .. [1] Hoeffding. Probability inequalities for sums of bounded random variables.
       JASA 58 (1963), Section 5b.
    .. [2] Carlini, Chien, Nasr, Song, Terzis, Tramer. Membership inference attacks from
       first principles. IEEE S&P 2022.
    """
    _check(score, assigned, delta, confidence)
    sides = rows_of("members", members), rows_of("non_members", non_members)
    _check_counts(assigned, len(sides[0][1]), len(sides[1][1]))
    trained, judged, mixed = sequence_of(random_state).spawn(3)
    function = _function(score, shadow, n_shadows, jobs, trained)
    inside, outside = scored_together(function, model, *sides, mixed)
    bound = None
    if assigned is not None:
        bound = _bound(inside, outside, assigned, delta, confidence, judged)
    return MembershipAttack(
        score=getattr(score, "__name__", str(score)),
        scores_in=tuple(inside.tolist()),
        scores_out=tuple(outside.tolist()),
        auc=_auc(inside, outside),
        auc_interval=_auc_interval(inside, outside, confidence),
        rates=tuple(_rate_at(rate, inside, outside, confidence) for rate in RATES),
        confidence=confidence,
        assigned=assigned,
        bound=bound,
    )


def _function(
    score: Score | ScoreFunction,
    shadow: Any,
    n_shadows: int,
    jobs: int,
    sequence: np.random.SeedSequence,
) -> ScoreFunction:
    if callable(score):
        return score
    if score != "lira":
        return SCORES[score]
    _check_shadows(shadow, n_shadows, jobs)

    def ratios(model: Any, X: Any, y: Any) -> Floats:
        terms: dict[str, Any] = {"n_shadows": n_shadows, "jobs": jobs}
        return likelihood_ratios(model, shadow, X, y, sequence=sequence, **terms)

    return ratios


def _bound(
    scores_in: Floats,
    scores_out: Floats,
    assigned: Assigned,
    delta: float,
    confidence: float,
    sequence: np.random.SeedSequence,
) -> OneRunBound:
    """Return the bound that the coins of the rows, or of the pairs, allow."""
    if assigned == "pairs":
        # the order of a pair must not show which row was trained on
        truth = coins(sequence, len(scores_in))
        scores = truth * (scores_in - scores_out)
    else:
        truth = np.repeat([1, -1], [len(scores_in), len(scores_out)])
        scores = np.concatenate([scores_in, scores_out])
        order = shuffled(sequence, len(scores))
        truth, scores = truth[order], scores[order]
    return chosen_and_judged(
        scores[None], truth, delta=delta, confidence=confidence, method="any"
    ).bound


def _auc(scores_in: Floats, scores_out: Floats) -> float:
    false, true = roc(scores_in, scores_out)
    return float(np.trapezoid(true, false))


def _auc_interval(
    scores_in: Floats, scores_out: Floats, confidence: float
) -> tuple[float, float]:
    # as many independent pairs as the smaller side has rows
    pairs = min(len(scores_in), len(scores_out))
    reach = float(np.sqrt(np.log(2 / (1 - confidence)) / (2 * pairs)))
    auc = _auc(scores_in, scores_out)
    return max(auc - reach, 0.0), min(auc + reach, 1.0)


def _rate_at(
    allowed_rate: float, scores_in: Floats, scores_out: Floats, confidence: float
) -> RateAt:
    # as many of the highest others as are allowed, and none that ties with the next
    allowed = int(allowed_rate * len(scores_out))
    barred = np.sort(scores_out)[::-1][allowed]
    threshold = float(np.nextafter(barred, np.inf))
    p_fail = (1 - confidence) / 2

    def interval(scores: Floats) -> tuple[float, tuple[float, float]]:
        k, n = int(np.sum(scores >= threshold)), len(scores)
        low = float(clopper_pearson_lower(k, n, p_fail))
        return k / n, (low, float(clopper_pearson_upper(k, n, p_fail)))

    return RateAt(allowed_rate, threshold, *interval(scores_out), *interval(scores_in))


def _check(
    score: Score | ScoreFunction,
    assigned: Assigned | None,
    delta: float,
    confidence: float,
) -> None:
    if not (callable(score) or score in get_args(Score)):
        raise ValueError(
            f"score must be a function or one of {get_args(Score)}, got {score!r}."
        )
    if assigned is not None and assigned not in get_args(Assigned):
        raise ValueError(
            f"assigned must be None or one of {get_args(Assigned)}, got {assigned!r}."
        )
    fraction(delta=delta)
    fraction(closed=False, confidence=confidence)


def _check_counts(assigned: Assigned | None, n_members: int, n_others: int) -> None:
    """Reject counts that fair coins hardly ever give, or too few for a bound."""
    if assigned is None:
        return
    if assigned == "pairs" and n_members != n_others:
        raise ValueError(
            "members and non_members must have as many rows as each other for pairs."
        )
    n = n_members if assigned == "pairs" else n_members + n_others
    if n < LEAST_JUDGED:
        raise ValueError(
            f"A bound needs at least {LEAST_JUDGED} rows, or as many pairs; "
            "give assigned=None for none."
        )
    if assigned == "coins" and stats.binomtest(n_members, n).pvalue < LEAST_CHANCE:
        raise ValueError(
            "assigned must be None: fair coins hardly ever give members and "
            "non_members of such different numbers."
        )


def _check_shadows(shadow: Any, n_shadows: int, jobs: int) -> None:
    if not (hasattr(shadow, "fit") and hasattr(shadow, "get_params")):
        raise ValueError(
            "shadow must be an estimator like the attacked one for 'lira'."
        )
    if type(n_shadows) is not int or n_shadows < 4 or n_shadows % 2:
        raise ValueError(f"n_shadows must be even and >= 4, got {n_shadows!r}.")
    if type(jobs) is not int or jobs < 1:
        raise ValueError(f"jobs must be an integer >= 1, got {jobs!r}.")
