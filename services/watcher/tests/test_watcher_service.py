"""The whole watcher on a bus and an API server in memory, in virtual time."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec
import pytest

from raybus.api import subjects
from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_GONE, H_RV, H_UID, AskMessage, Presence, Root
from raybus.api.names import PARTITIONS
from raybus.api.times import Instant
from raybus.bus.partitions import Partitions
from raybus.bus.port import Message
from raybus.kube.port import Request
from raybus.testkit.fake_api import Connection, FakeApi, Fault
from raybus.testkit.fake_bus import BusServer, FakeBus
from raybus.testkit.virtual_time import SERVICE, VirtualLoop, run_virtual
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


def test_a_first_fill_publishes_everything_and_then_marks_every_partition() -> None:
    async def story(world: World) -> None:
        cluster = world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "w-1"))
        await world.start()
        assert world.has("cluster", "c", "RayCluster", "c", cluster["metadata"]["resourceVersion"])
        assert world.has("cluster", "c", "Pod", "w-1")
        assert await world.marked()
        marker = max(
            world.bus_server.streams["VIEW"].latest(["view.*.*.=.=.marker.fill"]), key=lambda message: -message.seq
        )
        assert marker.seq > (world.message("cluster", "c", "Pod", "w-1") or marker).seq

    play(story)


def test_an_empty_cluster_is_marked_too() -> None:
    async def story(world: World) -> None:
        await world.start()
        assert await world.marked()

    play(story)


def test_a_message_holds_the_object_and_says_what_it_is() -> None:
    async def story(world: World) -> None:
        await world.start()
        made = world.create("RayJob", body("RayJob", "j", spec={"entrypoint": "x"}))
        await world.until(lambda: world.has("job", "j", "RayJob", "j"), "published")
        message = world.message("job", "j", "RayJob", "j")
        assert message is not None
        assert message.headers[H_UID] == made["metadata"]["uid"]
        assert float(message.headers["Observed-At"]) == pytest.approx(world.now(), abs=1)
        assert message.headers["Schema"] == "1"
        assert msgspec.json.decode(message.data)["spec"]["entrypoint"] == "x"

    play(story)


def test_changes_and_deletions_follow() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        changed = world.patch("RayCluster", "c", {"spec": {"suspend": True}})
        version = changed["metadata"]["resourceVersion"]
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c", version), "changed")
        world.delete("RayCluster", "c")
        await world.until(lambda: world.gone("cluster", "c", "RayCluster", "c"), "tombstone")

    play(story)


def test_a_new_route_fills_the_view_with_what_was_there_before_and_an_old_one_leaves_tombstones() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "h", "head"))
        world.create("Pod", pod("c", "w", "worker"))
        labels = {"ray.io/cluster": "c", "ray.io/node-type": "head"}
        world.create("Service", body("Service", "svc", labels, spec={"ports": [{"port": 1}]}))
        await world.until(lambda: world.has("cluster", "c", "Service", "svc"), "service")
        selector = {"clusterSelector": {"ray.io/cluster": "c"}}
        world.create("RayJob", body("RayJob", "j", spec=selector))
        world.create("RayJob", body("RayJob", "k", spec=selector))
        routed = [("RayCluster", "c"), ("Pod", "h"), ("Service", "svc")]

        def in_view(job: str) -> bool:
            return all(world.has("job", job, *each) for each in routed)

        for job in ("j", "k"):
            await world.until(partial(in_view, job), f"in the view of {job}")
        assert world.message("job", "j", "Pod", "w") is None
        version = world.patch("Pod", "h", {"metadata": {"labels": {"x": "y"}}})["metadata"]["resourceVersion"]
        await world.until(lambda: world.has("job", "k", "Pod", "h", version), "changes go to both")

        world.patch("RayJob", "j", {"spec": {"clusterSelector": None}})
        await world.until(lambda: all(world.gone("job", "j", *each) for each in routed), "tombstones")
        assert in_view("k")
        world.patch("RayJob", "j", {"spec": selector})
        await world.until(partial(in_view, "j"), "back at the same version")

    play(story)


def test_an_object_that_moves_from_one_selector_to_another_stays() -> None:
    async def story(world: World) -> None:
        await world.start()
        origin = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "j"}
        world.create("Service", body("Service", "s", origin, spec={"ports": [{"port": 1}]}))
        await world.until(lambda: world.has("job", "j", "Service", "s"), "by its origin")
        world.patch("Service", "s", {"metadata": {"labels": {"ray.io/cluster": "c"}}})
        await world.until(lambda: world.has("cluster", "c", "Service", "s"), "by its cluster")
        await world.until(lambda: world.gone("job", "j", "Service", "s"), "left the job's view")
        await asyncio.sleep(5)
        assert world.has("cluster", "c", "Service", "s")

    play(story)


def test_an_echo_of_the_same_version_is_not_written_again_and_a_newer_one_is_not_taken_back() -> None:
    async def story(world: World) -> None:
        await world.start()
        bus = world.bus_server.connect()
        world.faults = lambda request: Fault(before=1.0) if "watch" in request.query else Fault()
        made = world.create("RayCluster", body("RayCluster", "c", spec={}))
        newer = str(int(made["metadata"]["resourceVersion"]) + 5)
        headers = {H_UID: made["metadata"]["uid"], H_RV: newer, "Observed-At": "1"}
        subject = subjects.view("cluster", "ns", "c", "raycluster", "c")
        seq = await bus.put("VIEW", subject, b"{}", headers)
        await asyncio.sleep(5)
        message = world.message("cluster", "c", "RayCluster", "c")
        assert message is not None and message.seq == seq

    play(story)


def test_an_object_the_applier_has_seen_deleted_does_not_come_back() -> None:
    async def story(world: World) -> None:
        await world.start()
        bus = world.bus_server.connect()
        made = world.create("Pod", pod("c", "w"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w"), "pod")
        subject = subjects.view("cluster", "ns", "c", "pod", "w")
        headers = {H_UID: made["metadata"]["uid"], H_RV: made["metadata"]["resourceVersion"], H_GONE: "1"}
        await bus.put("VIEW", subject, b"", headers, ttl=60)
        world.patch("Pod", "w", {"metadata": {"labels": {"late": "event"}}})
        await asyncio.sleep(5)
        assert world.gone("cluster", "c", "Pod", "w")

    play(story)


def test_a_wiped_bus_is_filled_and_marked_again() -> None:
    async def story(world: World) -> None:
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        for number in range(80):
            world.create("Pod", pod("c", f"w-{number}"))
        await world.start()
        before = world.markers()
        world.bus_server.wipe()
        await world.until(lambda: world.markers() not in (before, {""}) and "" not in world.markers(), "marked again")
        assert await world.marked()
        assert world.has("cluster", "c", "RayCluster", "c")
        assert all(world.has("cluster", "c", "Pod", f"w-{number}") for number in range(80))

    play(story)


def test_after_a_cut_from_the_bus_nothing_is_missing_and_nothing_repeated() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "w-1"))
        world.create("Pod", pod("c", "w-2"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-2"), "pods")
        replica.bus.cut()
        world.delete("Pod", "w-1")
        world.create("Pod", pod("c", "w-3"))
        await asyncio.sleep(40)
        unchanged = world.message("cluster", "c", "RayCluster", "c")
        replica.bus.mend()
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-3"), "created meanwhile")
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "deleted meanwhile")
        assert world.message("cluster", "c", "RayCluster", "c") == unchanged

    play(story)


def test_what_vanished_while_no_watcher_ran_gets_a_tombstone_and_what_stayed_is_not_repeated() -> None:
    async def story(world: World) -> None:
        first = await world.start()
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        world.create("Pod", pod("c", "w"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w"), "pod")
        await first.end()
        unchanged = world.message("cluster", "c", "RayCluster", "c")
        world.delete("Pod", "w")
        await world.start("w2")
        assert world.gone("cluster", "c", "Pod", "w")
        assert world.message("cluster", "c", "RayCluster", "c") == unchanged

    play(story)


def test_a_standby_takes_over_and_publishes_differences_only() -> None:
    async def story(world: World) -> None:
        first = await world.start("w1")
        second = await world.start("w2")
        assert first.active and not second.active
        for number in range(60):
            world.create("Pod", pod("c", f"w-{number}"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-59"), "pods")
        seq = world.last_seq()
        requests = len(world.requests)
        await first.end()
        died = world.loop.time()
        late = world.create("Pod", pod("c", "late"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "late"), "published by the other")
        assert second.active and world.loop.time() - died < 3.0
        assert late["metadata"]["uid"] == (world.message("cluster", "c", "Pod", "late") or Message).headers[H_UID]
        await asyncio.sleep(1)
        assert world.last_seq() == seq + 1
        reads = [request for request in world.requests[requests:] if "watch" not in request.query]
        assert [request.path for request in reads] == ["/api/v1/namespaces/ns/pods/late"]

    play(story)


def test_a_frozen_watcher_that_wakes_up_writes_nothing_of_the_past() -> None:
    async def story(world: World) -> None:
        loop = world.loop
        assert isinstance(loop, VirtualLoop)
        first, second = await world.start("w1"), await world.start("w2")
        made = world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c"), "cluster")
        loop.freeze("w1")
        changed = world.patch("RayCluster", "c", {"spec": {"suspend": True}})
        version = changed["metadata"]["resourceVersion"]
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c", version), "published by the other")
        world.delete("RayCluster", "c")
        await world.until(lambda: world.gone("cluster", "c", "RayCluster", "c"), "deleted")
        seq = world.last_seq()
        loop.thaw("w1")
        await asyncio.sleep(10)
        assert world.last_seq() == seq
        assert second.active and not first.active
        assert made["metadata"]["uid"]

    play(story)


def test_a_kind_whose_crd_is_missing_is_no_obstacle_and_is_picked_up_later(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(world: World) -> None:
        world.api.unserved.add("RayCronJob")
        await world.start()
        assert await world.marked()
        await asyncio.sleep(30)
        world.api.unserved.clear()
        world.create("RayCronJob", body("RayCronJob", "cron", spec={}))
        await world.until(lambda: world.has("cron", "cron", "RayCronJob", "cron"), "picked up")

    play(story)
    said = [line for line in capsys.readouterr().out.splitlines() if "not served" in line]
    assert len(said) == 1 and "raycronjobs" in said[0]


def test_no_marker_before_every_kind_has_been_listed() -> None:
    async def story(world: World) -> None:
        world.faults = lambda request: Fault(error="broken") if "rayjobs" in request.path else Fault()
        replica = Replica(world, "w1")
        world.replicas.append(replica)
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await asyncio.sleep(60)
        assert world.markers() == {""} and "rayjobs" in replica.watcher.problem()
        world.faults = lambda _: Fault()
        await world.until(lambda: replica.ready, "ready")
        assert await world.marked()

    play(story)


def test_an_object_that_cannot_be_read_is_said_once_and_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayJob", body("RayJob", "bad", spec={"clusterSelector": {"ray.io/cluster": 7}}))
        world.create("RayJob", body("RayJob", "good", spec={}))
        await world.until(lambda: world.has("job", "good", "RayJob", "good"), "the next one")
        assert world.message("job", "bad", "RayJob", "bad") is None

    play(story)
    said = [line for line in capsys.readouterr().out.splitlines() if "cannot be read" in line]
    assert len(said) == 1 and "bad" in said[0]


def test_an_object_of_one_and_a_half_megabytes_passes() -> None:
    async def story(world: World) -> None:
        await world.start()
        world.create("RayJob", body("RayJob", "big", spec={"entrypoint": "x" * 1_450_000}))
        await world.until(lambda: world.has("job", "big", "RayJob", "big"), "published")

    play(story)


def test_only_the_listed_namespaces_are_watched() -> None:
    async def story(world: World) -> None:
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.start("w1", ("other", "third"))
        assert world.message("cluster", "c", "RayCluster", "c") is None
        paths = {request.path for request in world.requests}
        assert "/apis/ray.io/v1/namespaces/third/rayjobs" in paths and "/apis/ray.io/v1/rayjobs" not in paths

    play(story)


def presence(world: World, root: str, name: str) -> Presence | None:
    message = world.message("cluster", root, subjects.PRESENCE, name)
    return msgspec.json.decode(message.data, type=Presence) if message is not None and message.data else None


async def ask(world: World, root: str, *needs: Ref) -> None:
    about = Root(kind="RayCluster", namespace="ns", name=root, uid="u", resource_version="1")
    data = msgspec.json.encode(AskMessage(root=about, needs=needs)) if needs else b""
    await world.bus_server.connect().put("ASK", subjects.ask("cluster", "ns", root), data, {})


def test_needs_are_told_while_they_are_asked_for_without_any_value() -> None:
    async def story(world: World) -> None:
        await world.start()
        secret = Ref("Secret", "ns", "tls")
        await ask(world, "c", secret)
        await world.until(lambda: presence(world, "c", "Secret/tls") is not None, "told")
        found = presence(world, "c", "Secret/tls")
        assert found is not None and not found.exists
        data = {"tls.crt": "c2VjcmV0", "tls.key": "c2VjcmV0", "ca.crt": ""}
        world.create("Secret", body("Secret", "tls", data=data))
        await world.until(lambda: (presence(world, "c", "Secret/tls") or Presence).exists is True, "it exists now")
        message = world.message("cluster", "c", subjects.PRESENCE, "Secret/tls")
        assert message is not None and b"c2VjcmV0" not in message.data
        assert (presence(world, "c", "Secret/tls") or Presence).keys == ("tls.crt", "tls.key")

        seq = world.last_seq()
        await ask(world, "d", secret)
        await world.until(lambda: presence(world, "d", "Secret/tls") is not None, "told to another root")
        await asyncio.sleep(60)
        assert world.last_seq() == seq + 1, "told on change only"
        await ask(world, "c")
        await world.until(lambda: world.gone("cluster", "c", subjects.PRESENCE, "Secret/tls"), "withdrawn")
        assert presence(world, "d", "Secret/tls") is not None
        await ask(world, "d")
        await asyncio.sleep(1)
        reads = len(world.requests)
        await asyncio.sleep(20)
        assert not [request for request in world.requests[reads:] if "secrets" in request.path]

    play(story)


def test_needs_survive_a_new_watcher_without_being_told_again() -> None:
    async def story(world: World) -> None:
        first = await world.start()
        world.create("ServiceAccount", body("ServiceAccount", "sa"))
        await ask(world, "c", Ref("ServiceAccount", "ns", "sa"))
        await ask(world, "old", Ref("ServiceAccount", "ns", "sa"))
        await world.until(lambda: presence(world, "c", "ServiceAccount/sa") is not None, "told")
        await world.until(lambda: presence(world, "old", "ServiceAccount/sa") is not None, "told")
        await first.end()
        told = world.message("cluster", "c", subjects.PRESENCE, "ServiceAccount/sa")
        await ask(world, "old")
        await world.start("w2")
        await world.until(lambda: world.gone("cluster", "old", subjects.PRESENCE, "ServiceAccount/sa"), "withdrawn")
        await asyncio.sleep(30)
        assert world.message("cluster", "c", subjects.PRESENCE, "ServiceAccount/sa") == told

    play(story)


def test_a_full_store_loses_nothing() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        world.bus_server.full.add("VIEW")
        world.create("RayCluster", body("RayCluster", "c", spec={}))
        await world.until(lambda: "full" in replica.watcher.problem(), "said")
        world.bus_server.full.clear()
        await world.until(lambda: world.has("cluster", "c", "RayCluster", "c"), "published")
        await world.until(lambda: replica.ready, "ready")

    play(story)


def test_a_watch_that_was_compacted_away_reports_what_vanished() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        world.create("Pod", pod("c", "w-1"))
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-1"), "pod")
        replica.api.down = True
        replica.api.cut()
        world.delete("Pod", "w-1")
        world.create("Pod", pod("c", "w-2"))
        world.api.compact()
        await asyncio.sleep(20)
        replica.api.down = False
        await world.until(lambda: world.has("cluster", "c", "Pod", "w-2"), "created meanwhile")
        await world.until(lambda: world.gone("cluster", "c", "Pod", "w-1"), "vanished meanwhile")

    play(story)
