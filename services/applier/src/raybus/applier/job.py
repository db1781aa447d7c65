"""A Decision as it arrived: headers and body read, or the reason why they cannot be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from raybus.api import schema
from raybus.api.decision import CreatePods, Note, Ref
from raybus.api.kinds import BY_KIND, ROOTS
from raybus.api.messages import H_EPOCH, H_RESULT_SEQ, H_ROOT_SEQ, H_VIEW_SEQ, Epoch, IntentMessage
from raybus.api.subjects import parse_root
from raybus.bus.port import Work

RootKey = tuple[str, str, str]
"""(controller, namespace, name) of a root."""

_DECODER = msgspec.json.Decoder(IntentMessage)


class Invalid(Exception):
    """A message that cannot be carried out; `str()` says why."""


@dataclass(frozen=True)
class Job:
    """One Decision to carry out. `work` is its delivery; `view_seq` the view that it was made on, `root_seq` the root's
    own sequence in it (0 = not said); `no_result`: the view held no result of us."""

    work: Work
    controller: str
    partition: int
    epoch: Epoch
    view_seq: int
    message: IntentMessage
    root_seq: int = 0
    no_result: bool = False

    @property
    def key(self) -> RootKey:
        """Which root it is about."""
        return self.controller, self.message.root.namespace, self.message.root.name

    @property
    def parent(self) -> Mapping[str, str]:
        """Headers with the trace that led here."""
        return self.work.message.headers


def read_job(work: Work) -> Job:
    """Raises Invalid, and Newer for a message that a later release has to read."""
    message = work.message
    try:
        controller, partition, namespace, name = parse_root(message.subject)
    except ValueError as error:
        raise Invalid(str(error)) from error
    if controller not in ROOTS:
        raise Invalid(f"no controller is called {controller!r}")
    try:
        body = schema.read(message.headers, message.data, _decode)
    except schema.Unreadable as error:
        raise Invalid(f"it is no Decision: {error}") from error
    try:
        epoch = Epoch.parse(message.headers.get(H_EPOCH, ""))
        view_seq = int(message.headers.get(H_VIEW_SEQ, ""))
        root_seq = int(message.headers.get(H_ROOT_SEQ, "0"))
    except ValueError as error:
        raise Invalid(f"headers {H_EPOCH}, {H_VIEW_SEQ} and {H_ROOT_SEQ} must be numbers: {error}") from error
    root = body.root
    if (root.kind, root.namespace, root.name) != (ROOTS[controller], namespace, name):
        raise Invalid(f"the body is about {root.ref}, the subject about {ROOTS[controller]} {namespace}/{name}")
    no_result = message.headers.get(H_RESULT_SEQ) == "0"
    return Job(work, controller, partition, epoch, view_seq, body, root_seq, no_result)


def _decode(data: bytes) -> IntentMessage:
    """Raises msgspec.MsgspecError, and ValueError for kinds that this release does not know."""
    body = _DECODER.decode(data)
    unknown = {ref.kind for ref in _refs(body)} - set(BY_KIND)
    if unknown:
        raise ValueError(f"no such kind: {', '.join(sorted(unknown))}")
    return body


def _refs(body: IntentMessage) -> Iterator[Ref]:
    for intent in body.intents:
        if not isinstance(intent, CreatePods):
            yield intent.ref
        yield from _related(intent.done)
        yield from _related(intent.failed)
    for note in body.notes:
        yield from _related(note)


def _related(note: Note | None) -> Iterator[Ref]:
    if note is not None and note.related is not None:
        yield note.related
