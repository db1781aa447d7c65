"""`raybus.kube` against the real API server."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import msgspec
import pytest
import pytest_asyncio

from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND
from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl
from raybus.kube.client import Client, connect
from raybus.kube.config import Access
from raybus.kube.follow import follow
from raybus.kube.objects import parse_object
from raybus.kube.port import Rejected, Request
from raybus.kube.request import get, path
from raybus.kube.watch import PAGE, Ended, Event, Gone, Next, Page, Phase, Put, Synced, Target, Unserved, begin, step
from raybus.kube.write import apply, create, delete, json_patch, merge_patch, put_status

SERVICES = BY_KIND["Service"]


@pytest_asyncio.fixture
async def client(bare_cluster: Cluster) -> AsyncIterator[Client]:
    async with await connect(Access(kubeconfig=str(bare_cluster.kubeconfig)), "raybus-test") as client:
        yield client


def service(namespace: str, name: str, **labels: str) -> bytes:
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return msgspec.json.encode({"metadata": meta, "spec": {"ports": [{"port": 80}]}})


def job(namespace: str, name: str, **spec: object) -> bytes:
    meta = {"name": name, "namespace": namespace}
    return msgspec.json.encode({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": meta, "spec": spec})


async def take(client: Client, target: Target, enough: Callable[[list[Event]], bool]) -> list[Event]:
    events: list[Event] = []
    async with asyncio.timeout(30), aclosing(follow(client, target, lambda: 1.0)) as stream:
        async for event in stream:
            events.append(event)
            if enough(events):
                break
    return events


def words(events: list[Event]) -> list[str]:
    return [
        f"+{e.object.meta.name}" if isinstance(e, Put) else f"-{e.key[1]}" if isinstance(e, Gone) else type(e).__name__
        for e in events
    ]


async def test_a_watch_fills_by_stream_and_follows_changes(client: Client, namespace: str) -> None:
    await client.send(create("Service", namespace, service(namespace, "a", mine="yes")))
    await client.send(create("Service", namespace, service(namespace, "other")))

    async def change() -> None:
        made = await client.send(create("Service", namespace, service(namespace, "b", mine="yes")))
        uid = parse_object(made.body, SERVICES).meta.uid
        await client.send(delete(Ref("Service", namespace, "b"), uid))

    changing: list[asyncio.Task[None]] = []

    def enough(events: list[Event]) -> bool:
        if isinstance(events[-1], Synced):
            changing.append(asyncio.create_task(change()))
        return isinstance(events[-1], Gone)

    events = await take(client, Target(SERVICES, "mine=yes", namespace), enough)
    await changing[0]
    assert words(events) == ["+a", "Synced", "+b", "-b"]
    first = events[0]
    assert isinstance(first, Put) and b"managedFields" not in first.object.raw
    assert first.object.raw.startswith(b'{"kind":"Service","apiVersion":"v1",')


async def test_an_object_that_leaves_the_selector_is_gone(client: Client, namespace: str) -> None:
    made = parse_object(
        (await client.send(create("Service", namespace, service(namespace, "a", mine="yes")))).body, SERVICES
    )
    patching: list[asyncio.Task[object]] = []
    patch = merge_patch(
        Ref("Service", namespace, "a"),
        made.meta.uid,
        made.meta.resource_version,
        {"metadata": {"labels": {"mine": None}}},
    )

    def enough(events: list[Event]) -> bool:
        if isinstance(events[-1], Synced):
            patching.append(asyncio.create_task(client.send(patch)))
        return isinstance(events[-1], Gone)

    events = await take(client, Target(SERVICES, "mine=yes", namespace), enough)
    await patching[0]
    assert words(events) == ["+a", "Synced", "-a"]
    gone = events[-1]
    assert isinstance(gone, Gone) and int(gone.resource_version) > int(made.meta.resource_version)


async def test_pages_bring_the_same_objects_with_the_same_bytes_as_a_stream(client: Client, namespace: str) -> None:
    names = [f"s-{number:03}" for number in range(7)]
    for name in names:
        await client.send(create("Service", namespace, service(namespace, name)))
    target = Target(SERVICES, "", namespace)
    streamed = await take(client, target, lambda events: isinstance(events[-1], Synced))
    state, _ = begin(target)
    _, state, following = step(state, Ended(0.01, Rejected(422, "Invalid", "no WatchList here")))
    paged: list[Event] = []
    pages = 0
    while state.phase is Phase.PAGE_FILL:
        assert isinstance(following, Next) and following.request.query["limit"] == str(PAGE)
        small = msgspec.structs.replace(following.request, query={**following.request.query, "limit": "3"})
        events, state, following = step(state, Page((await client.send(small)).body))
        paged += events
        pages += 1
    assert pages == 3 and words(paged) == [*(f"+{name}" for name in names), "Synced"]
    by_name = {e.object.meta.name: e.object.raw for e in streamed if isinstance(e, Put)}
    assert {e.object.meta.name: e.object.raw for e in paged if isinstance(e, Put)} == by_name


async def test_a_version_that_was_compacted_away_is_410(client: Client, namespace: str) -> None:
    query = {"watch": "1", "resourceVersion": "1", "timeoutSeconds": "2"}
    request = Request(method="GET", path=path(SERVICES, namespace), query=query, timeout=5.0)
    state, _ = begin(Target(SERVICES, "", namespace))
    _, state, _ = step(state, Ended(0.01, Rejected(422, "Invalid", "")))
    _, state, _ = step(state, Page(b'{"metadata":{"resourceVersion":"1"},"items":[]}'))
    try:
        async for chunk in client.stream(request):
            assert b'"code":410' in chunk or b"ADDED" in chunk
            break
    except Rejected as error:
        assert error.code == 410


async def test_a_kind_without_its_crd_is_not_served(client: Client) -> None:
    unknown = BY_KIND["RayJob"]._replace(plural="raydreams")
    events = await take(client, Target(unknown), lambda _: True)
    assert isinstance(events[0], Unserved)


async def test_deletes_and_changes_hit_only_the_object_they_were_meant_for(client: Client, namespace: str) -> None:
    ref = Ref("RayJob", namespace, "j")
    made = parse_object((await client.send(create("RayJob", namespace, job(namespace, "j")))).body, BY_KIND["RayJob"])
    uid, version = made.meta.uid, made.meta.resource_version
    with pytest.raises(Rejected) as taken:
        await client.send(create("RayJob", namespace, job(namespace, "j")))
    assert taken.value.reason == "AlreadyExists"
    other = str(uuid.uuid4())
    suspend = ({"op": "add", "path": "/spec/suspend", "value": True},)
    refused = [
        delete(ref, other),
        put_status(ref, other, version, {"jobStatus": "RUNNING"}),
        put_status(ref, uid, "1", {"jobStatus": "RUNNING"}),
        json_patch(ref, uid, "1", suspend),
        merge_patch(ref, uid, "1", {"spec": {"suspend": True}}),
    ]
    for request in refused:
        with pytest.raises(Rejected) as caught:
            await client.send(request)
        assert (caught.value.code, caught.value.reason) == (409, "Conflict"), request
    answer = await client.send(put_status(ref, uid, version, {"jobStatus": "RUNNING"}))
    stored = msgspec.json.decode(answer.body)
    assert stored["status"]["jobStatus"] == "RUNNING" and "managedFields" in stored["metadata"]
    version = stored["metadata"]["resourceVersion"]
    answer = await client.send(json_patch(ref, uid, version, suspend))
    stored = msgspec.json.decode(answer.body)
    assert stored["spec"]["suspend"] is True
    version = stored["metadata"]["resourceVersion"]
    answer = await client.send(merge_patch(ref, uid, version, {"metadata": {"finalizers": ["ray.io/test"]}}))
    version = msgspec.json.decode(answer.body)["metadata"]["resourceVersion"]
    await client.send(merge_patch(ref, uid, version, {"metadata": {"finalizers": []}}))
    await client.send(delete(ref, uid))
    with pytest.raises(Rejected) as missing:
        await client.send(get(ref))
    assert missing.value.code == 404


async def test_apply_makes_and_changes_what_we_own(client: Client, namespace: str) -> None:
    ref = Ref("Service", namespace, "s")
    for ports in ([{"port": 80}], [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]):
        answer = await client.send(apply(ref, {"spec": {"ports": ports}}))
        assert len(msgspec.json.decode(answer.body)["spec"]["ports"]) == len(ports)


async def test_a_large_object_passes(client: Client, namespace: str) -> None:
    await client.send(create("RayJob", namespace, job(namespace, "big", entrypoint="x" * 1_400_000)))
    target = Target(BY_KIND["RayJob"], "", namespace)
    events = await take(client, target, lambda events: isinstance(events[-1], Synced))
    assert isinstance(events[0], Put) and len(events[0].object.raw) > 1_400_000


async def test_refusals_say_what_and_why(client: Client, namespace: str, bare_cluster: Cluster) -> None:
    bad = msgspec.json.encode({"metadata": {"name": "bad name"}, "spec": {"ports": [{"port": 80}]}})
    with pytest.raises(
        Rejected, match=f"POST /api/v1/namespaces/{namespace}/services: .*bad name.*is invalid"
    ) as bad_name:
        await client.send(create("Service", namespace, bad))
    assert bad_name.value.code == 422
    watcher = Access(kubeconfig=str(bare_cluster.kubeconfig_for("watcher")))
    async with await connect(watcher, "raybus-test") as reader:
        with pytest.raises(Rejected, match="cannot create resource") as forbidden:
            await reader.send(create("Service", namespace, service(namespace, "s")))
    assert (forbidden.value.code, forbidden.value.reason) == (403, "Forbidden")


async def test_many_requests_at_once_are_all_answered(client: Client, namespace: str, kubectl: Kubectl) -> None:
    names = [f"n-{number}" for number in range(40)]
    await asyncio.gather(*(client.send(create("Service", namespace, service(namespace, name))) for name in names))
    listed = kubectl.json("get", "services", "-n", namespace)["items"]
    assert {item["metadata"]["name"] for item in listed} == set(names)
