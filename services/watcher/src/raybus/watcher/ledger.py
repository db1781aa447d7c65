"""What VIEW holds: followed for as long as the service, active or not.

Headers are enough to know which state of which object a subject holds; only presences and markers are read whole. A
standby is warm by it, and the active watcher hears of the applier's echoes, which it then need not repeat (ADR 0091).
"""

import asyncio

import structlog

from raybus.api.subjects import FACT, MARKER, PRESENCE, RESULT, parse_view
from raybus.bus.port import Bus, BusError, Loaded, Message, Reset
from raybus.watcher.versions import Held, held_by

ALL = "view.*.*.*.*.*.*"
WHOLE = [f"view.*.*.*.*.{kind}.*" for kind in (MARKER, PRESENCE)]
RETRY = 1.0

log = structlog.get_logger()


class Ledger:
    """`held`: subject -> the living object or presence that it holds. `heard`: those of them that somebody has written
    since whoever empties it looked. `presences`: subject -> body of a presence. `markers`: subject -> (sequence, stream
    named). `created`: of the stream that all this was read from; `loaded` is set while it is complete."""

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.heard: set[str] = set()
        self.presences: dict[str, bytes] = {}
        self.markers: dict[str, tuple[int, str]] = {}
        self.created = ""
        self.loaded = asyncio.Event()
        self._streams: dict[bool, str] = {}

    async def follow(self, bus: Bus) -> None:
        """Keep up with the stream until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow(bus, heads=True))
                tasks.create_task(self._follow(bus, heads=False))
        finally:
            self._forget(True)
            self._forget(False)

    async def _follow(self, bus: Bus, *, heads: bool) -> None:
        before = await _stream_created(bus)
        async for event in bus.follow("VIEW", [ALL] if heads else WHOLE, heads=heads):
            match event:
                case Reset():
                    self._forget(heads)
                    before = await _stream_created(bus)
                case Loaded():
                    created = await _stream_created(bus)
                    # Otherwise the store was wiped in between: a Reset is on its way.
                    if created == before:
                        self._complete(heads, created)
                case message:
                    self._take(message, heads)

    def _complete(self, heads: bool, created: str) -> None:
        """One of the two has been read; they may speak of two streams for a moment, when the store is wiped."""
        self._streams[heads] = created
        if len(self._streams) == 2 and len(set(self._streams.values())) == 1:
            self.created = created
            self.loaded.set()

    def _take(self, message: Message, heads: bool) -> None:
        try:
            key = parse_view(message.subject)
            if heads and key.kind not in (FACT, RESULT, MARKER, PRESENCE):
                self._hold(message)
            elif not heads and key.kind == MARKER:
                self.markers[message.subject] = message.seq, message.data.decode()
            elif not heads:
                self.presences[message.subject] = message.data
                if not self._hold(message):
                    del self.presences[message.subject]
        except ValueError as error:
            log.error("message in VIEW cannot be read and is left alone", subject=message.subject, why=str(error))

    def _hold(self, message: Message) -> bool:
        """Whether the subject is not empty. A writer of this process may know of a later state already."""
        known, held = self.held.get(message.subject), held_by(message)
        if known is None or known.seq <= held.seq:
            if held.gone:
                self.held.pop(message.subject, None)
                self.heard.discard(message.subject)
            else:
                self.held[message.subject] = held
                if known is None or known.seq < held.seq:
                    self.heard.add(message.subject)
        return not held.gone

    def _forget(self, heads: bool) -> None:
        self.loaded.clear()
        self._streams.pop(heads, None)
        if heads:
            # Another mapping: what a publisher of the former stream still notes down must not count for the next one.
            self.held, self.heard = {}, set()
        else:
            self.presences.clear()
            self.markers.clear()


async def _stream_created(bus: Bus) -> str:
    while True:
        try:
            return await bus.stream_created("VIEW")
        except BusError as error:
            log.warning("cannot read the state of stream VIEW, trying again", why=str(error))
            await asyncio.sleep(RETRY)
