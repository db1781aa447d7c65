"""Reads objects from the API server that a view needs now and whose bytes no watch has just brought (ADR 0036)."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec
import structlog

from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND
from raybus.api.routes import Key
from raybus.kube.follow import follow
from raybus.kube.objects import Object, parse_object
from raybus.kube.port import KubeError, Rejected, Sender
from raybus.kube.request import get
from raybus.kube.watch import Put, Synced, Target, Unserved

FEW = 50
"""So many of one kind are read by name; more come by a list."""
READERS = 8
RETRY = 1.0
MAX_RETRY = 15.0

log = structlog.get_logger()


class Audience(Protocol):
    """Who is told what was read."""

    async def room(self) -> None:
        """Return when more may be said."""

    def read(self, key: Key, item: Object) -> bool:
        """The object exists in this state; returns False when no watch has shown it yet."""

    def missing(self, key: Key) -> None:
        """The object does not exist, or no watch selects it."""


class Fetcher:
    """Reads what is wanted and tells `audience`."""

    def __init__(self, sender: Sender, targets: Sequence[Target], audience: Audience) -> None:
        self._sender, self._targets, self._audience = sender, targets, audience
        self._wanted: set[Key] = set()
        self._reading: set[Key] = set()
        self._work, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()

    def want(self, key: Key) -> None:
        """Read `key` soon."""
        self._wanted.add(key)
        self._idle.clear()
        self._work.set()

    async def done(self) -> None:
        """Wait until nothing is wanted or being read."""
        await self._idle.wait()

    async def run(self) -> None:
        """Read until cancelled; failures are retried with back-off."""
        delay = RETRY
        while True:
            await self._work.wait()
            self._work.clear()
            # What comes within one turn of the loop is read together: a fill wants everything at once.
            await asyncio.sleep(0)
            self._reading, self._wanted = self._wanted, set()
            errors = await asyncio.gather(*(self._read_kind(kind) for kind in {key.kind for key in self._reading}))
            failed = [error for error in errors if error is not None]
            if failed:
                log.warning("objects not read, trying again", why=str(failed[0]), count=len(self._reading))
                self._wanted |= self._reading
                self._work.set()
                await asyncio.sleep(delay)
            delay = min(delay * 2, MAX_RETRY) if failed else RETRY
            self._reading = set()
            if not self._wanted:
                self._idle.set()

    async def _read_kind(self, kind: str) -> KubeError | None:
        """What has been read leaves `_reading`; returns one of the errors that kept the rest there."""
        keys = {key for key in self._reading if key.kind == kind}
        error = None
        if len(keys) <= FEW:
            slots = asyncio.Semaphore(READERS)
            errors = await asyncio.gather(*(self._get(key, keys, slots) for key in tuple(keys)))
            error = next((error for error in errors if error is not None), None)
        if keys and error is None:
            await asyncio.gather(*(self._list(target, keys) for target in self._targets if target.kind.kind == kind))
            for key in keys:
                self._audience.missing(key)
            keys = set()
        self._reading -= {key for key in self._reading if key.kind == kind and key not in keys}
        return error

    async def _get(self, key: Key, keys: set[Key], slots: asyncio.Semaphore) -> KubeError | None:
        """Leaves `key` in `keys` when it exists but no watch has shown it: only a list says whether one selects it."""
        async with slots:
            await self._audience.room()
            try:
                answer = await self._sender.send(get(Ref(key.kind, key.namespace, key.name)))
                item = parse_object(answer.body, BY_KIND[key.kind])
            except KubeError as error:
                if not (isinstance(error, Rejected) and error.code == 404):
                    return error
                self._audience.missing(key)
            except msgspec.MsgspecError as error:
                log.error("object cannot be read and is left out", object="/".join(key), why=str(error))
            else:
                if not self._audience.read(key, item):
                    return None
        keys.discard(key)
        return None

    async def _list(self, target: Target, keys: set[Key]) -> None:
        async with aclosing(follow(self._sender, target, lambda: 1.0)) as events:
            async for event in events:
                match event:
                    case Put(item):
                        key = Key(target.kind.kind, item.meta.namespace, item.meta.name)
                        if key in keys:
                            keys.discard(key)
                            await self._audience.room()
                            self._audience.read(key, item)
                    case Synced(_) | Unserved():
                        return
                    case _:
                        continue
