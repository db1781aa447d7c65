"""Pull consumers on one link: supervised, gapless, bounded in memory (ADR 0031).

At most one pull of BATCH messages is open per consumer, and the next is sent only when the reader has caught up: a
slow reader therefore slows the server down instead of losing messages.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from raybus.bus import jetstream as js
from raybus.bus.connection import Denied, Link, NoResponders, Unanswered
from raybus.bus.port import BusError
from raybus.bus.wire import Msg

BATCH, BATCH_BYTES = 1000, 16 << 20
"""Messages and bytes of one pull."""
EXPIRES = 30.0
"""Seconds that an idle pull stays open on the server."""
HEARTBEAT, STALL = 2.4, 5.0
"""Seconds between the server's signs of life on an idle pull; silence of STALL means the consumer is lost."""
CALM = 5.0
"""Times that both are longer with a server that stands alone: a consumer goes there only with a word, or with the
connection."""
INACTIVE = 30.0
"""Seconds after which the server removes a consumer that nobody pulls from."""
CALL_TIMEOUT = 5.0

_OVER = ("404", "408")
_ENDING = ("deleted", "leadership change", "shutdown", "push based", "maxwaiting", "max waiting")


class Ended(Exception):
    """The consumer is lost; `str()` says why. What it delivered so far must be loaded anew."""


class Consumer(NamedTuple):
    """A consumer to make. `durable`: it outlives its readers and its messages are acknowledged."""

    stream: str
    filter: str
    config: Mapping[str, Any]
    durable: str = ""


def last_of_each(stream: str, subject: str, heads: bool = False) -> Consumer:
    """Last message of each subject, then every new one; `heads`: without their bodies."""
    return Consumer(stream, subject, {**_EPHEMERAL, "deliver_policy": "last_per_subject", "headers_only": heads})


def all_of(stream: str, subject: str) -> Consumer:
    """Every stored message, then every new one."""
    return Consumer(stream, subject, {**_EPHEMERAL, "deliver_policy": "all"})


_EPHEMERAL = {
    "ack_policy": "none",
    "replay_policy": "instant",
    "mem_storage": True,
    "num_replicas": 1,
    "inactive_threshold": js.ns(INACTIVE),
}


class Pull:
    """One consumer being read. `info`: the server's answer when it was made."""

    def __init__(self, feed: "Feed", consumer: Consumer) -> None:
        self.consumer = consumer
        self.info = js.ConsumerInfo()
        self.due = 0
        self.alive_at = 0.0
        self._feed = feed
        self._inbox = feed.link.new_inbox()
        self._subscription: int | None = None
        self._next_seq = 1

    async def open(self) -> None:
        """Make the consumer and ask for the first messages. Raises Ended, NoResponders (no such stream), Denied."""
        self.info = await self._create()
        self._subscription = self._feed.link.subscribe(self._inbox, self._arrived)
        self.top_up()

    def close(self) -> None:
        """Stop the deliveries; an ephemeral consumer is removed by the server after INACTIVE seconds."""
        if self._subscription is not None:
            self._feed.link.unsubscribe(self._subscription, self.give_back if self.consumer.durable else None)

    def give_back(self, msg: Msg) -> None:
        """Somebody else may have this delivery at once."""
        if msg.reply:
            with suppress(Unanswered):
                self._feed.link.publish(msg.reply, b"-NAK")

    def top_up(self) -> None:
        """Pull again if the last pull is over and the reader has caught up. Raises Ended."""
        if self.due or len(self._feed.items) > BATCH // 2 or self._feed.link.lost:
            return
        body = {
            "batch": BATCH,
            "max_bytes": BATCH_BYTES,
            "expires": js.ns(EXPIRES),
            "idle_heartbeat": js.ns(self._feed.heartbeat),
        }
        self.due = BATCH
        self.alive_at = asyncio.get_running_loop().time()
        with suppress(Unanswered):
            subject = f"{js.API}.CONSUMER.MSG.NEXT.{self.consumer.stream}.{self.info.name}"
            self._feed.link.publish(subject, js.encode(body), self._inbox)

    async def _create(self) -> js.ConsumerInfo:
        stream, subject, config, durable = self.consumer
        name = durable or secrets.token_hex(8)
        body = {
            "stream_name": stream,
            "config": {**config, "name": name, "filter_subject": subject} | ({"durable_name": name} if durable else {}),
            "action": "" if durable else "create",
        }
        create = f"{js.API}.CONSUMER.CREATE.{stream}.{name}.{subject}"
        try:
            answer = await self._feed.link.request(create, js.encode(body), CALL_TIMEOUT)
        except Unanswered as error:
            raise Ended(f"stream {stream} did not answer: {error}") from error
        info = msgspec.json.decode(answer.data, type=js.ConsumerInfo)
        if info.error is None:
            return info
        if info.error.err_code == js.STREAM_NOT_FOUND:
            raise NoResponders(stream)
        raise Ended(f"no consumer of {subject} on stream {stream}: {info.error.description}")

    def _arrived(self, msg: Msg) -> None:
        self.alive_at = self._feed.now()
        if not msg.reply:
            self._status(msg.headers or {})
            self.top_up()
            return
        about = js.delivery(msg.reply)
        if not self.consumer.durable and about.consumer_seq != self._next_seq:
            self._feed.end(f"messages were lost: the consumer is at {about.consumer_seq}, expected {self._next_seq}")
            return
        self._next_seq += 1
        self.due = max(self.due - 1, 0)
        self._feed.push((self, msg, about))
        self.top_up()

    def _status(self, headers: Mapping[str, str]) -> None:
        status, text = headers.get(js.STATUS, ""), headers.get(js.DESCRIPTION, "")
        if status == "100":
            return
        self.due = 0
        passing = status in _OVER or (status == "409" and not any(word in text.lower() for word in _ENDING))
        if not passing:
            self._feed.end(f"the consumer is lost: {status} {text}".rstrip())


