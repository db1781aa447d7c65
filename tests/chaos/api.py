"""A plain client of the API server for the users' side: creates, changes, deletes. No code of ours."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

from raybus.testkit.client_tls import client_context

Json = dict[str, Any]
PATCH = {"Content-Type": "application/merge-patch+json"}


class Away(Exception):
    """The API server does not answer, or refuses for now."""


class Api:
    """The administrator's calls in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        source = yaml.safe_load(kubeconfig.read_text())
        self._server: str = source["clusters"][0]["cluster"]["server"]
        self._context: ssl.SSLContext = client_context(source)
        self.namespace = namespace
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._context, limit=20)
        session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20))
        self._session = await self._stack.enter_async_context(session)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def rays(self, kind: str, name: str = "") -> str:
        """Path of RayClusters or RayJobs."""
        return f"/apis/ray.io/v1/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def pods(self, name: str = "") -> str:
        """Path of pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{name}" if name else "")

    async def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """One call; 404 and 409 are answers (`code` says so). Raises Away."""
        headers = PATCH if method == "PATCH" else {}
        try:
            async with self._session.request(method, self._server + path, json=body, headers=headers) as answer:
                if answer.status >= 300 and answer.status not in (404, 409):
                    raise Away(f"{method} {path}: {answer.status} {(await answer.text())[:300]}")
                result: Json = await answer.json()
                return result
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Away(f"{method} {path}: {error!r}") from error

    async def insist(self, method: str, path: str, body: Json | None = None) -> Json:
        """The same, again and again until the API server answers."""
        while True:
            try:
                return await self.call(method, path, body)
            except Away:
                await asyncio.sleep(1)
