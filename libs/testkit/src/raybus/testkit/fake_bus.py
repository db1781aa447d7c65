"""A bus in memory with the semantics of design §3, for behaviour tests and the simulator.

`BusServer` is the nats-server, `FakeBus` one process's connection to it (the port `raybus.bus.port.Bus`). Honest
where a service could go wrong: compare-and-set, one message per subject, TTLs, a work queue that redelivers after
`ACK_WAIT` and hands out a newer message of a subject while an older one is still being worked on, caches that are
loaded anew after a cut, and a store that can be wiped. Left out: streams that do not exist after a wipe (they are made
anew at once), byte limits unless `full` is set, permissions.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from raybus.api.times import Instant
from raybus.bus.port import BusError, KeyValue, Loaded, Message, Reset, StoreFull, StreamName
from raybus.testkit.fake_store import Stream, matches

ACK_WAIT = 2.0
"""Seconds until a work message that was not acknowledged comes again."""
PUT_PATIENCE = 15.0
CALL_PATIENCE = 5.0

_PER_SUBJECT: dict[str, int] = {"VIEW": 1, "INTENT": 1, "ASK": 1, "TIMELINE": 1000, "ctl": 1}


class _Consumer:
    """One durable pull consumer of the work queue INTENT."""

    def __init__(self, server: "BusServer", subject: str) -> None:
        self._server = server
        self.subject = subject
        self._ready: asyncio.PriorityQueue[int] = asyncio.PriorityQueue()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        for message in server.streams["INTENT"].all(subject):
            self.offer(message.seq)

    def offer(self, seq: int) -> None:
        self._ready.put_nowait(seq)

    async def next(self) -> Message:
        while True:
            seq = await self._ready.get()
            message = self._server.streams["INTENT"].get(seq)
            if message is not None and seq not in self._timers:
                self.later(seq, ACK_WAIT)
                return message

    def later(self, seq: int, delay: float) -> None:
        """Deliver `seq` again after `delay` seconds unless acknowledged before."""
        self.settle(seq)
        self._timers[seq] = asyncio.get_running_loop().call_later(delay, self._again, seq)

    def settle(self, seq: int) -> None:
        timer = self._timers.pop(seq, None)
        if timer is not None:
            timer.cancel()

    def forget(self) -> None:
        for seq in list(self._timers):
            self.settle(seq)
        while not self._ready.empty():
            self._ready.get_nowait()

    def _again(self, seq: int) -> None:
        self._timers.pop(seq, None)
        self.offer(seq)


class FakeWork:
    """One delivery; see `raybus.bus.port.Work`."""

    def __init__(self, bus: "FakeBus", consumer: _Consumer, message: Message) -> None:
        self.message = message
        self._bus = bus
        self._consumer = consumer

    async def done(self) -> None:
        await self._bus.connected(CALL_PATIENCE)
        self._consumer.settle(self.message.seq)
        self._bus.server.acknowledge(self.message)

    async def again(self, delay: float) -> None:
        await self._bus.connected(CALL_PATIENCE)
        self._consumer.later(self.message.seq, delay)

    async def in_progress(self) -> None:
        await self._bus.connected(CALL_PATIENCE)
        self._consumer.later(self.message.seq, ACK_WAIT)


class BusServer:
    """What all connections share. `now`: the server's wall clock. `full`: streams that refuse messages."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._lives = 0
        self.full: set[str] = set()
        self.streams: dict[str, Stream] = {}
        self.connections: list[FakeBus] = []
        self._consumers: dict[str, _Consumer] = {}
        self._create()

    def connect(self) -> "FakeBus":
        """A new connection: one per process."""
        bus = FakeBus(self)
        self.connections.append(bus)
        return bus

    def wipe(self) -> None:
        """Lose the whole store; every cache is told to load anew and consumers begin anew."""
        self._create()
        for consumer in self._consumers.values():
            consumer.forget()
        for bus in self.connections:
            bus.reset("the store was wiped")

    @property
    def created(self) -> int:
        """Nanoseconds since the epoch at which the present store was made; never the same twice."""
        return int(self.streams["ctl"].created * 1e9) + self._lives

    def publish(self, stream: str, message: Message) -> None:
        """Tell every cache and consumer about a stored message."""
        for bus in list(self.connections):
            bus.deliver(stream, message)
        if stream == "INTENT":
            for consumer in self._consumers.values():
                if matches(consumer.subject, message.subject):
                    consumer.offer(message.seq)

    def acknowledge(self, message: Message) -> None:
        """Take a message off the work queue."""
        stored = self.streams["INTENT"].get(message.seq)
        if stored == message:
            self.streams["INTENT"].remove(message.seq)

    def consumer(self, subject: str, durable: str) -> _Consumer:
        """The durable consumer of that name, made when first asked for."""
        if durable not in self._consumers:
            self._consumers[durable] = _Consumer(self, subject)
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

    def offer(self, stream: str, message: Message) -> None:
        if stream == self.stream and any(matches(p, message.subject) for p in self.subjects):
            self.queue.put_nowait(message)


