"""A follower that is stopped for longer than its consumer lives ends up with the truth, and says that it began anew."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Awaitable, Callable

from raybus.bus import NatsBus
from raybus.bus.consumers import STALL
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


async def test_a_frozen_follower_loads_anew(bus_of: BusOf, nats_server: NatsServer) -> None:
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
    # The freeze itself is what is tested; nothing else marks its length.
    await asyncio.sleep(STALL + 1)
    await put_all(b"new")
    os.kill(process.pid, signal.SIGCONT)
    await read_until("cache 200 [b'new']")
    assert "reset" in lines
    process.kill()
    await process.wait()
