"""All objects that the watches have shown, and the changes to views that follow from each event; no input or output.

Raw bytes are not kept: of an object that comes into a further view later, they are read from the API server again
(ADR 0036), which is rare, while keeping them would cost 10 kB for each pod.
"""

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from raybus.api.kinds import ROOTS, Kind
from raybus.api.routes import Index, Key, Route, view_subject
from raybus.kube.objects import Object
from raybus.watcher.reading import key_of, patience, traits_of
from raybus.watcher.versions import older


class Present(Struct, frozen=True):
    """`key` belongs into the view of `route` in this state; `raw` None = to be read from the API server. `patience`:
    seconds for which nobody misses it."""

    key: Key
    route: Route
    uid: str
    version: str
    raw: bytes | None
    patience: float = 0.0


class Absent(Struct, frozen=True):
    """`key` does not, or no longer, belong into the view of `route`."""

    key: Key
    route: Route
    uid: str
    version: str


Change = Present | Absent


class _Known(Struct):
    """`sources`: bit per watch that shows the object (the selectors of one kind may overlap)."""

    uid: str
    version: str
    sources: int
    routes: tuple[Route, ...]
    generation: int


class World:
    """Fed by the watches in any order; each method returns the changes that follow."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}
        self._index = Index()

    def put(self, source: int, kind: Kind, item: Object) -> list[Change]:
        """Watch number `source` shows `item`. Raises msgspec.ValidationError for what cannot be routed.

        A state older than the known one changes nothing: two watches of one kind do not run in step.
        """
        key, known = key_of(kind, item), self._known.get(key_of(kind, item))
        meta = item.meta
        if known is not None and older(meta.resource_version, known.version):
            if known.uid == meta.uid:
                known.sources |= 1 << source
            return []
        affected = self._index.put(traits_of(kind, item))
        routes, old = tuple(sorted(self._index.routes(key))), known.routes if known else ()
        sources = known.sources if known and known.uid == meta.uid else 0
        self._known[key] = _Known(meta.uid, meta.resource_version, sources | 1 << source, routes, meta.generation)
        rooted = any(Key(ROOTS[r.controller], r.namespace, r.root) in self._known for r in routes)
        rest = patience(kind, item, None if known is None else known.generation, rooted)
        changes: list[Change] = [Present(key, r, meta.uid, meta.resource_version, item.raw, rest) for r in routes]
        changes += [Absent(key, r, meta.uid, meta.resource_version) for r in old if r not in routes]
        return changes + self._reroute(affected)

    def refreshed(self, kind: Kind, item: Object) -> list[Change]:
        """`item` was read by name or list: as `put`, but no watch vouches for it, so an unknown one is left alone."""
        key = key_of(kind, item)
        known = self._known.get(key)
        if known is None or older(item.meta.resource_version, known.version):
            return []
        sources = known.sources
        changes = self.put(0, kind, item)
        self._known[key].sources = sources
        return changes

    def gone(self, source: int, key: Key, uid: str, version: str) -> list[Change]:
        """Watch number `source` no longer shows the object with this UID; "" as version = unknown."""
        known = self._known.get(key)
        if known is None or known.uid != uid:
            return []
        known.sources &= ~(1 << source)
        if known.sources:
            return []
        del self._known[key]
        last = version if older(known.version, version) else known.version
        affected = self._index.drop(key)
        return [Absent(key, route, uid, last) for route in known.routes] + self._reroute(affected)

    def listed(self, source: int, version: str, there: Collection[tuple[str, str]]) -> list[Change]:
        """As of `version` watch number `source` shows the objects `there` (namespace, name) and no others: also those
        end that somebody else had listed in its name and it has never shown itself."""
        over = [
            (key, known.uid)
            for key, known in self._known.items()
            if known.sources & 1 << source and older(known.version, version) and (key.namespace, key.name) not in there
        ]
        return [change for key, uid in over for change in self.gone(source, key, uid, version)]

    def trace_seed(self, root: Key) -> str:
        """What names the trace of a root (`telemetry.traces.root_parent`), "" while it is not known: all that happens
        to a RayJob is one trace, its cluster included; for other roots each generation is one."""
        known, traits = self._known.get(root), self._index.traits(root)
        if known is None or traits is None:
            return ""
        if root.kind == "RayCluster" and traits.owner is not None and traits.owner[0] in ("RayJob", "RayService"):
            owner = Key(traits.owner[0], root.namespace, traits.owner[1])
            return self.trace_seed(owner)
        return known.uid if root.kind == "RayJob" else f"{known.uid}/{known.generation}"

    def shows(self, key: Key, subject: str) -> bool:
        """Whether the object is known and belongs to this subject of VIEW."""
        known = self._known.get(key)
        return known is not None and any(view_subject(route, key) == subject for route in known.routes)

    def present(self) -> Iterator[Present]:
        """Every object in every view it belongs to, without bytes."""
        for key, known in self._known.items():
            for route in known.routes:
                yield Present(key, route, known.uid, known.version, None)

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)

    def _reroute(self, keys: Iterable[Key]) -> list[Change]:
        changes: list[Change] = []
        for key in sorted(keys):
            known = self._known[key]
            routes = tuple(sorted(self._index.routes(key)))
            changes += [Present(key, r, known.uid, known.version, None) for r in routes if r not in known.routes]
            changes += [Absent(key, r, known.uid, known.version) for r in known.routes if r not in routes]
            known.routes = routes
        return changes
