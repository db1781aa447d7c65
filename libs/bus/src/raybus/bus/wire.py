"""NATS' client protocol on one connection: as much of it as the bus needs (ADR 0094).

Messages are handed over as they are read, without a task or queue in between. What is sent within one turn of the event
loop leaves in one write. (Collecting for 5 ms was measured: it costs more, since everybody falls asleep in between.)
"""

import asyncio
import random
import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast
from urllib.parse import unquote, urlsplit

import msgspec
import structlog
from msgspec import Struct

from raybus.bus.jetstream import DESCRIPTION, STATUS
from raybus.bus.settings import BusSettings

PING_INTERVAL, PINGS_MISSED = 2.0, 2
"""A server that does not answer for PING_INTERVAL * (PINGS_MISSED + 1) seconds is given up."""
MAX_LINE = 1 << 20
"""Bytes of a protocol line (INFO names all servers of a cluster)."""

log = structlog.get_logger()


class WireError(Exception):
    """The connection did not come about, or is gone; `str()` says why."""


class Msg(NamedTuple):
    """A message as it arrived; `headers` None without any. The status of an answer stands in them as `Status`."""

    subject: str
    reply: str
    data: bytes
    headers: dict[str, str] | None = None


class Info(Struct, frozen=True):
    """What the server says of itself."""

    max_payload: int = 1 << 20
    jetstream: bool = False
    cluster: str = ""
    tls_required: bool = False


Arrived = Callable[[Msg], None]


def encode_publish(subject: str, reply: str, headers: Mapping[str, str] | None, payload: bytes) -> bytes:
    """The command that publishes. Raises ValueError for a subject or header that would end it early."""
    if subject.split() != [subject] or (reply and reply.split() != [reply]):
        raise ValueError(f"no subject of NATS: {subject!r} {reply!r}")
    if not headers:
        return b"".join((f"PUB {subject} {reply} {len(payload)}\r\n".encode(), payload, b"\r\n"))
    text = "NATS/1.0\r\n" + "".join([f"{key}: {value}\r\n" for key, value in headers.items()]) + "\r\n"
    breaks = len(headers) + 2
    if text.count("\n") != breaks or text.count("\r") != breaks:
        raise ValueError(f"a line break in a header of a message to {subject}")
    lines = text.encode()
    command = f"HPUB {subject} {reply} {len(lines)} {len(lines) + len(payload)}\r\n".encode()
    return b"".join((command, lines, payload, b"\r\n"))


def decode_headers(raw: bytes) -> dict[str, str]:
    """Headers of a message, with the status in its first line if it has one. Whatever is no header is left out."""
    first, *lines = raw.decode(errors="surrogateescape").split("\r\n")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name] = value.strip()
    _, _, status = first.partition(" ")
    if status:
        code, _, text = status.strip().partition(" ")
        headers[STATUS] = code
        if text:
            headers[DESCRIPTION] = text.strip()
    return headers


