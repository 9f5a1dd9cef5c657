"""Privacy reports: the guarantee of a release and what it was charged."""

import json
from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import groupby
from typing import Any

from tacit.privacy.budget import Budget, budget_warnings, spent_up
from tacit.privacy.combined import (
    FixedSizeSampled,
    OneOf,
    Parallel,
    PoissonSampled,
    RepeatAndSelect,
)
from tacit.privacy.event_data import describe, restore
from tacit.privacy.events import (
    ApproxDP,
    Composed,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Repeated,
)

__all__ = ["Entry", "PrivacyReport", "in_words"]


def in_words(event: Event) -> str:
    """Return an event as a phrase for readers, with four digits of its numbers.

    Examples
    --------
    >>> from tacit.privacy import GaussianNoise, Repeated
    >>> in_words(Repeated(GaussianNoise(multiplier=2.5), 30))
    'Gaussian mechanism, noise multiplier 2.5, 30 times'
    """
    match event:
        case Composed():
            return "; ".join(map(_counted, event.events))
        case Repeated():
            times = "once" if event.count == 1 else f"{event.count:,} times"
            part = in_words(event.event)
            several = isinstance(event.event, Composed)
            return f"({part}), {times}" if several else f"{part}, {times}"
        case ApproxDP():
            return f"a release of epsilon {event.epsilon:.4g}, delta {event.delta:.3g}"
        case GaussianNoise():
            return f"Gaussian mechanism, noise multiplier {event.multiplier:.4g}"
        case LaplaceNoise():
            return f"Laplace mechanism, noise multiplier {event.multiplier:.4g}"
        case PoissonSampled():
            part = f"a Poisson sample of {100 * event.rate:.3g}% of the rows"
            return f"{in_words(event.event)}, on {part}"
        case FixedSizeSampled():
            part = f"a random sample of {event.size:,} of {event.n_rows:,} rows"
            return f"{in_words(event.event)}, on {part}"
        case OneOf():
            counts = Counter(event.events)
            parts = (
                f"{n} of {counts.total()}: {in_words(e)}" for e, n in counts.items()
            )
            return f"one at random, {' | '.join(parts)}"
        case Parallel():
            return f"on disjoint rows: {' || '.join(map(in_words, event.events))}"
        case RepeatAndSelect():
            runs = f"the best of a secret number of runs, {event.mean:.3g} on average"
            return f"{runs}, each: {in_words(event.event)}"
    if not is_dataclass(event):
        return repr(event)
    values = ((f.name, getattr(event, f.name)) for f in fields(event))
    figures = ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value in values
    )
    return f"{type(event).__name__}({figures})"


def _counted(event: Event) -> str:
    """Return a part of a composition, with how often it happens."""
    times = "" if isinstance(event, Composed | Repeated) else ", once"
    return in_words(event) + times


@dataclass(frozen=True)
class Entry:
    """A charge: label, event, epsilon of it by itself, and whether it was seeded."""

    label: str
    event: Event
    epsilon: float
    seeded: bool = False


@dataclass(frozen=True)
class PrivacyReport:
    """Privacy report of a fit or another release.

    Parameters
    ----------
    guarantee
        Budget that holds for everything released.
    spent
        Least epsilon, at the delta of the guarantee, that would have admitted the
        charges. Only ``guarantee`` is guaranteed.
    entries
        The charges, in order.
    assumptions
        Public facts the guarantee relies on, as sentences.
    released
        What was released, where that depends on the noise; else empty.
    notes
        What readers should know and the guarantee does not rely on, as sentences.
    heading
        Printed before the guarantee: ``"budget"`` in the report of a ledger. It is not
        saved.
    """

    guarantee: Budget
    spent: float
    entries: tuple[Entry, ...]
    assumptions: tuple[str, ...] = ()
    released: str = ""
    notes: tuple[str, ...] = ()
    heading: str = field(default="guarantee", compare=False, repr=False)

    @property
    def seeded(self) -> bool:
        """Whether a fixed seed was used; who knows the seed can subtract the noise."""
        return any(entry.seeded for entry in self.entries)

    def to_dict(self) -> dict[str, object]:
        """Return the report as a dictionary, for JSON."""
        return {
            "promise": self.guarantee.to_dict(),
            "spent": {"epsilon": self.spent, "delta": self.guarantee.delta},
            "entries": [
                {
                    "label": entry.label,
                    "epsilon": entry.epsilon,
                    "seeded": entry.seeded,
                    "event": describe(entry.event),
                }
                for entry in self.entries
            ],
            "assumptions": list(self.assumptions),
            "seeded": self.seeded,
            **({"released": self.released} if self.released else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "PrivacyReport":
        """Return the report that `to_dict` wrote; KeyError or ValueError if invalid."""
        return cls(
            Budget.from_dict(data["promise"]),
            float(data["spent"]["epsilon"]),
            tuple(
                Entry(
                    entry["label"],
                    restore(entry["event"]),
                    entry["epsilon"],
                    entry["seeded"],
                )
                for entry in data["entries"]
            ),
            tuple(data["assumptions"]),
            data.get("released", ""),
            tuple(data.get("notes", ())),
        )

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        guarantee = self.guarantee
        lines = [
            f"{self.heading:<13}epsilon {guarantee.epsilon:g}, "
            f"delta {guarantee.delta:.3g}, neighbors {guarantee.neighbors.value}",
            f"spent        epsilon {spent_up(self.spent)} at that delta",
            *(f"WARNING      {warning}" for warning in budget_warnings(guarantee)),
        ]
        for entry, same in groupby(self.entries):
            count = len(list(same))
            times = f", {count} times" if count > 1 else ""
            lines.append(
                f"charge       {entry.label}: epsilon {entry.epsilon:.4g}{times}"
            )
            lines.append(f"             {in_words(entry.event)}")
        lines += [f"assumes      {assumption}" for assumption in self.assumptions]
        lines += [f"note         {note}" for note in self.notes]
        if self.released:
            lines.append(f"released     {self.released}")
        lines.append(
            "randomness   "
            + (
                "FIXED SEED: for tests only; no privacy against anyone who knows the "
                "seed or sees two releases with it"
                if self.seeded
                else "operating system"
            )
        )
        return "\n".join(lines)
