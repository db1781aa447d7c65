"""Exchanges over real sockets with a server that is told byte by byte what to say."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from raybus.kube.client import Client
from raybus.kube.config import Access, ConfigError, Credentials
from raybus.kube.port import Request
from raybus.kube.proxy import ProxyTransport
from raybus.kube.wire import BUFFERED, Address, Answer, Broken, Wire

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next((int(line.split(":")[1]) for line in head.lower().split("\r\n") if "content-length" in line), 0)
    return head, await reader.readexactly(length)


def says(*answers: bytes) -> Serve:
    """One answer after the other to the requests of each connection, which then stays open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await read_request(reader)
            writer.write(answer)
            await writer.drain()
        await reader.read()
        writer.close()

    return serve


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)  # type: ignore[misc]  # scripts are coroutine functions
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def wired(*answers: bytes) -> AsyncIterator[Wire]:
    async with listening(says(*answers)) as port:
        wire = Wire(Address("127.0.0.1", port, None, ""))
        yield wire
        wire.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (OK + b"hi", Answer(200, {"content-length": "2", "x-a": "b"}, b"hi")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, {}, b"")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", None),
    ],
    ids=["with length", "without a body", "after an interim answer", "chunked"],
)
async def test_whole_answers(answer: bytes, expected: Answer | None) -> None:
    async with wired(answer) as wire:
        found = await wire.call("GET", "/", ())
    if expected is not None:
        assert found == expected
    else:
        assert (found.status, found.body) in ((404, b""), (200, b"abc"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"nonsense\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000, "longer than 1 MiB"),
    ],
    ids=["no HTTP", "too long"],
)
async def test_bad_answers_break_the_exchange(answer: bytes, words: str) -> None:
    async with wired(answer) as wire:
        with pytest.raises(Broken, match=words) as caught:
            await wire.call("GET", "/", (), most=1 << 20)
    assert caught.value.sent


async def test_what_comes_unasked_ends_the_connection_but_not_the_exchange() -> None:
    async with wired(OK + b"hi there", OK + b"no") as wire:
        assert [(await wire.call("GET", "/", ())).body for _ in range(2)] == [b"hi"] * 2


async def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    async with wired(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") as wire:
        assert [(await wire.call("GET", "/", ())).status for _ in range(3)] == [200] * 3


async def test_an_exchange_that_was_given_up_leaves_nothing_behind() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, _ = await read_request(reader)
        if "/slow" in head:
            await reader.read()
        writer.write(OK + head.split(" ")[1][1:3].encode())
        await reader.read()

    async with listening(serve) as port:
        wire = Wire(Address("127.0.0.1", port, None, ""))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await wire.call("GET", "/slow", ())
        assert (await wire.call("GET", "/ab", ())).body == b"ab"
        wire.close()


async def test_a_slow_reader_holds_the_server_back() -> None:
    written = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(400):
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()
            written += 0x10000
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async with listening(serve) as port:
        wire = Wire(Address("127.0.0.1", port, None, ""))
        pieces = wire.stream("GET", "/", ())
        assert (await anext(pieces)).status == 200
        before = -1
        while written != before:
            before = written
            await asyncio.sleep(0.1)
        assert written < 400 * 0x10000
        assert sum([len(piece.body) async for piece in pieces]) == 400 * 0x10000 > BUFFERED
        wire.close()


async def test_nothing_can_be_smuggled_into_a_request() -> None:
    async with wired(OK + b"hi") as wire:
        for method, target, headers in (
            ("GET", "/a\r\nX: y", ()),
            ("GET", "/a b", ()),
            ("GET", "/", (("x", "y\r\nz: 1"),)),
        ):
            with pytest.raises(ValueError, match="a line break or blank"):
                await wire.call(method, target, headers)


async def test_a_proxy_is_asked_to_connect() -> None:
    heads: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await read_request(reader))[0])
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        heads.append((await read_request(reader))[0])
        writer.write(OK + b"hi")
        await reader.read()

    async with listening(proxy) as port:
        credentials = Credentials(server="http://api.test:6443", source="x", proxy=f"http://me:secret@127.0.0.1:{port}")
        async with Client(Access(), credentials, "raybus-test") as client:
            assert (await client.send(Request(method="GET", path="/api"))).body == b"hi"
    assert heads[0].startswith("CONNECT api.test:6443 ") and "Proxy-Authorization: Basic bWU6c2VjcmV0" in heads[0]
    assert heads[1].startswith("GET /api ")


def test_what_cannot_be_connected_to_is_said_at_the_start() -> None:
    for server, proxy, words in (("api.test", "", "no URL"), ("https://api.test", "socks5://x:1", "only http://")):
        with pytest.raises(ConfigError, match=words):
            Client(Access(), Credentials(server=server, source="x", proxy=proxy), "raybus-test")


async def test_the_service_proxy_carries_calls_to_dashboards() -> None:
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, body = await read_request(reader)
        heads.append(head)
        writer.write(b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await reader.read()

    async with listening(serve) as port:
        credentials = Credentials(server=f"http://127.0.0.1:{port}", source="x", authorization="Bearer t")
        async with Client(Access(), credentials, "raybus-test") as client:
            request = httpx.Request("POST", f"{client.server}/a/proxy/api/jobs/", headers={"x-b": "c"}, content=b"{}")
            response = await ProxyTransport(client).handle_async_request(request)
            assert (response.status_code, await response.aread()) == (500, b"{}")
    assert heads[0].startswith("POST /a/proxy/api/jobs/ ") and "authorization: Bearer t" in heads[0]
    assert "x-b: c" in heads[0] and heads[0].lower().count("content-length") == 1
