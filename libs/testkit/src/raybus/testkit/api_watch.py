"""Lists by pages and watches of the API server in memory."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

import msgspec

from raybus.api.decision import Json
from raybus.api.kinds import Kind
from raybus.testkit import api_errors as errors
from raybus.testkit.api_selectors import Selector, parse_selector
from raybus.testkit.api_store import Change, Key, Store

_INITIAL_END = {"k8s.io/initial-events-end": "true"}


def selector_of(query: Mapping[str, str]) -> Selector:
    """The label selector of a query. Raises ApiError 400."""
    try:
        return parse_selector(query.get("labelSelector", ""))
    except ValueError as error:
        raise errors.ApiError(400, "BadRequest", str(error)) from error


def _matches(selector: Selector, namespace: str, key: Key, obj: Json | None) -> bool:
    return obj is not None and namespace in ("", key[0]) and selector(obj["metadata"].get("labels") or {})


class Lists:
    """Paged lists: what remains of each is kept under its token, so that all pages show one instant."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rest: dict[str, tuple[int, list[bytes]]] = {}

    def page(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> bytes:
        """One page. Raises ApiError 400, 410 (a token older than the compaction)."""
        token = query.get("continue", "")
        if token:
            version, items = self._rest.get(token, (0, []))
            if version <= self._store.compacted:
                raise errors.expired(token)
        else:
            selector, version = selector_of(query), self._store.version
            items = [
                self._store.raw[obj["metadata"]["uid"]]
                for obj in self._store.all(kind.kind, namespace)
                if _matches(selector, namespace, (namespace, ""), obj)
            ]
        limit = int(query.get("limit", "0")) or len(items) or 1
        meta: Json = {"resourceVersion": str(version)}
        if len(items) > limit:
            meta["continue"] = f"{version}-{len(items) - limit}-{kind.plural}-{namespace}"
            self._rest[meta["continue"]] = (version, items[limit:])
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta}
        return msgspec.json.encode({**head, "items": [msgspec.Raw(_bare(item)) for item in items[:limit]]})


def _bare(raw: bytes) -> bytes:
    """Items of a list come without `kind` and `apiVersion`."""
    fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    return msgspec.json.encode(fields)


class Watch:
    """One open watch; its lines wait in `lines` until somebody reads them.

    `cut` ends it at once, as a broken connection does; `mute` makes it silent, as a black hole in the network does.
    """

    def __init__(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> None:
        self.kind, self._namespace, self._selector = kind, namespace, selector_of(query)
        self.lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.muted = False

    def begin(self, store: Store, query: Mapping[str, str]) -> None:
        """Queue what comes before the first change: initial events, or what changed since the given version."""
        version = query.get("resourceVersion", "")
        if query.get("sendInitialEvents") == "true":
            if query.get("resourceVersionMatch") != "NotOlderThan":
                raise errors.invalid(self.kind, "", "resourceVersionMatch: Forbidden: must be NotOlderThan")
            self._initial(store)
            self._bookmark(store.version, _INITIAL_END)
        elif version in ("", "0"):
            self._initial(store)
        elif int(version) < store.compacted:
            self._line("ERROR", errors.expired(version).body)
            self.lines.put_nowait(None)
        else:
            for change in store.since(self.kind.kind, int(version)):
                self.offer(change)

    def _initial(self, store: Store) -> None:
        for obj in store.all(self.kind.kind, self._namespace):
            if _matches(self._selector, self._namespace, (self._namespace, ""), obj):
                self._line("ADDED", store.raw[obj["metadata"]["uid"]])

    def offer(self, change: Change) -> None:
        """One change of this kind: an object that begins or ceases to match is added or deleted for this watch."""
        if self.muted:
            return
        was = _matches(self._selector, self._namespace, change.key, change.before)
        matches = _matches(self._selector, self._namespace, change.key, change.after)
        if was or matches:
            self._line("ADDED" if not was else "MODIFIED" if matches else "DELETED", change.raw)

    def finish(self, version: int) -> None:
        """End in good order, with a bookmark of where to go on."""
        if not self.muted:
            self._bookmark(version, {})
            self.lines.put_nowait(None)

    def cut(self, error: Exception) -> None:
        """Break off with `error`; ends the silence of a black hole too."""
        self.lines.put_nowait(error)

    def mute(self) -> None:
        """Say nothing any more, not even the end."""
        self.muted = True

    async def read(self) -> AsyncGenerator[bytes, None]:
        """All lines that are there, as one chunk each time; ends with the watch, or raises what it was cut with."""
        while True:
            chunk = bytearray()
            item = await self.lines.get()
            while isinstance(item, bytes):
                chunk += item
                if self.lines.empty():
                    break
                item = self.lines.get_nowait()
            if chunk:
                yield bytes(chunk)
            if isinstance(item, Exception):
                raise item
            if item is None:
                return

    def _line(self, event: str, raw: bytes) -> None:
        self.lines.put_nowait(b'{"type":"' + event.encode() + b'","object":' + raw + b"}\n")

    def _bookmark(self, version: int, annotations: Mapping[str, str]) -> None:
        meta = {"resourceVersion": str(version), "creationTimestamp": None, "annotations": annotations}
        obj = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": meta}
        self._line("BOOKMARK", msgspec.json.encode(obj))
