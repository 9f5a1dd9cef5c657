"""Results of audits of a guarantee."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

__all__ = ["GuaranteeAudit", "gaussian_note"]


@dataclass(frozen=True)
class GuaranteeAudit(ABC):
    """An audit of what an estimator guarantees.

    Parameters
    ----------
    estimator
        Name of the class.
    epsilon, delta, neighbors
        What it guarantees, by its report or else by its parameters.
    result
        The lower bound and the counts behind it.
    most_shown
        The largest possible bound, for a mechanism without noise.
    claims_gaussian
        Whether the report of the estimator claims Gaussian noise and nothing else.
    attacked
        Class, version, guarantee, parameters and solver of what was attacked, and a
        digest of them, by which a report knows whether an audit is about its model.
    """

    estimator: str
    epsilon: float
    delta: float
    neighbors: str
    result: Any
    most_shown: float
    claims_gaussian: bool
    attacked: dict[str, Any]

    @property
    def epsilon_lower(self) -> float:
        """Lower confidence bound on epsilon at ``delta``."""
        return float(self.result.epsilon_lower)

    @property
    def refuted(self) -> bool:
        """Whether the bound is above what is guaranteed."""
        return bool(self.result.refutes(self.epsilon))

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The outcome in words, with what it does not show."""

    def __str__(self) -> str:
        return self.verdict

    def _guarantee_in_words(self) -> str:
        return (
            f"{self.estimator} guarantees epsilon {self.epsilon:g} at delta "
            f"{self.delta:.3g} for neighbors {self.neighbors}"
        )

    def _guarantee_to_dict(self) -> dict[str, Any]:
        return {
            "estimator": self.estimator,
            "promise": {
                "epsilon": self.epsilon,
                "delta": self.delta,
                "neighbors": self.neighbors,
            },
            "attacked": self.attacked,
            "claims_gaussian": self.claims_gaussian,
        }


def gaussian_note(method: str, claimed: bool) -> str:
    """Return what a Gaussian bound assumes, as a sentence; nothing for others."""
    if method != "gaussian":
        return ""
    why = "as its report claims" if claimed else "unproved"
    return f" The bound takes the noise to be Gaussian, {why}."
