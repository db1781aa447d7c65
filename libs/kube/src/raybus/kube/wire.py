"""HTTP/1.1 over kept-alive connections to one server: no more than the API server needs (ADR 0093).

One exchange at a time on each connection. A connection whose exchange was not finished is closed, never used again.
"""

import asyncio
import base64
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

import httptools

CONNECT_TIMEOUT = 10.0
IDLE = 50.0
"""Seconds after which a connection that was not used is not trusted any more (servers close them after 60 or more)."""
BUFFERED = 1 << 20
"""Bytes of a stream that wait for their reader before the socket is not read any more."""

# A peer that is gone without a word is noticed by TCP within about 25 s.
_SOCKET = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)

Headers = Sequence[tuple[str, str]]


class Broken(Exception):
    """The exchange broke off. `sent`: the server may have acted upon the request."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Answer(NamedTuple):
    """A complete answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Address(NamedTuple):
    """Where the server is. `name`: the one in its certificate; `tls` None = plain; `proxy`: URL of an HTTP proxy."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    name: str
    proxy: str = ""


class Connection(asyncio.Protocol):
    """One connection. `lost`: why it cannot be used any more, "" while it can."""

    def __init__(self) -> None:
        self.lost = ""
        self.idle_since = 0.0
        self.status = 0
        self.chunks: deque[bytes] = deque()
        self.complete = False
        self._fields: list[tuple[bytes, bytes]] = []
        self._size = 0
        self._most = 0
        self._busy = self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._wakes_on_head = False
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Of the present answer."""
        return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._fields}

    async def whole(self, request: bytes, most: int) -> None:
        """One exchange to its end; `chunks` is then its body. Raises Broken, also for one of more than `most` bytes
        (0 = any)."""
        self._begin(request, most, wakes_on_head=False)
        await self._wait()

    async def head(self, request: bytes) -> None:
        """One exchange up to the headers of its answer; `more` waits for what follows. Raises Broken."""
        self._begin(request, 0, wakes_on_head=True)
        await self._wait()

    async def more(self) -> None:
        """Return when there are `chunks`, or the answer is complete. Raises Broken."""
        if self._paused and not self.chunks and self._transport is not None:
            self._paused, self._size = False, 0
            self._transport.resume_reading()
        if not self.chunks and not self.complete:
            await self._wait()

    def close(self) -> None:
        """Never to be used again."""
        self.lost = self.lost or "closed by us"
        if self._transport is not None:
            self._transport.abort()

    def _begin(self, request: bytes, most: int, *, wakes_on_head: bool) -> None:
        assert self._transport is not None
        self.chunks.clear()
        self._fields.clear()
        self._size, self._most, self.complete = 0, most, False
        self._busy, self._wakes_on_head = True, wakes_on_head
        self._transport.write(request)

    async def _wait(self) -> None:
        if self.lost:
            raise Broken(self.lost, sent=True)
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _break(self, why: str) -> None:
        self.lost = self.lost or why
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(Broken(self.lost, sent=True))

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._busy:
            self._break("the server spoke unasked")
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._break(f"its answer is no HTTP: {error}")
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._break(str(exc) if exc is not None and str(exc) else "closed")

    # ---- what the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self._wakes_on_head and self.status >= 200:
            self._wake()

    def on_body(self, body: bytes) -> None:
        self.chunks.append(body)
        self._size += len(body)
        if self._most and self._size > self._most:
            self._break(f"its answer is longer than {self._most >> 20} MiB")
            self.close()
        elif self._wakes_on_head:
            self._wake()
            if self._size > BUFFERED and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.status < 200:
            self._fields.clear()
            return
        self.complete, self._busy = True, False
        if not self._parser.should_keep_alive():
            self.lost = self.lost or "closed by the server"
        self._wake()


class Wire:
    """Connections to one server, as many as there are exchanges at the same time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[Connection] = []
        self._closed = False

    async def call(self, method: str, target: str, headers: Headers, body: bytes = b"", most: int = 0) -> Answer:
        """A whole answer. Raises Broken and OSError."""
        request = self._encode(method, target, headers, body)
        connection = await self._take()
        try:
            await connection.whole(request, most)
        except BaseException:
            connection.close()
            raise
        chunks = connection.chunks
        content = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        answer = Answer(connection.status, connection.headers, content)
        self._give_back(connection)
        return answer

    async def stream(self, method: str, target: str, headers: Headers) -> AsyncGenerator[Answer, None]:
        """The head of the answer with an empty body first, then its body in pieces. Raises Broken and OSError."""
        request = self._encode(method, target, headers, b"")
        connection = await self._take()
        finished = False
        try:
            await connection.head(request)
            yield Answer(connection.status, connection.headers, b"")
            while connection.chunks or not connection.complete:
                await connection.more()
                while connection.chunks:
                    yield Answer(connection.status, {}, connection.chunks.popleft())
            finished = True
        finally:
            if finished:
                self._give_back(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close what is idle now, and the others when their exchange is over."""
        self._closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _encode(self, method: str, target: str, headers: Headers, body: bytes) -> bytes:
        lines = [f"{method} {target} HTTP/1.1", f"host: {self._address.host}:{self._address.port}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method != "GET":
            lines.append(f"content-length: {len(body)}")
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or target.count(" "):
            raise ValueError(f"a line break or blank where HTTP allows none: {method} {target!r}")
        return text.encode("latin-1") + b"\r\n\r\n" + body

    async def _take(self) -> Connection:
        now = time.monotonic()
        while self._idle:
            connection = self._idle.pop()
            if not connection.lost and now - connection.idle_since < IDLE:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await _connect(self._address)
        except TimeoutError as error:
            raise Broken(f"no connection within {CONNECT_TIMEOUT:.0f} s", sent=False) from error
        except OSError as error:
            raise Broken(str(error), sent=False) from error

    def _give_back(self, connection: Connection) -> None:
        if self._closed or connection.lost:
            connection.close()
            return
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        if connection.idle_since - self._idle[0].idle_since > IDLE:
            self._idle.pop(0).close()


async def _connect(address: Address) -> Connection:
    loop = asyncio.get_running_loop()
    proxy = urlsplit(address.proxy) if address.proxy else None
    host, port = (proxy.hostname or "", proxy.port or 80) if proxy else (address.host, address.port)
    sock = await _socket(host, port)
    try:
        if proxy is not None:
            await _through(sock, proxy, address)
        name = (address.name or address.host) if address.tls else None
        _, connection = await loop.create_connection(Connection, sock=sock, ssl=address.tls, server_hostname=name)
    except BaseException:
        sock.close()
        raise
    return connection


async def _socket(host: str, port: int) -> socket.socket:
    """A connected socket to the first address that answers. Raises OSError."""
    loop, trouble = asyncio.get_running_loop(), OSError(f"{host} has no address")
    for family, kind, proto, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, proto)
        try:
            sock.setblocking(False)
            for level, option, value in _SOCKET:
                sock.setsockopt(level, option, value)
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


async def _through(sock: socket.socket, proxy: SplitResult, address: Address) -> None:
    """Have the proxy connect `sock` to the server. Raises OSError."""
    loop, target = asyncio.get_running_loop(), f"{address.host}:{address.port}"
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.username:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        request += f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
    await loop.sock_sendall(sock, f"{request}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer and len(answer) < 1 << 16:
        piece = await loop.sock_recv(sock, 4096)
        if not piece:
            break
        answer += piece
    if answer[9:12] != b"200":
        said = answer.partition(b"\r\n")[0].decode(errors="replace") or "nothing"
        raise OSError(f"the proxy {proxy.hostname} says: {said}")
