"""The API server in memory is honest: one set of properties, on it and on a real API server (style §2.11)."""

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
from raybus.kube.follow import lines
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
async def world(place: Callable[[], Any]) -> AsyncIterator[World]:
    async with place() as made:
        yield made


async def refused(doing: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(Rejected) as caught:
        await doing
    return caught.value.code, caught.value.reason


# ---------------------------------------------------------------- create, get


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "Pod", "Service", "Job"])
async def test_what_was_created_is_read_back_with_an_identity(world: World, kind: str) -> None:
    made = await world.create(kind, "x", metadata={"labels": {"a": "b"}})
    found = await world.get(kind, "x")
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert found["metadata"]["labels"] == {"a": "b"}
    assert (found["kind"], found["apiVersion"]) == (kind, BY_KIND[kind].api_version)
    assert "creationTimestamp" in found["metadata"]
    if kind != "Service":
        assert found["metadata"]["generation"] == 1


async def test_a_status_is_not_taken_by_create(world: World) -> None:
    made = await world.create("RayCluster", "x", status={"state": "ready"})
    assert "status" not in made


async def test_defaults_that_raybus_reads(world: World) -> None:
    spec = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [{"groupName": "w", "template": TEMPLATE}]}
    group = (await world.create("RayCluster", "x", spec=spec))["spec"]["workerGroupSpecs"][0]
    assert (group["replicas"], group["minReplicas"], group["numOfHosts"]) == (0, 0, 1)
    pod = await world.create("Pod", "x")
    assert (pod["spec"]["restartPolicy"], pod["spec"]["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert pod["status"]["phase"] == "Pending"
    port = (await world.create("Service", "x"))["spec"]["ports"][0]
    assert (port["protocol"], port["targetPort"]) == ("TCP", 80)


async def test_a_taken_name_is_refused(world: World) -> None:
    await world.create("Pod", "x")
    assert await refused(world.create("Pod", "x")) == (409, "AlreadyExists")


@pytest.mark.parametrize(("kind", "name"), [("Pod", "Not_Valid"), ("Service", "a.b"), ("RayCluster", "a..b")])
async def test_a_bad_name_is_invalid(world: World, kind: str, name: str) -> None:
    assert await refused(world.create(kind, name)) == (422, "Invalid")


async def test_a_pod_without_containers_is_invalid(world: World) -> None:
    assert await refused(world.create("Pod", "x", spec={"containers": []})) == (422, "Invalid")


async def test_generated_names(world: World) -> None:
    body = {**BODIES["Pod"], "metadata": {"generateName": "p-"}}
    made = await world.send(write.create("Pod", world.namespace, msgspec.json.encode(body)))
    assert made["metadata"]["name"].startswith("p-") and len(made["metadata"]["name"]) == 7


async def test_a_quota_forbids(world: World) -> None:
    await world.set_quota(0)
    with pytest.raises(Rejected, match="exceeded quota") as caught:
        await world.create("Pod", "x")
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")


async def test_what_is_not_there_is_not_found(world: World) -> None:
    ref = world.ref("RayCluster", "x")
    for doing in (
        request.get(ref),
        write.delete(ref, "u"),
        write.put_status(ref, "u", "1", {}),
        write.merge_patch(ref, "u", "1", {"metadata": {"finalizers": []}}),
        write.json_patch(ref, "u", "1", ()),
    ):
        assert await refused(world.send(doing)) == (404, "NotFound"), doing.method


async def test_an_unknown_resource_is_not_found_and_known_ones_are_listed(world: World) -> None:
    assert (await refused(world.send(Request(method="GET", path="/apis/none.example/v1/things"))))[0] == 404
    assert (await refused(world.send(request.resources("none.example", "v1"))))[0] == 404
    found = await world.send(request.resources("ray.io", "v1"))
    assert {"rayclusters", "rayjobs"} <= {resource["name"] for resource in found["resources"]}


# ---------------------------------------------------------------- delete


@pytest.mark.parametrize("kind", ["RayCluster", "Pod", "Service", "Job", "Role"])
async def test_a_delete_holds_only_for_the_uid(world: World, kind: str) -> None:
    made = await world.create(kind, "x")
    ref, uid = world.ref(kind, "x"), made["metadata"]["uid"]
    assert await refused(world.send(write.delete(ref, "another"))) == (409, "Conflict")
    answer = await world.send(write.delete(ref, uid))
    assert answer["kind"] == (kind if kind in ("Pod", "Service") else "Status")
    assert await refused(world.get(kind, "x")) == (404, "NotFound")
    assert await refused(world.send(write.delete(ref, uid))) == (404, "NotFound")


async def test_an_object_with_finalizers_stays_until_they_are_removed(world: World) -> None:
    made = await world.create("RayCluster", "x", metadata={"finalizers": ["ray.io/a"]})
    ref, uid = world.ref("RayCluster", "x"), made["metadata"]["uid"]
    first = await world.send(write.delete(ref, uid))
    assert first["kind"] == "RayCluster" and first["metadata"]["deletionTimestamp"]
    assert first["metadata"]["generation"] == 2
    again = await world.send(write.delete(ref, uid))
    assert again["metadata"] == first["metadata"]
    version = first["metadata"]["resourceVersion"]
    more = write.merge_patch(ref, uid, version, {"metadata": {"finalizers": ["ray.io/a", "ray.io/b"]}})
    assert await refused(world.send(more)) == (422, "Invalid")
    status = await world.send(write.put_status(ref, uid, version, {"reason": "late"}))
    version = status["metadata"]["resourceVersion"]
    await world.send(write.merge_patch(ref, uid, version, {"metadata": {"finalizers": []}}))
    assert await refused(world.get("RayCluster", "x")) == (404, "NotFound")


async def test_a_pod_on_a_node_ends_gracefully(world: World) -> None:
    made = await world.create("Pod", "x", spec={**CONTAINERS, "nodeName": "none"})
    ref, uid = world.ref("Pod", "x"), made["metadata"]["uid"]
    answer = await world.send(write.delete(ref, uid))
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await world.get("Pod", "x"))["metadata"]["deletionTimestamp"]
    now = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    await world.send(Request(method="DELETE", path=request.path_of(ref), body=msgspec.json.encode(now)))
    assert await refused(world.get("Pod", "x")) == (404, "NotFound")


# ---------------------------------------------------------------- writes to what exists


async def test_a_status_is_replaced_as_a_whole_by_its_version(world: World) -> None:
    made = await world.create("RayCluster", "x")
    ref, meta = world.ref("RayCluster", "x"), made["metadata"]
    uid, version = meta["uid"], meta["resourceVersion"]
    assert await refused(world.send(write.put_status(ref, "another", version, {}))) == (409, "Conflict")
    one = await world.send(write.put_status(ref, uid, version, {"state": "ready", "reason": "r"}))
    assert one["metadata"]["generation"] == 1
    assert int(one["metadata"]["resourceVersion"]) > int(version)
    assert await refused(world.send(write.put_status(ref, uid, version, {}))) == (409, "Conflict")
    version = one["metadata"]["resourceVersion"]
    two = await world.send(write.put_status(ref, uid, version, {"state": "failed"}))
    assert two["status"]["state"] == "failed" and "reason" not in two["status"]


async def test_a_write_that_changes_nothing_keeps_the_version(world: World) -> None:
    made = await world.create("RayCluster", "x")
    ref, uid = world.ref("RayCluster", "x"), made["metadata"]["uid"]
    one = await world.send(write.put_status(ref, uid, made["metadata"]["resourceVersion"], {"state": "ready"}))
    version = one["metadata"]["resourceVersion"]
    two = await world.send(write.put_status(ref, uid, version, one["status"]))
    assert two["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        (({"op": "replace", "path": "/spec/suspend", "value": True},), 0),
        (({"op": "add", "path": "/spec/suspend", "value": True},), 0),
        (({"op": "remove", "path": "/spec/none"},), 422),
        (({"op": "test", "path": "/metadata/name", "value": "y"},), 422),
        (({"op": "test", "path": "/metadata/name", "value": "x"},), 0),
        (({"op": "add", "path": "/spec/workerGroupSpecs/0/scaleStrategy", "value": {"workersToDelete": ["p"]}},), 0),
        (({"op": "add", "path": "/spec/workerGroupSpecs/7/replicas", "value": 1},), 422),
    ],
)
async def test_json_patches(world: World, operations: tuple[Json, ...], expected: int) -> None:
    spec = {**BODIES["RayCluster"]["spec"], "workerGroupSpecs": [{"groupName": "w", "template": TEMPLATE}]}
    meta = (await world.create("RayCluster", "x", spec=spec))["metadata"]
    patch = write.json_patch(world.ref("RayCluster", "x"), meta["uid"], meta["resourceVersion"], operations)
    if expected:
        assert (await refused(world.send(patch)))[0] == expected
    else:
        patched = await world.send(patch)
        changes = operations[0]["op"] != "test"
        assert patched["metadata"]["generation"] == (2 if changes else 1)


