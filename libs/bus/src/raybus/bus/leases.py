"""Leases in the bucket `ctl`: who owns a partition of a service, and since which epoch (design §3)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import NamedTuple, cast

import msgspec
import structlog
from msgspec import Struct

from raybus.api import subjects
from raybus.api.messages import SCHEMA, Epoch
from raybus.bus.port import Bus, BusError, KeyValue, Loaded, Reset

TRY_AGAIN = 0.25
"""Seconds until a failed read is tried again."""

log = structlog.get_logger()


class Lease(Struct, frozen=True):
    """The value of a lease's key. `holder`: the owner's incarnation, "" when it was released."""

    holder: str = ""
    schema: str = SCHEMA


class Stored(NamedTuple):
    """A lease as it stands in the bucket; `revision` 0 = never written."""

    partition: int
    holder: str
    revision: int


class Snapshot(NamedTuple):
    """All leases of one service by partition, and the creation time of the bucket that they stand in (ns)."""

    created: int
    leases: Mapping[int, Stored]

    def epoch(self, lease: Stored) -> Epoch:
        """The epoch that a lease in this bucket began."""
        return Epoch(self.created, lease.revision)


def encode(holder: str) -> bytes:
    """The value that makes `holder` the owner."""
    return msgspec.json.encode(Lease(holder))


def read(partition: int, stored: KeyValue) -> Stored:
    """A lease read from the bucket; one that cannot be read counts as released."""
    holder = ""
    if stored.value:
        try:
            holder = msgspec.json.decode(stored.value, type=Lease).holder
        except msgspec.MsgspecError as error:
            log.error("lease cannot be read, taken as released", partition=partition, why=str(error))
    return Stored(partition, holder, stored.revision)


async def watch_leases(bus: Bus, service: str) -> AsyncIterator[Snapshot | Stored | Reset]:
    """All leases of a service, then every change; after `Reset` a `Snapshot` comes again.

    The bucket's creation time is read before and after the leases: equal means that all stood in that bucket.
    """
    pattern = f"lease.{service}.*"
    while True:
        created, leases, loaded = await _created(bus), dict[int, Stored](), False
        watch = cast(AsyncGenerator[tuple[str, KeyValue] | Loaded | Reset, None], bus.watch_keys(pattern))
        async with aclosing(watch):
            async for item in watch:
                match item:
                    case Reset():
                        leases.clear()
                        loaded = False
                        yield item
                        created = await _created(bus)
                    case Loaded():
                        if await _created(bus) != created:
                            yield Reset("the bucket was made anew while it was being read")
                            break
                        loaded = True
                        yield Snapshot(created, dict(leases))
                    case (key, value):
                        lease = _lease(service, key, value)
                        if lease is not None and loaded:
                            yield lease
                        elif lease is not None:
                            leases[lease.partition] = lease


def _lease(service: str, key: str, value: KeyValue) -> Stored | None:
    partition = key.rpartition(".")[2]
    if not partition.isdecimal() or key != subjects.lease_key(service, int(partition)):
        log.error("unknown key in the bucket of leases, left alone", key=key)
        return None
    return read(int(partition), value)


async def _created(bus: Bus) -> int:
    while True:
        try:
            return await bus.bucket_created()
        except BusError as error:
            log.debug("bucket of leases not readable yet", why=str(error))
            await asyncio.sleep(TRY_AGAIN)
