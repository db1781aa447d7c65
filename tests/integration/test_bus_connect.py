"""Coming up: wrong credentials, a server that is down, unfit or not ours."""

import asyncio
from pathlib import Path

import pytest

from raybus.bus import BusSettings, NatsBus, connect
from raybus.bus import jetstream as js
from raybus.bus.errors import CannotConnect, ServerUnfit, StreamMismatch
from raybus.bus.port import BusError
from raybus.bus.server_config import ROLES
from raybus.bus.streams import TIMELINE_BYTES, check_server, ensure_streams, wait_for_streams
from raybus.testkit.following import until
from raybus.testkit.nats_server import CLUSTER, NatsServer, free_port


async def _announced(bus: NatsBus) -> bool:
    try:
        await bus.announce("heartbeat.watcher.a", b"")
    except BusError:
        return False
    return True


async def test_a_wrong_password_is_one_sentence_with_what_to_do(nats_server: NatsServer) -> None:
    settings = BusSettings(url=nats_server.url, user="watcher", password="wrong")
    with pytest.raises(CannotConnect, match=r"refuses user 'watcher': wrong user or password\. Check the service's"):
        await connect(settings)
    assert "wrong" not in repr(settings).replace("watcher", "")


@pytest.mark.parametrize("url", ["", "127.0.0.1:4222", "http://bus:4222", "nats://bus:port", "nats://"])
async def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(CannotConnect, match="is no address of a bus"):
        await connect(BusSettings(url=url, user="watcher"))


async def test_a_ca_file_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(CannotConnect, match=r"cannot read the bus's CA file /nowhere/ca\.pem"):
        await connect(BusSettings(ca_file="/nowhere/ca.pem"))


async def test_a_server_that_is_down_is_waited_for_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = NatsServer(tmp_path)
    connecting = asyncio.create_task(connect(server.settings("watcher")))
    said = ""
    async with asyncio.timeout(10):
        while "is nats-server running there?" not in said:
            await asyncio.sleep(0.02)
            said += capsys.readouterr().out
    assert said.count("waiting for the bus") == 1
    assert server.url in said
    server.start()
    async with asyncio.timeout(10):
        bus = await connecting
    assert bus.connected
    await bus.close()
    server.kill()


async def test_the_connection_comes_back_however_often_the_server_goes(nats_server: NatsServer) -> None:
    bus = await connect(nats_server.settings("watcher"))
    for _ in range(4):
        nats_server.kill()
        nats_server.start()
        await until(lambda: _announced(bus))
    await bus.close()


async def test_a_password_that_is_changed_and_changed_back_is_outlived(nats_server: NatsServer) -> None:
    bus = await connect(nats_server.settings("watcher"))
    nats_server.kill()
    nats_server.start(dict.fromkeys(ROLES, "other"))
    assert not await _announced(bus)
    with pytest.raises(BusError, match="no connection to the bus"):
        await bus.announce("heartbeat.watcher.a", b"")
    nats_server.kill()
    nats_server.start()
    await until(lambda: _announced(bus))
    await bus.close()


async def test_streams_are_made_and_are_what_was_asked_for(nats_server: NatsServer) -> None:
    watcher = await connect(nats_server.settings("watcher"))
    await check_server(watcher)
    await ensure_streams(watcher, CLUSTER)
    await ensure_streams(watcher, CLUSTER)
    controller = await connect(nats_server.settings("cluster-ctl"))
    await wait_for_streams(controller)
    for bus in (watcher, controller):
        await bus.close()


async def test_a_watcher_that_comes_later_needs_no_room_for_streams_that_are_there(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, max_file_store=TIMELINE_BYTES + (16 << 20))
    server.start()
    try:
        for _ in range(2):
            watcher = await connect(server.settings("watcher"))
            async with asyncio.timeout(10):
                await ensure_streams(watcher, CLUSTER)
            await watcher.close()
    finally:
        server.kill()


async def test_other_services_wait_for_the_streams_and_say_so(
    nats_server: NatsServer, capsys: pytest.CaptureFixture[str]
) -> None:
    controller = await connect(nats_server.settings("cluster-ctl"))
    waiting = asyncio.create_task(wait_for_streams(controller))
    said = ""
    async with asyncio.timeout(10):
        while "waiting for a stream; the watcher makes it" not in said:
            await asyncio.sleep(0.02)
            said += capsys.readouterr().out
    watcher = await connect(nats_server.settings("watcher"))
    await ensure_streams(watcher, CLUSTER)
    async with asyncio.timeout(10):
        await waiting
    for bus in (watcher, controller):
        await bus.close()


async def test_a_stream_of_another_shape_is_refused_by_name(nats_server: NatsServer) -> None:
    await nats_server.administrate(
        f"{js.API}.STREAM.CREATE.VIEW", js.encode({"name": "VIEW", "subjects": ["view.>"], "retention": "workqueue"})
    )
    watcher = await connect(nats_server.settings("watcher"))
    with pytest.raises(StreamMismatch, match=r"stream VIEW .*retention is workqueue, needed is limits"):
        await ensure_streams(watcher, CLUSTER)
    controller = await connect(nats_server.settings("cluster-ctl"))
    with pytest.raises(StreamMismatch, match=r"raybus-partitions"):
        await wait_for_streams(controller)
    for bus in (watcher, controller):
        await bus.close()


async def test_a_server_without_jetstream_level_is_too_old() -> None:
    port = free_port()
    listener = await asyncio.start_server(_debian, "127.0.0.1", port)
    bus = await connect(BusSettings(url=f"nats://127.0.0.1:{port}", user="watcher", password="watcher"))
    with pytest.raises(ServerUnfit, match=r"nats-server is too old: JetStream API level unknown, needed is 5"):
        await check_server(bus)
    await bus.close()
    listener.close()


async def test_a_server_without_jetstream_is_unfit() -> None:
    port = free_port()
    listener = await asyncio.start_server(_plain, "127.0.0.1", port)
    bus = await connect(BusSettings(url=f"nats://127.0.0.1:{port}", user="watcher", password="watcher"))
    with pytest.raises(ServerUnfit, match="nats-server runs without JetStream"):
        await check_server(bus)
    await bus.close()
    listener.close()


async def _debian(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks as Debian's nats-server 2.9 does."""
    answer = b'{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"api":{"total":1,"errors":0}}'
    await _serve(reader, writer, b'"version":"2.9.10","jetstream":true', b"MSG %s %s %d\r\n%s\r\n", answer)


async def _plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks as a nats-server without JetStream does: nobody serves its API."""
    answer = b"NATS/1.0 503\r\n\r\n"
    await _serve(reader, writer, b'"version":"2.15.1"', b"HMSG %s %s 16 %d\r\n%s\r\n", answer)


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, info: bytes, form: bytes, answer: bytes
) -> None:
    writer.write(b'INFO {"headers":true,"max_payload":1048576,%s}\r\n' % info)
    inbox = b""
    while line := await reader.readline():
        words = line.split()
        match words[0]:
            case b"PING":
                writer.write(b"PONG\r\n")
            case b"SUB":
                inbox = words[2]
            case b"PUB":
                await reader.readexactly(int(words[-1]) + 2)
                writer.write(form % (words[2], inbox, len(answer), answer))
