"""A controller's process: owns partitions, runs a loop for each, hands them over at the end (design §3)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from raybus.api.times import Instant
from raybus.bus.partitions import Lost, Partitions, Taken
from raybus.bus.port import Bus
from raybus.runtime.controller import Controller
from raybus.runtime.health import Health
from raybus.runtime.partition import Partition
from raybus.telemetry import metrics

log = structlog.get_logger()


async def run_controllers(
    controllers: Sequence[Controller[Any, Any]],
    partitions: Partitions,
    bus: Bus,
    now: Callable[[], Instant],
    health: Health,
) -> None:
    """Decide for every partition that this replica owns, until cancelled.

    One lease on partition p covers p of each of `controllers` (job-ctl has `job` and `cron`). A loop that dies of a
    bug is logged and begun anew: the other partitions go on.
    """
    running: dict[int, list[tuple[Partition, asyncio.Task[None]]]] = {}
    health.checks["partitions"] = lambda: "" if partitions.fresh() else "no heart-beat of ours was answered lately"
    health.checks["views"] = lambda: _first_problem(running)
    service = controllers[0].name
    try:
        async for change in partitions.changes():
            match change:
                case Taken(number, epoch):
                    loops = [Partition(controller, number, epoch, bus, now) for controller in controllers]
                    running[number] = [(loop, asyncio.create_task(_forever(loop))) for loop in loops]
                case Lost(number, why):
                    log.info("partition lost", partition=number, why=why)
                    await _stop(running.pop(number, []))
            metrics.OWNED.labels(service).set(len(running))
    finally:
        for loops_and_tasks in running.values():
            await _stop(loops_and_tasks)


def _first_problem(running: dict[int, list[tuple[Partition, asyncio.Task[None]]]]) -> str:
    for number, loops in sorted(running.items()):
        for loop, _ in loops:
            if loop.problem:
                return f"partition {number}: {loop.problem}"
    return ""


async def _forever(loop: Partition) -> None:
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
