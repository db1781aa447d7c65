"""A bus in memory with the semantics of design §3, for behaviour tests and the simulator.

`BusServer` is the nats-server, `FakeBus` one process's connection to it (the port `raybus.bus.port.Bus`). Honest
where a service could go wrong: compare-and-set, one message per subject, TTLs, a work queue that redelivers after
`ACK_WAIT` and hands out a newer message of a subject while an older one is still being worked on, caches that are
loaded anew after a cut, and a store that can be wiped. What was sent takes effect whatever becomes of its sender. Left
out: streams that do not exist after a wipe (they are made anew at once), byte limits unless `full` is set, permissions.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from contextvars import Context
from typing import Any, TypeVar

import msgspec

from raybus.api.times import Instant
from raybus.bus.port import BusError, Conflict, KeyValue, Loaded, Message, Reset, StoreFull, StreamName
from raybus.testkit.fake_queue import Consumer
from raybus.testkit.fake_store import Stream, matches

T = TypeVar("T")

ACK_WAIT = 5.0
"""Seconds until a work message that was not acknowledged comes again."""
PUT_PATIENCE = 15.0
CALL_PATIENCE = 5.0
LOST = 2.0
"""Seconds after which a put whose acknowledgement was lost is sent again."""

_PER_SUBJECT: dict[str, int] = {"VIEW": 1, "INTENT": 1, "ASK": 1, "TIMELINE": 1000, "ctl": 1}


class Network:
    """What happens on the way of one connection; this one is perfect. Times are seconds."""

    def delay(self) -> float:
        """Of one call to the server, there and back."""
        return 0.0

    def lag(self) -> float:
        """Of one message to a cache; later ones wait behind it."""
        return 0.0

    def loses(self, what: str) -> bool:
        """Whether this `beat`, `put` (its acknowledgement) or `ack` (of work) is lost."""
        return False


class FakeWork:
    """One delivery; see `raybus.bus.port.Work`."""

    def __init__(self, bus: "FakeBus", consumer: Consumer, message: Message) -> None:
        self.message = message
        self._bus = bus
        self._consumer = consumer

    async def done(self) -> None:
        self._bus.held.pop(self.message.seq, None)
        await self._say(lambda: self._bus.server.acknowledge(self._consumer, self.message))

    async def again(self, delay: float) -> None:
        self._bus.held.pop(self.message.seq, None)
        await self._say(lambda: self._consumer.later(self.message.seq, delay))

    async def in_progress(self) -> None:
        await self._say(lambda: self._consumer.later(self.message.seq, ACK_WAIT))

    async def _say(self, word: Callable[[], None]) -> None:
        """Acknowledgements are not acknowledged themselves: one that is lost brings the message again."""
        lost = self._bus.network.loses("ack")
        await self._bus.call(CALL_PATIENCE, (lambda: None) if lost else word)


class BusServer:
    """What all connections share. `now`: the server's wall clock. `full`: streams that refuse messages. `observers`
    are told (stream, message) of everything that is stored."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._lives = 0
        self.full: set[str] = set()
        self.streams: dict[str, Stream] = {}
        self.connections: list[FakeBus] = []
        self.observers: list[Callable[[str, Message], None]] = []
        self._consumers: dict[str, Consumer] = {}
        self._create()

    def connect(self, network: Network | None = None) -> "FakeBus":
        """A new connection: one per process."""
        bus = FakeBus(self, network or Network())
        self.connections.append(bus)
        return bus

    def wipe(self) -> None:
        """Lose the whole store; every cache is told to load anew and consumers begin anew."""
        self._create()
        for consumer in self._consumers.values():
            consumer.forget()
        for bus in self.connections:
            bus.held.clear()
            bus.reset("the store was wiped")

    def reconnected(self) -> None:
        """A connection can be reached again: work that waited for it is handed out."""
        for consumer in self._consumers.values():
            consumer.match()

    @property
    def created(self) -> int:
        """Nanoseconds since the epoch at which the present store was made; never the same twice."""
        return int(self.streams["ctl"].created * 1e9) + self._lives

    def store(
        self,
        stream: str,
        subject: str,
        data: bytes,
        headers: Mapping[str, str],
        expect: int | None,
        ttl: int | None,
    ) -> int:
        """Store a message and tell every cache and consumer. Raises Conflict, StoreFull."""
        if stream in self.full:
            raise StoreFull(f"{subject}: stream {stream} is full")
        message = self.streams[stream].put(subject, data, headers, expect, ttl)
        for observer in self.observers:
            observer(stream, message)
        for bus in self.connections:
            bus.deliver(stream, message)
        if stream == "INTENT":
            for consumer in self._consumers.values():
                if matches(consumer.subject, subject):
                    consumer.offer(message.seq)
        return message.seq

    def acknowledge(self, consumer: Consumer, message: Message) -> None:
        """Take a message off the work queue; one of another store than the present is not known there."""
        stored = self.streams["INTENT"].get(message.seq)
        if stored == message:
            consumer.settle(message.seq)
            self.streams["INTENT"].remove(message.seq)

    def consumer(self, subject: str, durable: str) -> Consumer:
        """The durable consumer of that name, made when first asked for."""
        if durable not in self._consumers:
            consumer = Consumer(lambda: self.streams["INTENT"], subject, lambda: ACK_WAIT)
            self._consumers[durable] = consumer
        return self._consumers[durable]

    def _create(self) -> None:
        self._lives += 1
        self.streams = {name: Stream(self._now, limit) for name, limit in _PER_SUBJECT.items()}


