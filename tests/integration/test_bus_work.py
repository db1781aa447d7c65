"""The work queue on a real nats-server: nothing is lost, the newest wins, acknowledgements hit the right message."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from raybus.bus import NatsBus
from raybus.bus.port import Work
from raybus.bus.streams import ensure_streams
from raybus.testkit.following import until
from raybus.testkit.nats_server import CLUSTER, NatsServer

BusOf = Callable[[str], Awaitable[NatsBus]]
INTENT = "intent.cluster.1.ns.a"
MANY = 500
"""Messages of which most are still on their way when the first is read."""


async def trio(bus_of: BusOf) -> tuple[NatsBus, NatsBus, NatsBus]:
    return await bus_of("watcher"), await bus_of("cluster-ctl"), await bus_of("applier")


def queue(applier: NatsBus) -> AsyncIterator[Work]:
    return applier.work("intent.*.1.>", "applier-1")


async def take(works: AsyncIterator[Work], seconds: float = 15) -> Work:
    async with asyncio.timeout(seconds):
        return await anext(works)


async def _gone(bus: NatsBus) -> bool:
    return await bus.last("INTENT", INTENT) is None


async def test_a_decision_is_delivered_and_gone_once_done(bus_of: BusOf) -> None:
    _, controller, applier = await trio(bus_of)
    await controller.put("INTENT", INTENT, b"1", {"Epoch": "1:1"})
    works = queue(applier)
    work = await take(works)
    assert (work.message.data, dict(work.message.headers)) == (b"1", {"Epoch": "1:1"})
    await work.done()
    await controller.put("INTENT", INTENT + "b", b"2", {})
    assert (await take(works)).message.data == b"2"
    await until(lambda: _gone(controller))


async def test_the_newest_decision_replaces_one_that_nobody_took(bus_of: BusOf) -> None:
    _, controller, applier = await trio(bus_of)
    await controller.put("INTENT", INTENT, b"old", {})
    await controller.put("INTENT", INTENT, b"new", {})
    works = queue(applier)
    work = await take(works)
    assert work.message.data == b"new"
    await work.done()
    await controller.put("INTENT", INTENT, b"newer", {})
    assert (await take(works)).message.data == b"newer"


async def test_what_is_not_done_comes_again_and_progress_delays_that(bus_of: BusOf) -> None:
    _, controller, applier = await trio(bus_of)
    await controller.put("INTENT", INTENT, b"1", {})
    works = queue(applier)
    clock = asyncio.get_running_loop().time
    first = await take(works)
    again = asyncio.ensure_future(take(works))
    began = clock()
    while clock() - began < 3:
        await first.in_progress()
        await asyncio.sleep(0.1)
    assert not again.done()
    second = await again
    assert second.message == first.message
    assert clock() - began > 4
    await second.done()


async def test_again_after_a_delay(bus_of: BusOf) -> None:
    _, controller, applier = await trio(bus_of)
    await controller.put("INTENT", INTENT, b"1", {})
    works = queue(applier)
    clock = asyncio.get_running_loop().time
    began = clock()
    await (await take(works)).again(0.5)
    await (await take(works)).done()
    assert 0.4 < clock() - began < 1.9


async def test_a_reader_that_ends_gives_back_what_it_did_not_take_and_what_is_on_its_way(bus_of: BusOf) -> None:
    _, controller, applier = await trio(bus_of)
    other = await bus_of("applier")
    await asyncio.gather(*(controller.put("INTENT", f"{INTENT}{n}", bytes(5000), {}) for n in range(MANY)))
    works = applier.work("intent.*.1.>", "applier-1")
    await (await take(works)).done()
    await works.aclose()  # type: ignore[attr-defined]  # an asynchronous generator behind the port's iterator
    others, began = queue(other), asyncio.get_running_loop().time()
    for _ in range(MANY - 1):
        await (await take(others)).done()
    assert asyncio.get_running_loop().time() - began < 1.5


async def test_work_goes_on_after_a_killed_server_and_old_acknowledgements_still_count(
    bus_of: BusOf, nats_server: NatsServer
) -> None:
    _, controller, applier = await trio(bus_of)
    await controller.put("INTENT", INTENT, b"1", {})
    works = queue(applier)
    held = await take(works)
    waiting = asyncio.ensure_future(take(works, 30))
    nats_server.kill()
    nats_server.start()
    await controller.put("INTENT", INTENT + "b", b"2", {})
    fresh = await waiting
    while fresh.message.data != b"2":
        fresh = await take(works)
    await fresh.done()
    await held.done()
    await until(lambda: _gone(controller))


async def test_after_a_wipe_an_old_acknowledgement_hits_nothing(bus_of: BusOf, nats_server: NatsServer) -> None:
    watcher, controller, applier = await trio(bus_of)
    await controller.put("INTENT", INTENT, b"before", {})
    works = queue(applier)
    held = await take(works)
    waiting = asyncio.ensure_future(take(works, 30))
    nats_server.kill()
    nats_server.wipe()
    nats_server.start()
    await ensure_streams(watcher, CLUSTER)
    await controller.put("INTENT", INTENT, b"after", {})
    work = await waiting
    assert work.message.data == b"after"
    assert work.message.seq == held.message.seq, "the same sequence as in the store that is gone"
    await held.done()
    again = await take(works)
    assert again.message.data == b"after"
    await again.done()


async def test_thousands_under_way_at_once(bus_of: BusOf) -> None:
    _, controller, applier = await trio(bus_of)
    await asyncio.gather(*(controller.put("INTENT", f"{INTENT}{n}", b"1", {}) for n in range(5000)))
    works = queue(applier)
    held = []
    async with asyncio.timeout(30):
        subjects = set[str]()
        while len(subjects) < 5000:
            work = await anext(works)
            subjects.add(work.message.subject)
            held.append(work)
        for work in held:
            await work.done()
