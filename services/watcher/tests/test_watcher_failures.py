"""The whole watcher under failures: cuts, wipes, crashes, take-overs, a full store."""

import asyncio

import pytest
from watcher_world import World, body, play, pod

from raybus.api import subjects
from raybus.api.messages import H_RV, H_UID
from raybus.testkit.fake_bus import Network
from raybus.testkit.virtual_time import VirtualLoop


def test_a_wiped_bus_is_filled_and_marked_again() -> None:
    async def story(world: World) -> None:
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        for number in range(80):
            world.create("Pod", pod("c", f"w-{number}"))
        await world.start()
        before = world.markers()
        world.bus_server.wipe()
        await world.until(lambda: world.markers() not in (before, {""}) and "" not in world.markers(), "marked again")
        assert await world.marked()
        assert world.has("cluster", "c", "RayCluster", "c")
        assert all(world.has("cluster", "c", "Pod", f"w-{number}") for number in range(80))

    play(story)


def test_a_wiped_bus_is_filled_from_fresh_lists_while_the_watches_are_silent() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "w-1"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-1"), "pod")
        replica.api.black_hole()
        world.create("Pod", pod("c", "w-2"))
        world.delete("Pod", "w-1")
        before = world.markers()
        world.bus_server.wipe()
        await world.until(lambda: world.markers() not in (before, {""}) and "" not in world.markers(), "marked", 5)
        assert world.has("cluster", "c", "Pod", "w-2")
        assert not world.has("cluster", "c", "Pod", "w-1")

    play(story)


def test_a_write_to_a_former_store_that_is_answered_late_does_not_count_for_the_next_one() -> None:
    class Slow(Network):
        def delay(self) -> float:
            return 0.05

    async def story(world: World) -> None:
        replica = await world.start()
        loop = world.loop
        assert isinstance(loop, VirtualLoop)
        replica.bus.network = Slow()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await asyncio.sleep(0.02)
        loop.freeze("w1")
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c"), "on its way when it froze")
        world.bus_server.wipe()
        loop.thaw("w1")
        await world.until(lambda: "" not in world.markers(), "marked")
        assert world.has("cluster", "c", "RayCluster", "c")

    play(story)


def test_an_echoed_object_whose_life_the_watcher_missed_is_buried() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        replica.api.black_hole()
        made = world.create("Pod", pod("c", "w-1"))
        headers = {H_RV: made["metadata"]["resourceVersion"], H_UID: made["metadata"]["uid"]}
        subject = subjects.view("cluster", "ns", "c", "pod", "w-1")
        await world.bus_server.connect().put("VIEW", subject, b"{}", headers, expect=0)
        world.delete("Pod", "w-1")
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "tombstone", 120)

    play(story)


def test_an_echoed_object_that_no_watch_has_ever_shown_is_buried_after_a_new_list() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        replica.api.black_hole()
        made = world.create("Pod", pod("c", "w-1"))
        headers = {H_RV: made["metadata"]["resourceVersion"], H_UID: made["metadata"]["uid"]}
        subject = subjects.view("cluster", "ns", "c", "pod", "w-1")
        await world.bus_server.connect().put("VIEW", subject, b"{}", headers, expect=0)
        world.delete("Pod", "w-1")
        world.api.compact()
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "tombstone", 120)

    play(story)


@pytest.mark.parametrize("lives", [False, True], ids=["after its end", "into a view of others"])
def test_what_is_heard_of_after_the_watches_have_told_everything_is_buried(lives: bool) -> None:
    async def story(world: World) -> None:
        await world.start()
        made = world.create("Pod", pod("d", "w-1"))
        await world.until(lambda: world.has("cluster", "d", "Pod", "w-1"), "pod")
        if not lives:
            world.delete("Pod", "w-1")
            await world.until(lambda: world.gone("cluster", "d", "Pod", "w-1"), "tombstone")
        headers = {H_RV: made["metadata"]["resourceVersion"], H_UID: made["metadata"]["uid"]}
        subject = subjects.view("cluster", "ns", "c", "pod", "w-1")
        await world.bus_server.connect().put("VIEW", subject, b"{}", headers, expect=0)
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "buried")
        assert world.has("cluster", "d", "Pod", "w-1") == lives

    play(story)


