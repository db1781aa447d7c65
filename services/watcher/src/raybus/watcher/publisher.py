"""Writes states to VIEW: many subjects at once, each in order, the newest state only, every write compare-and-set."""

import asyncio
from collections.abc import Callable, Mapping, MutableMapping

import structlog
from msgspec import Struct

from raybus.api.messages import H_AT, H_EPOCH, H_GONE, H_RV, H_SCHEMA, H_UID, SCHEMA, TOMBSTONE_TTL, Epoch
from raybus.api.times import Instant
from raybus.bus.port import Bus, BusError, Conflict
from raybus.telemetry import metrics
from raybus.telemetry.traces import span
from raybus.watcher.versions import LEFT, Held, Item, held_by, is_news, older

WRITERS = 48
"""Writes under way at the same time: what one bus connection needs to be busy."""
FULL = 1000
"""Waiting subjects from which on the watches are held back (about 10 MB of pods)."""
RESTING = 500
"""Subjects that rest at most; further states go out at once."""
ROUNDS = 5
"""Times a write is tried against competitors before it waits for its turn again."""
RETRY = 1.0
FROZEN = 0.05
"""Seconds between two looks whether this replica may write again."""

log = structlog.get_logger()


class Deposed(Exception):
    """Another watcher with a later epoch has written: this one has lost its lease and does not know it yet."""


class Unsure(BusError):
    """This replica cannot tell at the moment whether it still holds the lease."""


class Pending(Struct, frozen=True):
    """A state to be written; `at`: when it was observed; `since`: the same by the loop's clock."""

    item: Item
    at: Instant
    since: float
    parent: Mapping[str, str] = {}


class Barrier:
    """`passed` is set once all subjects that waited when it was made have been written."""

    def __init__(self, subjects: set[str]) -> None:
        self.subjects, self.passed = subjects, asyncio.Event()
        self.check()

    def done(self, subject: str) -> None:
        """One subject has nothing to wait for any more."""
        self.subjects.discard(subject)
        self.check()

    def check(self) -> None:
        """Set `passed` when nothing is left."""
        if not self.subjects:
            self.passed.set()


