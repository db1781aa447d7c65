"""Facts into the view by compare-and-set: one that is older than what is there gives way (design §3)."""

from collections.abc import Mapping

import msgspec
import structlog

from raybus.api import schema, subjects
from raybus.api.messages import H_AT, H_GONE, H_SCHEMA, SCHEMA, TOMBSTONE_TTL, Fact
from raybus.bus.port import Bus, Conflict

ROUNDS = 5

_DECODER = msgspec.json.Decoder(Fact)

log = structlog.get_logger()


class FactStore:
    """The fact of one ask: its subject, what is stored there, and at which sequence."""

    def __init__(self, bus: Bus, root: tuple[str, str, str], ask_id: str) -> None:
        self._bus = bus
        self._subject = subjects.view(*root, subjects.FACT, ask_id)
        self._seq = 0
        self._ours = False
        self.stored: Fact | None = None

    async def read(self) -> Fact | None:
        """What the view holds, None without a fact or with one that cannot be read. Raises BusError."""
        message = await self._bus.last("VIEW", self._subject)
        self._seq, self.stored, self._ours = message.seq if message else 0, None, False
        if message is not None and message.data:
            try:
                self.stored = schema.read(message.headers, message.data, _DECODER.decode)
            except (schema.Newer, schema.Unreadable) as error:
                log.error("fact cannot be read, it will be replaced", subject=self._subject, error=str(error))
        return self.stored

    async def publish(self, fact: Fact, trace: Mapping[str, str]) -> None:
        """Store `fact` unless the view holds one of somebody else whose call began later. Raises BusError.

        Our own come in the order of the calls, also when the clock was set back in between.

        It lives for a day without confirmation, so that the facts of roots that are long gone do not pile up.
        """
        headers = {**trace, H_AT: f"{fact.at:.6f}", H_SCHEMA: SCHEMA}
        await self._put(fact, msgspec.json.encode(fact), headers)

    async def bury(self, trace: Mapping[str, str], at: float) -> None:
        """Nobody asks any more. Raises BusError."""
        if await self.read() is not None:
            await self._put(None, b"", {**trace, H_AT: f"{at:.6f}", H_SCHEMA: SCHEMA, H_GONE: "1"})

    async def _put(self, fact: Fact | None, data: bytes, headers: Mapping[str, str]) -> None:
        for _ in range(ROUNDS):
            if fact is not None and self.stored is not None and self.stored.begun > fact.begun and not self._ours:
                return
            try:
                self._seq = await self._bus.put(
                    "VIEW", self._subject, data, headers, expect=self._seq, ttl=TOMBSTONE_TTL
                )
            except Conflict:
                await self.read()
                continue
            self.stored, self._ours = fact, True
            return
        raise Conflict(f"{self._subject}: changed {ROUNDS} times while it was being written")
