"""WebSocket framing, without sockets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybus.submitter.frames import Closed, Data, Event, FrameReader, Ping, ProtocolError, close, ping, pong


def frame(payload: bytes, opcode: int = 1, final: bool = True) -> bytes:
    length = len(payload)
    if length < 126:
        size = bytes([length])
    elif length < 65536:
        size = b"\x7e" + length.to_bytes(2, "big")
    else:
        size = b"\x7f" + length.to_bytes(8, "big")
    return bytes([0x80 * final | opcode]) + size + payload


def read(*chunks: bytes) -> list[Event]:
    reader = FrameReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def data(events: list[Event]) -> bytes:
    return b"".join(event.payload for event in events if isinstance(event, Data))


@pytest.mark.parametrize("length", [0, 1, 125, 126, 65535, 65536, 5_000_000])
def test_messages_of_any_size(length: int) -> None:
    assert data(read(frame(b"x" * length) + frame(b"y"))) == b"x" * length + b"y"


def test_a_message_in_parts_with_a_ping_between() -> None:
    stream = frame(b"a", 1, False) + frame(b"p", 9) + frame(b"", 0, False) + frame(b"b", 0) + frame(b"c", 2)
    assert read(stream) == [Data(b"a"), Ping(b"p"), Data(b"b"), Data(b"c")]


def test_closing() -> None:
    assert read(frame(b"\x03\xe8bye", 8) + frame(b"late")) == [Closed(1000, "bye")]
    assert read(frame(b"", 8)) == [Closed(1005)]


def test_pongs_mean_nothing() -> None:
    assert read(frame(b"x", 10)) == []


BROKEN = {
    "reserved bit": b"\xc1\x00",
    "masked": b"\x81\x80",
    "unknown opcode": b"\x83\x00",
    "long ping": frame(b"x" * 126, 9),
    "ping in parts": frame(b"x", 9, False),
    "continuation of nothing": frame(b"x", 0),
    "message inside a message": frame(b"x", 1, False) + frame(b"y", 1),
    "half a close code": frame(b"\x03", 8),
}


@pytest.mark.parametrize("stream", BROKEN.values(), ids=BROKEN)
def test_what_is_no_websocket(stream: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(stream)


@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_it_does_not_matter_where_the_stream_is_cut(messages: list[bytes], draw: st.DataObject) -> None:
    stream = b"".join(frame(message) for message in messages) + frame(b"\x03\xe8", 8)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    events = read(*chunks)
    assert data(events) == b"".join(messages)
    assert events[-1] == Closed(1000)


def test_frames_of_the_client_are_masked() -> None:
    mask = b"\x01\x02\x03\x04"
    assert pong(b"abcde", mask) == b"\x8a\x85" + mask + bytes([0x60, 0x60, 0x60, 0x60, 0x64])
    assert ping(mask) == b"\x89\x80" + mask
    assert close(1000, b"\0\0\0\0") == b"\x88\x82\0\0\0\0\x03\xe8"
