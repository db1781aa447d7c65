"""One budget of requests for all decisions: who may send next (design §3 "Applier", issue 5 "Fairness").

The most urgent class goes first; within it the namespace with the fewest requests under way, so that a storm in one
namespace does not hold up another; within that the oldest root, so that clusters are finished and not only begun.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from itertools import count
from typing import NamedTuple

from raybus.applier.window import Window

EARLY = 0.005
"""Seconds by which a timer may fire too early (uvloop counts milliseconds)."""


class Urgency(IntEnum):
    """Classes of requests, most urgent first."""

    URGENT = 0
    """Deletes, terminal status, the removal of finalizers."""
    STATUS = 1
    CREATE = 2
    REFRESH = 3
    """Events."""


class Turn(NamedTuple):
    """Who wants to send: `age` grows with the order in which roots were first seen."""

    urgency: Urgency
    namespace: str
    age: int


class Budget:
    """At most `limit` requests in flight, fewer while the server is slow (`window`), none while paused. For one event
    loop; times are the loop's clock."""

    def __init__(self, limit: int) -> None:
        self._window = Window(limit)
        self._in_flight = 0
        self._busy: Counter[str] = Counter()
        self._waiting: dict[tuple[Urgency, str], list[tuple[int, int, asyncio.Future[None]]]] = {}
        self._order = count()
        self._resume_at = 0.0

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return self._in_flight

    def pause(self, seconds: float) -> None:
        """Send nothing for `seconds` (the server asked for it); a longer pause already under way stays."""
        loop = asyncio.get_running_loop()
        self._resume_at = max(self._resume_at, loop.time() + seconds)
        loop.call_at(self._resume_at, self._resume)

    def answered(self, seconds: float) -> None:
        """The server has answered a request after so many seconds."""
        self._window.ended(seconds, self._in_flight)

    @asynccontextmanager
    async def slot(self, turn: Turn) -> AsyncIterator[None]:
        """Wait for this request's turn and hold one place of the budget for the block."""
        await self._acquire(turn)
        try:
            yield
        finally:
            self._release(turn)

    async def _acquire(self, turn: Turn) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault((turn.urgency, turn.namespace), [])
        heapq.heappush(queue, (turn.age, next(self._order), granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._release(turn)
            raise

    def _release(self, turn: Turn) -> None:
        self._in_flight -= 1
        self._busy[turn.namespace] -= 1
        if not self._busy[turn.namespace]:
            del self._busy[turn.namespace]
        self._grant()

    def _resume(self) -> None:
        """A pause may be over. Loops run timers a little early, by their clock's resolution: then once more."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._resume_at:
            loop.call_at(self._resume_at + EARLY, self._resume)
        else:
            self._grant()

    def _grant(self) -> None:
        if asyncio.get_running_loop().time() < self._resume_at:
            return
        while self._waiting and self._in_flight < self._window.size:
            key = min(self._waiting, key=lambda k: (k[0], self._busy[k[1]], self._waiting[k][0][0]))
            _, _, granted = heapq.heappop(self._waiting[key])
            if not self._waiting[key]:
                del self._waiting[key]
            if not granted.cancelled():
                self._in_flight += 1
                self._busy[key[1]] += 1
                granted.set_result(None)
