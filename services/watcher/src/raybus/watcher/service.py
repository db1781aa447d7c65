"""The watcher: watches always, publishes while it holds the lease (design §2, §3)."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Container, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import structlog

from raybus.api.messages import Epoch
from raybus.api.routes import Key
from raybus.bus.partitions import Lost, Partitions, Taken
from raybus.bus.port import Bus, BusError, Loaded, Reset
from raybus.kube.objects import Object
from raybus.telemetry import metrics
from raybus.watcher.ledger import Ledger
from raybus.watcher.publisher import Deposed
from raybus.watcher.session import Ports, Session
from raybus.watcher.targets import targets
from raybus.watcher.watching import Watches
from raybus.watcher.world import World

MARKERS = "view.*.*.=.=.marker.fill"
RETRY = 1.0
TOGETHER = 2.0
"""Seconds between the first watch that listed anew and the comparison with the view that follows from it."""
LOOK = 0.05
"""Seconds between two looks whether the ledger has heard of a new stream."""
DEPOSED = 5.0
"""Seconds after which a watcher that met a later epoch and still holds the lease goes on: by then it would have heard
of another holder, so what it met is left over from a bucket whose clock was ahead."""

log = structlog.get_logger()


class Watcher:
    """One replica of the watcher, for `namespaces` (none = all of them); `gates`: the feature gates that are open."""

    def __init__(
        self, ports: Ports, partitions: Partitions, namespaces: Sequence[str] = (), gates: Container[str] = ()
    ) -> None:
        self._ports, self._partitions = ports, partitions
        self._targets = targets(namespaces, gates)
        self._world, self._ledger = World(), Ledger()
        self._watches = Watches(ports.sender, self._targets, self, ports.jitter)
        self._session: Session | None = None
        self._active = False
        self._listed_again = asyncio.Event()

    def problem(self) -> str:
        """Why this replica is not ready, "" if it is: also a standby must see everything."""
        if problem := self._watches.problem():
            return problem
        if self._active:
            return self._session.problem if self._session else "the view is being compared"
        return "" if self._ledger.loaded.is_set() else "the view is being loaded"

    async def run(self) -> None:
        """Watch and, while the lease is ours, publish; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watches.run())
            tasks.create_task(self._keep_ledger())
            tasks.create_task(self._follow_lease())

    # ---- what the watches say

    async def room(self) -> None:
        """See `watching.Audience`."""
        if self._session is not None:
            await self._session.publisher.room()

    def put(self, source: int, item: Object) -> None:
        """See `watching.Audience`."""
        kind = self._targets[source].kind
        try:
            changes = self._world.put(source, kind, item)
        except msgspec.MsgspecError as error:
            log.error("object cannot be read and is left out", object=f"{kind.kind} {item.key}", why=str(error))
            return
        if self._session is not None:
            self._session.changed(changes)

    def gone(self, source: int, key: tuple[str, str], uid: str, version: str) -> None:
        """See `watching.Audience`."""
        changes = self._world.gone(source, Key(self._targets[source].kind.kind, *key), uid, version)
        if self._session is not None:
            self._session.changed(changes)

    def listed(self, source: int, version: str, there: Collection[tuple[str, str]]) -> None:
        """See `watching.Audience`."""
        changes = self._world.listed(source, version, there)
        if self._session is not None:
            self._session.changed(changes)

    def listed_again(self) -> None:
        """See `watching.Audience`."""
        self._listed_again.set()

    # ---- active and standby

    async def _follow_lease(self) -> None:
        work: asyncio.Task[None] | None = None
        try:
            async for change in self._partitions.changes():
                if work is not None:
                    await _stop(work)
                    work = None
                match change:
                    case Taken(_, epoch):
                        log.info("active", epoch=str(epoch), warm=self._ledger.loaded.is_set())
                        work = asyncio.create_task(self._be_active(epoch))
                    case Lost(_, why):
                        log.info("standing by", why=why)
                self._active = isinstance(change, Taken)
                metrics.OWNED.labels("watcher").set(int(self._active))
        finally:
            if work is not None:
                await _stop(work)

    async def _keep_ledger(self) -> None:
        """Keep knowing what VIEW holds, so that a take-over publishes differences only."""
        while True:
            try:
                await self._ledger.follow(self._ports.bus)
            except Exception:
                log.exception("following the view broke, beginning anew")
                await asyncio.sleep(RETRY)

    async def _be_active(self, epoch: Epoch) -> None:
        """Session after session, until the lease is lost."""
        while True:
            try:
                await self._one_session(epoch)
            except ExceptionGroup as group:
                if group.subgroup(Deposed) is not None:
                    log.error("another watcher is active, waiting for the lease to say so", epoch=str(epoch))
                    await asyncio.sleep(DEPOSED)
                else:
                    log.exception("a session broke, beginning anew")
                    await asyncio.sleep(RETRY)
            except BusError as error:
                log.warning("a session could not begin, trying again", why=str(error))
                await asyncio.sleep(RETRY)

    async def _one_session(self, epoch: Epoch) -> None:
        """Returns when the bus, or a watch, has had a gap."""
        async with aclosing(_gaps(self._ports.bus)) as gaps:
            await anext(gaps)
            self._listed_again.clear()
            await self._load()
            self._session = Session(self._ports, self._targets, self._world, self._ledger, epoch)
            work = asyncio.create_task(self._session.run(self._watches.settled))
            gap = asyncio.ensure_future(anext(gaps))
            listed = asyncio.create_task(self._were_listed_again())
            try:
                await asyncio.wait((work, gap, listed), return_when=asyncio.FIRST_COMPLETED)
                if gap.done():
                    log.info("comparing the view anew", why=gap.result())
                elif listed.done():
                    log.info("comparing the view anew", why="a watch had lost its place")
                else:
                    await work
            finally:
                self._session = None
                await _stop(work)
                await _stop(gap)
                await _stop(listed)

    async def _were_listed_again(self) -> None:
        """Watches lose their place together: they are waited for, so that one comparison does for all."""
        await self._listed_again.wait()
        await asyncio.sleep(TOGETHER)

    async def _load(self) -> None:
        """Wait until the ledger is complete and about the present stream; a warm one is so already. Raises BusError."""
        while True:
            await self._ledger.loaded.wait()
            if self._ledger.created == await self._ports.bus.stream_created("VIEW"):
                return
            await asyncio.sleep(LOOK)


async def _gaps(bus: Bus) -> AsyncGenerator[str, None]:
    """ "" once the subscription stands, then the reason of every later gap: from then on none goes unnoticed."""
    standing = False
    async for event in bus.follow("VIEW", [MARKERS]):
        if isinstance(event, Loaded) and not standing:
            standing = True
            yield ""
        elif isinstance(event, Reset) and standing:
            yield event.why


async def _stop(task: "asyncio.Future[Any]") -> None:
    """Cancel and wait for the end. `wait` keeps apart our own cancellation, which goes on, from the task's."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        # What it died of has been said or does not matter any more.
        task.exception()
