"""List and watch as a pure step function (style §2.7): (state, input) -> events, next state, next request.

A *fill* brings everything that exists, then the watch follows changes from there. Fills are streamed (WatchList:
`sendInitialEvents`, one object at a time) or, where the server refuses that or it does not finish, paged lists.
After a gap the watch resumes at its last version; where the server has forgotten it (410) a new fill is compared with
what was known, and what has vanished is reported as gone. `follow.py` runs this over a connection.
"""

from collections.abc import Collection
from enum import Enum

import msgspec
from msgspec import Raw, Struct

from raybus.api.kinds import Kind
from raybus.kube.errors import of_watch
from raybus.kube.objects import Object, key_of, parse_object
from raybus.kube.port import KubeError, Rejected, Request, Transient
from raybus.kube.request import path

PAGE = 500
"""Objects in one page of a list."""
SERVER_TIMEOUT = 50
"""Seconds after which the server ends a watch."""
CLIENT_TIMEOUT = 60.0
"""Seconds after which we end it: the longest time that a silently dead connection goes unnoticed."""
STEADY = 1.0
"""A stream that ended sooner, in seconds, counts as a failure even if the server closed it in good order."""
UNSERVED_RETRY = 3.0
"""Seconds between two looks whether a kind that the server does not know has appeared."""
_BACKOFF, _MAX_BACKOFF = 0.2, 15.0
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Target(Struct, frozen=True):
    """What one watch covers: a kind, a label selector ("" = all) and a namespace ("" = all)."""

    kind: Kind
    selector: str = ""
    namespace: str = ""

    @property
    def path(self) -> str:
        """The path of the collection."""
        return path(self.kind, self.namespace)

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind.plural}{where}" + (f" ({self.selector})" if self.selector else "")


Key = tuple[str, str]
"""(namespace, name)."""


class Put(Struct, frozen=True):
    """The object exists in this state (new, changed, or listed again)."""

    object: Object


class Gone(Struct, frozen=True):
    """The object no longer exists, or no longer matches, as of `resource_version`."""

    key: Key
    uid: str
    resource_version: str


class Synced(Struct, frozen=True):
    """A fill is complete as of `resource_version`: every existing object was `Put`, every vanished one `Gone`. `there`:
    the keys of those that exist; it goes on changing with the watch."""

    resource_version: str
    there: Collection[Key]


class Unserved(Struct, frozen=True):
    """The server does not know this kind (its CRD is missing); looked for again every `UNSERVED_RETRY` seconds."""


class Trouble(Struct, frozen=True):
    """A request or stream failed and is tried again; `text` is one sentence."""

    text: str


class Skipped(Struct, frozen=True):
    """One object could not be read and is left out; `text` names it."""

    text: str


Event = Put | Gone | Synced | Unserved | Trouble | Skipped


class Page(Struct, frozen=True):
    """Input: the body of a list request."""

    body: bytes


class Line(Struct, frozen=True):
    """Input: one line of a watch stream."""

    data: bytes


class Ended(Struct, frozen=True):
    """Input: the request failed (`error`) or the stream was closed, `after` seconds since it was sent."""

    after: float
    error: KubeError | None = None


Input = Page | Line | Ended


class Phase(Enum):
    """What is under way."""

    STREAM_FILL = "a fill by WatchList"
    PAGE_FILL = "a fill by pages"
    FOLLOW = "a watch"


class State(Struct, frozen=True):
    """Where a watch stands.

    `version`: resume version. `token`: of the next page. `failures`: in a row. `streams`: WatchList is worth a try.
    `known` (key -> UID) and `listed` (keys of the present fill) are owned by the state and changed in place: copying
    them at each event would make a fill quadratic.
    """

    target: Target
    phase: Phase
    known: dict[Key, str]
    listed: set[Key]
    version: str = ""
    token: str = ""
    failures: int = 0
    streams: bool = True


class Next(Struct, frozen=True):
    """The request to send after `delay` seconds; `streamed`: feed its lines, else its body as one page."""

    request: Request
    streamed: bool
    delay: float = 0.0


