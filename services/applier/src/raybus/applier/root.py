"""Writes to the root itself: finalizers and status, each fenced by UID and resourceVersion (design §3 "Applier")."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.applier.budget import Urgency
from raybus.applier.calls import Lane
from raybus.applier.echo import Echo
from raybus.applier.job import Job
from raybus.kube import request as read
from raybus.kube import write
from raybus.kube.objects import Object, parse_object
from raybus.kube.port import Bug, Rejected, Request


class Conflicted(Exception):
    """The root is not what the Decision was made on; the view has been told what it is now."""


def step_key(verb: str, content: Any) -> str:
    """What a refusal of a step on the root is known by, as `fingerprint` is for an intent."""
    raw = msgspec.json.encode((verb, content), order="deterministic")
    return hashlib.blake2s(raw, digest_size=8).hexdigest()


class RootHands:
    """Writes one root. `version`: the resourceVersion that the next write must find; `seq`: VIEW sequence of the last
    effect."""

    def __init__(self, job: Job, lane: Lane, echo: Echo, trace: Mapping[str, str]) -> None:
        self._key, self._root, self._lane, self._echo, self._trace = job.key, job.message.root, lane, echo, trace
        self._expect = job.root_seq or None
        self.version = self._root.resource_version
        self.seq = 0

    async def finalizers(self, names: tuple[str, ...], urgency: Urgency) -> None:
        """Store the whole list. Raises Conflicted, Transient, Rejected, Bug, Fenced, BusError."""
        patch = {"metadata": {"finalizers": list(names)}}
        request = write.merge_patch(self._root.ref, self._root.uid, self.version, patch)
        item = await self._send(request, urgency)
        if item.meta.deletion_timestamp and not names:
            self.seq = await self._echo.gone(self._key, self._root.ref, self._root.uid, self._trace)
        else:
            await self._tell(item)

    async def status(self, status: Json, urgency: Urgency) -> None:
        """Replace the whole status. Raises as `finalizers`."""
        request = write.put_status(self._root.ref, self._root.uid, self.version, status)
        await self._tell(await self._send(request, urgency))

    async def _tell(self, item: Object) -> None:
        self.version = item.meta.resource_version
        self.seq = await self._echo.written(self._key, self._root.kind, item, self._trace, expect=self._expect)
        self._expect = self.seq

    async def _send(self, request: Request, urgency: Urgency) -> Object:
        try:
            response = await self._lane.send(request, urgency)
        except Rejected as error:
            if error.code not in (404, 409):
                raise
            self._expect = None
            await self._refresh(urgency)
            raise Conflicted(str(error)) from error
        return self._parse(response.body)

    async def _refresh(self, urgency: Urgency) -> None:
        """Tell the view what the root is now, so that the owner does not decide on the same old version again and
        again until the watcher has caught up."""
        try:
            response = await self._lane.send(read.get(self._root.ref), urgency)
        except Rejected as error:
            if error.code != 404:
                raise
            self.seq = await self._echo.gone(self._key, self._root.ref, self._root.uid, self._trace)
            return
        await self._tell(self._parse(response.body))

    def _parse(self, body: bytes) -> Object:
        try:
            return parse_object(body, BY_KIND[self._root.kind])
        except msgspec.MsgspecError as error:
            raise Bug(f"{self._root.ref}: the answer of the API server is no such object: {error}") from error
