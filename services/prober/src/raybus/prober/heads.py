"""Bounds on calls: few per head, many over all, and heads that do not answer never in the way of those that do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from raybus.api.decision import Head

PER_HEAD = 2
"""Calls to one head at a time: an action must not wait for a probe that hangs."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 5.0
"""Seconds until a head that did not answer is called again: they double from the first to the longest."""


class HeadState:
    """One head, by pod UID. `failures`: calls in a row that got no answer."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(PER_HEAD)
        self.failures = 0
        self.users = 0

    def back_off(self) -> float:
        """Seconds to wait after the last failure."""
        return min(FIRST_WAIT * 2.0 ** min(self.failures - 1, 10), LONGEST_WAIT) if self.failures else 0.0


class Heads:
    """All heads that are asked something. `limit`: calls at once to heads that answered last time; those that did not
    share a separate quarter of it."""

    def __init__(self, limit: int) -> None:
        self._healthy = asyncio.Semaphore(limit)
        self._suspect = asyncio.Semaphore(max(1, limit // 4))
        self._heads: dict[str, HeadState] = {}
        self.askers = 0
        """Asks that are being worked on."""

    def join(self, head: Head) -> HeadState:
        """The state of a head, kept until everyone who joined has left."""
        state = self._heads.setdefault(head.pod_uid, HeadState())
        state.users += 1
        self.askers += 1
        return state

    def leave(self, head: Head) -> None:
        """The counterpart of `join`."""
        state = self._heads[head.pod_uid]
        state.users -= 1
        self.askers -= 1
        if not state.users:
            del self._heads[head.pod_uid]

    @asynccontextmanager
    async def place(self, state: HeadState) -> AsyncIterator[None]:
        """One call's place."""
        async with state.places, self._suspect if state.failures else self._healthy:
            yield
