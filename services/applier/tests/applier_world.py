"""One applier on an API server and a bus in memory, for tests of what it does with Decisions."""

import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec

from raybus.api import subjects
from raybus.api.decision import Create, CreatePods, Intent, Note, PodSlot, Ref
from raybus.api.messages import (
    H_EPOCH,
    H_SCHEMA,
    H_VIEW_SEQ,
    SCHEMA,
    Epoch,
    IntentMessage,
    Result,
    Root,
    TimelineEntry,
)
from raybus.api.names import partition_of
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.applier.aftermath import Teller
from raybus.applier.budget import Budget
from raybus.applier.calls import Calls
from raybus.applier.carry import Carrier
from raybus.applier.job import read_job
from raybus.applier.memory import Memory
from raybus.applier.queue import Queue
from raybus.bus.port import Message
from raybus.kube.port import KubeError, Request, Response
from raybus.testkit.fake_api import FakeApi
from raybus.testkit.fake_bus import BusServer

NS, NAME = "ns", "c"
PARTITION = partition_of(NS, NAME)
INTENT = subjects.intent("cluster", NS, NAME)
OWNER = {"kind": "RayCluster", "name": NAME, "uid": "root-uid", "controller": True}


class Api:
    """The API server in memory, with a log of requests and a way to refuse some of them."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self.server = FakeApi(now, random.Random(1))
        self._way = self.server.connect("applier")
        self.log: list[str] = []
        self.fail: Callable[[Request], KubeError | None] = lambda request: None

    async def send(self, request: Request) -> Response:
        self.log.append(f"{request.method} {request.path.split('/namespaces/ns/')[-1]}")
        error = self.fail(request)
        if error is not None:
            raise error
        return await self._way.send(request)

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        raise AssertionError("the applier never watches")

    def store(self, kind: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Put an object there as somebody else would."""
        uid = self.server.store.new_uid()
        return self.server.store.put(kind, (NS, name), {**body, "metadata": {"uid": uid, **body["metadata"]}})

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        return self.server.store.get(kind, (NS, name))

    def pod(self, name: str) -> dict[str, Any]:
        found = self.get("Pod", name)
        assert found is not None, f"no pod {name}"
        return found


class Lease:
    def __init__(self) -> None:
        self.mine, self.is_fresh = True, True

    def owns(self, partition: int) -> bool:
        return self.mine

    def fresh(self) -> bool:
        return self.is_fresh


class Epochs:
    def __init__(self) -> None:
        self.now = Epoch(1, 1)

    async def judge(self, controller: str, partition: int, epoch: Epoch) -> Literal["current", "old", "unknown"]:
        return "current" if epoch == self.now else "old" if epoch < self.now else "unknown"


class World:
    """One applier's parts around a bus and an API server that holds one RayCluster."""

    def __init__(self) -> None:
        self.clock = 1000.0
        self.server = BusServer(self.now)
        self.bus = self.server.connect()
        self.api, self.lease, self.epochs = Api(self.now), Lease(), Epochs()
        calls = Calls(self.api, Budget(16), self.lease)
        self.carrier = Carrier(self.bus, calls, self.epochs, self.now)
        self.queue = Queue(self.carrier, Teller(calls, self.carrier.record, "applier-1", self.now), 100)
        self.memory = Memory("")
        self.api.store("RayCluster", NAME, ROOT)

    def now(self) -> Instant:
        return Instant(self.clock)

    def root(self) -> Root:
        found = self.api.get("RayCluster", NAME)
        assert found is not None
        version = found["metadata"]["resourceVersion"]
        return Root(kind="RayCluster", namespace=NS, name=NAME, uid="root-uid", resource_version=version)

    async def decide(self, view_seq: int = 1000, epoch: str = "1:1", **parts: Any) -> None:
        """Publish a Decision and wait until it is dealt with."""
        self.memory.life = await self.bus.stream_created("VIEW")
        body = msgspec.json.encode(IntentMessage(**{"root": self.root(), **parts}))
        headers = {H_EPOCH: epoch, H_VIEW_SEQ: str(view_seq), H_SCHEMA: SCHEMA}
        await self.bus.put("INTENT", INTENT, body, headers)
        async for work in self.bus.work("intent.>", "d"):
            await self.queue.offer(read_job(work), self.memory)
            await self.queue.drain()
            return

    def in_view(self, kind: str, name: str) -> Message | None:
        return self.server.streams["VIEW"].last(subjects.view("cluster", NS, NAME, kind, name))

    def result(self) -> Result:
        message = self.in_view("result", "applier")
        assert message is not None
        return msgspec.json.decode(message.data, type=Result)

    def left(self) -> int:
        """Decisions still on the bus."""
        return len(self.server.streams["INTENT"].all(">"))

    def events(self) -> list[dict[str, Any]]:
        return self.api.server.store.all("Event")

    def timeline(self) -> list[TimelineEntry]:
        stored = self.server.streams["TIMELINE"].all(">")
        return [msgspec.json.decode(message.data, type=TimelineEntry) for message in stored]


META = {"name": NAME, "namespace": NS, "uid": "root-uid"}
ROOT = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": META}


def pod_body(name: str, **metadata: Any) -> dict[str, Any]:
    head = {"name": name, "namespace": NS, "labels": {"a": "b"}, "ownerReferences": [OWNER], **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": {"containers": [{"name": "ray"}]}}


def create(name: str = "p", **notes: Note) -> Create:
    return Create(ref=Ref("Pod", NS, name), body=pod_body(name), **notes)


def note(reason: Reason, text: str) -> Note:
    return Note(type="Normal", reason=reason, action="Create", text=text)


def pods(*names: str, **notes: Note) -> CreatePods:
    template = pod_body("x", generateName="c-w-worker-")
    del template["metadata"]["name"]
    slots = tuple(PodSlot(name=name, labels={"slot": name}) for name in names)
    return CreatePods(namespace=NS, template=template, slots=slots, **notes)


def refusing(method: str, error: KubeError, only: str = "") -> Callable[[Request], KubeError | None]:
    return lambda r: error if r.method == method and only in r.path + r.body.decode() else None


async def next_job(world: World, view_seq: int, intents: tuple[Intent, ...]) -> Any:
    body = msgspec.json.encode(IntentMessage(root=world.root(), intents=intents))
    headers = {H_EPOCH: "1:1", H_VIEW_SEQ: str(view_seq), H_SCHEMA: SCHEMA}
    await world.bus.put("INTENT", INTENT, body, headers)
    async for work in world.bus.work("intent.>", "d"):
        return read_job(work), world.memory
