"""The whole watcher on a bus and an API server in memory: what it publishes where."""

import asyncio
from functools import partial

import msgspec
import pytest
from watcher_world import Replica, World, body, play, pod

from raybus.api import subjects
from raybus.api.messages import H_GONE, H_RV, H_UID, SCHEMA
from raybus.testkit.fake_api import Fault


def test_a_first_fill_publishes_everything_and_then_marks_every_partition() -> None:
    async def story(world: World) -> None:
        cluster = world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "w-1"))
        await world.start()
        assert world.has("cluster", "c", "RayCluster", "c", cluster["metadata"]["resourceVersion"])
        assert world.has("cluster", "c", "Pod", "w-1")
        assert await world.marked()
        marker = max(
            world.bus_server.streams["VIEW"].latest(["view.*.*.=.=.marker.fill"]), key=lambda message: -message.seq
        )
        assert marker.seq > (world.message("cluster", "c", "Pod", "w-1") or marker).seq

    play(story)


def test_an_empty_cluster_is_marked_too() -> None:
    async def story(world: World) -> None:
        await world.start()
        assert await world.marked()

    play(story)


def test_a_message_holds_the_object_and_says_what_it_is() -> None:
    async def story(world: World) -> None:
        await world.start()
        made = world.create("RayJob", body("RayJob", "j", spec={"entrypoint": "x"}))
        await world.until(lambda: world.has("job", "j", "RayJob", "j"), "published")
        message = world.message("job", "j", "RayJob", "j")
        assert message is not None
        assert message.headers[H_UID] == made["metadata"]["uid"]
        assert float(message.headers["Observed-At"]) == pytest.approx(world.now(), abs=1)
        assert message.headers["Schema"] == SCHEMA
        assert msgspec.json.decode(message.data)["spec"]["entrypoint"] == "x"

    play(story)


def test_changes_and_deletions_follow() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        changed = world.patch("RayCluster", "c", {"spec": {"suspend": True}})
        version = changed["metadata"]["resourceVersion"]
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c", version), "changed")
        world.delete("RayCluster", "c")
        await world.until(lambda: world.gone("cluster", "c", "RayCluster", "c"), "tombstone")

    play(story)


def test_a_new_route_fills_the_view_with_what_was_there_before_and_an_old_one_leaves_tombstones() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "h", "head"))
        world.create("Pod", pod("c", "w", "worker"))
        labels = {"ray.io/cluster": "c", "ray.io/node-type": "head"}
        world.create("Service", body("Service", "svc", labels, spec={"ports": [{"port": 1}]}))
        await world.until(lambda: world.has("cluster", "c", "Service", "svc"), "service")
        selector = {"clusterSelector": {"ray.io/cluster": "c"}}
        world.create("RayJob", body("RayJob", "j", spec=selector))
        world.create("RayJob", body("RayJob", "k", spec=selector))
        routed = [("RayCluster", "c"), ("Pod", "h"), ("Service", "svc")]

        def in_view(job: str) -> bool:
            return all(world.has("job", job, *each) for each in routed)

        for job in ("j", "k"):
            await world.until(partial(in_view, job), f"in the view of {job}")
        assert world.message("job", "j", "Pod", "w") is None
        version = world.patch("Pod", "h", {"metadata": {"labels": {"x": "y"}}})["metadata"]["resourceVersion"]
        await world.until(lambda: world.has("job", "k", "Pod", "h", version), "changes go to both")

        world.patch("RayJob", "j", {"spec": {"clusterSelector": None}})
        await world.until(lambda: all(world.gone("job", "j", *each) for each in routed), "tombstones")
        assert in_view("k")
        world.patch("RayJob", "j", {"spec": selector})
        await world.until(partial(in_view, "j"), "back at the same version")

    play(story)


def test_an_object_that_moves_from_one_selector_to_another_stays() -> None:
    async def story(world: World) -> None:
        await world.start()
        origin = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "j"}
        world.create("Service", body("Service", "s", origin, spec={"ports": [{"port": 1}]}))
        await world.until(lambda: world.has("job", "j", "Service", "s"), "by its origin")
        world.patch("Service", "s", {"metadata": {"labels": {"ray.io/cluster": "c"}}})
        await world.until(lambda: world.has("cluster", "c", "Service", "s"), "by its cluster")
        await world.until(lambda: world.gone("job", "j", "Service", "s"), "left the job's view")
        await asyncio.sleep(5)
        assert world.has("cluster", "c", "Service", "s")

    play(story)


