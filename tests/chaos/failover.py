"""`make failover`: how soon others go on when a process is killed, stopped, added or removed, under load.

  failover.py [--rounds 6] [--clusters 64] [--bus-away 60]

What counts as going on: for a controller, the first Decision about a change that was made when its owner was gone
already; for the watcher, the first state on the bus of an object that was made then.
Exit status 1 if anything takes longer than it may, or is missed or done twice.
"""

import argparse
import asyncio
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import judge
from history import Cluster
from leases import holder, p99
from listening import Ear, listening
from stage import Run, Wanted, leave, recorded, running, say, until_none
from workload import ray_cluster

from raybus.dev.stack import NATS, SERVICES, readiness

REPLICAS = {"cluster-ctl": 2, "watcher": 2}
CONTROLLER = "cluster-ctl"
SETTLED = 3.0
"""Seconds in which a replica that is ready gets its partitions."""
PATIENCE = 60.0
UNDER_WAY = 3.0
"""Seconds after the loss of the bus in which the cluster finishes what was asked of it before."""
LIMITS = {"kill_p99_s": 2.5, "stop_p99_s": 0.2, "scale_p99_s": 0.2, "watcher_max_s": 3.0, "taken_from_living": 0}
"""What the issue allows: seconds, and how often a living replica may lose a partition under load."""


T = TypeVar("T")


@dataclass
class Measured:
    """Seconds of every single take-over, by the name of its figure."""

    kill: list[float] = field(default_factory=list)
    stop: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    watcher: list[float] = field(default_factory=list)
    taken_from_living: int = 0

    def figures(self) -> dict[str, float]:
        """The last line."""
        return {
            "kill_p99_s": p99(self.kill),
            "stop_p99_s": p99(self.stop),
            "scale_p99_s": p99(self.scale),
            "watcher_max_s": max(self.watcher, default=0.0),
            "taken_from_living": self.taken_from_living,
        }