async def test_patches_hold_only_for_uid_and_version(world: World) -> None:
    made = await world.create("RayCluster", "x")
    ref, meta = world.ref("RayCluster", "x"), made["metadata"]
    uid, old = meta["uid"], meta["resourceVersion"]
    await world.send(write.put_status(ref, uid, old, {"state": "ready"}))
    operations = ({"op": "add", "path": "/spec/suspend", "value": True},)
    for patch in (
        write.json_patch(ref, uid, old, operations),
        write.json_patch(ref, "another", old, operations),
        write.merge_patch(ref, uid, old, {"metadata": {"finalizers": ["ray.io/a"]}}),
        write.merge_patch(ref, "another", old, {"metadata": {"finalizers": ["ray.io/a"]}}),
    ):
        assert await refused(world.send(patch)) == (409, "Conflict")


async def test_the_main_resource_does_not_take_a_status(world: World) -> None:
    meta = (await world.create("RayCluster", "x"))["metadata"]
    ref = world.ref("RayCluster", "x")
    patch = write.merge_patch(ref, meta["uid"], meta["resourceVersion"], {"status": {"state": "ready"}})
    assert "status" not in await world.send(patch)


async def test_what_cannot_be_changed_is_invalid(world: World) -> None:
    for kind, patch in (
        ("Pod", {"spec": {"restartPolicy": "Never"}}),
        ("Job", {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}),
    ):
        meta = (await world.create(kind, "x"))["metadata"]
        request_ = write.merge_patch(world.ref(kind, "x"), meta["uid"], meta["resourceVersion"], patch)
        assert await refused(world.send(request_)) == (422, "Invalid"), kind


