"""A bus, an API server and watchers in memory, in virtual time."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from raybus.api import subjects
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_GONE, H_RV
from raybus.api.names import PARTITIONS
from raybus.api.times import Instant
from raybus.bus.partitions import Partitions
from raybus.bus.port import Message
from raybus.kube.port import Request
from raybus.testkit.fake_api import Connection, FakeApi, Fault
from raybus.testkit.fake_bus import BusServer, FakeBus
from raybus.testkit.virtual_time import SERVICE, run_virtual
from raybus.watcher.service import Watcher
from raybus.watcher.session import Ports

Json = dict[str, Any]


def body(kind: str, name: str, labels: dict[str, str] | None = None, **more: Any) -> Json:
    """An object without what the server adds; `owner=(kind, name, uid)`."""
    meta: Json = {"name": name, "namespace": "ns", "labels": labels or {}}
    if owner := more.pop("owner", None):
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": owner[2], "controller": True}]
    return {"apiVersion": BY_KIND[kind].api_version, "kind": kind, "metadata": meta, **more}


def pod(cluster: str, name: str, node_type: str = "worker") -> Json:
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": node_type}
    return body("Pod", name, labels, spec={"containers": [{"name": "ray", "image": "i"}]})


class Replica:
    """One watcher process."""

    def __init__(self, world: "World", name: str, namespaces: tuple[str, ...] = ()) -> None:
        self.world, self.name = world, name
        self.bus: FakeBus = world.bus_server.connect()
        self.api: Connection = world.api.connect(name, world.fault)
        self.partitions = Partitions(self.bus, "watcher", name, count=1)
        ports = Ports(self.bus, self.api, self.partitions.fresh, world.now, lambda: 1.0)
        self.watcher = Watcher(ports, self.partitions, namespaces)
        token = SERVICE.set(name)
        self.tasks = [asyncio.create_task(self.partitions.run()), asyncio.create_task(self.watcher.run())]
        SERVICE.reset(token)

    @property
    def ready(self) -> bool:
        return not self.watcher.problem()

    @property
    def active(self) -> bool:
        return self.partitions.owns(0)

    async def end(self) -> None:
        self.world.replicas.remove(self)
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)


class World:
    """A bus, an API server and the watchers on them."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.bus_server = BusServer(self.now)
        self.api = FakeApi(self.now, random.Random(1))
        self.replicas: list[Replica] = []
        self.faults: Callable[[Request], Fault] = lambda _: Fault()
        self.requests: list[Request] = []

    def now(self) -> Instant:
        return Instant(1_700_000_000.0 + self.loop.time())

    def fault(self, request: Request) -> Fault:
        self.requests.append(request)
        return self.faults(request)

    async def start(self, name: str = "w1", namespaces: tuple[str, ...] = ()) -> Replica:
        replica = Replica(self, name, namespaces)
        self.replicas.append(replica)
        await self.until(lambda: replica.ready and any(each.active for each in self.replicas), f"{name} is ready")
        return replica

    async def until(self, condition: Callable[[], bool], what: str, within: float = 60.0) -> None:
        end = self.loop.time() + within
        while not condition():
            assert self.loop.time() < end, (
                f"not within {within} s: {what}; {[r.watcher.problem() for r in self.replicas]}"
            )
            await asyncio.sleep(0.01)

    # Kubernetes.

    def create(self, kind: str, given: Json) -> Json:
        return self.api.verbs.create(BY_KIND[kind], "ns", given)

    def patch(self, kind: str, name: str, patch: Json) -> Json:
        return self.api.verbs.merge_patch(BY_KIND[kind], ("ns", name), patch)

    def delete(self, kind: str, name: str) -> None:
        # At once, as etcd removes an object that nothing holds any more.
        self.api.store.remove(kind, ("ns", name))

    # The view.

    def message(self, controller: str, root: str, kind: str, name: str) -> Message | None:
        token = BY_KIND[kind].token if kind in BY_KIND else kind
        return self.bus_server.streams["VIEW"].last(subjects.view(controller, "ns", root, token, name))

    def has(self, controller: str, root: str, kind: str, name: str, version: str = "") -> bool:
        """Whether a living object is there (at `version`)."""
        found = self.message(controller, root, kind, name)
        return found is not None and H_GONE not in found.headers and version in ("", found.headers[H_RV])

    def gone(self, controller: str, root: str, kind: str, name: str) -> bool:
        found = self.message(controller, root, kind, name)
        return found is not None and H_GONE in found.headers and not found.data

    def markers(self) -> set[str]:
        """What the markers name; "" for each that is missing."""
        names = [subjects.fill_marker(c, p) for c in subjects.CONTROLLERS for p in range(PARTITIONS)]
        found = [self.bus_server.streams["VIEW"].last(name) for name in names]
        return {message.data.decode() if message else "" for message in found}

    async def marked(self) -> bool:
        return self.markers() == {await self.bus_server.connect().stream_created("VIEW")}

    def last_seq(self) -> int:
        """The highest sequence of VIEW: equal means that nothing was published."""
        return max((m.seq for m in self.bus_server.streams["VIEW"].latest([">"])), default=0)


Story = Callable[[World], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    async def run() -> None:
        world = World()
        try:
            await story(world)
        finally:
            for replica in list(world.replicas):
                await replica.end()

    run_virtual(run())
