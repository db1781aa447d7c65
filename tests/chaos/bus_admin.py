"""What an administrator does to the bus: fill its store, make room again, ask who leads."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import nats
import nats.errors
from world import ADMINISTRATOR

FILLER = "FILL"
BLOCK = 3 << 20
TRIES = 60
UNLED = 4
"""Attempts until a stream counts as one that nobody leads."""


@asynccontextmanager
async def administrator(url: str) -> AsyncIterator[Any]:
    """A connection without limits."""
    client = await nats.connect(
        url.split(","), user=ADMINISTRATOR, password=ADMINISTRATOR, allow_reconnect=False, error_cb=_silent
    )
    try:
        yield client
    finally:
        await client.close()


async def fill(url: str, copies: int) -> None:
    """Store until there is no room for anything: the server says so or, where several hold the stream together, nobody
    leads it any more."""
    stream = {"name": FILLER, "subjects": ["fill"], "storage": "file", "num_replicas": copies}
    await _insist(url, f"STREAM.CREATE.{FILLER}", stream)
    async with administrator(url) as client:
        for size in (BLOCK, BLOCK >> 6, 1024):
            while "error" not in await _store(client, bytes(size)):
                pass


async def make_room(url: str) -> None:
    """Undo `fill`."""
    await _insist(url, f"STREAM.DELETE.{FILLER}", {})


async def leader(url: str, servers: Sequence[int]) -> int:
    """The number of the server that leads VIEW; the last one of `servers` while none does."""
    info: dict[str, Any] = {}
    for _ in range(UNLED):
        try:
            async with administrator(url) as client:
                info = await _ask(client, "STREAM.INFO.VIEW", {})
                break
        except (nats.errors.Error, OSError, TimeoutError):
            await asyncio.sleep(1)
    _, _, number = str(info.get("cluster", {}).get("leader", "")).partition("-")
    found = int(number) if number.isdecimal() else 0
    return found if found in servers else servers[-1]


async def _insist(url: str, call: str, body: dict[str, Any]) -> None:
    """Ask again while the bus does not answer, or says that it cannot now. Raises TimeoutError."""
    for _ in range(TRIES):
        try:
            async with administrator(url) as client:
                answer = await _ask(client, call, body)
                if answer.get("error", {}).get("code") != 503:
                    return
        except (nats.errors.Error, OSError, TimeoutError):
            pass
        await asyncio.sleep(1)
    raise TimeoutError(f"the bus does not do {call}")


async def _ask(client: Any, call: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.request(f"$JS.API.{call}", json.dumps(body).encode(), timeout=10)
    result: dict[str, Any] = json.loads(answer.data)
    return result


async def _store(client: Any, data: bytes) -> dict[str, Any]:
    """The answer to one message, or an error of our own when nobody takes it for a while."""
    for _ in range(UNLED):
        try:
            result: dict[str, Any] = json.loads((await client.request("fill", data, timeout=5)).data)
            return result
        except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
            await asyncio.sleep(0.5)
    return {"error": "nobody stores it"}


async def _silent(_: Exception) -> None:
    """The library would print a traceback for each fault that we make."""
