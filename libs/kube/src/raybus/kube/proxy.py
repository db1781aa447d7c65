"""The API server's service proxy as an httpx transport: what the prober's calls to dashboards go through when it runs
outside the cluster (contract rayjob §5.1)."""

from collections.abc import AsyncIterator

import httpx

from raybus.kube.client import Client
from raybus.kube.port import Transient
from raybus.kube.wire import Broken

MOST = 8 << 20
"""Bytes of an answer that are read."""
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "authorization"})
"""Headers that belong to the connection to the API server."""


class _Body(httpx.AsyncByteStream):
    """A body that is there already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class ProxyTransport(httpx.AsyncBaseTransport):
    """Sends requests to paths of the API server with the credentials of `client`, which its owner closes."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.TransportError without an answer."""
        headers = [(name, value) for name, value in request.headers.items() if name not in _OURS]
        target = request.url.raw_path.decode("ascii")
        try:
            answer = await self._client.forward(request.method, target, headers, await request.aread(), MOST)
        except (Transient, Broken, OSError) as error:
            raise httpx.TransportError(str(error)) from error
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.body))
