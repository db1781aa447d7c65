"""The prober's loop: takes partitions and has a desk for each (design §3, "Facts have a time")."""

import asyncio

import structlog

from raybus.bus.partitions import Lost, Partitions, Taken
from raybus.prober.asking import Tools
from raybus.prober.desk import Desk
from raybus.prober.ports import Epochs
from raybus.runtime.behind import Behind
from raybus.telemetry import metrics

SERVICE = "prober"
RESTART_WAIT = 1.0

log = structlog.get_logger()


async def run_prober(partitions: Partitions, tools: Tools, epochs: Epochs, behind: Behind) -> None:
    """Work on the asks of the partitions that are ours, until cancelled. `behind` takes those of a later release."""
    desks: dict[int, asyncio.Task[None]] = {}
    try:
        async for change in partitions.changes():
            match change:
                case Taken(number, _):
                    desks[number] = asyncio.create_task(_forever(number, tools, epochs, behind))
                case Lost(number, why):
                    log.info("partition lost", partition=number, why=why)
                    await _stop(desks.pop(number, None))
            metrics.OWNED.labels(SERVICE).set(len(desks))
    finally:
        for desk in desks.values():
            await _stop(desk)


async def _forever(number: int, tools: Tools, epochs: Epochs, behind: Behind) -> None:
    """A desk that breaks is logged and begun anew: the other partitions go on."""
    while True:
        try:
            await Desk(number, tools, epochs, behind).run()
        except Exception:
            log.exception("bug while following asks, beginning anew", partition=number)
        await asyncio.sleep(RESTART_WAIT)


async def _stop(desk: asyncio.Task[None] | None) -> None:
    if desk is not None:
        desk.cancel()
        await asyncio.gather(desk, return_exceptions=True)
