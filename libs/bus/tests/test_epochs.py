"""What applier and prober believe of epochs, on a bus in memory."""

import asyncio

from raybus.api import subjects
from raybus.api.messages import Epoch
from raybus.api.times import Instant
from raybus.bus import leases
from raybus.bus.epochs import Epochs
from raybus.testkit.fake_bus import BusServer
from raybus.testkit.virtual_time import run_virtual

KEY = subjects.lease_key("cluster-ctl", 0)


def test_an_older_bus_that_comes_back_is_obeyed() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = BusServer(lambda: Instant(1_000_000.0 + loop.time()))
        bus = server.connect()
        epochs = Epochs(server.connect())
        following = asyncio.create_task(epochs.run())

        async def take() -> Epoch:
            await asyncio.sleep(1)
            revision = await bus.put_key(KEY, leases.encode("a"), revision=(await bus.get_key(KEY)).revision)
            await asyncio.sleep(1)
            return Epoch(await bus.bucket_created(), revision)

        before, kept, lives = await take(), server.streams, server._lives
        server.wipe()
        between = await take()
        assert await epochs.judge("cluster", 0, between) == "current"
        assert await epochs.judge("cluster", 0, before) == "old"
        server.wipe()
        server.streams, server._lives = kept, lives
        again = await take()
        assert before < again < between
        assert await epochs.judge("cluster", 0, again) == "current"
        assert await epochs.judge("cluster", 0, before) == "old"
        assert await epochs.judge("cluster", 0, between) == "unknown"
        following.cancel()

    run_virtual(main())
