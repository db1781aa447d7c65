"""Decisions carried out against a bus in memory and a small API server: order, fences, echo, refusals."""

import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec
import pytest

from raybus.api import subjects
from raybus.api.decision import Create, CreatePods, Delete, Intent, Note, Patch, PodSlot, Ref
from raybus.api.messages import (
    H_EPOCH,
    H_GONE,
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
from raybus.kube.port import KubeError, Rejected, Request, Response, Transient
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
        raise NotImplementedError

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


@pytest.fixture
def world() -> World:
    return World()


async def test_finalizers_then_status_then_children_then_events(world: World) -> None:
    await world.decide(
        finalizers_first=("ray.io/x",),
        status={"state": "new"},
        intents=(create(done=note(Reason.CREATED_HEAD_POD, "Created head Pod {names}")),),
        notes=(note(Reason.INVALID_RAY_CLUSTER_SPEC, "bad"),),
    )
    assert world.api.log[:3] == [
        "PATCH rayclusters/c",
        "PUT rayclusters/c/status",
        "POST pods",
    ]
    assert [entry.split()[0] for entry in world.api.log[3:]] == ["POST", "POST"]
    assert sorted(event["note"] for event in world.events()) == ["Created head Pod p", "bad"]
    assert world.left() == 0
    assert world.timeline()[0].did == ("add finalizer", "write status", "create Pod p")


async def test_the_view_knows_own_writes_at_once_without_managed_fields(world: World) -> None:
    await world.decide(status={"state": "new"}, intents=(create(),))
    root, pod = world.in_view("raycluster", NAME), world.in_view("pod", "p")
    assert root is not None and pod is not None
    assert msgspec.json.decode(root.data)["status"] == {"state": "new"}
    assert pod.headers["K8s-RV"] == world.api.pod("p")["metadata"]["resourceVersion"]
    assert pod.headers[H_SCHEMA] == SCHEMA and float(pod.headers["Observed-At"]) == world.clock
    assert b"managedFields" not in root.data + pod.data


async def test_a_decision_made_before_our_last_effect_is_dropped_silently(world: World) -> None:
    await world.decide(view_seq=0, intents=(create("p"),))
    await world.decide(view_seq=0, intents=(create("q"),))
    assert world.api.get("Pod", "q") is None
    assert world.left() == 0 and world.in_view("result", "applier") is None
    await world.decide(view_seq=1, intents=(create("q"),))
    assert world.api.get("Pod", "q")


async def test_a_new_view_stream_begins_with_small_numbers_again(world: World) -> None:
    await world.decide(view_seq=0, intents=(create("p"),))
    await world.decide(view_seq=1, intents=(create("q"),))
    world.server.wipe()
    await world.carrier.carry(*await next_job(world, view_seq=0, intents=(create("r"),)))
    assert world.api.get("Pod", "r")


async def next_job(world: World, view_seq: int, intents: tuple[Intent, ...]) -> Any:
    body = msgspec.json.encode(IntentMessage(root=world.root(), intents=intents))
    headers = {H_EPOCH: "1:1", H_VIEW_SEQ: str(view_seq), H_SCHEMA: SCHEMA}
    await world.bus.put("INTENT", INTENT, body, headers)
    async for work in world.bus.work("intent.>", "d"):
        return read_job(work), world.memory


@pytest.mark.parametrize("epoch", ["1:1", "2:0", "1:3"])
async def test_a_decision_of_another_epoch_is_dropped_and_its_owner_told(world: World, epoch: str) -> None:
    world.epochs.now = Epoch(1, 2)
    await world.decide(epoch=epoch, intents=(create(),))
    assert world.api.log == [] and world.left() == 0
    drop = world.result().drop
    assert drop is not None and drop.cause == "epoch"


async def test_a_decision_whose_controller_loses_the_partition_meanwhile_is_not_carried_out_further(
    world: World,
) -> None:
    def lose(request: Request) -> None:
        world.epochs.now = Epoch(1, 2)

    world.api.fail = lose
    await world.decide(status={"state": "new"}, intents=(create(),))
    assert [entry for entry in world.api.log if "pods" in entry] == [] and world.left() == 1


async def test_a_status_conflict_drops_the_rest_and_shows_the_owner_the_present_root(world: World) -> None:
    old = world.root()
    world.api.store("RayCluster", NAME, {**ROOT, "spec": {"suspend": True}})
    await world.decide(root=old, status={"state": "new"}, intents=(create(),), notes=(note(Reason.UNKNOWN, "n"),))
    assert world.events() == []
    drop, root = world.result().drop, world.in_view("raycluster", NAME)
    assert drop is not None and drop.cause == "conflict"
    assert root is not None and root.headers["K8s-RV"] == world.root().resource_version
    assert world.api.get("Pod", "p") is None


async def test_nothing_is_sent_without_the_lease_or_a_fresh_heart_beat(world: World) -> None:
    world.lease.is_fresh = False
    await world.decide(status={"state": "new"}, intents=(create(),))
    world.lease.mine, world.lease.is_fresh = False, True
    await world.decide(status={"state": "new"}, intents=(create(),))
    assert world.api.log == [] and world.left() == 1


async def test_pods_of_a_template_differ_in_name_and_labels(world: World) -> None:
    await world.decide(intents=(pods("a", "b", done=note(Reason.CREATED_WORKER_POD, "Created worker Pod {names}")),))
    made = world.api.pod("b")["metadata"]
    assert made["labels"] == {"a": "b", "slot": "b"} and made["generateName"] == "c-w-worker-"
    assert [event["note"] for event in world.events()] == ["Created worker Pod a, b"]


async def test_an_object_that_is_ours_already_counts_as_done_and_makes_no_event(world: World) -> None:
    world.api.store("Pod", "p", pod_body("p"))
    await world.decide(intents=(create(done=note(Reason.CREATED_HEAD_POD, "made")),))
    assert world.in_view("pod", "p") is not None
    assert world.events() == [] and world.in_view("result", "applier") is None


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"ownerReferences": []}, "belongs to nobody"),
        ({"ownerReferences": [{**OWNER, "uid": "other", "name": "d"}]}, "belongs to RayCluster d"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "still being deleted"),
        ({"labels": {"a": "c"}}, "other labels (a)"),
    ],
)
async def test_a_foreign_object_of_that_name_is_a_refusal(world: World, metadata: dict[str, Any], words: str) -> None:
    world.api.store("Pod", "p", pod_body("p", **metadata))
    await world.decide(intents=(create(failed=note(Reason.FAILED_TO_CREATE_HEAD_POD, "Failed to create {names}")),))
    (refusal,) = world.result().refusals
    assert refusal.reason == "name-taken" and words in refusal.message
    (event,) = world.events()
    assert event["note"].startswith("Failed to create p: ") and words in event["note"]