def test_a_tombstone_is_never_older_than_what_it_buries() -> None:
    async def story(world: World) -> None:
        await world.start()
        made = world.create("Pod", pod("c", "w-1"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-1"), "pod")
        subject = subjects.view("cluster", "ns", "c", "pod", "w-1")
        headers = {H_RV: "900", H_UID: made["metadata"]["uid"]}
        await world.bus_server.connect().put("VIEW", subject, b"{}", headers)
        world.delete("Pod", "w-1")
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "tombstone")
        message = world.message("cluster", "c", "Pod", "w-1")
        assert message is not None and message.headers[H_RV] == "900"

    play(story)


def test_after_a_cut_from_the_bus_nothing_is_missing_and_nothing_repeated() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "w-1"))
        world.create("Pod", pod("c", "w-2"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-2"), "pods")
        replica.bus.cut()
        world.delete("Pod", "w-1")
        world.create("Pod", pod("c", "w-3"))
        await asyncio.sleep(40)
        unchanged = world.message("cluster", "c", "RayCluster", "c")
        replica.bus.mend()
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-3"), "created meanwhile")
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "deleted meanwhile")
        assert world.message("cluster", "c", "RayCluster", "c") == unchanged

    play(story)


def test_what_vanished_while_no_watcher_ran_gets_a_tombstone_and_what_stayed_is_not_repeated() -> None:
    async def story(world: World) -> None:
        first = await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "w"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w"), "pod")
        await first.end()
        unchanged = world.message("cluster", "c", "RayCluster", "c")
        world.delete("Pod", "w")
        await world.start("w2")
        assert world.gone("cluster", "c", "Pod", "w")
        assert world.message("cluster", "c", "RayCluster", "c") == unchanged

    play(story)


def test_a_standby_takes_over_and_publishes_differences_only() -> None:
    async def story(world: World) -> None:
        first = await world.start("w1")
        second = await world.start("w2")
        assert first.active and not second.active
        for number in range(60):
            world.create("Pod", pod("c", f"w-{number}"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-59"), "pods")
        seq = world.last_seq()
        requests = len(world.requests)
        await first.end()
        died = world.loop.time()
        late = world.create("RayCluster", body("RayCluster", "late", spec={}))
        await world.until(lambda: world.has("cluster", "late", "RayCluster", "late"), "published by the other")
        assert second.active and world.loop.time() - died < 3.0
        message = world.message("cluster", "late", "RayCluster", "late")
        assert message is not None and late["metadata"]["uid"] == message.headers[H_UID]
        await asyncio.sleep(1)
        assert world.last_seq() == seq + 1
        reads = [request for request in world.requests[requests:] if "watch" not in request.query]
        assert [request.path for request in reads] == ["/apis/ray.io/v1/namespaces/ns/rayclusters/late"]

    play(story)


def test_a_frozen_watcher_that_wakes_up_writes_nothing_of_the_past() -> None:
    async def story(world: World) -> None:
        loop = world.loop
        assert isinstance(loop, VirtualLoop)
        first, second = await world.start("w1"), await world.start("w2")
        made = world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c"), "cluster")
        loop.freeze("w1")
        changed = world.patch("RayCluster", "c", {"spec": {"suspend": True}})
        version = changed["metadata"]["resourceVersion"]
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c", version), "published by the other")
        world.delete("RayCluster", "c")
        await world.until(lambda: world.gone("cluster", "c", "RayCluster", "c"), "deleted")
        seq = world.last_seq()
        loop.thaw("w1")
        await asyncio.sleep(10)
        assert world.last_seq() == seq
        assert second.active and not first.active
        assert made["metadata"]["uid"]

    play(story)


def test_a_full_store_loses_nothing() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        world.bus_server.full.add("VIEW")
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.until(lambda: "full" in replica.watcher.problem(), "said")
        world.bus_server.full.clear()
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c"), "published")
        await world.until(lambda: replica.ready, "ready")

    play(story)


def test_a_watch_that_was_compacted_away_reports_what_vanished() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        world.create("Pod", pod("c", "w-1"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-1"), "pod")
        replica.api.down = True
        replica.api.cut()
        world.delete("Pod", "w-1")
        world.create("Pod", pod("c", "w-2"))
        world.api.compact()
        await asyncio.sleep(20)
        replica.api.down = False
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-2"), "created meanwhile")
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "vanished meanwhile")

    play(story)


def test_a_later_epoch_stands_still_only_as_long_as_there_may_be_another_watcher() -> None:
    async def story(world: World) -> None:
        await world.start()
        made = world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c"), "cluster")
        later = {"Epoch": "1999999999999999999:1", H_UID: made["metadata"]["uid"], H_RV: "1", "Observed-At": "1"}
        subject = subjects.view("cluster", "ns", "c", "raycluster", "c")
        seq = await world.bus_server.connect().put("VIEW", subject, b"{}", later)
        version = world.patch("RayCluster", "c", {"spec": {"suspend": True}})["metadata"]["resourceVersion"]
        await asyncio.sleep(3)
        message = world.message("cluster", "c", "RayCluster", "c")
        assert message is not None and message.seq == seq
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c", version), "went on")

    play(story)
