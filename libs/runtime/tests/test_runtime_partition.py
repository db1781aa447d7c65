"""The loop of one partition against the bus in memory, on virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from raybus.api import subjects
from raybus.api.decision import Create, Decision, Head, ProbeJob, Ref, Why
from raybus.api.messages import (
    H_EPOCH,
    H_GONE,
    H_RV,
    H_SCHEMA,
    H_UID,
    SCHEMA,
    AskMessage,
    Drop,
    Epoch,
    IntentMessage,
    Refusal,
    Result,
    TimelineEntry,
    fingerprint,
)
from raybus.api.names import partition_of
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.api.view import View
from raybus.runtime.calm import Calm
from raybus.runtime.controller import Controller
from raybus.runtime.partition import Partition
from raybus.testkit.fake_bus import BusServer, FakeBus
from raybus.testkit.virtual_time import run_virtual

NS, NAME = "default", "one"
PARTITION = partition_of(NS, NAME)
CLUSTER = Create(ref=Ref("RayCluster", NS, "one-abcde"), body={"kind": "RayCluster"})
HEAD = Head(cluster="one-abcde", pod_uid="u1", service="s", url="http://s:8265")


def wants_cluster(view: View, now: Instant, knobs: None) -> Decision:
    """A small controller: one RayCluster, a status that counts what it sees, a probe once the cluster is there."""
    clusters = list(view.living("raycluster"))
    probe = (ProbeJob(id="job", head=HEAD, job_id="j"),) if clusters else ()
    return Decision(
        status={"clusters": len(clusters)},
        finalizers=frozenset({"ray.io/rayjob-finalizer"}),
        intents=() if clusters else (CLUSTER,),
        asks=probe,
        because=(Why(reason=Reason.STARTED, text="test"),),
        progress=bool(clusters),
    )


class World:
    """A bus, a writer that stands for the watcher and the applier, and one partition under test."""

    def __init__(self, decide: Callable[[View, Instant, None], Decision]) -> None:
        loop = asyncio.get_running_loop()
        self.now: Callable[[], Instant] = lambda: Instant(1e9 + loop.time())
        self.server = BusServer(self.now)
        self.bus: FakeBus = self.server.connect()
        decoders = {"rayjob": msgspec.json.decode, "raycluster": msgspec.json.decode}
        controller = Controller("job", decoders, lambda view: view if view.get("rayjob", NAME) else None, decide, None)
        self.partition = Partition(controller, PARTITION, Epoch(1, 7), self.server.connect(), self.now, Calm(loop.time))
        self.task = asyncio.create_task(self.partition.run())

    async def mark(self) -> None:
        created = await self.bus.stream_created("VIEW")
        await self.bus.put("VIEW", subjects.fill_marker("job", PARTITION), created.encode(), {H_SCHEMA: SCHEMA})

    async def job(self, rv: int = 1, generation: int = 1, **more: Any) -> None:
        meta = {"name": NAME, "namespace": NS, "uid": "uid-1", "resourceVersion": str(rv), "generation": generation}
        body = {"metadata": meta | more.pop("metadata", {}), **more}
        await self.publish("rayjob", NAME, body, rv)

    async def publish(self, kind: str, name: str, body: Any, rv: int = 1, **headers: str) -> None:
        data = b"" if H_GONE in headers else body if isinstance(body, bytes) else msgspec.json.encode(body)
        subject = subjects.view("job", NS, NAME, kind, name)
        await self.bus.put("VIEW", subject, data, {H_RV: str(rv), H_UID: "uid-1", H_SCHEMA: SCHEMA, **headers})

    async def intent(self) -> IntentMessage | None:
        message = await self.bus.last("INTENT", subjects.intent("job", NS, NAME))
        return msgspec.json.decode(message.data, type=IntentMessage) if message else None

    async def take(self) -> IntentMessage | None:
        """The waiting intent, taken out of the queue as the applier would."""
        message = await self.bus.last("INTENT", subjects.intent("job", NS, NAME))
        if message is None:
            return None
        async for work in self.bus.work(subjects.partition_filter("intent", "job", PARTITION), "test"):
            await work.done()
            if work.message.seq >= message.seq:
                break
        return msgspec.json.decode(message.data, type=IntentMessage)


def scenario(story: Callable[[World], Coroutine[Any, Any, None]], decide: Any = wants_cluster) -> None:
    """Run one story; the partition must not have died by itself at its end."""

    async def main() -> None:
        world = World(decide)
        await story(world)
        await asyncio.sleep(0.01)
        assert not world.task.done()
        world.task.cancel()
        with suppress(asyncio.CancelledError):
            await world.task

    run_virtual(main())


def test_nothing_is_decided_before_the_marker_of_the_present_stream() -> None:
    async def story(world: World) -> None:
        await world.job()
        await asyncio.sleep(1)
        assert await world.intent() is None
        assert world.partition.problem == "the watcher has not filled the view yet"
        await world.bus.put("VIEW", subjects.fill_marker("job", PARTITION), b"another stream", {H_SCHEMA: SCHEMA})
        await asyncio.sleep(1)
        assert await world.intent() is None
        await world.mark()
        await asyncio.sleep(1)
        assert await world.intent() is not None
        assert world.partition.problem == ""

    scenario(story)


def test_a_decision_carries_status_finalizer_children_epoch_and_a_timeline_entry() -> None:
    async def story(world: World) -> None:
        await world.mark()
        await world.job(rv=5, metadata={"finalizers": ["kueue.x/keep"]})
        await asyncio.sleep(1)
        message = await world.bus.last("INTENT", subjects.intent("job", NS, NAME))
        assert message is not None and message.headers[H_EPOCH] == "1:7"
        intent = await world.intent()
        assert intent is not None
        assert intent.finalizers_first == ("kueue.x/keep", "ray.io/rayjob-finalizer")
        assert intent.status == {"clusters": 0} and intent.intents == (CLUSTER,)
        assert intent.root.resource_version == "5"
        line = await world.bus.last("TIMELINE", subjects.timeline("rayjob", NS, NAME))
        assert line is not None
        entry = msgspec.json.decode(line.data, type=TimelineEntry)
        assert entry.did == ("add finalizer", "create RayCluster one-abcde", "write status")
        assert entry.because[0].reason == Reason.STARTED

    scenario(story)


def test_the_same_decision_goes_out_again_only_after_an_object_changed() -> None:
    async def story(world: World) -> None:
        await world.mark()
        await world.job()
        await asyncio.sleep(1)
        assert await world.take() is not None
        fact = {"id": "x", "head": "u", "begun": 1.0, "at": 1.0, "outcome": "ok"}
        await world.publish("fact", "x", fact)
        await asyncio.sleep(1)
        assert await world.take() is None
        await world.job(rv=2)
        await asyncio.sleep(1)
        assert await world.take() is not None

    scenario(story)


def test_a_drop_by_the_applier_brings_the_decision_again() -> None:
    async def story(world: World) -> None:
        await world.mark()
        await world.job()
        await asyncio.sleep(1)
        assert await world.take() is not None
        drop = Result(root_uid="uid-1", drop=Drop(cause="epoch", at=world.now(), view_seq=1))
        await world.publish("result", "applier", msgspec.json.encode(drop))
        await asyncio.sleep(1)
        assert await world.take() is not None

    scenario(story)


def test_a_refused_intent_rests_until_its_retry_time_and_then_comes_again() -> None:
    async def story(world: World) -> None:
        refusal = Refusal(
            intent=fingerprint(CLUSTER),
            ref=CLUSTER.ref,
            verb="create",
            code=403,
            reason="Forbidden",
            message="quota",
            at=world.now(),
            retry_at=Instant(world.now() + 30),
        )
        result = Result(root_uid="uid-1", refusals=(refusal,))
        await world.publish("result", "applier", msgspec.json.encode(result))
        await world.mark()
        await world.job(status={"clusters": 0}, metadata={"finalizers": ["ray.io/rayjob-finalizer"]})
        await asyncio.sleep(25)
        assert await world.take() is None
        await asyncio.sleep(10)
        intent = await world.take()
        assert intent is not None and intent.intents == (CLUSTER,)

    scenario(story)


def test_a_status_that_counts_progress_waits_for_a_second_of_quiet_and_five_at_most() -> None:
    async def story(world: World) -> None:
        ours = {"finalizers": ["ray.io/rayjob-finalizer"]}
        await world.publish("raycluster", "one-abcde", {})
        await world.mark()
        await world.job(status={"clusters": 9}, metadata=ours)
        await asyncio.sleep(0.5)
        assert await world.take() is None
        await asyncio.sleep(0.7)
        assert await world.take() is not None
        await world.job(rv=2, status={"clusters": 8}, metadata=ours)
        for number in range(8):
            await asyncio.sleep(0.7)
            await world.publish("raycluster", "one-abcde", {"n": number})
        assert await world.take() is not None

    scenario(story)


def test_other_reasons_for_waiting_alone_wait_for_quiet_as_well() -> None:
    def waits(view: View, now: Instant, knobs: None) -> Decision:
        return Decision(status=None, because=(Why(reason=Reason.STARTED, text=f"{len(view.entries)} objects"),))

    async def story(world: World) -> None:
        await world.mark()
        await world.job()
        await asyncio.sleep(0.5)
        for number in range(6):
            await world.publish("raycluster", f"c{number}", {})
            await asyncio.sleep(0.5)
        await asyncio.sleep(1)
        lines = await world.bus.history("TIMELINE", subjects.timeline("rayjob", NS, NAME))
        assert [msgspec.json.decode(line.data, type=TimelineEntry).because[0].text for line in lines] == [
            "1 objects",
            "7 objects",
        ]

    scenario(story, waits)


def test_asks_are_published_once_and_cleared_when_the_root_goes() -> None:
    async def story(world: World) -> None:
        subject = subjects.ask("job", NS, NAME)
        await world.publish("raycluster", "one-abcde", {})
        await world.mark()
        await world.job()
        await asyncio.sleep(2)
        first = await world.bus.last("ASK", subject)
        assert first is not None
        assert msgspec.json.decode(first.data, type=AskMessage).asks == (ProbeJob(id="job", head=HEAD, job_id="j"),)
        await world.publish("raycluster", "one-abcde", {"n": 2}, rv=2)
        await asyncio.sleep(2)
        again = await world.bus.last("ASK", subject)
        assert again is not None and again.seq == first.seq
        await world.publish("rayjob", NAME, None, 2, **{H_GONE: "1"})
        await asyncio.sleep(1)
        cleared = await world.bus.last("ASK", subject)
        assert cleared is not None and cleared.data == b""

    scenario(story)


def test_a_wiped_bus_is_decided_again_only_after_it_was_filled_again() -> None:
    async def story(world: World) -> None:
        await world.mark()
        await world.job()
        await asyncio.sleep(1)
        world.server.wipe()
        await asyncio.sleep(1)
        assert world.partition.problem
        await world.job()
        await asyncio.sleep(1)
        assert await world.intent() is None
        await world.mark()
        await asyncio.sleep(1)
        assert await world.intent() is not None

    scenario(story)


@pytest.mark.parametrize("garbage", [b"{", b"[]", b'{"metadata": 7}'], ids=["cut off", "a list", "wrong type"])
def test_a_root_that_cannot_be_read_stops_nobody_else(garbage: bytes) -> None:
    async def story(world: World) -> None:
        await world.mark()
        await world.publish("rayjob", NAME, garbage)
        await asyncio.sleep(1)
        assert await world.intent() is None
        await world.job(rv=2)
        await asyncio.sleep(1)
        assert await world.intent() is not None

    scenario(story)


def test_a_bug_in_decide_is_retried_and_does_not_end_the_loop() -> None:
    calls = []

    def breaks_once(view: View, now: Instant, knobs: None) -> Decision:
        calls.append(now)
        if len(calls) == 1:
            raise KeyError("planted")
        return wants_cluster(view, now, knobs)

    async def story(world: World) -> None:
        await world.mark()
        await world.job()
        await asyncio.sleep(29)
        assert await world.intent() is None
        await asyncio.sleep(2)
        assert await world.intent() is not None

    scenario(story, breaks_once)


def test_a_decision_that_became_empty_replaces_one_that_waits_for_an_older_generation() -> None:
    def only_first(view: View, now: Instant, knobs: None) -> Decision:
        entry = view.get("rayjob", NAME)
        assert entry is not None
        return Decision(intents=(CLUSTER,)) if entry.value["metadata"]["generation"] == 1 else Decision()

    async def story(world: World) -> None:
        await world.mark()
        await world.job()
        await asyncio.sleep(1)
        intent = await world.intent()
        assert intent is not None and intent.intents
        await world.job(rv=2, generation=2)
        await asyncio.sleep(1)
        intent = await world.intent()
        assert intent is not None and not intent.intents

    scenario(story, only_first)


def test_a_root_with_something_that_only_a_later_release_reads_is_left_alone_until_it_is_replaced() -> None:
    async def story(world: World) -> None:
        await world.mark()
        await world.publish("raycluster", "c", {}, rv=1, **{H_SCHEMA: "2.0"})
        await world.job()
        await asyncio.sleep(1)
        assert await world.intent() is None
        assert "1 messages of VIEW wait for a later release of job-ctl" in world.partition.behind.problem()
        assert "version 2.0, this release reads 1.x: upgrade this service" in world.partition.behind.problem()
        await world.publish("raycluster", "c", {"later": 1}, 2, **{H_SCHEMA: "1.7"})
        await asyncio.sleep(2)
        assert world.partition.behind.problem() == ""
        message = await world.intent()
        assert message is not None and message.status == {"clusters": 1}

    scenario(story)


def test_what_cannot_be_read_waits_for_a_later_release_only_if_it_comes_from_one() -> None:
    async def story(world: World) -> None:
        await world.mark()
        await world.job()
        await world.publish("rayjob", NAME, b"[", 2, **{H_SCHEMA: "1.7"})
        await asyncio.sleep(1)
        assert "version 1.7, which this release (1.0) cannot read" in world.partition.behind.problem()
        await world.publish("rayjob", NAME, b"[", 3)
        await asyncio.sleep(1)
        assert world.partition.behind.problem() == ""

    scenario(story)


def test_a_marker_of_a_later_release_opens_nothing() -> None:
    async def story(world: World) -> None:
        await world.job()
        created = await world.bus.stream_created("VIEW")
        await world.bus.put("VIEW", subjects.fill_marker("job", PARTITION), created.encode(), {H_SCHEMA: "2.0"})
        await asyncio.sleep(1)
        assert await world.intent() is None and world.partition.behind.problem()

    scenario(story)