async def test_a_forbidden_create_is_one_refusal_with_growing_rest_and_does_not_stop_the_others(world: World) -> None:
    world.api.fail = refusing("POST", Rejected(403, "Forbidden", "POST /pods: exceeded quota: q"), only='"p"')
    await world.decide(intents=(create("p"), create("q")))
    await world.decide(intents=(create("p"), create("q")))
    (refusal,) = world.result().refusals
    assert (refusal.code, refusal.retry_at, refusal.attempts) == (403, 1005.0, 1)
    assert world.api.get("Pod", "q")
    assert world.timeline()[-1].because[0].reason is Reason.QUOTA_REFUSED
    world.clock += 6
    await world.decide(intents=(create("p"),))
    assert (world.result().refusals[0].attempts, world.result().refusals[0].retry_at) == (2, 1016.0)
    world.clock += 11
    world.api.fail = lambda request: None
    await world.decide(intents=(create("p"),))
    assert world.result().refusals == ()


async def test_a_refused_status_stops_what_follows_and_rests(world: World) -> None:
    world.api.fail = refusing("PUT", Rejected(422, "Invalid", "PUT: no such field"))
    await world.decide(status={"state": "odd"}, intents=(create(),))
    await world.decide(status={"state": "odd"}, intents=(create(),))
    assert [entry for entry in world.api.log if "pods" in entry] == []
    assert len([entry for entry in world.api.log if entry.startswith("PUT")]) == 1
    (refusal,) = world.result().refusals
    assert (refusal.verb, refusal.ref) == ("write status", Ref("RayCluster", NS, NAME))


async def test_a_deleted_child_leaves_a_tombstone_and_one_that_is_gone_counts_as_done(world: World) -> None:
    await world.decide(view_seq=9, intents=(create(),))
    uid = world.api.pod("p")["metadata"]["uid"]
    gone = Delete(ref=Ref("Pod", NS, "p"), uid=uid, done=note(Reason.DELETED_HEAD_POD, "Deleted {names}"))
    await world.decide(view_seq=9, intents=(gone,))
    message = world.in_view("pod", "p")
    assert message is not None and H_GONE in message.headers and message.data == b""
    await world.decide(view_seq=10, intents=(gone,))
    assert [event["note"] for event in world.events()] == ["Deleted p"]
    assert world.in_view("result", "applier") is None


