"""Reading the work queue INTENT through a durable pull consumer (design §3, "Applier")."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec

from raybus.bus import jetstream as js
from raybus.bus.connection import Connection, Denied, Link, NoResponders, Unanswered
from raybus.bus.consumers import CALL_TIMEOUT, Consumer, Ended, Feed, Item
from raybus.bus.port import BusError, Message
from raybus.bus.saying import Saying

STREAM = "INTENT"
ACK_WAIT = 5.0
"""Seconds after which a message that was neither acknowledged nor reported in progress is delivered again."""
MAX_ACK_PENDING = 50_000
"""Messages under way at once per partition: far above the number of roots (issue "Load")."""
AGAIN = 0.25
"""Seconds until a lost consumer is made anew."""


class Queue:
    """The durable consumer `durable` of `subject`. `identity`: creation time of the present stream, so that an
    acknowledgement never reaches a message of another store that has the same sequence."""

    def __init__(self, connection: Connection, subject: str, durable: str) -> None:
        self.link: Link | None = None
        self.identity = ""
        self._connection = connection
        self._consumer = Consumer(
            STREAM,
            subject,
            {
                "ack_policy": "explicit",
                "ack_wait": js.ns(ACK_WAIT),
                "max_ack_pending": MAX_ACK_PENDING,
                "deliver_policy": "all",
                "replay_policy": "instant",
                # On disk, each change of its state is a file of its own (a quarter of the server's CPU in a storm);
                # lost with the server it is made anew, and what was not acknowledged is still in the queue.
                "mem_storage": True,
            },
            durable,
        )

    async def read(self) -> AsyncIterator["Delivered"]:
        """Deliveries for ever; those that the reader did not take when it ends go back to the queue at once."""
        saying = Saying()
        while not self._connection.closed:
            link = await self._connection.link()
            feed = Feed(link)
            try:
                await feed.open([self._consumer])
                self.link, self.identity = link, await _created(link)
                async for item in feed.read():
                    if item is not None:
                        yield Delivered(self, item, self.identity)
            except NoResponders:
                why = f"stream {STREAM} does not exist yet; the watcher makes it"
            except (Ended, BusError) as error:
                why = str(error)
            finally:
                self.link = None
                feed.close()
            if not self._connection.closed:
                saying.say("reading the work queue again", durable=self._consumer.durable, why=why)
            await asyncio.sleep(AGAIN)


class Delivered:
    """One delivery; implements `port.Work`. A lost acknowledgement brings the message again."""

    __slots__ = ("_identity", "_queue", "_reply", "message")

    def __init__(self, queue: Queue, item: Item, identity: str) -> None:
        _, msg, about = item
        self.message: Message = js.delivered(msg.subject, msg.data, msg.headers, about)
        self._queue, self._reply, self._identity = queue, msg.reply, identity

    async def done(self) -> None:
        await self._say(b"+ACK")

    async def again(self, delay: float) -> None:
        await self._say(b"-NAK " + js.encode({"delay": js.ns(delay)}))

    async def in_progress(self) -> None:
        await self._say(b"+WPI")

    async def _say(self, word: bytes) -> None:
        link = self._queue.link
        if link is None or self._queue.identity != self._identity:
            return
        with suppress(Unanswered):
            link.publish(self._reply, word)


async def _created(link: Link) -> str:
    """Creation time of the stream. Raises Ended."""
    try:
        answer = await link.request(f"{js.API}.STREAM.INFO.{STREAM}", b"", CALL_TIMEOUT)
    except (Unanswered, Denied) as error:
        raise Ended(f"stream {STREAM} did not answer: {error}") from error
    return msgspec.json.decode(answer.data, type=js.StreamInfo).created
