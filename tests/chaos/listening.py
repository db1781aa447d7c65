"""What goes over the bus, heard by an administrator as it is published: Decisions, states, leases. No code of ours."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from bus_admin import administrator

HEARD = ("intent.>", "view.>", "$KV.ctl.lease.>")


class Heard(NamedTuple):
    """A message. `holder`: of a lease."""

    at: float
    subject: str
    holder: str

    @property
    def partition(self) -> int:
        """Of a Decision, a state or a lease."""
        words = self.subject.split(".")
        return int(words[-1] if words[0] == "$KV" else words[2])


class Ear:
    """`all`: everything heard so far, in order."""

    def __init__(self) -> None:
        self.all: list[Heard] = []

    async def take(self, message: Any) -> None:
        """Called with each message."""
        holder = ""
        if message.subject.startswith("$KV"):
            holder = json.loads(message.data or b"{}").get("holder", "").rpartition("-")[0]
        self.all.append(Heard(time.time(), message.subject, holder))

    def since(self, at: float, prefix: str) -> Iterator[Heard]:
        """Of one kind, not older than `at`."""
        return (heard for heard in self.all if heard.at >= at and heard.subject.startswith(prefix))


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[Ear]:
    """Hear everything while the block runs and the bus lives."""
    async with administrator(url) as client:
        ear = Ear()
        for subject in HEARD:
            await client.subscribe(subject, cb=ear.take)
        await client.flush()
        yield ear
