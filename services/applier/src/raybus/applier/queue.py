"""Decisions under way: roots in parallel, one root in order, and of those that wait the newest (design §3)."""

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple

import structlog

from raybus.api.decision import Delete
from raybus.applier.aftermath import Teller
from raybus.applier.calls import Fenced
from raybus.applier.carry import Carrier, Run
from raybus.applier.job import Job, RootKey
from raybus.applier.memory import Memory, RootMemory
from raybus.bus.port import BusError, Work

KEEP_ALIVE = 2.0
"""Seconds between two in-progress acknowledgements (`ack_wait` is 5 s): in a storm hundreds of Decisions wait."""
BUS_WAIT = 1.0
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds until a Decision that failed comes again: they double from delivery to delivery."""
SHORTEST_REST, LONGEST_REST = 0.5, 10.0
"""Seconds for which a Decision goes back to the bus that found no room."""

log = structlog.get_logger()


class Place(NamedTuple):
    """A Decision that is held. `makes`: the namespace in which it makes or changes objects, "" when it does not. `age`:
    of its root, by the order in which roots were first seen. `since`: seconds by the loop's clock."""

    work: Work
    makes: str
    age: int
    since: float


class Queue:
    """At most `limit` Decisions are held at once; the others stay on the bus, where a newer one replaces them.

    Those that make objects, and only they, go back to the bus when there is no room, instead of keeping what follows
    them waiting: behind thousands of clusters that begin, those that are ready would never be seen to be (ADR 0097).
    """

    def __init__(self, carrier: Carrier, teller: Teller, limit: int) -> None:
        self._carrier, self._teller, self._limit = carrier, teller, limit
        self._room = asyncio.Semaphore(limit)
        self._held: dict[int, Place] = {}
        self._waiting: dict[RootKey, tuple[Job, Memory]] = {}
        self._running: dict[RootKey, Job | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def offer(self, job: Job, memory: Memory) -> None:
        """Take a Decision; returns once there is room for it, or when it has gone back to the bus."""
        running = self._running.get(job.key)
        if running is not None and running.work.message == job.work.message:
            return
        place = self._place(job, memory)
        if place.makes and job.key not in self._running and self._has_to_rest(place):
            await self._acknowledge(job.work, self._rest())
            return
        self._held[id(job.work)] = place
        try:
            if not place.makes:
                await self._room.acquire()
        except asyncio.CancelledError:
            del self._held[id(job.work)]
            self._spawn(self._acknowledge(job.work, 0.0))
            raise
        older = self._waiting.pop(job.key, None)
        if older is not None and older[0].work.message == job.work.message:
            # Delivered once more: to acknowledge the first delivery would take the Decision itself off the queue.
            self._let_go(older[0].work)
        elif older is not None:
            self._spawn(self._settle(older[0].work, None))
        self._waiting[job.key] = (job, memory)
        if job.key not in self._running:
            self._running[job.key] = None
            self._spawn(self._run_root(job.key))

    async def keep_alive(self) -> None:
        """Extend the deliveries of everything held, until cancelled."""
        while True:
            await asyncio.sleep(KEEP_ALIVE)
            for place in list(self._held.values()):
                try:
                    await place.work.in_progress()
                except BusError as error:
                    log.warning("deliveries cannot be extended", error=str(error))
                    break

    def _place(self, job: Job, memory: Memory) -> Place:
        makes = any(not isinstance(intent, Delete) for intent in job.message.intents)
        namespace = job.message.root.namespace if makes and not job.message.urgent else ""
        return Place(job.work, namespace, memory.of(job.key).age, asyncio.get_running_loop().time())

    def _has_to_rest(self, place: Place) -> bool:
        """Whether there is no room for a root that begins: one namespace has half of it at most. A root that is older
        than all that are held always finds room, so that none rests for ever."""
        making = [held for held in self._held.values() if held.makes]
        near = sum(held.makes == place.makes for held in making)
        full = len(making) >= self._limit or near >= max(1, self._limit // 2)
        return full and place.age > min(held.age for held in making)

    def _rest(self) -> float:
        """Seconds until there may be room: half of the time for which the oldest place is taken already."""
        taken = asyncio.get_running_loop().time() - next(iter(self._held.values())).since
        return min(max(taken / 2, SHORTEST_REST), LONGEST_REST)

    def release(self, partition: int) -> None:
        """The partition is another replica's now: hand back at once what waits; what runs is stopped by its fence."""
        for key, (job, _) in list(self._waiting.items()):
            if job.partition == partition:
                del self._waiting[key]
                self._spawn(self._settle(job.work, 0.0))

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run_root(self, key: RootKey) -> None:
        try:
            while key in self._waiting:
                job, memory = self._waiting.pop(key)
                self._running[key] = job
                run, again = await self._carry(job, memory)
                self._spawn(self._end(job, run, again))
        finally:
            del self._running[key]

    async def _carry(self, job: Job, memory: Memory) -> tuple[Run | None, float | None]:
        """What became of a Decision, and in how many seconds it has to come again (None = never)."""
        name = str(job.message.root.ref)
        remembered = memory.of(job.key)
        try:
            run = await self._carrier.carry(job, memory)
        except Fenced as error:
            log.info("decision left to whom it belongs", root=name, why=str(error))
            return None, error.wait
        except BusError as error:
            log.warning(
                "the view could not be told, the decision will be carried out again", root=name, error=str(error)
            )
            return None, BUS_WAIT
        except Exception:
            log.exception("bug while carrying out a decision", root=name)
            return None, _back_off(remembered)
        if run.pending:
            again = _back_off(remembered)
            log.warning("decision will be tried again", root=name, error=run.pending, seconds=again)
            return run, min(again, run.rests or again)
        remembered.failures = 0
        return run, min(run.rests, LONGEST_WAIT) or None

    async def _end(self, job: Job, run: Run | None, again: float | None) -> None:
        try:
            if run is not None:
                await self._teller.tell(run)
        except Exception:
            log.exception("bug while telling of a decision", root=str(job.message.root.ref))
        finally:
            await self._settle(job.work, again)

    async def _settle(self, work: Work, again: float | None) -> None:
        """Let go of a delivery that had its place."""
        try:
            await self._acknowledge(work, again)
        finally:
            self._let_go(work)

    def _let_go(self, work: Work) -> None:
        if not self._held.pop(id(work)).makes:
            self._room.release()

    async def _acknowledge(self, work: Work, again: float | None) -> None:
        try:
            if again is None:
                await work.done()
            else:
                await work.again(again)
        except BusError as error:
            log.warning("delivery not acknowledged, it will come again", subject=work.message.subject, error=str(error))

    def _spawn(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _back_off(remembered: RootMemory) -> float:
    remembered.failures += 1
    return min(FIRST_WAIT * 2.0 ** min(remembered.failures - 1, 10), LONGEST_WAIT)
