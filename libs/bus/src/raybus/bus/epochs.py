"""What applier and prober know of the controllers' epochs, to drop what a former owner decided (design §3)."""

import asyncio
from typing import Literal

import structlog

from raybus.api import subjects
from raybus.api.messages import Epoch
from raybus.bus import leases
from raybus.bus.leases import Snapshot, Stored, watch_leases
from raybus.bus.port import Bus, Reset

log = structlog.get_logger()

SERVICE_OF = {"cluster": "cluster-ctl", "job": "job-ctl", "cron": "job-ctl", "serve": "serve-ctl"}
"""Whose lease covers a controller's partitions."""


class Epochs:
    """The latest epoch of each controller's partitions. It never goes back, also over a wiped bus; but an older bucket
    that has come back (a restored volume, a server with old data) begins where it stood (ADR 0103)."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._latest: dict[tuple[str, int], Epoch] = {}

    async def run(self) -> None:
        """Follow the leases until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for service in sorted(set(SERVICE_OF.values())):
                tasks.create_task(self._follow(service))

    def latest(self, controller: str, partition: int) -> Epoch | None:
        """The latest epoch known; None when no lease of it has been seen. Raises KeyError for no controller."""
        return self._latest.get((SERVICE_OF[controller], partition))

    async def judge(self, controller: str, partition: int, epoch: Epoch) -> Literal["current", "old", "unknown"]:
        """Whether a message of this epoch comes from the partition's owner.

        An epoch above all that is known, or of another bucket, is looked up: `unknown` if no lease bears it, so it was
        made up or belongs to a store that is gone. Raises BusError when the bus does not answer, KeyError for no
        controller.
        """
        latest = self.latest(controller, partition)
        if latest is None or epoch > latest or epoch.created != latest.created:
            service = SERVICE_OF[controller]
            created = await self._bus.bucket_created()
            self._forget_after(created)
            stored = await self._bus.get_key(subjects.lease_key(service, partition))
            self._learn(service, Snapshot(created, {}), leases.read(partition, stored))
            latest = self.latest(controller, partition)
        if latest == epoch:
            return "current"
        return "old" if latest is not None and epoch < latest else "unknown"

    def _forget_after(self, created: int) -> None:
        """Buckets that are younger than the present one are gone."""
        for key in [key for key, epoch in self._latest.items() if epoch.created > created]:
            log.warning("an older bus has come back, its epochs count", service=key[0], partition=key[1])
            del self._latest[key]

    async def _follow(self, service: str) -> None:
        snapshot = Snapshot(0, {})
        async for item in watch_leases(self._bus, service):
            match item:
                case Reset():
                    continue
                case Snapshot():
                    snapshot = item
                    for lease in snapshot.leases.values():
                        self._learn(service, snapshot, lease)
                case lease:
                    self._learn(service, snapshot, lease)

    def _learn(self, service: str, snapshot: Snapshot, lease: Stored) -> None:
        """A released lease begins no epoch: what its former owner decided holds until the next one takes it."""
        if not lease.holder:
            return
        key, epoch = (service, lease.partition), snapshot.epoch(lease)
        known = self._latest.get(key)
        if known is None or known < epoch:
            self._latest[key] = epoch
