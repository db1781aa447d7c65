"""Run the prober: `python -m raybus.prober`."""

import sys
from contextlib import AsyncExitStack

from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.prober.asking import Tools
from raybus.prober.heads import Heads
from raybus.prober.prober import SERVICE, run_prober
from raybus.prober.settings import ProberSettings
from raybus.prober.ways import dashboards
from raybus.runtime.behind import Behind
from raybus.runtime.lifecycle import until_stopped
from raybus.runtime.ready import bus_ready
from raybus.runtime.service import Service, serve


async def main(service: Service[ProberSettings]) -> None:
    """Raises Fatal without a Kubernetes configuration that the settings need, BusError when the bus is not fit."""
    async with AsyncExitStack() as stack:
        ways = await dashboards(service.settings, stack)
        await bus_ready(service)
        epochs, partitions = Epochs(service.bus), Partitions(service.bus, SERVICE, service.replica)
        unheard = "no heart-beat of ours was answered lately"
        service.health.checks["partitions"] = lambda: "" if partitions.fresh() else unheard
        heads = Heads(service.settings.max_calls)
        tools = Tools(service.bus, ways, heads, partitions, service.now)
        behind = Behind(SERVICE, "ASK")
        service.health.checks["versions"] = behind.problem
        parts = (epochs.run(), partitions.run(), run_prober(partitions, tools, epochs, behind))
        await until_stopped(service.stop, parts, partitions.leave)


if __name__ == "__main__":
    sys.exit(serve(SERVICE, ProberSettings, main))
