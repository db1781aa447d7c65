"""Decisions carried out against a bus in memory and a small API server: order, fences, echo, refusals."""

from typing import Any

import msgspec
import pytest
from applier_world import NAME, NS, OWNER, ROOT, World, create, next_job, note, pod_body, pods, refusing

from raybus.api.decision import Ref
from raybus.api.messages import (
    H_SCHEMA,
    SCHEMA,
    Epoch,
)
from raybus.api.reasons import Reason
from raybus.kube.port import Rejected, Request


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


@pytest.mark.parametrize("expired", [False, True])
async def test_a_refusal_met_again_is_one_event_that_counts_unless_it_has_expired(world: World, expired: bool) -> None:
    world.api.fail = refusing("POST", Rejected(403, "Forbidden", "POST /pods: exceeded quota: q"), only='"p"')
    wish = create("p", failed=note(Reason.FAILED_TO_CREATE_HEAD_POD, "Failed to create {names}"))
    await world.decide(intents=(wish,))
    (first,) = world.events()
    assert "series" not in first
    if expired:
        world.api.server.store.remove("Event", (NS, first["metadata"]["name"]))
    world.clock += 6
    await world.decide(view_seq=1007, intents=(wish,))
    (event,) = world.events()
    assert (event["metadata"]["name"], event["note"]) == (first["metadata"]["name"], first["note"])
    assert event.get("series", {}).get("count") == (None if expired else 2)


async def test_a_refused_status_stops_what_follows_and_rests(world: World) -> None:
    world.api.fail = refusing("PUT", Rejected(422, "Invalid", "PUT: no such field"))
    await world.decide(status={"state": "odd"}, intents=(create(),))
    await world.decide(status={"state": "odd"}, intents=(create(),))
    assert [entry for entry in world.api.log if "pods" in entry] == []
    assert len([entry for entry in world.api.log if entry.startswith("PUT")]) == 1
    (refusal,) = world.result().refusals
    assert (refusal.verb, refusal.ref) == ("write status", Ref("RayCluster", NS, NAME))
