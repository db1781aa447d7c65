"""The real client against a scripted server: bytes in, bytes out, no API server."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from prometheus_client import REGISTRY

from raybus.api.kinds import BY_KIND
from raybus.kube.client import Client, ssl_context
from raybus.kube.config import Access, Credentials
from raybus.kube.follow import follow, lines
from raybus.kube.port import Bug, KubeError, Rejected, Request, Response, Transient
from raybus.kube.watch import Put, Target

Script = Callable[[str, asyncio.StreamWriter], object]
"""What the server does with the n-th request: given its head, writes the raw answer; a coroutine is awaited."""


class Server:
    """Answers the n-th request by the n-th script (the last one again and again); keeps what it was asked."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts, self.heads, self.connections = list(scripts), list[str](), 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next((int(x.split(":")[1]) for x in head.lower().split("\r\n") if "content-length:" in x), 0)
                await reader.readexactly(length)
                script = self.scripts[min(len(self.heads), len(self.scripts) - 1)]
                self.heads.append(head)
                done = script(head, writer)
                if asyncio.iscoroutine(done):
                    await done
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running(*scripts: Script, credentials: Credentials | None = None) -> AsyncIterator[tuple[Client, Server]]:
    server = Server(*scripts)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**22)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    given = credentials or Credentials(server=url, source="a test")
    client = Client(Access(), msgspec.structs.replace(given, server=url), "raybus-test")
    try:
        async with client:
            yield client, server
    finally:
        listener.close()


