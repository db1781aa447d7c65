"""The calls on a real connection: a scripted server on loopback."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from raybus.ray.address import Endpoint, direct, through_api_server
from raybus.ray.answers import JobInfo, NotFound
from raybus.ray.client import MAX_BODY, Dashboard, direct_transport
from raybus.ray.errors import DashboardUnreachable

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(x[15:]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")), 0)
    return head + await reader.readexactly(length)


def http(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(body)) + body


class Script:
    """Answers the n-th request with the n-th answer; keeps what was asked."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self.answers:
            self.requests.append(await read_request(reader))
            writer.write(self.answers.pop(0))


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[Dashboard, Endpoint]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    transport = direct_transport()
    try:
        yield Dashboard(transport), direct(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        await transport.aclose()
        server.close()


async def test_job_info_with_a_token() -> None:
    script = Script(http(200, b'{"status": "RUNNING", "start_time": 1}'), http(404, b"Job a/b does not exist"))
    async with serving(script) as (dashboard, endpoint):
        endpoint = replace(endpoint, token="s3cret")
        assert await dashboard.job(endpoint, "a/b") == JobInfo(status="RUNNING", start_time=1)
        assert await dashboard.job(endpoint, "a/b") == NotFound()
    assert script.requests[0].startswith(b"GET /api/jobs/a%2Fb HTTP/1.1\r\n")
    assert b"x-ray-authorization: Bearer s3cret\r\n" in script.requests[0]
    assert "s3cret" not in repr(endpoint)


async def test_submit_and_submit_again() -> None:
    known = b"Traceback...\nValueError: Job already exists. Please use a different submission_id.\n"
    script = Script(http(200, b'{"job_id": "x"}'), http(500, known))
    async with serving(script) as (dashboard, endpoint):
        request = {"entrypoint": "true", "submission_id": "x", "entrypoint_num_cpus": 0.1}
        assert await dashboard.submit(endpoint, request) == "submitted"
        assert await dashboard.submit(endpoint, request) == "known"
    head, _, body = script.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/jobs/ HTTP/1.1\r\n")
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body) == request


async def test_stop() -> None:
    stopped, not_stopped = http(200, b'{"stopped": true}'), http(200, b'{"stopped": false}')
    ended, running = http(200, b'{"status": "SUCCEEDED"}'), http(200, b'{"status": "RUNNING"}')
    script = Script(stopped, not_stopped, ended, not_stopped, running)
    async with serving(script) as (dashboard, endpoint):
        assert await dashboard.stop(endpoint, "x") is None
        assert await dashboard.stop(endpoint, "x") == JobInfo(status="SUCCEEDED")
        with pytest.raises(DashboardUnreachable, match="does not stop job x, which is RUNNING"):
            await dashboard.stop(endpoint, "x")
    assert script.requests[0].startswith(b"POST /api/jobs/x/stop HTTP/1.1\r\n")


async def test_health() -> None:
    script = Script(http(200, b"success"), http(503, b""))
    async with serving(script) as (dashboard, endpoint):
        await dashboard.check_health(endpoint)
        with pytest.raises(DashboardUnreachable, match="503"):
            await dashboard.check_health(endpoint)
    assert script.requests[0].startswith(b"GET /api/gcs_healthz HTTP/1.1\r\n")


async def never(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def drip_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x: y\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("head", [never, drip, drip_head])
async def test_a_head_that_does_not_come_to_an_end_costs_the_bound(head: Handler) -> None:
    async with serving(head) as (dashboard, endpoint):
        begun = time.monotonic()
        with pytest.raises(DashboardUnreachable, match=r"no complete answer in 0\.3 s"):
            await dashboard.job(replace(endpoint, timeout=0.3), "x")
        assert time.monotonic() - begun < 2


async def test_heads_that_hang_do_not_keep_others_waiting() -> None:
    script = Script(http(200, b"success"))
    async with serving(never) as (dashboard, hanging), serving(script) as (_, good):
        calls = [asyncio.create_task(dashboard.check_health(hanging)) for _ in range(200)]
        await asyncio.sleep(0)
        await asyncio.wait_for(dashboard.check_health(good), 1)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")


async def rubbish(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")


async def hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    return None


@pytest.mark.parametrize(
    ("head", "reason"),
    [(endless, f"longer than {MAX_BODY >> 20} MiB"), (cut, "."), (rubbish, "."), (hang_up, ".")],
)
async def test_broken_heads_are_unreachable_with_a_reason(head: Handler, reason: str) -> None:
    async with serving(head) as (dashboard, endpoint):
        with pytest.raises(DashboardUnreachable, match=reason) as caught:
            await dashboard.job(endpoint, "x")
    assert caught.value.reason


async def test_nobody_listens() -> None:
    async with serving(never) as (_, endpoint):
        pass
    transport = direct_transport()
    with pytest.raises(DashboardUnreachable, match="connection refused"):
        await Dashboard(transport).job(endpoint, "x")
    for bad in ("no-such-host.invalid:8265", "http://["):
        with pytest.raises(DashboardUnreachable):
            await Dashboard(transport).job(direct(bad), "x")
    await transport.aclose()


def test_addresses() -> None:
    assert direct("h:8265") == Endpoint("http://h:8265", 2.0)
    assert direct("http://h:8265/").base == "http://h:8265"
    proxied = through_api_server("https://api:443/", "ns", "a-head-svc", "t")
    assert proxied == Endpoint("https://api:443/api/v1/namespaces/ns/services/a-head-svc:dashboard/proxy", 10.0, "t")
