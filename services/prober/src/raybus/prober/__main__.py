"""Run the prober: `python -m raybus.prober`."""

import sys
from contextlib import AsyncExitStack

from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.bus.streams import keep_to_cluster
from raybus.kube.config import ConfigError
from raybus.kube.identity import cluster_identity
from raybus.prober.asking import Tools
from raybus.prober.heads import Heads
from raybus.prober.prober import SERVICE, run_prober
from raybus.prober.settings import ProberSettings
from raybus.prober.ways import dashboards, kubernetes
from raybus.runtime.behind import Behind
from raybus.runtime.ready import begin, bus_ready, waits_for
from raybus.runtime.service import Fatal, Service, serve


async def main(service: Service[ProberSettings]) -> None:
    """Raises Fatal without a Kubernetes configuration that the settings need, BusError when the bus is not for us."""
    async with AsyncExitStack() as stack:
        try:
            client = await kubernetes(service.settings, stack)
            cluster = await waits_for(service, "the API server", cluster_identity(client)) if client else None
        except ConfigError as error:
            raise Fatal(str(error)) from error
        ways = await dashboards(service.settings, client, stack)
        await bus_ready(service, cluster)
        bus, checks, behind = service.bus, service.health.checks, Behind(SERVICE, "ASK")
        epochs, partitions = Epochs(bus), Partitions(bus, SERVICE, service.replica)
        tools = Tools(bus, ways, Heads(service.settings.max_calls), partitions, service.now)
        checks["partitions"] = lambda: "" if partitions.fresh() else "no heart-beat of ours was answered lately"
        checks["versions"] = behind.problem
        parts = [epochs.run(), partitions.run(), run_prober(partitions, tools, epochs, behind)]
        parts += [keep_to_cluster(bus, cluster)] if cluster is not None else []
        await begin(service, parts, partitions.leave)


if __name__ == "__main__":
    sys.exit(serve(SERVICE, ProberSettings, main))
