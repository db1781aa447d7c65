"""Own writes come back at once: what the API server answered goes to the same VIEW subjects as from the watcher, by
the same compare-and-set; whoever comes second with an equal or older state gives way (design §3)."""

from collections.abc import Callable, Mapping

from raybus.api import subjects
from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND, ROOTS
from raybus.api.messages import H_AT, H_GONE, H_RV, H_SCHEMA, H_UID, SCHEMA, TOMBSTONE_TTL
from raybus.api.times import Instant
from raybus.applier.job import RootKey
from raybus.bus.port import Bus, Conflict, Message
from raybus.kube.objects import Object

ROUNDS = 5
"""Times that a compare-and-set is tried; the competitor (the watcher) only ever moves forward, so two are usual."""

DELETED = "1"
"""`Gone` header of an object that the API server has deleted; a watcher's tombstone says `left`, which may end."""

_CONTROLLER_OF = {kind: controller for controller, kind in ROOTS.items()}


def is_news(last: Message | None, uid: str, resource_version: str) -> bool:
    """Whether an object is newer than what its subject holds. A UID that was deleted never comes back to life."""
    if last is None:
        return True
    if last.headers.get(H_GONE) == DELETED and last.headers.get(H_UID) == uid:
        return False
    return _number(resource_version) > _number(last.headers.get(H_RV, ""))


def is_end(last: Message | None, uid: str) -> bool:
    """Whether a deletion is news: the subject holds this very object."""
    return last is not None and H_GONE not in last.headers and last.headers.get(H_UID) == uid


def views(key: RootKey, kind: str, item: Object | None, name: str) -> list[str]:
    """The VIEW subjects of a child or root that was written for `key`, its own root's view first: also the view in
    which it is a root itself, and that of its controlling owner."""
    controller, namespace, root = key
    token = BY_KIND[kind].token
    roots = [(controller, root)]
    if kind in _CONTROLLER_OF:
        roots.append((_CONTROLLER_OF[kind], name))
    owner = item.meta.controller if item is not None else None
    if owner is not None and kind in _CONTROLLER_OF and owner.kind in _CONTROLLER_OF:
        roots.append((_CONTROLLER_OF[owner.kind], owner.name))
    return [subjects.view(c, namespace, r, token, name) for c, r in dict.fromkeys(roots)]


class Echo:
    """Publishes effects. Kinds that no watch selects are in no view (Secrets never leave the API server)."""

    def __init__(self, bus: Bus, now: Callable[[], Instant]) -> None:
        self._bus = bus
        self._now = now

    async def written(
        self, key: RootKey, kind: str, item: Object, trace: Mapping[str, str], *, expect: int | None = None
    ) -> int:
        """Publish an object as it is now; returns its sequence in the view of root `key`, 0 if it is in none.

        `expect`: the sequence of what the view of `key` holds in all likelihood, of an older state for sure; 0 = the
        object was created just now, so no view holds it. Raises BusError.
        """
        if not BY_KIND[kind].selectors:
            return 0
        meta = item.meta
        headers = {**self._headers(trace), H_RV: meta.resource_version, H_UID: meta.uid}
        first, *others = views(key, kind, item, meta.name)
        seq = await self._publish(first, item.raw, headers, expect)
        for subject in others:
            await self._publish(subject, item.raw, headers, None if expect else expect)
        return seq

    async def gone(self, key: RootKey, ref: Ref, uid: str, trace: Mapping[str, str]) -> int:
        """Leave tombstones for an object that does not exist any more; as `written`. Raises BusError."""
        if not BY_KIND[ref.kind].selectors:
            return 0
        headers = {**self._headers(trace), H_UID: uid, H_GONE: DELETED}
        seqs = [await self._bury(subject, headers) for subject in views(key, ref.kind, None, ref.name)]
        return seqs[0]

    def _headers(self, trace: Mapping[str, str]) -> dict[str, str]:
        return {**trace, H_AT: f"{self._now():.6f}", H_SCHEMA: SCHEMA}

    async def _publish(self, subject: str, data: bytes, headers: Mapping[str, str], expect: int | None) -> int:
        """`expect` None: what the subject holds is looked at first, as it is after each conflict."""
        for _ in range(ROUNDS):
            if expect is None:
                last = await self._bus.last("VIEW", subject)
                if last is not None and not is_news(last, headers[H_UID], headers[H_RV]):
                    return last.seq
                expect = last.seq if last else 0
            try:
                return await self._bus.put("VIEW", subject, data, headers, expect=expect)
            except Conflict:
                expect = None
        raise Conflict(f"{subject}: changed {ROUNDS} times while it was being written")

    async def _bury(self, subject: str, headers: Mapping[str, str]) -> int:
        for _ in range(ROUNDS):
            last = await self._bus.last("VIEW", subject)
            if last is None or not is_end(last, headers[H_UID]):
                return last.seq if last else 0
            ours = {**headers, H_RV: last.headers.get(H_RV, "")}
            try:
                return await self._bus.put("VIEW", subject, b"", ours, expect=last.seq, ttl=TOMBSTONE_TTL)
            except Conflict:
                continue
        raise Conflict(f"{subject}: changed {ROUNDS} times while it was being written")


def _number(resource_version: str) -> int:
    return int(resource_version) if resource_version.isdigit() else 0
