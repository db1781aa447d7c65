"""A controller's process: owns partitions, runs a loop for each, hands them over at the end (design §3)."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import structlog

from raybus.api.kinds import BY_KIND, ROOTS
from raybus.api.times import Instant
from raybus.bus.partitions import Lost, Partitions, Taken
from raybus.bus.port import Bus
from raybus.runtime.calm import Calm
from raybus.runtime.common import CommonSettings
from raybus.runtime.controller import Controller
from raybus.runtime.health import Health
from raybus.runtime.partition import Partition
from raybus.runtime.ready import begin, bus_ready
from raybus.runtime.root_gauges import readings
from raybus.runtime.service import Service
from raybus.telemetry import metrics

S = TypeVar("S", bound=CommonSettings)

log = structlog.get_logger()


async def controller_service(service: Service[S], *controllers: Controller[Any, Any]) -> None:
    """The main coroutine of a controller's process. Raises BusError when the bus is not fit."""
    await bus_ready(service)
    partitions = Partitions(service.bus, service.name, service.replica)
    loops = Loops(controllers, service.bus, service.now)
    loops.report_to(service.health, partitions)
    with metrics.read_when_asked(lambda: loops.readings(partitions)):
        await begin(service, (partitions.run(), loops.run(partitions)), partitions.leave)


class Loops:
    """The loops of the partitions that this replica owns. One lease on partition p covers p of each controller
    (job-ctl has `job` and `cron`)."""

    def __init__(self, controllers: Sequence[Controller[Any, Any]], bus: Bus, now: Callable[[], Instant]) -> None:
        self._controllers, self._bus, self._now = controllers, bus, now
        self._running: dict[int, list[tuple[Partition, asyncio.Task[None]]]] = {}

    def report_to(self, health: Health, partitions: Partitions) -> None:
        """Ready means: heart-beats are answered, and every owned partition is loaded and marked."""
        health.checks["partitions"] = lambda: "" if partitions.fresh() else "no heart-beat of ours was answered lately"
        health.checks["views"] = self.problem

    def problem(self) -> str:
        """Why the first loop that does not decide yet does not."""
        for number, loops in sorted(self._running.items()):
            for loop, _ in loops:
                if why := loop.problem or loop.behind.problem():
                    return f"partition {number}: {why}"
        return ""

    def readings(self, partitions: Partitions) -> Iterator[metrics.Readings]:
        """What `/metrics` shows of the roots and of the loops.

        A root is shown by the one replica that owns its partition: none while the partition is not loaded, and none
        while this replica cannot know what it owns (frozen or cut off, design §3).
        """
        numbers = [number for number in self._running if partitions.owns(number)] if partitions.fresh() else []
        loops = [loop for number in numbers for loop, _ in self._running[number]]
        waiting, working = [], []
        for controller in self._controllers:
            mine = [loop for loop in loops if loop.controller is controller and not loop.problem]
            yield from readings(controller.gauges, (root for loop in mine for root in loop.cache.shown()))
            kind = BY_KIND[ROOTS[controller.name]].token
            waiting.append(((kind, kind), float(sum(len(loop.dirty) for loop in mine))))
            working.append(((kind,), float(sum(len(loop.busy) for loop in mine))))
        # controller-runtime's names, for dashboards made for KubeRay (ADR 0131).
        yield metrics.Readings("workqueue_depth", "Roots that wait to be looked at.", ("name", "controller"), waiting)
        yield metrics.Readings(
            "controller_runtime_active_workers", "Roots that are looked at now.", ("controller",), working
        )

    async def run(self, partitions: Partitions) -> None:
        """Begin and end loops as partitions come and go, until cancelled."""
        owned, calm = metrics.OWNED.labels(f"{self._controllers[0].name}-ctl"), Calm(asyncio.get_running_loop().time)
        try:
            async for change in partitions.changes():
                match change:
                    case Taken(number, epoch):
                        loops = [Partition(c, number, epoch, self._bus, self._now, calm) for c in self._controllers]
                        self._running[number] = [(loop, asyncio.create_task(_forever(loop))) for loop in loops]
                    case Lost(number, why):
                        log.info("partition lost", partition=number, why=why)
                        await _stop(self._running.pop(number, []))
                owned.set(len(self._running))
        finally:
            for loops_and_tasks in self._running.values():
                await _stop(loops_and_tasks)


async def _forever(loop: Partition) -> None:
    """A loop that dies of a bug is logged and begun anew: the other partitions go on."""
    while True:
        try:
            await loop.run()
        except Exception:
            log.exception("a partition's loop broke, beginning anew", partition=loop.number)
            await asyncio.sleep(1)


async def _stop(loops: list[tuple[Partition, asyncio.Task[None]]]) -> None:
    for _, task in loops:
        task.cancel()
    await asyncio.gather(*(task for _, task in loops), return_exceptions=True)
