"""The connection to nats-server: one nats-py client at a time, replaced as a whole when it is lost (ADR 0030).

nats-py's own reconnect is switched off: it gives up after 60 attempts, sends what had been waiting before the cut,
and loses pulls without a word. A `Link` is one client's life; whatever hangs on it (requests, consumers) ends with it.
"""

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from raybus.bus.errors import CannotConnect
from raybus.bus.jetstream import STATUS
from raybus.bus.lean_client import LeanClient
from raybus.bus.port import BusError
from raybus.bus.saying import Saying
from raybus.bus.settings import BusSettings

CONNECT_TIMEOUT = 3
PING_INTERVAL, PINGS_MISSED = 2, 2
"""A server that does not answer for PING_INTERVAL * (PINGS_MISSED + 1) seconds is given up."""
RETRY_FIRST, RETRY_MOST = 0.05, 1.0
"""Seconds between two attempts to connect."""
SWEEP = 0.25
"""Seconds between two looks for requests whose time is over."""
PENDING_BYTES = 1 << 30
"""nats-py waits (and swallows cancellation) when more than this waits to be written; puts are bounded here instead."""

_PERMISSION = "permissions violation"
_FATAL = (nats.errors.UnexpectedEOF, nats.errors.StaleConnectionError, OSError)

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
    """One nats-py client from its connect to its loss. `lost` is "" until then, then says why."""

    def __init__(self, user: str) -> None:
        self.client = LeanClient()
        self.lost = ""
        self.refusal = ""
        self._inbox = f"_INBOX.{user or 'anonymous'}.{random.getrandbits(64):016x}"
        self._pending: dict[str, _Pending] = {}
        self._count = 0
        self._when_lost: set[Callable[[str], None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def max_payload(self) -> int:
        """Largest headers + body that the server takes, bytes."""
        return self.client.max_payload

    @property
    def has_jetstream(self) -> bool:
        """Whether the server says that JetStream is on; it may still be coming up."""
        return bool(self.client._server_info.get("jetstream"))

    async def open(self, settings: BusSettings, tls: ssl.SSLContext | None) -> None:
        """Connect once. Raises nats-py's and the operating system's errors."""
        await self.client.connect(
            servers=settings.servers,
            user=settings.user or None,
            password=settings.password or None,
            name=settings.name or None,
            tls=tls,
            inbox_prefix=self._inbox,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=CONNECT_TIMEOUT,
            ping_interval=PING_INTERVAL,
            max_outstanding_pings=PINGS_MISSED,
            pending_size=PENDING_BYTES,
            error_cb=self._on_error,
            closed_cb=self._on_closed,
        )
        # Errors of these tasks come through error_cb; what they raise while they end says nothing more.
        for task in (self.client._reading_task, self.client._flusher_task, self.client._ping_interval_task):
            if task is not None:
                task.add_done_callback(_retrieve)
        await self.subscribe(f"{self._inbox}.r.*", self._on_reply)
        self._sweeper = asyncio.create_task(self._sweep())

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

    async def subscribe(self, subject: str, arrived: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Deliver messages of `subject` to `arrived`, none dropped: what comes unasked is little, and consumers are
        pulled. Raises BusError when the link is lost."""
        try:
            return await self.client.subscribe(subject, cb=arrived, pending_msgs_limit=0, pending_bytes_limit=0)
        except (nats.errors.Error, OSError) as error:
            raise BusError(f"cannot subscribe to {subject}: {_text(error)}") from error

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; a lost link has none left."""
        if not self.lost and not self.client.is_closed:
            await subscription.unsubscribe()

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send without an answer. Raises Unanswered when the link is lost."""
        await self._send(subject, data, reply, None)

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
            await self._send(subject, data, f"{self._inbox}.r.{token}", headers)
            answer = await waiting.future
        finally:
            self._pending.pop(token, None)
        if answer.headers is not None and answer.headers.get(STATUS) == "503":
            raise NoResponders(subject)
        return answer

    async def round_trip(self, patience: float) -> None:
        """Return when the server has answered a ping, and so has processed all that was sent before. A server that
        does not answer in time is given up. Raises Unanswered."""
        # A task of its own, never cancelled: nats-py's reader dies of a pong whose waiter was cancelled.
        flush = asyncio.ensure_future(self.client.flush(int(patience)))
        flush.add_done_callback(_retrieve)
        gone = asyncio.get_running_loop().create_future()
        unhook = self.when_lost(lambda why: None if gone.done() else gone.set_result(why))
        await asyncio.wait((flush, gone), return_when=asyncio.FIRST_COMPLETED)
        unhook()
        if flush.done() and (error := flush.exception()) is not None:
            self.give_up(f"the server did not answer a ping: {_text(error)}")
        if self.lost:
            raise Unanswered(self.lost)

    def give_up(self, why: str) -> None:
        """The link is lost: everything that hangs on it is told."""
        if self.lost:
            return
        self.lost = why or "connection lost"
        if self._sweeper:
            self._sweeper.cancel()
        for waiting in self._pending.values():
            if not waiting.future.done():
                waiting.future.set_exception(Unanswered(self.lost))
        callbacks, self._when_lost = self._when_lost, set()
        for call in callbacks:
            call(self.lost)

    async def close(self) -> None:
        """Close the socket; at once when the link is lost, since such a server may no longer read from it."""
        if self.lost:
            writer = getattr(self.client._transport, "_io_writer", None)
            if writer is not None:
                writer.transport.abort()
        self.give_up("closed")
        try:
            async with asyncio.timeout(1.0):
                await self.client.close()
        except (TimeoutError, nats.errors.Error, OSError) as error:
            log.debug("connection not closed in order", why=_text(error))
        self._end_tasks()

    def _end_tasks(self) -> None:
        """nats-py leaves its tasks behind when its own close breaks off."""
        client = self.client
        for subscription in list(client._subs.values()):
            subscription._stop_processing()
        for task in (client._reading_task, client._flusher_task, client._ping_interval_task):
            if task is not None:
                task.cancel()

    async def _send(self, subject: str, data: bytes, reply: str, headers: Mapping[str, str] | None) -> None:
        if self.lost:
            raise Unanswered(self.lost)
        try:
            await self.client.publish(subject, data, reply=reply, headers=dict(headers) if headers else None)
        except (nats.errors.ConnectionClosedError, nats.errors.OutboundBufferLimitError, OSError) as error:
            raise Unanswered(_text(error)) from error

    async def _on_reply(self, msg: Msg) -> None:
        waiting = self._pending.get(msg.subject.rpartition(".")[2])
        if waiting is not None and not waiting.future.done():
            waiting.future.set_result(msg)

    async def _on_error(self, error: Exception) -> None:
        self.refusal = _text(error)
        if _PERMISSION in self.refusal:
            self._deny(self.refusal)
        elif isinstance(error, _FATAL) and self._sweeper is not None:
            self.give_up(f"connection lost: {self.refusal}")
        elif self._sweeper is not None:
            log.error("error of the connection to the bus", why=self.refusal)

    async def _on_closed(self) -> None:
        self.give_up(f"connection closed: {_text(self.client.last_error)}")

    def _deny(self, text: str) -> None:
        """The server names the subject it refuses (nats-py gives it in lower case), not the request."""
        denied = [p for p in self._pending.values() if f'"{p.subject.lower()}"' in text and not p.future.done()]
        for waiting in denied:
            waiting.future.set_exception(Denied(waiting.subject))
        if not denied:
            log.error("the bus refuses a subject to this user; its permissions are those of design §2", why=text)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP)
            if self.client.is_closed:
                self.give_up(f"connection closed: {_text(self.client.last_error)}")
                return
            now = loop.time()
            for waiting in self._pending.values():
                if waiting.deadline < now and not waiting.future.done():
                    waiting.future.set_exception(Unanswered("no answer in time"))


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
            await self._current.close()

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
            await link.close()
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
            except (nats.errors.Error, OSError, TimeoutError, BusError) as error:
                why = link.refusal or _text(error)
            await link.close()
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
            sound = parts.scheme in ("nats", "tls", "ws", "wss") and parts.hostname and (parts.port or True)
        except ValueError:
            sound = False
        if not sound:
            raise CannotConnect(f"{url!r} is no address of a bus; it is written nats://<host>:<port>")


def _text(error: BaseException | None) -> str:
    return str(error) or type(error).__name__ if error is not None else "no reason given"


def _retrieve(task: asyncio.Future[None]) -> None:
    """Mark the exception of a task that nobody waits for as seen."""
    if not task.cancelled():
        task.exception()
