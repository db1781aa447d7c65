"""The prober on virtual time: asks in, facts out, with heads that answer, hang, are gone or come back."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import msgspec

from raybus.api import subjects
from raybus.api.decision import Ask, Head, ProbeJob, StopJob, SubmitJob
from raybus.api.messages import H_EPOCH, H_GONE, H_SCHEMA, SCHEMA, AskMessage, Epoch, Fact, JobFact, Root, TimelineEntry
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
from raybus.testkit.fake_bus import BusServer
from raybus.testkit.virtual_time import run_virtual

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
        self.server = BusServer(self.now)
        self.bus = self.server.connect()
        self.rays = Rays()
        self.epoch = Epoch(0, 0)
        self.stops: list[Callable[[], Awaitable[None]]] = []

    def now(self) -> Instant:
        return Instant(1000.0 + asyncio.get_running_loop().time())

    async def start(self, replica: str = "a") -> Partitions:
        bus = self.server.connect()
        epochs, partitions = Epochs(bus), Partitions(bus, "prober", replica)
        tools = Tools(bus, self.rays, Heads(8), partitions, self.now)
        parts = [
            asyncio.create_task(c) for c in (epochs.run(), partitions.run(), run_prober(partitions, tools, epochs))
        ]

        async def stop() -> None:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

        self.stops.append(stop)
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


def test_a_change_is_published_at_once_and_a_confirmation_when_it_is_wanted() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe(fresh=3.0))
        await asyncio.sleep(0.1)
        first = world.fact()
        assert (first.outcome, first.head, first.job) == ("ok", "h1", JobFact(status="RUNNING"))
        assert first.begun < first.at
        await asyncio.sleep(2.5)
        assert world.fact() == first
        await asyncio.sleep(1.5)
        assert world.fact().begun - first.begun >= 2.7
        world.rays.answers["h1"] = Answer(outcome="ok", job=JobFact(status="SUCCEEDED"))
        await asyncio.sleep(1.1)
        assert world.fact().job == JobFact(status="SUCCEEDED")
        assert world.told() == ["job j is RUNNING", "job j is SUCCEEDED"]

    run(scenario)


def test_a_fresher_wish_is_answered_at_once() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe(fresh=30.0))
        await asyncio.sleep(0.5)
        asked = world.now()
        await world.ask(probe(fresh=1.0))
        await asyncio.sleep(1.1)
        assert world.fact().begun >= asked

    run(scenario)


def test_heads_that_never_answer_delay_nobody_else() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        for number in range(30):
            uid, name = f"dead{number}", f"d{number}"
            world.rays.answers[uid], world.rays.delay[uid] = DEAD, 2.0
            await world.lead(name)
            await world.ask(probe(uid), name=name)
        await asyncio.sleep(30)
        await world.lead()
        asked = world.now()
        await world.ask(probe("healthy"))
        await asyncio.sleep(0.5)
        assert world.fact().outcome == "ok" and world.fact().at - asked < 0.5
        assert world.fact(name="d3").outcome == "unreachable"

    run(scenario)


def test_a_dead_head_is_called_ever_more_rarely_but_at_least_every_few_seconds() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = DEAD
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(60)
        calls = world.rays.made("job")
        gaps = [after - before for before, after in pairwise(calls)]
        assert gaps[0] < 0.6 and 4.9 < max(gaps) < 5.1 and gaps[-1] > 4.9
        assert world.told() == ["probe job j: no answer"]
        world.rays.answers["h1"] = RUNNING
        await asyncio.sleep(5.1)
        assert world.fact().outcome == "ok"

    run(scenario)


def submit(uid: str = "h1") -> SubmitJob:
    return SubmitJob(id="submit", head=head(uid), job_id="j", request={"entrypoint": "x", "submission_id": "j"})


DONE = Answer(outcome="ok", final=True)


def test_a_submission_happens_once_per_head_also_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = world.rays.answers["h2"] = DONE
        await world.start()
        await world.ask(submit())
        await asyncio.sleep(10)
        assert world.fact("submit").outcome == "ok"
        await world.stops.pop()()
        await world.start("b")
        await asyncio.sleep(10)
        assert len(world.rays.made("submit")) == 1
        await world.ask(submit("h2"))
        await asyncio.sleep(10)
        assert len(world.rays.made("submit")) == 2 and world.fact("submit").head == "h2"

    run(scenario)


def test_a_submission_without_an_answer_is_tried_again_and_a_refused_one_is_not() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = DEAD
        await world.start()
        await world.ask(submit())
        await asyncio.sleep(4)
        assert len(world.rays.made("submit")) > 1 and world.fact("submit").outcome == "unreachable"
        world.rays.answers["h1"] = Answer(outcome="refused", text="bad runtime_env", final=True)
        await asyncio.sleep(20)
        made = len(world.rays.made("submit"))
        await asyncio.sleep(20)
        assert len(world.rays.made("submit")) == made and world.fact("submit").text == "bad runtime_env"

    run(scenario)


def test_a_stop_does_not_wait_for_a_probe_that_hangs() -> None:
    async def scenario(world: World) -> None:
        world.rays.delay["h1"] = 2.0
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(0.5)
        await world.ask(probe(), StopJob(id="stop", head=head(), job_id="j"))
        await asyncio.sleep(0.1)
        assert len(world.rays.made("stop")) == 1

    run(scenario)


def test_an_ask_that_goes_away_leaves_a_tombstone_and_no_more_calls() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(1)
        await world.ask()
        await asyncio.sleep(1)
        message, calls = world.message(), len(world.rays.calls)
        assert message is not None and H_GONE in message.headers and message.data == b""
        await asyncio.sleep(10)
        assert len(world.rays.calls) == calls

    run(scenario)


def test_an_ask_of_a_former_owner_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(1)
        await world.ask(epoch=Epoch(world.epoch.created, world.epoch.revision - 1))
        await world.ask(epoch=Epoch(world.epoch.created, world.epoch.revision + 5))
        await asyncio.sleep(10)
        message = world.message()
        assert message is not None and H_GONE not in message.headers
        assert world.now() - world.fact().at < 4

    run(scenario)


def test_an_unreadable_ask_costs_nothing_but_itself() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        subject = subjects.ask("job", NS, "r")
        await world.bus.put("ASK", subject, b"{", {H_EPOCH: str(world.epoch), H_SCHEMA: SCHEMA})
        await world.bus.put("ASK", subject, b"{}", {})
        await asyncio.sleep(10)
        assert world.now() - world.fact().at < 4

    run(scenario)


def test_a_newer_fact_of_another_replica_stays() -> None:
    async def scenario(world: World) -> None:
        world.rays.delay["h1"] = 5.0
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(2)
        newer = Fact(id="probe", head="h1", begun=world.now(), at=world.now(), outcome="missing")
        subject = subjects.view("job", NS, "r", subjects.FACT, "probe")
        await world.bus.put("VIEW", subject, msgspec.json.encode(newer), {})
        await asyncio.sleep(4)
        assert world.fact() == newer

    run(scenario)


def test_a_replica_that_takes_over_goes_on_where_the_other_ended() -> None:
    async def scenario(world: World) -> None:
        first = await world.start("a")
        await world.ask(probe())
        await asyncio.sleep(1)
        await world.start("b")
        await first.leave()
        await world.stops.pop(0)()
        await asyncio.sleep(5)
        assert world.now() - world.fact().at < 4

    run(scenario)


def test_after_a_wiped_bus_only_what_is_asked_again_is_probed() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(1)
        world.server.wipe()
        await asyncio.sleep(5)
        calls = len(world.rays.calls)
        await asyncio.sleep(5)
        assert len(world.rays.calls) == calls and world.message() is None
        await world.lead()
        await world.ask(probe())
        await asyncio.sleep(1)
        assert world.fact().outcome == "ok"

    run(scenario)
