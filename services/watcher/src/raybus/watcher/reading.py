"""What routing and tracing read of an object; pure."""

import msgspec
from msgspec import Struct

from raybus.api.kinds import ROOTS, Kind
from raybus.api.routes import L_CLUSTER, Key, Traits, traits
from raybus.kube.objects import Object


class _Spec(Struct, frozen=True, rename="camel"):
    cluster_selector: dict[str, str] | None = None


class _Status(Struct, frozen=True, rename="camel"):
    ray_cluster_name: str = ""


class _PodStatus(Struct, frozen=True):
    phase: str = "Pending"


class _Pod(Struct, frozen=True):
    status: _PodStatus = _PodStatus()


class _RayJob(Struct, frozen=True):
    spec: _Spec = _Spec()
    status: _Status | None = None


SHORT, LONG, LAST = 0.25, 3.0, 20.0
"""Seconds: for a state that our own write has most likely made, for one of a pod that does not run yet, and for one of
a pod that goes after its root, which nobody decides about."""

_POD = msgspec.json.Decoder(_Pod)
_RAYJOB = msgspec.json.Decoder(_RayJob)


def key_of(kind: Kind, item: Object) -> Key:
    """The key of `item`, an object of `kind`."""
    return Key(kind.kind, item.meta.namespace, item.meta.name)


def traits_of(kind: Kind, item: Object) -> Traits:
    """Traits of `item`. Raises msgspec.ValidationError for a RayJob whose cluster names are no strings."""
    owner = item.meta.controller
    return traits(
        key_of(kind, item),
        item.meta.labels,
        (owner.kind, owner.name) if owner is not None else None,
        _claims(item.raw) if kind.kind == "RayJob" else (),
    )


def patience(kind: Kind, item: Object, generation: int | None, rooted: bool) -> float:
    """Seconds that a state of `item` may rest before it is published, 0.0 = somebody may be waiting for it (ADR 0091).

    What Raybus itself has written, the applier has told the view already: children as they were created or are being
    deleted, and roots whose generation is still `generation`, the last one seen. A pod that does not run yet changes
    several times in a row, and so does one that follows a root which is not there (not `rooted`): its end counts.
    """
    if kind.kind == "Pod":
        if item.meta.deletion_timestamp:
            return SHORT if rooted else LAST
        return LONG if _POD.decode(item.raw).status.phase == "Pending" else 0.0
    if kind.kind == "Service":
        return SHORT
    own = kind.kind in ROOTS.values() and generation == item.meta.generation and not item.meta.deletion_timestamp
    return SHORT if own else 0.0


def _claims(raw: bytes) -> tuple[str, ...]:
    """The clusters that a RayJob names: in its spec (selected) and in its status (its own, or the selected one)."""
    job = _RAYJOB.decode(raw)
    named = (job.spec.cluster_selector or {}).get(L_CLUSTER, ""), job.status.ray_cluster_name if job.status else ""
    return tuple(dict.fromkeys(name for name in named if name))
