"""The cheap way to write and read headers says what nats-py's careful way says."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from raybus.bus.lean_client import LeanClient, decode_headers, encode_publish

NAMES = st.from_regex(r"[A-Za-z0-9-]+", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n")).filter(lambda value: value == value.strip())


def written(client: Client, headers: dict[str, str], payload: bytes) -> bytes:
    """What a client that is not connected holds back after one publish."""

    async def publish() -> bytes:
        client._flush_queue = asyncio.Queue()
        client._max_pending_size = 1 << 20
        await client.publish("view.a", payload, reply="_INBOX.a", headers=headers)
        return b"".join(client._pending)

    return asyncio.run(publish())


@given(st.dictionaries(NAMES, VALUES, min_size=1), st.binary())
def test_the_same_bytes_as_nats_py(headers: dict[str, str], payload: bytes) -> None:
    assert written(LeanClient(), headers, payload) == written(Client(), headers, payload)


@pytest.mark.parametrize("value", ["a\r\nPUB x 0\r\n", "a\nb", "a\rb"])
def test_a_line_break_in_a_header_ends_nothing(value: str) -> None:
    assert encode_publish("view.a", "_INBOX.a", {"K": value}, b"") is None
    assert written(LeanClient(), {"K": value}, b"") == written(Client(), {"K": value}, b"")


@given(st.dictionaries(NAMES, VALUES))
def test_headers_are_read_as_they_were_written(headers: dict[str, str]) -> None:
    raw = "".join(f"{key}: {value}\r\n" for key, value in headers.items()).encode() + b"\r\n"
    assert decode_headers(raw) == headers == Client._parse_header_lines(raw)


@pytest.mark.parametrize("raw", [b"no colon\r\n\r\n", b"K: \xff\r\n\r\n"])
def test_irregular_lines_are_left_to_nats_py(raw: bytes) -> None:
    assert decode_headers(raw) is None
    assert LeanClient._parse_header_lines(raw) == Client._parse_header_lines(raw)
