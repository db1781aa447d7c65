"""Who held which partition when, read from the bucket's stream by an administrator; and how long partitions waited for
a new owner. No code of ours."""

import asyncio
import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import nats
import nats.errors

STREAM = "KV_ctl"
LOOK = 0.1
"""Seconds between two looks; what is overwritten sooner is not seen, but by what."""


class Lease(NamedTuple):
    """A lease as it was stored. `at`: wall clock of the server. `holder`: name and incarnation, "" = released."""

    at: float
    service: str
    partition: int
    holder: str

    @property
    def name(self) -> str:
        """The process that holds it."""
        return self.holder.rpartition("-")[0]


class Outage(NamedTuple):
    """A process that was killed or frozen at `at`, while another replica could take over."""

    name: str
    at: float


class Leases:
    """`kept`: every lease seen, in the order in which it was stored."""

    def __init__(self, url: str, user: str) -> None:
        self._url, self._user = url, user
        self.kept: list[Lease] = []
        self._created, self._last = "", 0

    async def run(self) -> None:
        """Record until cancelled, over every loss of the bus."""
        while True:
            try:
                await self._follow()
            except (nats.errors.Error, OSError, TimeoutError, KeyError):
                await asyncio.sleep(LOOK)

    async def _follow(self) -> None:
        client = await nats.connect(
            self._url.split(","),
            user=self._user,
            password=self._user,
            allow_reconnect=False,
            connect_timeout=2,
            error_cb=_silent,
        )
        try:
            while True:
                await self._look(client)
                await asyncio.sleep(LOOK)
        finally:
            await client.close()

    async def _look(self, client: Any) -> None:
        info = json.loads((await client.request(f"$JS.API.STREAM.INFO.{STREAM}", b"", timeout=2)).data)
        if "error" in info:
            return
        if info["created"] != self._created:
            self._created, self._last = info["created"], 0
        for number in range(max(self._last + 1, info["state"]["first_seq"]), info["state"]["last_seq"] + 1):
            asked = json.dumps({"seq": number}).encode()
            found = json.loads((await client.request(f"$JS.API.STREAM.MSG.GET.{STREAM}", asked, timeout=2)).data)
            if "message" in found:
                self._keep(found["message"])
            self._last = number

    def _keep(self, message: Mapping[str, Any]) -> None:
        at = datetime.fromisoformat(message["time"][:26].rstrip("Z") + "+00:00").timestamp()
        *_, service, partition = message["subject"].split(".")
        holder = json.loads(base64.b64decode(message.get("data", "")) or b"{}").get("holder", "")
        self.kept.append(Lease(at, service, int(partition), holder))


async def _silent(_: Exception) -> None:
    """The library would print a traceback for each fault that we make."""


def holder(leases: Iterable[Lease], service: str, partition: int, at: float) -> str:
    """Name of the process that held the partition at that time, "" = nobody."""
    held = [lease for lease in leases if (lease.service, lease.partition) == (service, partition) and lease.at <= at]
    return held[-1].name if held else ""


def waits(
    leases: Sequence[Lease], outages: Iterable[Outage], disturbed: Sequence[tuple[float, float]]
) -> list[tuple[str, int, float]]:
    """(process, partition, seconds until another one had it) for each partition of each process that went out.

    Left out are outages during which something else was wrong too (`disturbed`: spans of time), and those that were
    over before anybody could have noticed.
    """
    found = []
    for outage in outages:
        if any(begin < outage.at + 5 and outage.at - 2 < end for begin, end in disturbed):
            continue
        mine = {}
        for lease in leases:
            if lease.at <= outage.at:
                mine[lease.service, lease.partition] = lease
        for lease in mine.values():
            if lease.name == outage.name:
                found.append((outage.name, lease.partition, _next(leases, lease, outage.at) - outage.at))
    return [wait for wait in found if wait[2] > 0]


def _next(leases: Iterable[Lease], before: Lease, at: float) -> float:
    """When another incarnation had that partition; infinity if none ever had."""
    same = (lease for lease in leases if (lease.service, lease.partition) == (before.service, before.partition))
    return next((x.at for x in same if x.at > at and x.holder not in ("", before.holder)), float("inf"))


def p99(values: Sequence[float]) -> float:
    """The value that one in a hundred exceeds; 0 without values."""
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))] if values else 0.0
