"""The applier's loop: takes partitions, reads their Decisions, hands them to the queue (design §3 "Applier")."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from raybus.api.kinds import ROOTS
from raybus.api.schema import Newer
from raybus.api.subjects import parse_root, partition_filter
from raybus.api.times import Instant
from raybus.applier.aftermath import Teller
from raybus.applier.budget import Budget
from raybus.applier.calls import Calls
from raybus.applier.carry import Carrier, Epochs
from raybus.applier.job import Invalid, read_job
from raybus.applier.memory import Memory
from raybus.applier.queue import Queue
from raybus.bus.partitions import Lost, Partitions, Taken
from raybus.bus.port import Bus, BusError, Work
from raybus.kube.port import Sender
from raybus.runtime.behind import Behind
from raybus.telemetry import metrics

SERVICE = "applier"
RESTART_WAIT = 1.0
NEWER_WAIT = 5.0
"""Seconds until a Decision that only a later release can read comes again, perhaps to a replica of that release."""

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Ports:
    """What the applier needs of the world. `now`: wall clock."""

    bus: Bus
    sender: Sender
    partitions: Partitions
    epochs: Epochs
    now: Callable[[], Instant]


class Applier:
    """One replica. `replica` names it in events; `max_in_flight` and `max_held` as in the settings. `behind`: the
    Decisions of a later release."""

    def __init__(self, ports: Ports, replica: str, max_in_flight: int, max_held: int) -> None:
        self._bus, self._partitions = ports.bus, ports.partitions
        calls = Calls(ports.sender, Budget(max_in_flight), ports.partitions)
        self._carrier = Carrier(ports.bus, calls, ports.epochs, ports.now)
        teller = Teller(calls, self._carrier.record, f"{SERVICE}-{replica}", ports.now)
        self._queue = Queue(self._carrier, teller, max_held)
        self.behind = Behind(SERVICE, "INTENT", lasts=3 * NEWER_WAIT)
        self._intakes: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Carry out Decisions of the partitions that are ours, until cancelled; then give back what waits."""
        alive = asyncio.create_task(self._queue.keep_alive())
        try:
            async for change in self._partitions.changes():
                match change:
                    case Taken(number, _):
                        await self._take(number)
                    case Lost(number, why):
                        log.info("partition lost", partition=number, why=why)
                        await self._leave(number)
                metrics.OWNED.labels(SERVICE).set(len(self._intakes))
        finally:
            for number in list(self._intakes):
                await self._leave(number)
            await self._queue.drain()
            alive.cancel()

    async def _take(self, partition: int) -> None:
        self._intakes[partition] = asyncio.create_task(self._forever(partition))

    async def _leave(self, partition: int) -> None:
        if (task := self._intakes.pop(partition, None)) is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._queue.release(partition)

    async def _forever(self, partition: int) -> None:
        """Read the Decisions of one partition, of all controllers: each consumer costs the bus something also when
        nothing happens. What breaks the reading is logged and begun anew."""
        while True:
            try:
                await self._read(partition)
            except BusError as error:
                log.warning("decisions cannot be read, beginning anew", partition=partition, error=str(error))
            except Exception:
                log.exception("bug while reading decisions", partition=partition)
            await asyncio.sleep(RESTART_WAIT)

    async def _read(self, partition: int) -> None:
        memory = Memory(await self._bus.stream_created("VIEW"))
        async for work in self._bus.work(partition_filter("intent", "*", partition), f"{SERVICE}-{partition}"):
            try:
                job = read_job(work)
            except Newer as error:
                self.behind.met(work.message.subject, str(error))
                await work.again(NEWER_WAIT)
            except Invalid as error:
                await self._refuse(work, memory, str(error))
            else:
                self.behind.replaced(work.message.subject)
                await self._queue.offer(job, memory)

    async def _refuse(self, work: Work, memory: Memory, why: str) -> None:
        """Drop a message that cannot be read, saying so where its user looks; it never comes again."""
        subject = work.message.subject
        metrics.BAD_MESSAGES.labels(SERVICE, "intent").inc()
        log.error("message dropped: it is no Decision that can be carried out", subject=subject, why=why)
        try:
            controller, _, namespace, name = parse_root(subject)
        except ValueError:
            controller = ""
        if controller in ROOTS:
            await self._carrier.refuse_invalid((controller, namespace, name), memory, why)
        await work.done()
