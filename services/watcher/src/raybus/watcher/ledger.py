"""What VIEW holds: read when a watcher becomes active, and kept warm while it stands by."""

import asyncio

import structlog

from raybus.api.subjects import FACT, MARKER, PRESENCE, RESULT, parse_view
from raybus.bus.port import Bus, BusError, Loaded, Message, Reset
from raybus.watcher.versions import Held, held_by

ALL = "view.*.*.*.*.*.*"
RETRY = 1.0

log = structlog.get_logger()


class Ledger:
    """`held`: subject -> the living object or presence that it holds. `presences`: subject -> body of a presence.
    `markers`: subject -> (sequence, stream named). `created`: of the stream that all this was read from; `loaded` is
    set while it is complete."""

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.presences: dict[str, bytes] = {}
        self.markers: dict[str, tuple[int, str]] = {}
        self.created = ""
        self.loaded = asyncio.Event()

    async def follow(self, bus: Bus) -> None:
        """Keep up with the stream until cancelled."""
        before = await _stream_created(bus)
        async for event in bus.follow("VIEW", [ALL]):
            match event:
                case Reset():
                    self._clear()
                    before = await _stream_created(bus)
                case Loaded():
                    self.created = await _stream_created(bus)
                    if self.created == before:
                        self.loaded.set()
                    # Otherwise the store was wiped in between: a Reset is on its way.
                case message:
                    self._take(message)

    def _take(self, message: Message) -> None:
        try:
            key = parse_view(message.subject)
            if key.kind == MARKER:
                self.markers[message.subject] = message.seq, message.data.decode()
            elif key.kind not in (FACT, RESULT):
                self._hold(message, key.kind)
        except ValueError as error:
            log.error("message in VIEW cannot be read and is left alone", subject=message.subject, why=str(error))

    def _hold(self, message: Message, kind: str) -> None:
        held, subject = held_by(message), message.subject
        if held.gone:
            self.held.pop(subject, None)
            self.presences.pop(subject, None)
            return
        self.held[subject] = held
        if kind == PRESENCE:
            self.presences[subject] = message.data

    def _clear(self) -> None:
        self.loaded.clear()
        self.held.clear()
        self.presences.clear()
        self.markers.clear()


async def _stream_created(bus: Bus) -> str:
    while True:
        try:
            return await bus.stream_created("VIEW")
        except BusError as error:
            log.warning("cannot read the state of stream VIEW, trying again", why=str(error))
            await asyncio.sleep(RETRY)
