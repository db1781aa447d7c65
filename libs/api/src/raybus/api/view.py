"""What a controller knows about one root: the only input of `gather` (design §4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from raybus.api.times import Instant


class Entry(Struct, frozen=True, kw_only=True):
    """The last known state of one object of a view.

    `value`: what the controller's decoder made of the message, None when the object is gone.
    `uid`, `resource_version`: of the Kubernetes object ("" for facts and results). `seq`: stream sequence of the
    message. `observed_at`: when its publisher saw it. `gone`: a tombstone, kept for a day so that names rest.
    """

    value: Any
    uid: str = ""
    resource_version: str = ""
    seq: int = 0
    observed_at: Instant = Instant(0.0)
    gone: bool = False


class View(Struct, frozen=True, kw_only=True):
    """One root's view: `entries` maps (kind token, name) to the last known state; `seq` is the highest sequence."""

    controller: str
    namespace: str
    name: str
    entries: Mapping[tuple[str, str], Entry]
    seq: int = 0

    def get(self, kind: str, name: str) -> Entry | None:
        """The entry of a living object, None if it is unknown or gone."""
        entry = self.entries.get((kind, name))
        return None if entry is None or entry.gone else entry

    def living(self, kind: str) -> Iterator[tuple[str, Entry]]:
        """(name, entry) of every living object of `kind`, in name order (decisions must not hang on arrival order)."""
        for (token, name), entry in sorted(self.entries.items()):
            if token == kind and not entry.gone:
                yield name, entry

    def gone(self, kind: str) -> frozenset[str]:
        """Names of `kind` that left a tombstone within the last day."""
        return frozenset(name for (token, name), entry in self.entries.items() if token == kind and entry.gone)
