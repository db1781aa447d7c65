"""Sending: one bounded HTTP exchange, and the calls made of it (contract rayjob §5.3)."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from raybus.ray.address import Endpoint
from raybus.ray.answers import Answer, JobInfo, NotFound, read_health, read_job, read_stopped, read_submitted
from raybus.ray.errors import DashboardUnreachable
from raybus.ray.submission import encode_submission

MAX_BODY = 4 << 20
"""Bytes of an answer that are read; a job's message is at most 20,000 characters, its runtime_env is the user's."""
_JSON = {"content-type": "application/json"}


def direct_transport() -> httpx.AsyncBaseTransport:
    """The transport for dashboards reached by their own address. To be closed by the caller (`aclose`).

    Without a limit of connections, so that heads that do not answer cannot keep the others waiting for one.
    """

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=15.0, ttl_dns_cache=5)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    return AiohttpTransport(verify=False, client=session)


class Dashboard:
    """The calls, over one transport: `direct_transport()`, or for `through_api_server` one that authenticates itself.

    Every call ends within the endpoint's timeout, whatever the head does. All raise DashboardUnreachable and
    DashboardRefused; what Ray says of unknown and known ids is a result.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def job(self, endpoint: Endpoint, job_id: str) -> JobInfo | NotFound:
        """What Ray says of the job with this submission id."""
        return read_job(endpoint.base, await self._exchange(endpoint, "GET", _job(job_id)))

    async def submit(self, endpoint: Endpoint, request: Mapping[str, Any]) -> Literal["submitted", "known"]:
        """Submit `request` (see `encode_submission`); "known" if Ray has a job of this id already. After
        DashboardUnreachable it may have one."""
        answer = await self._exchange(endpoint, "POST", "/api/jobs/", encode_submission(request))
        return read_submitted(endpoint.base, answer)

    async def stop(self, endpoint: Endpoint, job_id: str) -> JobInfo | NotFound | None:
        """Ask the job to stop: None if Ray does so, the job if it has ended already.

        Raises DashboardUnreachable also when Ray neither stops the job nor says that it has ended.
        """
        answer = await self._exchange(endpoint, "POST", _job(job_id) + "/stop", b"")
        stopped = read_stopped(endpoint.base, answer)
        if stopped is True:
            return None
        job = await self.job(endpoint, job_id)
        if isinstance(job, JobInfo) and not job.ended:
            raise DashboardUnreachable(endpoint.base, f"it does not stop job {job_id}, which is {job.status}")
        return job

    async def check_health(self, endpoint: Endpoint) -> None:
        """Return if the cluster's control store is alive; else DashboardUnreachable."""
        read_health(endpoint.base, await self._exchange(endpoint, "GET", "/api/gcs_healthz"))

    async def _exchange(self, endpoint: Endpoint, method: str, path: str, body: bytes | None = None) -> Answer:
        headers = {"accept-encoding": "identity"}
        if body is not None:
            headers |= _JSON
        if endpoint.token:
            headers["x-ray-authorization"] = f"Bearer {endpoint.token}"
        try:
            async with asyncio.timeout(endpoint.timeout):
                request = httpx.Request(method, endpoint.base + path, headers=headers, content=body)
                response = await self._transport.handle_async_request(request)
                try:
                    return Answer(response.status_code, await _body(endpoint, response))
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise DashboardUnreachable(endpoint.base, f"no complete answer in {endpoint.timeout:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError) as error:
            raise DashboardUnreachable(endpoint.base, _reason(error)) from error


async def _body(endpoint: Endpoint, response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BODY:
            raise DashboardUnreachable(endpoint.base, f"its answer is longer than {MAX_BODY >> 20} MiB")
    return bytes(body)


def _job(job_id: str) -> str:
    return f"/api/jobs/{quote(job_id, safe='')}"


def _reason(error: BaseException) -> str:
    """The innermost cause in words: httpx and aiohttp wrap the system's error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            # asyncio puts words of its own into strerror; a failed name look-up has no errno of the system.
            return (os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror).lower()
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