def test_an_echo_of_the_same_version_is_not_written_again_and_a_newer_one_is_not_taken_back() -> None:
    async def story(world: World) -> None:
        await world.start()
        bus = world.bus_server.connect()
        world.faults = lambda request: Fault(before=1.0) if "watch" in request.query else Fault()
        made = world.create("RayCluster", body("RayCluster", "c", spec={}))
        newer = str(int(made["metadata"]["resourceVersion"]) + 5)
        headers = {H_UID: made["metadata"]["uid"], H_RV: newer, "Observed-At": "1"}
        subject = subjects.view("cluster", "ns", "c", "raycluster", "c")
        seq = await bus.put("VIEW", subject, b"{}", headers)
        await asyncio.sleep(5)
        message = world.message("cluster", "c", "RayCluster", "c")
        assert message is not None and message.seq == seq

    play(story)


def test_an_object_the_applier_has_seen_deleted_does_not_come_back() -> None:
    async def story(world: World) -> None:
        await world.start()
        bus = world.bus_server.connect()
        made = world.create("Pod", pod("c", "w"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w"), "pod")
        subject = subjects.view("cluster", "ns", "c", "pod", "w")
        headers = {H_UID: made["metadata"]["uid"], H_RV: made["metadata"]["resourceVersion"], H_GONE: "1"}
        await bus.put("VIEW", subject, b"", headers, ttl=60)
        world.patch("Pod", "w", {"metadata": {"labels": {"late": "event"}}})
        await asyncio.sleep(5)
        assert world.gone("cluster", "c", "Pod", "w")

    play(story)


def test_a_kind_whose_crd_is_missing_is_no_obstacle_and_is_picked_up_later(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(world: World) -> None:
        world.api.unserved.add("RayCronJob")
        await world.start()
        assert await world.marked()
        await asyncio.sleep(30)
        world.api.unserved.clear()
        world.create("RayCronJob", body("RayCronJob", "cron", spec={}))
        await world.until(lambda: world.has("cron", "cron", "RayCronJob", "cron"), "picked up")

    play(story)
    said = [line for line in capsys.readouterr().out.splitlines() if "not served" in line]
    assert len(said) == 1 and "raycronjobs" in said[0]


def test_no_marker_before_every_kind_has_been_listed() -> None:
    async def story(world: World) -> None:
        world.faults = lambda request: Fault(error="broken") if "rayjobs" in request.path else Fault()
        replica = Replica(world, "w1")
        world.replicas.append(replica)
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await asyncio.sleep(60)
        assert world.markers() == {""} and "rayjobs" in replica.watcher.problem()
        world.faults = lambda _: Fault()
        await world.until(lambda: replica.ready, "ready")
        assert await world.marked()

    play(story)


def test_an_object_that_cannot_be_read_is_said_once_and_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayJob", body("RayJob", "bad", spec={"clusterSelector": {"ray.io/cluster": 7}}))
        world.create("RayJob", body("RayJob", "good", spec={}))
        await world.until(lambda: world.has("job", "good", "RayJob", "good"), "the next one")
        assert world.message("job", "bad", "RayJob", "bad") is None

    play(story)
    said = [line for line in capsys.readouterr().out.splitlines() if "cannot be read" in line]
    assert len(said) == 1 and "bad" in said[0]


def test_an_object_of_one_and_a_half_megabytes_passes() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayJob", body("RayJob", "big", spec={"entrypoint": "x" * 1_450_000}))
        await world.until(lambda: world.has("job", "big", "RayJob", "big"), "published")

    play(story)


def test_only_the_listed_namespaces_are_watched() -> None:
    async def story(world: World) -> None:
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.start("w1", ("other", "third"))
        assert world.message("cluster", "c", "RayCluster", "c") is None
        paths = {request.path for request in world.requests}
        assert "/apis/ray.io/v1/namespaces/third/rayjobs" in paths and "/apis/ray.io/v1/rayjobs" not in paths

    play(story)
