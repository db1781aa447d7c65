"""Following a stream on a real nats-server: complete when it says so, and never silently behind."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from raybus.bus import NatsBus
from raybus.bus import jetstream as js
from raybus.bus.port import KeyValue, Loaded, Message, Reset
from raybus.bus.streams import ensure_streams, keep_streams
from raybus.testkit.following import Following
from raybus.testkit.nats_server import CLUSTER, NatsServer

BusOf = Callable[[str], Awaitable[NatsBus]]


def pod(number: int, partition: int = 1) -> str:
    return f"view.cluster.{partition}.ns.root.pod.p{number}"


async def fill(watcher: NatsBus, count: int, data: bytes = b"{}", partition: int = 1) -> None:
    await asyncio.gather(*(watcher.put("VIEW", pod(n, partition), data, {}) for n in range(count)))


async def test_an_empty_stream_is_loaded_at_once(bus_of: BusOf) -> None:
    await bus_of("watcher")
    items = (await bus_of("cluster-ctl")).follow("VIEW", ["view.cluster.1.>"])
    async with asyncio.timeout(5):
        assert await anext(items) == Loaded()


async def test_the_last_of_each_subject_then_loaded_then_what_is_new(bus_of: BusOf) -> None:
    watcher = await bus_of("watcher")
    await fill(watcher, 3, b"old")
    seq = await watcher.put("VIEW", pod(1), b"new", {"K8s-RV": "7"})
    items = (await bus_of("cluster-ctl")).follow("VIEW", ["view.cluster.1.>"])
    async with asyncio.timeout(5):
        first = [await anext(items) for _ in range(4)]
        await watcher.put("VIEW", pod(9), b"later", {})
        later = await anext(items)
    messages = [item for item in first if isinstance(item, Message)]
    assert first[3] == Loaded()
    assert [(m.subject, m.data) for m in messages] == [(pod(0), b"old"), (pod(2), b"old"), (pod(1), b"new")]
    assert messages[-1].headers == {"K8s-RV": "7"}
    assert messages[-1].seq == seq
    assert isinstance(later, Message)
    assert later.data == b"later"


async def test_several_filters_are_loaded_once_all_are(bus_of: BusOf) -> None:
    watcher = await bus_of("watcher")
    await fill(watcher, 5, partition=2)
    cache = Following(await bus_of("cluster-ctl"), "VIEW", [f"view.cluster.{p}.>" for p in (1, 2, 3)])
    await cache.until_loaded()
    assert len(cache.now) == 5
    assert cache.loads == 1
    await watcher.put("VIEW", pod(0, 3), b"x", {})
    await cache.until(lambda: pod(0, 3) in cache.now)


async def test_loaded_means_complete_while_everything_is_being_rewritten(bus_of: BusOf) -> None:
    watcher, controller = await bus_of("watcher"), await bus_of("cluster-ctl")
    await fill(watcher, 300)
    stop = False

    async def rewrite() -> int:
        rounds = 0
        while not stop:
            rounds += 1
            await fill(watcher, 300, str(rounds).encode())
        return rounds

    rewriting = asyncio.create_task(rewrite())
    for _ in range(20):
        cache = Following(controller, "VIEW", ["view.cluster.1.>"])
        await cache.until_loaded()
        assert len(cache.now) == 300
        cache.close()
    stop = True
    assert await rewriting > 3


async def test_a_slow_reader_misses_nothing(bus_of: BusOf) -> None:
    watcher, controller = await bus_of("watcher"), await bus_of("cluster-ctl")
    items = controller.follow("VIEW", ["view.cluster.1.>"])
    async with asyncio.timeout(60):
        assert await anext(items) == Loaded()
        await fill(watcher, 5000, b"x" * 4000)
        seen = set[str]()
        while len(seen) < 5000:
            item = await anext(items)
            assert isinstance(item, Message)
            seen.add(item.subject)
            if len(seen) % 500 == 0:
                await watcher.put("VIEW", pod(10_000), b"keeps coming", {})
            seen.discard(pod(10_000))


async def test_a_killed_server_means_reset_and_a_fresh_load(bus_of: BusOf, nats_server: NatsServer) -> None:
    watcher = await bus_of("watcher")
    await fill(watcher, 10)
    cache = Following(await bus_of("cluster-ctl"), "VIEW", ["view.cluster.1.>"])
    await cache.until_loaded()
    nats_server.kill()
    await cache.until(lambda: bool(cache.resets))
    assert not cache.now
    nats_server.start()
    await cache.until_loaded(2)
    assert len(cache.now) == 10
    assert len(cache.resets) == 1


async def test_a_wiped_store_means_reset_and_a_load_of_what_the_watcher_fills(
    bus_of: BusOf, nats_server: NatsServer
) -> None:
    watcher, controller = await bus_of("watcher"), await bus_of("cluster-ctl")
    keeper = asyncio.create_task(keep_streams(watcher, CLUSTER))
    await fill(watcher, 10)
    before = await controller.stream_created("VIEW")
    cache = Following(controller, "VIEW", ["view.cluster.1.>"])
    await cache.until_loaded()
    nats_server.kill()
    nats_server.wipe()
    nats_server.start()
    await cache.until_loaded(2)
    assert not cache.now
    await watcher.put("VIEW", pod(3), b"again", {}, expect=0)
    await cache.until(lambda: set(cache.now) == {pod(3)})
    assert await controller.stream_created("VIEW") != before
    keeper.cancel()


async def test_a_stream_deleted_under_a_living_connection_means_reset(bus_of: BusOf, nats_server: NatsServer) -> None:
    watcher = await bus_of("watcher")
    await fill(watcher, 10)
    cache = Following(await bus_of("cluster-ctl"), "VIEW", ["view.cluster.1.>"])
    await cache.until_loaded()
    await nats_server.administrate(f"{js.API}.STREAM.DELETE.VIEW")
    await cache.until(lambda: bool(cache.resets))
    await ensure_streams(watcher, CLUSTER)
    await cache.until_loaded(2)
    assert not cache.now


async def test_a_frozen_server_is_given_up_and_loaded_from_anew_when_it_thaws(
    bus_of: BusOf, nats_server: NatsServer
) -> None:
    watcher, controller = await bus_of("watcher"), await bus_of("cluster-ctl")
    await fill(watcher, 10)
    cache = Following(controller, "VIEW", ["view.cluster.1.>"])
    await cache.until_loaded()
    nats_server.pause()
    await cache.until(lambda: bool(cache.resets), 15)
    nats_server.resume()
    await cache.until_loaded(2)
    assert len(cache.now) == 10
    await watcher.put("VIEW", pod(11), b"x", {})
    await cache.until(lambda: len(cache.now) == 11)


async def test_a_consumer_that_vanishes_means_reset(bus_of: BusOf, nats_server: NatsServer) -> None:
    watcher = await bus_of("watcher")
    await fill(watcher, 10)
    cache = Following(await bus_of("cluster-ctl"), "VIEW", ["view.cluster.1.>"])
    await cache.until_loaded()
    names = msgspec.json.decode(await nats_server.administrate(f"{js.API}.CONSUMER.NAMES.VIEW"))["consumers"]
    for name in names:
        await nats_server.administrate(f"{js.API}.CONSUMER.DELETE.VIEW.{name}")
    await cache.until_loaded(2)
    assert "consumer" in cache.resets[0]
    assert len(cache.now) == 10


async def test_keys_are_followed_like_streams(bus_of: BusOf) -> None:
    await bus_of("watcher")
    controller = await bus_of("cluster-ctl")
    first = await controller.put_key("lease.cluster-ctl.1", b"a", revision=0)
    keys = controller.watch_keys("lease.cluster-ctl.*")
    async with asyncio.timeout(5):
        key, value = _pair(await anext(keys))
        assert await anext(keys) == Loaded()
        await controller.put_key("lease.cluster-ctl.1", b"b", revision=first)
        _, newer = _pair(await anext(keys))
    assert (key, value.value, value.revision) == ("lease.cluster-ctl.1", b"a", first)
    assert newer.value == b"b"
    assert await controller.get_key("lease.cluster-ctl.1") == newer


def _pair(item: tuple[str, KeyValue] | Loaded | Reset) -> tuple[str, KeyValue]:
    assert isinstance(item, tuple)
    return item


async def test_announcements_are_heard_and_a_reconnect_is_told(bus_of: BusOf, nats_server: NatsServer) -> None:
    await bus_of("watcher")
    a, b = await bus_of("cluster-ctl"), await bus_of("cluster-ctl")
    heard = b.listen("heartbeat.cluster-ctl.*")
    hearing = asyncio.ensure_future(anext(heard))
    async with asyncio.timeout(20):
        while not hearing.done():
            await a.announce("heartbeat.cluster-ctl.a", b"1")
        assert hearing.result() == ("heartbeat.cluster-ctl.a", b"1")
        nats_server.kill()
        item = await anext(heard)
        while not isinstance(item, Reset):
            item = await anext(heard)
        nats_server.start()
        hearing = asyncio.ensure_future(anext(heard))
        while not hearing.done():
            await a.announce("heartbeat.cluster-ctl.a", b"2")
        assert hearing.result() == ("heartbeat.cluster-ctl.a", b"2")


async def test_the_whole_history_of_a_root_can_be_read(bus_of: BusOf) -> None:
    await bus_of("watcher")
    controller, cli = await bus_of("cluster-ctl"), await bus_of("cli")
    for n in range(5):
        await controller.put("TIMELINE", "timeline.raycluster.ns.a", str(n).encode(), {})
    history = await cli.history("TIMELINE", "timeline.raycluster.ns.a")
    assert [m.data for m in history] == [b"0", b"1", b"2", b"3", b"4"]
    assert await cli.history("TIMELINE", "timeline.raycluster.ns.none") == []
