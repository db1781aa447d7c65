"""Whole replicas on virtual time: partitions, hand-over, a frozen process, unreadable messages."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import msgspec

from raybus.api import subjects
from raybus.api.decision import Create, Ref
from raybus.api.messages import H_EPOCH, H_SCHEMA, H_VIEW_SEQ, SCHEMA, Epoch, IntentMessage, Result, Root
from raybus.api.names import partition_of
from raybus.api.times import Instant
from raybus.applier.applier import Applier, Ports
from raybus.bus import leases
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.kube.port import Request, Response, Transient
from raybus.testkit.fake_bus import BusServer, FakeBus
from raybus.testkit.virtual_time import SERVICE, VirtualLoop, run_virtual

NS, NAME = "ns", "c"
PARTITION = partition_of(NS, NAME)
INTENT = subjects.intent("cluster", NS, NAME)


class Api:
    """Answers every create with the object; says which replica sent it."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.away = False
        self.hold = 0.0

    async def send(self, request: Request) -> Response:
        if self.away:
            raise Transient("POST: no connection", sent=False)
        body = msgspec.json.decode(request.body)
        self.sent.append((SERVICE.get(), body["metadata"]["name"]))
        await asyncio.sleep(self.hold)
        body["metadata"] |= {"uid": f"uid-{len(self.sent)}", "resourceVersion": str(len(self.sent))}
        return Response(status=201, body=msgspec.json.encode(body))

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        raise AssertionError("the applier never watches")


class World:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = BusServer(self.now)
        self.bus = self.server.connect()
        self.api = Api()
        self.parts: list[asyncio.Task[Any]] = []
        self.partitions: dict[str, Partitions] = {}
        self.appliers: dict[str, Applier] = {}
        self.epoch = Epoch(0, 0)
        self.led: dict[int, Epoch] = {}

    def now(self) -> Instant:
        return Instant(1000.0 + self.loop.time())

    def start(self, replica: str, max_held: int = 100) -> FakeBus:
        token = SERVICE.set(replica)
        bus = self.server.connect()
        epochs, partitions = Epochs(bus), Partitions(bus, "applier", replica)
        ports = Ports(bus=bus, sender=self.api, partitions=partitions, epochs=epochs, now=self.now)
        self.partitions[replica] = partitions
        applier = self.appliers[replica] = Applier(ports, replica, 16, max_held)
        self.parts += [asyncio.create_task(part) for part in (epochs.run(), partitions.run(), applier.run())]
        SERVICE.reset(token)
        return bus

    async def lead(self, root: str = NAME, namespace: str = NS) -> None:
        """Take the controller's lease, so that there is an epoch to decide under."""
        key = subjects.lease_key("cluster-ctl", partition_of(namespace, root))
        before = await self.bus.get_key(key)
        revision = await self.bus.put_key(key, leases.encode("me"), revision=before.revision)
        self.epoch = Epoch(await self.bus.bucket_created(), revision)

    async def decide(self, name: str, view_seq: int = 1000, root: str = NAME) -> None:
        """A Decision about `root` to create the pod `name`."""
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NS}}
        about = Root(kind="RayCluster", namespace=NS, name=root, uid="u", resource_version="1")
        message = IntentMessage(root=about, intents=(Create(ref=Ref("Pod", NS, name), body=body),))
        headers = {H_EPOCH: str(self.epoch), H_VIEW_SEQ: str(view_seq), H_SCHEMA: SCHEMA}
        await self.bus.put("INTENT", subjects.intent("cluster", NS, root), msgspec.json.encode(message), headers)

    async def lead_and_decide(self, name: str, namespace: str = NS, **parts: Any) -> None:
        """A Decision about the root `name`: to create a pod of that name, or what `parts` say instead."""
        partition = partition_of(namespace, name)
        if partition not in self.led:
            await self.lead(name, namespace)
            self.led[partition] = self.epoch
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
        about = Root(kind="RayCluster", namespace=namespace, name=name, uid="u", resource_version="1")
        make = {"intents": (Create(ref=Ref("Pod", namespace, name), body=body),)}
        message = IntentMessage(root=about, **(parts or make))
        headers = {H_EPOCH: str(self.led[partition]), H_VIEW_SEQ: "1000", H_SCHEMA: SCHEMA}
        subject = subjects.intent("cluster", namespace, name)
        await self.bus.put("INTENT", subject, msgspec.json.encode(message), headers)

    def left(self) -> int:
        return len(self.server.streams["INTENT"].all(">"))

    def owner(self) -> str:
        return next((name for name, parts in self.partitions.items() if parts.owns(PARTITION)), "")

    def pods(self) -> list[tuple[str, str]]:
        return [(who, name) for who, name in self.api.sent if not name.startswith("c.")]


def run(scenario: Any) -> None:
    async def inside() -> None:
        world = World()
        await world.lead()
        await scenario(world)
        for part in world.parts:
            part.cancel()
        await asyncio.gather(*world.parts, return_exceptions=True)

    main: Coroutine[Any, Any, None] = inside()
    run_virtual(main)


def test_one_replica_takes_all_partitions_and_carries_out_what_waits() -> None:
    async def scenario(world: World) -> None:
        await world.decide("p")
        world.start("a")
        await asyncio.sleep(5)
        assert world.pods() == [("a", "p")] and world.left() == 0

    run(scenario)


def test_a_planned_stop_hands_over_within_a_fifth_of_a_second() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        world.start("b")
        await asyncio.sleep(5)
        first = world.owner()
        await world.partitions[first].leave()
        await world.decide("p")
        await asyncio.sleep(0.2)
        assert world.pods() == [("b" if first == "a" else "a", "p")]

    run(scenario)


