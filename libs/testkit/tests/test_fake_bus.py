import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

import pytest

from raybus.api.times import Instant
from raybus.bus.port import Bus, Conflict, Loaded, Message, Reset, StoreFull
from raybus.testkit import fake_bus
from raybus.testkit.fake_bus import BusServer, FakeBus
from raybus.testkit.fake_store import matches

T = TypeVar("T")


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> Instant:
        return Instant(self.at)


def fresh() -> tuple[Clock, BusServer, FakeBus]:
    clock = Clock()
    server = BusServer(clock)
    return clock, server, server.connect()


async def take(items: AsyncIterator[T], count: int) -> list[T]:
    async with asyncio.timeout(5):
        return [await anext(items) for _ in range(count)]


def test_the_fake_has_the_shape_of_the_port() -> None:
    bus: Bus = FakeBus(BusServer(Clock()))
    assert bus


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a.b.c", "a.b", False),
    ],
)
def test_filters(pattern: str, subject: str, expected: bool) -> None:
    assert matches(pattern, subject) is expected


async def test_compare_and_set_takes_only_the_present_sequence() -> None:
    _, _, bus = fresh()
    first = await bus.put("VIEW", "view.a", b"1", {}, expect=0)
    with pytest.raises(Conflict):
        await bus.put("VIEW", "view.a", b"2", {}, expect=0)
    await bus.put("VIEW", "view.a", b"2", {}, expect=first)
    message = await bus.last("VIEW", "view.a")
    assert message is not None and message.data == b"2"


async def test_after_its_ttl_a_subject_is_at_zero_again() -> None:
    clock, _, bus = fresh()
    await bus.put("VIEW", "view.a", b"", {}, ttl=10)
    clock.at += 11
    assert await bus.last("VIEW", "view.a") is None
    await bus.put("VIEW", "view.a", b"", {}, expect=0)


async def test_follow_loads_then_goes_on_and_loads_anew_after_a_cut() -> None:
    _, server, bus = fresh()
    other = server.connect()
    await other.put("VIEW", "view.a", b"1", {})
    items = bus.follow("VIEW", ["view.>"])
    assert [type(item) for item in await take(items, 2)] == [Message, Loaded]
    await other.put("VIEW", "view.b", b"2", {})
    assert [item.data for item in await take(items, 1) if isinstance(item, Message)] == [b"2"]
    bus.cut()
    await other.put("VIEW", "view.c", b"3", {})
    bus.mend()
    assert [type(item) for item in await take(items, 5)] == [Reset, Message, Message, Message, Loaded]


async def test_a_newer_message_is_delivered_while_the_older_is_under_way() -> None:
    _, server, bus = fresh()
    work = bus.work("intent.>", "d")
    await bus.put("INTENT", "intent.a", b"1", {})
    (old,) = await take(work, 1)
    await bus.put("INTENT", "intent.a", b"2", {})
    (new,) = await take(work, 1)
    assert (old.message.data, new.message.data) == (b"1", b"2")
    await old.done()
    assert [m.data for m in server.streams["INTENT"].all(">")] == [b"2"]
    await new.done()
    assert server.streams["INTENT"].all(">") == []


async def test_work_that_is_not_acknowledged_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_bus, "ACK_WAIT", 0.01)
    _, _, bus = fresh()
    work = bus.work("intent.>", "d")
    await bus.put("INTENT", "intent.a", b"1", {})
    assert [w.message.data for w in await take(work, 2)] == [b"1", b"1"]


async def test_a_wiped_store_is_another_one() -> None:
    _, server, bus = fresh()
    before = await bus.stream_created("VIEW"), await bus.bucket_created()
    await bus.put_key("lease.x.1", b"me", revision=0)
    items = bus.follow("VIEW", ["view.>"])
    await take(items, 1)
    server.wipe()
    assert [type(item) for item in await take(items, 2)] == [Reset, Loaded]
    after = await bus.stream_created("VIEW"), await bus.bucket_created()
    assert before[0] != after[0] and after[1] > before[1]
    assert (await bus.get_key("lease.x.1")).revision == 0


async def test_keys_have_revisions_and_are_watched() -> None:
    _, _, bus = fresh()
    revision = await bus.put_key("lease.x.1", b"me", revision=0)
    with pytest.raises(Conflict):
        await bus.put_key("lease.x.1", b"you", revision=0)
    changes = bus.watch_keys("lease.x.*")
    first, loaded = await take(changes, 2)
    assert isinstance(first, tuple) and first[1].revision == revision and isinstance(loaded, Loaded)
    await bus.put_key("lease.x.1", b"you", revision=revision)
    (second,) = await take(changes, 1)
    assert isinstance(second, tuple) and second[1].value == b"you"


async def test_announcements_reach_listeners() -> None:
    _, server, bus = fresh()
    heard = bus.listen("heartbeat.x.*")
    waiting = asyncio.ensure_future(anext(heard))
    await asyncio.sleep(0)
    await server.connect().announce("heartbeat.x.a", b"!")
    assert await waiting == ("heartbeat.x.a", b"!")


async def test_a_full_store_refuses() -> None:
    _, server, bus = fresh()
    server.full.add("VIEW")
    with pytest.raises(StoreFull):
        await bus.put("VIEW", "view.a", b"", {})
