"""One partition of a controller's view in memory: messages in, roots out. No input or output of its own.

Each message is decoded once, when it arrives; only a root's own object keeps its raw status, because the runtime
compares the next status with it (design §4).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from raybus.api.kinds import BY_KIND, ROOTS
from raybus.api.messages import H_AT, H_GONE, H_RV, H_UID, TOMBSTONE_TTL, Fact, Presence, Result
from raybus.api.names import encode_token
from raybus.api.schema import Newer, Unreadable, read
from raybus.api.subjects import FACT, MARKER, PRESENCE, RESULT, ViewKey, parse_view
from raybus.api.times import Instant
from raybus.api.view import Entry, View
from raybus.bus.port import Message
from raybus.runtime.controller import Controller, Decoder
from raybus.runtime.root_gauges import Kept, Shown, keep

RootKey = tuple[str, str]
"""(namespace, name) of a root."""

_SHARED: Mapping[str, Decoder] = {
    FACT: msgspec.json.Decoder(Fact).decode,
    RESULT: msgspec.json.Decoder(Result).decode,
    PRESENCE: msgspec.json.Decoder(Presence).decode,
}


class StoredMeta(Struct, rename="camel", frozen=True):
    """The metadata that the runtime itself needs of a root."""

    uid: str
    resource_version: str
    generation: int = 0
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str | None = None


class Stored(Struct, frozen=True):
    """A root as the API server has it: what the runtime compares a decision with."""

    metadata: StoredMeta
    status: dict[str, Any] | None = None


class RootState(Struct, kw_only=True):
    """All that is known of one root. `seq`: highest sequence; `object_seq`: highest of a message that may be the
    effect of a write (anything but facts); `parent`: trace headers of the newest message; `touched`: when it came,
    by the monotonic clock. `kept`: durations for `/metrics`."""

    entries: dict[tuple[str, str], Entry]
    stored: Stored | None = None
    seq: int = 0
    object_seq: int = 0
    parent: Mapping[str, str] = {}
    touched: float = 0.0
    kept: Kept = {}


class PartitionCache:
    """The roots of one partition; `marker` is the stream creation time named by the newest fill marker; `newer`: the
    entries of a root that only a later release can read, without which nothing may be decided about it."""

    def __init__(self, controller: Controller[Any, Any]) -> None:
        self.controller, self.gauges = controller.name, controller.gauges
        self.root_token = BY_KIND[ROOTS[controller.name]].token
        self.decoders = {**_SHARED, **controller.decoders}
        self.read_stored = msgspec.json.Decoder(Stored).decode
        self.roots: dict[RootKey, RootState] = {}
        self.newer: dict[RootKey, set[tuple[str, str]]] = {}
        self.marker = ""

    def clear(self) -> None:
        """Forget everything: the follower starts anew."""
        self.roots.clear()
        self.newer.clear()
        self.marker = ""

    def apply(self, message: Message, now: float) -> RootKey | None:
        """Take in one message; returns the root that it is about, None for a marker or an ignored kind.

        Raises ValueError for a subject that is none; Unreadable: the entry is then absent; Newer: the root (or the
        marker) is then left alone.
        """
        key = parse_view(message.subject)
        if key.kind == MARKER:
            self.marker = read(message.headers, message.data, bytes.decode)
            return None
        if key.kind not in self.decoders:
            return None
        root = (key.namespace, key.root)
        state = self.roots.get(root)
        if state is None:
            state = self.roots[root] = RootState(entries={})
        state.seq = max(state.seq, message.seq)
        state.parent, state.touched = message.headers, now
        if key.kind != FACT:
            state.object_seq = max(state.object_seq, message.seq)
        self._store(state, key, message)
        return root

    def _store(self, state: RootState, key: ViewKey, message: Message) -> None:
        slot = (key.kind, key.name)
        is_root = key.kind == self.root_token and key.name == key.root
        gone = H_GONE in message.headers or not message.data
        try:
            value, stored = read(message.headers, message.data, partial(self._decode, key.kind, is_root, gone))
        except Newer:
            self.newer.setdefault((key.namespace, key.root), set()).add(slot)
            raise
        except Unreadable as error:
            self._readable(key)
            state.entries.pop(slot, None)
            if is_root:
                state.stored = None
            raise Unreadable(f"{key.kind} {key.namespace}/{key.name} cannot be read: {error}") from error
        self._readable(key)
        entry = Entry(
            value=value,
            uid=message.headers.get(H_UID, ""),
            resource_version=message.headers.get(H_RV, ""),
            seq=message.seq,
            observed_at=Instant(float(message.headers.get(H_AT) or message.stored_at)),
            gone=gone,
        )
        if is_root:
            state.stored = stored
            keep(self.gauges, state.kept, state.entries.get(slot), entry)
        state.entries[slot] = entry

    def _decode(self, kind: str, is_root: bool, gone: bool, data: bytes) -> tuple[Any, Stored | None]:
        """The value of an entry, and for a root what the runtime itself needs of it."""
        if gone:
            return None, None
        return self.decoders[kind](data), self.read_stored(data) if is_root else None

    def _readable(self, key: ViewKey) -> None:
        """The entry is not one of a later release, or no longer."""
        root = (key.namespace, key.root)
        if root in self.newer:
            self.newer[root].discard((key.kind, key.name))
            if not self.newer[root]:
                del self.newer[root]

    def view(self, root: RootKey) -> View:
        """What `gather` gets. The entries are shared, not copied: gather and decide run before the next message."""
        state = self.roots[root]
        return View(controller=self.controller, namespace=root[0], name=root[1], entries=state.entries, seq=state.seq)

    def shown(self) -> Iterator[Shown]:
        """The roots that are there, for `/metrics`."""
        for (namespace, name), state in self.roots.items():
            entry = state.entries.get((self.root_token, name))
            if entry is not None and not entry.gone:
                yield Shown(namespace, name, entry.uid, entry.value, state.kept)

    def sweep(self, now: Instant) -> None:
        """Forget tombstones that the server has removed by their TTL, and roots of which nothing is left."""
        for root, state in list(self.roots.items()):
            for slot, entry in list(state.entries.items()):
                if entry.gone and now - entry.observed_at > TOMBSTONE_TTL:
                    del state.entries[slot]
            if not state.entries:
                del self.roots[root]


def root_label(root: RootKey) -> str:
    """`namespace/name` for logs, with nothing in it that could forge a line."""
    return f"{encode_token(root[0])}/{encode_token(root[1])}"
