"""How many requests may be under way at once: as many as do not make the API server slower (ADR 0095).

Requests beyond what it works on at the same time only wait inside it, and hold up those who make pods ready: the
scheduler, the kubelets, garbage collection. Clusters are then begun rather than finished. What a request takes when
little is under way is the measure: when it takes much longer, the window shrinks; when it does not and the window is
full, it grows.
"""

import math

LEAST, FIRST = 2, 8
"""Requests that are always allowed, and those that are at the start: one cluster's children go together."""
SLOW, QUICK = 2.5, 1.5
"""Times the best duration: above the first the window shrinks, below the second it may grow."""
STEP = 0.1
"""Requests that the window grows or shrinks by with each one that ends."""
WEIGHT = 0.1
"""Part that the last request has in the smoothed duration."""
FORGET = 1.0001
"""What the best duration grows by with each request: an API server may become slower for good."""


class Window:
    """`size`: requests that may be under way now, between LEAST and `most`."""

    def __init__(self, most: int) -> None:
        self._most = float(most)
        self._size = float(min(FIRST, most))
        self._smoothed = 0.0
        self._best = math.inf

    @property
    def size(self) -> int:
        """See the class."""
        return int(self._size)

    def ended(self, seconds: float, under_way: int) -> None:
        """A request took so long while so many, itself included, were under way."""
        self._smoothed += (seconds - self._smoothed) * (WEIGHT if self._smoothed else 1.0)
        self._best = min(self._best * FORGET, self._smoothed)
        if self._smoothed > SLOW * self._best:
            self._size = max(min(LEAST, self._most), self._size - STEP)
        elif self._smoothed < QUICK * self._best and under_way >= self.size:
            self._size = min(self._most, self._size + STEP)
