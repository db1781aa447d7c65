"""The connection to nats-server: replaced as a whole when it is lost (ADR 0030).

A `Link` is one connection's life; whatever hangs on it (requests, consumers) ends with it, and nothing that waited
before a cut is sent after it.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import structlog

from raybus.bus.errors import CannotConnect
from raybus.bus.jetstream import STATUS
from raybus.bus.port import BusError
from raybus.bus.saying import Saying
from raybus.bus.settings import BusSettings
from raybus.bus.wire import Msg, Wire, WireError

CONNECT_TIMEOUT = 3
RETRY_FIRST, RETRY_MOST = 0.05, 1.0
"""Seconds between two attempts to connect."""
SWEEP = 0.25
"""Seconds between two looks for requests whose time is over."""

_PERMISSION = "permissions violation"

log = structlog.get_logger()


class Unanswered(Exception):
    """No answer in time, or the connection was lost: the request may have had its effect."""


class NoResponders(Exception):
    """Nobody serves this subject: the request had no effect."""


class Denied(Exception):
    """The server does not permit this user to publish on the subject."""


class _Pending:
    __slots__ = ("deadline", "future", "subject")

    def __init__(self, future: asyncio.Future[Msg], deadline: float, subject: str) -> None:
        self.future, self.deadline, self.subject = future, deadline, subject


class Link:
    """One connection from its beginning to its loss. `lost` is "" until then, then says why."""

    def __init__(self, user: str) -> None:
        self.lost = ""
        self.refusal = ""
        self._wire = Wire(self._refused, self._gone)
        self._inbox = f"_INBOX.{user or 'anonymous'}.{random.getrandbits(64):016x}"
        self._pending: dict[str, _Pending] = {}
        self._count = 0
        self._when_lost: set[Callable[[str], None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def max_payload(self) -> int:
        """Largest headers + body that the server takes, bytes."""
        return self._wire.info.max_payload

    @property
    def stands_alone(self) -> bool:
        """Whether the server is in no cluster: then a consumer is lost only with this connection."""
        return not self._wire.info.cluster

    @property
    def has_jetstream(self) -> bool:
        """Whether the server says that JetStream is on; it may still be coming up."""
        return self._wire.info.jetstream

    async def open(self, settings: BusSettings, tls: ssl.SSLContext | None) -> None:
        """Connect once. Raises WireError, OSError and BusError."""
        await self._wire.open(settings, tls)
        self.subscribe(f"{self._inbox}.r.*", self._on_reply)
        self._sweep()

    def new_inbox(self) -> str:
        """A subject of this link's own to which something may be delivered."""
        self._count += 1
        return f"{self._inbox}.d.{self._count}"

    def when_lost(self, call: Callable[[str], None]) -> Callable[[], None]:
        """Call back once with the reason when the link is lost (at once if it is); returns how to take that back."""
        if self.lost:
            call(self.lost)
        else:
            self._when_lost.add(call)
        return lambda: self._when_lost.discard(call)

    def subscribe(self, subject: str, arrived: Callable[[Msg], None]) -> int:
        """Deliver messages of `subject` to `arrived`, none dropped: what comes unasked is little, and consumers are
        pulled. Returns the subscription's number. Raises BusError when the link is lost."""
        if self.lost:
            raise BusError(f"cannot subscribe to {subject}: {self.lost}")
        return self._wire.subscribe(subject, arrived)

    def unsubscribe(self, subscription: int, late: Callable[[Msg], None] | None = None) -> None:
        """End a subscription; what is on its way already goes to `late`. A lost link has none left."""
        self._wire.unsubscribe(subscription, late)

    def publish(self, subject: str, data: bytes, reply: str = "", headers: Mapping[str, str] | None = None) -> None:
        """Send without an answer. Raises Unanswered when the link is lost."""
        if self.lost:
            raise Unanswered(self.lost)
        self._wire.publish(subject, data, reply, headers)

    async def request(
        self, subject: str, data: bytes, patience: float, headers: Mapping[str, str] | None = None
    ) -> Msg:
        """Send and wait for the answer. Raises Unanswered, NoResponders, Denied."""
        self._count += 1
        token = str(self._count)
        loop = asyncio.get_running_loop()
        waiting = _Pending(loop.create_future(), loop.time() + patience, subject)
        self._pending[token] = waiting
        try:
            self.publish(subject, data, f"{self._inbox}.r.{token}", headers)
            answer = await waiting.future
        finally:
            self._pending.pop(token, None)
        if answer.headers is not None and answer.headers.get(STATUS) == "503":
            raise NoResponders(subject)
        return answer

    async def round_trip(self, patience: float) -> None:
        """Return when the server has answered a ping, and so has processed all that was sent before. A server that
        does not answer in time is given up. Raises Unanswered."""
        try:
            async with asyncio.timeout(patience):
                await self._wire.round_trip()
        except TimeoutError:
            self.give_up(f"the server did not answer a ping within {patience:.0f} s")
        except WireError as error:
            raise Unanswered(str(error)) from error
        if self.lost:
            raise Unanswered(self.lost)

    def give_up(self, why: str) -> None:
        """The link is lost: everything that hangs on it is told."""
        self._wire.abort(why or "connection lost")

    def close(self) -> None:
        """Close the connection; at once when it is lost, since such a server may no longer read from it."""
        self._wire.close()

    def _gone(self, why: str) -> None:
        self.lost = why
        if self._sweeper:
            self._sweeper.cancel()
        for waiting in self._pending.values():
            if not waiting.future.done():
                waiting.future.set_exception(Unanswered(self.lost))
        callbacks, self._when_lost = self._when_lost, set()
        for call in callbacks:
            call(self.lost)

    def _on_reply(self, msg: Msg) -> None:
        waiting = self._pending.get(msg.subject.rpartition(".")[2])
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(msg)

    def _refused(self, text: str) -> None:
        """The server names the subject that it refuses, not the request."""
        self.refusal = text
        if _PERMISSION not in text.lower():
            log.error("error of the connection to the bus", why=text)
            return
        denied = [p for p in self._pending.values() if f'"{p.subject}"' in text and not p.future.done()]
        for waiting in denied:
            waiting.future.set_exception(Denied(waiting.subject))
        if not denied:
            log.error("the bus refuses a subject to this user; its permissions are those of design §2", why=text)

    def _sweep(self) -> None:
        """Give up requests whose time is over, again and again."""
        if self.lost:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        for waiting in self._pending.values():
            if waiting.deadline < now and not waiting.future.done():
                waiting.future.set_exception(Unanswered("no answer in time"))
        self._sweeper = loop.call_later(SWEEP, self._sweep)


