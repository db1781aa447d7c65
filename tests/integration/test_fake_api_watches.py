"""The API server in memory is honest about lists, watches and garbage collection (style §2.11)."""

import asyncio
import time
from typing import Any

import msgspec
import pytest
from conformance_world import PATIENCE, World

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.kube import request, write
from raybus.kube.follow import lines
from raybus.kube.port import Request

# ---------------------------------------------------------------- lists and watches


async def labelled(api_world: World) -> list[Any]:
    labels = [{"a": "1"}, {"a": "2", "b": "x"}, {"b": "y"}, {}]
    return [await api_world.create("Role", f"r{n}", metadata={"labels": given}) for n, given in enumerate(labels)]


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
async def test_selectors(api_world: World, selector: str, expected: str) -> None:
    await labelled(api_world)
    path = request.path(BY_KIND["Role"], api_world.namespace)
    found = await api_world.send(Request(method="GET", path=path, query={"labelSelector": selector}))
    assert "".join(item["metadata"]["name"][1] for item in found["items"]) == expected


async def test_pages_show_one_instant(api_world: World) -> None:
    made = await labelled(api_world)
    path = request.path(BY_KIND["Role"], api_world.namespace)
    first = await api_world.send(Request(method="GET", path=path, query={"limit": "3"}))
    await api_world.send(write.delete(api_world.ref("Role", "r3"), made[3]["metadata"]["uid"]))
    query = {"limit": "3", "continue": first["metadata"]["continue"]}
    second = await api_world.send(Request(method="GET", path=path, query=query))
    assert [item["metadata"]["name"] for item in first["items"]] == ["r0", "r1", "r2"]
    assert [item["metadata"]["name"] for item in second["items"]] == ["r3"]
    assert "kind" not in second["items"][0] and not second["metadata"].get("continue")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


async def events(api_world: World, count: int, selector: str = "", **query: str) -> list[tuple[str, Any]]:
    """The first `count` events of a watch of Roles; `resourceVersion` or `sendInitialEvents` in `query`."""
    given = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "20", **query}
    if selector:
        given["labelSelector"] = selector
    path = request.path(BY_KIND["Role"], api_world.namespace)
    found: list[tuple[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        async for line in lines(api_world.sender.stream(Request(method="GET", path=path, query=given, timeout=30))):
            event = msgspec.json.decode(line)
            found.append((event["type"], event["object"]))
            if len(found) == count:
                break
    return found


STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


async def test_a_streamed_fill_ends_with_a_bookmark_and_goes_on(api_world: World) -> None:
    made = await labelled(api_world)
    watching = asyncio.create_task(events(api_world, 7, "a", **STREAMED))
    first = await events(api_world, 3, "a", **STREAMED)
    kinds = [kind for kind, _ in first]
    assert sorted(kinds) == ["ADDED", "ADDED", "BOOKMARK"] and kinds[-1] == "BOOKMARK"
    assert first[-1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    await asyncio.sleep(0.2)

    async def label(number: int, value: str | None) -> None:
        name = f"r{number}"
        meta = (await api_world.get("Role", name))["metadata"]
        patch = {"metadata": {"labels": {"a": value}}}
        await api_world.send(
            write.merge_patch(api_world.ref("Role", name), meta["uid"], meta["resourceVersion"], patch)
        )

    await label(2, "3")
    await label(2, "4")
    await label(2, None)
    await api_world.send(write.delete(api_world.ref("Role", "r0"), made[0]["metadata"]["uid"]))
    seen = [(kind, obj["metadata"].get("name", "")) for kind, obj in (await watching)[3:]]
    assert seen == [("ADDED", "r2"), ("MODIFIED", "r2"), ("DELETED", "r2"), ("DELETED", "r0")]


async def test_a_watch_resumes_at_a_version(api_world: World) -> None:
    made = await labelled(api_world)
    await api_world.send(write.delete(api_world.ref("Role", "r3"), made[3]["metadata"]["uid"]))
    found = await events(api_world, 3, resourceVersion=made[1]["metadata"]["resourceVersion"])
    assert [(kind, obj["metadata"]["name"]) for kind, obj in found] == [
        ("ADDED", "r2"),
        ("ADDED", "r3"),
        ("DELETED", "r3"),
    ]
    assert int(found[2][1]["metadata"]["resourceVersion"]) > int(made[3]["metadata"]["resourceVersion"])


async def test_deletion_has_a_version_of_its_own(api_world: World) -> None:
    made = (await api_world.create("RayCluster", "x", metadata={"finalizers": ["ray.io/a"]}))["metadata"]
    ref = api_world.ref("RayCluster", "x")
    marked = (await api_world.send(write.delete(ref, made["uid"])))["metadata"]
    patch: Json = {"metadata": {"finalizers": []}}
    last = await api_world.send(write.merge_patch(ref, made["uid"], marked["resourceVersion"], patch))
    path = request.path(BY_KIND["RayCluster"], api_world.namespace)
    query = {"watch": "1", "timeoutSeconds": "20", "resourceVersion": marked["resourceVersion"]}
    async with asyncio.timeout(PATIENCE):
        async for line in lines(api_world.sender.stream(Request(method="GET", path=path, query=query))):
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


async def test_children_go_after_their_owner(api_world: World) -> None:
    owner = await api_world.create("RayCluster", "x")
    await api_world.create("Role", "child", metadata=owned(owner))
    await api_world.send(write.delete(api_world.ref("RayCluster", "x"), owner["metadata"]["uid"]))
    await api_world.gone("Role", "child")


async def test_a_child_of_an_owner_that_is_gone_goes_too(api_world: World) -> None:
    owner = await api_world.create("RayCluster", "x")
    await api_world.send(write.delete(api_world.ref("RayCluster", "x"), owner["metadata"]["uid"]))
    await api_world.create("Role", "child", metadata=owned(owner))
    await api_world.gone("Role", "child")


async def test_a_foreground_deletion_waits_for_the_children(api_world: World) -> None:
    owner = await api_world.create("RayCluster", "x")
    await api_world.create("RayCluster", "child", metadata={**owned(owner), "finalizers": ["ray.io/a"]})
    answer = await api_world.send(
        write.delete(api_world.ref("RayCluster", "x"), owner["metadata"]["uid"], "Foreground")
    )
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    end = time.monotonic() + PATIENCE
    while "deletionTimestamp" not in (child := (await api_world.get("RayCluster", "child"))["metadata"]):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    assert (await api_world.get("RayCluster", "x"))["metadata"]["deletionTimestamp"]
    patch: Json = {"metadata": {"finalizers": []}}
    ref = api_world.ref("RayCluster", "child")
    await api_world.send(write.merge_patch(ref, child["uid"], child["resourceVersion"], patch))
    await api_world.gone("RayCluster", "child")
    await api_world.gone("RayCluster", "x")
