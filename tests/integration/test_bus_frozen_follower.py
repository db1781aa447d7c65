"""A follower that was stopped ends up with the truth, and says so if it had to begin anew."""

import asyncio
import json
import os
import signal
import sys
import textwrap
from collections.abc import Awaitable, Callable

import pytest

from raybus.bus import NatsBus
from raybus.bus.jetstream import API
from raybus.testkit.nats_server import NatsServer

BusOf = Callable[[str], Awaitable[NatsBus]]

FOLLOWER = """
    import asyncio
    from raybus.bus import BusSettings, connect
    from raybus.bus.port import Loaded, Reset

    async def main():
        bus = await connect(BusSettings(url={url!r}, user="cluster-ctl", password="cluster-ctl"))
        cache, loaded = {{}}, False
        async for item in bus.follow("VIEW", ["view.cluster.1.>"]):
            if isinstance(item, Reset):
                cache, loaded = {{}}, False
                print("reset", flush=True)
            elif isinstance(item, Loaded):
                loaded = True
            else:
                cache[item.subject] = item.data
            if loaded:
                print("cache", len(cache), sorted(set(cache.values())), flush=True)

    asyncio.run(main())
"""


async def remove_consumers(nats_server: NatsServer) -> None:
    """What the server does by itself to consumers that nobody has pulled from for a while."""
    for name in json.loads(await nats_server.administrate(f"{API}.CONSUMER.NAMES.VIEW"))["consumers"]:
        assert json.loads(await nats_server.administrate(f"{API}.CONSUMER.DELETE.VIEW.{name}"))["success"]


@pytest.mark.parametrize("consumer_lives", [True, False], ids=["for less than its consumer lives", "for longer"])
async def test_a_frozen_follower_ends_up_with_the_truth(
    bus_of: BusOf, nats_server: NatsServer, consumer_lives: bool
) -> None:
    watcher = await bus_of("watcher")

    async def put_all(data: bytes) -> None:
        await asyncio.gather(*(watcher.put("VIEW", f"view.cluster.1.ns.r.pod.p{n}", data, {}) for n in range(200)))

    await put_all(b"old")
    script = textwrap.dedent(FOLLOWER).format(url=nats_server.url)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    lines: list[str] = []

    async def read_until(wanted: str) -> None:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            while not lines or lines[-1] != wanted:
                lines.append((await process.stdout.readline()).decode().strip())

    await read_until("cache 200 [b'old']")
    os.kill(process.pid, signal.SIGSTOP)
    if not consumer_lives:
        await remove_consumers(nats_server)
    await put_all(b"new")
    os.kill(process.pid, signal.SIGCONT)
    await read_until("cache 200 [b'new']")
    assert ("reset" in lines) is not consumer_lives
    process.kill()
    await process.wait()
