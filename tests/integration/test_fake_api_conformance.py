"""The API server in memory is honest about single objects: one set of properties on it and on a real one (§2.11)."""

import msgspec
import pytest
from conformance_world import BODIES, CONTAINERS, TEMPLATE, World, refused

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.kube import request, write
from raybus.kube.port import Rejected, Request

# ---------------------------------------------------------------- create, get


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "Pod", "Service", "Job"])
async def test_what_was_created_is_read_back_with_an_identity(api_world: World, kind: str) -> None:
    made = await api_world.create(kind, "x", metadata={"labels": {"a": "b"}})
    found = await api_world.get(kind, "x")
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert found["metadata"]["labels"] == {"a": "b"}
    assert (found["kind"], found["apiVersion"]) == (kind, BY_KIND[kind].api_version)
    assert "creationTimestamp" in found["metadata"]
    if kind != "Service":
        assert found["metadata"]["generation"] == 1


async def test_a_status_is_not_taken_by_create(api_world: World) -> None:
    made = await api_world.create("RayCluster", "x", status={"state": "ready"})
    assert "status" not in made


async def test_defaults_that_raybus_reads(api_world: World) -> None:
    spec = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [{"groupName": "w", "template": TEMPLATE}]}
    group = (await api_world.create("RayCluster", "x", spec=spec))["spec"]["workerGroupSpecs"][0]
    assert (group["replicas"], group["minReplicas"], group["numOfHosts"]) == (0, 0, 1)
    pod = await api_world.create("Pod", "x")
    assert (pod["spec"]["restartPolicy"], pod["spec"]["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert pod["status"]["phase"] == "Pending"
    port = (await api_world.create("Service", "x"))["spec"]["ports"][0]
    assert (port["protocol"], port["targetPort"]) == ("TCP", 80)


async def test_a_taken_name_is_refused(api_world: World) -> None:
    await api_world.create("Pod", "x")
    assert await refused(api_world.create("Pod", "x")) == (409, "AlreadyExists")


@pytest.mark.parametrize(("kind", "name"), [("Pod", "Not_Valid"), ("Service", "a.b"), ("RayCluster", "a..b")])
async def test_a_bad_name_is_invalid(api_world: World, kind: str, name: str) -> None:
    assert await refused(api_world.create(kind, name)) == (422, "Invalid")


async def test_a_pod_without_containers_is_invalid(api_world: World) -> None:
    assert await refused(api_world.create("Pod", "x", spec={"containers": []})) == (422, "Invalid")


async def test_generated_names(api_world: World) -> None:
    body = {**BODIES["Pod"], "metadata": {"generateName": "p-"}}
    made = await api_world.send(write.create("Pod", api_world.namespace, msgspec.json.encode(body)))
    assert made["metadata"]["name"].startswith("p-") and len(made["metadata"]["name"]) == 7


async def test_a_quota_forbids(api_world: World) -> None:
    await api_world.set_quota(0)
    with pytest.raises(Rejected, match="exceeded quota") as caught:
        await api_world.create("Pod", "x")
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")


async def test_what_is_not_there_is_not_found(api_world: World) -> None:
    ref = api_world.ref("RayCluster", "x")
    for doing in (
        request.get(ref),
        write.delete(ref, "u"),
        write.put_status(ref, "u", "1", {}),
        write.merge_patch(ref, "u", "1", {"metadata": {"finalizers": []}}),
        write.json_patch(ref, "u", "1", ()),
    ):
        assert await refused(api_world.send(doing)) == (404, "NotFound"), doing.method


async def test_an_unknown_resource_is_not_found_and_known_ones_are_listed(api_world: World) -> None:
    assert (await refused(api_world.send(Request(method="GET", path="/apis/none.example/v1/things"))))[0] == 404
    assert (await refused(api_world.send(request.resources("none.example", "v1"))))[0] == 404
    found = await api_world.send(request.resources("ray.io", "v1"))
    assert {"rayclusters", "rayjobs"} <= {resource["name"] for resource in found["resources"]}


# ---------------------------------------------------------------- delete


@pytest.mark.parametrize("kind", ["RayCluster", "Pod", "Service", "Job", "Role"])
async def test_a_delete_holds_only_for_the_uid(api_world: World, kind: str) -> None:
    made = await api_world.create(kind, "x")
    ref, uid = api_world.ref(kind, "x"), made["metadata"]["uid"]
    assert await refused(api_world.send(write.delete(ref, "another"))) == (409, "Conflict")
    answer = await api_world.send(write.delete(ref, uid))
    assert answer["kind"] == (kind if kind in ("Pod", "Service") else "Status")
    assert await refused(api_world.get(kind, "x")) == (404, "NotFound")
    assert await refused(api_world.send(write.delete(ref, uid))) == (404, "NotFound")


async def test_an_object_with_finalizers_stays_until_they_are_removed(api_world: World) -> None:
    made = await api_world.create("RayCluster", "x", metadata={"finalizers": ["ray.io/a"]})
    ref, uid = api_world.ref("RayCluster", "x"), made["metadata"]["uid"]
    first = await api_world.send(write.delete(ref, uid))
    assert first["kind"] == "RayCluster" and first["metadata"]["deletionTimestamp"]
    assert first["metadata"]["generation"] == 2
    again = await api_world.send(write.delete(ref, uid))
    assert again["metadata"] == first["metadata"]
    version = first["metadata"]["resourceVersion"]
    more = write.merge_patch(ref, uid, version, {"metadata": {"finalizers": ["ray.io/a", "ray.io/b"]}})
    assert await refused(api_world.send(more)) == (422, "Invalid")
    status = await api_world.send(write.put_status(ref, uid, version, {"reason": "late"}))
    version = status["metadata"]["resourceVersion"]
    await api_world.send(write.merge_patch(ref, uid, version, {"metadata": {"finalizers": []}}))
    assert await refused(api_world.get("RayCluster", "x")) == (404, "NotFound")


async def test_a_pod_on_a_node_ends_gracefully(api_world: World) -> None:
    made = await api_world.create("Pod", "x", spec={**CONTAINERS, "nodeName": "none"})
    ref, uid = api_world.ref("Pod", "x"), made["metadata"]["uid"]
    answer = await api_world.send(write.delete(ref, uid))
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await api_world.get("Pod", "x"))["metadata"]["deletionTimestamp"]
    now = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    await api_world.send(Request(method="DELETE", path=request.path_of(ref), body=msgspec.json.encode(now)))
    assert await refused(api_world.get("Pod", "x")) == (404, "NotFound")


# ---------------------------------------------------------------- writes to what exists


async def test_a_status_is_replaced_as_a_whole_by_its_version(api_world: World) -> None:
    made = await api_world.create("RayCluster", "x")
    ref, meta = api_world.ref("RayCluster", "x"), made["metadata"]
    uid, version = meta["uid"], meta["resourceVersion"]
    assert await refused(api_world.send(write.put_status(ref, "another", version, {}))) == (409, "Conflict")
    one = await api_world.send(write.put_status(ref, uid, version, {"state": "ready", "reason": "r"}))
    assert one["metadata"]["generation"] == 1
    assert int(one["metadata"]["resourceVersion"]) > int(version)
    assert await refused(api_world.send(write.put_status(ref, uid, version, {}))) == (409, "Conflict")
    version = one["metadata"]["resourceVersion"]
    two = await api_world.send(write.put_status(ref, uid, version, {"state": "failed"}))
    assert two["status"]["state"] == "failed" and "reason" not in two["status"]


async def test_a_write_that_changes_nothing_keeps_the_version(api_world: World) -> None:
    made = await api_world.create("RayCluster", "x")
    ref, uid = api_world.ref("RayCluster", "x"), made["metadata"]["uid"]
    one = await api_world.send(write.put_status(ref, uid, made["metadata"]["resourceVersion"], {"state": "ready"}))
    version = one["metadata"]["resourceVersion"]
    two = await api_world.send(write.put_status(ref, uid, version, one["status"]))
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
async def test_json_patches(api_world: World, operations: tuple[Json, ...], expected: int) -> None:
    spec = {**BODIES["RayCluster"]["spec"], "workerGroupSpecs": [{"groupName": "w", "template": TEMPLATE}]}
    meta = (await api_world.create("RayCluster", "x", spec=spec))["metadata"]
    patch = write.json_patch(api_world.ref("RayCluster", "x"), meta["uid"], meta["resourceVersion"], operations)
    if expected:
        assert (await refused(api_world.send(patch)))[0] == expected
    else:
        patched = await api_world.send(patch)
        changes = operations[0]["op"] != "test"
        assert patched["metadata"]["generation"] == (2 if changes else 1)


async def test_patches_hold_only_for_uid_and_version(api_world: World) -> None:
    made = await api_world.create("RayCluster", "x")
    ref, meta = api_world.ref("RayCluster", "x"), made["metadata"]
    uid, old = meta["uid"], meta["resourceVersion"]
    await api_world.send(write.put_status(ref, uid, old, {"state": "ready"}))
    operations = ({"op": "add", "path": "/spec/suspend", "value": True},)
    for patch in (
        write.json_patch(ref, uid, old, operations),
        write.json_patch(ref, "another", old, operations),
        write.merge_patch(ref, uid, old, {"metadata": {"finalizers": ["ray.io/a"]}}),
        write.merge_patch(ref, "another", old, {"metadata": {"finalizers": ["ray.io/a"]}}),
    ):
        assert await refused(api_world.send(patch)) == (409, "Conflict")


async def test_the_main_resource_does_not_take_a_status(api_world: World) -> None:
    meta = (await api_world.create("RayCluster", "x"))["metadata"]
    ref = api_world.ref("RayCluster", "x")
    patch = write.merge_patch(ref, meta["uid"], meta["resourceVersion"], {"status": {"state": "ready"}})
    assert "status" not in await api_world.send(patch)


async def test_what_cannot_be_changed_is_invalid(api_world: World) -> None:
    for kind, patch in (
        ("Pod", {"spec": {"restartPolicy": "Never"}}),
        ("Job", {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}),
    ):
        meta = (await api_world.create(kind, "x"))["metadata"]
        request_ = write.merge_patch(api_world.ref(kind, "x"), meta["uid"], meta["resourceVersion"], patch)
        assert await refused(api_world.send(request_)) == (422, "Invalid"), kind


async def test_apply_creates_then_changes_only_what_it_names(api_world: World) -> None:
    ref = api_world.ref("Service", "x")
    body: Json = {"metadata": {"labels": {"a": "1"}}, "spec": BODIES["Service"]["spec"]}
    response = await api_world.sender.send(write.apply(ref, body))
    assert response.status == 201
    made = msgspec.json.decode(response.body)
    again = await api_world.sender.send(write.apply(ref, body))
    assert again.status == 200
    assert msgspec.json.decode(again.body)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    meta = made["metadata"]
    foreign = {"metadata": {"annotations": {"theirs": "1"}}}
    await api_world.send(write.merge_patch(ref, meta["uid"], meta["resourceVersion"], foreign))
    changed = await api_world.send(write.apply(ref, {**body, "metadata": {"labels": {"a": "2"}}}))
    assert changed["metadata"]["labels"] == {"a": "2"}
    assert changed["metadata"]["annotations"] == {"theirs": "1"}
    more: Json = {**body, "spec": {**body["spec"], "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}}
    ports = (await api_world.send(write.apply(ref, more)))["spec"]["ports"]
    assert sorted((port["port"], port["name"]) for port in ports) == [(80, "a"), (81, "b")]
