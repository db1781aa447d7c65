"""What the services need of the bus: the port that the NATS adapter and the simulator's bus implement alike.

All methods are coroutines or asynchronous iterators. Sequence numbers are those of the stream; a subject that holds no
message has sequence 0.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from raybus.api.times import Instant

StreamName = Literal["VIEW", "INTENT", "ASK", "TIMELINE"]


class BusError(Exception):
    """The bus could not do it within its time; `str()` says what, about which subject, and what to look at."""


class Conflict(BusError):
    """Compare-and-set failed: the subject's (or key's) last sequence is not the expected one."""


class StoreFull(BusError):
    """JetStream refused the message because a limit is reached: nothing was lost, publishing may be tried again."""


class Message(Struct, frozen=True, kw_only=True):
    """One stored message; `stored_at` is the server's time."""

    subject: str
    data: bytes
    headers: Mapping[str, str]
    seq: int
    stored_at: Instant


class Loaded(Struct, frozen=True):
    """`follow` has delivered all that was stored when it (re)started: the cache is complete as of now."""


class Reset(Struct, frozen=True):
    """`follow` starts anew: forget everything it delivered so far (reconnect, lost consumer, stall, wiped store)."""

    why: str


class Work(Protocol):
    """One message of a work queue; it comes again unless acknowledged within its `ack_wait`."""

    message: Message

    async def done(self) -> None:
        """Acknowledge: the effect has taken place (or the message is to be dropped for good)."""

    async def again(self, delay: float) -> None:
        """Ask for the message again after `delay` seconds."""

    async def in_progress(self) -> None:
        """Extend `ack_wait`."""


class KeyValue(Struct, frozen=True, kw_only=True):
    """A key of the bucket `ctl`: `revision` 0 and `value` b"" when it holds nothing (never written, or deleted)."""

    value: bytes
    revision: int


class Bus(Protocol):
    """Streams, the bucket `ctl` and heart-beats. Every call is bounded in time and raises `BusError` at its end."""

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
        """Store a message and return its sequence; retries for at least 15 s (an election takes 4-7 s).

        `expect`: the subject's last sequence must be this one, else `Conflict` (a retry after a lost acknowledgement
        that finds its own message counts as success). `ttl`: seconds after which the server removes the message.
        Raises Conflict, StoreFull, BusError.
        """

    async def last(self, stream: StreamName, subject: str) -> Message | None:
        """The last message of one subject, None if there is none. Raises BusError."""

    async def history(self, stream: StreamName, subject: str) -> list[Message]:
        """Every stored message of one subject, oldest first (TIMELINE keeps up to 1000). Raises BusError."""

    async def stream_created(self, stream: StreamName) -> str:
        """The stream's creation time as text: another one means that the store was wiped. Raises BusError."""

    def follow(
        self, stream: StreamName, subjects: Sequence[str], *, heads: bool = False
    ) -> AsyncIterator[Message | Loaded | Reset]:
        """The last message of each subject that matches, then `Loaded`, then every new message, in stream order within
        each of `subjects` (ADR 0031).

        Never ends by itself and never resumes: after any gap it yields `Reset` and loads anew. `heads`: headers only,
        every body is empty.
        """

    def work(self, subject: str, durable: str) -> AsyncIterator[Work]:
        """Messages of INTENT that match `subject`, through the durable pull consumer `durable`; never ends by itself.

        Deliveries go on after reconnects and a wiped store (the consumer is made anew).
        """

    async def get_key(self, key: str) -> KeyValue:
        """The value of a key of bucket `ctl`. Raises BusError."""

    async def put_key(self, key: str, value: bytes, *, revision: int) -> int:
        """Write a key whose present revision is `revision` (0 = holds nothing); returns the new revision.

        Raises Conflict, BusError.
        """

    def watch_keys(self, pattern: str) -> AsyncIterator[tuple[str, KeyValue] | Loaded | Reset]:
        """Present values of the keys that match, `Loaded`, then changes; `Reset` as for `follow`."""

    async def bucket_created(self) -> int:
        """Creation time of bucket `ctl` in nanoseconds since the epoch. Raises BusError."""

    async def announce(self, subject: str, data: bytes) -> None:
        """Publish on core NATS (not stored) and return after the server has answered a round trip. Raises BusError."""

    def listen(self, subject: str) -> AsyncIterator[tuple[str, bytes] | Reset]:
        """(subject, data) of announcements; `Reset` after a reconnect (some may have been missed)."""
