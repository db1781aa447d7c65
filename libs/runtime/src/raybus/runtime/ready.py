"""What every service waits for before it begins: a bus that is fit, and its streams; and its beginning."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from raybus.bus.streams import check_server, wait_for_streams
from raybus.runtime.common import CommonSettings
from raybus.runtime.lifecycle import unless_stopped, until_stopped
from raybus.runtime.service import START, Service

S = TypeVar("S", bound=CommonSettings)
T = TypeVar("T")


async def waits_for(service: Service[S], what: str, coming: Coroutine[Any, Any, T]) -> T:
    """The result of `coming`; until then readiness names `what`. Raises Stopped on SIGTERM, and what it raises."""
    before = service.health.checks[START]
    service.health.checks[START] = lambda: f"waiting for {what}"
    result = await unless_stopped(service.stop, coming)
    service.health.checks[START] = before
    return result


async def bus_ready(service: Service[S], cluster: str | None = None) -> None:
    """Return once the streams are there. `cluster`: the identity of the Kubernetes cluster that the service talks to,
    None if to none. Raises BusError when the bus is not fit or about another cluster, Stopped on SIGTERM."""
    await waits_for(service, "JetStream", check_server(service.bus))
    await waits_for(service, "the watcher to make the streams", wait_for_streams(service.bus, cluster))


async def begin(
    service: Service[S], parts: Iterable[Coroutine[Any, Any, Any]], hand_over: Callable[[], Awaitable[None]]
) -> None:
    """`lifecycle.until_stopped`; from here on the service is ready when all its own checks pass."""
    del service.health.checks[START]
    await until_stopped(service.stop, parts, hand_over)
