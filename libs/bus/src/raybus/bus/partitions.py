"""Who works which partition: heart-beats, rendezvous hashing and leases (design §3, ADR 0033).

A replica counts others as candidates when they say that they are ready, and as gone after GONE seconds of silence. It
trusts that silence only while it has heard its own heart-beats without a gap for as long: whoever was frozen, cut off
or slow hears a gap in its own and listens anew before it takes anything.
"""

import asyncio
import random
from collections.abc import AsyncIterator

import msgspec
import structlog
from msgspec import Struct

from raybus.api import subjects
from raybus.api.messages import SCHEMA, Epoch
from raybus.api.names import PARTITIONS, encode_token
from raybus.bus import leases
from raybus.bus.leases import Snapshot, Stored, watch_leases
from raybus.bus.port import Bus, BusError, Conflict, Reset
from raybus.bus.rendezvous import best

BEAT = 0.25
"""Seconds between two heart-beats."""
GONE = 1.5
"""Seconds of silence after which a replica is gone."""
GAP = 0.75
"""Seconds without one's own heart-beat after which listening begins anew."""
SETTLE = 0.5
"""Seconds of listening before a replica takes even what is free: by then it has heard who else is there."""
FRESH = 1.0
"""Age in seconds up to which an answered heart-beat allows effects."""
WRITE = 1.0
"""Seconds that writing a lease may take: a decision older than that is made anew instead of being retried."""

log = structlog.get_logger()


class Taken(Struct, frozen=True):
    """This replica owns `partition` from now on; everything that it decides carries `epoch`."""

    partition: int
    epoch: Epoch


class Lost(Struct, frozen=True):
    """This replica owns `partition` no more."""

    partition: int
    why: str


class Beat(Struct, frozen=True):
    """A heart-beat. `ready`: may be given partitions. `leaving`: is handing over what it has. `bucket`: creation time
    of the bucket whose leases make it own what it owns, 0 = owns nothing."""

    replica: str
    ready: bool
    leaving: bool
    bucket: int = 0
    schema: str = SCHEMA


