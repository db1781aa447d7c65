"""Carrying out one intent: the requests that it takes, what the answers mean, and what the view is told at once."""

import asyncio
import base64
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar, assert_never

import msgspec
from msgspec import Struct

from raybus.api.decision import Apply, Create, CreatePods, Delete, GenerateSecret, Intent, Json, Patch, PodSlot, Ref
from raybus.api.kinds import BY_KIND
from raybus.api.messages import fingerprint
from raybus.applier.budget import Urgency
from raybus.applier.calls import Lane
from raybus.applier.echo import Echo
from raybus.applier.job import RootKey
from raybus.applier.results import NAME_TAKEN, is_final
from raybus.kube import request as read
from raybus.kube import write
from raybus.kube.objects import Object, parse_object
from raybus.kube.port import Bug, KubeError, Rejected, Request, Response, Transient

T = TypeVar("T")

SECRET_BYTES = 32
"""Random bytes of a generated value (contract raycluster-objects §5.6)."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one intent (`key`: its fingerprint).

    `changed`: names of the objects that this very run changed (none for what was there already). `refused`: what the
    server refused for good, and of which object. `pending`: why it has to be tried again. `seq`: the highest VIEW
    sequence of its effects in the root's own view.
    """

    intent: Intent
    key: str
    changed: tuple[str, ...] = ()
    refused: tuple[Ref, KubeError] | None = None
    pending: str = ""
    seq: int = 0

    @property
    def done(self) -> bool:
        """Whether everything that the intent asks for is there."""
        return self.refused is None and not self.pending


class _Step(Struct, frozen=True):
    """What one request came to: whether it changed anything, and the sequence of its echo."""

    changed: bool
    seq: int = 0


class Hands:
    """Carries out the intents of one Decision about root `key` with UID `root_uid`."""

    def __init__(self, key: RootKey, root_uid: str, lane: Lane, echo: Echo, trace: Mapping[str, str]) -> None:
        self._key, self._root_uid, self._lane, self._echo, self._trace = key, root_uid, lane, echo, trace

    async def carry(self, intent: Intent) -> Outcome:
        """Raises Fenced and BusError; every error of the API server is part of the outcome."""
        base = Outcome(intent=intent, key=fingerprint(intent))
        if isinstance(intent, CreatePods):
            pods = [(Ref("Pod", intent.namespace, slot.name), slot) for slot in intent.slots]
            return _together(
                base,
                await everything(
                    [_judge(base, ref, self._create(ref, _pod(intent.template, slot))) for ref, slot in pods]
                ),
            )
        return await _judge(base, intent.ref, self._one(intent))

    async def _one(self, intent: Create | GenerateSecret | Apply | Patch | Delete) -> _Step:
        match intent:
            case Create():
                return await self._create(intent.ref, intent.body)
            case GenerateSecret():
                return await self._generate(intent)
            case Apply():
                return await self._written(intent.ref, write.apply(intent.ref, intent.body))
            case Patch():
                return await self._patch(intent)
            case Delete():
                return await self._delete(intent)
            case _:
                assert_never(intent)

    async def _create(self, ref: Ref, body: Json) -> _Step:
        request = write.create(ref.kind, ref.namespace, msgspec.json.encode(body))
        try:
            return await self._written(ref, request, new=True)
        except Rejected as error:
            if error.reason != "AlreadyExists":
                raise
        return await self._adopt(ref, body)

    async def _adopt(self, ref: Ref, body: Json) -> _Step:
        """The name is taken: by our own earlier attempt (done), or by something that is not what we want."""
        try:
            item = _parse(ref, await self._lane.send(read.get(ref), Urgency.CREATE))
        except Rejected as error:
            if error.code == 404:
                raise Transient(f"{ref} vanished while it was being created", sent=False) from error
            raise
        why = _not_ours(item, body, self._root_uid)
        if why:
            raise Rejected(409, NAME_TAKEN, f"{ref} cannot be created: one of that name {why}")
        return _Step(False, await self._echo.written(self._key, ref.kind, item, self._trace))

    async def _generate(self, intent: GenerateSecret) -> _Step:
        """Values are drawn only when there is no such Secret: an existing one is used whatever it holds."""
        try:
            await self._lane.send(read.get(intent.ref), Urgency.CREATE)
        except Rejected as error:
            if error.code != 404:
                raise
        else:
            return _Step(False)
        body = {**intent.body, "data": {key: _random_value() for key in intent.keys}}
        request = write.create(intent.ref.kind, intent.ref.namespace, msgspec.json.encode(body))
        try:
            return await self._written(intent.ref, request, new=True)
        except Rejected as error:
            if error.reason != "AlreadyExists":
                raise
        return _Step(False)

    async def _patch(self, intent: Patch) -> _Step:
        request = write.json_patch(intent.ref, intent.uid, intent.resource_version, intent.operations)
        try:
            return await self._written(intent.ref, request)
        except Rejected as error:
            # Changed or gone since the decision: the view is about to say so, and the owner decides anew.
            if error.code in (404, 409):
                return _Step(False)
            raise

    async def _delete(self, intent: Delete) -> _Step:
        ref, changed = intent.ref, True
        try:
            request = write.delete(ref, intent.uid, intent.propagation)
            response = await self._lane.send(request, Urgency.URGENT)
        except Rejected as error:
            if error.code not in (404, 409):
                raise
            if error.code == 409:
                await self._check_gone(intent, error)
            changed = False
        else:
            if _is_terminating(response.body):
                item = _parse(ref, response)
                return _Step(True, await self._echo.written(self._key, ref.kind, item, self._trace))
        return _Step(changed, await self._echo.gone(self._key, ref, intent.uid, self._trace))

    async def _check_gone(self, intent: Delete, conflict: Rejected) -> None:
        """A conflict says that another object bears the name by now, so that the one that was meant is gone as well;
        the view is told only once that is certain. Raises Transient if it is not so."""
        try:
            item = _parse(intent.ref, await self._lane.send(read.get(intent.ref), Urgency.URGENT))
        except Rejected as error:
            if error.code != 404:
                raise
        else:
            if item.meta.uid == intent.uid:
                raise Transient(str(conflict), status=409, sent=False)

    async def _written(self, ref: Ref, request: Request, *, new: bool = False) -> _Step:
        item = _parse(ref, await self._lane.send(request, Urgency.CREATE))
        return _Step(True, await self._echo.written(self._key, ref.kind, item, self._trace, expect=0 if new else None))


