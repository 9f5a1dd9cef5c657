"""The base class of mechanisms: an event that can be drawn."""

from abc import ABC, abstractmethod

from tacit.privacy import Event, Neighbors
from tacit.privacy.curve import PrivacyCurve

__all__ = ["Drawable"]


# deep: what all mechanisms have is above what a family of them shares
class Drawable(ABC):
    """An event that can be drawn; its curve is that of the event."""

    @property
    @abstractmethod
    def event(self) -> Event: ...

    def curve(self, neighbors: Neighbors) -> PrivacyCurve:
        """Return the privacy curve of one use."""
        return self.event.curve(neighbors)
