"""Named objects that decisions depend on and no watch selects: read while an ASK names them, told as presence.

Only existence and the names of keys with a value are told, never values (design §3, "No secret on the bus"). A TLS
Secret is usable when `tls.crt` and `tls.key` are among them.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog
from msgspec import Raw, Struct

from raybus.api import subjects
from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND
from raybus.api.messages import AskMessage, Presence
from raybus.api.routes import Route
from raybus.api.schema import Newer, Unreadable, read
from raybus.api.times import Instant
from raybus.bus.port import Bus, Loaded, Message, Reset
from raybus.kube.port import KubeError, Rejected, Sender
from raybus.kube.request import get
from raybus.runtime.behind import Behind
from raybus.telemetry import metrics
from raybus.watcher.versions import Item, time_version

FIRST, SLOWEST = 1.0, 15.0
"""Seconds between two looks at an object: the time grows from the first to the second while nothing changes."""
READERS = 4

_ASK = msgspec.json.Decoder(AskMessage)

Offer = Callable[[Item], None]
Content = tuple[bool, tuple[str, ...]]
"""Whether an object exists, and its keys: what a presence says apart from its time."""

log = structlog.get_logger()


class _Keys(Struct):
    data: dict[str, Raw] = {}


class Needs:
    """Follows ASK while this watcher is active. `told`: subject -> presence that VIEW holds (b"" = unreadable).
    `behind`: the asks of a later release."""

    def __init__(
        self, bus: Bus, sender: Sender, offer: Offer, now: Callable[[], Instant], told: Mapping[str, bytes]
    ) -> None:
        self._bus, self._sender, self._offer, self._now = bus, sender, offer, now
        self._told = {subject: _content(data) for subject, data in told.items()}
        self._loaded = False
        self._by_root: dict[Route, frozenset[Ref]] = {}
        self._seen: dict[Ref, Presence] = {}
        self._readers: dict[Ref, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(READERS)
        self.behind = Behind("watcher", "ASK")

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            async for event in self._bus.follow("ASK", ["ask.*.*.*.*"]):
                match event:
                    case Reset():
                        self._loaded = False
                        self._by_root.clear()
                        self.behind.leave(("",))
                    case Loaded():
                        self._loaded = True
                        self._settle(tasks)
                    case message:
                        self._take(message, tasks)

    def _settle(self, tasks: asyncio.TaskGroup) -> None:
        """All asks are known: whatever has been told beyond what they need is withdrawn."""
        needed = {self._subject(root, ref) for root, refs in self._by_root.items() for ref in refs}
        for subject in self._told.keys() - needed:
            self._withdraw(subject)
        self._schedule(tasks)

    def _take(self, message: Message, tasks: asyncio.TaskGroup) -> None:
        controller, _, namespace, name = subjects.parse_root(message.subject)
        root = Route(controller, namespace, name)
        self.behind.replaced(message.subject)
        try:
            asked = read(message.headers, message.data, _needs)
        except Newer as error:
            self.behind.met(message.subject, str(error))
            return
        except Unreadable as error:
            metrics.BAD_MESSAGES.labels("watcher", "ask").inc()
            log.error("ask cannot be read and is left out", subject=message.subject, why=str(error))
            return
        wanted = frozenset(ref for ref in asked if self._is_known(ref))
        before = self._by_root.pop(root, frozenset())
        if wanted:
            self._by_root[root] = wanted
        for ref in before - wanted:
            self._withdraw(self._subject(root, ref))
        for ref in wanted - before:
            if ref in self._seen:
                self._tell(root, self._seen[ref])
        self._schedule(tasks)

    def _is_known(self, ref: Ref) -> bool:
        if ref.kind not in BY_KIND:
            log.error("an ask needs a kind that is not known", object=str(ref))
        return ref.kind in BY_KIND

    def _schedule(self, tasks: asyncio.TaskGroup) -> None:
        """One reader per needed object, none for others."""
        if not self._loaded:
            return
        needed = {ref for refs in self._by_root.values() for ref in refs}
        for ref in self._readers.keys() - needed:
            self._readers.pop(ref).cancel()
            self._seen.pop(ref, None)
        for ref in needed - self._readers.keys():
            self._readers[ref] = tasks.create_task(self._read_on(ref))

    async def _read_on(self, ref: Ref) -> None:
        delay, failing = FIRST, False
        while True:
            try:
                async with self._slots:
                    found = await self._read(ref)
                if self._is_news(found):
                    self._seen[ref] = found
                    delay = FIRST
                    for root in [root for root, refs in self._by_root.items() if ref in refs]:
                        self._tell(root, found)
                failing = False
            except KubeError as error:
                # Not observed is not missing: nothing is told until the server has answered.
                if not failing:
                    log.warning("a needed object cannot be read, trying again", object=str(ref), why=str(error))
                failing = True
            await asyncio.sleep(delay)
            delay = min(delay * 1.5, SLOWEST)

    async def _read(self, ref: Ref) -> Presence:
        at = self._now()
        try:
            answer = await self._sender.send(get(ref))
        except Rejected as error:
            if error.code != 404:
                raise
            return Presence(ref=ref, exists=False, at=at)
        return Presence(ref=ref, exists=True, keys=_keys(answer.body), at=at)

    def _is_news(self, found: Presence) -> bool:
        before = self._seen.get(found.ref)
        return before is None or (before.exists, before.keys) != (found.exists, found.keys)

    def _tell(self, root: Route, presence: Presence) -> None:
        subject, content = self._subject(root, presence.ref), (presence.exists, presence.keys)
        if self._told.get(subject) != content:
            self._told[subject] = content
            self._offer(Item(subject, "", time_version(presence.at), msgspec.json.encode(presence)))

    def _withdraw(self, subject: str) -> None:
        if self._told.pop(subject, None) is not None:
            self._offer(Item(subject, "", time_version(self._now()), b""))

    def _subject(self, root: Route, ref: Ref) -> str:
        return subjects.view(*root, subjects.PRESENCE, f"{ref.kind}/{ref.name}")


def _needs(data: bytes) -> tuple[Ref, ...]:
    return _ASK.decode(data).needs if data else ()


def _content(data: bytes) -> Content:
    try:
        presence = msgspec.json.decode(data, type=Presence)
    except msgspec.MsgspecError:
        return False, ("?",)
    return presence.exists, presence.keys


def _keys(body: bytes) -> tuple[str, ...]:
    """The names of the keys that have a value, in order."""
    try:
        data = msgspec.json.decode(body, type=_Keys).data
    except msgspec.MsgspecError:
        return ()
    return tuple(sorted(key for key, value in data.items() if bytes(value) not in (b'""', b"null")))
