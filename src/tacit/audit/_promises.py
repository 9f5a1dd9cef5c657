"""What outcomes of audits say of the promise that was attacked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["PromiseAudit", "gaussian_note"]


@dataclass(frozen=True)
class PromiseAudit:
    """An audit of what an estimator promises.

    Parameters
    ----------
    estimator
        Name of the class.
    epsilon, delta, neighbors
        What it promises, by its report or else by its parameters.
    """

    estimator: str
    epsilon: float
    delta: float
    neighbors: str

    def _promise_in_words(self) -> str:
        return (
            f"{self.estimator} promises epsilon {self.epsilon:g} at delta "
            f"{self.delta:.3g} for neighbors {self.neighbors}"
        )

    def _promise_to_dict(self) -> dict[str, Any]:
        return {
            "estimator": self.estimator,
            "promise": {
                "epsilon": self.epsilon,
                "delta": self.delta,
                "neighbors": self.neighbors,
            },
        }


def gaussian_note(method: str, claimed: bool) -> str:
    """Return what a Gaussian bound assumes, as a sentence; nothing for others."""
    if method != "gaussian":
        return ""
    why = "as its report claims" if claimed else "unproved"
    return f" The bound takes the noise to be Gaussian, {why}."
