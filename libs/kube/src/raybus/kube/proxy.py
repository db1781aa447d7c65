"""The API server's service proxy as an httpx transport: what the prober's calls to dashboards go through when it runs
outside the cluster (contract rayjob §5.1)."""

import httpx

from raybus.kube.client import Client
from raybus.kube.port import Transient


class ProxyTransport(httpx.AsyncBaseTransport):
    """Sends requests to paths of the API server with the credentials of `client`, which its owner closes."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.TransportError, and what aiohttp raises, without an answer."""
        try:
            return await self._client.forward(request)
        except Transient as error:
            raise httpx.TransportError(str(error)) from error