class Connection:
    """Keeps a `Link` up for ever once `open` has returned."""

    def __init__(self, settings: BusSettings) -> None:
        self.settings = settings
        self._tls = _tls(settings)
        _check_urls(settings)
        self._up: asyncio.Future[Link] | None = None
        self._current: Link | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.closed = False

    @property
    def connected(self) -> bool:
        """Whether a link is up."""
        return self._current is not None and not self._current.lost

    async def open(self) -> None:
        """Connect; waits while the server is down. Raises CannotConnect when the credentials are refused."""
        self._up = asyncio.get_running_loop().create_future()
        link = await self._connect(at_start=True)
        self._keeper = asyncio.create_task(self._keep(link))
        await asyncio.sleep(0)

    async def link(self, patience: float | None = None) -> Link:
        """The present link, waiting for one at most `patience` seconds. Raises BusError."""
        if self._current is not None and not self._current.lost:
            return self._current
        if self.closed:
            raise BusError("the connection to the bus was closed")
        assert self._up is not None, "open() comes first"
        try:
            async with asyncio.timeout(patience):
                while True:
                    link = await asyncio.shield(self._up)
                    if not link.lost:
                        return link
                    await asyncio.sleep(0)
        except TimeoutError:
            raise BusError(
                f"no connection to the bus at {self.settings.url} for {patience:.0f} s: is nats-server running?"
            ) from None

    async def close(self) -> None:
        """End for good; whoever follows or listens comes to an end."""
        self.closed = True
        if self._keeper:
            self._keeper.cancel()
        if self._current:
            self._current.close()

    async def _keep(self, link: Link) -> None:
        loop = asyncio.get_running_loop()
        while True:
            assert self._up is not None
            lost = asyncio.Event()
            self._current = link
            self._up.set_result(link)
            link.when_lost(lambda _why, lost=lost: lost.set())  # type: ignore[misc]  # a default binds the loop's value
            await lost.wait()
            self._up = loop.create_future()
            log.warning("connection to the bus lost, connecting again", url=self.settings.url, why=link.lost)
            link.close()
            link = await self._connect(at_start=False)
            log.info("connected to the bus again", url=self.settings.url)

    async def _connect(self, *, at_start: bool) -> Link:
        wait, saying = RETRY_FIRST, Saying()
        while True:
            link = Link(self.settings.user)
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT * 2):
                    await link.open(self.settings, self._tls)
                return link
            except (WireError, OSError, TimeoutError, BusError) as error:
                why = link.refusal or _text(error)
            link.give_up(why)
            if "authorization" in why.lower() or "authentication" in why.lower():
                refused = (
                    f"the bus at {self.settings.url} refuses user {self.settings.user!r}: wrong user or password. "
                    "Check the service's nats user and password against the users in nats-server's configuration"
                )
                if at_start:
                    raise CannotConnect(refused)
                why = refused
            saying.say("waiting for the bus: is nats-server running there?", url=self.settings.url, why=why)
            await asyncio.sleep(wait * random.uniform(0.7, 1.3))
            wait = min(wait * 2, RETRY_MOST)


def _tls(settings: BusSettings) -> ssl.SSLContext | None:
    if not settings.ca_file:
        return None
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise CannotConnect(f"cannot read the bus's CA file {settings.ca_file}: {error}") from error


def _check_urls(settings: BusSettings) -> None:
    for url in settings.servers or [""]:
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("nats", "tls") and parts.hostname and (parts.port or True)
        except ValueError:
            sound = False
        if not sound:
            raise CannotConnect(f"{url!r} is no address of a bus; it is written nats://<host>:<port>")


def _text(error: BaseException | None) -> str:
    return str(error) or type(error).__name__ if error is not None else "no reason given"
