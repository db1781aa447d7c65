"""The applier as a process, on a real API server and a real nats-server: what the fakes assume is so."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from stacks import uid_of

from raybus.api import subjects
from raybus.api.decision import Create, CreatePods, Delete, Note, Patch, PodSlot, Ref
from raybus.api.kinds import BY_KIND, ROOTS
from raybus.api.messages import H_EPOCH, H_GONE, H_SCHEMA, H_VIEW_SEQ, SCHEMA, Epoch, IntentMessage, Result, Root
from raybus.api.names import partition_of
from raybus.api.reasons import Reason
from raybus.bus import NatsBus, leases
from raybus.bus.port import Message
from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl
from raybus.kube import request, write
from raybus.kube.client import Client, connect
from raybus.kube.config import Access
from raybus.kube.port import Rejected, Request
from raybus.testkit.nats_server import NatsServer, free_port

WITHIN = 30.0
"""Seconds: other tests use the same cores."""
CLUSTER_SPEC = {
    "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray", "image": "ray"}]}}}
}
OWNED = "c"
"""Name of the RayCluster that the decisions are about."""


class World:
    """One RayCluster of one namespace, and the place of its controller on the bus."""

    def __init__(self, bus: NatsBus, eyes: NatsBus, client: Client, namespace: str) -> None:
        self.bus, self.eyes, self.client, self.namespace = bus, eyes, client, namespace
        self.epoch = Epoch(0, 0)

    async def begin(self) -> None:
        """Make the root and take its partition's lease."""
        meta = {"name": OWNED, "namespace": self.namespace}
        await self.make("RayCluster", {"metadata": meta, "spec": CLUSTER_SPEC})
        key = subjects.lease_key("cluster-ctl", partition_of(self.namespace, OWNED))
        revision = await self.bus.put_key(key, leases.encode("test"), revision=(await self.bus.get_key(key)).revision)
        self.epoch = Epoch(await self.bus.bucket_created(), revision)

    async def make(self, kind: str, body: dict[str, Any]) -> None:
        whole = {"apiVersion": BY_KIND[kind].api_version, "kind": kind, **body}
        await self.client.send(write.create(kind, self.namespace, msgspec.json.encode(whole)))

    async def get(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            answer = await self.client.send(request.get(Ref(kind, self.namespace, name)))
        except Rejected as error:
            assert error.code == 404, error
            return None
        found: dict[str, Any] = msgspec.json.decode(answer.body)
        return found

    async def root(self) -> Root:
        found = await self.get(ROOTS["cluster"], OWNED)
        assert found is not None
        meta = found["metadata"]
        version = meta["resourceVersion"]
        return Root(kind="RayCluster", namespace=self.namespace, name=OWNED, uid=meta["uid"], resource_version=version)

    async def decide(self, **parts: Any) -> Root:
        """Publish a Decision on the present root and view; returns the root."""
        root = parts.pop("root", None) or await self.root()
        seq = parts.pop("view_seq", 1 << 40)
        headers = {H_EPOCH: str(self.epoch), H_VIEW_SEQ: str(seq), H_SCHEMA: SCHEMA}
        body = msgspec.json.encode(IntentMessage(root=root, **parts))
        await self.bus.put("INTENT", subjects.intent("cluster", self.namespace, OWNED), body, headers)
        return root

    async def seen(self, kind: str, name: str) -> Message | None:
        """What the cluster's view holds."""
        return await self.eyes.last("VIEW", subjects.view("cluster", self.namespace, OWNED, kind, name))

    async def result(self) -> Result:
        message = await self.seen(subjects.RESULT, "applier")
        return msgspec.json.decode(message.data, type=Result) if message else Result(root_uid="")

    def pod(self, name: str, owner: Root, **more: Any) -> dict[str, Any]:
        reference = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": owner.name, "uid": owner.uid}
        meta: dict[str, Any] = {"name": name, "namespace": self.namespace, "labels": {"ray.io/cluster": owner.name}}
        meta["ownerReferences"] = [{**reference, "controller": True}]
        spec = {"containers": [{"name": "ray", "image": "ray"}]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, **more}, "spec": spec}

    def create(self, name: str, owner: Root, **more: Any) -> Create:
        return Create(ref=Ref("Pod", self.namespace, name), body=self.pod(name, owner, **more))