async def test_apply_creates_then_changes_only_what_it_names(world: World) -> None:
    ref = world.ref("Service", "x")
    body: Json = {"metadata": {"labels": {"a": "1"}}, "spec": BODIES["Service"]["spec"]}
    response = await world.sender.send(write.apply(ref, body))
    assert response.status == 201
    made = msgspec.json.decode(response.body)
    again = await world.sender.send(write.apply(ref, body))
    assert again.status == 200
    assert msgspec.json.decode(again.body)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    meta = made["metadata"]
    foreign = {"metadata": {"annotations": {"theirs": "1"}}}
    await world.send(write.merge_patch(ref, meta["uid"], meta["resourceVersion"], foreign))
    changed = await world.send(write.apply(ref, {**body, "metadata": {"labels": {"a": "2"}}}))
    assert changed["metadata"]["labels"] == {"a": "2"}
    assert changed["metadata"]["annotations"] == {"theirs": "1"}
    more: Json = {**body, "spec": {**body["spec"], "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}}
    ports = (await world.send(write.apply(ref, more)))["spec"]["ports"]
    assert sorted((port["port"], port["name"]) for port in ports) == [(80, "a"), (81, "b")]


# ---------------------------------------------------------------- lists and watches


async def labelled(world: World) -> list[Any]:
    labels = [{"a": "1"}, {"a": "2", "b": "x"}, {"b": "y"}, {}]
    return [await world.create("Role", f"r{n}", metadata={"labels": given}) for n, given in enumerate(labels)]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", "0123"),
        ("a", "01"),
        ("!a", "23"),
        ("a=1", "0"),
        ("a!=1", "123"),
        ("a in (1,2)", "01"),
        ("a in (1,2),b", "1"),
        ("a in (1, 2),!b", "0"),
        ("b notin (x)", "023"),
    ],
)
async def test_selectors(world: World, selector: str, expected: str) -> None:
    await labelled(world)
    path = request.path(BY_KIND["Role"], world.namespace)
    found = await world.send(Request(method="GET", path=path, query={"labelSelector": selector}))
    assert "".join(item["metadata"]["name"][1] for item in found["items"]) == expected


async def test_pages_show_one_instant(world: World) -> None:
    made = await labelled(world)
    path = request.path(BY_KIND["Role"], world.namespace)
    first = await world.send(Request(method="GET", path=path, query={"limit": "3"}))
    await world.send(write.delete(world.ref("Role", "r3"), made[3]["metadata"]["uid"]))
    query = {"limit": "3", "continue": first["metadata"]["continue"]}
    second = await world.send(Request(method="GET", path=path, query=query))
    assert [item["metadata"]["name"] for item in first["items"]] == ["r0", "r1", "r2"]
    assert [item["metadata"]["name"] for item in second["items"]] == ["r3"]
    assert "kind" not in second["items"][0] and not second["metadata"].get("continue")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


