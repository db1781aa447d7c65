"""NATS' protocol over real sockets with a server that is told byte by byte what to say."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybus.bus.settings import BusSettings
from raybus.bus.wire import Msg, Wire, WireError, decode_headers, encode_publish

NAMES = st.from_regex(r"[A-Za-z0-9-]+", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n")).filter(lambda value: value == value.strip())
INFO = b'INFO {"max_payload":1000,"jetstream":true}\r\n'


@given(st.dictionaries(NAMES, VALUES, min_size=1), st.binary())
def test_headers_are_read_as_they_were_written(headers: dict[str, str], payload: bytes) -> None:
    command = encode_publish("view.a", "_INBOX.a", headers, payload)
    line, _, content = command.partition(b"\r\n")
    word, subject, reply, lines, size = line.split()
    assert (word, subject, reply) == (b"HPUB", b"view.a", b"_INBOX.a")
    assert content[: int(size)][int(lines) :] == payload and content[int(size) :] == b"\r\n"
    assert decode_headers(content[: int(lines)]) == headers


def test_without_headers_it_is_a_plain_publish() -> None:
    assert encode_publish("a.b", "", None, b"x\r\n") == b"PUB a.b  3\r\nx\r\n\r\n"


@pytest.mark.parametrize(
    ("subject", "headers"),
    [
        ("a\r\nPUB b 0\r\n", {}),
        ("a b", {}),
        ("", {}),
        ("a", {"K": "v\r\nX: y"}),
        ("a", {"K": "v\nX"}),
        ("a", {"K\r": "v"}),
    ],
)
def test_nothing_can_be_smuggled_into_a_command(subject: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"no subject|line break"):
        encode_publish(subject, "", headers, b"")


@pytest.mark.parametrize(
    ("raw", "headers"),
    [
        (b"NATS/1.0 503\r\n\r\n", {"Status": "503"}),
        (
            b"NATS/1.0 409 Consumer Deleted\r\nA:b\r\n\r\n",
            {"Status": "409", "Description": "Consumer Deleted", "A": "b"},
        ),
        (b"NATS/1.0\r\nno colon\r\n\r\n", {}),
        (b"NATS/1.0\r\nK: a: b\r\n\r\n", {"K": "a: b"}),
    ],
)
def test_status_lines_and_irregular_headers(raw: bytes, headers: dict[str, str]) -> None:
    assert decode_headers(raw) == headers


class Peer:
    """One connection as the server has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def greet(self) -> bytes:
        """Let the client in; returns its CONNECT line."""
        self.writer.write(INFO)
        options = await self.reader.readline()
        assert await self.reader.readline() == b"PING\r\n"
        self.writer.write(b"PONG\r\n")
        return options


@asynccontextmanager
async def connected(*refusals: str) -> AsyncIterator[tuple[Wire, Peer, list[str]]]:
    """(client, server's side, reasons of a loss)."""
    peers: asyncio.Queue[Peer] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        await peer.greet()
        peers.put_nowait(peer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    lost: list[str] = []
    wire = Wire(lambda text: None, lost.append)
    await wire.open(BusSettings(url=url, user="u", password="p"), None)
    peer = await peers.get()
    yield wire, peer, lost
    wire.close()
    peer.writer.close()
    server.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("step", [1, 7, 1000])
async def test_messages_are_read_however_they_are_cut(step: int) -> None:
    stream = (
        b"MSG a 1 3\r\nx\r\n\r\nPING\r\nHMSG b.c 1 r.1 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n+OK\r\nMSG a 9 0\r\n\r\n"
        b"MSG d 1 0\r\n\r\n"
    )
    async with connected() as (wire, peer, _):
        got: list[Msg] = []
        wire.subscribe(">", got.append)
        for at in range(0, len(stream), step):
            peer.writer.write(stream[at : at + step])
            await peer.writer.drain()
            await asyncio.sleep(0)
        await until(lambda: len(got) == 3)
        assert got == [Msg("a", "", b"x\r\n"), Msg("b.c", "r.1", b"hi", {"K": "v"}), Msg("d", "", b"")]
        assert await peer.reader.readline() == b"SUB >  1\r\n"
        assert await peer.reader.readline() == b"PONG\r\n"


async def test_what_is_sent_in_one_turn_leaves_in_order_and_together() -> None:
    async with connected() as (wire, peer, _):
        number = wire.subscribe("s", lambda msg: None)
        wire.publish("a", b"1")
        wire.publish("b", b"2", "r")
        wire.unsubscribe(number)
        sent = await peer.reader.readuntil(b"UNSUB 1\r\n")
        assert sent == b"SUB s  1\r\nPUB a  1\r\n1\r\nPUB b r 1\r\n2\r\nUNSUB 1\r\n"


async def test_what_was_on_its_way_when_a_subscription_ended_is_late_until_the_server_has_seen_its_end() -> None:
    async with connected() as (wire, peer, _):
        got: list[Msg] = []
        late: list[Msg] = []
        other: list[Msg] = []
        wire.subscribe("other", other.append)
        wire.unsubscribe(wire.subscribe("s", got.append), late.append)
        await peer.reader.readuntil(b"UNSUB 2\r\nPING\r\n")
        peer.writer.write(b"MSG s 2 0\r\n\r\nPONG\r\nMSG s 2 0\r\n\r\nMSG other 1 0\r\n\r\n")
        await until(lambda: len(other) == 1)
        peer.writer.write(b"MSG s 2 0\r\n\r\nMSG other 1 0\r\n\r\n")
        await until(lambda: len(other) == 2)
        assert not got and late and late[0] == Msg("s", "", b"") and len(late) < 3


async def test_a_bug_in_who_takes_messages_in_ends_nothing() -> None:
    async with connected() as (wire, peer, lost):
        got: list[Msg] = []

        def stumble(msg: Msg) -> None:
            got.append(msg)
            raise RuntimeError("bug")

        wire.subscribe(">", stumble)
        peer.writer.write(b"MSG a 1 0\r\n\r\nMSG a 1 0\r\n\r\n")
        await until(lambda: len(got) == 2)
        assert not lost


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"HELLO\r\n", "does not speak NATS"),
        (b"MSG a 1 x\r\n", "does not speak NATS"),
        (b"-ERR 'Slow Consumer'\r\n", "Slow Consumer"),
        (b"", "closed by the server|reset by peer"),
    ],
)
async def test_why_a_connection_is_lost_is_said_once_to_everyone_who_waits(said: bytes, why: str) -> None:
    async with connected() as (wire, peer, lost):
        waiting = asyncio.create_task(wire.round_trip())
        await asyncio.sleep(0)
        peer.writer.write(said)
        peer.writer.close()
        with pytest.raises(WireError, match=why):
            await waiting
        assert len(lost) == 1 and re.search(why, lost[0]) and wire.lost == lost[0]
        with pytest.raises(WireError):
            await wire.round_trip()


async def test_a_server_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raybus.bus.wire.PING_INTERVAL", 0.02)
    async with connected() as (_, _, lost):
        await until(lambda: lost)
        assert "does not answer" in lost[0]


async def test_something_else_listens_there() -> None:
    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.test\r\n")
        await writer.drain()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(WireError, match="does not speak NATS"):
        await Wire(lambda text: None, lambda why: None).open(BusSettings(url=url), None)
    server.close()