async def everything(doing: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order. The first exception is raised once all have ended, so that nothing goes on unseen."""
    results = await asyncio.gather(*doing, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


async def _judge(base: Outcome, ref: Ref, doing: Coroutine[Any, Any, _Step]) -> Outcome:
    """The outcome of one object."""
    try:
        step = await doing
    except KubeError as error:
        if is_final(error):
            return msgspec.structs.replace(base, refused=(ref, error))
        return msgspec.structs.replace(base, pending=str(error))
    return msgspec.structs.replace(base, changed=(ref.name,) if step.changed else (), seq=step.seq)


def _together(base: Outcome, parts: Sequence[Outcome]) -> Outcome:
    return msgspec.structs.replace(
        base,
        changed=tuple(name for part in parts for name in part.changed),
        refused=next((part.refused for part in parts if part.refused), None),
        pending=next((part.pending for part in parts if part.pending), ""),
        seq=max((part.seq for part in parts), default=0),
    )


def verb_of(intent: Intent) -> str:
    """`create`, `generate`, `apply`, `patch` or `delete`."""
    if isinstance(intent, GenerateSecret):
        return "generate"
    return "create" if isinstance(intent, CreatePods) else type(intent).__name__.lower()


def sentence(outcome: Outcome) -> str:
    """What was changed, for the timeline: no content of the objects."""
    intent, names = outcome.intent, outcome.changed
    kind = "Pod" if isinstance(intent, CreatePods) else intent.ref.kind
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{verb_of(intent)} {kind} {', '.join(names[:3])}{more}"


def _random_value() -> str:
    """A token as text, in the encoding of `Secret.data`."""
    return base64.b64encode(base64.b64encode(secrets.token_bytes(SECRET_BYTES))).decode()


def _pod(template: Json, slot: PodSlot) -> Json:
    metadata = template.get("metadata", {})
    labels = {**metadata.get("labels", {}), **slot.labels}
    return {**template, "metadata": {**metadata, "name": slot.name, "labels": labels}}


def _not_ours(item: Object, body: Json, root_uid: str) -> str:
    """Why an existing object does not count as the one that was to be created, "" if it does."""
    metadata = body.get("metadata", {})
    owners = [owner["uid"] for owner in metadata.get("ownerReferences", ()) if owner.get("controller")]
    wanted, controller = (owners[0] if owners else root_uid), item.meta.controller
    if controller is None:
        return "exists already and belongs to nobody"
    if controller.uid != wanted:
        return f"belongs to {controller.kind} {controller.name}"
    if item.meta.deletion_timestamp:
        return "is still being deleted"
    labels = metadata.get("labels", {})
    other = sorted(label for label, value in labels.items() if item.meta.labels.get(label) != value)
    return f"has other labels ({', '.join(other)})" if other else ""


class _AnswerMeta(Struct, frozen=True, rename="camel"):
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    finalizers: tuple[str, ...] = ()


class _DeleteAnswer(Struct, frozen=True):
    kind: str = ""
    metadata: _AnswerMeta = _AnswerMeta()


def _is_terminating(body: bytes) -> bool:
    """Whether a DELETE was answered with an object that lives on for a while, rather than with its end."""
    try:
        answer = msgspec.json.decode(body, type=_DeleteAnswer)
    except msgspec.MsgspecError as error:
        raise Bug(f"the answer to a DELETE cannot be read: {error}") from error
    lives = answer.metadata.finalizers or answer.metadata.deletion_grace_period_seconds > 0
    return answer.kind != "Status" and bool(answer.metadata.deletion_timestamp and lives)


def _parse(ref: Ref, response: Response) -> Object:
    try:
        return parse_object(response.body, BY_KIND[ref.kind])
    except msgspec.MsgspecError as error:
        raise Bug(f"{ref}: the answer of the API server is no such object: {error}") from error
