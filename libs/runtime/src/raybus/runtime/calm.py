"""How long a root that was decided a moment ago is left alone while events about it pour in (issue "Load").

One Decision makes a burst of events: the echo of each child, then each pod's way to readiness. A decision in the middle
of it costs as much as one after it and says nothing that is not under way already. With little to do there is
no pause; it grows with the number of decisions that the process makes (ADR 0090).
"""

from collections import deque
from collections.abc import Callable

FREE = 10
"""Decisions in a second that ask for no pause: a cluster or two that start at a time."""
EACH = 0.004
"""Seconds of quiet for each further decision of the last second."""
MOST = 0.25
"""Seconds of quiet that are waited for at most."""
PATIENCE = 3.0
"""A root whose events never pause is decided after so many times the quiet that is asked for."""


class Calm:
    """Shared by all partitions of a process. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._decided: deque[float] = deque()

    def decided(self) -> None:
        """One decision was made."""
        self._decided.append(self._clock())
        self._forget()

    def load(self) -> float:
        """How much the process has to do, from 0.0 = nothing to 1.0 = so much that pauses are longest."""
        self._forget()
        return min(1.0, EACH * max(0, len(self._decided) - FREE) / MOST)

    def pause(self, first: float, last: float) -> float:
        """Seconds until a root may be decided whose undecided events came from `first` to `last`; 0.0 = now."""
        quiet = MOST * self.load()
        return max(0.0, min(last + quiet, first + PATIENCE * quiet) - self._clock())

    def _forget(self) -> None:
        """Only the last second counts."""
        since = self._clock() - 1.0
        while self._decided and self._decided[0] < since:
            self._decided.popleft()
