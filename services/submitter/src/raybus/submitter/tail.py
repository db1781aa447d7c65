"""One connection to the log's WebSocket."""

import base64
import hashlib
import http.client
import io
import os
import socket
from collections.abc import Generator, Iterator
from contextlib import suppress

from raybus.submitter import frames
from raybus.submitter.connect import connect, reason
from raybus.submitter.dashboard import Unreachable, auth_headers, job_path
from raybus.submitter.options import Options
from raybus.submitter.timing import Timing, bounded

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MAX_HEAD = 64 << 10
_CHUNK = 256 << 10


def tail(options: Options, timing: Timing) -> Iterator[bytes]:
    """Pieces of the job's log, from its first byte on, as Ray sends them; b"" after each `timing.quiet` seconds of
    silence. Ends when Ray closes the connection in the normal way (code 1000), which it also does when it cannot go on.

    Raises Unreachable when the connection cannot be made or breaks, Refused for an unreadable token file.
    """
    sock = None
    try:
        with bounded(timing.call):
            sock = connect(options.address, timing.call)
            early = _handshake(sock, options)
        sock.settimeout(timing.quiet)
        yield from _read(sock, early)
    except (OSError, frames.ProtocolError, http.client.HTTPException) as error:
        raise Unreachable(reason(error)) from error
    finally:
        if sock is not None:
            sock.close()


def _read(sock: socket.socket, data: bytes) -> Iterator[bytes]:
    reader = frames.FrameReader()
    while True:
        for event in reader.feed(data):
            match event:
                case frames.Data(payload):
                    yield payload
                case frames.Ping(payload):
                    sock.sendall(frames.pong(payload, os.urandom(4)))
                case frames.Closed(code, text):
                    with suppress(OSError):
                        sock.sendall(frames.close(frames.NORMAL, os.urandom(4)))
                    if code != frames.NORMAL:
                        raise Unreachable(f"the log connection was closed with code {code} {text}".rstrip())
                    return
        data = yield from _receive(sock)


def _receive(sock: socket.socket) -> Generator[bytes, None, bytes]:
    """Generator that returns the next bytes; yields b"" and pings whenever the connection has been quiet."""
    while True:
        try:
            data = sock.recv(_CHUNK)
        except TimeoutError:
            # Keeps devices on the way from forgetting the connection; Ray's dashboard does not answer pings.
            sock.sendall(frames.ping(os.urandom(4)))
            yield b""
            continue
        if not data:
            raise Unreachable("the log connection was cut")
        return data


def _handshake(sock: socket.socket, options: Options) -> bytes:
    """Upgrade to WebSocket; returns what came after the answer's head. Raises Unreachable."""
    key = base64.b64encode(os.urandom(16))
    headers = {
        "Host": options.address.authority,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key.decode(),
        **auth_headers(options),
    }
    path = f"{options.address.prefix}{job_path(options.job_id)}/logs/tail"
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    sock.sendall("\r\n".join(lines).encode("latin-1"))
    head = bytearray()
    while b"\r\n\r\n" not in head:
        data = sock.recv(4096)
        if not data or len(head) > _MAX_HEAD:
            raise Unreachable("the log connection was cut before it began")
        head += data
    answer, _, early = bytes(head).partition(b"\r\n\r\n")
    first, _, fields = answer.partition(b"\r\n")
    status = first.split(b" ", 2)[1:2]
    if status != [b"101"]:
        raise Unreachable(f"no log connection: {first.decode(errors='replace')[:200]}")
    accept = http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n")).get("Sec-WebSocket-Accept", "")
    if accept.encode() != base64.b64encode(hashlib.sha1(key + _GUID).digest()):
        raise Unreachable("no log connection: the answer's Sec-WebSocket-Accept is wrong")
    return early
