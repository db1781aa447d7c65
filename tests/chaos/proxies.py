"""One proxy for each process that talks to Kubernetes: it says who writes, and can hold back or refuse everything.

A proxy ends TLS with the API server's own certificate and goes on with the client certificate of the service. What is
asked of a Service's port `dashboard` goes to the imitation of Ray instead.
"""

import asyncio
import re
import ssl
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from imitation import Ray

from raybus.testkit.client_tls import client_context

DASHBOARD = re.compile(r"/api/v1/namespaces/[^/]+/services/(?P<service>[^:/]+):dashboard/proxy(?P<rest>/.*)")
_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "host", "user-agent"}
BUSY = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "too many requests, please try again later",
    "reason": "TooManyRequests",
    "code": 429,
}


class Proxy:
    """The way of the process `name` to the API server. `busy`: new requests get a 429; `hold` and `open` make a black
    hole and end it."""

    def __init__(self, name: str, kubeconfig: Path, ray: Ray, certificate: tuple[Path, Path]) -> None:
        self.name = name
        self.busy = False
        self.refused = 0
        self._source: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        self._upstream = self._source["clusters"][0]["cluster"]["server"]
        self._ray, self._certificate = ray, certificate
        self._passing = asyncio.Event()
        self._passing.set()
        self._stack = AsyncExitStack()

    async def start(self, folder: Path) -> Path:
        """Listen on a port of its own until `close`; returns a kubeconfig that leads there."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*self._certificate)
        connector = aiohttp.TCPConnector(limit=0, ssl=client_context(self._source))
        timeout = aiohttp.ClientTimeout(total=None, connect=5)
        session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        self._session = await self._stack.enter_async_context(session)
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1, handler_cancellation=True)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        port = runner.addresses[0][1]
        changed = yaml.safe_load(yaml.safe_dump(self._source))
        changed["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        path = folder / f"{self.name}.yaml"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(changed))
        return path

    async def close(self) -> None:
        """Listen no more."""
        await self._stack.aclose()

    def hold(self) -> None:
        """Accept everything, pass on nothing."""
        self._passing.clear()

    def open(self) -> None:
        """Pass on again, first of all what was held back, unless its sender has given up."""
        self._passing.set()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        await self._passing.wait()
        if _given_up(request):
            return web.Response(status=499)
        if self.busy:
            self.refused += 1
            return web.json_response(BUSY, status=429, headers={"Retry-After": "1"})
        if found := DASHBOARD.fullmatch(request.path):
            answer = self._ray.answer(found["service"], request.method, found["rest"], body)
            await self._passing.wait()
            return web.Response(status=answer[0], text=answer[1], content_type="application/json")
        try:
            return await self._pass_on(request, body)
        except (aiohttp.ClientError, OSError):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)

    async def _pass_on(self, request: web.Request, body: bytes) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP} | {"User-Agent": self.name}
        url = self._upstream + request.raw_path
        async with self._session.request(request.method, url, data=body or None, headers=headers) as upstream:
            answer = web.StreamResponse(status=upstream.status)
            for key, value in upstream.headers.items():
                if key.lower() not in _HOP:
                    answer.headers[key] = value
            await self._passing.wait()
            await answer.prepare(request)
            async for chunk in upstream.content.iter_any():
                await self._passing.wait()
                await answer.write(chunk)
            await answer.write_eof()
            return answer


class Proxies:
    """All of them, by the name of the process."""

    def __init__(self, proxies: Iterable[Proxy]) -> None:
        self.by_name = {proxy.name: proxy for proxy in proxies}

    def of(self, service: str) -> list[Proxy]:
        """Those of all replicas of a service."""
        return [p for name, p in self.by_name.items() if name == service or name.startswith(f"{service}-")]


def _given_up(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()
