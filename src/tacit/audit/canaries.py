"""Audit an estimator by one training on canaries."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from tacit._random import Seed
from tacit.audit._attacked import attacked, solver_name
from tacit.audit._guarantee import GuaranteeAudit, gaussian_note
from tacit.audit._outcomes import Outcome, observed
from tacit.audit._seeds import AuditSeed, coins, sequence_of
from tacit.audit._subjects import (
    bounds_entries,
    ends_of,
    guarantee_of,
    pair_of,
    prepared,
    scale_of,
)
from tacit.audit.one_run import OneRunBound, chosen_and_judged, most_in_one_run
from tacit.audit.pairs import REPLACE, relation_of
from tacit.plots import audit_roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Canaries", "OneRunAudit", "audit_one_run"]

Method = Literal["auto", "any", "gaussian"]
Floats = NDArray[np.float64]

LEAST_CANARIES = 20
MOST_CANARIES = 2**16


@dataclass(frozen=True)
class Canaries:
    """Canaries: rows whose label, or presence, a coin decided.

    Parameters
    ----------
    X, y
        The data set to train on.
    rows
        One canary a row, before it was moved into the ranges of the columns.
    signs
        What a canary adds to the direction of its row if its coin is 1: 1 or -1.
    truth
        The coins, 1 or -1.
    """

    X: Floats
    y: NDArray[Any]
    rows: Floats
    signs: Floats
    truth: NDArray[np.int64]

    def scores(self, seen: Outcome) -> tuple[list[str], Floats]:
        """Return attributes with a number for each canary, and these scores."""
        m, d = self.rows.shape
        names: list[str] = []
        found: list[Floats] = []
        for path, value in seen.items():
            if not isinstance(value, np.ndarray) or value.size == 0:
                continue
            clean = np.nan_to_num(value)
            parts: list[Floats] = []
            if clean.size % d == 0:
                # a number a column, in the last axis or in the first
                by_column = [clean.reshape(-1, d), clean.reshape(d, -1).T]
                parts += [(w @ self.rows.T) * self.signs for w in by_column]
            if clean.size % m == 0 and len(self.X) == m:
                parts.append(clean.reshape(m, -1).T)  # a number a row
            found += parts
            names += [path] * sum(map(len, parts))
        if not found:
            raise ValueError("estimator must publish a number for each column.")
        return names, np.concatenate(found)


@dataclass(frozen=True)
class OneRunAudit(GuaranteeAudit):
    """Result of `audit_one_run`, with what `GuaranteeAudit` has.

    Parameters
    ----------
    n_canaries, n_features
        Canaries in the run, of which half chose the attack, and columns.
    attribute
        What the guesses were read from.
    scores_in, scores_out
        Scores of the canaries that judged, by their coins.
    """

    result: OneRunBound
    n_canaries: int
    n_features: int
    attribute: str
    scores_in: tuple[float, ...]
    scores_out: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """The outcome in words, with what it does not show."""
        found = self.result
        guarantee = self._guarantee_in_words()
        shown = (
            f"one run with {self.n_canaries} canaries shows that epsilon is at least "
            f"{self.epsilon_lower:.3g}, with confidence {found.confidence:g} "
            f"({found.n_correct} of {found.n_guesses} guesses by {self.attribute} were "
            f"right; so many canaries can show at most {self.most_shown:.3g})"
        )
        note = gaussian_note(found.method, self.claims_gaussian)
        if self.refuted:
            return f"Refuted: {guarantee}, and {shown}.{note}"
        return (
            f"Not refuted: {guarantee}, and {shown}.{note} This proves nothing: many "
            "runs on one pair of data sets, or other rows, may show more."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            **self._guarantee_to_dict(),
            "epsilon_lower": self.epsilon_lower,
            "most_shown": self.most_shown,
            "attribute": self.attribute,
            "confidence": self.result.confidence,
            "method": self.result.method,
            "mu_lower": self.result.mu_lower,
            "runs": 1,
            "canaries": self.n_canaries,
            "judged": self.result.n_canaries,
            "guesses": self.result.n_guesses,
            "correct": self.result.n_correct,
            "features": self.n_features,
            "refuted": self.refuted,
            "verdict": self.verdict,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how well the scores distinguish the canaries, and the guarantee."""
        name = f"{self.estimator}, {self.result.n_canaries} canaries"
        scores = self.scores_in, self.scores_out
        return audit_roc(*scores, self.epsilon, self.delta, ax=ax, label=name)


