"""Requests to the API server on behalf of one root: its turn in the budget, the fence, retries, a span each."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
import structlog

from raybus.applier.budget import Budget, Turn, Urgency
from raybus.kube.port import Rejected, Request, Response, Sender, Transient
from raybus.telemetry.traces import span

ATTEMPTS = 4
FIRST_WAIT = 0.1
"""Seconds before the second attempt; each further wait is three times as long."""
PATIENCE = 3.0
"""Seconds after which nothing more is tried by itself: the Decision comes again, unless a newer one has replaced it."""
REQUEST_TIMEOUT = 10.0
STALE_WAIT = 0.25
BUSY_PAUSE = 1.0
"""Seconds without any request after a 429 that names no time."""
LONGEST_PAUSE = 30.0

_TOO_LARGE = ("request is too large", "larger than max")
"""What etcd says, through an HTTP 500, of an object that it will never take."""

log = structlog.get_logger()


class Fenced(Exception):
    """This process must not write now: its lease is gone or its last answered heart-beat is too old.

    `wait`: seconds until the Decision may be delivered again, 0.0 if that is another replica's business.
    """

    def __init__(self, why: str, wait: float) -> None:
        super().__init__(why)
        self.wait = wait


class Lease(Protocol):
    """What the fence asks of the applier's partitions."""

    def owns(self, partition: int) -> bool:
        """Whether the lease of this partition is ours."""

    def fresh(self) -> bool:
        """Whether our last answered heart-beat is recent by the monotonic clock."""


Check = Callable[[], Awaitable[None]]
"""Raises Fenced when a request must not be sent any more."""


class Calls:
    """All requests of this process."""

    def __init__(self, sender: Sender, budget: Budget, lease: Lease) -> None:
        self.sender = sender
        self.budget = budget
        self.lease = lease

    def lane(self, partition: int, namespace: str, age: int, check: "Check | None" = None) -> "Lane":
        """The requests of one root. `check`: a further fence before each of them."""
        return Lane(self, partition, Turn(Urgency.CREATE, namespace, age), check)


class Lane:
    """The requests of one Decision."""

    def __init__(self, calls: Calls, partition: int, turn: Turn, check: Check | None) -> None:
        self._calls = calls
        self._check = check
        self._partition = partition
        self._turn = turn

    async def send(self, request: Request, urgency: Urgency) -> Response:
        """Send, trying again what may work the next time.

        Raises Fenced before anything is sent that this process must not send any more; Transient when every attempt
        failed; Rejected (also for what etcd will never take); Bug.
        """
        request = msgspec.structs.replace(request, timeout=REQUEST_TIMEOUT)
        return await self._insist(request, self._turn._replace(urgency=urgency))

    async def _insist(self, request: Request, turn: Turn) -> Response:
        wait, begun = FIRST_WAIT, asyncio.get_running_loop().time()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._once(request, turn)
            except Transient as error:
                if any(words in str(error) for words in _TOO_LARGE):
                    raise Rejected(413, "RequestEntityTooLarge", str(error)) from error
                if error.status == 429:
                    self._calls.budget.pause(min(error.retry_after or BUSY_PAUSE, LONGEST_PAUSE))
                late = asyncio.get_running_loop().time() - begun > PATIENCE
                if attempt == ATTEMPTS or late or _may_have_created(request, error):
                    raise
                log.info("request will be tried again", error=str(error), attempt=attempt, wait=wait)
            await asyncio.sleep(wait)
            wait *= 3
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(self, request: Request, turn: Turn) -> Response:
        async with self._calls.budget.slot(turn):
            if self._check is not None:
                await self._check()
            if not self._calls.lease.owns(self._partition):
                raise Fenced(f"partition {self._partition} belongs to another replica now", 0.0)
            if not self._calls.lease.fresh():
                raise Fenced("no heart-beat of this replica was answered within the last second", STALE_WAIT)
            with span(f"{request.method} {request.path}", attributes={"http.request.method": request.method}):
                begun = asyncio.get_running_loop().time()
                response = await self._calls.sender.send(request)
                self._calls.budget.answered(asyncio.get_running_loop().time() - begun)
                return response


def _may_have_created(request: Request, error: Transient) -> bool:
    """Whether nobody knows what became of a create. Seconds have passed: what it made may be gone again by now, and
    to make it anew would use its name twice (design §3, "Names"). So the Decision has to pass its fences again."""
    return request.method == "POST" and error.sent and not error.status