class Wire(asyncio.Protocol):
    """One connection from its beginning to its loss. `refused` is told what the server refuses, `gone` once why the
    connection is lost."""

    def __init__(self, refused: Callable[[str], None], gone: Callable[[str], None]) -> None:
        self.info = Info()
        self.lost = ""
        self._refused, self._gone = refused, gone
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._subscriptions: dict[bytes, Arrived] = {}
        self._sids = 0
        self._parts: list[bytes] = []
        self._have = self._need = 0
        self._out: list[bytes] = []
        self._flush: asyncio.Handle | None = None
        self._pongs: deque[asyncio.Future[None] | None] = deque()
        self._pinging: asyncio.TimerHandle | None = None
        self._error = ""

    # ---- the life of the connection

    async def open(self, settings: BusSettings, tls: ssl.SSLContext | None) -> None:
        """Connect to the first of the servers, in random order, that takes us. Raises WireError, OSError."""
        trouble: Exception = WireError("no server is named")
        for url in random.sample(settings.servers, len(settings.servers)):
            try:
                await self._open_one(url, settings, tls)
                return
            except OSError as error:
                trouble = error
        raise trouble

    async def _open_one(self, url: str, settings: BusSettings, tls: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        sock = await _connected(host, parts.port or 4222)
        try:
            line, rest = await _first_line(self._loop, sock)
            self._take_info(line)
            if tls is None and (parts.scheme == "tls" or self.info.tls_required):
                tls = ssl.create_default_context()
            name = host if tls else None
            await self._loop.create_connection(lambda: self, sock=sock, ssl=tls, server_hostname=name)
        except BaseException:
            sock.close()
            raise
        if rest:
            self.data_received(rest)
        who = {"user": settings.user or unquote(parts.username or ""), "pass": settings.password}
        if parts.password and not settings.password:
            who["pass"] = unquote(parts.password)
        options = {
            "verbose": False,
            "pedantic": False,
            "lang": "python",
            "version": "raybus",
            "protocol": 1,
            "headers": True,
            "no_responders": True,
            "echo": True,
            "tls_required": tls is not None,
            "name": settings.name,
            **{key: value for key, value in who.items() if value},
        }
        self._write(b"CONNECT " + msgspec.json.encode(options) + b"\r\n")
        await self.round_trip()
        self._pinging = self._loop.call_later(PING_INTERVAL, self._ping)

    def close(self, why: str = "closed") -> None:
        """End the connection; what was sent before still leaves, unless it is lost already."""
        if self._transport is not None and not self.lost:
            self._write_out()
            self._transport.close()
        self._lose(why)

    def abort(self, why: str) -> None:
        """End the connection at once: the peer may not read any more."""
        self._lose(why)
        if self._transport is not None:
            self._transport.abort()

    def _lose(self, why: str) -> None:
        if self.lost:
            return
        self.lost = why
        for timer in (self._pinging, self._flush):
            if timer is not None:
                timer.cancel()
        for waiting in self._pongs:
            if waiting is not None and not waiting.done():
                waiting.set_exception(WireError(why))
        self._pongs.clear()
        self._subscriptions.clear()
        self._gone(why)

    # ---- what is sent

    def publish(self, subject: str, data: bytes, reply: str = "", headers: Mapping[str, str] | None = None) -> None:
        """Send a message. Raises ValueError; on a lost connection it goes nowhere."""
        self._write(encode_publish(subject, reply, headers, data))

    def subscribe(self, subject: str, arrived: Arrived) -> int:
        """Hand the messages of `subject` to `arrived`; returns the subscription's number."""
        self._sids += 1
        self._subscriptions[str(self._sids).encode()] = arrived
        self._write(f"SUB {subject}  {self._sids}\r\n".encode())
        return self._sids

    def unsubscribe(self, number: int, late: Arrived | None = None) -> None:
        """Hand over nothing more; what is on its way already goes to `late`."""
        key = str(number).encode()
        if self._subscriptions.pop(key, None) is None:
            return
        self._write(f"UNSUB {number}\r\n".encode())
        if late is not None:
            self._subscriptions[key] = late
            self._asked().add_done_callback(lambda done: (done.exception(), self._subscriptions.pop(key, None)))

    async def round_trip(self) -> None:
        """Return when the server has processed all that was sent before. Raises WireError when the connection is
        lost first."""
        if self.lost:
            raise WireError(self.lost)
        await self._asked()

    def _asked(self) -> asyncio.Future[None]:
        """Done when the server has answered a ping that is sent now."""
        answered: asyncio.Future[None] = self._loop.create_future()
        self._pongs.append(answered)
        self._write(b"PING\r\n")
        return answered

    def _ping(self) -> None:
        if sum(waiting is None for waiting in self._pongs) > PINGS_MISSED:
            self.abort("the server does not answer any more")
            return
        self._pongs.append(None)
        self._write(b"PING\r\n")
        self._pinging = self._loop.call_later(PING_INTERVAL, self._ping)

    def _write(self, command: bytes) -> None:
        if self.lost:
            return
        self._out.append(command)
        if self._flush is None:
            self._flush = self._loop.call_soon(self._write_out)

    def _write_out(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if self._out and self._transport is not None:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    # ---- what arrives

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(self._error or (str(exc) if exc is not None else "") or "closed by the server")

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        try:
            at, self._need = self._parse(data)
        except (ValueError, msgspec.MsgspecError) as error:
            self.abort(f"the server does not speak NATS: {error}")
            return
        rest = data[at:] if at else data
        self._parts, self._have = [rest] if rest else [], len(rest)
        if self._have > MAX_LINE and not self._need:
            self.abort("the server does not speak NATS: a line without end")

    def _parse(self, data: bytes) -> tuple[int, int]:
        """(how much of `data` was read, how many bytes have to be there before reading on makes sense).

        Raises ValueError and msgspec.MsgspecError.
        """
        at = 0
        while not self.lost:
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            line = data[at:end]
            if line.startswith((b"MSG ", b"HMSG ")):
                size = int(line[line.rindex(b" ") :])
                if len(data) < end + 2 + size + 2:
                    return at, end + 2 + size + 2 - at
                self._deliver(line, data, end + 2, size)
                at = end + 2 + size + 2
                continue
            at = end + 2
            self._control(line)
        return at, 0

    def _deliver(self, line: bytes, data: bytes, start: int, size: int) -> None:
        """Hand over the message whose protocol line is `line` and whose content begins at `start`."""
        kind, subject, sid, *rest = line.split()
        arrived = self._subscriptions.get(sid)
        if arrived is None:
            return
        headers, lines = None, 0
        if kind == b"HMSG":
            lines = int(rest[-2])
            headers = decode_headers(data[start : start + lines])
        reply = rest[0].decode() if len(rest) == (3 if kind == b"HMSG" else 2) else ""
        try:
            arrived(Msg(subject.decode(), reply, data[start + lines : start + size], headers))
        except Exception:
            log.exception("bug while taking in a message", subject=subject.decode())

    def _control(self, line: bytes) -> None:
        word = line[:5].upper()
        if word.startswith(b"PING"):
            self._write(b"PONG\r\n")
        elif word.startswith(b"PONG"):
            waiting = self._pongs.popleft() if self._pongs else None
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
        elif word.startswith(b"-ERR"):
            self._error = line[4:].decode(errors="replace").strip().strip("'")
            self._refused(self._error)
        elif word.startswith(b"INFO"):
            self._take_info(line)
        elif not word.startswith(b"+OK"):
            raise ValueError(f"unknown word {line[:20]!r}")

    def _take_info(self, line: bytes) -> None:
        if not line.startswith(b"INFO "):
            raise WireError("what listens there does not speak NATS")
        self.info = msgspec.json.decode(line[5:], type=Info)


async def _connected(host: str, port: int) -> socket.socket:
    """A socket connected to the first address of the host that answers. Raises OSError."""
    loop, trouble = asyncio.get_running_loop(), OSError(f"{host} has no address")
    for family, kind, proto, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, proto)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            trouble = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise trouble


async def _first_line(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> tuple[bytes, bytes]:
    """The server's first line, and what came after it. Raises WireError and OSError."""
    data = b""
    while (end := data.find(b"\r\n")) < 0:
        piece = await loop.sock_recv(sock, 1 << 16)
        if not piece or len(data) > MAX_LINE:
            raise WireError("the server closed the connection" if not piece else "what listens there is no NATS")
        data += piece
    return data[:end], data[end + 2 :]
