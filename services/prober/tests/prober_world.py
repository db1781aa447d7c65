"""A prober on virtual time, with heads that answer, hang, are gone or come back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from raybus.api import subjects
from raybus.api.decision import Ask, Head, ProbeJob
from raybus.api.messages import H_EPOCH, H_SCHEMA, SCHEMA, AskMessage, Epoch, Fact, JobFact, Root, TimelineEntry
from raybus.api.names import partition_of
from raybus.api.times import Instant
from raybus.bus import leases
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.bus.port import Message
from raybus.prober.asking import Tools
from raybus.prober.heads import Heads
from raybus.prober.ports import Answer
from raybus.prober.prober import run_prober
from raybus.runtime.behind import Behind
from raybus.testkit.fake_bus import BusServer
from raybus.testkit.virtual_time import SERVICE, run_virtual

NS = "ns"
RUNNING = Answer(outcome="ok", job=JobFact(status="RUNNING"))
DEAD = Answer(outcome="unreachable", text="no complete answer in 2 s")


def head(uid: str = "h1") -> Head:
    return Head(cluster="c", pod_uid=uid, service="c-head-svc", url="http://c-head-svc.ns.svc:8265")


def probe(uid: str = "h1", fresh: float = 3.0) -> ProbeJob:
    return ProbeJob(id="probe", head=head(uid), job_id="j", fresh=fresh)


class Rays:
    """Dashboards by head UID: what they answer, and after how many seconds. Calls are recorded."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.delay: dict[str, float] = {}
        self.calls: list[tuple[float, str, str]] = []

    async def _call(self, what: str, head: Head) -> Answer:
        self.calls.append((asyncio.get_running_loop().time(), what, head.pod_uid))
        await asyncio.sleep(self.delay.get(head.pod_uid, 0.01))
        return self.answers.get(head.pod_uid, RUNNING)

    async def job(self, namespace: str, head: Head, job_id: str) -> Answer:
        return await self._call("job", head)

    async def submit(self, namespace: str, head: Head, job_id: str, request: dict[str, Any]) -> Answer:
        return await self._call("submit", head)

    async def stop(self, namespace: str, head: Head, job_id: str) -> Answer:
        return await self._call("stop", head)

    def made(self, what: str) -> list[float]:
        return [at for at, name, _ in self.calls if name == what]


class World:
    def __init__(self) -> None:
        self.ahead = 0.0
        self.server = BusServer(self.now)
        self.bus = self.server.connect()
        self.rays, self.heads = Rays(), Heads(8)
        self.epoch, self.behind = Epoch(0, 0), Behind("prober", "ASK")
        self.stops: list[Callable[[], Awaitable[None]]] = []

    def now(self) -> Instant:
        return Instant(1000.0 + self.ahead + asyncio.get_running_loop().time())

    async def start(self, replica: str = "a") -> Partitions:
        token = SERVICE.set(replica)
        bus = self.last_bus = self.server.connect()
        epochs, partitions = Epochs(bus), Partitions(bus, "prober", replica)
        tools = Tools(bus, self.rays, self.heads, partitions, self.now)
        parts = [
            asyncio.create_task(c)
            for c in (epochs.run(), partitions.run(), run_prober(partitions, tools, epochs, self.behind))
        ]

        async def stop() -> None:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

        self.stops.append(stop)
        SERVICE.reset(token)
        await asyncio.sleep(3)
        return partitions

    async def lead(self, name: str = "r") -> None:
        key = subjects.lease_key("job-ctl", partition_of(NS, name))
        before = await self.bus.get_key(key)
        revision = await self.bus.put_key(key, leases.encode("me"), revision=before.revision)
        self.epoch = Epoch(await self.bus.bucket_created(), revision)

    async def ask(self, *asks: Ask, name: str = "r", epoch: Epoch | None = None) -> None:
        root = Root(kind="RayJob", namespace=NS, name=name, uid="u", resource_version="1")
        body = msgspec.json.encode(AskMessage(root=root, asks=asks)) if asks else b""
        headers = {H_EPOCH: str(epoch or self.epoch), H_SCHEMA: SCHEMA}
        await self.bus.put("ASK", subjects.ask("job", NS, name), body, headers)

    def message(self, ask_id: str = "probe", name: str = "r") -> Message | None:
        return self.server.streams["VIEW"].last(subjects.view("job", NS, name, subjects.FACT, ask_id))

    def fact(self, ask_id: str = "probe", name: str = "r") -> Fact:
        message = self.message(ask_id, name)
        assert message is not None, f"no fact {ask_id} of {name}"
        return msgspec.json.decode(message.data, type=Fact)

    def told(self) -> list[str]:
        stored = self.server.streams["TIMELINE"].all(">")
        return [did for m in stored for did in msgspec.json.decode(m.data, type=TimelineEntry).did]


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def inside() -> None:
        world = World()
        await world.lead()
        await scenario(world)
        for stop in world.stops:
            await stop()

    run_virtual(inside())