class Failover:
    """The measurements, one after the other, on one stage."""

    def __init__(self, run: Run, clusters: int) -> None:
        self._run, self._clusters = run, clusters
        self._stack, self._api = run.hands.stack, run.hands.api
        self._names = [f"c{n:03d}" for n in range(clusters)]
        self._extra = 0
        self.measured = Measured()

    async def all(self, rounds: int, bus_away: float) -> list[str]:
        """Everything; returns what was lost or done twice."""
        await self._begin()
        load = asyncio.create_task(self._load())
        try:
            for _ in range(rounds):
                await self._kill_controller()
            for _ in range(rounds):
                await self._kill_watcher()
            for number in range(rounds):
                await self._stop_controller(self._stack.names(CONTROLLER)[number % 2])
            await self._scale()
        finally:
            load.cancel()
        await self._bus_away(bus_away)
        left = await until_none(self._unfinished, "everything is as it was wanted")
        history = self._run.history.ordered()
        doubles = [*judge.doubled_pods(history), *judge.doubled_children(history)]
        return [*left, *doubles, *await leave(self._run)]

    # ---- what users do

    async def _begin(self) -> None:
        """All clusters at once: nobody may lose a partition for being busy."""
        async with listening(self._stack.nats_url) as ear:
            before = time.time()
            for name in self._names:
                await self._make(name)
            await until_none(self._unfinished, f"{self._clusters} clusters are ready")
            self.measured.taken_from_living = len(list(ear.since(before, "$KV")))

    async def _make(self, name: str) -> None:
        self._run.workload.wanted_clusters.add(name)
        await self._api.insist("POST", self._api.rays("rayclusters"), ray_cluster(name, 1))

    async def _touch(self, name: str) -> None:
        """A change that needs a Decision."""
        held = self._run.history.now.get(("raycluster", name))
        count = 1 if isinstance(held, Cluster) and held.desired.get("small") == 2 else 2
        groups = ray_cluster(name, count)["spec"]["workerGroupSpecs"]
        await self._api.insist("PATCH", self._api.rays("rayclusters", name), {"spec": {"workerGroupSpecs": groups}})

    async def _load(self) -> None:
        """The second half of the clusters changes all the time."""
        while True:
            for name in self._names[self._clusters // 2 :]:
                await asyncio.sleep(0.1)
                if ("raycluster", name) in self._run.history.now:
                    await self._touch(name)

    def _unfinished(self) -> list[str]:
        return self._run.workload.unfinished()

    def _one_in_each(self, partitions: set[int]) -> dict[int, str]:
        """A cluster of the quiet half for each partition that has one."""
        mine = {judge.partition(self._run.namespace, name): name for name in self._names[: self._clusters // 2]}
        return {partition: name for partition, name in mine.items() if partition in partitions}

    def _held_by(self, name: str) -> set[int]:
        now = time.time()
        return {p for p in range(16) if holder(self._run.leases.kept, CONTROLLER, p, now) == name}

    # ---- the measurements

    async def _kill_controller(self) -> None:
        """SIGKILL of the replica with the most partitions; the other one decides."""
        name = Counter({n: len(self._held_by(n)) for n in self._stack.names(CONTROLLER)}).most_common(1)[0][0]
        orphans = self._one_in_each(self._held_by(name))
        async with listening(self._stack.nats_url) as ear:
            await asyncio.to_thread(self._stack.kill, name)
            killed = time.time()
            await asyncio.gather(*map(self._touch, orphans.values()))
            for partition, root in orphans.items():
                self.measured.kill.append(await self._until(partial(_decided, ear, killed, partition, root)) - killed)
        say(f"killed {name}: {len(orphans)} partitions decided again, slowest after {self.measured.kill[-1]:.2f} s")
        await asyncio.to_thread(self._stack.restart, name)
        await self._settle()

    async def _kill_watcher(self) -> None:
        name = holder(self._run.leases.kept, "watcher", 0, time.time())
        self._extra += 1
        root = f"w{self._extra:03d}"
        async with listening(self._stack.nats_url) as ear:
            await asyncio.to_thread(self._stack.kill, name)
            killed = time.time()
            await self._make(root)
            words = f"{self._run.namespace}.{root}.raycluster.{root}"
            seen = await self._until(lambda: next((h.at for h in ear.since(killed, "view.") if words in h.subject), 0))
        self.measured.watcher.append(seen - killed)
        say(f"killed {name}: another one publishes after {seen - killed:.2f} s")
        await asyncio.to_thread(self._stack.restart, name)
        await self._settle()

    async def _stop_controller(self, name: str) -> None:
        """SIGTERM of a replica: how long its partitions have no owner."""
        await self._end(name, self.measured.stop)
        await asyncio.to_thread(self._stack.restart, name)
        await self._settle()

    async def _scale(self) -> None:
        """2 -> 3 -> 1 -> 2: partitions that move, with the time in which they have no owner."""
        third = f"{CONTROLLER}-2"
        async with listening(self._stack.nats_url) as ear:
            began = time.time()
            await asyncio.to_thread(self._stack.start_service, CONTROLLER, 2)
            await self._settle()
            gaps, _ = _gaps(ear, began)
            self.measured.scale += gaps
            say(f"a third replica: {len(gaps)} partitions moved, at most {max(gaps, default=0.0):.3f} s without owner")
        for name in (third, f"{CONTROLLER}-1"):
            await self._end(name, self.measured.scale)
        await asyncio.to_thread(self._stack.start_service, CONTROLLER, 1)
        await self._settle()

    async def _end(self, name: str, into: list[float]) -> None:
        async with listening(self._stack.nats_url) as ear:
            began = time.time()
            self._stack.signal(name, signal.SIGTERM)
            await asyncio.to_thread(self._stack.procs[name].popen.wait)
            ended = time.time()
            await self._until(lambda: not _gaps(ear, began)[1])
            gaps, _ = _gaps(ear, began)
        assert gaps, f"{name} handed nothing over"
        del self._stack.procs[name]
        into += gaps
        worst = max(gaps, default=0.0)
        say(f"stopped {name} in {ended - began:.2f} s: {len(gaps)} partitions, at most {worst:.3f} s without owner")

    async def _bus_away(self, seconds: float) -> None:
        """Nothing is marked failed, readiness says why, everything goes on by itself."""
        await asyncio.to_thread(self._stack.kill, NATS)
        await asyncio.sleep(UNDER_WAY)
        gone = time.time()
        for name in self._names[:8]:
            await self._touch(name)
        await asyncio.sleep(min(seconds, 10))
        said = {
            p.name: await asyncio.to_thread(readiness, p.health_port)
            for p in self._stack.procs.values()
            if p.service != NATS
        }
        ready = [name for name, why in said.items() if not why]
        await asyncio.sleep(max(0.0, seconds - 10))
        changed = [seen.name for seen in self._run.history.seen if seen.at > gone and seen.kind == "pod"]
        if ready or changed:
            raise AssertionError(f"without a bus {ready} called themselves ready, and these pods changed: {changed}")
        await asyncio.to_thread(self._stack.start_bus)
        say(f"the bus was away for {seconds:.0f} s; readiness said for instance: {said[CONTROLLER]}")

    async def _settle(self) -> None:
        """Until all replicas are ready, and have what they should."""
        await asyncio.to_thread(self._stack.wait_ready, PATIENCE)
        await asyncio.sleep(SETTLED)

    async def _until(self, found: Callable[[], T]) -> T:
        """The first true value. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while not (value := found()):
                await asyncio.sleep(0.02)
            return value


def _decided(ear: Ear, since: float, partition: int, root: str) -> float:
    """When a Decision about a quiet root came after it was changed; 0.0 = not yet."""
    later = (h.at for h in ear.since(since, f"intent.cluster.{partition}.") if h.subject.endswith(f".{root}"))
    return next(later, 0.0)


def _gaps(ear: Ear, since: float) -> tuple[list[float], set[int]]:
    """Seconds between a partition's release and its next owner; partitions that still wait for one."""
    gaps, released = [], dict[int, float]()
    for heard in ear.since(since, f"$KV.ctl.lease.{CONTROLLER}."):
        if not heard.holder:
            released[heard.partition] = heard.at
        elif heard.partition in released:
            gaps.append(heard.at - released.pop(heard.partition))
    return gaps, set(released)


async def main() -> int:
    """The whole run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--clusters", type=int, default=64)
    parser.add_argument("--bus-away", type=float, default=60.0)
    asked = parser.parse_args()
    async with running(Wanted({s: REPLICAS.get(s, 1) for s in SERVICES})) as run:
        failover = Failover(run, asked.clusters)
        wrong = [*await recorded(run, failover.all(asked.rounds, asked.bus_away)), *run.hands.stack.ended()]
        figures: dict[str, Any] = failover.measured.figures()
        for text in wrong:
            say(f"wrong: {text}")
        shown = " ".join(f"{name}={value:.3g}" for name, value in figures.items())
        say(f"failover: {shown} missed_or_repeated={len(wrong)}")
        return 1 if wrong or any(figures[name] > limit for name, limit in LIMITS.items()) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