Step = tuple[list[Event], State, Next | None]
"""Events in order, the next state, and the request that replaces the present one (None = go on reading it)."""


class _Annotated(Struct):
    annotations: dict[str, str] = {}
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Bookmark(Struct):
    metadata: _Annotated


class _WatchEvent(Struct):
    type: str
    object: Raw


class _ListMeta(Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    token: str = msgspec.field(default="", name="continue")


class _List(Struct):
    metadata: _ListMeta
    items: list[Raw]


_EVENT = msgspec.json.Decoder(_WatchEvent)
_LIST = msgspec.json.Decoder(_List)


def begin(target: Target) -> tuple[State, Next]:
    """The state and the first request of a new watch."""
    state = State(target, Phase.STREAM_FILL, {}, set())
    return state, _request(state)


def step(state: State, given: Input) -> Step:
    """Take one input. Never raises for anything a server may send."""
    if isinstance(given, Line):
        return _on_line(state, given.data)
    if isinstance(given, Page):
        return _on_page(state, given.body)
    return _on_end(state, given)


def _on_line(state: State, data: bytes) -> Step:
    try:
        event = _EVENT.decode(data)
        if event.type == "BOOKMARK":
            return _on_bookmark(state, msgspec.json.decode(event.object, type=_Bookmark).metadata)
    except msgspec.MsgspecError as error:
        # Something was lost, and nobody knows what: only a new fill is sure to bring it.
        text = f"watch of {state.target}: a line that is no watch event ({error}); listing anew"
        return _refill(state, [Trouble(text)], failures=state.failures + 1)
    if event.type == "ERROR":
        return _on_end(state, Ended(0.0, of_watch(state.target.path, event.object)))
    try:
        found = parse_object(event.object, state.target.kind)
    except msgspec.MsgspecError as error:
        return [_skip(state, event.object, error)], state, None
    version = found.meta.resource_version
    if event.type == "DELETED":
        state.known.pop(found.key, None)
        state.listed.discard(found.key)
        gone = Gone(found.key, found.meta.uid, version)
        return [gone], _at(state, version), None
    state.known[found.key] = found.meta.uid
    if state.phase is Phase.STREAM_FILL:
        state.listed.add(found.key)
    return [Put(found)], _at(state, version), None


def _at(state: State, version: str) -> State:
    """A fill by stream has no version to resume at before it ends (its objects come in no order)."""
    return msgspec.structs.replace(state, version=version) if state.phase is Phase.FOLLOW else state


def _on_bookmark(state: State, meta: _Annotated) -> Step:
    if state.phase is Phase.STREAM_FILL:
        if meta.annotations.get(_INITIAL_EVENTS_END) != "true":
            return [], state, None
        version = meta.resource_version
        return [*_vanished(state, version), Synced(version, state.known.keys())], _following(state, version), None
    return [], msgspec.structs.replace(state, version=meta.resource_version), None


def _on_page(state: State, body: bytes) -> Step:
    try:
        page = _LIST.decode(body)
    except msgspec.MsgspecError as error:
        return _refill(state, [Trouble(f"list of {state.target}: {error}")], failures=state.failures + 1)
    events: list[Event] = []
    for raw in page.items:
        try:
            found = parse_object(raw, state.target.kind)
        except msgspec.MsgspecError as error:
            events.append(_skip(state, raw, error))
            continue
        state.known[found.key] = found.meta.uid
        state.listed.add(found.key)
        events.append(Put(found))
    if page.metadata.token:
        state = msgspec.structs.replace(state, token=page.metadata.token)
        return events, state, _request(state)
    version = page.metadata.resource_version
    events += [*_vanished(state, version), Synced(version, state.known.keys())]
    state = _following(state, version)
    return events, state, _request(state)


def _skip(state: State, raw: Raw, error: Exception) -> Skipped:
    """Leave an unreadable object out; it exists, so one that was known before must not look vanished."""
    key = key_of(raw)
    if key in state.known:
        state.listed.add(key)
    return Skipped(f"{state.target.kind.kind} {key[0]}/{key[1]} cannot be read and is left out: {error}")


def _vanished(state: State, version: str) -> list[Event]:
    gone = [key for key in state.known if key not in state.listed]
    return [Gone(key, state.known.pop(key), version) for key in gone]


def _following(state: State, version: str) -> State:
    state.listed.clear()
    return msgspec.structs.replace(state, phase=Phase.FOLLOW, version=version, token="", failures=0)


def _on_end(state: State, end: Ended) -> Step:
    steady = end.after >= STEADY and state.phase is Phase.FOLLOW
    failures = 1 if steady else state.failures + 1
    if end.error is None:
        return _on_close(_unstreamed(state, end.after), 0 if steady else failures)
    trouble: list[Event] = [Trouble(f"watch of {state.target}: {end.error}")]
    code = end.error.code if isinstance(end.error, Rejected) else 0
    if code in (400, 422) and state.phase is Phase.STREAM_FILL:
        # No trouble: the server is older than WatchList, or has it switched off.
        return _refill(msgspec.structs.replace(state, streams=False), [], failures=0)
    if code == 404:
        return _unserved(state)
    if code == 410:
        return _refill(state, [], failures=failures)
    if state.phase is Phase.FOLLOW:
        state = msgspec.structs.replace(state, failures=failures)
        return trouble, state, _request(state, _delay(failures, end.error))
    return _refill(_unstreamed(state, end.after), trouble, failures=failures, error=end.error)


def _unstreamed(state: State, after: float) -> State:
    """A streamed fill that was cut off twice in the midst of it may be too long for one stream: go by pages."""
    cut = state.phase is Phase.STREAM_FILL and after >= STEADY and state.failures >= 1
    return msgspec.structs.replace(state, streams=False) if cut else state


def _on_close(state: State, failures: int) -> Step:
    if state.phase is not Phase.FOLLOW:
        text = f"watch of {state.target}: closed before everything was listed"
        return _refill(state, [Trouble(text)], failures=failures)
    state = msgspec.structs.replace(state, failures=failures)
    return [], state, _request(state, _delay(failures))


def _unserved(state: State) -> Step:
    """A single 404 may be a server that is starting: only the third in a row means that the objects are gone too."""
    failures = state.failures + 1
    events: list[Event] = [Unserved()]
    state.listed.clear()
    if failures >= 3:
        events = [*_vanished(state, ""), Unserved()]
    _, state, request = _refill(state, [], failures=failures)
    return events, state, msgspec.structs.replace(request, delay=UNSERVED_RETRY) if request else None


def _refill(state: State, events: list[Event], *, failures: int, error: KubeError | None = None) -> Step:
    state.listed.clear()
    state = msgspec.structs.replace(
        state,
        phase=Phase.STREAM_FILL if state.streams else Phase.PAGE_FILL,
        version="",
        token="",
        failures=failures,
    )
    return events, state, _request(state, _delay(failures, error))


def _delay(failures: int, error: KubeError | None = None) -> float:
    """Seconds before the next try: doubling from `_BACKOFF`, or what the server asked for if that is longer."""
    asked = error.retry_after if isinstance(error, Transient) else 0.0
    return max(asked, min(_BACKOFF * 2 ** min(failures - 1, 10), _MAX_BACKOFF)) if failures else asked


def _request(state: State, delay: float = 0.0) -> Next:
    query = {"labelSelector": state.target.selector} if state.target.selector else {}
    if state.phase is Phase.PAGE_FILL:
        query |= {"limit": str(PAGE)} | ({"continue": state.token} if state.token else {})
        return Next(Request(method="GET", path=state.target.path, query=query), False, delay)
    query |= {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(SERVER_TIMEOUT)}
    if state.phase is Phase.STREAM_FILL:
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    else:
        query |= {"resourceVersion": state.version}
    return Next(Request(method="GET", path=state.target.path, query=query, timeout=CLIENT_TIMEOUT), True, delay)
