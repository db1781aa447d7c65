"""Ownership of partitions on a real nats-server: handover, outage, wipe."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest_asyncio

from raybus.api.messages import Epoch
from raybus.api.names import PARTITIONS
from raybus.bus import NatsBus
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import GONE, Lost, Partitions, Taken
from raybus.bus.rendezvous import best
from raybus.bus.streams import keep_streams
from raybus.testkit.following import until
from raybus.testkit.nats_server import CLUSTER, NatsServer

BusOf = Callable[[str], Awaitable[NatsBus]]
ALL = Counter(range(PARTITIONS))


class Replicas:
    """Replicas of cluster-ctl in this process, each with a connection of its own; `log`: what each gained and lost."""

    def __init__(self, bus_of: BusOf) -> None:
        self.live: dict[str, Partitions] = {}
        self.log: list[tuple[float, str, Taken | Lost]] = []
        self._bus_of = bus_of
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._buses: dict[str, NatsBus] = {}

    async def start(self, name: str) -> None:
        bus = await self._bus_of("cluster-ctl")
        partitions = Partitions(bus, "cluster-ctl", name)
        self._buses[name], self.live[name] = bus, partitions
        self._tasks[name] = [asyncio.create_task(partitions.run()), asyncio.create_task(self._record(name))]

    async def leave(self, name: str) -> None:
        await self.live[name].leave()
        await self.die(name)

    async def die(self, name: str) -> None:
        del self.live[name]
        for task in self._tasks.pop(name):
            task.cancel()
        await self._buses.pop(name).close()

    def owners(self) -> Counter[int]:
        return Counter(p for replica in self.live.values() for p in range(PARTITIONS) if replica.owns(p))

    async def settled(self) -> bool:
        return self.owners() == ALL and all(replica.fresh() for replica in self.live.values())

    def epochs(self) -> dict[int, Epoch]:
        found = {p: r.epoch(p) for r in self.live.values() for p in range(PARTITIONS) if r.owns(p)}
        return {p: epoch for p, epoch in found.items() if epoch is not None}

    async def _record(self, name: str) -> None:
        async for change in self.live[name].changes():
            self.log.append((asyncio.get_running_loop().time(), name, change))


@pytest_asyncio.fixture
async def replicas(bus_of: BusOf) -> AsyncIterator[Replicas]:
    watcher = await bus_of("watcher")
    keeper = asyncio.create_task(keep_streams(watcher, CLUSTER))
    three = Replicas(bus_of)
    for name in ("a", "b", "c"):
        await three.start(name)
    await until(three.settled)
    # The share of each is final once no partition has moved for two heart-beats.
    await _quiet(three)
    yield three
    for name in list(three.live):
        await three.die(name)
    keeper.cancel()


async def _quiet(replicas: Replicas) -> None:
    async def still() -> bool:
        before = len(replicas.log)
        await asyncio.sleep(0.5)
        return len(replicas.log) == before

    await until(still)


async def test_partitions_of_a_replica_that_leaves_are_taken_within_a_tenth_of_a_second(replicas: Replicas) -> None:
    began = asyncio.get_running_loop().time()
    lost = {p for p in range(PARTITIONS) if replicas.live["a"].owns(p)}
    assert lost
    await replicas.leave("a")

    def taken() -> dict[int, float]:
        return {c.partition: at - began for at, _, c in replicas.log if isinstance(c, Taken) and at >= began}

    async def all_taken() -> bool:
        return lost <= set(taken())

    await until(all_taken)
    assert max(taken().values()) <= 0.1


async def test_partitions_of_a_replica_that_dies_are_taken_after_its_silence(replicas: Replicas) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()
    await replicas.die("a")
    await until(replicas.settled)
    assert GONE - 0.3 < clock() - began < GONE + 0.5


async def test_a_fourth_replica_gets_the_share_that_rendezvous_hashing_names(replicas: Replicas) -> None:
    await replicas.start("d")
    names = {replica.me: replica for replica in replicas.live.values()}

    async def shared() -> bool:
        return all(names[best(p, names)].owns(p) for p in range(PARTITIONS))

    await until(shared)
    assert replicas.owners() == ALL


async def test_a_restarted_server_moves_nothing(replicas: Replicas, nats_server: NatsServer) -> None:
    before, moves = replicas.epochs(), len(replicas.log)
    nats_server.kill()

    async def stale() -> bool:
        return not any(replica.fresh() for replica in replicas.live.values())

    await until(stale)
    assert replicas.owners() == ALL
    nats_server.start()
    await until(replicas.settled)
    await _quiet(replicas)
    assert replicas.epochs() == before
    assert len(replicas.log) == moves


async def test_a_wiped_bus_begins_later_epochs_and_readers_of_epochs_follow(
    replicas: Replicas, nats_server: NatsServer, bus_of: BusOf
) -> None:
    epochs = Epochs(await bus_of("applier"))
    following = asyncio.create_task(epochs.run())
    before = replicas.epochs()
    nats_server.kill()
    nats_server.wipe()
    nats_server.start()

    async def anew() -> bool:
        now = replicas.epochs()
        return len(now) == PARTITIONS and all(now[p] > before[p] for p in now)

    await until(anew)
    await _quiet(replicas)
    now = replicas.epochs()
    assert all([await epochs.judge("cluster", p, now[p]) == "current" for p in now])
    assert all([await epochs.judge("cluster", p, before[p]) == "old" for p in now])
    following.cancel()
