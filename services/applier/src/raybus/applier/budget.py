"""One budget of requests for all decisions: who may send next (design §3 "Applier", issue 5 "Fairness").

The most urgent class goes first; within it the namespace with the fewest requests under way, so that a storm in one
namespace does not hold up another; within that the oldest root, so that clusters are finished and not only begun, but
one that has half of all places already only if no other root waits: it may have hundreds of children.
"""

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from typing import NamedTuple, TypeVar

from raybus.applier.window import Window
from raybus.telemetry import metrics

T = TypeVar("T")

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


class Line:
    """Those of one class and namespace who wait, by root, oldest root first."""

    def __init__(self) -> None:
        self._roots: dict[int, deque[asyncio.Future[None]]] = {}
        self._ages: list[int] = []

    def join(self, age: int, granted: "asyncio.Future[None]") -> None:
        """Wait for a place."""
        if age not in self._roots:
            self._roots[age] = deque()
            heapq.heappush(self._ages, age)
        self._roots[age].append(granted)

    def first(self, busy: Counter[int], share: int) -> int:
        """Who is next: the oldest root with less than `share` places, else the oldest; -1 when nobody waits."""
        passed = []
        while self._ages:
            age, waiting = self._ages[0], self._roots[self._ages[0]]
            while waiting and waiting[0].cancelled():
                waiting.popleft()
            if not waiting:
                del self._roots[heapq.heappop(self._ages)]
            elif busy[age] < share:
                break
            else:
                passed.append(heapq.heappop(self._ages))
        found = self._ages[0] if self._ages else passed[0] if passed else -1
        for age in passed:
            heapq.heappush(self._ages, age)
        return found

    def leave(self, age: int) -> "asyncio.Future[None]":
        """The first of a root that waits."""
        return self._roots[age].popleft()


class Budget:
    """At most `limit` requests in flight, fewer while the server is slow (`window`), none while paused. For one event
    loop; times are the loop's clock."""

    def __init__(self, limit: int) -> None:
        self._window = Window(limit)
        self._in_flight = 0
        self._namespaces: Counter[str] = Counter()
        self._roots: Counter[int] = Counter()
        self._waiting: dict[tuple[Urgency, str], Line] = {}
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
        metrics.WINDOW.set(self._window.size)

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
        self._waiting.setdefault((turn.urgency, turn.namespace), Line()).join(turn.age, granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._release(turn)
            raise

    def _release(self, turn: Turn) -> None:
        self._in_flight -= 1
        _give_back(self._namespaces, turn.namespace)
        _give_back(self._roots, turn.age)
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
        while self._in_flight < self._window.size and self._grant_one():
            pass

    def _grant_one(self) -> bool:
        """Whether somebody waited."""
        share = max(1, self._window.size // 2)
        while self._waiting:
            key = min(self._waiting, key=lambda key: (key[0], self._namespaces[key[1]]))
            line = self._waiting[key]
            age = line.first(self._roots, share)
            if age < 0:
                del self._waiting[key]
                continue
            self._in_flight += 1
            self._namespaces[key[1]] += 1
            self._roots[age] += 1
            line.leave(age).set_result(None)
            return True
        return False


def _give_back(busy: Counter[T], key: T) -> None:
    busy[key] -= 1
    if not busy[key]:
        del busy[key]