class Publisher:
    """One active watcher's way to VIEW. `held`: the objects that subjects hold as far as known, kept up to date here.
    `may_write`: false while this replica cannot be sure of its lease (`Partitions.fresh`). `problem`: why nothing
    gets through at present."""

    def __init__(self, bus: Bus, epoch: Epoch, held: MutableMapping[str, Held], may_write: Callable[[], bool]) -> None:
        self._bus, self._epoch, self._held, self._may_write = bus, epoch, held, may_write
        # Later epochs that are there from the beginning are left over from a bucket whose clock was ahead.
        self._latest = max([epoch, *(h.epoch for h in held.values() if h.epoch is not None)])
        self._waiting: dict[str, Pending] = {}
        self._resting: dict[str, tuple[Pending, asyncio.TimerHandle]] = {}
        self._writing: set[str] = set()
        self._barriers: list[Barrier] = []
        self._work, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self.problem = ""

    def offer(self, pending: Pending, patience: float = 0.0) -> None:
        """Take in a state; it replaces an older one of its subject that has not been written yet.

        `patience`: seconds that it may rest, for a later state to take its place or for the applier's echo to make it
        superfluous (ADR 0091).
        """
        subject, held = pending.item.subject, self._held.get(pending.item.subject)
        # What an object's end meets where nothing is known to be held is seen by looking (see `_write`).
        judged = held is not None or pending.item.data
        if judged and not self.is_waiting(subject) and not is_news(pending.item, held):
            metrics.VIEW_WRITES.labels("equal").inc()
            return
        now = asyncio.get_running_loop().time()
        if (resting := self._resting.pop(subject, None)) is not None:
            resting[1].cancel()
            patience = min(patience, resting[1].when() - now)
        if patience > 0 and subject not in self._waiting and len(self._resting) < RESTING:
            timer = asyncio.get_running_loop().call_at(now + patience, self._rested, subject)
            self._resting[subject] = pending, timer
        else:
            self._waiting[subject] = pending
            self._work.set()
        self._count()

    def _rested(self, subject: str) -> None:
        pending, _ = self._resting.pop(subject)
        if subject in self._writing or is_news(pending.item, self._held.get(subject)):
            self._waiting[subject] = pending
            self._work.set()
        else:
            metrics.VIEW_WRITES.labels("equal").inc()
            self._settled(subject)
        self._count()

    def _count(self) -> None:
        """Hold the watches back while too much waits."""
        waiting = len(self._waiting) + len(self._resting)
        metrics.VIEW_WAITING.set(waiting)
        if waiting >= FULL:
            self._room.clear()
        else:
            self._room.set()

    def _settled(self, subject: str) -> None:
        """There is nothing to be written to this subject any more."""
        for barrier in list(self._barriers):
            barrier.done(subject)

    def is_waiting(self, subject: str) -> bool:
        """Whether a state of `subject` is on its way."""
        return subject in self._waiting or subject in self._writing or subject in self._resting

    async def room(self) -> None:
        """Wait until further states may be offered."""
        await self._room.wait()

    async def written(self) -> None:
        """Wait until all that has been offered up to now is acknowledged (or has proved to be no news)."""
        barrier = Barrier({*self._waiting, *self._writing, *self._resting})
        self._barriers.append(barrier)
        await barrier.passed.wait()
        self._barriers.remove(barrier)

    async def run(self) -> None:
        """Write until cancelled. Raises Deposed."""
        slots = asyncio.Semaphore(WRITERS)
        async with asyncio.TaskGroup() as tasks:
            while True:
                subject = next((subject for subject in self._waiting if subject not in self._writing), None)
                if subject is None:
                    self._work.clear()
                    await self._work.wait()
                    continue
                await slots.acquire()
                pending = self._waiting.pop(subject)
                self._writing.add(subject)
                self._count()
                tasks.create_task(self._turn(subject, pending, slots))

    async def _turn(self, subject: str, pending: Pending, slots: asyncio.Semaphore) -> None:
        try:
            await self._write(pending)
            self.problem = ""
        except Unsure:
            self._waiting.setdefault(subject, pending)
            await asyncio.sleep(FROZEN)
        except BusError as error:
            if not self.problem:
                log.error("not written to the view, trying again", subject=subject, why=str(error))
            self.problem = str(error)
            self._waiting.setdefault(subject, pending)
            await asyncio.sleep(RETRY)
        finally:
            self._writing.discard(subject)
            if not self.is_waiting(subject):
                self._settled(subject)
            self._count()
            slots.release()
            self._work.set()

    async def _write(self, pending: Pending) -> None:
        """Raises Unsure, BusError (Conflict after `ROUNDS` of competition) and Deposed."""
        item, subject = pending.item, pending.item.subject
        if not item.data and subject not in self._held:
            # The applier may have echoed an object whose every state before its end this watcher has skipped.
            await self._learn(subject)
        for _ in range(ROUNDS):
            held = self._held.get(subject)
            self._check(subject, held)
            if not is_news(item, held):
                metrics.VIEW_WRITES.labels("older").inc()
                break
            if not self._may_write():
                raise Unsure(f"{subject}: no heart-beat of ours was answered lately")
            try:
                await self._put(pending, held)
                break
            except Conflict:
                metrics.VIEW_WRITES.labels("conflict").inc()
                await self._learn(subject)
        else:
            raise Conflict(f"{subject}: changed {ROUNDS} times while it was being written")
        held = self._held.get(subject)
        if held is not None and held.gone:
            # Tombstones are not remembered: a name that is used again costs one conflict, which is rare.
            del self._held[subject]

    async def _put(self, pending: Pending, held: Held | None) -> None:
        item, expect = pending.item, held.seq if held else 0
        headers = {H_UID: item.uid, H_AT: f"{pending.at:.6f}", H_SCHEMA: SCHEMA, H_EPOCH: str(self._epoch)}
        if item.uid:
            # A tombstone never says an earlier version than what it buries: else that could come back.
            buries = held is not None and not item.data and older(item.version, held.version)
            headers[H_RV] = held.version if held is not None and buries else item.version
        if not item.data:
            headers[H_GONE] = LEFT
        ttl = None if item.data else TOMBSTONE_TTL
        with span("publish", pending.parent, {"raybus.subject": item.subject}) as trace:
            seq = await self._bus.put("VIEW", item.subject, item.data, {**headers, **trace}, expect=expect, ttl=ttl)
        known = self._held.get(item.subject)
        # The ledger may have heard of a later state meanwhile.
        if known is None or known.seq < seq:
            if item.data:
                self._held[item.subject] = Held(seq, item.uid, item.version, "", self._epoch)
            else:
                self._held.pop(item.subject, None)
        metrics.VIEW_WRITES.labels("written").inc()
        metrics.VIEW_SECONDS.observe(asyncio.get_running_loop().time() - pending.since)

    async def _learn(self, subject: str) -> None:
        """Read what a competitor has written."""
        last = await self._bus.last("VIEW", subject)
        if last is None:
            self._held.pop(subject, None)
            return
        held = self._held[subject] = held_by(last)
        self._check(subject, held)

    def _check(self, subject: str, held: Held | None) -> None:
        """Raises Deposed."""
        if held is not None and held.epoch is not None and held.epoch > self._latest:
            raise Deposed(f"{subject} was written by a watcher with epoch {held.epoch}, ours is {self._epoch}")
