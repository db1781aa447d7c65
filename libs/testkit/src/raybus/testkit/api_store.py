"""What the API server in memory stores: every object with one counter of versions, and the changes that led there."""

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from raybus.api.decision import Json
from raybus.api.times import Instant, format_time

Key = tuple[str, str]
"""(namespace, name)."""


class Change(NamedTuple):
    """One write. `after` None = deleted; `raw` is the object as a watch shows it: of a deleted one the last state,
    with the version of its deletion. Objects are never changed in place."""

    version: int
    kind: str
    key: Key
    before: Json | None
    after: Json | None
    raw: bytes


class Store:
    """Objects by kind and key. `now`: the server's wall clock; `writer`: who is writing at present, for observers.

    Objects handed out are the stored ones: nobody may change them in place.
    """

    def __init__(self, now: Callable[[], Instant], rng: random.Random) -> None:
        self.now, self._rng = now, rng
        self.version = 1
        self.compacted = 0
        self.writer = ""
        self.objects: dict[str, dict[Key, Json]] = {}
        self.raw: dict[str, bytes] = {}
        """JSON by UID of every present object."""
        self.uids: dict[str, tuple[str, Key]] = {}
        self.history: dict[str, deque[Change]] = {}
        self.observers: list[Callable[[Change], None]] = []

    def get(self, kind: str, key: Key) -> Json | None:
        """The present object."""
        return self.objects.get(kind, {}).get(key)

    def all(self, kind: str, namespace: str = "") -> list[Json]:
        """Present objects of a kind ("" = in all namespaces) in key order."""
        present = self.objects.get(kind, {})
        return [present[key] for key in sorted(present) if namespace in ("", key[0])]

    def new_uid(self) -> str:
        """A UID that no other object has."""
        text = f"{self._rng.getrandbits(128):032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def timestamp(self) -> str:
        """The present time as `metav1.Time`."""
        return format_time(self.now())

    def put(self, kind: str, key: Key, obj: Json) -> Json:
        """Store an object under the next version, unless that changes nothing; returns what is stored."""
        before = self.get(kind, key)
        if before is not None and _same(before, obj):
            return before
        self.version += 1
        after = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        raw = msgspec.json.encode(after)
        uid = after["metadata"]["uid"]
        self.objects.setdefault(kind, {})[key] = after
        self.raw[uid], self.uids[uid] = raw, (kind, key)
        self._tell(Change(self.version, kind, key, before, after, raw))
        return after

    def remove(self, kind: str, key: Key) -> Json:
        """Delete an object for good; returns its last state with the version of its deletion."""
        before = self.objects[kind].pop(key)
        uid = before["metadata"]["uid"]
        del self.raw[uid], self.uids[uid]
        self.version += 1
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.version)}}
        self._tell(Change(self.version, kind, key, before, None, msgspec.json.encode(last)))
        return last

    def compact(self) -> None:
        """Forget all history: watches and lists that want to go on from an earlier version are refused (410)."""
        self.compacted = self.version
        self.history.clear()

    def since(self, kind: str, version: int) -> list[Change]:
        """Changes of a kind after `version`, oldest first."""
        return [change for change in self.history.get(kind, ()) if change.version > version]

    def _tell(self, change: Change) -> None:
        self.history.setdefault(change.kind, deque()).append(change)
        for observer in self.observers:
            observer(change)


def _same(before: Json, after: Json) -> bool:
    """Whether a write changes nothing: it keeps the version then, and no watch hears of it."""
    old, new = before["metadata"], after["metadata"]
    unversioned = {**new, "resourceVersion": old["resourceVersion"]}
    return old == unversioned and {**after, "metadata": None} == {**before, "metadata": None}
