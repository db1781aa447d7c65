"""States that may rest before they are published (ADR 0091)."""

import asyncio
from typing import Any

import msgspec
import pytest
from watcher_world import World, body, play, pod

from raybus.api import subjects
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_RV, H_UID
from raybus.kube.objects import parse_object
from raybus.watcher.reading import LAST, LONG, SHORT, patience


def of(kind: str, known: int | None = None, status: Any = None, *, rooted: bool = True, **meta: Any) -> float:
    raw = {"metadata": {"name": "n", "namespace": "ns", **meta}} | ({} if status is None else {"status": status})
    return patience(BY_KIND[kind], parse_object(msgspec.json.encode(raw), BY_KIND[kind]), known, rooted)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (of("Pod"), LONG),
        (of("Pod", status={"phase": "Pending"}), LONG),
        (of("Pod", status={"phase": "Running"}), 0.0),
        (of("Pod", status={"phase": "Failed"}), 0.0),
        (of("Pod", status={"phase": "Running"}, deletionTimestamp="2026-01-01T00:00:00Z"), SHORT),
        (of("Pod", status={"phase": "Running"}, rooted=False, deletionTimestamp="2026-01-01T00:00:00Z"), LAST),
        (of("Pod", status={"phase": "Running"}, rooted=False), 0.0),
        (of("Service"), SHORT),
        (of("RayCluster", known=None, generation=1), 0.0),
        (of("RayCluster", known=1, generation=2), 0.0),
        (of("RayCluster", known=2, generation=2), SHORT),
        (of("RayCluster", known=2, generation=2, deletionTimestamp="2026-01-01T00:00:00Z"), 0.0),
        (of("Job", known=1, generation=1), 0.0),
    ],
)
def test_who_may_rest(seconds: float, expected: float) -> None:
    assert seconds == expected


def test_what_the_applier_has_told_is_not_written_again() -> None:
    async def story(world: World) -> None:
        await world.start()
        made = world.create("Pod", pod("c", "w"))
        headers = {H_RV: made["metadata"]["resourceVersion"], H_UID: made["metadata"]["uid"]}
        subject = subjects.view("cluster", "ns", "c", "pod", "w")
        seq = await world.bus_server.connect().put("VIEW", subject, b"{}", headers, expect=0)
        await asyncio.sleep(2 * LONG)
        assert world.last_seq() == seq

    play(story)


def test_of_the_states_that_rest_only_the_last_is_written_and_in_time() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c"), "cluster")
        seq = world.last_seq()
        for number in range(3):
            last = world.patch("RayCluster", "c", {"metadata": {"labels": {"n": str(number)}}})
            await asyncio.sleep(SHORT / 4)
        version = last["metadata"]["resourceVersion"]
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c", version), "last state", 2 * SHORT)
        assert world.last_seq() == seq + 1

    play(story)


def test_an_end_does_not_wait() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("Pod", pod("c", "w"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w"), "pod", 2 * LONG)
        world.delete("Pod", "w")
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w"), "tombstone", SHORT)

    play(story)