async def test_another_object_of_that_name_is_never_deleted(world: World) -> None:
    world.api.store("Pod", "p", pod_body("p"))
    await world.decide(intents=(Delete(ref=Ref("Pod", NS, "p"), uid="an-older-one"),))
    assert world.api.get("Pod", "p") and world.in_view("result", "applier") is None


async def test_a_conflict_about_an_object_that_lives_on_leaves_no_tombstone(world: World) -> None:
    await world.decide(view_seq=9, intents=(create(),))
    world.api.fail = refusing("DELETE", Rejected(409, "Conflict", "DELETE: the object has been modified"))
    gone = Delete(ref=Ref("Pod", NS, "p"), uid=world.api.pod("p")["metadata"]["uid"])
    await world.decide(view_seq=9, intents=(gone,))
    message = world.in_view("pod", "p")
    assert message is not None and H_GONE not in message.headers
    assert world.left() == 1


async def test_a_create_without_an_answer_is_not_sent_again_by_itself(world: World) -> None:
    world.api.fail = refusing("POST", Transient("POST: no answer within 10 s", sent=True))
    await world.decide(intents=(create(),))
    assert [entry for entry in world.api.log if entry == "POST pods"] == ["POST pods"]
    assert world.left() == 1


async def test_a_decision_that_failed_is_not_tried_again_once_its_root_is_gone(world: World) -> None:
    world.api.fail = refusing("POST", Transient("POST: no answer within 10 s", sent=True))
    await world.decide(intents=(create(),))
    world.api.fail = lambda request: None
    root = subjects.view("cluster", NS, NAME, "raycluster", NAME)
    await world.bus.put("VIEW", root, b"", {H_GONE: "1", "K8s-UID": "root-uid"})
    await world.decide(intents=(create(),))
    assert world.api.get("Pod", "p") is None and world.left() == 0


async def test_a_change_of_an_object_that_moved_on_is_left_to_the_next_decision(world: World) -> None:
    world.api.store("Pod", "p", pod_body("p"))
    patch = Patch(ref=Ref("Pod", NS, "p"), uid="u", resource_version="1", operations=())
    await world.decide(intents=(patch,))
    assert world.left() == 0 and world.in_view("result", "applier") is None


async def test_the_last_finalizer_goes_last_and_takes_the_root_out_of_the_view(world: World) -> None:
    dying = {**META, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["ray.io/x"]}
    world.api.store("RayCluster", NAME, {**ROOT, "metadata": dying})
    await world.decide(view_seq=9, status={"state": "going"}, finalizers_last=())
    message = world.in_view("raycluster", NAME)
    assert message is not None and H_GONE in message.headers


async def test_a_finalizer_stays_while_a_child_is_refused(world: World) -> None:
    world.api.store("Pod", "p", pod_body("p"))
    world.api.fail = refusing("DELETE", Rejected(403, "Forbidden", "DELETE: no"))
    uid = world.api.pod("p")["metadata"]["uid"]
    for _ in ("refused", "rests"):
        await world.decide(intents=(Delete(ref=Ref("Pod", NS, "p"), uid=uid),), finalizers_last=())
    assert not any(entry.startswith("PATCH") for entry in world.api.log)


async def test_an_object_of_1_4_mb_passes_and_one_that_etcd_refuses_is_a_refusal(world: World) -> None:
    body = pod_body("p", annotations={"a": "x" * 1_400_000})
    await world.decide(intents=(Create(ref=Ref("Pod", NS, "p"), body=body),))
    message = world.in_view("pod", "p")
    assert message is not None and len(message.data) > 1_400_000
    world.api.fail = refusing("POST", Transient("POST: etcdserver: request is too large", status=500))
    await world.decide(intents=(create("q"),))
    assert world.result().refusals[0].code == 413


async def test_the_same_decision_delivered_again_doubles_nothing(world: World) -> None:
    made = note(Reason.CREATED_WORKER_POD, "Created {names}")
    parts: dict[str, Any] = {"intents": (pods("a", "b", done=made),), "notes": (note(Reason.UNKNOWN, "n"),)}
    await world.decide(**parts)
    world.memory = Memory("")
    await world.decide(**parts)
    assert sorted(event["note"] for event in world.events()) == ["Created a, b", "n"]