class FakeBus:
    """One connection: implements `raybus.bus.port.Bus`. `cut()` and `mend()` break and restore it."""

    def __init__(self, server: BusServer) -> None:
        self.server = server
        self._up = asyncio.Event()
        self._up.set()
        self._subscriptions: list[_Subscription] = []
        self._listeners: list[tuple[str, asyncio.Queue[tuple[str, bytes] | Reset]]] = []

    # What the network does.

    def cut(self) -> None:
        """Lose the connection: calls fail after their patience, caches hear nothing."""
        self._up.clear()

    def mend(self) -> None:
        """Reconnect: every cache is loaded anew."""
        self._up.set()
        self.reset("reconnected")

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
            for subscription in self._subscriptions:
                subscription.offer(stream, message)

    async def connected(self, patience: float) -> None:
        """Wait for the connection. Raises BusError after `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._up.wait()
        except TimeoutError as error:
            raise BusError(f"no connection to the bus for {patience:.0f} s") from error
        await asyncio.sleep(0)

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
        await self.connected(PUT_PATIENCE)
        return self._store(stream, subject, data, headers, expect, ttl)

    async def last(self, stream: StreamName, subject: str) -> Message | None:
        await self.connected(CALL_PATIENCE)
        return self.server.streams[stream].last(subject)

    async def history(self, stream: StreamName, subject: str) -> list[Message]:
        await self.connected(CALL_PATIENCE)
        return self.server.streams[stream].all(subject)

    async def stream_created(self, stream: StreamName) -> str:
        await self.connected(CALL_PATIENCE)
        return f"{stream}@{self.server.created}"

    def follow(self, stream: StreamName, subjects: Sequence[str]) -> AsyncIterator[Message | Loaded | Reset]:
        return self._follow(stream, subjects)

    async def work(self, subject: str, durable: str) -> AsyncIterator[FakeWork]:
        consumer = self.server.consumer(subject, durable)
        while True:
            await self._up.wait()
            yield FakeWork(self, consumer, await consumer.next())

    async def get_key(self, key: str) -> KeyValue:
        await self.connected(CALL_PATIENCE)
        return _key_value(self.server.streams["ctl"].last(key))

    async def put_key(self, key: str, value: bytes, *, revision: int) -> int:
        await self.connected(CALL_PATIENCE)
        return self._store("ctl", key, value, {}, revision, None)

    async def watch_keys(self, pattern: str) -> AsyncIterator[tuple[str, KeyValue] | Loaded | Reset]:
        async for item in self._follow("ctl", [pattern]):
            yield (item.subject, _key_value(item)) if isinstance(item, Message) else item

    async def bucket_created(self) -> int:
        await self.connected(CALL_PATIENCE)
        return self.server.created

    async def announce(self, subject: str, data: bytes) -> None:
        await self.connected(CALL_PATIENCE)
        for bus in list(self.server.connections):
            bus.hear(subject, data)

    def hear(self, subject: str, data: bytes) -> None:
        """An announcement of some connection (also of this one)."""
        if self._up.is_set():
            for pattern, queue in self._listeners:
                if matches(pattern, subject):
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

    async def _follow(self, stream: str, subjects: Sequence[str]) -> AsyncIterator[Message | Loaded | Reset]:
        await self._up.wait()
        subscription = _Subscription(self, stream, subjects)
        subscription.load()
        self._subscriptions.append(subscription)
        try:
            while True:
                yield await subscription.queue.get()
        finally:
            self._subscriptions.remove(subscription)

    def _store(
        self,
        stream: str,
        subject: str,
        data: bytes,
        headers: Mapping[str, str],
        expect: int | None,
        ttl: int | None,
    ) -> int:
        if stream in self.server.full:
            raise StoreFull(f"{subject}: stream {stream} is full")
        message = self.server.streams[stream].put(subject, data, headers, expect, ttl)
        self.server.publish(stream, message)
        return message.seq


def _key_value(message: Message | None) -> KeyValue:
    return KeyValue(value=b"", revision=0) if message is None else KeyValue(value=message.data, revision=message.seq)
