"""A small asynchronous client of the API server for the benchmarks: JSON calls and a watch."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Self

import aiohttp
import yaml

from raybus.dev.cluster import Cluster
from raybus.testkit.client_tls import client_context


class Api:
    """Calls with the administrator's certificate; to be used as `async with`."""

    def __init__(self, cluster: Cluster) -> None:
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        self._server = config["clusters"][0]["cluster"]["server"]
        self._tls = client_context(config)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=50)
        self._session = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """The answer's JSON. Raises RuntimeError for any other answer than 2xx."""
        data = None if body is None else json.dumps(body).encode()
        async with self._session.request(
            method, self._server + path, data=data, headers={"content-type": kind}
        ) as answer:
            text = await answer.text()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
            return json.loads(text)

    async def watch(self, path: str, ready: asyncio.Event) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """(type, object) of every event from now on; `ready` is set once the start is known."""
        version = (await self.call("GET", f"{path}?limit=1"))["metadata"]["resourceVersion"]
        ready.set()
        while True:
            query = f"?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
            never = aiohttp.ClientTimeout(total=None)
            async with self._session.get(self._server + path + query, timeout=never) as answer:
                rest = b""
                async for chunk in answer.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            raise RuntimeError(f"watch of {path}: {event['object']}")
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            yield event["type"], event["object"]


def container(name: str, memory: str) -> dict[str, Any]:
    """A pod spec with one Ray container."""
    size = {"cpu": "1", "memory": memory}
    resources = {"requests": size, "limits": size}
    return {"containers": [{"name": name, "image": "rayproject/ray:2.55.0", "resources": resources}]}


def cluster_spec(workers: int, most: int) -> dict[str, Any]:
    """The spec of a RayCluster with one worker group of up to `most` workers."""
    group = {"groupName": "small", "replicas": workers, "minReplicas": 0, "maxReplicas": most, "rayStartParams": {}}
    return {
        "rayVersion": "2.55.0",
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": container("ray-head", "2Gi")}},
        "workerGroupSpecs": [{**group, "template": {"spec": container("ray-worker", "1Gi")}}] if most else [],
    }
