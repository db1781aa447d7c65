"""What the applier writes about its work: the root's `result` in the view, and the timeline."""

import re
from collections.abc import Callable, Mapping

import msgspec
import structlog

from raybus.api import schema, subjects
from raybus.api.decision import Why
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_AT, H_SCHEMA, SCHEMA, TOMBSTONE_TTL, Refusal, Result, TimelineEntry
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.applier.job import RootKey
from raybus.applier.memory import RootMemory
from raybus.applier.results import NAME_TAKEN
from raybus.bus.port import Bus, Conflict

ROUNDS = 5
NAME = "applier"

_DECODER = msgspec.json.Decoder(Result)

log = structlog.get_logger()


class Record:
    """Reads and writes results by compare-and-set, and appends to the timeline."""

    def __init__(self, bus: Bus, now: Callable[[], Instant]) -> None:
        self._bus = bus
        self._now = now

    async def result(self, key: RootKey, memory: RootMemory) -> Result | None:
        """What the view holds; read once per root and then remembered. Raises BusError."""
        if not memory.result_read:
            await self._read(key, memory)
        return memory.result

    async def update(
        self, key: RootKey, memory: RootMemory, change: Callable[[Result | None], Result], trace: Mapping[str, str]
    ) -> None:
        """Store `change` of the present result, unless it changes nothing. Raises BusError."""
        base = await self.result(key, memory)
        for _ in range(ROUNDS):
            after = change(base)
            if after == base or (base is None and not after.refusals and after.drop is None):
                return
            headers = {**trace, H_AT: f"{self._now():.6f}", H_SCHEMA: SCHEMA}
            try:
                seq = await self._bus.put(
                    "VIEW",
                    subjects.view(*key, subjects.RESULT, NAME),
                    msgspec.json.encode(after),
                    headers,
                    expect=memory.result_seq,
                    ttl=TOMBSTONE_TTL,
                )
            except Conflict:
                await self._read(key, memory)
                base = memory.result
                continue
            memory.result, memory.result_seq = after, seq
            return
        raise Conflict(f"result of {key}: changed {ROUNDS} times while it was being written")

    async def timeline(self, entry: TimelineEntry, trace: Mapping[str, str]) -> None:
        """Append one entry. Raises BusError."""
        root = entry.root
        subject = subjects.timeline(BY_KIND[root.kind].token, root.namespace, root.name)
        await self._bus.put("TIMELINE", subject, msgspec.json.encode(entry), {**trace, H_SCHEMA: SCHEMA})

    async def _read(self, key: RootKey, memory: RootMemory) -> None:
        message = await self._bus.last("VIEW", subjects.view(*key, subjects.RESULT, NAME))
        memory.result, memory.result_seq, memory.result_read = None, message.seq if message else 0, True
        if message is not None and message.data:
            try:
                memory.result = schema.read(message.headers, message.data, _DECODER.decode)
            except (schema.Newer, schema.Unreadable) as error:
                log.error("result cannot be read, it will be replaced", subject=message.subject, error=str(error))


def why(refusal: Refusal) -> Why:
    """A refusal as `raybus explain` and the timeline show it."""
    reason, step = _explain(refusal)
    text = f"{refusal.verb} of {refusal.ref} refused: {without_values(refusal.message)}"
    return Why(reason=reason, text=text, about=refusal.ref, next_step=step)


def _explain(refusal: Refusal) -> tuple[Reason, str]:
    match refusal:
        case Refusal(reason=reason) if reason == NAME_TAKEN:
            return Reason.NAME_TAKEN, f"delete or rename {refusal.ref}"
        case Refusal(code=403, message=message) if "exceeded quota" in message:
            return Reason.QUOTA_REFUSED, f"raise the quota of namespace {refusal.ref.namespace} or free some of it"
        case Refusal(code=403):
            return Reason.FORBIDDEN, "grant the applier this permission, or look which admission policy forbids it"
        case Refusal(code=413):
            return Reason.REFUSED_BY_API_SERVER, "make the object smaller"
        case _:
            return Reason.REFUSED_BY_API_SERVER, "change the specification so that the API server accepts it"


def without_values(message: str) -> str:
    """The server's words without what it quotes: field values (of env, args) follow `value:` or stand in braces."""
    return re.split(r"value: |\{", message, maxsplit=1)[0].strip()[:300]