async def until(what: str, condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + WITHIN
    while not await condition():
        assert time.monotonic() < deadline, f"not within {WITHIN} s: {what}"
        await asyncio.sleep(0.02)


@pytest.fixture
def cluster_uid(kubectl: Kubectl) -> str:
    """The streams are about the cluster that a service of these tests talks to."""
    return uid_of(kubectl)


@pytest_asyncio.fixture
async def world(
    bare_cluster: Cluster,
    nats_server: NatsServer,
    bus_of: Callable[[str], Awaitable[NatsBus]],
    namespace: str,
    tmp_path: Path,
) -> AsyncIterator[World]:
    """An applier process at work."""
    eyes = await bus_of("watcher")
    arguments = [
        f"--kubeconfig={bare_cluster.kubeconfig_for('applier')}",
        f"--nats-url={nats_server.url}",
        f"--metrics-addr=127.0.0.1:{free_port()}",
    ]
    environment = os.environ | {"RAYBUS_NATS_PASSWORD": "applier"}
    log = tmp_path / "applier.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "raybus.applier", *arguments]
        child = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    client = await connect(Access(kubeconfig=str(bare_cluster.kubeconfig_for("admin"))), "test")
    async with client:
        made = World(await bus_of("cluster-ctl"), eyes, client, namespace)
        await made.begin()
        yield made
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0, log.read_text()[-3000:]
    assert "bug while" not in log.read_text()


async def test_a_decision_from_status_to_events(world: World) -> None:
    note = Note(type="Normal", reason=Reason.CREATED_WORKER_POD, action="Create", text="Created worker Pod {names}")
    owner = await world.root()
    template = world.pod("", owner, generateName="c-w-worker-")
    del template["metadata"]["name"]
    slots = (PodSlot(name="c-w-worker-aaaaa"), PodSlot(name="c-w-worker-bbbbb", labels={"slot": "1"}))
    pods = CreatePods(namespace=world.namespace, template=template, slots=slots, done=note)
    status = {"state": "ready", "desiredCPU": "1"}
    await world.decide(finalizers_first=("ray.io/x",), status=status, intents=(pods,))

    async def there() -> bool:
        return all([await world.seen("pod", slot.name) for slot in slots])

    await until("both pods in the view", there)
    root = await world.get("RayCluster", OWNED)
    assert root is not None and root["status"]["state"] == "ready" and root["metadata"]["finalizers"] == ["ray.io/x"]
    pod, echoed = await world.get("Pod", slots[1].name), await world.seen("pod", slots[1].name)
    assert pod is not None and pod["metadata"]["labels"]["slot"] == "1"
    assert echoed is not None and msgspec.json.decode(echoed.data)["metadata"]["uid"] == pod["metadata"]["uid"]
    assert b"managedFields" not in echoed.data
    path = request.path(BY_KIND["Event"], world.namespace)

    async def told() -> bool:
        answer = await world.client.send(Request(method="GET", path=path))
        events = msgspec.json.decode(answer.body)["items"]
        return [e["note"] for e in events] == ["Created worker Pod c-w-worker-aaaaa, c-w-worker-bbbbb"]

    await until("one event for both pods", told)
    await world.decide(finalizers_last=())

    async def released() -> bool:
        found = await world.get("RayCluster", OWNED)
        return found is not None and "finalizers" not in found["metadata"]

    await until("the finalizer is gone", released)


async def test_fences_of_the_real_server(world: World) -> None:
    old = await world.decide(status={"state": "ready"})

    async def stored() -> bool:
        return (await world.root()).resource_version != old.resource_version

    await until("the status is stored", stored)
    await world.decide(root=old, status={"state": "suspended"}, intents=(world.create("p", old),))

    async def dropped() -> bool:
        drop = (await world.result()).drop
        return drop is not None and drop.cause == "conflict"

    await until("the second status conflicts", dropped)
    assert await world.get("Pod", "p") is None
    ref = Ref("RayCluster", world.namespace, OWNED)
    suspend = ({"op": "add", "path": "/spec/suspend", "value": True},)
    stale = Patch(ref=ref, uid=old.uid, resource_version=old.resource_version, operations=suspend)
    foreign = Delete(ref=ref, uid="another")
    await world.decide(intents=(stale, foreign, world.create("q", old)))

    async def done() -> bool:
        return await world.seen("pod", "q") is not None

    await until("the third decision is carried out", done)
    root = await world.get("RayCluster", OWNED)
    assert root is not None and "suspend" not in root["spec"] and (await world.result()).refusals == ()
    now = await world.root()
    fresh = Patch(ref=ref, uid=now.uid, resource_version=now.resource_version, operations=suspend)
    found = await world.get("Pod", "q")
    assert found is not None
    gone = Delete(ref=Ref("Pod", world.namespace, "q"), uid=found["metadata"]["uid"])
    await world.decide(intents=(fresh, gone))

    async def buried() -> bool:
        message = await world.seen("pod", "q")
        return message is not None and H_GONE in message.headers

    await until("the deleted pod leaves a tombstone", buried)
    root = await world.get("RayCluster", OWNED)
    assert root is not None and root["spec"]["suspend"] is True


async def fill_quota(world: World) -> None:
    """A quota of one pod, all of it used; no controller is there to count."""
    quota: dict[str, Any] = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    quota["spec"] = {"hard": {"pods": "1"}}
    path = f"/api/v1/namespaces/{world.namespace}/resourcequotas"
    await world.client.send(Request(method="POST", path=path, body=msgspec.json.encode(quota)))
    used = {**quota, "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}
    await world.client.send(Request(method="PUT", path=f"{path}/q/status", body=msgspec.json.encode(used)))


async def test_what_the_server_refuses_is_a_refusal_and_stops_nothing_else(world: World) -> None:
    owner = await world.root()
    await world.make("Pod", world.pod("taken", owner, ownerReferences=[]))
    await world.decide(intents=(world.create("taken", owner),))

    async def refused() -> bool:
        return len((await world.result()).refusals) == refusals

    refusals = 1
    await until("the taken name is refused", refused)
    assert (await world.result()).refusals[0].reason == "name-taken"
    await fill_quota(world)
    reference = world.pod("", owner)["metadata"]["ownerReferences"]

    def cluster(name: str, size: int) -> Create:
        spec = {"headGroupSpec": {**CLUSTER_SPEC["headGroupSpec"], "rayStartParams": {"x": "x" * size}}}
        meta = {"name": name, "namespace": world.namespace, "ownerReferences": reference}
        whole = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": meta, "spec": spec}
        return Create(ref=Ref("RayCluster", world.namespace, name), body=whole)

    intents = (
        world.create("over", owner),
        cluster("large", 1_400_000),
        cluster("too-large", 1_600_000),
    )
    await world.decide(intents=intents)

    refusals = 3
    await until("three refusals", refused)
    found = {refusal.ref.name: refusal for refusal in (await world.result()).refusals}
    assert found["over"].code == 403 and "exceeded quota" in found["over"].message
    assert found["too-large"].code == 413
    message = await world.eyes.last("VIEW", subjects.view("cluster", world.namespace, "large", "raycluster", "large"))
    assert message is not None and len(message.data) > 1_400_000