class _Subscription:
    """One cache being fed: what was stored, `Loaded`, then what comes."""

    def __init__(self, bus: "FakeBus", stream: str, subjects: Sequence[str]) -> None:
        self._bus = bus
        self.stream = stream
        self.subjects = tuple(subjects)
        self.queue: asyncio.Queue[Message | Loaded | Reset] = asyncio.Queue()

    def load(self) -> None:
        for message in self._bus.server.streams[self.stream].latest(self.subjects):
            self.queue.put_nowait(message)
        self.queue.put_nowait(Loaded())

    def reset(self, why: str) -> None:
        while not self.queue.empty():
            self.queue.get_nowait()
        self.queue.put_nowait(Reset(why))
        self.load()

    def wants(self, stream: str, subject: str) -> bool:
        return stream == self.stream and any(matches(pattern, subject) for pattern in self.subjects)


class FakeBus:
    """One connection: implements `raybus.bus.port.Bus`. `cut()` and `mend()` break and restore it. `held`: work that
    was handed out to this connection and not settled by it, by sequence."""

    def __init__(self, server: BusServer, network: Network | None = None) -> None:
        self.server = server
        self.network = network or Network()
        self.held: dict[int, Message] = {}
        self._up = asyncio.Event()
        self._up.set()
        self._subscriptions: list[_Subscription] = []
        self._wanting: dict[tuple[str, str], list[_Subscription]] = {}
        """(stream, subject) -> who wants its messages, as long as nobody comes or goes."""
        self._listeners: list[tuple[str, asyncio.Queue[tuple[str, bytes] | Reset]]] = []

    # What the network does.

    def cut(self) -> None:
        """Lose the connection: calls fail after their patience, caches hear nothing."""
        self._up.clear()

    def mend(self) -> None:
        """Reconnect: every cache is loaded anew."""
        self._up.set()
        self.reset("reconnected")
        self.server.reconnected()

    @property
    def is_up(self) -> bool:
        """Whether the server can be reached."""
        return self._up.is_set()

    def reset(self, why: str) -> None:
        """Make every cache of this connection load anew (nothing happens while the connection is cut)."""
        if not self._up.is_set():
            return
        for subscription in self._subscriptions:
            subscription.reset(why)
        for _, queue in self._listeners:
            queue.put_nowait(Reset(why))

    def deliver(self, stream: str, message: Message) -> None:
        """A message was stored."""
        if self._up.is_set():
            key = (stream, message.subject)
            wanting = self._wanting.get(key)
            if wanting is None:
                wanting = self._wanting[key] = [s for s in self._subscriptions if s.wants(*key)]
            for subscription in wanting:
                subscription.queue.put_nowait(message)

    async def call(self, patience: float, do: Callable[[], T]) -> T:
        """Have the server do something; sent again when the connection breaks meanwhile. Raises BusError after
        `patience` seconds, and what `do` raises."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while True:
            if not self._up.is_set():
                await self._connected(patience, end)
            answer: asyncio.Future[T | None] = loop.create_future()
            self._later(self.network.delay(), _answer, self, do, answer)
            result = await answer
            if result is not _UNANSWERED:
                return result  # type: ignore[return-value]  # the marker apart, it is what `do` returned

    async def _connected(self, patience: float, end: float) -> None:
        try:
            async with asyncio.timeout_at(end):
                await self._up.wait()
        except TimeoutError as error:
            raise BusError(f"no connection to the bus for {patience:.0f} s") from error

    def _later(self, delay: float, do: Callable[..., None], *arguments: Any) -> None:
        loop = asyncio.get_running_loop()
        if delay > 0:
            loop.call_later(delay, do, *arguments, context=Context())
        else:
            loop.call_soon(do, *arguments, context=Context())

    # The port.

    async def put(
        self,
        stream: StreamName,
        subject: str,
        data: bytes,
        headers: Mapping[str, str],
        *,
        expect: int | None = None,
        ttl: int | None = None,
    ) -> int:
        def store() -> int:
            return self.server.store(stream, subject, data, headers, expect, ttl)

        if not self.network.loses("put"):
            return await self.call(PUT_PATIENCE, store)
        first = await self.call(PUT_PATIENCE, store)
        await asyncio.sleep(LOST)
        try:
            return await self.call(PUT_PATIENCE, store)
        except Conflict:
            last = await self.last(stream, subject)
            if last is not None and last.seq == first:
                return first
            raise

    async def last(self, stream: StreamName, subject: str) -> Message | None:
        return await self.call(CALL_PATIENCE, lambda: self.server.streams[stream].last(subject))

    async def history(self, stream: StreamName, subject: str) -> list[Message]:
        return await self.call(CALL_PATIENCE, lambda: self.server.streams[stream].all(subject))

    async def stream_created(self, stream: StreamName) -> str:
        return await self.call(CALL_PATIENCE, lambda: f"{stream}@{self.server.created}")

    async def follow(
        self, stream: StreamName, subjects: Sequence[str], *, heads: bool = False
    ) -> AsyncIterator[Message | Loaded | Reset]:
        async with aclosing(self._follow(stream, subjects)) as items:
            async for item in items:
                yield msgspec.structs.replace(item, data=b"") if heads and isinstance(item, Message) else item

    async def work(self, subject: str, durable: str) -> AsyncIterator[FakeWork]:
        consumer = self.server.consumer(subject, durable)
        while True:
            await self._up.wait()
            message = await consumer.next(lambda: self.is_up)
            self.held[message.seq] = message
            yield FakeWork(self, consumer, message)

    async def get_key(self, key: str) -> KeyValue:
        return _key_value(await self.call(CALL_PATIENCE, lambda: self.server.streams["ctl"].last(key)))

    async def put_key(self, key: str, value: bytes, *, revision: int) -> int:
        return await self.call(PUT_PATIENCE, lambda: self.server.store("ctl", key, value, {}, revision, None))

    async def watch_keys(self, pattern: str) -> AsyncIterator[tuple[str, KeyValue] | Loaded | Reset]:
        async for item in self._follow("ctl", [pattern]):
            yield (item.subject, _key_value(item)) if isinstance(item, Message) else item

    async def bucket_created(self) -> int:
        return await self.call(CALL_PATIENCE, lambda: self.server.created)

    async def announce(self, subject: str, data: bytes) -> None:
        def spread() -> None:
            for bus in self.server.connections:
                bus.hear(subject, data)

        await self.call(CALL_PATIENCE, spread)

    def hear(self, subject: str, data: bytes) -> None:
        """An announcement of some connection (also of this one)."""
        if self._up.is_set():
            for pattern, queue in self._listeners:
                if matches(pattern, subject) and not self.network.loses("beat"):
                    queue.put_nowait((subject, data))

    async def listen(self, subject: str) -> AsyncIterator[tuple[str, bytes] | Reset]:
        queue: asyncio.Queue[tuple[str, bytes] | Reset] = asyncio.Queue()
        listener = (subject, queue)
        self._listeners.append(listener)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.remove(listener)

    async def _follow(self, stream: str, subjects: Sequence[str]) -> AsyncGenerator[Message | Loaded | Reset, None]:
        await self._up.wait()
        subscription = _Subscription(self, stream, subjects)
        subscription.load()
        self._subscriptions.append(subscription)
        self._wanting.clear()
        try:
            while True:
                item = await subscription.queue.get()
                if lag := self.network.lag():
                    await asyncio.sleep(lag)
                yield item
        finally:
            self._subscriptions.remove(subscription)
            self._wanting.clear()


_UNANSWERED = object()
"""The connection broke before the server heard of the call."""


def _answer(bus: FakeBus, do: Callable[[], Any], answer: asyncio.Future[Any]) -> None:
    """Runs at the server, on its time: whether or not the caller is still there."""
    if not bus.is_up:
        outcome: Any = _UNANSWERED
    else:
        try:
            outcome = do()
        except BusError as error:
            if not answer.done():
                answer.set_exception(error)
            return
    if not answer.done():
        answer.set_result(outcome)


def _key_value(message: Message | None) -> KeyValue:
    return KeyValue(value=b"", revision=0) if message is None else KeyValue(value=message.data, revision=message.seq)