class Partitions:
    """The partitions of one service that this replica owns. `count` 1 means active and standby: a living owner keeps
    its lease; otherwise partitions move to whom rendezvous hashing names.

    `replica` names the replica for people; its incarnation (`me`) is another one after each start.
    """

    def __init__(self, bus: Bus, service: str, replica: str, count: int = PARTITIONS) -> None:
        self.me = f"{replica}-{random.getrandbits(32):08x}"
        self._bus, self._service, self._count = bus, service, count
        self._peers: dict[str, tuple[float, Beat]] = {}
        self._listening_since = self._echo = self._answered = self._beaten = float("-inf")
        self._sure = True
        self._leases: dict[int, Stored] = {}
        self._snapshot: Snapshot | None = None
        self._owned: dict[int, Epoch] = {}
        self._writing: set[int] = set()
        self._was_ready = self._leaving = False
        self._changes: asyncio.Queue[Taken | Lost] = asyncio.Queue()
        self._poke, self._beat_now = asyncio.Event(), asyncio.Event()

    def owns(self, partition: int) -> bool:
        """Whether this replica owns the partition as far as it knows; `fresh` says whether it can know."""
        return partition in self._owned

    def epoch(self, partition: int) -> Epoch | None:
        """The epoch of an owned partition."""
        return self._owned.get(partition)

    def fresh(self) -> bool:
        """Whether a heart-beat sent at most FRESH seconds ago was answered, and the leases are known as of a time when
        that was so: false in a process that was frozen, until it has looked whose its partitions are now."""
        recent = asyncio.get_running_loop().time() - self._answered <= FRESH
        return recent and self._sure and self._snapshot is not None

    async def changes(self) -> AsyncIterator[Taken | Lost]:
        """What this replica gains and loses, for one reader; never ends by itself."""
        while True:
            yield await self._changes.get()

    async def run(self) -> None:
        """Take part until cancelled. Call `leave` before that, or others wait for GONE seconds."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_beats())
            tasks.create_task(self._hear_beats())
            tasks.create_task(self._watch())
            await self._steer(tasks)

    async def leave(self) -> None:
        """Hand over all partitions and take no more; `run` goes on until it is cancelled."""
        self._leaving = True
        held = dict(self._owned)
        for partition in held:
            self._lose(partition, "this replica is leaving")
        await self._announce()
        await asyncio.gather(*(self._write(partition, "", epoch.revision) for partition, epoch in held.items()))

    # ---- heart-beats

    async def _send_beats(self) -> None:
        while True:
            now = asyncio.get_running_loop().time()
            # After such a pause others may own what this replica has owned, and the news be still on its way.
            self._sure = self._sure and now - self._beaten <= FRESH
            self._beaten = now
            await self._announce()
            if not self._sure:
                self._sure = await self._look_again()
            self._beat_now.clear()
            try:
                async with asyncio.timeout(BEAT):
                    await self._beat_now.wait()
            except TimeoutError:
                pass

    async def _look_again(self) -> bool:
        """Read the leases of what is owned; whether that succeeded in the bucket that is known."""
        try:
            for partition in list(self._owned):
                stored = await self._bus.get_key(subjects.lease_key(self._service, partition))
                if self._snapshot is not None:
                    self._learn(leases.read(partition, stored))
            created = await self._bus.bucket_created()
        except BusError as error:
            log.warning("leases not read after a pause, nothing is written", service=self._service, why=str(error))
            return False
        return self._snapshot is not None and self._snapshot.created == created

    async def _announce(self) -> None:
        sent = asyncio.get_running_loop().time()
        bucket = min((epoch.created for epoch in self._owned.values()), default=0)
        beat = Beat(self.me, self._ready(sent), self._leaving, bucket)
        try:
            subject = subjects.heartbeat(self._service, encode_token(self.me))
            await self._bus.announce(subject, msgspec.json.encode(beat))
        except BusError as error:
            log.warning("heart-beat not sent", service=self._service, why=str(error))
        else:
            self._answered = max(self._answered, sent)

    async def _hear_beats(self) -> None:
        loop = asyncio.get_running_loop()
        async for item in self._bus.listen(subjects.heartbeat(self._service, "*")):
            now = loop.time()
            if isinstance(item, Reset):
                self._echo = float("-inf")
                continue
            try:
                beat = msgspec.json.decode(item[1], type=Beat)
            except msgspec.MsgspecError as error:
                log.error("heart-beat cannot be read", subject=item[0], why=str(error))
                continue
            if beat.replica == self.me:
                if now - self._echo > GAP:
                    self._listening_since = now
                self._echo = now
                continue
            before = self._peers.get(beat.replica)
            self._peers[beat.replica] = (now, beat)
            if before is None or before[1] != beat:
                self._poke.set()

    def _listened(self, now: float) -> float:
        """Seconds for which this replica has heard all heart-beats without a gap."""
        return now - self._listening_since if now - self._echo <= GAP else 0.0

    def _ready(self, now: float) -> bool:
        return self._snapshot is not None and not self._leaving and self._listened(now) >= SETTLE

    def _silent(self, replica: str, now: float) -> bool:
        heard = self._peers.get(replica)
        return self._listened(now) >= GONE and (heard is None or now - heard[0] > GONE)

    # ---- leases

    async def _watch(self) -> None:
        async for item in watch_leases(self._bus, self._service):
            match item:
                case Reset():
                    # What is owned stays owned until the leases are known again; `fresh` guards the effects.
                    self._snapshot = None
                    self._leases.clear()
                case Snapshot():
                    self._snapshot = item
                    self._leases = dict(item.leases)
                    for partition in range(self._count):
                        self._reconcile(partition)
                    self._poke.set()
                    self._beat_now.set()
                case lease:
                    self._learn(lease)

    def _learn(self, lease: Stored) -> None:
        known = self._leases.get(lease.partition)
        if known is None or known.revision < lease.revision:
            self._leases[lease.partition] = lease
            self._reconcile(lease.partition)
            self._poke.set()

    def _reconcile(self, partition: int) -> None:
        """Own what the leases say is ours, and nothing else."""
        if self._snapshot is None or partition in self._writing:
            return
        lease = self._leases.get(partition)
        if lease is None or lease.holder != self.me:
            self._lose(partition, f"its lease is {f'held by {lease.holder}' if lease and lease.holder else 'free'}")
            return
        epoch = self._snapshot.epoch(lease)
        if self._owned.get(partition) != epoch and not self._leaving:
            self._lose(partition, "its lease is another one")
            self._owned[partition] = epoch
            self._changes.put_nowait(Taken(partition, epoch))
            log.debug("partition taken", service=self._service, partition=partition, epoch=str(epoch))

    def _lose(self, partition: int, why: str) -> None:
        if self._owned.pop(partition, None) is not None:
            self._changes.put_nowait(Lost(partition, why))
            log.debug("partition given up", service=self._service, partition=partition, why=why)

    async def _steer(self, tasks: asyncio.TaskGroup) -> None:
        """Take and hand over whenever something has changed or a silence has become long enough."""
        loop = asyncio.get_running_loop()
        while True:
            self._poke.clear()
            now = loop.time()
            ready = self._ready(now)
            if ready:
                for partition, holder, revision in self._wanted(now):
                    self._writing.add(partition)
                    tasks.create_task(self._write(partition, holder, revision))
            if ready != self._was_ready:
                self._was_ready = ready
                self._beat_now.set()
            self._forget(now)
            try:
                async with asyncio.timeout(self._next_look(now)):
                    await self._poke.wait()
            except TimeoutError:
                pass

    def _wanted(self, now: float) -> list[tuple[int, str, int]]:
        """(partition, new holder, present revision) of the leases to be written now."""
        candidates = [self.me]
        candidates += [r for r, (heard, beat) in self._peers.items() if beat.ready and now - heard <= GONE]
        wanted = []
        held_back = self._past_is_owned(now)
        for partition in range(self._count):
            if partition in self._writing:
                continue
            lease = self._leases.get(partition, Stored(partition, "", 0))
            owner = best(partition, candidates)
            if partition in self._owned:
                if owner != self.me and self._count > 1:
                    self._lose(partition, f"handed over to {owner}")
                    wanted.append((partition, "", lease.revision))
            elif held_back:
                continue
            elif owner == self.me and (not lease.holder or self._silent(lease.holder, now)):
                wanted.append((partition, self.me, lease.revision))
        return wanted

    def _past_is_owned(self, now: float) -> bool:
        """Whether a living peer still trusts leases of a bucket that is gone: in the new one they look free, but it
        goes on working until it has heard of the loss too."""
        present = self._snapshot.created if self._snapshot is not None else 0
        return any(beat.bucket not in (0, present) and now - heard <= GONE for heard, beat in self._peers.values())

    async def _write(self, partition: int, holder: str, revision: int) -> None:
        key = subjects.lease_key(self._service, partition)
        try:
            async with asyncio.timeout(WRITE):
                try:
                    written = await self._bus.put_key(key, leases.encode(holder), revision=revision)
                    lease = Stored(partition, holder, written)
                except Conflict:
                    lease = leases.read(partition, await self._bus.get_key(key))
        except (BusError, TimeoutError) as error:
            why = str(error) or f"no answer within {WRITE:.0f} s"
            log.warning("lease not written", service=self._service, partition=partition, why=why)
            lease = None
        self._writing.discard(partition)
        if lease is not None and self._snapshot is not None:
            self._learn(lease)
        self._reconcile(partition)

    def _next_look(self, now: float) -> float:
        """Seconds until a silence may have become long enough."""
        times = [self._listening_since + SETTLE, self._listening_since + GONE]
        times += [heard + GONE for heard, _ in self._peers.values()]
        return min([time - now + 0.001 for time in times if time >= now] + [BEAT])

    def _forget(self, now: float) -> None:
        """Replicas that are gone for good; a lease that still names one is then held by someone never heard."""
        for replica in [r for r, (heard, _) in self._peers.items() if now - heard > 10 * GONE]:
            del self._peers[replica]