Item = tuple[Pull, Msg, js.Delivery]


class Feed:
    """Deliveries of several consumers on one link, in the order of their arrival."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.items: deque[Item] = deque()
        self.pulls: list[Pull] = []
        self.ended = ""
        self._nudged = False
        self._nudge_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.heartbeat = HEARTBEAT * (CALM if link.stands_alone else 1.0)
        self._wake = asyncio.Event()
        self._watch: asyncio.TimerHandle | None = None
        self._unhook = link.when_lost(self.end)

    def now(self) -> float:
        """The monotonic clock."""
        return self._loop.time()

    async def open(self, consumers: list[Consumer]) -> None:
        """Make the consumers. Raises Ended, NoResponders when a stream does not exist, BusError when it is denied."""
        try:
            for consumer in consumers:
                pull = Pull(self, consumer)
                self.pulls.append(pull)
                await pull.open()
        except Denied as error:
            raise BusError(f"this bus user may not read {error}; its permissions are those of design §2") from error
        self._supervise()

    def close(self) -> None:
        """End all deliveries. What is to be acknowledged and nobody has read, or is on its way, is given back."""
        self._unhook()
        for timer in (self._watch, self._nudge_timer):
            if timer is not None:
                timer.cancel()
        for pull in self.pulls:
            pull.close()
        for pull, msg, _ in self.items:
            if pull.consumer.durable:
                pull.give_back(msg)

    def push(self, item: Item) -> None:
        """One more delivery."""
        self.items.append(item)
        self._wake.set()

    def nudge(self) -> None:
        """Have the reader look up once, also when nothing is delivered."""
        self._nudged = True
        self._wake.set()

    def nudge_later(self, seconds: float) -> None:
        """`nudge` after a while."""
        self._nudge_timer = self._loop.call_later(seconds, self.nudge)

    def end(self, why: str) -> None:
        """The feed is lost: what was not read yet is dropped, since all will be loaded anew."""
        if not self.ended:
            self.ended = why
            self._wake.set()

    async def read(self) -> AsyncIterator[Item | None]:
        """Deliveries until the feed is lost; None for a nudge. Raises Ended."""
        while True:
            if self.ended:
                raise Ended(self.ended)
            if self._nudged:
                self._nudged = False
                yield None
                continue
            if not self.items:
                self._wake.clear()
                await self._wake.wait()
                continue
            item = self.items.popleft()
            if len(self.items) == BATCH // 2 or not self.items:
                for pull in self.pulls:
                    pull.top_up()
            yield item

    def _supervise(self) -> None:
        """Every pull is answered by a message or a sign of life within STALL seconds."""
        now = self.now()
        for pull in self.pulls:
            if pull.due and now - pull.alive_at > self.heartbeat * STALL / HEARTBEAT:
                self.end(f"no sign of life from the consumer of {pull.consumer.filter} for {now - pull.alive_at:.0f} s")
                return
        self._watch = self._loop.call_later(1.0, self._supervise)
