"""The asks of one partition as they stand on the bus, each worked on by a task of its own."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec
import structlog

from raybus.api import schema
from raybus.api.decision import Ask
from raybus.api.messages import H_EPOCH, H_TRACE, AskMessage, Epoch
from raybus.api.schema import Newer, Unreadable
from raybus.api.subjects import CONTROLLERS, parse_root, partition_filter
from raybus.bus.port import BusError, Loaded, Message, Reset
from raybus.prober.asking import Asked, Tools, work_on
from raybus.prober.facts import FactStore
from raybus.prober.ports import Epochs
from raybus.runtime.behind import Behind
from raybus.telemetry import metrics

RootKey = tuple[str, str, str]
JUDGE_WAIT = 0.5

_DECODER = msgspec.json.Decoder(AskMessage)

log = structlog.get_logger()


class Desk:
    """One owned partition. `run` follows its asks until it is cancelled, and ends all work with it."""

    def __init__(self, partition: int, tools: Tools, epochs: Epochs, behind: Behind) -> None:
        self._partition, self._tools, self._epochs, self._behind = partition, tools, epochs, behind
        self._subjects = tuple(f"ask.{controller}.{partition}." for controller in CONTROLLERS)
        self._asks: dict[RootKey, dict[str, Ask]] = {}
        self._tasks: dict[tuple[RootKey, str], asyncio.Task[None]] = {}
        self._seen: set[RootKey] | None = None

    async def run(self) -> None:
        """Raises BusError."""
        try:
            async for item in self._tools.bus.follow("ASK", [partition_filter("ask", "*", self._partition)]):
                match item:
                    case Reset():
                        self._seen = set()
                        self._behind.leave(self._subjects)
                    case Loaded():
                        self._forget_unseen()
                    case message:
                        await self._take(message)
        finally:
            self._behind.leave(self._subjects)
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, message: Message) -> None:
        """Take in what one root asks now; a message that cannot be read changes nothing."""
        self._behind.replaced(message.subject)
        try:
            controller, _, namespace, name = parse_root(message.subject)
            key = (controller, namespace, name)
            if self._seen is not None:
                self._seen.add(key)
            body = _read(message)
            epoch = Epoch.parse(message.headers.get(H_EPOCH, ""))
        except Newer as error:
            self._behind.met(message.subject, str(error))
            return
        except (ValueError, Unreadable) as error:
            metrics.BAD_MESSAGES.labels("prober", "ask").inc()
            log.error("ask skipped: it cannot be read", subject=message.subject, why=str(error))
            return
        verdict = await self._judge(controller, epoch)
        if verdict != "current":
            log.info("ask skipped", subject=message.subject, epoch=str(epoch), verdict=verdict)
            return
        trace = {H_TRACE: message.headers[H_TRACE]} if H_TRACE in message.headers else {}
        self._set(key, body, trace)

    async def _judge(self, controller: str, epoch: Epoch) -> str:
        while True:
            try:
                return await self._epochs.judge(controller, self._partition, epoch)
            except BusError as error:
                log.warning("leases cannot be read, trying again", why=str(error))
                await asyncio.sleep(JUDGE_WAIT)

    def _set(self, key: RootKey, body: AskMessage | None, trace: Mapping[str, str]) -> None:
        before = self._asks.pop(key, {})
        after = {ask.id: ask for ask in body.asks} if body is not None else {}
        if after:
            self._asks[key] = after
        for ask_id in before.keys() - after.keys():
            self._next(key, ask_id, self._bury(key, ask_id, trace))
        if body is None:
            return
        for ask_id, ask in after.items():
            if before.get(ask_id) != ask:
                asked = Asked(key[0], self._partition, body.root, ask, trace)
                self._next(key, ask_id, work_on(asked, self._tools))

    def _forget_unseen(self) -> None:
        """Asks that were not there any more when the stream was read anew."""
        if self._seen is not None:
            for key in self._asks.keys() - self._seen:
                self._set(key, None, {})
        self._seen = None

    def _next(self, key: RootKey, ask_id: str, doing: Coroutine[Any, Any, None]) -> None:
        """Begin `doing` once what was done about this ask so far has ended."""
        slot = (key, ask_id)
        previous = self._tasks.get(slot)
        task = asyncio.create_task(_after(previous, doing))
        self._tasks[slot] = task
        task.add_done_callback(lambda done: self._tasks.pop(slot) if self._tasks.get(slot) is done else None)

    async def _bury(self, key: RootKey, ask_id: str, trace: Mapping[str, str]) -> None:
        """The fact of an ask that went away is of no use; left behind, it would vanish by itself within a day."""
        try:
            await FactStore(self._tools.bus, key, ask_id).bury(trace, self._tools.now())
        except BusError as error:
            log.warning("fact of a past ask not removed", root="/".join(key[1:]), ask=ask_id, error=str(error))


def _read(message: Message) -> AskMessage | None:
    """None for a root that asks nothing. Raises Newer, Unreadable."""
    return schema.read(message.headers, message.data, lambda data: _DECODER.decode(data) if data else None)


async def _after(previous: asyncio.Task[None] | None, doing: Coroutine[Any, Any, None]) -> None:
    if previous is not None:
        previous.cancel()
        await asyncio.gather(previous, return_exceptions=True)
    await doing
