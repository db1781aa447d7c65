"""What the applier does to children, and to a root that goes."""

from typing import Any

import pytest
from applier_world import META, NAME, NS, ROOT, World, create, note, pod_body, pods, refusing

from raybus.api import subjects
from raybus.api.decision import Create, Delete, Patch, Ref
from raybus.api.messages import (
    H_GONE,
)
from raybus.api.reasons import Reason
from raybus.applier.memory import Memory
from raybus.kube.port import Rejected, Transient


@pytest.fixture
def world() -> World:
    return World()


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
