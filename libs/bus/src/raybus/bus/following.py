"""Following streams: a complete load, then everything new, and a `Reset` after any gap (ADR 0031)."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from raybus.bus import jetstream as js
from raybus.bus.connection import Connection, Denied, NoResponders, Unanswered
from raybus.bus.consumers import CALL_TIMEOUT, Consumer, Ended, Feed, Pull
from raybus.bus.port import BusError, Loaded, Message, Reset
from raybus.bus.saying import Saying

AGAIN_FIRST, AGAIN_MOST = 0.05, 0.5
"""Seconds between two attempts to load."""
LOOK_AGAIN = 0.25
"""Seconds until subjects that have not been delivered yet are listed again (one may have expired meanwhile)."""


async def follow(connection: Connection, consumers: list[Consumer]) -> AsyncIterator[Message | Loaded | Reset]:
    """What the consumers deliver, for ever; see `port.Bus.follow`. Ends when the connection is closed for good."""
    waiting = Waiting()
    while not connection.closed:
        feed = Feed(await connection.link())
        delivered = False
        try:
            await feed.open(consumers)
            loading: Loading | None = Loading(feed)
            async for item in feed.read():
                if item is not None:
                    pull, msg, about = item
                    delivered = True
                    yield js.delivered(msg.subject, msg.data, msg.headers, about)
                    if loading is not None:
                        loading.saw(pull, msg.subject, about.pending)
                if loading is not None and await loading.over():
                    loading, delivered = None, True
                    yield Loaded()
        except NoResponders:
            why = f"stream {consumers[0].stream} does not exist yet; the watcher makes it"
        except (Ended, BusError) as error:
            why = str(error)
        finally:
            feed.close()
        if delivered:
            waiting = Waiting()
            yield Reset(why)
        if not connection.closed:
            await waiting.pause(why)


class Loading:
    """Whether everything that was stored when the feed was opened has been delivered.

    That nothing is pending is only a hint: the server counts a replaced message out before it counts the new one in, so
    the count touches 0 too early while subjects are being rewritten. What counts is that every subject which the
    stream lists after that hint has been seen.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._behind = {id(pull) for pull in feed.pulls if pull.info.num_pending}
        self._seen: set[str] = set()
        self._missing: set[str] | None = None
        self._listed_at = 0.0
        feed.nudge()

    def saw(self, pull: Pull, subject: str, pending: int) -> None:
        """A message was delivered."""
        self._seen.add(subject)
        if self._missing:
            self._missing.discard(subject)
        if pending == 0:
            self._behind.discard(id(pull))

    async def over(self) -> bool:
        """Whether the load is complete. Raises Ended."""
        if self._behind:
            return False
        now = self._feed.now()
        if self._missing is None or (self._missing and now - self._listed_at >= LOOK_AGAIN):
            self._listed_at = now
            listed = [await _subjects(self._feed, pull.consumer) for pull in self._feed.pulls]
            self._missing = set[str]().union(*listed) - self._seen
            if self._missing:
                self._feed.nudge_later(LOOK_AGAIN)
        return not self._missing


async def _subjects(feed: Feed, consumer: Consumer) -> set[str]:
    """The subjects of a stream that match a consumer's filter. Raises Ended."""
    found: set[str] = set()
    while True:
        body = js.encode({"subjects_filter": consumer.filter, "offset": len(found)})
        try:
            answer = await feed.link.request(f"{js.API}.STREAM.INFO.{consumer.stream}", body, CALL_TIMEOUT)
        except (Unanswered, Denied) as error:
            raise Ended(f"stream {consumer.stream} does not list its subjects: {error}") from error
        info = msgspec.json.decode(answer.data, type=js.StreamInfo)
        if info.error is not None:
            raise Ended(f"stream {consumer.stream} does not list its subjects: {info.error.description}")
        page = info.state.subjects or {}
        found.update(page)
        if not page or len(found) >= info.total:
            return found


class Waiting:
    """Growing pauses between attempts to load, with a line in the log every few seconds."""

    def __init__(self) -> None:
        self._wait, self._saying = AGAIN_FIRST, Saying()

    async def pause(self, why: str) -> None:
        """Wait a little, and say what for."""
        self._saying.say("loading from the bus again", why=why)
        await asyncio.sleep(self._wait)
        self._wait = min(self._wait * 2, AGAIN_MOST)
