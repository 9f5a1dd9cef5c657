"""The facts a report is made of, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Neighbors, PrivacyReport

__all__ = ["Facts"]

_NEEDED = ("title", "estimator", "privacy", "features", "coef", "intercept")
_OPTIONAL = (
    *("created", "tacit", "parameters", "rows", "dataset", "classes", "noise"),
    *("score", "ledger", "schema"),
)


@dataclass(frozen=True, eq=False)
class Facts:
    """What is public of a fitted model."""

    plain: dict[str, Any]
    privacy: PrivacyReport
    features: list[str]
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Facts:
        """Return the facts after checking that they fit together."""
        missing = [name for name in _NEEDED if name not in facts]
        if missing:
            raise ValueError(f"facts must have the entry {missing[0]!r}.")
        plain = {name: facts.get(name) for name in (*_NEEDED, *_OPTIONAL)}
        features = [str(name) for name in facts["features"]]
        coef = np.atleast_2d(np.asarray(facts["coef"], dtype=np.float64))
        if coef.ndim != 2 or coef.shape[1] != len(features):
            raise ValueError(
                f"facts['coef'] must have one column for each of the {len(features)} "
                f"features, got shape {coef.shape}."
            )
        intercept = np.atleast_1d(np.asarray(facts["intercept"], dtype=np.float64))
        if intercept.size == 1:
            intercept = np.full(len(coef), intercept.ravel()[0])
        if intercept.shape != (len(coef),):
            raise ValueError(
                f"facts['intercept'] must have {len(coef)} entries, got shape "
                f"{intercept.shape}."
            )
        low = high = None
        if plain["noise"] is not None:
            low, high = (
                np.atleast_2d(np.asarray(plain["noise"][end], dtype=np.float64))
                for end in ("low", "high")
            )
            if low.shape != coef.shape or high.shape != coef.shape:
                raise ValueError(
                    "facts['noise'] must have the shape of facts['coef'], "
                    f"{coef.shape}, got {low.shape} and {high.shape}."
                )
        try:
            privacy = PrivacyReport.from_dict(facts["privacy"])
        except (KeyError, TypeError, AttributeError):
            raise ValueError(
                "facts['privacy'] must be what PrivacyReport.to_dict returned."
            ) from None
        return cls(
            plain,
            privacy,
            features,
            coef,
            intercept,
            low,
            high,
        )

    @property
    def replaces(self) -> bool:
        """Whether neighbors replace one row, so that the number of rows is public."""
        return self.privacy.promise.neighbors is Neighbors.REPLACE_ONE

    @property
    def rows(self) -> int | None:
        """Number of rows, where the promise lets it be said."""
        # with rows added or removed their number is private, whoever put it in
        return self.plain["rows"] if self.replaces else None

    @property
    def seeded(self) -> bool:
        """Whether a fixed seed was used, in this fit or elsewhere in its ledger."""
        ledger = self.plain["ledger"] or {}
        return self.privacy.seeded or any(
            record.get("seeded") for record in ledger.get("records", ())
        )
