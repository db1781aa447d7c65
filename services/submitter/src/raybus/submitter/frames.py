"""WebSocket framing (RFC 6455) as a pure state machine: bytes in, events out. The client's side only.

Data is handed on as it arrives, not by message: a message of any size needs no memory, and a log is a stream of bytes
anyway. Extensions are never offered, so reserved bits are errors.
"""

from collections.abc import Iterator
from dataclasses import dataclass

NORMAL = 1000
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_MAX_CONTROL = 125
_NO_CODE = 1005


class ProtocolError(Exception):
    """The peer does not speak RFC 6455."""


@dataclass(frozen=True)
class Data:
    """A piece of a text or binary message."""

    payload: bytes


@dataclass(frozen=True)
class Ping:
    """Wants a pong with the same payload."""

    payload: bytes


@dataclass(frozen=True)
class Closed:
    """The peer closes; code 1005 if it gave none."""

    code: int
    reason: str = ""


Event = Data | Ping | Closed


class FrameReader:
    """Feed it what the socket gives, in pieces of any size; it yields events. No event follows Closed."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._left = 0  # bytes of the present data frame that are still to come
        self._in_message = False  # the next data frame must continue a message
        self._closed = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """Raises ProtocolError (then the connection is of no more use)."""
        self._buffer += data
        while not self._closed and self._buffer:
            events = self._payload() if self._left else self._frame()
            if events is None:
                return
            yield from events

    def _payload(self) -> tuple[Event, ...]:
        """What is there of the present data frame."""
        piece = bytes(self._buffer[: self._left])
        del self._buffer[: len(piece)]
        self._left -= len(piece)
        return (Data(piece),)

    def _frame(self) -> tuple[Event, ...] | None:
        """The next frame's header, with its payload if it is a control frame; None if more bytes are needed."""
        header = _header(self._buffer)
        if header is None:
            return None
        size, opcode, final, length = header
        if opcode & 0x8:
            if len(self._buffer) < size + length:
                return None
            payload = bytes(self._buffer[size : size + length])
            del self._buffer[: size + length]
            return self._control(opcode, payload)
        if (opcode == _CONTINUATION) != self._in_message:
            raise ProtocolError("a continuation frame is missing or out of place")
        del self._buffer[:size]
        self._left, self._in_message = length, not final
        return ()

    def _control(self, opcode: int, payload: bytes) -> tuple[Event, ...]:
        if opcode == _PING:
            return (Ping(payload),)
        if opcode == _PONG:
            return ()
        self._closed = True
        if not payload:
            return (Closed(_NO_CODE),)
        if len(payload) == 1:
            raise ProtocolError("a close frame with half a code")
        return (Closed(int.from_bytes(payload[:2], "big"), payload[2:].decode(errors="replace")),)


def _header(buffer: bytearray) -> tuple[int, int, bool, int] | None:
    """(size of the header, opcode, final?, payload length), or None if the header is not complete yet."""
    if len(buffer) < 2:
        return None
    final, opcode, length = bool(buffer[0] & 0x80), buffer[0] & 0x0F, buffer[1] & 0x7F
    if buffer[0] & 0x70:
        raise ProtocolError("reserved bits are set")
    if buffer[1] & 0x80:
        raise ProtocolError("a server's frame is masked")
    if opcode not in (_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG):
        raise ProtocolError(f"unknown opcode {opcode}")
    if opcode & 0x8 and (length > _MAX_CONTROL or not final):
        raise ProtocolError("a control frame is too long or fragmented")
    extra = {126: 2, 127: 8}.get(length, 0)
    if len(buffer) < 2 + extra:
        return None
    if extra:
        length = int.from_bytes(buffer[2 : 2 + extra], "big")
    return 2 + extra, opcode, final, length


def _control_frame(opcode: int, payload: bytes, mask: bytes) -> bytes:
    masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return bytes([0x80 | opcode, 0x80 | len(payload)]) + mask + masked


def ping(mask: bytes) -> bytes:
    """A ping without payload. mask: 4 unpredictable bytes, here and below."""
    return _control_frame(_PING, b"", mask)


def pong(payload: bytes, mask: bytes) -> bytes:
    return _control_frame(_PONG, payload, mask)


def close(code: int, mask: bytes) -> bytes:
    return _control_frame(_CLOSE, code.to_bytes(2, "big"), mask)
