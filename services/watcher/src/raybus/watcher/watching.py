"""The watches: each runs for as long as the service, active or not, and says what it sees."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from typing import Protocol

import structlog

from raybus.kube.follow import follow
from raybus.kube.objects import Object
from raybus.kube.port import Sender
from raybus.kube.watch import Gone, Put, Skipped, Synced, Target, Trouble, Unserved
from raybus.telemetry import metrics

log = structlog.get_logger()


class Audience(Protocol):
    """Who is told what the watches see; watches are known by their number."""

    async def room(self) -> None:
        """Return when more may be said: holds a watch back."""

    def put(self, source: int, item: Object) -> None:
        """An object exists in this state."""

    def gone(self, source: int, key: tuple[str, str], uid: str, version: str) -> None:
        """An object no longer exists, or no longer matches."""

    def listed(self, source: int, version: str, there: Collection[tuple[str, str]]) -> None:
        """A watch has listed everything: as of `version` these exist and no others, whoever had heard of them."""

    def listed_again(self) -> None:
        """A watch has lost its place and listed everything anew: what came and went meanwhile nobody has shown."""


class Watches:
    """All watches of the service. `settled` is set once each has listed everything, or found its kind not served."""

    def __init__(
        self, sender: Sender, targets: Sequence[Target], audience: Audience, jitter: Callable[[], float]
    ) -> None:
        self._sender, self._targets, self._audience, self._jitter = sender, targets, audience, jitter
        self._open = dict.fromkeys(range(len(targets)))
        self._troubles: dict[int, str] = {}
        self._unserved: set[int] = set()
        self._skipped: set[str] = set()
        self.settled = asyncio.Event()

    def problem(self) -> str:
        """Why not everything is seen, "" if it is: the first trouble, or what is still being listed."""
        for number, text in sorted(self._troubles.items()):
            return text or f"{self._targets[number]} is in trouble"
        for number in self._open:
            return f"{self._targets[number]} has not been listed yet"
        return ""

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number, target in enumerate(self._targets):
                tasks.create_task(self._watch(number, target))

    async def _watch(self, number: int, target: Target) -> None:
        kind = target.kind.kind
        async with aclosing(follow(self._sender, target, self._jitter)) as events:
            async for event in events:
                metrics.WATCH_EVENTS.labels(kind, type(event).__name__.lower()).inc()
                match event:
                    case Put(item):
                        await self._audience.room()
                        self._audience.put(number, item)
                    case Gone(key, uid, version):
                        self._audience.gone(number, key, uid, version)
                    case Synced(version, there):
                        self._audience.listed(number, version, there)
                        self._synced(number, target)
                    case Unserved():
                        self._absent(number, target)
                    case Skipped(text):
                        self._skip(text)
                    case Trouble(text):
                        self._trouble(number, text)
                if isinstance(event, (Put, Gone)) and number in self._troubles:
                    self._recovered(number, target)

    def _synced(self, number: int, target: Target) -> None:
        if number in self._unserved:
            self._unserved.discard(number)
            log.info("kind is served now", watch=str(target))
        self._recovered(number, target)
        metrics.WATCH_SERVED.labels(target.kind.kind).set(1)
        if number not in self._open:
            self._audience.listed_again()
        self._settle(number)

    def _absent(self, number: int, target: Target) -> None:
        if number not in self._unserved:
            self._unserved.add(number)
            log.warning("kind is not served by this cluster, it is watched once its CRD is there", watch=str(target))
        metrics.WATCH_SERVED.labels(target.kind.kind).set(0)
        self._settle(number)

    def _settle(self, number: int) -> None:
        self._open.pop(number, None)
        if not self._open:
            self.settled.set()

    def _skip(self, text: str) -> None:
        if text not in self._skipped:
            self._skipped.add(text)
            log.error("object left out", why=text)

    def _trouble(self, number: int, text: str) -> None:
        """Said once per time of trouble: the same failure comes with every retry."""
        if number not in self._troubles:
            log.warning("watch in trouble, trying again", why=text)
        self._troubles[number] = text

    def _recovered(self, number: int, target: Target) -> None:
        if self._troubles.pop(number, None) is not None:
            log.info("watch works again", watch=str(target))
