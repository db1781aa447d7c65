"""Ownership of partitions on virtual time: several replicas on one fake bus."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from raybus.api.messages import Epoch
from raybus.api.names import PARTITIONS
from raybus.api.times import Instant
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import FRESH, GONE, SETTLE, Lost, Partitions, Taken
from raybus.bus.rendezvous import best
from raybus.testkit.fake_bus import BusServer, FakeBus, Network
from raybus.testkit.virtual_time import SERVICE, VirtualLoop, run_virtual

ALL = set(range(PARTITIONS))


class Replica:
    """One simulated process with its log of (time, change)."""

    def __init__(self, world: "World", name: str, count: int) -> None:
        self.name, self.world = name, world
        self.bus: FakeBus = world.server.connect()
        self.partitions = Partitions(self.bus, "cluster-ctl", name, count)
        self.events: list[tuple[float, Taken | Lost]] = []
        self.tasks: list[asyncio.Task[None]] = []
        token = SERVICE.set(name)
        self.tasks = [asyncio.create_task(self.partitions.run()), asyncio.create_task(self._record())]
        SERVICE.reset(token)

    async def _record(self) -> None:
        async for change in self.partitions.changes():
            self.events.append((self.world.now, change))

    @property
    def owned(self) -> set[int]:
        return {p for p in range(PARTITIONS) if self.partitions.owns(p)}

    def freeze(self) -> None:
        self.world.loop.freeze(self.name)

    def thaw(self) -> None:
        self.world.loop.thaw(self.name)

    async def leave(self) -> None:
        await self.partitions.leave()
        self.die()

    def die(self) -> None:
        for task in self.tasks:
            task.cancel()


class World:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop = loop
        self.server = BusServer(lambda: Instant(1_000_000.0 + loop.time()))
        self.replicas: list[Replica] = []

    @property
    def now(self) -> float:
        return self.loop.time()

    def start(self, *names: str, count: int = PARTITIONS) -> list[Replica]:
        new = [Replica(self, name, count) for name in names]
        self.replicas += new
        return new

    def owners(self) -> Counter[int]:
        return Counter(p for replica in self.replicas for p in replica.owned)

    def gaps(self, since: float) -> list[float]:
        """For each loss after `since`: seconds until the partition was taken again."""
        events = [(at, change) for r in self.replicas for at, change in r.events if at >= since]
        taken = [(at, c.partition) for at, c in events if isinstance(c, Taken)]
        return [
            min((later - at for later, p in taken if p == c.partition and later >= at), default=float("inf"))
            for at, c in events
            if isinstance(c, Lost)
        ]


def on_virtual_time(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    async def main() -> None:
        world = World()
        try:
            await test(world)
        finally:
            for replica in world.replicas:
                world.loop.thaw(replica.name)
                replica.die()

    def run() -> None:
        random.seed(test.__name__)
        run_virtual(main())

    run.__name__ = test.__name__
    return run


@on_virtual_time
async def test_a_single_replica_owns_all_partitions_within_a_second(world: World) -> None:
    (a,) = world.start("a")
    await asyncio.sleep(1)
    assert a.owned == ALL
    assert a.partitions.fresh()


@on_virtual_time
async def test_three_replicas_share_the_partitions_as_rendezvous_hashing_says(world: World) -> None:
    world.start("a", "b", "c")
    await asyncio.sleep(2)
    assert world.owners() == Counter(ALL)
    names = [r.partitions.me for r in world.replicas]
    assert all(p in r.owned for r in world.replicas for p in ALL if best(p, names) == r.partitions.me)


@on_virtual_time
async def test_partitions_of_a_replica_that_leaves_have_a_new_owner_at_once(world: World) -> None:
    a, *_ = world.start("a", "b", "c")
    await asyncio.sleep(2)
    assert a.owned
    began = world.now
    await a.leave()
    await asyncio.sleep(0.5)
    assert not a.owned
    assert world.owners() == Counter(ALL)
    assert max(world.gaps(began)) <= 0.1


@on_virtual_time
async def test_a_replica_that_comes_gets_its_share_without_a_gap(world: World) -> None:
    world.start("a", "b")
    await asyncio.sleep(2)
    began = world.now
    (c,) = world.start("c")
    await asyncio.sleep(2)
    assert c.owned
    assert world.owners() == Counter(ALL)
    assert max(world.gaps(began)) <= 0.1


@on_virtual_time
async def test_partitions_of_a_dead_replica_are_taken_after_its_silence(world: World) -> None:
    a, b = world.start("a", "b")
    await asyncio.sleep(2)
    died = world.now
    a.die()
    await asyncio.sleep(3)
    assert b.owned == ALL
    taken = [at - died for at, change in b.events if at > died and isinstance(change, Taken)]
    assert taken
    assert min(taken) >= GONE - 0.25
    assert max(taken) <= GONE + 0.1


@on_virtual_time
async def test_a_frozen_replica_loses_its_partitions_and_knows_it_is_stale_when_it_thaws(world: World) -> None:
    a, b = world.start("a", "b")
    await asyncio.sleep(2)
    had = a.owned
    a.freeze()
    await asyncio.sleep(5)
    assert b.owned == ALL
    assert had and a.owned == had, "frozen, it believes what it believed"
    assert not a.partitions.fresh(), "the first thing it sees is that its heart-beat is old"
    a.thaw()
    await asyncio.sleep(0.01)
    assert {c.partition for _, c in a.events if isinstance(c, Lost)} >= had
    await asyncio.sleep(3)
    assert world.owners() == Counter(ALL)


@on_virtual_time
async def test_a_thawed_replica_that_reconnects_is_not_fresh_before_it_knows_the_leases(world: World) -> None:
    class Slow(Network):
        def lag(self) -> float:
            return 0.3

    a, b = world.start("a", "b")
    await asyncio.sleep(2)
    for reconnects in (True, False):
        had = a.owned
        a.freeze()
        await asyncio.sleep(5)
        assert had and b.owned == ALL
        a.bus.network = Slow()
        a.thaw()
        if reconnects:
            a.bus.cut()
            a.bus.mend()
        for _ in range(2000):
            await asyncio.sleep(0.001)
            doubly = a.owned & b.owned
            assert not (doubly and a.partitions.fresh()), "it would write what another one owns"
        a.bus.network = Network()
        await asyncio.sleep(5)


@on_virtual_time
async def test_a_thawed_replica_listens_before_it_takes_from_a_silent_peer(world: World) -> None:
    a, b = world.start("a", "b")
    await asyncio.sleep(2)
    a.freeze()
    await asyncio.sleep(1.0)
    b.die()
    await asyncio.sleep(9.0)
    thawed = world.now
    a.thaw()
    await asyncio.sleep(4)
    assert a.owned == ALL
    taken = [at for at, change in a.events if at >= thawed and isinstance(change, Taken)]
    assert taken
    assert min(taken) >= thawed + GONE


@on_virtual_time
async def test_a_reconnected_replica_listens_before_it_takes_from_a_silent_peer(world: World) -> None:
    a, b = world.start("a", "b")
    await asyncio.sleep(2)
    a.bus.cut()
    await asyncio.sleep(0.5)
    b.die()
    await asyncio.sleep(8)
    assert not a.partitions.fresh()
    mended = world.now
    a.bus.mend()
    await asyncio.sleep(4)
    assert a.owned == ALL
    taken = [at for at, change in a.events if at >= mended and isinstance(change, Taken)]
    assert taken
    assert min(taken) >= mended + GONE


@on_virtual_time
async def test_nothing_moves_when_everybody_was_cut_off(world: World) -> None:
    world.start("a", "b", "c")
    await asyncio.sleep(2)
    began, before = world.now, [r.owned for r in world.replicas]
    for replica in world.replicas:
        replica.bus.cut()
    await asyncio.sleep(600)
    for replica in world.replicas:
        replica.bus.mend()
    await asyncio.sleep(5)
    assert [r.owned for r in world.replicas] == before
    assert not [e for r in world.replicas for e in r.events if e[0] > began]


@on_virtual_time
async def test_a_wiped_bus_begins_later_epochs(world: World) -> None:
    world.start("a", "b")
    await asyncio.sleep(2)
    wiped = world.now
    before = {p: r.partitions.epoch(p) for r in world.replicas for p in r.owned}
    world.server.wipe()
    await asyncio.sleep(2)
    assert world.owners() == Counter(ALL)
    after = {p: r.partitions.epoch(p) for r in world.replicas for p in r.owned}
    assert all(_epoch(after[p]) > _epoch(before[p]) for p in ALL)
    assert max(world.gaps(wiped)) <= SETTLE + 0.1


@on_virtual_time
async def test_after_a_wipe_nothing_is_taken_from_a_peer_that_has_not_heard_of_it(world: World) -> None:
    class Slow(Network):
        def lag(self) -> float:
            return 2.0

    a, b = world.start("a", "b")
    await asyncio.sleep(3)
    a.bus.network = Slow()
    world.server.wipe()
    for _ in range(600):
        await asyncio.sleep(0.01)
        assert max(world.owners().values(), default=0) <= 1
    await asyncio.sleep(10)
    assert a.owned | b.owned == ALL and a.owned and b.owned


@on_virtual_time
async def test_a_living_active_replica_is_never_replaced(world: World) -> None:
    (a,) = world.start("a", count=1)
    await asyncio.sleep(1)
    assert a.owned == {0}
    standbys = world.start(*(f"s{n}" for n in range(5)), count=1)
    await asyncio.sleep(5)
    assert a.owned == {0}
    assert len(a.events) == 1
    left = world.now
    await a.leave()
    await asyncio.sleep(0.2)
    assert sum(len(s.owned) for s in standbys) == 1
    assert max(world.gaps(left)) <= 0.1


@on_virtual_time
async def test_epochs_follow_the_present_owner_and_refuse_former_and_invented_ones(world: World) -> None:
    epochs = Epochs(world.server.connect())
    task = asyncio.create_task(epochs.run())
    a, b = world.start("a", "b")
    await asyncio.sleep(2)
    partition = min(a.owned)
    old = _epoch(a.partitions.epoch(partition))
    assert epochs.latest("cluster", partition) == old
    assert await epochs.judge("cluster", partition, old) == "current"
    assert await epochs.judge("cluster", partition, Epoch(old.created, old.revision + 100)) == "unknown"
    assert await epochs.judge("job", partition, old) == "unknown"
    await a.leave()
    await asyncio.sleep(0.2)
    new = _epoch(b.partitions.epoch(partition))
    assert new > old
    assert await epochs.judge("cluster", partition, old) == "old"
    assert await epochs.judge("cluster", partition, new) == "current"
    world.server.wipe()
    await asyncio.sleep(2)
    assert await epochs.judge("cluster", partition, new) == "old"
    task.cancel()


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_each_partition_ends_with_one_owner_and_no_epoch_has_two(seed: int) -> None:
    async def main() -> None:
        world = World()
        world.start("r0", "r1", "r2")
        up = dict.fromkeys(["r0", "r1", "r2"], "running")
        for step in range(25):
            await asyncio.sleep(random.uniform(0, 3))
            replica = random.choice(world.replicas)
            await _disturb(world, replica, up, step)
        for replica in world.replicas:
            if up[replica.name] != "gone":
                replica.thaw()
                replica.bus.mend()
        await asyncio.sleep(10)
        assert world.owners() == Counter(ALL)
        _no_epoch_twice(world)
        for replica in world.replicas:
            replica.die()

    random.seed(seed)
    run_virtual(main())


async def _disturb(world: World, replica: Replica, up: dict[str, str], step: int) -> None:
    """One random fault or its end; at least one replica stays."""
    state = up[replica.name]
    match random.choice(["freeze", "cut", "wipe", "end", "end", "start", "leave", "die"]):
        case "freeze" if state == "running":
            replica.freeze()
            up[replica.name] = "frozen"
        case "cut" if state == "running":
            replica.bus.cut()
            up[replica.name] = "cut"
        case "end" if state == "frozen":
            replica.thaw()
            up[replica.name] = "running"
        case "end" if state == "cut":
            replica.bus.mend()
            up[replica.name] = "running"
        case "wipe":
            world.server.wipe()
        case "start" if len([s for s in up.values() if s != "gone"]) < 6:
            world.start(f"n{step}")
            up[f"n{step}"] = "running"
        case ("leave" | "die") as how if state == "running" and list(up.values()).count("running") > 1:
            up[replica.name] = "gone"
            if how == "leave":
                await replica.leave()
            else:
                replica.die()
            world.replicas.remove(replica)


def _no_epoch_twice(world: World) -> None:
    taken = [(c.partition, c.epoch) for r in world.replicas for _, c in r.events if isinstance(c, Taken)]
    assert len(set(taken)) == len(taken)


def _epoch(epoch: Epoch | None) -> Epoch:
    assert epoch is not None
    return epoch


def test_a_heart_beat_stays_fresh_for_less_than_a_peer_waits() -> None:
    assert FRESH < GONE