def audit_one_run(
    estimator: Any,
    *,
    n_canaries: int = 1000,
    n_features: int | None = None,
    confidence: float = 0.95,
    neighbors: str | None = None,
    delta: float | None = None,
    method: Method = "auto",
    random_state: AuditSeed = None,
) -> OneRunAudit:
    """Train once on many canaries, guess their coins, and bound epsilon.

    Parameters
    ----------
    estimator
        As in `audit_estimator`. It is copied.
    n_canaries
        Rows with a coin of their own, at least 20. Half choose the attack, half judge
        it. Too few to refute the guarantee even without noise are rejected.
    n_features
        Columns; None for as many as there are canaries, or the next power of two
        where entries are bounded one by one. With fewer, canaries hide each other.
    confidence
        Probability with which the bound holds.
    neighbors, delta
        As in `audit_estimator`: what is guaranteed, where the estimator does not say.
    method
        ``"any"`` holds for any mechanism, ``"gaussian"`` takes the noise to be
        Gaussian; see `one_run_bound`. ``"auto"`` is the latter where the report of the
        estimator claims Gaussian noise and nothing else.
    random_state
        None draws coins and trains with fresh randomness. A seed fixes both,
        where the estimator takes one.

    Notes
    -----
    **Bound.** That of `one_run_bound`, on the canaries that judge. Where the guarantee
    is for neighbors that replace a row, the coin of a canary settles its label, which
    is either end of their range. Where it is for those that add or remove one, the coin
    settles whether the row is there. So either way a coin changes one row in the way of
    the guarantee.

    Canaries are orthogonal and at the public bounds: a unit vector each, or a row of
    a Hadamard matrix where entries are bounded one by one. The guesses are read from
    one public attribute with a number for each column or each row, the one that the
    canaries that choose distinguish best. A single number or a string says
    little about a thousand coins: `audit_estimator` finds such leaks.

    Examples
    --------
    >>> from tacit.audit import audit_one_run
    >>> from tacit.linear_model import LinearSVC
    >>> found = audit_one_run(LinearSVC(1.0), n_canaries=200, random_state=0)
    >>> found.refuted
    False
    """
    # long: one step of the audit after another, on what the last one found
    _check(n_canaries, n_features, method)
    subject = prepared(estimator)
    given = subject.get_params(deep=False)
    if "ranges" in given:
        raise ValueError(
            "estimator must have a number for each column or row, which additive "
            "models have not; call audit_estimator for an audit by many runs."
        )
    relation = relation_of(given.get("neighbors", neighbors))
    coin_seed, fit_seed = sequence_of(random_state).spawn(2)
    canaries = _made(
        subject, n_canaries, n_features, relation, coins(coin_seed, n_canaries)
    )
    if random_state is not None and "random_state" in given:
        subject.set_params(random_state=Seed(fit_seed.generate_state(1)[0]))
    fitted = subject.fit(canaries.X, canaries.y)
    names, candidates = canaries.scores(observed(fitted))
    guaranteed, delta, gaussian = guarantee_of(fitted, delta)
    if method == "auto":
        method = "gaussian" if gaussian and delta > 0 else "any"
    terms: dict[str, Any] = {"delta": delta, "confidence": confidence, "method": method}
    most = most_in_one_run(n_canaries // 2, **terms)
    _check_enough(n_canaries, guaranteed, most)
    guarantee = {"epsilon": guaranteed, "delta": delta, "neighbors": relation}
    judged = chosen_and_judged(candidates, canaries.truth, **terms)
    shape = canaries.X.shape
    return OneRunAudit(
        type(estimator).__name__,
        guaranteed,
        delta,
        relation,
        judged.bound,
        most,
        gaussian,
        attacked(estimator, guarantee, solver_name(subject, *shape)),
        n_canaries,
        shape[1],
        names[judged.position],
        tuple(judged.scores[judged.truth > 0].tolist()),
        tuple(judged.scores[judged.truth < 0].tolist()),
    )


def _check(n_canaries: int, n_features: int | None, method: Method) -> None:
    if type(n_canaries) is not int or not LEAST_CANARIES <= n_canaries <= MOST_CANARIES:
        raise ValueError(
            f"n_canaries must be an integer from {LEAST_CANARIES} to {MOST_CANARIES}, "
            f"got {n_canaries!r}."
        )
    if n_features is not None and (type(n_features) is not int or n_features < 2):
        raise ValueError(f"n_features must be an integer >= 2, got {n_features!r}.")
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}, got {method!r}.")


def _check_enough(n_canaries: int, guaranteed: float, most: float) -> None:
    if guaranteed >= most:
        raise ValueError(
            f"n_canaries must be more: {n_canaries} show an epsilon of at most "
            f"{most:.3g}, even without noise, and {guaranteed:g} is guaranteed."
        )


def _made(
    subject: Any,
    n_canaries: int,
    n_features: int | None,
    relation: str,
    truth: NDArray[np.int64],
) -> Canaries:
    """Return the data set that these coins make."""
    given = subject.get_params(deep=False)
    d = n_features or n_canaries
    n_rows = n_canaries if relation == REPLACE else n_canaries // 2
    entries = bounds_entries(given, _norm(subject, n_rows, d, relation))
    if entries:
        d = n_features or 1 << (n_canaries - 1).bit_length()
        square = hadamard(1 << (max(d, n_canaries) - 1).bit_length(), dtype=float)
        rows = square[:n_canaries, :d]
    else:
        rows = np.eye(d)[np.arange(n_canaries) % d]
    bound, center, half = scale_of(given, d)
    X = center + half * bound * rows
    ends = ends_of(subject)
    if relation == REPLACE:
        upper = (truth > 0).astype(int)
        return Canaries(X, ends[upper], rows, np.ones(n_canaries), truth)
    # both labels among those that are there, whatever the coins
    upper = np.arange(n_canaries) // 2 % 2
    there = truth > 0
    signs = np.where(upper > 0, 1.0, -1.0)
    return Canaries(X[there], ends[upper][there], rows, signs, truth)


def _norm(subject: Any, n_rows: int, n_features: int, relation: str) -> str:
    """Return the norm in which rows are bounded, from a fit of this shape."""
    if "bound_norm" not in subject.get_params(deep=False):
        return "l2"
    rows, labels = pair_of(subject, n_rows, n_features, relation, "l2")[0]
    probe = deepcopy(subject).fit(rows, labels)
    return str(getattr(getattr(probe, "bounds_", None), "norm", "l2"))
