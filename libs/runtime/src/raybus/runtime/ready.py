"""What every service waits for before it begins: a bus that is fit, and its streams."""

from typing import TypeVar

from raybus.bus.streams import check_server, wait_for_streams
from raybus.runtime.common import CommonSettings
from raybus.runtime.lifecycle import unless_stopped
from raybus.runtime.service import Service

S = TypeVar("S", bound=CommonSettings)


async def bus_ready(service: Service[S]) -> None:
    """Return once the streams are there. Raises BusError when the bus is not fit, Stopped on SIGTERM."""
    await unless_stopped(service.stop, check_server(service.bus))
    service.health.checks["streams"] = lambda: "waiting for the watcher to make the streams"
    await unless_stopped(service.stop, wait_for_streams(service.bus))
    del service.health.checks["streams"]
