"""One simulated run: all services in one process on virtual time, faults by chance, invariants at each step.

Everything comes from the seed, so a run repeats exactly (`make sim SEED=n`).
"""

import asyncio
import hashlib
import random
from dataclasses import dataclass, field

from raybus.testkit.sim_faults import FAULTS, Stage, draw_climate, heal
from raybus.testkit.sim_fences import FenceRules
from raybus.testkit.sim_jobs import JobRules
from raybus.testkit.sim_ledger import Ledger
from raybus.testkit.sim_pods import PodRules
from raybus.testkit.sim_process import CHECK_TIMEOUT, Process
from raybus.testkit.sim_settled import unsettled
from raybus.testkit.sim_workload import Workload
from raybus.testkit.sim_world import World
from raybus.testkit.virtual_time import VirtualLoop

START = 2.5
"""Seconds before the workload begins: half of the runs begin with faults at once."""
TROUBLED = 30.0
"""Seconds of workload and faults."""
PATIENCE = 240.0
"""Seconds after the last fault within which everything has to have come to rest."""
REST = 6.0
"""Seconds for which it has to stay so."""


@dataclass
class Outcome:
    """`wrong`: what was violated, "" for a good run. `story`: what happened, line by line. `settled`: seconds from the
    end of all faults until rest. `digest`: of every write to Kubernetes and the bus: equal runs have equal ones."""

    seed: int
    wrong: str = ""
    story: list[str] = field(default_factory=list)
    settled: float = 0.0
    digest: str = ""


def simulate(seed: int) -> Outcome:
    """One run."""
    random.seed(seed)
    outcome = Outcome(seed)
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        run = loop.run_until_complete(_begin(outcome))
        loop.run_until_complete(run.go())
    finally:
        _clear(loop)
        asyncio.set_event_loop(None)
        loop.close()
    return outcome


def _clear(loop: VirtualLoop) -> None:
    """End every task, also those of killed processes, so that none is left to the next run."""
    loop.thaw_all()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.wait(tasks, timeout=60.0) if tasks else asyncio.sleep(0))
    loop.run_until_complete(loop.shutdown_asyncgens())


async def _begin(outcome: Outcome) -> "Run":
    return Run(outcome)


class Run:
    """The parts of one run."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.world = world = World(outcome.seed)
        self._rng = rng = world.chance("faults")
        self._ledger = Ledger(world.api.store, lambda: world.time)
        self._fences = FenceRules(self._ledger, world.api, world.bus)
        PodRules(self._ledger)
        JobRules(self._ledger, world.ray, self._skew, CHECK_TIMEOUT)
        self._processes = [Process(world, name, self._fences.sent) for name in _replicas(rng)]
        self._fences.processes = {process.name: process for process in self._processes}
        self._stage = Stage(world, self._processes, rng, self._note, self._wiped)
        self._most_skew = 0.0
        self._digest = hashlib.blake2s()
        world.api.store.observers.append(lambda change: self._digest.update(change.raw))
        world.bus.observers.append(lambda _, message: self._digest.update(message.data))
        falling = world.chance("submitters")
        world.submitters.falls = lambda: falling.random() < 0.03 and world.time < START + TROUBLED

    async def go(self) -> None:
        """Run until rest or the first violation."""
        for process in self._processes:
            process.start()
        workload = Workload(self.world, self._note)
        ways = [asyncio.create_task(self._faults()), asyncio.create_task(self._work(workload))]
        pending = set(ways)
        while pending and not self._is_wrong():
            done, pending = await asyncio.wait(pending, timeout=0.25)
            for way in done:
                way.result()
        if not self._is_wrong():
            workload.end()
            heal(self._stage)
            self._note("all faults have ended")
            await self._rest()
        self.outcome.digest = self._digest.hexdigest()
        self.outcome.wrong = "\n".join(str(v) for v in self._ledger.violations[:5])

    async def _work(self, workload: Workload) -> None:
        await asyncio.sleep(START if self._rng.random() < 0.5 else 0.1)
        await workload.run(TROUBLED)

    async def _faults(self) -> None:
        rng = self._rng
        kinds = [name for name in FAULTS if rng.random() < 0.4] or list(FAULTS)
        mean = rng.choice((2.0, 4.0, 8.0))
        if rng.random() < 0.3:
            # Bad weather from the first to the last second.
            self._stage.world.climate = draw_climate(rng)
            self._note(str(self.world.climate))
        self._note(f"faults every {mean:.0f} s: {', '.join(kinds)}")
        while self.world.time < START + TROUBLED:
            await asyncio.sleep(rng.expovariate(1 / mean))
            FAULTS[rng.choice(kinds)](self._stage)
            self._most_skew = max(self._most_skew, self._skew())

    def _skew(self) -> float:
        """By how much wall clocks have differed at most so far."""
        found = [0.0, *self.world.skew.values()]
        self._most_skew = max(getattr(self, "_most_skew", 0.0), max(found) - min(found))
        return self._most_skew

    async def _rest(self) -> None:
        """Wait until everything is as it should be, and stays so."""
        healed, since = self.world.time, None
        problem = "nothing was looked at yet"
        while self.world.time < healed + PATIENCE:
            await asyncio.sleep(1.0)
            if self._is_wrong():
                return
            problem = unsettled(self.world)
            if problem:
                since = None
            elif since is None:
                since = self.world.time
            elif self.world.time - since >= REST:
                self.outcome.settled = since - healed
                return
        self._ledger.violate("everything comes to rest", problem)

    def _is_wrong(self) -> bool:
        for process in self._processes:
            if process.died is not None:
                self._ledger.violate("no service dies", f"{process.life}: {process.died!r}")
                process.died = None
        return bool(self._ledger.violations)

    def _note(self, text: str) -> None:
        self.outcome.story.append(f"{self.world.time:8.3f} s  {text}")

    def _wiped(self) -> None:
        self._ledger.wiped_at = self.world.time
        self._fences.wiped()


def _replicas(rng: random.Random) -> list[str]:
    """One or two of each service."""
    services = ["watcher", "cluster-ctl", "job-ctl", "applier", "prober"]
    if rng.random() < 0.1:
        services.append("serve-ctl")
    return [f"{service}-{number}" for service in services for number in range(1 if rng.random() < 0.3 else 2)]
