"""A Kubernetes API server in memory, for behaviour tests and the simulator.

`FakeApi` is the server, `Connection` one process's way to it (`raybus.kube.port.Sender`): it answers exactly the
requests that `raybus.kube.request`, `write` and `watch` build, and raises what the real client raises. What makes the
cluster live (garbage collection, Jobs, a kubelet) is in `api_controllers.py` and `fake_kubelet.py`. Left out: field
ownership, admission, authorisation, schemas; the rest is compared with the real server by
tests/integration/test_fake_api_conformance.py.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, Literal, NamedTuple

import msgspec

from raybus.api.decision import Json
from raybus.api.kinds import KINDS, Kind
from raybus.api.times import Instant
from raybus.kube.errors import of_answer
from raybus.kube.port import KubeError, Request, Response, Transient
from raybus.testkit import api_errors as errors
from raybus.testkit.api_store import Change, Key, Store
from raybus.testkit.api_verbs import Verbs
from raybus.testkit.api_watch import Lists, Watch

_KINDS = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}


class Target(NamedTuple):
    """What a path names; `key[1]` is "" for a collection."""

    kind: Kind
    key: Key
    subresource: str


class Fault(NamedTuple):
    """What happens to one request. `before`, `after`: seconds on the way there and back. `error`: instead of the
    answer; `effect`: whether the request is carried out all the same, for a time-out perhaps long after it.
    `again`: seconds after which it arrives once more, as proxies repeat what is idempotent; 0 = never."""

    before: float = 0.0
    after: float = 0.0
    error: Literal["", "busy", "broken", "conflict", "timeout", "refused"] = ""
    effect: bool = True
    again: float = 0.0


SMOOTH = Fault()


class FakeApi:
    """The server. `unserved`: kinds whose CRD is missing."""

    def __init__(self, now: Callable[[], Instant], rng: random.Random) -> None:
        self.store = Store(now, rng)
        self.verbs = Verbs(self.store)
        self.unserved: set[str] = set()
        self.watches: list[Watch] = []
        self._lists = Lists(self.store)
        self.store.observers.append(self._spread)

    def connect(self, client: str, fault: Callable[[Request], Fault] = lambda _: SMOOTH) -> "Connection":
        """A connection of the process named `client`; `fault` says what happens to each of its requests."""
        return Connection(self, client, fault)

    def compact(self) -> None:
        """Forget the history, as etcd does every few minutes."""
        self.store.compact()

    def handle(self, client: str, request: Request) -> Response:
        """Carry out one request other than a watch. Raises ApiError."""
        self.store.writer = client
        try:
            return self._handle(request)
        finally:
            self.store.writer = ""

    def watch(self, request: Request) -> Watch:
        """Open a watch. Raises ApiError."""
        target = self.target(request.path)
        watch = Watch(target.kind, target.key[0], request.query)
        watch.begin(self.store, request.query)
        self.watches.append(watch)
        return watch

    def target(self, path: str) -> Target:
        """Read a path. Raises ApiError 404."""
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            group, rest = "", parts[1:]
        else:
            group, rest = parts[1], parts[2:]
        version, rest = rest[0], rest[1:]
        namespace = ""
        if rest and rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        kind = _KINDS.get((group, version, rest[0])) if rest else None
        if kind is None or kind.kind in self.unserved:
            raise errors.no_such_resource()
        name = rest[1] if len(rest) > 1 else ""
        return Target(kind, (namespace, name), rest[2] if len(rest) > 2 else "")

    def _spread(self, change: Change) -> None:
        for watch in self.watches:
            if watch.kind.kind == change.kind:
                watch.offer(change)

    def _handle(self, request: Request) -> Response:
        if request.path.count("/") <= 3 and request.method == "GET":
            found = self._resources(request.path)
            if found is not None:
                return _answer(200, found)
        kind, key, subresource = self.target(request.path)
        body: Any = msgspec.json.decode(request.body) if request.body else {}
        match request.method, request.content_type:
            case "GET", _:
                if not key[1]:
                    return Response(status=200, body=self._lists.page(kind, key[0], request.query))
                return _answer(200, self.verbs.get(kind, key))
            case "POST", _:
                return _answer(201, self.verbs.create(kind, key[0], body))
            case "DELETE", _:
                return _answer(200, self.verbs.delete(kind, key, body))
            case "PUT", _ if subresource == "status":
                return _answer(200, self.verbs.put_status(kind, key, body))
            case "PATCH", "application/json-patch+json":
                return _answer(200, self.verbs.json_patch(kind, key, body))
            case "PATCH", "application/merge-patch+json":
                return _answer(200, self.verbs.merge_patch(kind, key, body))
            case "PATCH", "application/apply-patch+yaml":
                applied, created = self.verbs.apply(kind, key, body)
                return _answer(201 if created else 200, applied)
            case _:
                raise errors.ApiError(405, "MethodNotAllowed", f"{request.method} is not known here")

    def _resources(self, path: str) -> Json | None:
        """The APIResourceList of a group and version, None if `path` names none."""
        parts = path.strip("/").split("/")
        group, version = (parts[1], parts[2]) if parts[0] == "apis" and len(parts) == 3 else ("", parts[-1])
        if len(parts) != (3 if parts[0] == "apis" else 2):
            return None
        found = [k for k in KINDS if (k.group, k.version) == (group, version) and k.kind not in self.unserved]
        if not found:
            raise errors.no_such_resource()
        listed = [{"name": k.plural, "kind": k.kind, "namespaced": True} for k in found]
        return {"kind": "APIResourceList", "groupVersion": f"{group}/{version}", "resources": listed}


class Connection:
    """One process's connection: implements `raybus.kube.port.Sender`.

    A request that was sent takes its effect whatever becomes of its sender. `down`: nothing can be reached.
    """

    def __init__(self, api: FakeApi, client: str, fault: Callable[[Request], Fault]) -> None:
        self.api, self.client, self.fault = api, client, fault
        self.down = False
        self._open: list[Watch] = []

    async def send(self, request: Request) -> Response:
        """Raises Transient, Rejected or Bug."""
        fault = self.fault(request)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        _later(fault.before, self._arrive, request, fault, answer)
        if fault.again:
            _later(fault.again, self._repeat, request)
        if fault.error == "timeout":
            _later(request.timeout, _resolve, answer, self._failure(request, fault))
        return await answer

    def close(self) -> None:
        """The process is gone: nothing reaches it any more."""
        self.down = True
        for watch in self._open:
            watch.mute()
            self.api.watches.remove(watch)
        self._open.clear()

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The chunks of a watch. Raises Transient, Rejected or Bug."""
        fault = self.fault(request)
        await asyncio.sleep(fault.before)
        if fault.error or self.down:
            raise self._failure(request, fault)
        try:
            watch = self.api.watch(request)
        except errors.ApiError as error:
            raise _of(request, error) from error
        self._open.append(watch)
        loop = asyncio.get_running_loop()
        ends = [
            loop.call_later(float(request.query.get("timeoutSeconds", 300)), self._finish, watch),
            loop.call_later(request.timeout, watch.lines.put_nowait, self._timed_out(request)),
        ]
        try:
            async for chunk in watch.read():
                yield chunk
                await asyncio.sleep(fault.after)
        finally:
            for end in ends:
                end.cancel()
            if watch in self._open:
                self._open.remove(watch)
                self.api.watches.remove(watch)

    def cut(self) -> None:
        """Break off every watch of this connection."""
        for watch in list(self._open):
            watch.cut(Transient("lost the connection to the API server in memory"))

    def black_hole(self) -> None:
        """Let every watch of this connection fall silent without ending it."""
        for watch in self._open:
            watch.mute()

    def _finish(self, watch: Watch) -> None:
        watch.finish(self.api.store.version)

    def _arrive(self, request: Request, fault: Fault, answer: asyncio.Future[Response]) -> None:
        """The request is at the server: its effect takes place here, whether or not anybody still waits."""
        outcome: Response | KubeError
        if self.down or (fault.error and not fault.effect):
            outcome = self._failure(request, fault)
        else:
            try:
                outcome = self.api.handle(self.client, request)
            except errors.ApiError as error:
                outcome = _of(request, error)
            if fault.error:
                outcome = self._failure(request, fault)
        if fault.error != "timeout":
            _later(fault.after, _resolve, answer, outcome)

    def _repeat(self, request: Request) -> None:
        """The same request from some proxy; nobody waits for the answer."""
        with suppress(errors.ApiError):
            self.api.handle(self.client, request)

    def _failure(self, request: Request, fault: Fault) -> KubeError:
        if self.down or fault.error == "refused":
            text = f"{request.method} {request.path}: cannot reach the API server in memory"
            return Transient(text, sent=False)
        match fault.error:
            case "timeout":
                return Transient(f"{request.method} {request.path}: no answer within {request.timeout:g} s")
            case "busy":
                return _of(request, errors.ApiError(429, "TooManyRequests", "too many requests", retry_after=1))
            case "conflict":
                return _of(request, errors.ApiError(409, "Conflict", "the object has been modified"))
            case _:
                return _of(request, errors.ApiError(500, "InternalError", "an error on the server"))

    def _timed_out(self, request: Request) -> Transient:
        return Transient(f"GET {request.path}: nothing more came, ended by us", sent=False)


def _later(delay: float, do: Callable[..., None], *arguments: Any) -> None:
    """Run something of the server's or the network's: it goes on while the calling process is frozen."""
    loop = asyncio.get_running_loop()
    if delay > 0:
        loop.call_later(delay, do, *arguments, context=Context())
    else:
        loop.call_soon(do, *arguments, context=Context())


def _resolve(answer: asyncio.Future[Response], outcome: Response | KubeError) -> None:
    if answer.done():
        return
    if isinstance(outcome, KubeError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _of(request: Request, error: errors.ApiError) -> KubeError:
    return of_answer(request, error.code, error.body, str(error.retry_after or ""))


def _answer(status: int, obj: Json) -> Response:
    return Response(status=status, body=msgspec.json.encode(obj))
