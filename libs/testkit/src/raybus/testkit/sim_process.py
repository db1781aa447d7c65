"""A simulated process: one replica of a service, running its production code on its own connections and clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextvars import copy_context
from typing import Any

from raybus.applier.applier import Applier
from raybus.applier.applier import Ports as ApplierPorts
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.cluster_ctl import controller as cluster_ctl
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.job_ctl import controller as job_ctl
from raybus.job_ctl.settings import JobKnobs
from raybus.kube.port import Request, Response, Sender
from raybus.prober.asking import Tools
from raybus.prober.dashboards import RayDashboards
from raybus.prober.heads import Heads
from raybus.prober.prober import run_prober
from raybus.ray.address import direct
from raybus.ray.client import Dashboard
from raybus.runtime.behind import Behind
from raybus.runtime.controller import Controller
from raybus.runtime.controllers import Loops
from raybus.runtime.lifecycle import until_stopped
from raybus.serve_ctl import controller as serve_ctl
from raybus.testkit.fake_api import Connection
from raybus.testkit.fake_bus import FakeBus
from raybus.testkit.sim_world import World
from raybus.testkit.virtual_time import SERVICE, VirtualLoop
from raybus.watcher.service import Watcher
from raybus.watcher.session import Ports as WatcherPorts

CHECK_TIMEOUT = 25
"""Seconds without an answer of the dashboard until a job fails: short, so that it happens within a run."""


class Watched:
    """A connection to the API server (`Sender`) whose requests are shown to `see` as they are sent."""

    def __init__(self, inner: Connection, see: Callable[[Request], None]) -> None:
        self._inner, self._see = inner, see

    async def send(self, request: Request) -> Response:
        """As `Sender.send`."""
        self._see(request)
        return await self._inner.send(request)

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        """As `Sender.stream`."""
        return self._inner.stream(request)


class Process:
    """`name` is `<service>-<number>`. `life`: the present incarnation. `see`: told of each request to Kubernetes."""

    def __init__(self, world: World, name: str, see: Callable[["Process", Request], None]) -> None:
        self.world, self.name, self.service = world, name, name.rpartition("-")[0]
        self._see, self._lives = see, 0
        self.life = ""
        self.partitions: Partitions
        self.bus: FakeBus
        self.api: Connection
        self.task: asyncio.Task[None] | None = None
        self.died: BaseException | None = None
        self.stop = asyncio.Event()
        self.now = world.clock(name)

    @property
    def loop(self) -> VirtualLoop:
        """The loop that all run on."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return loop

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped by SIGSTOP."""
        return self.task is not None and self.loop.is_frozen(self.life)

    def start(self) -> None:
        """Begin with empty memory."""
        self._lives += 1
        self.life = f"{self.name}#{self._lives}"
        self.stop = asyncio.Event()
        self.bus = self.world.bus.connect(self.world.network(self.life))
        self.api = self.world.api.connect(self.name, self.world.api_faults(self.life))
        context = copy_context()
        context.run(SERVICE.set, self.life)
        self.task = self.loop.create_task(_MAINS[self.service](self), context=context)
        self.task.add_done_callback(self._ended)

    def kill(self) -> None:
        """SIGKILL: from now on not a line of it runs, whatever it was about to do."""
        if self.task is None:
            return
        self.task.remove_done_callback(self._ended)
        self.task = None
        self.loop.freeze(self.life)
        self._disconnect()

    def freeze(self) -> None:
        """SIGSTOP."""
        if self.task is not None:
            self.loop.freeze(self.life)

    def thaw(self) -> None:
        """SIGCONT; nothing happens to one that was killed meanwhile."""
        if self.task is not None:
            self.loop.thaw(self.life)

    def terminate(self) -> None:
        """SIGTERM: it hands over and ends."""
        self.stop.set()

    def sender(self) -> Sender:
        """Its connection to Kubernetes."""
        return Watched(self.api, lambda request: self._see(self, request))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.task = None
        self._disconnect()
        if not task.cancelled():
            self.died = task.exception()

    def _disconnect(self) -> None:
        self.bus.cut()
        self.world.bus.connections.remove(self.bus)
        self.api.close()


async def _watcher(p: Process) -> None:
    p.partitions = Partitions(p.bus, p.service, p.name, count=1)
    rng = p.world.chance(f"jitter/{p.life}")
    ports = WatcherPorts(p.bus, p.sender(), p.partitions.fresh, p.now, lambda: rng.uniform(0.75, 1.25))
    watcher = Watcher(ports, p.partitions)
    await until_stopped(p.stop, (p.partitions.run(), watcher.run()), p.partitions.leave)


async def _controllers(p: Process, controller: Controller[Any, Any]) -> None:
    p.partitions = Partitions(p.bus, p.service, p.name)
    loops = Loops([controller], p.bus, p.now)
    await until_stopped(p.stop, (p.partitions.run(), loops.run(p.partitions)), p.partitions.leave)


async def _cluster_ctl(p: Process) -> None:
    await _controllers(p, cluster_ctl.controller(ClusterKnobs()))


async def _job_ctl(p: Process) -> None:
    await _controllers(p, job_ctl.controller(JobKnobs(status_check_timeout=CHECK_TIMEOUT)))


async def _serve_ctl(p: Process) -> None:
    await _controllers(p, serve_ctl.controller())


async def _applier(p: Process) -> None:
    epochs = Epochs(p.bus)
    p.partitions = Partitions(p.bus, p.service, p.name)
    ports = ApplierPorts(bus=p.bus, sender=p.sender(), partitions=p.partitions, epochs=epochs, now=p.now)
    applier = Applier(ports, p.name, max_in_flight=16, max_held=1024)
    await until_stopped(p.stop, (epochs.run(), p.partitions.run(), applier.run()), p.partitions.leave)


async def _prober(p: Process) -> None:
    epochs = Epochs(p.bus)
    p.partitions = Partitions(p.bus, p.service, p.name)
    transport = p.world.ray.transport(p.name, p.world.ray_delay(p.life))
    dashboards = RayDashboards(Dashboard(transport), lambda _, head, token: direct(head.url, token), None)
    tools = Tools(p.bus, dashboards, Heads(256), p.partitions, p.now)
    parts = (epochs.run(), p.partitions.run(), run_prober(p.partitions, tools, epochs, Behind("prober", "ASK")))
    await until_stopped(p.stop, parts, p.partitions.leave)


_MAINS: Mapping[str, Callable[[Process], Coroutine[Any, Any, None]]] = {
    "watcher": _watcher,
    "cluster-ctl": _cluster_ctl,
    "job-ctl": _job_ctl,
    "serve-ctl": _serve_ctl,
    "applier": _applier,
    "prober": _prober,
}
