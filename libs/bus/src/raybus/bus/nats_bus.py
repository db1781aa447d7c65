"""The bus port on NATS JetStream (design §3)."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import structlog

from raybus.bus import jetstream as js
from raybus.bus.connection import Connection, Denied, Link, NoResponders, Unanswered
from raybus.bus.consumers import CALL_TIMEOUT, all_of, last_of_each
from raybus.bus.following import follow
from raybus.bus.port import BusError, Conflict, KeyValue, Loaded, Message, Reset, StoreFull, StreamName, Work
from raybus.bus.settings import BusSettings
from raybus.bus.wire import Msg
from raybus.bus.work import Queue

PUT_PATIENCE = 20.0
"""Seconds for which a put is tried (an R3 election takes 4-7 s)."""
PUT_ATTEMPT = 3.0
"""Seconds that one attempt waits for its acknowledgement."""
PUTS_IN_FLIGHT = 1024
HEADERS_MOST = 64 << 10
"""Bytes of headers that no message reaches."""
AGAIN_FIRST, AGAIN_MOST = 0.05, 0.5
"""Seconds between two attempts."""
ROUND_TRIP = 4.0
"""Seconds that a heart-beat waits for the server before the connection is given up."""
BUCKET = "KV_ctl"
_KEYS = "$KV.ctl."

log = structlog.get_logger()
T = TypeVar("T")


async def connect(settings: BusSettings) -> "NatsBus":
    """Connect to the bus; waits, with a line in the log every few seconds, while the server is down.

    Raises CannotConnect when the server refuses the credentials or the settings make no sense.
    """
    connection = Connection(settings)
    await connection.open()
    return NatsBus(connection)


class NatsBus:
    """Implements `port.Bus`; see there for what each method promises."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._slots = asyncio.Semaphore(PUTS_IN_FLIGHT)
        self._who = f"user {connection.settings.user!r}"

    @property
    def connected(self) -> bool:
        """Whether the connection is up at this moment."""
        return self._connection.connected

    async def has_jetstream(self) -> bool:
        """Whether the server says that JetStream is on; it may still be coming up. Raises BusError."""
        return (await self._connection.link(CALL_TIMEOUT)).has_jetstream

    async def close(self) -> None:
        """Close the connection for good."""
        await self._connection.close()

    # Streams.

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
        control: dict[str, str] = {}
        if expect is not None:
            control[js.EXPECT_SUBJECT_SEQ] = str(expect)
        if ttl is not None:
            control[js.TTL] = str(ttl)
        async with self._slots:
            return await self._store(stream, subject, data, headers, control)

    async def last(self, stream: StreamName, subject: str) -> Message | None:
        return await self._last(stream, subject)

    async def stream_created(self, stream: StreamName) -> str:
        return (await self.stream_info(stream)).created

    def follow(
        self, stream: StreamName, subjects: Sequence[str], *, heads: bool = False
    ) -> AsyncIterator[Message | Loaded | Reset]:
        return follow(self._connection, [last_of_each(stream, subject, heads) for subject in subjects])

    async def history(self, stream: StreamName, subject: str) -> list[Message]:
        """All stored messages of the subjects that match, oldest first. Raises BusError."""
        messages: list[Message] = []
        async for item in follow(self._connection, [all_of(stream, subject)]):
            match item:
                case Loaded():
                    return messages
                case Reset():
                    messages.clear()
                case message:
                    messages.append(message)
        raise BusError(f"{subject}: the bus stopped answering")

    def work(self, subject: str, durable: str) -> AsyncIterator[Work]:
        return Queue(self._connection, subject, durable).read()

    # The bucket.

    async def get_key(self, key: str) -> KeyValue:
        return _key_value(await self._last(BUCKET, _KEYS + key))

    async def put_key(self, key: str, value: bytes, *, revision: int) -> int:
        return await self._store(BUCKET, _KEYS + key, value, {}, {js.EXPECT_SUBJECT_SEQ: str(revision)})

    async def watch_keys(self, pattern: str) -> AsyncIterator[tuple[str, KeyValue] | Loaded | Reset]:
        async for item in follow(self._connection, [last_of_each(BUCKET, _KEYS + pattern)]):
            yield (item.subject.removeprefix(_KEYS), _key_value(item)) if isinstance(item, Message) else item

    async def bucket_created(self) -> int:
        return js.nanoseconds((await self.stream_info(BUCKET)).created)

    # Announcements.

    async def announce(self, subject: str, data: bytes) -> None:
        link = await self._connection.link(CALL_TIMEOUT)
        try:
            link.publish(subject, data)
            await link.round_trip(ROUND_TRIP)
        except Unanswered as error:
            raise BusError(f"{subject}: not announced, {error}") from error

    async def listen(self, subject: str) -> AsyncIterator[tuple[str, bytes] | Reset]:
        heard: asyncio.Queue[tuple[str, bytes] | Reset] = asyncio.Queue()

        def arrived(msg: Msg) -> None:
            heard.put_nowait((msg.subject, msg.data))

        while not self._connection.closed:
            link = await self._connection.link()
            unhook = link.when_lost(lambda why: heard.put_nowait(Reset(why)))
            try:
                subscription = link.subscribe(subject, arrived)
            except BusError as error:
                log.warning("not listening yet", subject=subject, why=str(error))
                unhook()
                continue
            try:
                lost = False
                while not lost:
                    item = await heard.get()
                    lost = isinstance(item, Reset)
                    yield item
            finally:
                unhook()
                link.unsubscribe(subscription)

    # What streams.py needs.

    async def api(self, call: str, body: Mapping[str, Any] | None, answer: type[T]) -> T:
        """Call `$JS.API.<call>`, retrying for a short time while nobody answers. Raises BusError."""
        try:
            data = await self._ask(f"{js.API}.{call}", js.encode(body) if body is not None else b"")
        except NoResponders as error:
            raise BusError(
                f"$JS.API.{call}: nobody answers at {self._connection.settings.url}; nats-server must run with "
                "JetStream on, and switches it off by itself when its disk is full (see its log)"
            ) from error
        return msgspec.json.decode(data.data, type=answer)

    async def stream_info(self, stream: str) -> js.StreamInfo:
        """State and configuration of a stream. Raises BusError, also when it does not exist."""
        info = await self.api(f"STREAM.INFO.{stream}", None, js.StreamInfo)
        if info.error is not None:
            raise BusError(f"stream {stream}: {info.error.description}; the watcher makes it when it runs")
        return info

    async def _ask(self, subject: str, data: bytes) -> Msg:
        """One answer to one question that may be asked twice. Raises BusError, NoResponders."""
        deadline = asyncio.get_running_loop().time() + CALL_TIMEOUT
        wait = AGAIN_FIRST
        while True:
            left = deadline - asyncio.get_running_loop().time()
            trouble: Exception
            try:
                link = await self._connection.link(max(left, 0.1))
                return await link.request(subject, data, max(left, 0.1))
            except Denied as error:
                raise self._denied(subject) from error
            except (Unanswered, NoResponders) as error:
                trouble = error
            if asyncio.get_running_loop().time() + wait > deadline:
                if isinstance(trouble, NoResponders):
                    raise trouble
                raise BusError(f"{subject}: no answer from the bus within {CALL_TIMEOUT:.0f} s ({trouble})")
            await asyncio.sleep(wait)
            wait = min(wait * 2, AGAIN_MOST)

    async def _last(self, stream: str, subject: str) -> Message | None:
        try:
            answer = await self._ask(f"{js.API}.DIRECT.GET.{stream}.{subject}", b"")
        except NoResponders as error:
            raise BusError(f"{subject}: stream {stream} does not exist; the watcher makes it when it runs") from error
        headers = answer.headers or {}
        if js.STATUS not in headers:
            return js.fetched(answer.data, headers)
        if headers[js.STATUS] == "404":
            return None
        raise BusError(f"{subject}: stream {stream} answers {headers[js.STATUS]} {headers.get(js.DESCRIPTION, '')}")

    # Storing.

    async def _store(
        self, stream: str, subject: str, data: bytes, headers: Mapping[str, str], control: Mapping[str, str]
    ) -> int:
        loop = asyncio.get_running_loop()
        deadline, wait, doubtful = loop.time() + PUT_PATIENCE, AGAIN_FIRST, False
        every = {**headers, **control}
        while True:
            link = await self._connection.link(max(deadline - loop.time(), 0.1))
            _check_size(subject, data, every, link)
            try:
                answer = await link.request(subject, data, PUT_ATTEMPT, every)
            except Denied as error:
                raise self._denied(subject) from error
            except NoResponders:
                trouble = f"stream {stream} does not exist or has no leader"
            except Unanswered as error:
                trouble, doubtful = str(error), True
            else:
                ack = msgspec.json.decode(answer.data, type=js.PubAck)
                if ack.error is None:
                    return ack.seq
                if ack.error.err_code == js.WRONG_LAST_SEQUENCE and doubtful:
                    return await self._own(stream, subject, data, headers, ack.error)
                trouble = _judge(subject, stream, ack.error, control)
            if loop.time() + wait > deadline:
                raise BusError(f"{subject}: not stored within {PUT_PATIENCE:.0f} s: {trouble}; is nats-server well?")
            await asyncio.sleep(wait)
            wait = min(wait * 2, AGAIN_MOST)

    async def _own(self, stream: str, subject: str, data: bytes, headers: Mapping[str, str], error: js.ApiError) -> int:
        """After an attempt whose acknowledgement was lost: the sequence of our own message if it was stored, else
        Conflict (ADR 0032)."""
        last = await self._last(stream, subject)
        if last is not None and last.data == data and last.headers == headers:
            return last.seq
        raise Conflict(f"{subject}: {error.description}")

    def _denied(self, subject: str) -> BusError:
        return BusError(f"{self._who} of the bus may not publish {subject}; its permissions are those of design §2")


