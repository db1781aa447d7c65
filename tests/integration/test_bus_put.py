"""Storing messages on a real nats-server: compare-and-set, lost acknowledgements, limits, outages."""

import asyncio
import contextlib
import os
import signal
import sys
import textwrap
from collections.abc import Awaitable, Callable

import pytest

from raybus.bus import BusSettings, NatsBus, connect
from raybus.bus import jetstream as js
from raybus.bus.port import BusError, Conflict, StoreFull
from raybus.bus.streams import STREAMS, ensure_streams
from raybus.testkit.following import until
from raybus.testkit.nats_server import CLUSTER, NatsServer

BusOf = Callable[[str], Awaitable[NatsBus]]
POD = "view.cluster.1.ns.root.pod.p"


class Proxy:
    """Between a client and the server; while `deaf`, nothing of what the server says arrives."""

    def __init__(self, server: NatsServer) -> None:
        self.deaf = False
        self._server = server
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "Proxy":
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()

    def settings(self, user: str) -> BusSettings:
        return BusSettings(url=f"nats://127.0.0.1:{self.port}", user=user, password=user)

    def cut(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        self._writers += [writer, up_writer]
        await asyncio.gather(self._copy(reader, up_writer, False), self._copy(up_reader, writer, True))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, down: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if not (down and self.deaf):
                    writer.write(data)
        writer.close()


async def _absent(bus: NatsBus, subject: str) -> bool:
    return await bus.last("VIEW", subject) is None


async def _present(bus: NatsBus, subject: str) -> bool:
    return not await _absent(bus, subject)


async def _down(bus: NatsBus) -> bool:
    return not bus.connected


async def test_compare_and_set(bus_of: BusOf) -> None:
    watcher = await bus_of("watcher")
    first = await watcher.put("VIEW", POD, b"1", {}, expect=0)
    with pytest.raises(Conflict, match="expected last sequence 0, wrong last sequence: 1"):
        await watcher.put("VIEW", POD, b"2", {}, expect=0)
    second = await watcher.put("VIEW", POD, b"2", {"K8s-RV": "5"}, expect=first)
    last = await watcher.last("VIEW", POD)
    assert last is not None
    assert (last.data, last.seq, dict(last.headers)) == (b"2", second, {"K8s-RV": "5"})
    assert await watcher.last("VIEW", POD + "x") is None


async def test_once_a_tombstone_has_expired_the_expected_sequence_is_zero_again(bus_of: BusOf) -> None:
    watcher = await bus_of("watcher")
    await watcher.put("VIEW", POD, b"", {"Gone": "true"}, expect=0, ttl=1)
    await until(lambda: _absent(watcher, POD))
    await watcher.put("VIEW", POD, b"new", {}, expect=0)


async def test_a_lost_acknowledgement_of_our_own_message_is_success(bus_of: BusOf, nats_server: NatsServer) -> None:
    watcher = await bus_of("watcher")
    async with Proxy(nats_server) as proxy:
        behind = await connect(proxy.settings("watcher"))
        proxy.deaf = True
        putting = asyncio.create_task(behind.put("VIEW", POD, b"mine", {"K8s-RV": "5"}, expect=0))
        await until(lambda: _present(watcher, POD))
        proxy.deaf = False
        proxy.cut()
        assert await putting == 1
        await behind.close()


async def test_a_lost_acknowledgement_and_another_message_since_is_a_conflict(
    bus_of: BusOf, nats_server: NatsServer
) -> None:
    watcher = await bus_of("watcher")
    async with Proxy(nats_server) as proxy:
        behind = await connect(proxy.settings("watcher"))
        proxy.deaf = True
        putting = asyncio.create_task(behind.put("VIEW", POD, b"mine", {"K8s-RV": "5"}, expect=0))
        await until(lambda: _present(watcher, POD))
        await watcher.put("VIEW", POD, b"theirs", {"K8s-RV": "6"}, expect=1)
        proxy.deaf = False
        proxy.cut()
        with pytest.raises(Conflict):
            await putting
        await behind.close()


async def test_puts_survive_a_killed_server(bus_of: BusOf, nats_server: NatsServer) -> None:
    watcher = await bus_of("watcher")

    async def put_all() -> list[int]:
        return await asyncio.gather(
            *(watcher.put("VIEW", f"{POD}{n}", str(n).encode(), {}, expect=0) for n in range(2000))
        )

    putting = asyncio.create_task(put_all())
    await asyncio.sleep(0)
    nats_server.kill()
    nats_server.start()
    async with asyncio.timeout(30):
        assert len(set(await putting)) == 2000
    last = await watcher.last("VIEW", f"{POD}1999")
    assert last is not None


async def test_a_put_waits_for_a_server_that_is_down(bus_of: BusOf, nats_server: NatsServer) -> None:
    watcher = await bus_of("watcher")
    nats_server.kill()
    putting = asyncio.create_task(watcher.put("VIEW", POD, b"x", {}))
    await until(lambda: _down(watcher))
    nats_server.start()
    async with asyncio.timeout(15):
        await putting


async def test_a_put_into_a_stream_that_is_made_meanwhile_succeeds(nats_server: NatsServer) -> None:
    watcher = await connect(nats_server.settings("watcher"))
    putting = asyncio.create_task(watcher.put("VIEW", POD, b"x", {}, expect=0))
    await asyncio.sleep(0)
    await ensure_streams(watcher, CLUSTER)
    async with asyncio.timeout(10):
        assert await putting == 1
    await watcher.close()


async def test_a_publisher_that_was_frozen_cannot_revive_the_past(bus_of: BusOf, nats_server: NatsServer) -> None:
    """A process reads sequence 1, is stopped, the world moves on, it goes on and publishes what it had."""
    watcher = await bus_of("watcher")
    await watcher.put("VIEW", POD, b"old", {"K8s-RV": "1"}, expect=0)
    script = f"""
        import asyncio, sys
        from raybus.bus import BusSettings, connect
        from raybus.bus.port import Conflict
        async def main():
            bus = await connect(BusSettings(url={nats_server.url!r}, user="watcher", password="watcher"))
            last = await bus.last("VIEW", {POD!r})
            print("read", flush=True)
            sys.stdin.readline()
            try:
                await bus.put("VIEW", {POD!r}, b"older", {{"K8s-RV": "1"}}, expect=last.seq)
            except Conflict:
                print("conflict", flush=True)
        asyncio.run(main())
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(script), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert await process.stdout.readline() == b"read\n"
    os.kill(process.pid, signal.SIGSTOP)
    process.stdin.write(b"\n")
    await watcher.put("VIEW", POD, b"new", {"K8s-RV": "2"}, expect=1)
    os.kill(process.pid, signal.SIGCONT)
    async with asyncio.timeout(20):
        output, _ = await process.communicate()
    assert b"conflict" in output
    last = await watcher.last("VIEW", POD)
    assert last is not None
    assert last.data == b"new"


async def test_a_full_store_refuses_and_takes_messages_again_when_there_is_room(
    bus_of: BusOf, nats_server: NatsServer
) -> None:
    watcher = await bus_of("watcher")
    timeline = {**STREAMS["TIMELINE"], "name": "TIMELINE", "max_bytes": 1 << 20}
    await nats_server.administrate(f"{js.API}.STREAM.UPDATE.TIMELINE", js.encode(timeline))
    _restart(nats_server, 4 << 20)
    stored = 0
    with pytest.raises(StoreFull, match=r"stream VIEW is full .*nothing was lost.*max_file_store"):
        for stored in range(100):
            await watcher.put("VIEW", f"{POD}{stored}", os.urandom(200_000), {})
    assert 5 < stored < 50
    assert await watcher.last("VIEW", f"{POD}0") is not None, "nothing was dropped to make room"
    assert watcher.connected
    _restart(nats_server, 64 << 20)
    await watcher.put("VIEW", f"{POD}{stored}", os.urandom(200_000), {})


def _restart(server: NatsServer, max_file_store: int) -> None:
    server.stop()
    server.max_file_store = max_file_store
    server.start()


async def test_a_message_that_is_too_large_names_its_subject_and_leaves_the_connection_alone(bus_of: BusOf) -> None:
    watcher = await bus_of("watcher")
    with pytest.raises(BusError, match=rf"^{POD}: the message has \d+ bytes with its headers, the bus takes 4194304"):
        await watcher.put("VIEW", POD, b"x" * (4 << 20), {"K8s-RV": "1"})
    assert watcher.connected
    await watcher.put("VIEW", POD, b"x" * 4_100_000, {"K8s-RV": "1"})


async def test_what_the_user_may_not_publish_is_one_clear_error_at_once(bus_of: BusOf) -> None:
    await bus_of("watcher")
    controller = await bus_of("cluster-ctl")
    async with asyncio.timeout(3):
        with pytest.raises(BusError, match=rf"user 'cluster-ctl' of the bus may not publish {POD}"):
            await controller.put("VIEW", POD, b"x", {})
