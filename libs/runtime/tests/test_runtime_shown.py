"""Which replica shows which root on its page of metrics: two replicas on the fake bus, on virtual time."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from raybus.api import subjects
from raybus.api.decision import NOTHING
from raybus.api.messages import H_AT, H_GONE, H_RV, H_SCHEMA, H_UID, SCHEMA
from raybus.api.names import PARTITIONS, partition_of
from raybus.api.times import Instant
from raybus.bus.partitions import GONE, Partitions
from raybus.runtime.controller import Controller
from raybus.runtime.controllers import Loops
from raybus.runtime.health import Health
from raybus.runtime.root_gauges import DurationGauge, RootGauges, StateGauge
from raybus.telemetry.metrics import Readings, read_when_asked
from raybus.testkit.fake_bus import BusServer
from raybus.testkit.virtual_time import run_virtual

NS, NAMES = "default", tuple(f"root-{number}" for number in range(40))
CONTROLLER = Controller(
    name="job",
    decoders={"rayjob": msgspec.json.decode},
    gather=lambda view: view if view.get("rayjob", view.name) else None,
    decide=lambda view, now, knobs: NOTHING,
    knobs=None,
    gauges=RootGauges(
        states=(StateGauge("there", "It is there.", (), lambda root: ()),),
        durations=(DurationGauge("ended", "How long.", (), lambda before, after, seen: ((), seen)),),
    ),
)


class Replica:
    def __init__(self, server: BusServer, now: Callable[[], Instant], name: str) -> None:
        self.bus = server.connect()
        self.partitions = Partitions(self.bus, "job-ctl", name)
        self.loops = Loops([CONTROLLER], self.bus, now)
        self.tasks = [asyncio.create_task(part) for part in (self.partitions.run(), self.loops.run(self.partitions))]

    def readings(self, name: str) -> Readings:
        return next(reading for reading in self.loops.readings(self.partitions) if reading.name == name)

    def shown(self, gauge: str = "there") -> list[str]:
        """Names of the roots in this gauge."""
        return [labels[0] for labels, _ in self.readings(gauge).samples]


class World:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.now: Callable[[], Instant] = lambda: Instant(1e9 + loop.time())
        self.server = BusServer(self.now)
        self.bus = self.server.connect()
        self.replicas: dict[str, Replica] = {}

    async def fill(self) -> None:
        for name in NAMES:
            await self.put(name)
        await self.mark()

    async def mark(self) -> None:
        created = (await self.bus.stream_created("VIEW")).encode()
        for number in range(PARTITIONS):
            await self.bus.put("VIEW", subjects.fill_marker("job", number), created, {H_SCHEMA: SCHEMA})

    async def put(self, name: str, uid: str = "uid", **headers: str) -> None:
        meta = {"name": name, "namespace": NS, "uid": uid, "resourceVersion": "1", "generation": 1}
        data = b"" if H_GONE in headers else msgspec.json.encode({"metadata": meta})
        given = {H_RV: "1", H_UID: uid, H_SCHEMA: SCHEMA, H_AT: "5.5", **headers}
        await self.bus.put("VIEW", subjects.view("job", NS, name, "rayjob", name), data, given)

    def start(self, name: str) -> Replica:
        self.replicas[name] = Replica(self.server, self.now, name)
        return self.replicas[name]

    def shown(self) -> Counter[str]:
        """Root -> number of replicas that show it."""
        return Counter(name for replica in self.replicas.values() for name in replica.shown())

    async def steadily(self, seconds: float) -> list[Counter[str]]:
        """What is shown, looked at 20 times a second."""
        looks = []
        for _ in range(int(seconds * 20)):
            await asyncio.sleep(0.05)
            looks.append(self.shown())
        return looks


EACH_ONCE = Counter(NAMES)


def scenario(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        world = World()
        try:
            await story(world)
        finally:
            tasks = [task for replica in world.replicas.values() for task in replica.tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run_virtual(main())


def test_each_root_is_shown_by_one_replica_and_by_none_before_the_view_is_filled() -> None:
    async def story(world: World) -> None:
        a, b = world.start("a"), world.start("b")
        await world.put(NAMES[0])
        await asyncio.sleep(3)
        assert world.shown() == Counter()
        await world.fill()
        await asyncio.sleep(0.1)
        assert world.shown() == EACH_ONCE
        assert a.shown() and b.shown()
        assert {labels[0]: value for labels, value in a.readings("ended").samples} == dict.fromkeys(a.shown(), 5.5)

    scenario(story)


def test_a_root_that_is_gone_is_shown_no_more_and_its_successor_keeps_nothing_of_it() -> None:
    async def story(world: World) -> None:
        a = world.start("a")
        await world.fill()
        await asyncio.sleep(3)
        await world.put(NAMES[3], **{H_GONE: "deleted"})
        await asyncio.sleep(0.1)
        assert world.shown() == Counter(name for name in NAMES if name != NAMES[3])
        assert NAMES[3] not in a.shown("ended")
        await world.put(NAMES[3], uid="another", **{H_AT: "7"})
        await asyncio.sleep(0.1)
        found = {labels: value for labels, value in a.readings("ended").samples if labels[0] == NAMES[3]}
        assert found == {(NAMES[3], NS, "another"): 7.0}

    scenario(story)


def test_a_partition_that_is_handed_over_takes_its_roots_along_and_no_root_is_shown_twice() -> None:
    async def story(world: World) -> None:
        world.start("a")
        await world.fill()
        await asyncio.sleep(3)
        assert world.shown() == EACH_ONCE
        b = world.start("b")
        looks = await world.steadily(4)
        assert all(count == 1 for look in looks for count in look.values())
        assert world.shown() == EACH_ONCE
        assert {partition_of(NS, name) for name in b.shown()} <= set(range(PARTITIONS)) and b.shown()
        await world.replicas["a"].partitions.leave()
        looks = await world.steadily(2)
        assert all(count == 1 for look in looks for count in look.values())
        assert Counter(b.shown()) == EACH_ONCE and world.replicas["a"].shown() == []

    scenario(story)


def test_a_replica_that_is_cut_off_shows_nothing_before_another_takes_over() -> None:
    async def story(world: World) -> None:
        a, b = world.start("a"), world.start("b")
        await world.fill()
        await asyncio.sleep(4)
        assert a.shown() and b.shown()
        a.bus.cut()
        looks = await world.steadily(GONE + 2)
        assert all(count == 1 for look in looks for count in look.values())
        assert a.shown() == [] and Counter(b.shown()) == EACH_ONCE

    scenario(story)


def test_the_page_has_a_line_for_each_root_and_the_loops() -> None:
    async def story(world: World) -> None:
        a = world.start("a")
        await world.fill()
        await asyncio.sleep(3)
        with read_when_asked(lambda: a.loops.readings(a.partitions)):
            status, kind, page = Health().answer("/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        lines = page.decode().splitlines()
        expected = {f'there{{name="{name}",namespace="{NS}",uid="uid"}} 1' for name in NAMES}
        assert expected == {line for line in lines if line.startswith("there{")}
        assert lines.count("# TYPE there gauge") == 1
        assert 'workqueue_depth{controller="rayjob",name="rayjob"} 0' in lines
        assert 'controller_runtime_active_workers{controller="rayjob"} 0' in lines

    scenario(story)