def test_what_found_no_room_is_handed_over_too() -> None:
    async def scenario(world: World) -> None:
        world.start("a", max_held=1)
        await asyncio.sleep(5)
        world.api.hold = 5.0
        await world.decide("p")
        await world.lead("other")
        await world.decide("q", root="other")
        await asyncio.sleep(1)
        world.start("b")
        await world.partitions["a"].leave()
        await asyncio.sleep(2)
        assert world.pods() == [("a", "p"), ("b", "q")]

    run(scenario)


async def _storm(world: World) -> None:
    """More roots of one namespace than there is room for, whose requests hang; those that follow are answered."""
    world.start("a", max_held=4)
    await asyncio.sleep(5)
    world.api.hold = 5.0
    for number in range(20):
        await world.lead_and_decide(f"new{number}")
    await asyncio.sleep(1)
    world.api.hold = 0.0


def test_a_status_does_not_wait_behind_roots_that_find_no_room() -> None:
    async def scenario(world: World) -> None:
        await _storm(world)
        await world.lead_and_decide("old", status={"state": "ready"})
        await asyncio.sleep(0.5)
        assert "old" in [name for _, name in world.api.sent]
        assert len(world.pods()) < 20, "so there was no room for all"

    run(scenario)


def test_a_storm_in_one_namespace_leaves_room_to_others() -> None:
    async def scenario(world: World) -> None:
        await _storm(world)
        await world.lead_and_decide("single", "quiet")
        await asyncio.sleep(0.5)
        assert "single" in [name for _, name in world.api.sent]

    run(scenario)


def test_all_roots_that_found_no_room_have_their_turn() -> None:
    async def scenario(world: World) -> None:
        world.start("a", max_held=4)
        await asyncio.sleep(5)
        world.api.hold = 0.5
        for number in range(60):
            await world.lead_and_decide(f"new{number}")
        await asyncio.sleep(60)
        assert sorted(name for _, name in world.pods()) == sorted(f"new{number}" for number in range(60))
        assert world.left() == 0

    run(scenario)


def test_a_frozen_replica_sends_nothing_when_it_wakes_up() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        world.api.hold = 0.5
        await world.decide("p")
        await asyncio.sleep(0.1)
        await world.decide("q")
        loop = world.loop
        assert isinstance(loop, VirtualLoop)
        loop.freeze("a")
        world.start("b")
        await asyncio.sleep(5)
        loop.thaw("a")
        await asyncio.sleep(5)
        assert world.pods() == [("a", "p"), ("b", "q")] and world.left() == 0

    run(scenario)


def test_a_decision_delivered_twice_to_a_frozen_replica_is_not_lost() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        loop = world.loop
        assert isinstance(loop, VirtualLoop)
        loop.freeze("a")
        await world.decide("p")
        await asyncio.sleep(5)
        loop.thaw("a")
        await asyncio.sleep(5)
        assert [name for _, name in world.pods()] == ["p"] and world.left() == 0

    run(scenario)


def test_a_newer_decision_replaces_the_one_that_waits_for_its_root() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        world.api.hold = 0.5
        for name in ("p", "q", "r"):
            await world.decide(name)
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        assert [name for _, name in world.pods()] == ["p", "r"]

    run(scenario)


def test_work_longer_than_the_ack_window_is_done_once() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        world.api.hold = 9.0
        await world.decide("p")
        await asyncio.sleep(30)
        assert [name for _, name in world.pods()] == ["p"] and world.left() == 0

    run(scenario)


def test_an_api_server_that_is_away_for_a_minute_costs_only_time() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        world.api.away = True
        await world.decide("p")
        await asyncio.sleep(60)
        assert world.left() == 1
        world.api.away = False
        await asyncio.sleep(40)
        assert [name for _, name in world.pods()] == ["p"] and world.left() == 0

    run(scenario)


def test_an_unreadable_message_is_dropped_once_and_said_in_the_result() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        for _ in range(3):
            await world.bus.put("INTENT", INTENT, b"{", {H_SCHEMA: SCHEMA})
            await asyncio.sleep(5)
        message = await world.bus.last("VIEW", subjects.view("cluster", NS, NAME, subjects.RESULT, "applier"))
        assert message is not None and message.seq == 1 and world.left() == 0
        drop = msgspec.json.decode(message.data, type=Result).drop
        assert drop is not None and drop.cause == "invalid"
        await world.decide("p")
        await asyncio.sleep(1)
        assert [name for _, name in world.pods()] == ["p"]

    run(scenario)


def test_a_decision_of_a_later_release_stays_until_it_is_replaced() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        await world.bus.put("INTENT", INTENT, b"{}", {H_SCHEMA: "2.0"})
        await asyncio.sleep(60)
        assert world.left() == 1
        assert "wait for a later release of applier" in world.appliers["a"].behind.problem()
        assert await world.bus.last("VIEW", subjects.view("cluster", NS, NAME, subjects.RESULT, "applier")) is None
        await world.decide("p")
        await asyncio.sleep(1)
        assert [name for _, name in world.pods()] == ["p"]
        assert world.left() == 0 and world.appliers["a"].behind.problem() == ""

    run(scenario)


def test_a_wiped_bus_is_worked_on_from_the_start() -> None:
    async def scenario(world: World) -> None:
        world.start("a")
        await asyncio.sleep(5)
        await world.decide("p")
        await asyncio.sleep(1)
        world.server.wipe()
        await asyncio.sleep(5)
        await world.lead()
        await world.decide("q", view_seq=0)
        await asyncio.sleep(5)
        assert [name for _, name in world.pods()] == ["p", "q"]

    run(scenario)
