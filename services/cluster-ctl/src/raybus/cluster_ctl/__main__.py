"""Run cluster-ctl: `python -m raybus.cluster_ctl`."""

import sys

from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.service_settings import ClusterSettings, knobs
from raybus.runtime.controllers import controller_service
from raybus.runtime.service import Service, serve

SERVICE = "cluster-ctl"


async def main(service: Service[ClusterSettings]) -> None:
    """Decide about RayClusters until stopped. Raises SettingsError and BusError."""
    await controller_service(service, controller(knobs(service.settings)))


if __name__ == "__main__":
    sys.exit(serve(SERVICE, ClusterSettings, main))