async def events(world: World, count: int, selector: str = "", **query: str) -> list[tuple[str, Any]]:
    """The first `count` events of a watch of Roles; `resourceVersion` or `sendInitialEvents` in `query`."""
    given = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "20", **query}
    if selector:
        given["labelSelector"] = selector
    path = request.path(BY_KIND["Role"], world.namespace)
    found: list[tuple[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        async for line in lines(world.sender.stream(Request(method="GET", path=path, query=given, timeout=30))):
            event = msgspec.json.decode(line)
            found.append((event["type"], event["object"]))
            if len(found) == count:
                break
    return found


STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


async def test_a_streamed_fill_ends_with_a_bookmark_and_goes_on(world: World) -> None:
    made = await labelled(world)
    watching = asyncio.create_task(events(world, 7, "a", **STREAMED))
    first = await events(world, 3, "a", **STREAMED)
    kinds = [kind for kind, _ in first]
    assert sorted(kinds) == ["ADDED", "ADDED", "BOOKMARK"] and kinds[-1] == "BOOKMARK"
    assert first[-1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    await asyncio.sleep(0.2)

    async def label(number: int, value: str | None) -> None:
        name = f"r{number}"
        meta = (await world.get("Role", name))["metadata"]
        patch = {"metadata": {"labels": {"a": value}}}
        await world.send(write.merge_patch(world.ref("Role", name), meta["uid"], meta["resourceVersion"], patch))

    await label(2, "3")
    await label(2, "4")
    await label(2, None)
    await world.send(write.delete(world.ref("Role", "r0"), made[0]["metadata"]["uid"]))
    seen = [(kind, obj["metadata"].get("name", "")) for kind, obj in (await watching)[3:]]
    assert seen == [("ADDED", "r2"), ("MODIFIED", "r2"), ("DELETED", "r2"), ("DELETED", "r0")]


async def test_a_watch_resumes_at_a_version(world: World) -> None:
    made = await labelled(world)
    await world.send(write.delete(world.ref("Role", "r3"), made[3]["metadata"]["uid"]))
    found = await events(world, 3, resourceVersion=made[1]["metadata"]["resourceVersion"])
    assert [(kind, obj["metadata"]["name"]) for kind, obj in found] == [
        ("ADDED", "r2"),
        ("ADDED", "r3"),
        ("DELETED", "r3"),
    ]
    assert int(found[2][1]["metadata"]["resourceVersion"]) > int(made[3]["metadata"]["resourceVersion"])


async def test_deletion_has_a_version_of_its_own(world: World) -> None:
    made = (await world.create("RayCluster", "x", metadata={"finalizers": ["ray.io/a"]}))["metadata"]
    ref = world.ref("RayCluster", "x")
    marked = (await world.send(write.delete(ref, made["uid"])))["metadata"]
    patch: Json = {"metadata": {"finalizers": []}}
    last = await world.send(write.merge_patch(ref, made["uid"], marked["resourceVersion"], patch))
    path = request.path(BY_KIND["RayCluster"], world.namespace)
    query = {"watch": "1", "timeoutSeconds": "20", "resourceVersion": marked["resourceVersion"]}
    async with asyncio.timeout(PATIENCE):
        async for line in lines(world.sender.stream(Request(method="GET", path=path, query=query))):
            event = msgspec.json.decode(line)
            assert event["type"] == "DELETED"
            assert int(event["object"]["metadata"]["resourceVersion"]) > int(marked["resourceVersion"])
            break
    assert "deletionTimestamp" in last["metadata"]


# ---------------------------------------------------------------- garbage collection


def owned(owner: Any) -> Json:
    meta = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {"ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}]}


async def test_children_go_after_their_owner(world: World) -> None:
    owner = await world.create("RayCluster", "x")
    await world.create("Role", "child", metadata=owned(owner))
    await world.send(write.delete(world.ref("RayCluster", "x"), owner["metadata"]["uid"]))
    await world.gone("Role", "child")


async def test_a_child_of_an_owner_that_is_gone_goes_too(world: World) -> None:
    owner = await world.create("RayCluster", "x")
    await world.send(write.delete(world.ref("RayCluster", "x"), owner["metadata"]["uid"]))
    await world.create("Role", "child", metadata=owned(owner))
    await world.gone("Role", "child")


async def test_a_foreground_deletion_waits_for_the_children(world: World) -> None:
    owner = await world.create("RayCluster", "x")
    await world.create("RayCluster", "child", metadata={**owned(owner), "finalizers": ["ray.io/a"]})
    answer = await world.send(write.delete(world.ref("RayCluster", "x"), owner["metadata"]["uid"], "Foreground"))
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    end = time.monotonic() + PATIENCE
    while "deletionTimestamp" not in (child := (await world.get("RayCluster", "child"))["metadata"]):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    assert (await world.get("RayCluster", "x"))["metadata"]["deletionTimestamp"]
    patch: Json = {"metadata": {"finalizers": []}}
    ref = world.ref("RayCluster", "child")
    await world.send(write.merge_patch(ref, child["uid"], child["resourceVersion"], patch))
    await world.gone("RayCluster", "child")
    await world.gone("RayCluster", "x")