def answer(body: bytes, code: int = 200, headers: str = "") -> Script:
    def write(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {code} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    return write


def stream(*chunks: bytes, cut: bool = False) -> Script:
    """A chunked body; `cut`: the connection breaks instead of ending."""

    async def write(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if cut:
            await writer.drain()
            writer.close()
        else:
            writer.write(b"0\r\n\r\n")

    return write


async def silent(_: str, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def hang_up(_: str, writer: asyncio.StreamWriter) -> None:
    writer.close()


GET = Request(method="GET", path="/api/v1/namespaces/ns/pods/p")


async def test_requests_share_one_connection_and_carry_agent_and_query() -> None:
    async with running(answer(b"{}")) as (client, server):
        post = Request(method="POST", path="/p", query={"labelSelector": "a in (b,c),!d/e"}, body=b'{"a":1}')
        assert await client.send(GET) == Response(status=200, body=b"{}")
        assert (await client.send(post)).status == 200
    assert server.connections == 1
    assert "user-agent: raybus-test" in server.heads[0].lower()
    assert "authorization" not in server.heads[0].lower()
    assert "content-type: application/json" in server.heads[1].lower()
    target = server.heads[1].split(" ")[1]
    assert target.startswith("/p?labelSelector=") and "a+in+(b,c),!d/e" in target.replace("%28", "(").replace(
        "%29", ")"
    ).replace("%2C", ",").replace("%21", "!").replace("%2F", "/")


@pytest.mark.parametrize(
    ("script", "sent", "words"),
    [
        pytest.param(hang_up, True, "lost the connection", id="closed without an answer"),
        pytest.param(silent, True, "no answer", id="no answer in time"),
        pytest.param(answer(b"busy", 503), True, "busy", id="unavailable"),
        pytest.param(answer(b"slow down", 429, "Retry-After: 2\r\n"), False, "slow down", id="throttled"),
    ],
)
async def test_what_may_work_later_is_transient(script: Script, sent: bool, words: str) -> None:
    async with running(script) as (client, _):
        with pytest.raises(Transient, match=words) as caught:
            await client.send(msgspec.structs.replace(GET, timeout=0.2, method="POST"))
    assert caught.value.sent is sent
    assert caught.value.retry_after == (2.0 if "slow" in words else 0.0)


async def test_requests_are_counted_by_code_also_those_without_an_answer() -> None:
    async with running(answer(b"{}"), answer(b"no", 404), stream(b"{}"), hang_up) as (client, _):
        host = client.server.removeprefix("http://")
        await client.send(GET)
        with pytest.raises(Rejected):
            await client.send(GET)
        assert [chunk async for chunk in client.stream(GET)] == [b"{}"]
        with pytest.raises(Transient):
            await client.send(msgspec.structs.replace(GET, method="POST"))

    def read(name: str, **labels: str) -> float | None:
        return REGISTRY.get_sample_value(name, {"host": host, **labels})

    assert read("rest_client_requests_total", code="200", method="GET") == 2
    assert read("rest_client_requests_total", code="404", method="GET") == 1
    assert read("rest_client_requests_total", code="<error>", method="POST") == 1
    assert read("rest_client_request_duration_seconds_count", verb="GET") == 3
    assert read("rest_client_request_duration_seconds_bucket", verb="GET", le="8.0") == 3


async def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    client = Client(Access(), Credentials(server="http://127.0.0.1:1", source="a test"), "raybus-test")
    async with client:
        with pytest.raises(Transient, match=r"cannot reach the API server at http://127.0.0.1:1") as caught:
            await client.send(GET)
    assert caught.value.sent is False


async def test_a_refusal_is_said_in_the_servers_words() -> None:
    body = b'{"kind":"Status","reason":"NotFound","message":"pods \\"p\\" not found"}'
    async with running(answer(body, 404)) as (client, server):
        with pytest.raises(Rejected, match='GET /api/v1/namespaces/ns/pods/p: pods "p" not found') as caught:
            await client.send(GET)
        assert (caught.value.code, caught.value.reason) == (404, "NotFound")
        with pytest.raises(Rejected):
            await client.send(GET)
    assert server.connections == 1


async def test_refused_credentials_name_their_source() -> None:
    credentials = Credentials(server="", source="kubeconfig /k", authorization="Bearer old")
    async with running(answer(b"{}", 401), credentials=credentials) as (client, server):
        with pytest.raises(Rejected, match="does not accept the credentials of kubeconfig /k"):
            await client.send(GET)
    assert "authorization: bearer old" in server.heads[0].lower()


async def test_a_token_is_read_from_its_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    credentials = Credentials(server="", source="the pod", token_file=str(token))
    async with running(answer(b"{}"), credentials=credentials) as (client, server):
        await client.send(GET)
        assert "authorization: bearer secret" in server.heads[0].lower()
    credentials = msgspec.structs.replace(credentials, token_file=str(tmp_path / "missing"))
    async with running(answer(b"{}"), credentials=credentials) as (client, server):
        with pytest.raises(Transient, match="missing cannot be read"):
            await client.send(GET)


async def collect(client: Client, within: float = 5.0) -> tuple[list[bytes], KubeError | None]:
    got: list[bytes] = []
    try:
        async for line in lines(client.stream(msgspec.structs.replace(GET, timeout=within))):
            got.append(line)
    except KubeError as error:
        return got, error
    return got, None


async def test_a_stream_yields_complete_lines_however_it_is_cut_into_chunks() -> None:
    async with running(stream(b"on", b"e\ntwo\n\nthr", b"ee\n")) as (client, _):
        assert await collect(client) == ([b"one", b"two", b"three"], None)


async def test_a_line_of_many_megabytes_passes() -> None:
    big = b"x" * 3_000_000
    async with running(stream(*(big[i : i + 50_000] for i in range(0, len(big), 50_000)), b"\nend\n")) as (client, _):
        got, error = await collect(client)
    assert error is None and [len(line) for line in got] == [3_000_000, 3]


async def test_a_stream_that_breaks_off_is_transient_and_its_half_line_is_dropped() -> None:
    async with running(stream(b"one\ntw", cut=True)) as (client, _):
        got, error = await collect(client)
    assert got == [b"one"] and isinstance(error, Transient)


async def test_a_stream_that_says_nothing_is_ended_by_us() -> None:
    async with running(silent) as (client, _):
        got, error = await collect(client, within=0.2)
    assert got == [] and isinstance(error, Transient) and "ended by us" in str(error)


async def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raybus.kube.follow.MAX_LINE", 1000)
    async with running(stream(b"x" * 5000)) as (client, _):
        got, error = await collect(client)
    assert got == [] and isinstance(error, Bug)


async def test_a_watch_survives_a_cut_an_error_and_an_immediate_close() -> None:
    def event(kind: str, name: str, version: str) -> bytes:
        meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version}
        return msgspec.json.encode({"type": kind, "object": {"metadata": meta}}) + b"\n"

    end = {"metadata": {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}}
    filled = event("ADDED", "a", "3") + msgspec.json.encode({"type": "BOOKMARK", "object": end}) + b"\n"
    scripts = (
        stream(filled, b'{"type":"ADD', cut=True),
        answer(b"sorry", 500),
        stream(),
        stream(event("ADDED", "b", "6")),
        silent,
    )
    seen: list[str] = []
    async with running(*scripts) as (client, server), asyncio.timeout(10):
        events = follow(client, Target(BY_KIND["Pod"]), lambda: 0.01)
        async for found in events:
            seen.append(found.object.meta.name if isinstance(found, Put) else type(found).__name__)
            if seen[-1] == "b":
                break
        await events.aclose()
    assert seen == ["a", "Synced", "Trouble", "Trouble", "b"]
    assert "resourceVersion=5" in server.heads[3]


def test_tls_settings_come_from_the_credentials() -> None:
    open_ = ssl_context(Credentials(server="https://x", source="a test", verify=False))
    assert open_.verify_mode is ssl.CERT_NONE
    assert ssl_context(Credentials(server="https://x", source="a test")).verify_mode is ssl.CERT_REQUIRED
    with pytest.raises(KubeError, match="the certificates of a test cannot be used"):
        ssl_context(Credentials(server="https://x", source="a test", ca="no certificate"))