def _check_size(subject: str, data: bytes, headers: Mapping[str, str], link: Link) -> None:
    """The server closes the connection upon a message that is too large."""
    if len(data) + HEADERS_MOST < link.max_payload:
        return
    size = len(data) + 14 + sum(len(key) + len(value.encode()) + 4 for key, value in headers.items())
    if size > link.max_payload:
        raise BusError(
            f"{subject}: the message has {size} bytes with its headers, the bus takes {link.max_payload} "
            "(max_payload of nats-server): make the object smaller"
        )


def _judge(subject: str, stream: str, error: js.ApiError, control: Mapping[str, str]) -> str:
    """What a passing error says. Raises Conflict, StoreFull or BusError for one that will not pass."""
    if error.err_code == js.WRONG_LAST_SEQUENCE:
        raise Conflict(f"{subject}: expected last sequence {control[js.EXPECT_SUBJECT_SEQ]}, {error.description}")
    if error.err_code in js.FULL:
        raise StoreFull(
            f"{subject}: stream {stream} is full ({error.description}); nothing was lost. "
            "Give nats-server more max_file_store or disk"
        )
    if error.err_code in js.PASSING or error.code == 503:
        return error.description
    raise BusError(f"{subject}: stream {stream} refuses the message: {error.description} ({error.err_code})")


def _key_value(message: Message | None) -> KeyValue:
    return KeyValue(value=b"", revision=0) if message is None else KeyValue(value=message.data, revision=message.seq)
