"""Start and end of a service's process: settings, logs, bus, health, SIGTERM (design §5, issue "Health")."""

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
import uvloop

from raybus.api.times import Instant
from raybus.bus import BusSettings, NatsBus, connect
from raybus.bus.port import BusError
from raybus.runtime.common import CommonSettings
from raybus.runtime.health import Health
from raybus.runtime.kuberay import without_effect
from raybus.runtime.lifecycle import Stopped, unless_stopped
from raybus.runtime.settings import SettingsError, environment, load
from raybus.telemetry.logs import configure_logs
from raybus.telemetry.traces import configure_traces, flush_traces

S = TypeVar("S", bound=CommonSettings)

GARBAGE = 20_000, 20, 20
"""Objects made before the youngest are looked through for cycles, and so on: with Python's own 700 a service with some
thousands of objects in its view spends 7 % of its time on that, and finds next to nothing."""
DRAIN_SECONDS = 10.0
"""What a service may take to finish what it has begun once it was asked to stop; the manifest grants more."""

START = "start"
"""The check that fails until a service has begun to work (`ready.begin`)."""

log = structlog.get_logger()


class Fatal(Exception):
    """The service cannot go on; `str()` is the one line that its user reads on standard error."""


@dataclass(frozen=True, kw_only=True)
class Service(Generic[S]):
    """What a service's main coroutine gets. `stop` is set by SIGTERM: finish, hand over, return."""

    name: str
    replica: str
    settings: S
    bus: NatsBus
    health: Health
    stop: asyncio.Event

    def now(self) -> Instant:
        """The wall clock."""
        return Instant(time.time())


Main = Callable[[Service[S]], Coroutine[Any, Any, None]]


def serve(name: str, kind: type[S], main: Main[S], arguments: Sequence[str] | None = None) -> int:
    """Run a service until it is told to stop. Returns the process's exit status: 0 stopped, 2 cannot run."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        settings = load(kind, given, environment())
        configure_logs(name, settings.log_stdout_encoder, settings.log_level)
    except (SettingsError, ValueError) as error:
        return _refuse(name, str(error))
    for setting, why in without_effect(given, environment()):
        log.info("setting of KubeRay without effect here", setting=setting, why=why)
    configure_traces(name)
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    try:
        uvloop.run(_run(name, settings, main))
    except Stopped:
        log.info("stopped before it began")
    except (Fatal, SettingsError, BusError) as error:
        return _refuse(name, str(error))
    except OSError as error:
        return _refuse(name, f"cannot listen or connect: {error}")
    finally:
        flush_traces()
    return 0


def _refuse(name: str, why: str) -> int:
    sys.stderr.write(f"{name}: {' '.join(why.split())}\n")
    return 2


async def _run(name: str, settings: S, main: Main[S]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    replica = settings.replica or f"{socket.gethostname()}-{os.getpid()}".replace(".", "-")
    health = Health()
    health.checks[START] = lambda: "not begun yet"
    health.checks["bus"] = lambda: "not connected yet"
    servers = [await health.serve(a) for a in (settings.metrics_addr, settings.health_probe_bind_address)]
    bus_settings = BusSettings(
        url=settings.nats_url,
        user=settings.nats_user or name,
        password=settings.nats_password,
        name=f"{name} {replica}",
        ca_file=settings.nats_ca_file,
    )
    bus = await unless_stopped(stop, connect(bus_settings))
    health.checks["bus"] = lambda: "" if bus.connected else "connection to the bus is lost"
    try:
        log.info("started", replica=replica)
        service = Service(name=name, replica=replica, settings=settings, bus=bus, health=health, stop=stop)
        await _with_drain(main(service), stop)
        log.info("stopped")
    finally:
        await bus.close()
        for server in filter(None, servers):
            server.close()


async def _with_drain(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Run `work`; once `stop` is set it has DRAIN_SECONDS to return by itself, then it is cancelled."""
    task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not task.done():
        _, late = await asyncio.wait((task,), timeout=DRAIN_SECONDS)
        if late:
            log.warning("not finished in time, stopping anyway", seconds=DRAIN_SECONDS)
            task.cancel()
    with suppress(asyncio.CancelledError):
        await task
