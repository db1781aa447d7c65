"""One time of being the active watcher: bring VIEW in step with the world, mark it filled, keep it in step.

A session ends when the bus has lost what it knew (reconnect, wiped store): the next one compares everything again.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing

import msgspec
import structlog
from msgspec import Struct

from raybus.api import subjects
from raybus.api.kinds import BY_KIND, BY_TOKEN, ROOTS
from raybus.api.messages import H_AT, H_EPOCH, H_SCHEMA, SCHEMA, Epoch
from raybus.api.names import PARTITIONS
from raybus.api.routes import Key, Route, view_subject
from raybus.api.times import Instant
from raybus.bus.port import Bus, BusError, Conflict
from raybus.kube.follow import follow
from raybus.kube.objects import Object
from raybus.kube.port import Sender
from raybus.kube.watch import Put, Synced, Target, Unserved
from raybus.telemetry import traces
from raybus.watcher.fetcher import Fetcher
from raybus.watcher.ledger import Ledger
from raybus.watcher.needs import Needs
from raybus.watcher.publisher import Pending, Publisher
from raybus.watcher.versions import Held, Item, is_news
from raybus.watcher.world import Change, Present, World

RETRY = 1.0
LOOK_AGAIN, LONGEST_LOOK = 5.0, 60.0
"""Seconds until an object that VIEW holds and no watch shows is looked for again: they double."""

log = structlog.get_logger()


class Ports(Struct, frozen=True):
    """What a watcher is connected to. `may_write`: false while it cannot be sure of its lease. `now`: wall clock.
    `jitter`: a factor about 1 for delays."""

    bus: Bus
    sender: Sender
    may_write: Callable[[], bool]
    now: Callable[[], Instant]
    jitter: Callable[[], float]


class Session:
    """`problem`: why VIEW is not in step with the world at present, "" if it is."""

    def __init__(self, ports: Ports, targets: tuple[Target, ...], world: World, ledger: Ledger, epoch: Epoch) -> None:
        self._ports, self._targets, self._world = ports, targets, world
        self._ledger, self._epoch = ledger, epoch
        self.publisher = Publisher(ports.bus, epoch, ledger.held, ports.may_write)
        self._fetcher = Fetcher(ports.sender, targets, self)
        self._needs = Needs(ports.bus, ports.sender, self._offer, ports.now, ledger.presences)
        self._stale: dict[Key, set[str]] = {}
        self._filled = False

    @property
    def problem(self) -> str:
        """See the class."""
        if problem := self.publisher.problem or self._needs.behind.problem():
            return problem
        return "" if self._filled else "the view is being filled"

    async def run(self, settled: asyncio.Event) -> None:
        """Work until cancelled. `settled`: every watch has listed everything. Raises Deposed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.publisher.run())
            tasks.create_task(self._fetcher.run())
            tasks.create_task(self._needs.run())
            await settled.wait()
            if self._unmarked():
                await self._list_anew()
            self._compare()
            tasks.create_task(self._look_again())
            tasks.create_task(self._look_at_heard())
            await self._fetcher.done()
            await self.publisher.written()
            await self._mark()
            self._filled = True

    def changed(self, changes: Iterable[Change]) -> None:
        """Bring these changes of the world to VIEW."""
        for change in changes:
            match change:
                case Present(key, route, uid, version, None, _):
                    if is_news(Item(view_subject(route, key), uid, version, b"?"), self._held(route, key)):
                        self._fetcher.want(key)
                case Present(key, route, uid, version, bytes(raw), patience):
                    self._offer(Item(view_subject(route, key), uid, version, raw), route, patience)
                case absent:
                    subject = view_subject(absent.route, absent.key)
                    self._offer(Item(subject, absent.uid, absent.version, b""), absent.route)

    def read(self, key: Key, item: Object) -> bool:
        """The fetcher has read an object; see `fetcher.Audience`."""
        try:
            changes = self._world.refreshed(BY_KIND[key.kind], item)
        except msgspec.MsgspecError as error:
            log.error("object cannot be read and is left out", object="/".join(key), why=str(error))
            return True
        self.changed(changes)
        return key in self._world

    def missing(self, key: Key) -> None:
        """The fetcher has found nothing. What a watch still shows is left to that watch; what only VIEW still holds
        has vanished while nobody looked."""
        if key in self._world:
            return
        for subject in self._stale.pop(key, ()):
            held = self._ledger.held.get(subject)
            if held is not None:
                self._offer(Item(subject, held.uid, held.version, b""))

    async def room(self) -> None:
        """See `fetcher.Audience`."""
        await self.publisher.room()

    def _held(self, route: Route, key: Key) -> Held | None:
        return self._ledger.held.get(view_subject(route, key))

    def _offer(self, item: Item, route: Route | None = None, patience: float = 0.0) -> None:
        parent: dict[str, str] = {}
        if route is not None and traces.enabled():
            root = Key(ROOTS[route.controller], route.namespace, route.root)
            seed = self._world.trace_seed(root)
            parent = traces.root_parent(seed) if seed else {}
        since = asyncio.get_running_loop().time()
        # Nothing rests while the marker, and with it every decision, waits for what is written.
        self.publisher.offer(Pending(item, self._ports.now(), since, parent), patience if self._filled else 0.0)

    # ---- the fill

    def _unmarked(self) -> list[str]:
        """The markers that do not name the present stream."""
        names = [subjects.fill_marker(c, p) for c in subjects.CONTROLLERS for p in range(PARTITIONS)]
        return [name for name in names if self._ledger.markers.get(name, (0, ""))[1] != self._ledger.created]

    async def _list_anew(self) -> None:
        """A marker says that everything is there, and a watch may have been silent for a minute without anybody having
        noticed yet; the echoes that made up for it are gone with the store. So a full fill begins with fresh lists."""
        await asyncio.gather(*(self._list_one(number, target) for number, target in enumerate(self._targets)))

    async def _list_one(self, number: int, target: Target) -> None:
        async with aclosing(follow(self._ports.sender, target, self._ports.jitter)) as events:
            async for event in events:
                match event:
                    case Put(item):
                        await self.room()
                        self._shown(number, target, item)
                    case Synced(version, there):
                        self.changed(self._world.listed(number, version, there))
                        return
                    case Unserved():
                        return
                    case _:
                        continue

    def _shown(self, number: int, target: Target, item: Object) -> None:
        try:
            self.changed(self._world.put(number, target.kind, item))
        except msgspec.MsgspecError as error:
            log.error("object cannot be read and is left out", object=f"{target.kind.kind} {item.key}", why=str(error))

    def _compare(self) -> None:
        """Want whatever VIEW does not hold in its present state, and whatever it holds that the watches do not show.

        The latter is looked at again rather than declared gone: the applier may have created it an instant ago, and
        a watch be late (design §3, "Own writes come back at once").
        """
        expected = set()
        for present in self._world.present():
            subject = view_subject(present.route, present.key)
            expected.add(subject)
            if not self.publisher.is_waiting(subject):
                self.changed([present])
        self._ledger.heard.clear()
        for subject in self._ledger.held.keys() - expected:
            self._judge(subject)

    def _judge(self, subject: str) -> None:
        """What VIEW holds and no watch shows is looked for; what is known to belong elsewhere goes."""
        key = subjects.parse_view(subject)
        if key.kind == subjects.PRESENCE:
            return
        if key.kind not in BY_TOKEN:
            log.error("subject of an unknown kind in VIEW is left alone", subject=subject)
            return
        found = Key(BY_TOKEN[key.kind].kind, key.namespace, key.name)
        if found in self._world:
            if not self._world.shows(found, subject):
                held = self._ledger.held[subject]
                self._offer(Item(subject, held.uid, held.version, b""))
        else:
            self._stale.setdefault(found, set()).add(subject)
            self._fetcher.want(found)

    async def _look_at_heard(self) -> None:
        """A ledger may be behind VIEW when it is compared, and an echo may come after the object's end: either is heard
        of only later, when all watches may have said already what they had to say."""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            heard, self._ledger.heard = self._ledger.heard, set()
            for subject in heard & self._ledger.held.keys():
                if not self.publisher.is_waiting(subject):
                    self._judge(subject)

    async def _look_again(self) -> None:
        """What VIEW held at the start and no watch showed was left alone if it existed then. While no watch shows it,
        it is looked for again: its end may be among what a silent watch has missed."""
        delay = LOOK_AGAIN
        while True:
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_LOOK) if self._stale else LOOK_AGAIN
            for key in self._stale:
                if key not in self._world:
                    self._fetcher.want(key)

    async def _mark(self) -> None:
        """Say in every partition that all that exists has been published (design §3)."""
        missing = self._unmarked()
        await asyncio.gather(*(self._mark_one(name) for name in missing))
        if missing:
            log.info("view filled", objects=len(self._world), markers=len(missing))

    async def _mark_one(self, subject: str) -> None:
        seq = self._ledger.markers.get(subject, (0, ""))[0]
        headers = {H_AT: f"{self._ports.now():.6f}", H_SCHEMA: SCHEMA, H_EPOCH: str(self._epoch)}
        while True:
            try:
                await self._ports.bus.put("VIEW", subject, self._ledger.created.encode(), headers, expect=seq)
                return
            except Conflict:
                last = await self._ports.bus.last("VIEW", subject)
                seq = last.seq if last else 0
            except BusError as error:
                log.error("marker not written, trying again", subject=subject, why=str(error))
                await asyncio.sleep(RETRY)
