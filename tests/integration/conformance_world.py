"""One place for properties of the API server in memory and of a real one (style §2.11)."""

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import pytest

from raybus.api.decision import Json, Ref
from raybus.api.kinds import BY_KIND
from raybus.api.times import Instant
from raybus.dev.cluster import Cluster
from raybus.kube import request, write
from raybus.kube.client import Client
from raybus.kube.config import Access, Credentials, load_credentials
from raybus.kube.port import Rejected, Request, Sender
from raybus.testkit.api_controllers import GarbageCollector
from raybus.testkit.fake_api import FakeApi

PATIENCE = 60.0
"""The garbage collector hears of new CRDs every 30 s only."""


class World(NamedTuple):
    """An API server and a namespace of this test's own."""

    sender: Sender
    namespace: str
    set_quota: Callable[[int], Awaitable[None]]

    async def send(self, request: Request) -> Any:
        return msgspec.json.decode((await self.sender.send(request)).body)

    async def create(self, kind: str, name: str, **fields: Any) -> Any:
        body = {**BODIES.get(kind, {}), "apiVersion": BY_KIND[kind].api_version, "kind": kind, **fields}
        body["metadata"] = {**fields.get("metadata", {}), "name": name, "namespace": self.namespace}
        return await self.send(write.create(kind, self.namespace, msgspec.json.encode(body)))

    def ref(self, kind: str, name: str) -> Ref:
        return Ref(kind, self.namespace, name)

    async def get(self, kind: str, name: str) -> Any:
        return await self.send(request.get(self.ref(kind, name)))

    async def gone(self, kind: str, name: str) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                found = await self.get(kind, name)
            except Rejected as error:
                assert error.code == 404
                return
            assert time.monotonic() < end, found["metadata"]
            await asyncio.sleep(0.05)


CONTAINERS: Json = {"containers": [{"name": "c", "image": "example.test/none:1"}]}
TEMPLATE: Json = {"spec": CONTAINERS}
BODIES: dict[str, Json] = {
    "Pod": {"spec": CONTAINERS},
    "Service": {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
    "RayCluster": {"spec": {"headGroupSpec": {"rayStartParams": {}, "template": TEMPLATE}}},
    "RayJob": {"spec": {"entrypoint": "true", "rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}},
    "Job": {"spec": {"template": {"spec": {**CONTAINERS, "restartPolicy": "Never"}}, "suspend": True}},
    "Role": {"rules": []},
}


@asynccontextmanager
async def in_memory() -> AsyncIterator[World]:
    api = FakeApi(lambda: Instant(time.time()), random.Random(1))
    GarbageCollector(api, lambda _: 0.01)

    async def set_quota(pods: int) -> None:
        api.verbs.quota["ns"] = pods

    yield World(api.connect("test"), "ns", set_quota)


@asynccontextmanager
async def on_a_server(credentials: Credentials) -> AsyncIterator[World]:
    namespace = f"t-{uuid.uuid4().hex[:10]}"
    async with Client(Access(), credentials, "raybus-conformance") as client:
        meta = {"metadata": {"name": namespace}}
        await client.send(Request(method="POST", path="/api/v1/namespaces", body=msgspec.json.encode(meta)))

        async def set_quota(pods: int) -> None:
            path = f"/api/v1/namespaces/{namespace}/resourcequotas"
            hard = {"pods": str(pods)}
            body = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
            made = await client.send(Request(method="POST", path=path, body=msgspec.json.encode(body)))
            quota = msgspec.json.decode(made.body)
            quota["status"] = {"hard": hard, "used": {"pods": "0"}}
            quota["metadata"].pop("resourceVersion")
            await client.send(Request(method="PUT", path=f"{path}/q/status", body=msgspec.json.encode(quota)))

        world = World(client, namespace, set_quota)
        end = time.monotonic() + PATIENCE
        while True:  # pods are refused before the namespace has its service account
            try:
                await world.get("ServiceAccount", "default")
                break
            except Rejected:
                assert time.monotonic() < end
                await asyncio.sleep(0.05)
        yield world
        await client.send(Request(method="DELETE", path=f"/api/v1/namespaces/{namespace}"))


@pytest.fixture(scope="module")
def credentials(bare_cluster: Cluster) -> Credentials:
    """The administrator's, read once."""
    return asyncio.run(load_credentials(Access(kubeconfig=str(bare_cluster.kubeconfig))))


@pytest.fixture(params=["memory", "server"])
def place(request: pytest.FixtureRequest) -> Iterator[Callable[[], Any]]:
    """Gives a context manager for a World, to be entered in the test's own loop."""
    if request.param == "memory":
        yield in_memory
    else:
        found = request.getfixturevalue("credentials")
        yield lambda: on_a_server(found)


@pytest.fixture
async def api_world(place: Callable[[], Any]) -> AsyncIterator[World]:
    """An API server in memory, then a real one."""
    async with place() as made:
        yield made


async def refused(doing: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(Rejected) as caught:
        await doing
    return caught.value.code, caught.value.reason
